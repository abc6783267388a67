"""The verbs that let other programs in: mcp, serve, token."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError
from ricordo.interfaces.call import Place
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, dim
from ricordo.interfaces.cli.verb import verb
from ricordo.interfaces.http.tokens import Token, checked_trust
from ricordo.interfaces.mcp.clients import ClientName, Plan, clients, planned, starting, write
from ricordo.interfaces.mcp.fast_start import bound_caller

_PANEL = "Let programs in"

ProfileOption = Annotated[
    str, typer.Option(metavar="NAME", help="The tools: core, full, keywords, connector, or names with commas between.")
]


@verb("mcp", panel=_PANEL)
async def mcp(
    door: Door,
    action: Annotated[
        Literal["serve", "install"],
        typer.Argument(metavar="[serve|install]", help="Answer a client, or put the memory into a client's settings."),
    ] = "serve",
    profile: ProfileOption = "core",
    client: Annotated[
        ClientName | None,
        typer.Option(
            metavar="NAME", help="install: claude-desktop, claude-code, cursor, vscode, windsurf, gemini or codex."
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="install: what the client calls it.")] = "ricordo",
    config_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="install: another file than the client's usual one.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="install: write without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="install: show what would be written.")] = False,
) -> Answer:
    """Serve an agent over MCP on standard input and output; `mcp install` sets a client up to do so."""
    if action == "install":
        return _install(door, _plan(door, client, config_file, name=name, profile=profile), yes=yes, dry_run=dry_run)
    from ricordo.interfaces.mcp.stdio import serve

    caller = bound_caller(door.given.owner, door.given.chat)
    await serve(_place(door), caller=caller, profile=profile)
    return Answer(data=None, show=lambda out: None)


def _place(door: Door) -> Place:
    return Place(location=door.location, embedder=door.embedder, model=door.model, settings=door.settings())


@verb("serve", panel=_PANEL)
async def serve(
    door: Door,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0: any free one; -1: the socket alone.")] = 7411,
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A Unix socket, too; whoever can open it needs no token.")
    ] = None,
    profile: ProfileOption = "core",
    rate: Annotated[float, typer.Option(metavar="N", help="Requests a second of one caller.")] = 100.0,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another Host that is served. Repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A web page's Origin that may call. Repeatable.")
    ] = None,
) -> Answer:
    """Serve REST, JSON-RPC and MCP over HTTP, on this machine unless told otherwise."""
    from ricordo.interfaces.http.serve import Address, Terms, serve

    if not -1 <= port <= 65_535:
        raise InvalidError("port must be from -1 to 65,535")
    address = Address(host=host, port=None if port < 0 else port, socket_path=socket)
    terms = Terms(
        hosts=frozenset(each.lower() for each in allow_host or ()),
        rate=max(1.0, rate),
        profile=profile,
        origins=frozenset(each.lower() for each in allow_origin or ()),
    )
    caller = replace(bound_caller(door.given.owner, door.given.chat), trust="user", name="socket")
    await serve(
        _place(door),
        caller=caller,
        address=address,
        terms=terms,
        ready=lambda text: door.err.print(Text(text), soft_wrap=True),
    )
    return Answer(data=None, show=lambda out: None)


@verb("token", panel=_PANEL)
async def token(
    door: Door,
    action: Annotated[Literal["add", "list", "revoke"], typer.Argument(metavar="ACTION", help="add, list or revoke.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What the token is called.")] = None,
    access: Annotated[
        str, typer.Option(metavar="LIST", help="add: read, write, admin, erase, with commas between.")
    ] = "read,write",
    trust: Annotated[
        str, typer.Option(metavar="WHO", help="add: whose words its texts are: user, agent, tool or web.")
    ] = "user",
) -> Answer:
    """Say who may come in over HTTP, as whom (--owner, --chat), and what they may do."""
    from ricordo.interfaces.http.tokens import Tokens, tokens_file

    tokens = Tokens(tokens_file(door.location))
    if action == "list":
        return _tokens_answer(tokens.all())
    if name is None:
        raise InvalidError("name: which token is not said", hint=f"ricordo token {action} NAME")
    if action == "revoke":
        gone = tokens.revoke(name)
        return Answer(data=_public(gone), show=lambda out: out.print(Text(f"{name} is shut out.")))
    caller = bound_caller(door.given.owner, door.given.chat)
    tokens.file.parent.mkdir(parents=True, exist_ok=True)
    fresh, secret = tokens.add(
        name,
        owner=caller.owner,
        chat=caller.chat,
        trust=checked_trust(trust),
        access=[each.strip() for each in access.split(",") if each.strip()],
    )

    def show(out: Console) -> None:
        out.print(Text(secret), soft_wrap=True)
        door.notice("It is shown only now. Send it as `Authorization: Bearer TOKEN`.")

    return Answer(data={**_public(fresh), "token": secret}, show=show)


def _public(token: Token) -> dict[str, object]:
    return {
        "name": token.name,
        "owner": token.owner,
        "chat": token.chat,
        "trust": token.trust,
        "access": sorted(token.access),
        "created_at": token.created_at,
    }


def _tokens_answer(tokens: list[Token]) -> Answer:
    def show(out: Console) -> None:
        for each in tokens:
            whose = each.owner + (f" in {each.chat}" if each.chat else "")
            out.print(Text(f"{each.name}: {whose}; {', '.join(sorted(each.access))}; trust {each.trust}"))
        if not tokens:
            out.print("There is none; `ricordo serve` makes the first.")

    return Answer(data=[_public(each) for each in tokens], show=show)


def _plan(door: Door, client: ClientName | None, config_file: Path | None, *, name: str, profile: str) -> Plan:
    from ricordo.interfaces.catalog import tools
    from ricordo.storage.registry import is_folder

    if client is None:
        raise InvalidError("client: which one is not said", hint=f"--client {' | '.join(clients(Path(), {}))}")
    tools(profile)  # refuses what there is not
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidError(f"name: {name!r} is not made of letters, digits, - and _")
    known = clients(Path.home(), os.environ)[client]
    known = known if config_file is None else replace(known, file=config_file.expanduser())
    caller = bound_caller(door.given.owner, door.given.chat)
    path = Path(door.location).expanduser().resolve()
    store = f"{path}/" if is_folder(door.location) else path
    entry = starting(store, owner=caller.owner, chat=caller.chat, profile=profile, embedder=door.given.embedder)
    return planned(known, entry, name=name)


def _install(door: Door, plan: Plan, *, yes: bool, dry_run: bool) -> Answer:
    """Show it, ask, write it."""
    file = plan.client.file
    if plan.changes and not door.given.as_json:
        door.err.print(f"{plan.client.title} reads {file}. This goes into it, and all else in it stays:\n")
        door.err.print(Text(plan.ours))
    may = plan.changes and not dry_run and (yes or _agreed(door))
    copy = write(plan, stamp=f"{datetime.now(UTC):%Y%m%d-%H%M%S}") if may else None
    data = {
        "client": plan.client.name,
        "file": str(file),
        "entry": plan.ours,
        "written": may,
        "backup": str(copy) if copy else None,
    }

    def show(out: Console) -> None:
        if not plan.changes:
            out.print(f"{plan.client.title} is set up like this already: {file}", soft_wrap=True)
        elif not may:
            out.print("Nothing was written.")
        else:
            out.print(Text.assemble(("Written: ", "green"), str(file)), soft_wrap=True)
            if copy:
                out.print(dim(f"The file as it was: {copy}"), soft_wrap=True)
            out.print(dim(f"Start {plan.client.title} anew to use it."))

    return Answer(data=data, show=show)


def _agreed(door: Door) -> bool:
    if not sys.stdin.isatty() or door.given.as_json:
        raise InvalidError("nobody can be asked whether to write this", hint="say --yes, or --dry-run to look only")
    return typer.confirm("Write it?", err=True)
