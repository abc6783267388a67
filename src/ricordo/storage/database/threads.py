"""The threads of a store: one writes to the database, a few read from it.

Jobs that wait in the queue are committed together, each in its own savepoint, so that one failure does not affect the
others. A job that waits alone needs no savepoint: it fails with its transaction. After an error of SQLite itself, the
whole batch is rolled back and repeated job by job: on a full disk SQLite may roll back everything by itself, and the
next statement would then be committed alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

import apsw

from ricordo.errors import RicordoError, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.database.candidates import Cache
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Unchanged, sql
from ricordo.storage.sql import read_snapshot, transaction, translated

T = TypeVar("T")

_log = logging.getLogger("ricordo.storage")

# The maximum number of jobs in one commit. More would only delay the first ones.
_BATCH = 256


class CommitHook:
    """What a backend does around each batch. This one does nothing: the SQLite file is all there is to write."""

    is_written = False
    """Whether the current batch counts as done, even if the database fails afterwards."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other writers out for the duration of a batch."""
        return nullcontext()

    def current(self, connection: apsw.Connection) -> apsw.Connection:
        """Return the connection for writing: a new one if the database was replaced."""
        return connection

    def begin(self, connection: apsw.Connection) -> None:
        """Called after the transaction has begun."""

    def work_done(self, connection: apsw.Connection) -> None:
        """Called after each job, while its changes are still separate from the changes of the next one."""

    def write(self, connection: apsw.Connection) -> None:
        """Called right before the COMMIT. Then the batch counts as done; if it raises apsw.Error, nothing is kept."""

    def committed(self, connection: apsw.Connection) -> None:
        """Called right after the COMMIT, before any caller gets a result. Raises RicordoError if nothing was kept."""

    def check_readable(self) -> None:
        """Called before a reader opens the database. Raises StoreError if the file was replaced by a different one."""

    @property
    def generation(self) -> int:
        """The identity of the database file. It changes when the file is replaced."""
        return 0

    @property
    def is_readable(self) -> bool:
        """Whether the database file exists. If it is missing, the next write rebuilds it."""
        return True


class Work(NamedTuple):
    """A job for the writer. Its result goes to the future; without one, failures are only logged and counted."""

    run: Callable[[DatabaseSnapshot], Any]
    future: Future[Any] | None


Outcome: TypeAlias = tuple[Work, Any, BaseException | None]
"""A job, its result, and the error it failed with, if any."""


