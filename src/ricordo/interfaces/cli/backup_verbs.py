"""The verbs for backups: make one, try one, go back to one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import StoreError
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, shown
from ricordo.interfaces.cli.upkeep import show_findings
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Backup, Report, Restored

_PANEL = "Look after"

BackupPath = Annotated[Path, typer.Argument(help="The backup: a file, or a folder of plain text files.")]


@verb("backup", panel=_PANEL)
async def backup(
    door: Door,
    path: Annotated[str, typer.Argument(help="The new file; of a folder, a new folder if it ends in a slash.")],
    verify: Annotated[bool, typer.Option("--verify", metavar="", help="Then try it, as verify-backup does.")] = False,
) -> Answer:
    """Copy the whole store to a new file, also while it is in use."""
    door.must_exist()
    async with door.open() as memory:
        with door.waiting("Copying…"):
            made = await memory.backup(path)
        with door.waiting("Trying it…"):
            report = await memory.verify_backup(path) if verify else None
    tried = {"ok": report.ok, "findings": report.findings} if report else {}
    return Answer(
        data={"path": path, "bytes": made.size, "manifest": made, **tried},
        show=lambda out: _show_made(out, path, made, report),
        exit_status=_status(report),
    )


@verb("verify-backup", panel=_PANEL)
async def verify_backup(door: Door, path: BackupPath) -> Answer:
    """Try a backup on a copy of it; the exit status is 7 where something is wrong."""
    from ricordo.memory import Memory  # brings numpy: `--help` need not wait for it

    with door.waiting("Trying it…"):
        report = await Memory.verify_backup(path)
    return Answer(
        data={"ok": report.ok, "findings": report.findings},
        show=lambda out: _show_tried(out, report),
        exit_status=_status(report),
    )


@verb("restore-backup", panel=_PANEL)
async def restore_backup(
    door: Door,
    path: BackupPath,
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="The store that is there gives way, and is kept beside.")
    ] = False,
) -> Answer:
    """Make the store of --store from a backup, once it has proved sound."""
    from ricordo.memory import Memory  # as above

    with door.waiting("Trying and copying…"):
        done = await Memory.restore_backup(path, door.location, replace=replace)
    return Answer(
        data={"path": str(path), "location": done.location, "kept": done.kept},
        show=lambda out: _show_restored(out, path, done),
    )


def _status(report: Report | None) -> int:
    return 0 if report is None or report.ok else StoreError.exit_status


def _show_made(out: Console, path: str, made: Backup, report: Report | None) -> None:
    size, rows = made.size / 1_000_000, sum(made.rows.values())
    said = f"Copied to {shown(path)}, {size:.1f} MB: {made.commits:,} changes, {rows:,} rows."
    out.print(Text(said), soft_wrap=True)
    if report is not None:
        _show_tried(out, report)


def _show_tried(out: Console, report: Report) -> None:
    show_findings(out, report)
    out.print()
    out.print("This backup is sound." if report.ok else "This backup is not sound. Use another one.")


def _show_restored(out: Console, path: Path, done: Restored) -> None:
    out.print(Text(f"{shown(done.location)} is as it was when {shown(str(path))} was made."), soft_wrap=True)
    if done.kept is not None:
        out.print(Text(f"What was there before is kept as {shown(done.kept)}."), soft_wrap=True)
