"""Reader threads, each with its own read-only connection. Readers never wait for the writer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import apsw

from ricordo.errors import UnavailableError
from ricordo.storage.database.connection import read_snapshot
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import Kept
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Unchanged
from ricordo.storage.sql import translated

T = TypeVar("T")


class _ReadConnection:
    """A read connection, and what it has read of the store as a whole since the last write."""

    def __init__(self, generation: int, connection: apsw.Connection) -> None:
        self.generation = generation
        self.connection = connection
        self._version: int | None = None
        self._unchanged: Unchanged = {}

    def unchanged(self) -> Unchanged:
        """Return what still holds in the snapshot that has begun: nothing after a write.

        Asking for the version also fixes the snapshot: everything read after it is of the same state.
        """
        version = self.connection.execute(sql("data_version")).get
        if version != self._version:
            self._version, self._unchanged = version, {}
        return self._unchanged


class Readers:
    """A few threads that answer questions, each question from one snapshot."""

    def __init__(self, connect: Callable[[], apsw.Connection], *, threads: int, generation: Callable[[], int]) -> None:
        """Args:
        connect: opens the database for reading.
        generation: the identity of the database file; when it changes, readers connect again.
        """
        self._connect = connect
        self._generation = generation
        self._seen = generation()
        self._threads = threading.local()
        self._kept = Kept()
        self._lock = threading.Lock()
        self._connections: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ricordo-reader")

    def submit(self, ask: Callable[[DatabaseSnapshot], T]) -> Future[T]:
        """Ask in a reader's thread.

        Raises:
            UnavailableError: the store is closed.
        """
        try:
            return self._pool.submit(self._answer, ask)
        except RuntimeError as error:
            raise UnavailableError("the store is closed", hint="open it again") from error

    def _answer(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        generation, kept = self._current()
        own: _ReadConnection | None = getattr(self._threads, "own", None)
        if own is None or own.generation != generation:
            own = self._threads.own = self._opened(generation)
        return _answered(own, kept, ask)

    def _current(self) -> tuple[int, Kept]:
        generation = self._generation()
        if generation != self._seen:
            with self._lock:
                self._seen, self._kept = generation, Kept()
        return generation, self._kept

    def _opened(self, generation: int) -> _ReadConnection:
        own = _ReadConnection(generation, self._connect())
        with self._lock:
            self._connections.append(own.connection)
        return own

    def close(self) -> None:
        """Let running questions end, then close. An open reader would keep the log from being truncated."""
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        self._connections.clear()


def _answered(own: _ReadConnection, kept: Kept, ask: Callable[[DatabaseSnapshot], T]) -> T:
    with translated("cannot read"), read_snapshot(own.connection):
        return ask(DatabaseSnapshot(own.connection, kept, unchanged=own.unchanged()))