class Refused(Exception):
    """The only job of a transaction failed. Raised to roll the transaction back."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def refusal(error: Exception) -> StoreError:
    """Return the error for the caller of a job with a row that the database refuses."""
    return StoreError(f"the store refused the change: {error}", hint="please report this")


class Writer:
    """Owns the write connection and its thread. Subclasses for other databases replace `errors`."""

    errors: tuple[type[Exception], type[Exception], tuple[type[Exception], ...]] = (
        apsw.Error,
        apsw.BusyError,
        (apsw.ConstraintError,),
    )
    """Any error of the database; the error that another process holds it; and the errors of a row that it refuses."""
    translated = staticmethod(translated)
    snapshot: Callable[[Any], DatabaseSnapshot] = DatabaseSnapshot

    def __init__(self, connection: apsw.Connection, *, limit: int, hook: CommitHook) -> None:
        """Start the thread. Further jobs are refused while `limit` of them wait."""
        self._connection = connection
        self._hook = hook
        self._queue: queue.Queue[Work | None] = queue.Queue()
        self._limit = limit
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.unawaited_failures = 0
        self._thread = threading.Thread(target=self._work, name="ricordo-writer", daemon=True)
        self._thread.start()

    @property
    def connection(self) -> apsw.Connection:
        """The write connection. Only the writer may use it before it is closed."""
        return self._connection

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def submit(self, run: Callable[[DatabaseSnapshot], T]) -> Future[T]:
        """Queue a job. Its future cannot be cancelled. Raises UnavailableError."""
        future: Future[T] = Future()
        # A caller who stops waiting must not stop the job: from here on, `cancel` has no effect.
        future.set_running_or_notify_cancel()
        self._put(Work(run, future))
        return future

    def submit_unawaited(self, run: Callable[[DatabaseSnapshot], T]) -> None:
        """Queue a job without awaiting its result. A failure is logged and counted. Raises like `submit`."""
        self._put(Work(run, None))

    def _put(self, work: Work) -> None:
        with self._lock:  # nothing may be queued after `close` has begun
            if self._closing.is_set():
                raise UnavailableError("the store is closed", hint="open it again")
            if self._queue.qsize() >= self._limit:
                raise UnavailableError(f"{self._limit} writes are waiting", hint="await some of them, or slow down")
            self._queue.put(work)

    def close(self) -> None:
        """Write what is queued, then end the thread. It may be called twice."""
        with self._lock:
            if not self._closing.is_set():
                self._closing.set()
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                outcomes = self._commit_together(batch)
            except self.errors[1] as error:
                # If they were repeated one by one, each would wait as long again.
                busy = UnavailableError("cannot write: another process holds the store", hint="try again")
                busy.__cause__ = error
                outcomes = [(work, None, busy) for work in batch]
            except RicordoError as error:
                outcomes = [(work, None, error) for work in batch]
            except self.errors[0] as error:
                _log.info("a batch of %d writes is repeated one by one: %s", len(batch), error)
                for work in batch:
                    self._commit_alone(work)
                continue
            except Exception as error:  # noqa: BLE001 - every caller must get an answer
                _log.exception("a batch of %d writes failed", len(batch))
                outcomes = [
                    (work, None, StoreError(f"cannot write: {error}", hint="please report this")) for work in batch
                ]
            for work, result, refusal in outcomes:
                self._resolve(work, result, refusal)
                faults.reached("writer: between answers")

    def _next_batch(self) -> list[Work] | None:
        """Wait for at least one job and return all that wait; None once the store closes and everything is written."""
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

    def _commit_together(self, batch: list[Work]) -> list[Outcome]:
        """Commit a batch. If this raises, all of it was rolled back, and no caller has a result yet."""
        outcomes: list[Outcome] = []
        faults.reached("writer: before begin")
        try:
            with self._batch():
                faults.reached("writer: after begin")
                for work in batch:
                    outcomes.append((work, *(self._run(work) if len(batch) > 1 else self._run_only(work))))
                    faults.reached("writer: between works")
        except Refused as refused:
            return [(batch[0], None, refused.error)]
        faults.reached("writer: after commit")
        return outcomes

    @contextlib.contextmanager
    def _batch(self) -> Iterator[None]:
        """Run a block in a transaction with its hook. Once the hook has written, the batch counts as done, even if
        SQLite fails afterwards.
        """
        with self._hook.locked():
            self._connection = self._hook.current(self._connection)
            try:
                with transaction(self._connection):
                    self._hook.begin(self._connection)
                    yield
                    self._hook.write(self._connection)
                    faults.reached("writer: before commit")
                self._hook.committed(self._connection)
            except apsw.Error as error:
                if not self._hook.is_written:
                    raise
                _log.warning("the change is saved, but the index is behind and will be updated later: %s", error)
                with contextlib.suppress(apsw.Error, RicordoError):  # otherwise the next write updates the index
                    self._connection = self._hook.current(self._connection)

    def _run(self, work: Work) -> tuple[Any, BaseException | None]:
        """Run one of several jobs in its savepoint. Errors of the job are returned; errors of SQLite end the batch."""
        self._connection.execute("SAVEPOINT work")
        result, error = self._ask(work)
        if error is not None:
            self._connection.execute("ROLLBACK TO work")
        else:
            self._hook.work_done(self._connection)
        self._connection.execute("RELEASE work")
        return result, error

    def _run_only(self, work: Work) -> tuple[Any, None]:
        """Run the only job of a transaction without a savepoint. Within a savepoint, SQLite keeps a copy of every
        changed page, and statements get slower with their number. Raises Refused if the job fails.
        """
        result, error = self._ask(work)
        if error is not None:
            raise Refused(error)
        self._hook.work_done(self._connection)
        return result, None

    def _ask(self, work: Work) -> tuple[Any, BaseException | None]:
        """Return the result of a job, or its error. Raises errors of the database itself."""
        try:
            snapshot = self.snapshot(self._connection)
            snapshot.generation = self._hook.generation
            return work.run(snapshot), None
        except self.errors[2] as error:
            return None, refusal(error)
        except self.errors[0]:
            raise
        except BaseException as error:  # noqa: BLE001 - the error belongs to the caller, not to this thread
            return None, error

    def _commit_alone(self, work: Work) -> None:
        faults.reached("writer: replay")
        try:
            with self.translated("cannot write"):
                result, refusal = self._committed(work)
        except RicordoError as error:
            self._resolve(work, None, error)
        else:
            self._resolve(work, result, refusal)

    def _committed(self, work: Work) -> tuple[Any, BaseException | None]:
        """Commit one job; return its result, or its own error."""
        with self._batch():
            return self._run(work)

    def _resolve(self, work: Work, result: Any, error: BaseException | None) -> None:
        if work.future is not None and error is None:
            work.future.set_result(result)
        elif work.future is not None:
            work.future.set_exception(error)
        elif error is not None:
            self.unawaited_failures += 1
            _log.error("a background write failed: %s", error)


async def outcome(future: Future[T]) -> T:
    """Await a future from a coroutine. A cancelled caller stops waiting; the job continues.

    `asyncio.wrap_future` would cancel the future as well, and the writer's thread would fail to set its result.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def end_waiting() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def wake(_: Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits any more
            loop.call_soon_threadsafe(end_waiting)

    future.add_done_callback(wake)
    await waiter
    return future.result()


