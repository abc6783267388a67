"""Commands that connect other programs: mcp, serve and token."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import urllib.request
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, RicordoError
from ricordo.interfaces.call import EVERY_ACCESS, PROPOSING, Caller, StoreConfig
from ricordo.interfaces.cli.clients import (
    Client,
    ClientName,
    Entry,
    clients,
    server_text,
    start_entry,
    with_server,
    write_edit,
)
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.projects import is_private, project_of
from ricordo.interfaces.cli.terminal import Output, dim, meant, safe, table
from ricordo.interfaces.http.tokens import Token, Tokens, checked_trust, tokens_file
from ricordo.text.sentences import plural


def _config(ctx: CommandContext) -> StoreConfig:
    return StoreConfig(location=ctx.location, embedder=ctx.embedder, model=ctx.model, settings=ctx.settings())


# servers


_SERVER = ("starlette", "uvicorn")
_PAGE = (*_SERVER, "jinja2")


def check_installed(extra: str, packages: Sequence[str]) -> None:
    """Raise InvalidError if a package of an extra is missing: the command, or the server it connects, cannot start."""
    missing = [name for name in packages if not _is_installed(name)]
    if missing:
        what = f"{plural(len(missing), 'package')} not installed: {', '.join(missing)}"
        raise InvalidError(f"this command needs {what}", hint=f'pip install "ricordo[{extra}]"')


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:
        return False


@command
async def mcp(
    ctx: CommandContext,
    action: Literal["serve", "install"] = "serve",
    profile: str = "core",
    propose: bool = False,
    client: ClientName | None = None,
    name: str = "ricordo",
    config_file: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
    project: bool = False,
) -> Output:
    check_installed("mcp", ["mcp"])
    if action == "install":
        options = [option for option, is_set in (("--propose", propose), ("--project", project)) if is_set]
        known = _client(client, config_file, name=name, profile=profile)
        entry = start_of(ctx, chat=ctx.chat, profile=profile)
        entry = {**entry, "args": [*entry["args"], *options]}
        return _install(ctx, known, entry, name=name, yes=yes, dry_run=dry_run)
    from ricordo.interfaces.mcp import serve_stdio

    if sys.stdin.isatty():
        raise InvalidError(
            "`ricordo mcp` answers a program such as Claude on standard input, and this is a terminal",
            hint="to connect one: `ricordo mcp install --client claude-desktop` (or claude-code, cursor, vscode, "
            "windsurf, gemini-cli, codex); it then starts `ricordo mcp` itself",
        )
    caller = Caller(owner=ctx.owner, chat=ctx.chat, access=PROPOSING if propose else EVERY_ACCESS)
    if project and not is_private(Path.cwd(), home=Path.home()):
        caller = replace(caller, chat=project_of(Path.cwd()), shares=True)
    await serve_stdio(_config(ctx), caller=caller, profile=profile)
    return Output(data=None, show=lambda out: None)


@command
async def serve(
    ctx: CommandContext,
    host: str = "127.0.0.1",
    port: int = 7411,
    socket: Path | None = None,
    profile: str = "core",
    rate: float = 100.0,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
) -> Output:
    check_installed("server", _SERVER)
    from ricordo.interfaces.http.server import AccessRules, Address, serve

    if not -1 <= port <= 65_535:
        raise InvalidError("port must be from -1 to 65,535")
    rules = AccessRules(
        hosts=frozenset(each.lower() for each in allow_host or ()),
        origins=frozenset(each.lower() for each in allow_origin or ()),
        rate=max(1.0, rate),
        profile=profile,
    )
    await serve(
        _config(ctx),
        caller=Caller(owner=ctx.owner, chat=ctx.chat, trust="user", name="socket"),
        address=Address(host=host, port=None if port < 0 else port, socket_path=socket),
        rules=rules,
        notify=lambda text: ctx.err.print(Text(text), soft_wrap=True),
    )
    return Output(data=None, show=lambda out: None)


@command
async def page(ctx: CommandContext, port: int = 7411, no_browser: bool = False) -> Output:
    if not 0 <= port <= 65_535:
        raise InvalidError("port must be from 0 to 65,535")
    check_installed("server", _PAGE)

    show = link_shower(ctx, no_browser=no_browser)
    if (link := await asyncio.to_thread(_link_of_running, ctx, port)) is not None:
        show(link)
        return Output(data={"link": link}, show=lambda out: None)
    ctx.notice("This command serves the page until it is stopped, with Ctrl-C.")
    await serve_page(ctx, _config(ctx), show, port=port)
    return Output(data=None, show=lambda out: None)


def link_shower(ctx: CommandContext, *, no_browser: bool) -> Callable[[str], None]:
    """Return a function that prints a link and, on a machine with a display, opens it in a browser."""

    def show(link: str) -> None:
        ctx.err.print(Text(f"The page, by a link that works once: {link}"), soft_wrap=True)
        if not no_browser and _has_screen():
            webbrowser.open(link)

    return show


async def serve_page(ctx: CommandContext, config: StoreConfig, show: Callable[[str], None], *, port: int) -> None:
    """Serve the page until the process is stopped. If the port is in use, use any free one."""
    from ricordo.interfaces.http.server import AccessRules, Address, is_free, serve

    await serve(
        config,
        caller=Caller(owner=ctx.owner, chat=ctx.chat, trust="user", name="page"),
        address=Address(port=port if is_free(port) else 0),
        rules=AccessRules(),
        notify=lambda text: None,
        open_page=show,
    )


def _link_of_running(ctx: CommandContext, port: int) -> str | None:
    """Return a link to the page of a server that already runs and accepts the owner's first token; else None."""
    try:
        secret = tokens_file(ctx.location).with_suffix("").with_suffix(".token").read_text(encoding="utf-8").strip()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/page/link", method="POST", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(asked, timeout=3) as answer:
            found = json.load(answer)
    except (OSError, ValueError, InvalidError):  # no token file, no server, or another program's server
        return None
    is_ours = isinstance(found, dict) and (found.get("owner"), found.get("chat")) == (ctx.owner, ctx.chat)
    return f"http://127.0.0.1:{port}{found['path']}" if is_ours else None


