"""Reading: a pool of threads, each with its own read-only connection. Readers never wait for the writer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import apsw

from ricordo.errors import UnavailableError
from ricordo.store.sqlite.connection import moment, translated
from ricordo.store.sqlite.snapshot import Kept, Snapshot

T = TypeVar("T")


class Readers:
    """A few threads that answer questions, each from one snapshot."""

    def __init__(self, connect: Callable[[], apsw.Connection], *, threads: int, place: Callable[[], int]) -> None:
        """Args:
        place: tells which file the store is at this moment; another one is connected to anew.
        """
        self._connect = connect
        self._place = place
        self._at = place()
        self._own = threading.local()
        self._kept = Kept()
        self._lock = threading.Lock()
        self._connections: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ricordo-reader")

    def submit(self, ask: Callable[[Snapshot], T]) -> Future[T]:
        """Ask in a reader's thread.

        Raises:
            UnavailableError: the store is closed.
        """
        try:
            return self._pool.submit(self._answer, ask)
        except RuntimeError as error:
            raise UnavailableError("the store is closed", hint="open it again") from error

    def _answer(self, ask: Callable[[Snapshot], T]) -> T:
        connection, kept = self._connection()
        with translated("cannot read"), moment(connection):
            return ask(Snapshot(connection, kept))

    def _connection(self) -> tuple[apsw.Connection, Kept]:
        place = self._place()
        if place != self._at:
            with self._lock:
                self._at, self._kept = place, Kept()
        own: tuple[int, apsw.Connection] | None = getattr(self._own, "connection", None)
        if own is None or own[0] != place:
            fresh = self._connect()
            self._own.connection = own = place, fresh
            with self._lock:
                self._connections.append(fresh)
        return own[1], self._kept

    def close(self) -> None:
        """Let running questions end, then close. An open reader would keep the log from being truncated."""
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        self._connections.clear()
