"""Backups: a copy of a store with a manifest, the trial of a backup, and the restore."""

from datetime import datetime
from pathlib import Path

from ricordo.model import Report, Restored
from ricordo.storage.backup.backup import back_up

__all__ = ["back_up", "restore_backup", "verify_backup"]


def verify_backup(backup: str | Path) -> Report:
    """Try a backup. See `restore.verify`."""
    from ricordo.storage.backup.restore import verify  # seldom needed, and imports the folder backend

    return verify(Path(backup).expanduser())


def restore_backup(backup: str | Path, location: str | Path, *, replace: bool, now: datetime) -> Restored:
    """Restore a backup. See `restore.restore`."""
    from ricordo.storage.backup.restore import restore  # as above

    return restore(Path(backup).expanduser(), location, replace=replace, now=now)
