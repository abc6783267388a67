"""The verb that removes for good: it shows what would go, asks, and shows what went."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError
from ricordo.ids import handle_of
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.cli.progress import progress_bar
from ricordo.interfaces.cli.screen import Answer, dim, one_line, shown
from ricordo.interfaces.cli.show_nodes import plain_table
from ricordo.interfaces.cli.verb import verb
from ricordo.model import ErasureReport

_SHOWN_IDS = 4


@verb("erase", panel="Keep")
async def erase(
    door: Door,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A memory: its id, or the last 8 characters of it.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="A conversation, with all learnt in it.")] = None,
    entity: Annotated[str | None, typer.Option(metavar="NAME", help="Somebody, with all that names them.")] = None,
    everything: Annotated[
        bool, typer.Option("--everything", metavar="", help="The whole memory of the owner.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Show what would go, remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", metavar="", help="Do not ask. For programs.")] = False,
) -> Answer:
    """Remove for good: no byte is left in the store. Cannot be undone."""
    door.must_exist()
    async with door.open() as memory:
        whole = None if id is None else await whole_id(memory, id)
        owner = memory.scope.owner if everything else None
        if dry_run or not yes:
            report = await memory.erase(id=whole, session=session, entity=entity, owner=owner, dry_run=True)
            if dry_run:
                return Answer(data=report, show=lambda out: _show(out, report))
            _confirm(door, report)
        with progress_bar(door.err, "Erasing") as progress:
            report = await memory.erase(id=whole, session=session, entity=entity, owner=owner, progress=progress)
    return Answer(data=report, show=lambda out: _show(out, report))


def _confirm(door: Door, report: ErasureReport) -> None:
    """Raises:
    InvalidError: nobody is there to be asked.
    typer.Abort: they said no.
    """
    if door.given.as_json or not (sys.stdin.isatty() and door.err.is_terminal):
        raise InvalidError("erase: nobody is here to say yes", hint="say --yes, or --dry-run to see what would go")
    _show(door.err, report)
    typer.confirm("Remove this for good?", abort=True, err=True)


def _show(out: Console, report: ErasureReport) -> None:
    if not report.erased:
        out.print("There is nothing to erase.")
        return
    table = plain_table("what", "how many", "which")
    for each in report.erased:
        table.add_row(each.kind, f"{each.count:,}", _named(each.ids, each.count))
    out.print(Text("Would be erased:" if report.dry_run else "Erased:", style="bold"))
    out.print(table)
    for kept in report.kept:
        out.print(Text.assemble(("Kept: ", "yellow"), f"{kept.count:,}, {kept.why}  ", _named(kept.ids, kept.count)))
    out.print(dim("Out of reach: " + "; ".join(map(shown, report.out_of_reach)) + "."))
    if not report.dry_run and report.is_done:
        out.print(Text("No byte of it is left in the store's files.", style="green"))
    elif not report.dry_run:
        out.print(Text("It is in no answer any more, but not all bytes are gone yet: see above.", style="yellow"))


def _named(ids: tuple[str, ...], count: int) -> Text:
    named = [one_line(handle_of(each) if len(each) == 36 else each, most=30) for each in ids[:_SHOWN_IDS]]
    return dim(", ".join(named) + (", …" if count > len(named) and named else ""))
