"""The verbs for coming from elsewhere and for leaving."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.progress import embedded, progress_bar
from ricordo.interfaces.cli.screen import Answer, dim, one_line, shown
from ricordo.interfaces.cli.verb import verb
from ricordo.model import ExportReport, ImportReport
from ricordo.portability.format_names import IMPORTED

_PANEL = "Look after"


@verb("import", panel=_PANEL)
async def import_(
    door: Door,
    path: Annotated[Path, typer.Argument(help="A file, or a folder for formats of several files.")],
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"{', '.join(IMPORTED)}. [default: told from the content]")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Read and check, record nothing.")] = False,
) -> Answer:
    """Bring in what another memory or a chat left. The same again adds nothing."""
    try:
        async with door.open(makes=not dry_run) as memory:
            with progress_bar(door.err, "Reading") as progress:
                report = await memory.import_(path, format=format, dry_run=dry_run, progress=progress)
            if not dry_run:
                await embedded(door.err, memory)
    except asyncio.CancelledError:
        door.notice("Stopped. What was read so far is kept; the same command again goes on from there.")
        raise
    return Answer(data=report, show=lambda out: _show_import(out, report, dry_run=dry_run))


@verb("export", panel=_PANEL)
async def export(
    door: Door,
    path: Annotated[Path, typer.Argument(help="A new file; for markdown a new folder, or a name that ends in .md.")],
    format: Annotated[
        str, typer.Option(metavar="NAME", help="jsonl: everything; markdown: to read; mcp: for its reference server.")
    ] = "jsonl",
) -> Answer:
    """Take your memory along: everything, or what holds now in a form for others."""
    door.must_exist()
    async with door.open() as memory:
        with progress_bar(door.err, "Writing") as progress:
            report = await memory.export(path, format=format, progress=progress)
    return Answer(data=report, show=lambda out: _show_export(out, report))


def _show_export(out: Console, report: ExportReport) -> None:
    size = f"{report.bytes / 1e6:.1f} MB" if report.bytes >= 1e6 else f"{report.bytes / 1e3:.1f} kB"
    out.print(Text(f"Written to {shown(report.path)}, {size}."), soft_wrap=True)
    lines = Table.grid(padding=(0, 2))
    for name, count in (
        ("facts", report.facts),
        ("messages", report.messages),
        ("in the archive", report.closed),
        ("people and things", report.people),
        ("relations", report.relations),
        ("changes", report.commits),
    ):
        if count:
            lines.add_row(Text(f"{count:>9,}"), Text(name, style="dim"))
    out.print(lines)


def _show_import(out: Console, report: ImportReport, *, dry_run: bool) -> None:
    fresh = report.read - report.known if dry_run else report.added
    done = "would be added" if dry_run else "added"
    known = f", {report.known:,} known already" if report.known else ""
    kind = ("message", "messages") if report.format in ("chat", "locomo") else ("memory", "memories")
    what = kind[0] if fresh == 1 else kind[1]
    about = f", {report.sessions:,} conversations" if report.sessions else ""
    out.print(f"{fresh:,} {what} {done}{known}{about}.")
    lines = Table.grid(padding=(0, 2))
    for name, count in (
        ("messages", report.messages),
        ("facts", report.facts),
        ("people and things", report.people),
        ("relations", report.relations),
        ("links", report.links),
    ):
        if count and report.format not in ("chat", "locomo"):
            lines.add_row(Text(f"{count:>9,}"), Text(name, style="dim"))
    if lines.row_count:
        out.print(dim(f"Read as {report.format}:"))
        out.print(lines)
    if report.refused_count:
        several = "" if report.refused_count == 1 else "s"
        out.print(Text(f"{report.refused_count:,} thing{several} could not be used:", style="yellow"))
        for line in report.refused:
            out.print(Text(f"  {one_line(line, most=200)}"), soft_wrap=True)
        if report.refused_count > len(report.refused):
            out.print(dim(f"  and {report.refused_count - len(report.refused):,} more"))
