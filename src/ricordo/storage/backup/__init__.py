"""Backups: a copy of a store with a manifest of what it holds, the drill that tries it, and the way back."""

from datetime import datetime
from pathlib import Path

from ricordo.model import Report, Restored
from ricordo.storage.backup.create import back_up

__all__ = ["back_up", "restore_backup", "verify_backup"]


def verify_backup(backup: str | Path) -> Report:
    """See `restoring.verify`."""
    from ricordo.storage.backup.restore import verify  # seldom needed, and brings the folder's code

    return verify(Path(backup).expanduser())


def restore_backup(backup: str | Path, location: str | Path, *, replace: bool, now: datetime) -> Restored:
    """See `restoring.restore`."""
    from ricordo.storage.backup.restore import restore  # as above

    return restore(Path(backup).expanduser(), location, replace=replace, now=now)
