"""The verbs about what a model makes of memories beside whole conversations: extract, reflect, enrich, infer-causes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ricordo.errors import UnavailableError
from ricordo.ids import handle_of
from ricordo.interfaces.cli import show_runs
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, dim
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Run

if TYPE_CHECKING:
    from ricordo.memory import Memory

_PANEL = "Learn"

_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", metavar="", help="Ask the model, show what it would keep, change nothing.")
]


@verb("extract", panel=_PANEL)
async def extract(
    door: Door,
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="One conversation; all that wait when left out.")
    ] = None,
    dry_run: _DryRunOption = False,
) -> Answer:
    """Take from conversations that go on what was said since the last time."""
    return await _concluded(
        door, lambda memory: memory.extract(session, dry_run=dry_run), nothing="Nothing worth keeping was said since."
    )


@verb("reflect", panel=_PANEL)
async def reflect(
    door: Door,
    after: Annotated[str, typer.Option(metavar="TIME", help="Since when: a date, `last month`.")] = "7 days ago",
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Until when; until now when left out.")] = None,
    dry_run: _DryRunOption = False,
) -> Answer:
    """Look back on a span of time: what several memories show together."""
    return await _concluded(
        door,
        lambda memory: memory.reflect(after=after, before=before, dry_run=dry_run),
        nothing="There is nothing new to look back on.",
    )


@verb("enrich", panel=_PANEL)
async def enrich(door: Door, dry_run: _DryRunOption = False) -> Answer:
    """Sum up who is named often and has no summary yet."""
    return await _concluded(door, lambda memory: memory.enrich(dry_run=dry_run), nothing="Nobody waits for a summary.")


@verb("infer-causes", panel=_PANEL)
async def infer_causes(door: Door, dry_run: _DryRunOption = False) -> Answer:
    """Look for what led to what, where somebody said so."""
    return await _concluded(
        door, lambda memory: memory.infer_causes(dry_run=dry_run), nothing="Nobody has said why anything new is so."
    )


async def _concluded(door: Door, work: Callable[[Memory], Awaitable[Run]], *, nothing: str) -> Answer:
    door.must_exist()
    async with door.open(uses_model=True) as memory:
        with door.waiting("Asking the model…"):
            run = await work(memory)
        if run.state == "done":
            await door.settle(memory)
    status = UnavailableError.exit_status if run.state == "failed" else 0
    return Answer(data=run, show=lambda out: _show(out, run, nothing=nothing), exit_status=status)


def _show(out: Console, run: Run, *, nothing: str) -> None:
    if not run.items:
        out.print(nothing)
        return
    show_runs.items(out, run.items)
    if run.state in ("done", "dry"):
        out.print(dim(show_runs.cost(run)))
    if run.state == "done":
        out.print(dim(f"`ricordo run undo {handle_of(run.id)}` takes it back."))
    elif run.state == "dry":
        out.print(dim("This was a dry run: nothing is changed."))
