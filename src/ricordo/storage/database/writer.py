"""The one thread of a process that writes.

Works queue up; whatever waits together is committed together, each in its own savepoint, so that one failure does
not take its neighbours along. After any error of SQLite itself the whole batch is abandoned and replayed work by
work: on a full disk SQLite may roll everything back by itself, and the next statement would then commit alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeAlias, TypeVar

import apsw

from ricordo.errors import RicordoError, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.database.commit_hook import Journal
from ricordo.storage.database.connection import transaction, translated
from ricordo.storage.database.reader import DatabaseSnapshot

T = TypeVar("T")

_log = logging.getLogger("ricordo.storage")

# How many works share one commit. More only delays the first of them.
_BATCH = 256


class Work(Generic[T]):
    """One thing to write, and where its outcome goes: to a future, or to nobody but the count of failures."""

    __slots__ = ("future", "run")

    def __init__(self, run: Callable[[DatabaseSnapshot], T], future: Future[T] | None) -> None:
        self.run = run
        self.future = future


Outcome: TypeAlias = tuple[Work[Any], Any, BaseException | None]
"""A work, what it returned, and why it failed if it did."""


class Writer:
    """Owns the write connection and the thread that uses it."""

    def __init__(self, connection: apsw.Connection, *, limit: int, journal: Journal | None = None) -> None:
        """Args:
        limit: how many works may wait; more are refused.
        journal: what is kept beside SQLite's file.
        """
        self._connection = connection
        self._journal = journal or Journal()
        self._queue: queue.Queue[Work[Any] | None] = queue.Queue()
        self._limit = limit
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.failures_unseen = 0
        self._thread = threading.Thread(target=self._work, name="ricordo-writer", daemon=True)
        self._thread.start()

    @property
    def connection(self) -> apsw.Connection:
        """The one it writes with; the writer's own until it is closed."""
        return self._connection

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def submit(self, run: Callable[[DatabaseSnapshot], T]) -> Future[T]:
        """Queue a work; its future cannot be cancelled.

        Raises:
            UnavailableError: the store is closing, or too much is waiting already.
        """
        future: Future[T] = Future()
        # A caller who stops waiting must not stop the work: from here on `cancel` has no effect.
        future.set_running_or_notify_cancel()
        self._put(Work(run, future))
        return future

    def submit_unseen(self, run: Callable[[DatabaseSnapshot], T]) -> None:
        """Queue a work nobody waits for; its failure is logged and counted. Raises as `submit` does."""
        self._put(Work(run, None))

    def _put(self, work: Work[Any]) -> None:
        with self._lock:  # after `close` has looked, nothing may slip in behind it
            if self._closing.is_set():
                raise UnavailableError("the store is closed", hint="open it again")
            if self._queue.qsize() >= self._limit:
                raise UnavailableError(f"{self._limit} writes are waiting", hint="await some of them, or slow down")
            self._queue.put(work)

    def close(self) -> None:
        """Write what is queued, then end. Closing twice is fine."""
        with self._lock:
            if not self._closing.is_set():
                self._closing.set()
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                outcomes = self._commit_together(batch)
            except apsw.BusyError as error:
                # Replayed one by one, each of them would wait as long again, one after the other.
                outcomes = [(work, None, _busy(error)) for work in batch]
            except RicordoError as error:
                outcomes = [(work, None, error) for work in batch]
            except apsw.Error as error:
                _log.warning("a batch of %d writes is replayed one by one: %s", len(batch), error)
                for work in batch:
                    self._commit_alone(work)
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                _log.exception("a batch of %d writes failed", len(batch))
                outcomes = [
                    (work, None, StoreError(f"cannot write: {error}", hint="please report this")) for work in batch
                ]
            for work, result, refusal in outcomes:
                self._resolve(work, result, refusal)
                faults.reached("writer: between answers")

    def _next_batch(self) -> list[Work[Any]] | None:
        """What is waiting now, at least one; None when the store closes and all is written."""
        first = self._queue.get()
        if first is None:
            return None
        batch = [first]
        with contextlib.suppress(queue.Empty):
            while len(batch) < _BATCH:
                work = self._queue.get_nowait()
                if work is None:
                    self._queue.put(None)
                    break
                batch.append(work)
        return batch

    def _commit_together(self, batch: list[Work[Any]]) -> list[Outcome]:
        """Whatever comes out of here as an error has been rolled back whole; nobody has been answered yet."""
        outcomes: list[Outcome] = []
        faults.reached("writer: before begin")
        with self._written():
            faults.reached("writer: after begin")
            for work in batch:
                outcomes.append((work, *self._run(work)))
                faults.reached("writer: between works")
        faults.reached("writer: after commit")
        return outcomes

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        """A transaction with its journal. Once that is written it has happened, whatever SQLite says afterwards."""
        with self._journal.held():
            self._connection = self._journal.current(self._connection)
            try:
                with transaction(self._connection):
                    self._journal.begin(self._connection)
                    yield
                    self._journal.write(self._connection)
                    faults.reached("writer: before commit")
            except apsw.Error as error:
                if not self._journal.is_written:
                    raise
                _log.warning("written, but the index is behind and will catch up: %s", error)
                self._catch_up()

    def _catch_up(self) -> None:
        """At once, so that who is answered finds what was written; where that cannot be, at the next writing."""
        with contextlib.suppress(apsw.Error, RicordoError):
            self._connection = self._journal.current(self._connection)

    def _run(self, work: Work[Any]) -> tuple[Any, BaseException | None]:
        """One work inside its savepoint. Its own refusals end here; SQLite's errors end the batch."""
        self._connection.execute("SAVEPOINT work")
        try:
            result = work.run(DatabaseSnapshot(self._connection))
        except apsw.ConstraintError as error:
            self._undo_work()
            return None, StoreError(f"the store refused the change: {error}", hint="please report this")
        except apsw.Error:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller, not to this thread
            self._undo_work()
            return None, error
        self._journal.worked(self._connection)
        self._connection.execute("RELEASE work")
        return result, None

    def _undo_work(self) -> None:
        self._connection.execute("ROLLBACK TO work")
        self._connection.execute("RELEASE work")

    def _commit_alone(self, work: Work[Any]) -> None:
        faults.reached("writer: replay")
        try:
            with translated("cannot write"), self._written():
                result, refusal = self._run(work)
        except RicordoError as error:
            self._resolve(work, None, error)
        else:
            self._resolve(work, result, refusal)

    def _resolve(self, work: Work[Any], result: Any, error: BaseException | None) -> None:
        if work.future is None:
            self._note_failure(error)
        elif error is None:
            work.future.set_result(result)
        else:
            work.future.set_exception(error)

    def _note_failure(self, error: BaseException | None) -> None:
        if error is not None:
            self.failures_unseen += 1
            _log.error("a write nobody awaited failed: %s", error)


def _busy(error: apsw.BusyError) -> UnavailableError:
    busy = UnavailableError("cannot write: another process holds the store", hint="try again")
    busy.__cause__ = error
    return busy


async def outcome(future: Future[T]) -> T:
    """Await a work from a coroutine. Whoever is cancelled stops waiting; the work goes on.

    `asyncio.wrap_future` would pass the cancellation on, and setting a result then raises in the writer's thread.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def end_waiting() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def wake(_: Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed; nobody waits any more
            loop.call_soon_threadsafe(end_waiting)

    future.add_done_callback(wake)
    await waiter
    return future.result()
