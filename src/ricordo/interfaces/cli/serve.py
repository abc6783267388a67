"""Commands that connect other programs: mcp, serve and token; and the configuration of MCP clients."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
import urllib.request
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast

import click
from rich.console import Console
from rich.text import Text

from ricordo.errors import ConflictError, InvalidError, UnavailableError
from ricordo.interfaces.call import EVERY_ACCESS, PROPOSING, Caller, StoreConfig
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.projects import is_private, project_of
from ricordo.interfaces.cli.terminal import Output, dim
from ricordo.interfaces.http.tokens import Token, Tokens, checked_trust, tokens_file, write_private

ClientName = Literal["claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "gemini", "codex"]
Format = Literal["json", "toml"]
Entry = Mapping[str, Any]
"""How a client starts our server: `command`, `args` and, if needed, `env`."""


def _config(ctx: CommandContext) -> StoreConfig:
    return StoreConfig(location=ctx.location, embedder=ctx.embedder, model=ctx.model, settings=ctx.settings())


# servers


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
    if action == "install":
        options = [option for option, is_set in (("--propose", propose), ("--project", project)) if is_set]
        plan = _plan(ctx, client, config_file, name=name, profile=profile, options=options)
        return _install(ctx, plan, yes=yes, dry_run=dry_run)
    try:
        from ricordo.interfaces.mcp import serve_stdio
    except ImportError as error:
        hint = 'pip install "ricordo[mcp]"'
        raise UnavailableError("MCP needs a package that is not installed", hint=hint) from error
    if sys.stdin.isatty():
        raise InvalidError(
            "`ricordo mcp` answers a program such as Claude on standard input, and this is a terminal",
            hint="to connect one: `ricordo mcp install --client claude-desktop` (or claude-code, cursor, vscode, "
            "windsurf, gemini, codex); it then starts `ricordo mcp` itself",
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

    show = link_shower(ctx, no_browser=no_browser)
    if (link := await asyncio.to_thread(_link_of_running, ctx, port)) is not None:
        show(link)
        return Output(data={"link": link}, show=lambda out: None)
    await serve_page(ctx, _config(ctx), show, port=port)
    return Output(data=None, show=lambda out: None)


def link_shower(ctx: CommandContext, *, no_browser: bool) -> Callable[[str], None]:
    """Return a function that prints a link and opens it in a browser, if there is a screen."""

    def show(link: str) -> None:
        ctx.err.print(Text(f"The page, by a link that works once: {link}"), soft_wrap=True)
        if not no_browser and _has_screen():
            webbrowser.open(link)

    return show


async def serve_page(ctx: CommandContext, config: StoreConfig, show: Callable[[str], None], *, port: int) -> None:
    """Serve the page until the process is stopped, on any free port if another program has this one."""
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
    """Return a link of the server that runs with the owner's first token, if there is one."""
    try:
        secret = tokens_file(ctx.location).with_suffix("").with_suffix(".token").read_text(encoding="utf-8").strip()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/page/link", method="POST", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(asked, timeout=3) as answer:
            found = json.load(answer)
    except (OSError, ValueError, InvalidError):  # no such file, no server, another program's
        return None
    is_ours = isinstance(found, dict) and (found.get("owner"), found.get("chat")) == (ctx.owner, ctx.chat)
    return f"http://127.0.0.1:{port}{found['path']}" if is_ours else None


def _has_screen() -> bool:
    """Return whether a browser would open in a window of its own rather than in this terminal."""
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

    return Output(data={**_public(fresh), "token": secret}, show=show)


def _public(token: Token) -> dict[str, object]:
    return {name: value for name, value in token.plain().items() if name != "digest"}


def _token_list(tokens: list[Token]) -> Output:
    def show(out: Console) -> None:
        for each in tokens:
            owner = each.owner + (f" in {each.chat}" if each.chat else "")
            out.print(Text(f"{each.name}: {owner}; {', '.join(sorted(each.access))}; trust {each.trust}"))
        if not tokens:
            out.print("There are no tokens; `ricordo serve` creates the first.")

    return Output(data=[_public(each) for each in tokens], show=show)


# the configuration of MCP clients


