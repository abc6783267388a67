"""The verbs that let other programs in: mcp."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from ricordo.doors.cli.door import Door
from ricordo.doors.cli.screen import Answer, dim
from ricordo.doors.cli.verb import verb
from ricordo.doors.mcp.clients import ClientName, Plan, clients, planned, starting, write
from ricordo.doors.mcp.quick import bound_caller
from ricordo.errors import InvalidError

_PANEL = "Let programs in"

ProfileOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="The tools: core, full, keywords, connector, or names with commas between."),
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
            metavar="NAME",
            help="install: claude-desktop, claude-code, cursor, vscode, windsurf, gemini or codex.",
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
    from ricordo.doors.mcp.stdio import serve

    caller = bound_caller(door.given.owner, door.given.chat)
    await serve(door.location, embedder=door.embedder, settings=door.settings(), caller=caller, profile=profile)
    return Answer(data=None, show=lambda out: None)


def _plan(door: Door, client: ClientName | None, config_file: Path | None, *, name: str, profile: str) -> Plan:
    from dataclasses import replace

    from ricordo.catalog import tools

    if client is None:
        raise InvalidError("client: which one is not said", hint=f"--client {' | '.join(clients(Path(), {}))}")
    tools(profile)  # refuses what there is not
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidError(f"name: {name!r} is not made of letters, digits, - and _")
    known = clients(Path.home(), os.environ)[client]
    known = known if config_file is None else replace(known, file=config_file.expanduser())
    caller = bound_caller(door.given.owner, door.given.chat)
    store = Path(door.location).expanduser().resolve()
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
    data = {"client": plan.client.name, "file": str(file), "entry": plan.ours, "written": may,
            "backup": str(copy) if copy else None}  # fmt: skip

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