@dataclass(slots=True)
class _ReadConnection:
    """A read connection, and its cached results about the whole store since the last write."""

    generation: int
    connection: apsw.Connection
    version: int | None = None
    found: Unchanged = field(default_factory=dict)

    def unchanged(self) -> Unchanged:
        """Return the cached results that are valid in the snapshot just begun: none after a write.

        Reading the version also fixes the snapshot: everything read afterwards is of the same state.
        """
        version = self.connection.execute(sql("data_version")).get
        if version != self.version:
            self.version, self.found = version, {}
        return self.found


class Readers:
    """A few threads that run queries, each on one snapshot."""

    def __init__(self, connect: Callable[[], apsw.Connection], *, threads: int, generation: Callable[[], int]) -> None:
        """Start without connections: each thread opens its own, and a new one when the file's `generation` changes."""
        self._connect = connect
        self._generation = generation
        self._seen = generation()
        self._threads = threading.local()
        self._cache = Cache()
        self._lock = threading.Lock()
        self._connections: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ricordo-reader")

    def submit(self, ask: Callable[[DatabaseSnapshot], T]) -> Future[T]:
        """Run a query in a reader thread. Raises UnavailableError."""
        try:
            return self._pool.submit(self._answer, ask)
        except RuntimeError as error:
            raise UnavailableError("the store is closed", hint="open it again") from error

    def _answer(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        generation, cache = self._current()
        own: _ReadConnection | None = getattr(self._threads, "own", None)
        if own is None or own.generation != generation:
            own = self._threads.own = _ReadConnection(generation, self._connect())
            with self._lock:
                self._connections.append(own.connection)
        with translated("cannot read"), read_snapshot(own.connection):
            snapshot = DatabaseSnapshot(own.connection, cache, unchanged=own.unchanged())
            snapshot.generation = own.generation
            return ask(snapshot)

    def _current(self) -> tuple[int, Cache]:
        with self._lock:  # else a thread that saw the old file could be given the cache of the new one
            generation = self._generation()
            if generation != self._seen:
                self._seen, self._cache = generation, Cache()
            return generation, self._cache

    def close(self) -> None:
        """Let running queries finish, then close. An open reader would keep the log from being truncated."""
        self._pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        self._connections.clear()