def _plan(
    ctx: CommandContext,
    client: ClientName | None,
    config_file: Path | None,
    *,
    name: str,
    profile: str,
    options: Sequence[str],
) -> Plan:
    from ricordo.interfaces.catalog import tools
    from ricordo.storage.registry import is_folder

    if client is None:
        raise InvalidError("`--client` is required", hint=f"--client {' | '.join(clients(Path(), {}))}")
    tools(profile)  # raises for an unknown one
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidError(f"name: {name!r} may contain only letters, digits, - and _")
    known = clients(Path.home(), os.environ)[client]
    known = known if config_file is None else replace(known, file=config_file.expanduser())
    path = Path(ctx.location).expanduser().resolve()
    store = f"{path}/" if is_folder(ctx.location) else path
    entry = start_entry(store, owner=ctx.owner, chat=ctx.chat, profile=profile, embedder=ctx.options.embedder)
    return make_plan(known, {**entry, "args": [*entry["args"], *options]}, name=name)


def _install(ctx: CommandContext, plan: Plan, *, yes: bool, dry_run: bool) -> Output:
    """Show the change, ask, write it."""
    client, file = plan.client, plan.client.file
    if plan.changes and not ctx.options.as_json:
        ctx.err.print(f"This is added to {file}; everything else in it stays:\n")
        ctx.err.print(Text(plan.ours))
    writes = plan.changes and not dry_run and (yes or confirmed(ctx))
    backup = write_plan(plan, stamp=f"{datetime.now(UTC):%Y%m%d-%H%M%S}") if writes else None
    kept = str(backup) if backup else None
    data = {"client": client.name, "file": str(file), "entry": plan.ours, "written": writes, "backup": kept}

    def show(out: Console) -> None:
        if not plan.changes:
            out.print(f"{client.title} is already configured: {file}", soft_wrap=True)
        elif not writes:
            out.print("Nothing was written.")
        else:
            out.print(Text.assemble(("Written: ", "green"), str(file)), soft_wrap=True)
            if backup:
                out.print(dim(f"Backup of the old file: {backup}"), soft_wrap=True)
            out.print(dim(f"Restart {client.title} to use it."))

    return Output(data=data, show=show)


def confirmed(ctx: CommandContext) -> bool:
    """Ask the person at the terminal. Raises InvalidError without one."""
    if not sys.stdin.isatty() or ctx.options.as_json:
        raise InvalidError("this needs a confirmation, and there is no terminal", hint="use --yes, or --dry-run")
    return click.confirm("Write it?", err=True)


# the files of MCP clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that starts MCP servers.

    Attributes:
        file: Its configuration.
        member: The object in it that holds the servers.
        has_type: Whether each entry has a "type", which is "stdio".
    """

    name: ClientName
    title: str
    file: Path
    member: str = "mcpServers"
    format: Format = "json"
    has_type: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an installation writes: the whole new text, and the part that is ours."""

    client: Client
    before: str | None
    after: str
    ours: str

    @property
    def changes(self) -> bool:
        return self.before != self.after


def clients(home: Path, environment: Mapping[str, str], platform: str = sys.platform) -> dict[str, Client]:
    """Return every supported client, by name."""
    settings = _settings_folder(home, environment, platform)
    tables = tomllib.loads((files("ricordo.interfaces.cli") / "clients.toml").read_text(encoding="utf-8"))
    folders = {"home": home, "settings": settings}
    return {
        name: Client(name=cast(ClientName, name), **{**table, "file": Path(table["file"].format(**folders))})
        for name, table in tables.items()
    }


def _settings_folder(home: Path, environment: Mapping[str, str], platform: str) -> Path:
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData/Roaming")
    if platform == "darwin":
        return home / "Library/Application Support"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config")


def start_entry(
    store: Path | str, *, owner: str, chat: str | None, profile: str, embedder: str | None
) -> dict[str, Any]:
    """Return how to start a server for this store. Clients know neither our folder nor our environment."""
    script = Path(sys.executable).with_name("ricordo.exe" if os.name == "nt" else "ricordo")
    command, first = (str(script), ()) if script.exists() else (sys.executable, ("-m", "ricordo"))
    args = [*first, "mcp", "--store", str(store)]
    args += ["--owner", owner] if owner != "me" else []
    args += ["--chat", chat] if chat else []
    args += ["--profile", profile] if profile != "core" else []
    env = {"env": {"RICORDO_EMBEDDER": embedder}} if embedder else {}
    return {"command": command, "args": args, **env}


