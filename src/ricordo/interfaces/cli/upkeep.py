"""The verbs for the store as a whole: figures, the log and check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.errors import StoreError
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.progress import progress_bar
from ricordo.interfaces.cli.screen import Answer, one_line, shown
from ricordo.interfaces.cli.show_nodes import minute, plain_table
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Commit, Report, Stats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PANEL = "Look after"


@verb("stats", panel=_PANEL)
async def stats(door: Door) -> Answer:
    """Count what the memory holds."""
    async with door.open() as memory:
        figures = await memory.stats()
    return Answer(data=figures, show=lambda out: _show_stats(out, figures, where=door.location, zone=door.zone))


def _show_stats(out: Console, figures: Stats, *, where: str, zone: ZoneInfo) -> None:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    span = f"{minute(figures.oldest, zone)} to {minute(figures.newest, zone)}" if figures.oldest else ""
    waiting = f", {figures.embedding_missing:,} wait" if figures.embedding_missing else ""
    by_meaning = f"{figures.embedded:,} with {figures.embedder}{waiting}" if figures.embedder else "no, by words only"
    if figures.next_embedder:
        by_meaning += f"; {figures.next_embedded:,} so far with {figures.next_embedder}, which comes next"
    for name, value in (
        ("store", f"{where}, {figures.size_mb:.1f} MB"),
        ("memories", _counted(figures.nodes) or "none"),
        ("categories", _counted(figures.categories)),
        ("in the archive", f"{figures.closed:,}"),
        ("from", span),
        ("conversations", _conversations(figures, zone)),
        ("people and things", f"{figures.entities:,}"),
        ("links", _links(figures)),
        ("last faded", minute(figures.last_decay, zone)),
        ("found by meaning", by_meaning),
        ("changes", f"{figures.commits:,}"),
    ):
        if value:
            lines.add_row(name, Text(shown(value)))
    out.print(lines)


def _conversations(figures: Stats, zone: ZoneInfo) -> str:
    waiting = f", {figures.sessions_waiting:,} wait to become knowledge" if figures.sessions_waiting else ""
    last = f", the last one did {minute(figures.last_consolidation, zone)}" if figures.last_consolidation else ""
    return f"{figures.sessions:,}{waiting}{last}"


def _links(figures: Stats) -> str:
    alone = f"; {figures.orphans:,} memories linked to nothing" if figures.orphans else ""
    each = f", {figures.edges_per_node:.1f} a memory" if figures.edges else ""
    return f"{_counted(figures.edges) or 'none'}{each}{alone}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


@verb("log", panel=_PANEL)
async def log(
    door: Door, limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 20
) -> Answer:
    """Show the latest changes, newest first."""
    async with door.open() as memory:
        commits = await memory.log(limit)
    return Answer(data={"commits": commits}, show=lambda out: _show_log(out, commits, zone=door.zone))


def _show_log(out: Console, commits: Sequence[Commit], *, zone: ZoneInfo) -> None:
    if not commits:
        out.print("Nothing was changed yet.")
        return
    lines = plain_table("change", "when", "by", "what")
    for commit in commits:
        said = "" if commit.reason == commit.origin else f": {commit.reason}"
        who, what = one_line(commit.actor, most=30), one_line(commit.origin + said)
        lines.add_row(str(commit.seq), minute(commit.at, zone), Text(who), Text(what))
    out.print(lines)


@verb("doctor", panel=_PANEL)
async def doctor(
    door: Door,
    fix: Annotated[bool, typer.Option("--fix", metavar="", help="Do what is safe; nothing is deleted.")] = False,
) -> Answer:
    """Look for damage. Changes nothing without --fix; the exit status is 7 where something is wrong."""
    door.must_exist()
    async with door.open() as memory:
        with door.waiting("Looking…"):
            report = await memory.doctor(fix=fix)
    return Answer(
        data={"ok": report.ok, "findings": report.findings},
        show=lambda out: _show_doctor(out, report),
        exit_status=0 if report.ok else StoreError.exit_status,
    )


@verb("rebuild-index", panel=_PANEL)
async def rebuild_index(door: Door) -> Answer:
    """Make the index of a folder anew from its files."""
    door.must_exist()
    async with door.open() as memory:
        with progress_bar(door.err, "Reading") as progress:
            lines = await memory.rebuild_index(progress=progress)
    return Answer(data={"lines": lines}, show=lambda out: out.print(f"The index was made anew from {lines:,} lines."))


@verb("migrate", panel=_PANEL)
async def migrate(
    door: Door, path: Annotated[str, typer.Argument(help="A folder, which ends in a slash, or a file.")]
) -> Answer:
    """Copy the store to a folder of plain text files, or back to a single file."""
    door.must_exist()
    async with door.open() as memory:
        with door.waiting("Copying…"):
            await memory.migrate(path)
    return Answer(
        data={"path": path},
        show=lambda out: out.print(
            Text(f"Copied to {shown(path)}. {shown(door.location)} stays as it was."), soft_wrap=True
        ),
    )


def _show_doctor(out: Console, report: Report) -> None:
    show_findings(out, report)
    out.print()
    out.print("All is well." if report.ok else "Something is wrong; copy the store aside before you repair it.")


def show_findings(out: Console, report: Report) -> None:
    """What was looked at, a line each, with a remedy where it is not well."""
    lines = Table.grid(padding=(0, 2))
    for finding in report.findings:
        mark = Text("ok", style="green") if finding.ok else Text("NOT WELL", style="bold red")
        remedy = f"\n{finding.remedy}" if finding.remedy else ""
        lines.add_row(mark, finding.check, Text(shown(finding.detail + remedy), style="dim" if finding.ok else ""))
    out.print(lines)
