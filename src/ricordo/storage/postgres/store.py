"""A store in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.model import BackupFile, Reason, Report, Scope
from ricordo.ports import Progress
from ricordo.storage import faults
from ricordo.storage.database.as_of import commit_of
from ricordo.storage.database.maintenance import count_again
from ricordo.storage.database.store import Decide, Options, commit_work, keep_open, let_go
from ricordo.storage.database.threads import outcome
from ricordo.storage.postgres.connection import PostgresConnection, connect, reconnected, translated
from ricordo.storage.postgres.doctor import clean, examine
from ricordo.storage.postgres.location import Location
from ricordo.storage.postgres.schema import prepare, role_of_upkeep
from ricordo.storage.postgres.snapshot import AskedKey, PostgresSnapshot, past_snapshot
from ricordo.storage.postgres.threads import CALLERS_MOST, PostgresReaders, PostgresWriter, reading
from ricordo.storage.postgres.transfer import copy_to_file, fill_database
from ricordo.storage.postgres.words import analyze_again
from ricordo.storage.protocol import Links, PastSnapshot
from ricordo.storage.staging import check_file_name, make_folders
from ricordo.storage.values import NOTHING_FORESEEN, Cleaned, Foreseen, When

T = TypeVar("T")

_NO_FILES = "this store is a PostgreSQL database: it has no plain files"


class PostgresStore:
    """A store in one schema of a PostgreSQL database. `Store` describes the methods."""

    erases_in_one_commit = False
    has_plain_files = False
    reads_at_once = True

    def __init__(self, location: Location, options: Options) -> None:
        """Open the store, creating or migrating its schema.

        Raises:
            StoreError: the schema is newer, or the role may not create it.
            UnavailableError: the server cannot be reached.
        """
        self.location = location
        self.path = location.path
        self.options = options
        self._process = os.getpid()
        with translated(f"cannot open {self.path}"):
            connection = _prepared(connect(location), location, patience_s=options.patience_s)
        truth, upkeep = connection.truth, connection.upkeep
        self.writer = PostgresWriter(connection, options)
        self.readers = PostgresReaders(
            location,
            threads=options.reader_threads,
            truth=truth,
            patience_s=options.patience_s,
            upkeep=upkeep,
            latest=lambda: self.writer.latest,
        )
        self._truth, self._upkeep = truth, upkeep
        self._first: dict[Scope, dict[AskedKey, None]] = {}
        """What the latest change of each caller asked before it wrote."""
        self._scope: Scope | None = None
        self._is_open = True
        keep_open(self)
        while self.writer.submit(analyze_again).result():
            pass

    def check_process(self) -> None:
        """Raise UnavailableError in a forked child, which shares the connections but not the threads."""
        if os.getpid() != self._process:
            raise UnavailableError("this memory was opened before a fork", hint="open it again in the child process")

    def holds_turns(self, scope: Scope) -> bool:
        """Return whether a search has read all turns of a caller, as the first one does if they are few."""
        return self.readers.holds_turns(scope)

    def seen_by(self, scope: Scope) -> Self:
        """Return this store restricted to a caller: if the roles are set up, the server hides rows of other owners."""
        seen = copy(self)
        seen._scope = scope
        return seen

    # writing

    def check_writable(self) -> None:
        """Do nothing: the store is writable."""

    def _seen(self, work: Callable[[Any], T], *, asks_first: bool = True) -> Callable[[Any], T]:
        """Return `work` so that it runs with the rights of the caller.

        Args:
            asks_first: whether to ask ahead what changes ask.
        """
        scope = self._scope

        def seen(snapshot: PostgresSnapshot) -> T:
            connection: Any = snapshot.connection
            connection.see(scope)
            if asks_first and scope is not None:
                earlier = self._first.pop(scope, {})
                self._first[scope] = snapshot.ask_first(list(earlier))
                if len(self._first) > CALLERS_MOST:
                    del self._first[next(iter(self._first))]
            return work(snapshot)

        return seen

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        self.check_process()
        return await outcome(self.writer.submit(self._seen(commit_work(decide, scope, reason, at, self.options.gate))))

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        self.check_process()
        self.writer.submit_unawaited(self._seen(commit_work(decide, scope, reason, at, self.options.gate)))

    async def derive(self, work: Callable[[Any], T]) -> T:
        self.check_process()
        return await outcome(self.writer.submit(self._seen(work, asks_first=False)))

    # reading

    async def read(self, ask: Callable[[PostgresSnapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> T:
        self.check_process()
        return await outcome(self.readers.submit(ask, scope=self._scope, foreseen=foreseen))

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        def answer(today: PostgresSnapshot) -> T:
            commit, at = commit_of(today, scope, when)
            with self.readers.connected() as connection, reading(connection, past=commit, scope=self._scope):
                return ask(past_snapshot(connection, today, commit=commit, at=at, links=links))

        return await self.read(answer)

    async def look(self, ask: Callable[[PostgresSnapshot], T]) -> T:
        self.check_process()
        return await asyncio.to_thread(self._looked, ask)

    def _looked(self, ask: Callable[[PostgresSnapshot], T]) -> T:
        with translated("cannot read"), contextlib.closing(connect(self.location)) as raw:
            connection: Any = PostgresConnection(raw, self.location, self._truth, upkeep=self._upkeep)
            with reading(connection, scope=self._scope):
                return ask(PostgresSnapshot(connection))

    # maintenance

    async def doctor(self) -> Report:
        failed = self.writer.unawaited_failures
        return await self.look(lambda tx: examine(tx, unawaited_failures=failed))

    async def mend(self, report: Report) -> None:
        """Count again what is counted wrong. Other damage in a database server needs a backup."""
        if any(each.check == "counts" and not each.ok for each in report.findings):
            await self.derive(count_again)

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Raise InvalidError: there are no plain files to rebuild from."""
        self.check_process()
        raise InvalidError(f"{_NO_FILES} to rebuild it from", hint="restore the database from a backup")

    async def compact(self) -> int:
        """Return 0: there are no plain files."""
        return 0

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        self.check_process()
        patience = self.options.patience_s if patience_s is None else patience_s
        return await asyncio.to_thread(clean, self.location, patience_s=patience)

    def copy_to(self, target: Path) -> int:
        self.check_process()
        check_file_name(str(target), name="path")
        if target.exists():
            raise InvalidError(f"path: {target} exists already", hint="choose a new name; nothing is overwritten")
        try:
            make_folders(target.parent)
            self._looked(lambda tx: copy_to_file(tx.connection, target))  # type: ignore[arg-type]
            return target.stat().st_size
        except OSError as error:
            hint = "check the path and its permissions"
            raise StoreError(f"cannot write {target}: {error.strerror}", hint=hint) from error

    def fill_from(self, path: Path) -> None:
        """Insert all rows of a single-file store. Raises InvalidError if this store is not empty."""
        self.check_process()
        self.writer.submit(lambda tx: fill_database(tx, path)).result()  # type: ignore[arg-type]

    def copy_files(self, target: Path, look: Callable[[PostgresSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Raise InvalidError: there are no plain files."""
        raise InvalidError(_NO_FILES, hint="back it up with pg_dump")

    def close(self) -> None:
        if not self._is_open or os.getpid() != self._process:
            return
        self._is_open = False
        let_go(self)
        self.writer.close()
        self.readers.close()
        faults.reached("close: after drain")
        connection: Any = self.writer.connection
        connection.raw.close()


def _prepared(raw: psycopg.Connection[Any], location: Location, *, patience_s: float) -> PostgresConnection:
    """Return a connection to a store with the newest schema; if it breaks meanwhile, another one."""
    connection = PostgresConnection(raw, location)
    try:
        prepare(connection)
        connection.upkeep = role_of_upkeep(connection)
        with reading(connection):
            assert connection.truth
        return connection
    except (psycopg.OperationalError, UnavailableError):
        if not raw.broken:
            raw.close()
            raise
    except BaseException:
        raw.close()
        raise
    return _prepared(reconnected(location, patience_s=patience_s), location, patience_s=patience_s)


def open_postgres(location: str, options: Options) -> PostgresStore:
    """Open the store at "postgresql://user@host/database?schema=name".

    Raises:
        InvalidError: it is not such an address.
        StoreError, UnavailableError: the store cannot be opened.
    """
    return PostgresStore(Location.of(location), options)