def make_plan(client: Client, entry: Entry, *, name: str) -> Plan:
    """Plan the client's file with our entry in it; everything else stays as it is.

    Raises:
        InvalidError: The file cannot be parsed.
        ConflictError: The entry exists already, and a file of this format cannot be rewritten in place.
    """
    before = read_text(client.file)
    if client.format == "toml":
        return _toml_plan(client, entry, before, name=name)
    given = {**({"type": "stdio"} if client.has_type else {}), **entry}
    whole = _object(client, before)
    servers = whole.setdefault(client.member, {})
    if not isinstance(servers, dict):
        raise InvalidError(f"{client.file}: {client.member!r} is not an object", hint="repair it by hand first")
    servers[name] = given
    ours = _json({client.member: {name: given}})
    same = before is not None and _object(client, before) == whole
    return Plan(client=client, before=before, after=before if same and before else _json(whole), ours=ours)


def _toml_plan(client: Client, entry: Entry, before: str | None, *, name: str) -> Plan:
    ours = toml_entry(client.member, name, entry)
    if before is not None:
        try:
            known = tomllib.loads(before).get(client.member, {})
        except tomllib.TOMLDecodeError as error:
            raise InvalidError(f"{client.file} is not valid TOML: {error}", hint="repair it by hand first") from error
        if name in known and known[name] == tomllib.loads(ours)[client.member][name]:
            return Plan(client=client, before=before, after=before, ours=ours)
        if name in known:
            raise ConflictError(
                f"{client.file} has an entry {name!r} already", hint="edit it by hand, or choose another --name"
            )
    return Plan(client=client, before=before, after=appended(before, ours), ours=ours)


def toml_entry(member: str, name: str, entry: Entry) -> str:
    """Return the TOML table of a server."""
    # A TOML string and a list of them are written as in JSON.
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items() if key != "env"]
    lines += [f"env = {{ {key} = {json.dumps(value)} }}" for key, value in entry.get("env", {}).items()]
    return "\n".join([f"[{member}.{name}]", *lines]) + "\n"


def appended(text: str | None, ours: str) -> str:
    """Return a text with a paragraph at its end."""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return (text or "") + gap + ours


def read_text(file: Path) -> str | None:
    """Return the text of a file; None if there is none."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"{file} cannot be read: {error}") from error


def _object(client: Client, text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        hint = "it may contain comments: add the lines by hand"
        raise InvalidError(f"{client.file} is not plain JSON: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise InvalidError(f"{client.file} is not a JSON object", hint="repair it by hand first")
    return found


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_plan(plan: Plan, *, stamp: str) -> Path | None:
    """Write the new text as `write_text` does."""
    return write_text(plan.client.file, plan.before, plan.after, stamp=stamp)


def write_text(file: Path, before: str | None, after: str | None, *, stamp: str) -> Path | None:
    """Write a new text, whole or not at all, or delete the file; return the backup of the old one, if there was one.

    Args:
        before: The text that was read; None if there was no file.
        after: None deletes the file.
        stamp: A time for the name of the backup.

    Raises:
        ConflictError: The file has changed since it was read.
        InvalidError: It cannot be written.
    """
    file = file.resolve()  # keep a symbolic link
    if read_text(file) != before:
        raise ConflictError(f"{file} has just been changed by another program", hint="try again")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        copy = None
        if before is not None:
            copy = file.with_name(f"{file.name}.before-ricordo-{stamp}")
            _write_like(copy, before, like=file)
        if after is None:
            file.unlink(missing_ok=True)
            return copy
        fresh = file.with_name(f".{file.name}.ricordo-{os.getpid()}")
        _write_like(fresh, after, like=file)
        fresh.replace(file)
    except OSError as error:
        raise InvalidError(f"{file} cannot be written: {error.strerror}") from error
    return copy


def _write_like(file: Path, text: str, *, like: Path) -> None:
    """Write a new file with the permissions of another, or readable by its owner only: such files hold keys."""
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o600
    write_private(file, text)
    file.chmod(mode)
