"""The verbs that look at memories in time: timeline, explain and undo."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.interfaces.cli import show_time
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.cli.keeping import MemoryId
from ricordo.interfaces.cli.recalling import AsOfOption, moment
from ricordo.interfaces.cli.screen import Answer, dim
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Commit


@verb("timeline", panel="Recall")
async def timeline(
    door: Door,
    entity: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what is linked to this person or thing.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from then on: 2026-03-01, last_week, '3 days ago'.")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Only before then.")] = None,
    as_of: AsOfOption = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most; the latest are shown.")] = 50,
) -> Answer:
    """Show what happened, day by day."""
    async with door.open() as memory:
        events = await memory.timeline(entity=entity, after=after, before=before, as_of=moment(as_of), limit=limit)

    def show(out: Console) -> None:
        show_time.timeline(out, events, zone=door.zone)
        if len(events) == limit:
            door.hint(f"There may be earlier ones: add --before {events[0].event_time.isoformat()}")

    return Answer(data={"events": events}, show=show)


@verb("explain", panel="Recall")
async def explain(door: Door, id: MemoryId, as_of: AsOfOption = None) -> Answer:
    """Show where a memory came from, what it replaced, and when it fades."""
    async with door.open() as memory:
        when = moment(as_of)
        why = await memory.explain(await whole_id(memory, id, as_of=when), as_of=when)
    return Answer(data=why, show=lambda out: show_time.explanation(out, why, zone=door.zone))


@verb("undo", panel="Look after")
async def undo(
    door: Door,
    change: Annotated[str, typer.Argument(metavar="CHANGE", help="Its number in `ricordo log`, or the id of a run.")],
    with_later: Annotated[
        bool, typer.Option("--with-later", metavar="", help="Take back later changes that build on it, too.")
    ] = False,
) -> Answer:
    """Take a change back. Undoing is a change itself, and can be undone."""
    async with door.open() as memory:
        commit = await memory.undo(change, with_later=with_later)
        await door.settle(memory)
    return Answer(data=commit, show=lambda out: _show_undone(out, change, commit))


def _show_undone(out: Console, change: str, commit: Commit) -> None:
    out.print(Text.assemble(("Undone: ", "green"), f"change {change}"))
    out.print(dim(f"`ricordo undo {commit.seq}` brings it back."))
