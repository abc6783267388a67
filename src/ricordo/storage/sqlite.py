"""A store in a single SQLite file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from ricordo.errors import InvalidError, StoreError
from ricordo.model import BackupFile, Report
from ricordo.ports import Progress
from ricordo.storage.database.connection import connect
from ricordo.storage.database.schema import prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.store import DatabaseStore, Options
from ricordo.storage.sql import translated
from ricordo.storage.staging import make_folders

T = TypeVar("T")


class SQLiteStore(DatabaseStore):
    """The store whose truth is one SQLite file."""

    erases_in_one_commit = False
    has_plain_files = False

    @classmethod
    def open(cls, path: Path, options: Options) -> SQLiteStore:
        """Open the store in a file, creating it if there is none.

        Raises:
            StoreError: the file belongs to another program, is newer, damaged, or cannot be read or written.
        """
        return cls(path, _connected(path, options), options=options)

    @classmethod
    def open_temporary(cls, options: Options) -> SQLiteStore:
        """Open an empty store, deleted when it is closed. It is a file, so that readers and the writer work at once."""
        folder = Path(tempfile.mkdtemp(prefix="ricordo-"))
        path = folder / "memory.db"
        release = partial(shutil.rmtree, folder, ignore_errors=True)
        return cls(path, _connected(path, options), options=options, release=release)

    async def mend(self, report: Report) -> None:
        """Make the file private again if others can read it. Other damage needs a backup."""
        if any(finding.check == "permissions" and not finding.ok for finding in report.findings):
            self.path.chmod(0o600)

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Refuse: there are no files to rebuild from. Raises InvalidError."""
        self.check_process()
        raise InvalidError(
            "this store is a single file: there is nothing to rebuild it from",
            hint="`ricordo migrate` makes a folder of it, or restore a backup",
        )

    async def compact(self) -> int:
        """Do nothing: a single file has no outdated lines. Return 0."""
        return 0

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Refuse: there are no plain files. Raises InvalidError."""
        raise InvalidError("this store is a single file: it has no plain files", hint="copy it to a single file")


def _connected(path: Path, options: Options) -> apsw.Connection:
    """Return a connection to write with, to a store of the newest schema."""
    _create_private(path)
    with translated(f"cannot open {path}"):
        with closing(connect(path, durability=options.durability, patience_s=options.patience_s)) as connection:
            prepare(connection, path, options.steps)
        return connect(path, durability=options.durability, patience_s=options.patience_s)


def _create_private(path: Path) -> None:
    """Create the file with access for its owner only; SQLite gives the files beside it the same mode."""
    try:
        make_folders(path.parent)
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error
