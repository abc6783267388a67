"""The common part of all stores: one database with one writer and several readers."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self, TypeVar

import apsw

from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.model import Change, Durability, Reason, Report, Scope
from ricordo.storage import faults
from ricordo.storage.database.apply import apply
from ricordo.storage.database.as_of import commit_of, past
from ricordo.storage.database.connection import connect
from ricordo.storage.database.maintenance import clean, examine
from ricordo.storage.database.schema import Migration, copy_database, migrations
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.threads import CommitHook, Readers, Writer, outcome
from ricordo.storage.key import AnyKey
from ricordo.storage.membership import check_change
from ricordo.storage.protocol import Gate, Links, PastSnapshot
from ricordo.storage.sql import patient, read_snapshot, translated
from ricordo.storage.staging import check_file_name, make_folders
from ricordo.storage.values import NOTHING_FORESEEN, Cleaned, Foreseen, When

T = TypeVar("T")

_TIDY_PATIENCE_S = 1.0

Decide = Callable[[DatabaseSnapshot], tuple[Change, T]]
"""Reads the store and decides without side effects; returns the change, and the result for the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for opening a store.

    Args:
        patience_s: how long a write waits for other processes, in seconds.
        queue_limit: how many writes may wait in this process.
        gate: screens every change before it is applied.
        key: opens the files of an encrypted store.
    """

    durability: Durability = "disk"
    patience_s: float = 30.0
    queue_limit: int = 10_000
    reader_threads: int = 2
    steps: tuple[Migration, ...] = field(default_factory=migrations)
    gate: Gate | None = None
    key: AnyKey | None = None


class DatabaseStore:
    """The common part of stores: the writer and the readers of one database. `Store` describes the methods."""

    def __init__(
        self,
        path: Path,
        connection: apsw.Connection,
        *,
        options: Options,
        hook: CommitHook | None = None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the writer on a connection that it owns; `release` is called after the database is closed."""
        self.path = path
        self.options = options
        self.copy_key = options.key
        """The key for copies of this store; its own files may use a key derived from it."""
        self._hook = hook or CommitHook()
        self._release = release
        self._read_only_at: Path | None = None
        self._was_full = False
        self._process = os.getpid()
        self.writer = Writer(connection, limit=options.queue_limit, hook=self._hook)
        self.readers = Readers(
            self.connect_reader, threads=options.reader_threads, generation=lambda: self._hook.generation
        )
        self._is_open = True
        keep_open(self)

    def connect_reader(self) -> apsw.Connection:
        """Open a read connection."""
        self._hook.check_readable()
        if not self._hook.is_readable:
            self.writer.submit(lambda _: None).result()  # any write rebuilds the file
        return connect(self.path, read_only=True, patience_s=self.options.patience_s, key=self.options.key)

    def keep_read_only(self, original: Path, release: Callable[[], None], *, is_full: bool) -> None:
        """Allow only reads from now on: this store is a copy of one on a disk that cannot be written.

        Args:
            release: removes the copy; called after the store is closed.
            is_full: whether the disk is full, and not read-only.
        """
        self._read_only_at, self._was_full, close = original, is_full, self._release

        def both() -> None:
            close()
            release()

        self._release = both

    def holds_turns(self, scope: Scope) -> bool:
        """Return False: to find out, a read costs little."""
        return False

    def seen_by(self, scope: Scope) -> Self:
        """Return this store: a file needs no protection against its own user."""
        return self

    def check_writable(self) -> None:
        if self._was_full:
            hint = "free some space and open it again; search, context, list, export and doctor work"
            raise StoreError(f"{self._read_only_at} was opened for reading only: the disk is full", hint=hint)
        if self._read_only_at is not None:
            raise StoreError(
                f"{self._read_only_at} is read-only: nothing can be stored or changed",
                hint="make it writable, or copy it to another disk; search, context, list, export and doctor work",
            )

    def check_process(self) -> None:
        """Raise UnavailableError in a forked child, which shares the locks of the file but not the threads."""
        if os.getpid() != self._process:
            raise UnavailableError("this memory was opened before a fork", hint="open it again in the child process")

    # writing

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        self.check_process()
        self.check_writable()
        return await outcome(self.writer.submit(commit_work(decide, scope, reason, at, self.options.gate)))

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        self.check_process()
        self.check_writable()
        self.writer.submit_unawaited(commit_work(decide, scope, reason, at, self.options.gate))

    async def derive(self, work: Callable[[DatabaseSnapshot], T]) -> T:
        self.check_process()
        return await outcome(self.writer.submit(work))

    # reading

    async def read(self, ask: Callable[[DatabaseSnapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> T:
        return await self.answered(ask)

    async def answered(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Run a query in a reader thread."""
        self.check_process()
        return await outcome(self.readers.submit(ask))

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        def answer(today: DatabaseSnapshot) -> T:
            commit, at = commit_of(today, scope, when)
            with past(self.connect_reader(), today, commit=commit, at=at, links=links) as snapshot:
                return ask(snapshot)

        return await self.read(answer)

    async def look(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        self.check_process()
        return await asyncio.to_thread(self._looked, ask)

    def _looked(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        with (
            contextlib.closing(self.connect_reader()) as connection,
            translated("cannot read"),
            read_snapshot(connection),
        ):
            return ask(DatabaseSnapshot(connection))

    # maintenance

    async def doctor(self) -> Report:
        """Look for damage on a fresh connection: FTS5 compares with the structure that a connection saw last."""
        failed = self.writer.unawaited_failures
        return await self.read(lambda _: self._looked(lambda tx: examine(tx, self.path, unawaited_failures=failed)))

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        self.check_process()
        patience = self.options.patience_s if patience_s is None else patience_s
        return await asyncio.to_thread(clean, self.path, patience_s=patience, key=self.options.key)

    def copy_to(self, target: Path) -> int:
        self.check_process()
        check_file_name(str(target), name="path")
        if target.exists():
            raise InvalidError(f"path: {target} exists already", hint="choose a new name; nothing is overwritten")
        doing = f"cannot back up to {target}"
        try:
            make_folders(target.parent)
            with translated(doing), contextlib.closing(self.connect_reader()) as source:
                copy_database(source, target, key=self.copy_key)
            return target.stat().st_size
        except OSError as error:
            hint = "check the path and its permissions"
            raise StoreError(f"{doing}: {error.strerror}", hint=hint) from error

    def close(self) -> None:
        if not self._is_open or os.getpid() != self._process:
            return
        self._is_open = False
        let_go(self)
        self.writer.close()
        self.readers.close()
        faults.reached("close: after drain")
        self._tidy()
        faults.reached("close: before letting go")
        with translated("cannot close"):
            self.writer.connection.close()
        self._release()

    def _tidy(self) -> None:
        """Leave statistics and a short log behind if possible; otherwise SQLite does this at the next opening.

        A last write that failed may have left a closed connection.
        """
        with contextlib.suppress(apsw.Error):
            self.writer.connection.set_busy_handler(patient(_TIDY_PATIENCE_S))
        for statement in ("PRAGMA optimize", "PRAGMA wal_checkpoint(TRUNCATE)"):
            with contextlib.suppress(apsw.Error):
                self.writer.connection.execute(statement)


def commit_work(
    decide: Decide[T], scope: Scope, reason: Reason, at: datetime, gate: Gate | None
) -> Callable[[DatabaseSnapshot], T]:
    """Return the function that decides on, screens and applies one change."""

    def work(snapshot: DatabaseSnapshot) -> T:
        change, result = decide(snapshot)
        if not change.is_empty:
            check_change(snapshot, change, scope)
            screened, why = gate(snapshot, change, reason) if gate else (change, reason)
            apply(snapshot, screened, scope=scope, reason=why, at=at)
        return result

    return work


# Strong references: a store that was dropped without closing may still have writes to finish at interpreter exit.
_open_databases: set[_Closing] = set()


class _Closing(Protocol):
    def close(self) -> None: ...


def keep_open(store: _Closing) -> None:
    """Close a store at interpreter exit, unless it was closed before."""
    _open_databases.add(store)


def let_go(store: _Closing) -> None:
    """Undo `keep_open`."""
    _open_databases.discard(store)


@atexit.register
def _close_all() -> None:
    """At interpreter exit, write what was queued and never awaited."""
    for database in list(_open_databases):
        database.close()
