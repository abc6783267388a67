"""Reading: a pool of threads, each with its own read-only connection. Readers never wait for the writer.

A brief question may also be answered in the thread of whoever asks: waking another one and being woken takes longer
than many an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import apsw

from ricordo.errors import UnavailableError
from ricordo.storage.database.connection import moment, translated
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import DatabaseSnapshot, Kept
from ricordo.storage.database.statements import Unchanged

T = TypeVar("T")


class _Own:
    """The connection of a thread, and what it was told of the store as a whole while that is as it was."""

    def __init__(self, place: int, connection: apsw.Connection) -> None:
        self.place = place
        self.connection = connection
        self._version: int | None = None
        self._unchanged: Unchanged = {}

    def unchanged(self) -> Unchanged:
        """What still is so in the moment that has begun: nothing once anybody has written.

        Asking for the version also fixes the moment: what is read after it is of the same state.
        """
        version = self.connection.execute(sql("data_version")).get
        if version != self._version:
            self._version, self._unchanged = version, {}
        return self._unchanged


class Connect(Protocol):
    """Opens a store for reading; where it does not wait for others, UnavailableError says that it would have to."""

    def __call__(self, *, waits: bool = True) -> apsw.Connection: ...


class Readers:
    """A few threads that answer questions, each from one snapshot."""

    def __init__(self, connect: Connect, *, threads: int, place: Callable[[], int]) -> None:
        """Args:
        connect: opens the store for reading.
        place: tells which file the store is at this moment; another one is connected to anew.
        """
        self._connect = connect
        self._place = place
        self._at = place()
        self._threads = threading.local()
        self._kept = Kept()
        self._lock = threading.Lock()
        self._connections: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ricordo-reader")
        self._here: _Own | None = None
        self._here_lock = threading.Lock()
        self._is_closed = False

    def submit(self, ask: Callable[[DatabaseSnapshot], T]) -> Future[T]:
        """Ask in a reader's thread.

        Raises:
            UnavailableError: the store is closed.
        """
        try:
            return self._pool.submit(self._answer, ask)
        except RuntimeError as error:
            raise UnavailableError("the store is closed", hint="open it again") from error

    def answer_here(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Answer in the thread of the caller, who waits for nobody.

        Raises:
            UnavailableError: somebody would have to be waited for, or the store is closed.
        """
        if not self._here_lock.acquire(blocking=False):
            raise UnavailableError("another question is being answered", hint="try again")
        try:
            if self._is_closed:
                raise UnavailableError("the store is closed", hint="open it again")
            place, kept = self._current()
            if self._here is None or self._here.place != place:
                self._here = self._opened(place, waits=False)
            return _answered(self._here, kept, ask)
        finally:
            self._here_lock.release()

    def _answer(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        place, kept = self._current()
        own: _Own | None = getattr(self._threads, "own", None)
        if own is None or own.place != place:
            own = self._threads.own = self._opened(place)
        return _answered(own, kept, ask)

    def _current(self) -> tuple[int, Kept]:
        place = self._place()
        if place != self._at:
            with self._lock:
                self._at, self._kept = place, Kept()
        return place, self._kept

    def _opened(self, place: int, *, waits: bool = True) -> _Own:
        own = _Own(place, self._connect(waits=waits))
        with self._lock:
            self._connections.append(own.connection)
        return own

    def close(self) -> None:
        """Let running questions end, then close. An open reader would keep the log from being truncated."""
        self._pool.shutdown(wait=True)
        with self._here_lock:
            self._is_closed = True
        for connection in self._connections:
            connection.close()
        self._connections.clear()


def _answered(own: _Own, kept: Kept, ask: Callable[[DatabaseSnapshot], T]) -> T:
    with translated("cannot read"), moment(own.connection):
        return ask(DatabaseSnapshot(own.connection, kept, unchanged=own.unchanged()))