def _has_screen() -> bool:
    """Return whether a browser would open in a window rather than in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# tokens


@command
async def token(
    ctx: CommandContext,
    action: Literal["add", "list", "revoke"],
    name: str | None = None,
    access: str = "read,write",
    trust: str = "user",
) -> Output:
    tokens = Tokens(tokens_file(ctx.location))
    if action == "list":
        return _token_list(tokens.all())
    if name is None:
        raise InvalidError("the token's name is required", hint=f"ricordo token {action} NAME")
    if action == "revoke":
        revoked = tokens.revoke(name)
        return Output(data=_public(revoked), show=lambda out: out.print(Text(f'Token "{name}" revoked.')))
    for note in await _new_names(ctx, name, [each.owner for each in tokens.all()]):
        ctx.notice(note)
    tokens.file.parent.mkdir(parents=True, exist_ok=True)
    fresh, secret = tokens.add(
        name,
        owner=ctx.owner,
        chat=ctx.chat,
        trust=checked_trust(trust),
        access=[each.strip() for each in access.split(",") if each.strip()],
    )

    def show(out: Console) -> None:
        out.print(Text(secret), soft_wrap=True)
        place = f"{fresh.owner} in {fresh.chat}" if fresh.chat else fresh.owner
        ctx.notice(f"A token for the memory of {place} in {ctx.location}. It is shown only once.")
        ctx.notice("Send it as `Authorization: Bearer TOKEN`.")
        if is_outside:
            role = "writer" if "write" in fresh.access else "reader"
            command = shlex.join(["ricordo", "space-member", str(ctx.chat), ctx.owner, role])
            ctx.notice(f"{ctx.chat} is a space, and {ctx.owner} is not a member of it: `{command}` changes that.")

    is_outside = await _is_outside(ctx)
    return Output(data={**_public(fresh), "token": secret}, show=show)


async def _new_names(ctx: CommandContext, token: str, owners: Sequence[str]) -> list[str]:
    """Return notes on an owner or a chat that the store does not know: the name may be mistyped. None if the store
    cannot be opened now.

    Args:
        owners: those who have a token.
    """
    notes: list[str] = []
    if not ctx.store_exists:
        return notes
    with suppress(RicordoError):
        async with ctx.open() as memory:
            known = {*owners, *(each.owner for each in await memory.store_view.owners())}
            chats = await memory.store_view.chats()
            for chat in chats:
                members = await memory.store_view.members(chat)
                known |= {each.owner for each in members if each.role != "none"}
        if known and ctx.owner not in known:
            notes.append(f"There is no memory and no token of {ctx.owner} yet.{meant(ctx.owner, known)}")
        if ctx.chat and ctx.chat not in chats:
            text = f"There is no chat, project or space {ctx.chat!r} yet.{meant(ctx.chat, chats)}"
            notes.append(f"{text} The token is valid for it once it exists; `ricordo token revoke {token}` revokes it.")
    return notes


async def _is_outside(ctx: CommandContext) -> bool:
    """Return whether the chat is a space without the owner; False if the store cannot be opened now."""
    if ctx.chat is None or not ctx.store_exists:
        return False
    with suppress(RicordoError):
        async with ctx.open() as memory:
            members = {each.owner: each.role for each in await memory.store_view.members(ctx.chat)}
            return bool(members) and members.get(ctx.owner, "none") == "none"
    return False


def _public(token: Token) -> dict[str, object]:
    return {name: value for name, value in token.plain().items() if name != "digest"}


def _token_list(tokens: list[Token]) -> Output:
    def show(out: Console) -> None:
        listed = table("token", "owner", "chat", "trust", "since", "access")
        for each in tokens:
            cells = each.name, each.owner, each.chat or "", each.trust, each.created_at[:10]
            listed.add_row(*(Text(safe(cell)) for cell in cells), ", ".join(sorted(each.access)))
        if tokens:
            out.print(listed)
        else:
            out.print("There are no tokens; `ricordo serve` creates the first.")

    return Output(data=[_public(each) for each in tokens], show=show)


# the configuration of MCP clients


def _client(client: ClientName | None, config_file: Path | None, *, name: str, profile: str) -> Client:
    from ricordo.interfaces.catalog import tools

    if client is None:
        raise InvalidError("`--client` is required", hint=f"--client {' | '.join(clients(Path(), {}))}")
    tools(profile)  # raises for an unknown profile
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidError(f"name: {name!r} may contain only letters, digits, - and _")
    known = clients(Path.home(), os.environ)[client]
    return known if config_file is None else replace(known, file=config_file.expanduser())


def start_of(ctx: CommandContext, *, chat: str | None, profile: str) -> Entry:
    """Return the command with which another program starts the MCP server of this store."""
    from ricordo.storage.registry import is_folder

    store = ctx.location
    if "://" not in store:
        path = Path(store).expanduser().resolve()
        store = f"{path}/" if is_folder(store) else str(path)
    return start_entry(store, owner=ctx.owner, chat=chat, profile=profile, embedder=ctx.options.embedder)


def _install(ctx: CommandContext, client: Client, entry: Entry, *, name: str, yes: bool, dry_run: bool) -> Output:
    """Show the change, ask for confirmation, and write it."""
    edit, ours = with_server(client, entry, name=name), server_text(client, entry, name=name)
    if edit.changes and not ctx.options.as_json:
        told = ctx.out if dry_run else ctx.err
        told.print(f"This is added to {edit.file}; everything else in it stays:\n", soft_wrap=True)
        told.print(Text(ours))
    writes = edit.changes and not dry_run and (yes or confirmed(ctx))
    backup = write_edit(edit, stamp=f"{datetime.now(UTC):%Y%m%d-%H%M%S}") if writes else None
    kept = str(backup) if backup else None
    data = {"client": client.name, "file": str(edit.file), "entry": ours, "written": writes, "backup": kept}

    def show(out: Console) -> None:
        if not edit.changes:
            out.print(f"{client.title} is already configured: {edit.file}", soft_wrap=True)
        elif not writes:
            out.print("Nothing was written.")
        else:
            out.print(Text.assemble(("Written: ", "green"), str(edit.file)), soft_wrap=True)
            if backup:
                out.print(dim(f"Backup of the old file: {backup}"), soft_wrap=True)
            out.print(dim(f"Restart {client.title} to use it."))

    return Output(data=data, show=show)


def confirmed(ctx: CommandContext) -> bool:
    """Ask the person at the terminal to confirm. Raises InvalidError if there is no terminal."""
    if not sys.stdin.isatty() or ctx.options.as_json:
        raise InvalidError("this needs a confirmation, and there is no terminal", hint="use --yes, or --dry-run")
    return click.confirm("Write it?", err=True)
