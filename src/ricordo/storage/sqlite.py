"""A store in a single SQLite file."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from ricordo.clock import SystemClock, from_ms
from ricordo.errors import DeniedError, InvalidError, StoreError
from ricordo.model import BackupFile, Report
from ricordo.ports import Progress
from ricordo.storage.database.connection import connect
from ricordo.storage.database.maintenance import DERIVED, derive_again
from ricordo.storage.database.schema import Migration, copy_database, prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.store import DatabaseStore, Options
from ricordo.storage.database.threads import CommitHook
from ricordo.storage.key import AnyKey, header_of, is_sealed
from ricordo.storage.sql import no_handles, translated
from ricordo.storage.staging import free_path, make_folders, temporary_folder

T = TypeVar("T")


_log = logging.getLogger("ricordo.storage")


class SameFile(CommitHook):
    """Refuses reads and writes when another program has deleted, moved or replaced the file or its log: what is
    written to a deleted file is lost when it is closed.
    """

    def __init__(self, path: Path, key: AnyKey | None) -> None:
        self._path, self._key = path, key
        self._seen = {"": _identity(path)}
        self._rescued: Path | None = None

    def current(self, connection: apsw.Connection) -> apsw.Connection:
        self._check(connection)
        return connection

    def committed(self, connection: apsw.Connection) -> None:
        self._check(connection)

    @property
    def generation(self) -> int:
        """The inode of the file: when it changes, readers open the file again, and are refused."""
        return _identity(self._path)[1]

    def check_readable(self) -> None:
        if self._is_gone():
            raise self._error()

    def _check(self, connection: apsw.Connection) -> None:
        if self._is_gone():
            self._rescue(connection)
            raise self._error()
        if "-wal" not in self._seen and (log := _identity(Path(f"{self._path}-wal"))) != _NOTHING:
            self._seen = {**self._seen, "-wal": log}  # a new dict: reader threads iterate over the old one

    def _is_gone(self) -> bool:
        return any(_identity(Path(f"{self._path}{ending}")) != seen for ending, seen in self._seen.items())

    def _rescue(self, connection: apsw.Connection) -> None:
        """Copy what the open connection can still read to a new file beside the store, once."""
        if self._rescued is None:
            day = from_ms(SystemClock().now()).strftime("%Y%m%d-%H%M%S")
            target = free_path(self._path.with_name(f"{self._path.name}.rescued-{day}"))
            with suppress(OSError, apsw.Error):
                copy_database(connection, target, key=self._key)
                self._rescued = target
                _log.error("%s was deleted or replaced; what it held was copied to %s", self._path, target)

    def _error(self) -> StoreError:
        kept = f"what it held is in {self._rescued}; " if self._rescued else ""
        return StoreError(
            f"the file of the store, or its log, is no longer at {self._path}: another program deleted or replaced it",
            hint=f"{kept}put the file back, or open the memory again",
        )


_NOTHING = (0, 0)


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode of a file; zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return _NOTHING
    return found.st_dev, found.st_ino


class SQLiteStore(DatabaseStore):
    """A store in one SQLite file."""

    erases_in_one_commit = False
    has_plain_files = False
    reads_at_once = False

    @classmethod
    def open(cls, path: Path, options: Options) -> SQLiteStore:
        """Open the store in a file, creating it if there is none.

        Raises:
            DeniedError: the file is encrypted, and the key is missing or wrong.
            InvalidError: there is a key, and the file is not encrypted.
            StoreError: the file belongs to another program, is newer, damaged, or cannot be read or written.
        """
        connection = _connected(path, options)
        return cls(path, connection, options=options, hook=SameFile(path, options.key))

    @classmethod
    def open_temporary(cls, options: Options) -> SQLiteStore:
        """Open an empty store, deleted when closed. It is a file, so that readers and the writer can work at once."""
        stack = ExitStack()
        path = stack.enter_context(temporary_folder()) / "memory.db"
        _create_empty(path, options)
        return cls(path, _connected(path, options), options=options, release=stack.close)

    async def mend(self, report: Report) -> None:
        """Make the file private again, if others can read it, and work out again what undamaged memories tell. Other
        damage needs a backup.
        """
        failed = {finding.check for finding in report.findings if not finding.ok}
        if "permissions" in failed:
            self.path.chmod(0o600)
        if failed and failed - {"permissions", "background writes"} <= DERIVED:
            await self.derive(derive_again)

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Raise InvalidError: there are no plain files to rebuild from."""
        self.check_process()
        raise InvalidError(
            "this store is a single file: there are no plain files to rebuild it from",
            hint="`ricordo migrate` makes a folder of it, or restore a backup",
        )

    async def compact(self) -> int:
        """Return 0: a single file has no outdated lines."""
        return 0

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Raise InvalidError: there are no plain files."""
        raise InvalidError("this store is a single file: it has no plain files", hint="copy it to a single file")


def _connected(path: Path, options: Options) -> apsw.Connection:
    """Return a connection for writing to a store, which is migrated to the newest schema."""
    _create_private(path)
    with translated(f"cannot open {path}"):
        return _prepared(path, options)


_empty: dict[tuple[Migration, ...], bytes] = {}
"""The file of an empty store, by the steps of its schema."""


def _create_empty(path: Path, options: Options) -> None:
    """Create an empty store at a path that nothing else uses. Copying one takes a tenth of the time."""
    if options.key is None and (empty := _empty.get(options.steps)):
        _create_private(path)
        path.write_bytes(empty)
    else:
        _connected(path, options).close()
        if options.key is None:
            _empty[options.steps] = path.read_bytes()


def _prepared(path: Path, options: Options) -> apsw.Connection:
    was_new = not header_of(path)
    try:
        return _migrated(path, options)
    except (StoreError, DeniedError) as error:
        if not (was_new and isinstance(error.__cause__, apsw.NotADBError) and is_sealed(path)):
            raise
        return _prepared(path, options)  # another process created the file at the same time, with another salt


def _migrated(path: Path, options: Options) -> apsw.Connection:
    connection = connect(path, durability=options.durability, patience_s=options.patience_s, key=options.key)
    try:
        prepare(connection, path, options.steps, key=options.key)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: Path) -> None:
    """Create the file with access for its owner only; SQLite gives the files beside it the same mode."""
    try:
        make_folders(path.parent)
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise no_handles(f"cannot open {path}") from error
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error
