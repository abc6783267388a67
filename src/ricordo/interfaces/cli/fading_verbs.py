"""The verbs about what ends: weak, gc, prune, maintain, and the archive."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ricordo.errors import RicordoError
from ricordo.interfaces.cli import show_fading
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.progress import progress_bar
from ricordo.interfaces.cli.screen import Answer
from ricordo.interfaces.cli.verb import verb
from ricordo.model import ArchiveReport, ClosedReason

_PANEL = "Look after"

_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", metavar="", help="Say what would go to the archive, and leave it.")
]
_AllOwnersOption = Annotated[
    bool, typer.Option("--all-owners", metavar="", help="Everybody's memories in the store, not only one's own.")
]


@verb("weak", panel="Recall")
async def weak(door: Door, limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 20) -> Answer:
    """List what is unsure, or will fade or end soon; what goes first stands first."""
    async with door.open() as memory:
        found = await memory.weak(limit)
    return Answer(data={"weak": found}, show=lambda out: show_fading.weak(out, found, hint=door.hint))


@verb("gc", panel=_PANEL)
async def gc(door: Door, dry_run: _DryRunOption = False, all_owners: _AllOwnersOption = False) -> Answer:
    """Take to the archive what is over: expired, faded, past its time."""
    return await _upkeep(door, "gc", dry_run=dry_run, all_owners=all_owners)


@verb("prune", panel=_PANEL)
async def prune(door: Door, dry_run: _DryRunOption = False, all_owners: _AllOwnersOption = False) -> Answer:
    """Make room where more is known than `max_size` allows."""
    return await _upkeep(door, "prune", dry_run=dry_run, all_owners=all_owners)


async def _upkeep(door: Door, name: str, **how: bool) -> Answer:
    door.must_exist()
    async with door.open() as memory:
        with progress_bar(door.err, "To the archive") as progress:
            report: ArchiveReport = await getattr(memory, name)(**how, progress=progress)
    return Answer(data=report, show=lambda out: show_fading.report(out, report, hint=door.hint))


@verb("maintain", panel=_PANEL)
async def maintain(door: Door, dry_run: _DryRunOption = False, all_owners: _AllOwnersOption = False) -> Answer:
    """Do a night's work: consolidate, gc, prune, tidy up. The exit status is 1 where a step failed."""
    door.must_exist()
    async with door.open() as memory:
        with progress_bar(door.err, "To the archive") as progress:
            report = await memory.maintain(dry_run=dry_run, all_owners=all_owners, progress=progress)
    return Answer(
        data={"ok": report.ok, **_plain(report)},
        show=lambda out: show_fading.steps(out, report),
        exit_status=0 if report.ok else RicordoError.exit_status,
    )


def _plain(report: Any) -> dict[str, object]:
    return {"steps": report.steps, "dry_run": report.dry_run}


@verb("archive", panel="Recall")
async def archive(
    door: Door,
    question: Annotated[str | None, typer.Argument(help="Search it, in your own words; else it is listed.")] = None,
    reason: Annotated[
        ClosedReason | None,
        typer.Option(metavar="NAME", help="Only what was forgotten, expired, decayed, superseded, ..."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 20,
) -> Answer:
    """Look into the archive: what ended, when and why. The latest stands first."""
    async with door.open() as memory:
        if question is not None:
            results = await memory.search(question, archived=True, limit=limit)
            found = [await memory.get(hit.id) for hit in results.hits]
            kept = [node for node in found if reason in (None, node.closed_reason)]
            return Answer(
                data={"nodes": kept}, show=lambda out: show_fading.archive(out, kept, zone=door.zone, hint=door.hint)
            )
        listed = await memory.archive(limit, reason=reason)
    return Answer(
        data=listed,
        show=lambda out: show_fading.archive(out, listed.nodes, zone=door.zone, hint=door.hint, counts=listed.counts),
    )
