"""Commands for the store as a whole: statistics, log, check, clean-up, backup, import and export."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.errors import RicordoError, StoreError
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import (
    Output,
    counts,
    dim,
    fields,
    minute,
    one_line,
    progress_bar,
    safe,
    short_id,
    table,
    wait_for_embeddings,
)
from ricordo.model import (
    ArchiveReport,
    Backup,
    Commit,
    ExportReport,
    ImportReport,
    MaintenanceReport,
    Report,
    Restored,
    Stats,
)
from ricordo.portability import IMPORTED
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

_MAX_ITEMS = 20
_Format = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"{', '.join(IMPORTED)}. [default: detected from the content]")
]


# statistics and log


@command()
async def stats(ctx: CommandContext, memory: Memory) -> Output:
    """Show the number of memories by kind, and the state of the store."""
    found = await memory.stats()
    return Output(data=found, show=lambda out: out.print(fields(_stats(found, where=ctx.location, zone=ctx.zone))))


def _stats(found: Stats, *, where: str, zone: ZoneInfo) -> list[tuple[str, str]]:
    span = f"{minute(found.oldest, zone)} to {minute(found.newest, zone)}" if found.oldest else ""
    waiting = f", {found.embedding_missing:,} waiting" if found.embedding_missing else ""
    embedded = f"{found.embedded:,} with {found.embedder}{waiting}" if found.embedder else "none, search by words only"
    if found.next_embedder:
        embedded += f"; {found.next_embedded:,} so far with {found.next_embedder}, which replaces it"
    return [
        ("store", f"{where}, {found.size_mb:.1f} MB"),
        ("memories", _totals(found.nodes) or "none"),
        ("categories", _totals(found.categories)),
        ("in the archive", f"{found.closed:,}"),
        ("from", span),
        ("conversations", _conversations(found, zone)),
        ("people and things", f"{found.entities:,}"),
        ("links", _links(found)),
        ("last archived", minute(found.last_decay, zone)),
        ("embeddings", embedded),
        ("changes", f"{found.commits:,}"),
    ]


def _conversations(found: Stats, zone: ZoneInfo) -> str:
    waiting = f", {found.sessions_waiting:,} waiting to become knowledge" if found.sessions_waiting else ""
    last = f", last consolidated {minute(found.last_consolidation, zone)}" if found.last_consolidation else ""
    return f"{found.sessions:,}{waiting}{last}"


def _links(found: Stats) -> str:
    alone = f"; {plural(found.orphans, 'memory', 'memories')} without links" if found.orphans else ""
    each = f", {found.edges_per_node:.1f} per memory" if found.edges else ""
    return f"{_totals(found.edges) or 'none'}{each}{alone}"


def _totals(found: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in found.items())


@command()
async def log(ctx: CommandContext, memory: Memory, limit: int = 20) -> Output:
    """List the latest changes, newest first."""
    commits = await memory.log(limit)
    return Output(data={"commits": commits}, show=lambda out: _show_log(out, commits, zone=ctx.zone))


def _show_log(out: Console, commits: Sequence[Commit], *, zone: ZoneInfo) -> None:
    if not commits:
        out.print("There are no changes yet.")
        return
    lines = table("change", "when", "by", "what")
    for commit in commits:
        reason = "" if commit.reason == commit.origin else f": {commit.reason}"
        who, what = one_line(commit.actor, most=30), one_line(commit.origin + reason)
        lines.add_row(str(commit.seq), minute(commit.at, zone), Text(who), Text(what))
    out.print(lines)


# check and repair


@command(must_exist=True)
async def doctor(ctx: CommandContext, memory: Memory, fix: bool = False) -> Output:
    """Check the store for damage. Changes nothing without --fix; the exit status is 7 if something is wrong."""
    with ctx.status("Checking…"):
        report = await memory.doctor(fix=fix)
    well, ill = "All is well.", "Something is wrong; copy the store aside before you repair it."
    return Output(
        data={"ok": report.ok, "findings": report.findings},
        show=lambda out: _show_report(out, report, well=well, ill=ill),
        exit_status=_status(report),
    )


def _status(report: Report | None) -> int:
    return 0 if report is None or report.ok else StoreError.exit_status


def _show_report(out: Console, report: Report, *, well: str, ill: str) -> None:
    """Print one line for each check, with a remedy where something is wrong."""
    lines = Table.grid(padding=(0, 2))
    for finding in report.findings:
        mark = Text("ok", style="green") if finding.ok else Text("PROBLEM", style="bold red")
        remedy = f"\n{finding.remedy}" if finding.remedy else ""
        lines.add_row(mark, finding.check, Text(safe(finding.detail + remedy), style="dim" if finding.ok else ""))
    out.print(lines)
    out.print()
    out.print(well if report.ok else ill)


@command(must_exist=True)
async def rebuild_index(ctx: CommandContext, memory: Memory) -> Output:
    """Rebuild the index of a folder from its files."""
    with progress_bar(ctx.err, "Reading") as progress:
        lines = await memory.rebuild_index(progress=progress)
    done = f"Rebuilt the index from {plural(lines, 'line')}."
    return Output(data={"lines": lines}, show=lambda out: out.print(done))


# clean-up


@command(must_exist=True)
async def gc(ctx: CommandContext, memory: Memory, dry_run: bool = False, all_owners: bool = False) -> Output:
    """Archive memories that are expired, faded or past their lifetime."""
    with progress_bar(ctx.err, "Archiving") as progress:
        report = await memory.gc(dry_run=dry_run, all_owners=all_owners, progress=progress)
    return Output(data=report, show=lambda out: _show_archived(out, report, ctx))


@command(must_exist=True)
async def prune(ctx: CommandContext, memory: Memory, dry_run: bool = False, all_owners: bool = False) -> Output:
    """Archive memories until no more are left than `max_size` allows."""
    with progress_bar(ctx.err, "Archiving") as progress:
        report = await memory.prune(dry_run=dry_run, all_owners=all_owners, progress=progress)
    return Output(data=report, show=lambda out: _show_archived(out, report, ctx))


@command(must_exist=True, with_model=True)
async def maintain(ctx: CommandContext, memory: Memory, dry_run: bool = False, all_owners: bool = False) -> Output:
    """Run the nightly maintenance: consolidate, gc, prune, clean up. The exit status is 1 if a step failed."""
    with progress_bar(ctx.err, "Archiving") as progress:
        report = await memory.maintain(dry_run=dry_run, all_owners=all_owners, progress=progress)
    return Output(
        data={"ok": report.ok, "steps": report.steps, "dry_run": report.dry_run},
        show=lambda out: _show_steps(out, report),
        exit_status=0 if report.ok else RicordoError.exit_status,
    )


def _show_archived(out: Console, done: ArchiveReport, ctx: CommandContext) -> None:
    """Print what was archived or would be, by reason, and the first of it."""
    if done.archived:
        verb = "would be archived" if done.dry_run else "archived"
        left = f"{plural(done.live, 'memory remains', 'memories remain')}."
        out.print(Text(f"{_totals(done.archived)}: {verb}. {left}"))
        lines = table("id", "why", "memory")
        for item in done.items[:_MAX_ITEMS]:
            why, content = one_line(item.why, most=60), one_line(item.node.content)
            lines.add_row(short_id(item.node.id), Text(why), Text(content))
        out.print(lines)
        if (more := sum(done.archived.values()) - _MAX_ITEMS) > 0:
            out.print(dim(f"and {more:,} more"))
    else:
        out.print(f"Nothing to archive among {plural(done.live, 'memory', 'memories')}.")
    if not done.fits:
        out.print(Text("There are still more than the settings allow; run `gc` and `prune`.", style="yellow"))
    for run in done.runs[:1] if done.archived else ():
        ctx.hint(f"`ricordo undo {run}` brings all of them back, `ricordo restore ID` one.")


def _show_steps(out: Console, done: MaintenanceReport) -> None:
    for step in done.steps:
        mark = ("ok      ", "green") if step.ok else ("FAILED  ", "bold red")
        would = "would do: " if done.dry_run and step.report is not None and step.report.archived else ""
        out.print(Text.assemble(mark, (f"{step.name:10}", "bold"), f"{would}{one_line(step.detail)}"))


# copies of the store


@command(must_exist=True)
async def migrate(ctx: CommandContext, memory: Memory, path: str) -> Output:
    """Copy the store to a folder of plain text files, or back to a single file."""
    with ctx.status("Copying…"):
        await memory.migrate(path)
    done = Text(f"Copied to {safe(path)}. {safe(ctx.location)} is unchanged.")
    return Output(data={"path": path}, show=lambda out: out.print(done, soft_wrap=True))


@command(must_exist=True)
async def backup(ctx: CommandContext, memory: Memory, path: str, verify: bool = False) -> Output:
    """Copy the whole store to a new file, also while it is in use."""
    with ctx.status("Copying…"):
        made = await memory.backup(path)
    with ctx.status("Verifying…"):
        report = await memory.verify_backup(path) if verify else None
    verified = {"ok": report.ok, "findings": report.findings} if report else {}
    return Output(
        data={"path": path, "bytes": made.size, "manifest": made, **verified},
        show=lambda out: _show_backup(out, path, made, report),
        exit_status=_status(report),
    )


@command()
async def verify_backup(ctx: CommandContext, path: Path) -> Output:
    """Verify a backup on a copy of it; the exit status is 7 if something is wrong."""
    from ricordo.memory import Memory  # imports numpy: `--help` should not wait for it

    with ctx.status("Verifying…"):
        report = await Memory.verify_backup(path)
    return Output(
        data={"ok": report.ok, "findings": report.findings},
        show=lambda out: _show_verified(out, report),
        exit_status=_status(report),
    )


@command()
async def restore_backup(ctx: CommandContext, path: Path, replace: bool = False) -> Output:
    """Verify a backup, then create the store of --store from it."""
    from ricordo.memory import Memory  # as above

    with ctx.status("Verifying and copying…"):
        done = await Memory.restore_backup(path, ctx.location, replace=replace)
    return Output(
        data={"path": str(path), "location": done.location, "kept": done.kept},
        show=lambda out: _show_restored(out, path, done),
    )


def _show_backup(out: Console, path: str, made: Backup, report: Report | None) -> None:
    contents = f"{plural(made.commits, 'change')}, {plural(sum(made.rows.values()), 'row')}"
    out.print(Text(f"Copied to {safe(path)}, {made.size / 1_000_000:.1f} MB: {contents}."), soft_wrap=True)
    if report is not None:
        _show_verified(out, report)


def _show_verified(out: Console, report: Report) -> None:
    _show_report(out, report, well="The backup is intact.", ill="The backup is damaged. Use another one.")


def _show_restored(out: Console, path: Path, done: Restored) -> None:
    out.print(Text(f"Restored {safe(done.location)} from {safe(str(path))}."), soft_wrap=True)
    if done.kept is not None:
        out.print(Text(f"The previous store is kept as {safe(done.kept)}."), soft_wrap=True)


# import and export


@command()
async def import_(ctx: CommandContext, path: Path, format: _Format = None, dry_run: bool = False) -> Output:
    """Import conversations or another memory. Importing the same file again adds nothing."""
    try:
        async with ctx.open(create=not dry_run) as memory:
            with progress_bar(ctx.err, "Reading") as progress:
                report = await memory.import_(path, format=format, dry_run=dry_run, progress=progress)
            if not dry_run:
                await wait_for_embeddings(ctx.err, memory)
    except asyncio.CancelledError:
        ctx.notice("Stopped. What was read so far is stored; run the same command again to continue.")
        raise
    return Output(data=report, show=lambda out: _show_import(out, report, dry_run=dry_run))


@command(must_exist=True)
async def export(ctx: CommandContext, memory: Memory, path: Path, format: str = "jsonl") -> Output:
    """Export everything, or current knowledge in a format for people or other programs."""
    with progress_bar(ctx.err, "Writing") as progress:
        report = await memory.export(path, format=format, progress=progress)
    return Output(data=report, show=lambda out: _show_export(out, report))


def _show_export(out: Console, report: ExportReport) -> None:
    size = f"{report.bytes / 1e6:.1f} MB" if report.bytes >= 1e6 else f"{report.bytes / 1e3:.1f} kB"
    out.print(Text(f"Written to {safe(report.path)}, {size}."), soft_wrap=True)
    rows = [
        ("facts", report.facts),
        ("messages", report.messages),
        ("in the archive", report.closed),
        ("people and things", report.people),
        ("relations", report.relations),
        ("changes", report.commits),
    ]
    out.print(counts(rows))


def _show_import(out: Console, report: ImportReport, *, dry_run: bool) -> None:
    fresh = report.read - report.known if dry_run else report.added
    is_chat = report.format in ("chat", "locomo")
    what = plural(fresh, "message") if is_chat else plural(fresh, "memory", "memories")
    known = f", {report.known:,} already known" if report.known else ""
    sessions = f", {plural(report.sessions, 'conversation')}" if report.sessions else ""
    out.print(f"{what} {'would be added' if dry_run else 'added'}{known}{sessions}.")
    rows = [
        ("messages", report.messages),
        ("facts", report.facts),
        ("people and things", report.people),
        ("relations", report.relations),
        ("links", report.links),
    ]
    details = counts(() if is_chat else rows)
    if details.row_count:
        out.print(dim(f"Read as {report.format}:"))
        out.print(details)
    if report.refused_count:
        out.print(Text(f"{plural(report.refused_count, 'entry', 'entries')} could not be imported:", style="yellow"))
        for line in report.refused:
            out.print(Text(f"  {one_line(line, most=200)}"), soft_wrap=True)
        if report.refused_count > len(report.refused):
            out.print(dim(f"  and {report.refused_count - len(report.refused):,} more"))
