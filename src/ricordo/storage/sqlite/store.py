"""A store in a single SQLite file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from ricordo.errors import InvalidError, StoreError
from ricordo.model import BackupFile, Reason, Report, Scope
from ricordo.ports import Progress
from ricordo.storage.database.connection import connect
from ricordo.storage.database.database import Database, Decide, Options
from ricordo.storage.database.schema import prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.protocol import Links, PastSnapshot
from ricordo.storage.sql import translated
from ricordo.storage.staging import make_folders
from ricordo.storage.values import Cleaned, When

T = TypeVar("T")


class SQLiteStore:
    """The store whose truth is one SQLite file."""

    erases_in_one_commit = False
    has_plain_files = False

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, path: Path, options: Options) -> SQLiteStore:
        """Open the store in a file, creating it if there is none.

        Raises:
            StoreError: the file belongs to another program, is newer, damaged, or cannot be read or written.
        """
        return cls(_opened(path, options, release=lambda: None))

    @classmethod
    def open_temporary(cls, options: Options) -> SQLiteStore:
        """Open an empty store that is deleted when it is closed. It lies in a temporary folder rather than in SQLite's
        memory, so that readers and the writer work side by side as in any other store.
        """
        folder = Path(tempfile.mkdtemp(prefix="ricordo-"))
        return cls(_opened(folder / "memory.db", options, release=lambda: shutil.rmtree(folder, ignore_errors=True)))

    @property
    def path(self) -> Path:
        """The file."""
        return self.database.path

    @property
    def generation(self) -> int:
        """Always the same: the file is never replaced while it is open."""
        return self.database.generation

    # What follows is the plain work of the database; `Store` describes it.

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        return await self.database.write(decide, scope=scope, reason=reason, at=at)

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        self.database.write_nowait(decide, scope=scope, reason=reason, at=at)

    async def derive(self, work: Callable[[DatabaseSnapshot], T]) -> T:
        return await self.database.derive(work)

    async def read(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        return await self.database.read(ask)

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        return await self.database.read_past(ask, scope=scope, when=when, links=links)

    async def look(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        return await self.database.look(ask)

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        return await self.database.clean(patience_s=patience_s)

    async def doctor(self) -> Report:
        return await self.database.examine()

    def copy_to(self, target: Path) -> int:
        return self.database.copy_to(target)

    def close(self) -> None:
        self.database.close()

    # what differs from other backends

    async def mend(self, report: Report) -> None:
        """Make the file private again if others can read it. Other damage needs a backup."""
        if any(finding.check == "permissions" and not finding.ok for finding in report.findings):
            self.path.chmod(0o600)

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Refuse: there are no files to rebuild from.

        Raises:
            InvalidError: always.
        """
        self.database.check_process()
        raise InvalidError(
            "this store is a single file: there is nothing to rebuild it from",
            hint="`ricordo migrate` makes a folder of it, or restore a backup",
        )

    async def compact(self) -> int:
        """Do nothing: a single file has no outdated lines. Return 0."""
        return 0

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Refuse: there are no plain files.

        Raises:
            InvalidError: always.
        """
        raise InvalidError("this store is a single file: it has no plain files", hint="copy it to a single file")


def _opened(path: Path, options: Options, *, release: Callable[[], None]) -> Database:
    _create_private(path)
    with translated(f"cannot open {path}"):
        connection = connect(path, durability=options.durability, patience_s=options.patience_s)
        try:
            prepare(connection, path, options.steps)
        finally:
            connection.close()
        connection = connect(path, durability=options.durability, patience_s=options.patience_s)
        return Database(path, connection, options=options, release=release)


def _create_private(path: Path) -> None:
    """Create the file with access for its owner only; SQLite gives the files beside it the same mode."""
    try:
        make_folders(path.parent)
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error
