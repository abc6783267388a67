"""The threads of a PostgreSQL store: one writes, a few read, each on its own connections.

Other processes may write as well: each batch first takes the store's advisory lock, so that commits have one order.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolTimeout

from ricordo.errors import UnavailableError
from ricordo.model import Scope
from ricordo.storage import faults
from ricordo.storage.database.candidates import Cache
from ricordo.storage.database.history import Truth
from ricordo.storage.database.statements import Asked, Unchanged
from ricordo.storage.database.store import Options
from ricordo.storage.database.threads import CommitHook, Refused, Work, Writer, refusal
from ricordo.storage.postgres.connection import PostgresConnection, configure, reconnected, translated
from ricordo.storage.postgres.location import Location
from ricordo.storage.postgres.snapshot import Caller, PostgresSnapshot, asked_by
from ricordo.storage.values import NOTHING_FORESEEN, Foreseen

T = TypeVar("T")

CALLERS_MOST = 1_000
_WAITED = (errors.LockNotAvailable, errors.QueryCanceled)


class PostgresWriter(Writer):
    """Owns the write connection and its thread."""

    errors = (psycopg.Error, errors.LockNotAvailable, (psycopg.IntegrityError, errors.InsufficientPrivilege))
    translated = staticmethod(translated)
    snapshot = PostgresSnapshot

    def __init__(self, connection: PostgresConnection, options: Options) -> None:
        self._options = options
        self.latest = 0
        """The number of batches when this process last wrote one."""
        super().__init__(connection, limit=options.queue_limit, hook=CommitHook())  # type: ignore[arg-type]

    @contextlib.contextmanager
    def _batch(self) -> Iterator[None]:
        """Run a block in one transaction. If the connection breaks during COMMIT, ask the server for the outcome."""
        connection = self._living()
        patience, durable = self._options.patience_s, self._options.durability == "disk"
        try:
            connection.begin_writing(patience_s=patience, is_durable=durable)
            yield
            faults.reached("writer: before commit")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                connection.end("ROLLBACK")
            raise
        try:
            connection.commit()
            self.latest = connection.latest
        except psycopg.Error as error:
            with contextlib.suppress(psycopg.Error):
                connection.end("ROLLBACK")
            if (
                isinstance(error, self.errors[2]) and not connection.has_savepoint
            ):  # of a row that was sent together with the COMMIT
                raise Refused(refusal(error)) from error
            number = connection.number
            if not isinstance(error, psycopg.OperationalError) or number is None or not self._is_committed(number):
                raise

    def _living(self) -> PostgresConnection:
        """Return the connection, or a new one if it is broken."""
        connection: Any = self._connection
        if connection.raw.closed or connection.raw.broken:
            raw = reconnected(connection.location, patience_s=self._options.patience_s)
            connection = PostgresConnection(raw, connection.location, connection.truth, upkeep=connection.upkeep)
            self._connection = connection
        found: PostgresConnection = connection
        return found

    def _committed(self, work: Work) -> tuple[Any, BaseException | None]:
        """Commit one job, again if the connection breaks: `_batch` first makes sure that the job was not committed."""
        until = time.monotonic() + self._options.patience_s
        while True:
            try:
                return super()._committed(work)
            except psycopg.OperationalError as error:
                if isinstance(error, _WAITED) or time.monotonic() >= until:
                    raise

    def _is_committed(self, number: int) -> bool:
        """Return whether a transaction was committed whose COMMIT got no answer.

        The server may still be committing, and the connection may break again.

        Raises:
            UnavailableError: the server cannot be reached. Writing again could write twice.
        """
        asked, until = "SELECT pg_xact_status(CAST(:number AS text)::xid8)", time.monotonic() + self._options.patience_s
        while True:
            try:
                state = self._living().execute(asked, {"number": str(number)}).get
                if state != "in progress":
                    return bool(state == "committed")
            except psycopg.OperationalError:
                pass
            if time.monotonic() >= until:
                hint = "check whether it was written, then try again"
                raise UnavailableError("the connection broke while the server committed", hint=hint)
            time.sleep(0.05)


class PostgresReaders:
    """A few threads that run queries, each on one snapshot."""

    def __init__(
        self,
        location: Location,
        *,
        threads: int,
        truth: Truth,
        patience_s: float,
        upkeep: str | None,
        latest: Callable[[], int],
    ) -> None:
        """
        Args:
            latest: returns the number of batches when this process last wrote one.
        """
        self._latest = latest
        self._location = location
        self._upkeep = upkeep
        self._truth = truth
        self._patience_s = patience_s
        self._cache = Cache()
        self._unchanged: tuple[int, dict[Scope | None, Unchanged]] = (-1, {})
        self._callers: dict[Scope, Caller] = {}
        self._lock = threading.Lock()
        self._connections: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            location.conninfo,
            kwargs={"autocommit": True},
            configure=lambda raw: configure(raw, location),
            min_size=1,
            max_size=2 * threads + 2,  # a question about the past takes two
            timeout=patience_s,
            open=True,
            name="ricordo",
        )
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="ricordo-reader")

    def submit(
        self, ask: Callable[[PostgresSnapshot], T], *, scope: Scope | None = None, foreseen: Foreseen = NOTHING_FORESEEN
    ) -> Future[T]:
        """Run a query in a reader thread, with the rights of `scope` if it is given. Raises UnavailableError."""
        try:
            future: Future[T] = Future()
            future.set_running_or_notify_cancel()
            self._threads.submit(self._answer_to, future, ask, scope, foreseen)
        except RuntimeError as error:
            raise UnavailableError("the store is closed", hint="open it again") from error
        return future

    def _answer_to(
        self, future: Future[T], ask: Callable[[PostgresSnapshot], T], scope: Scope | None, foreseen: Foreseen
    ) -> None:
        """Set the result or the error of a future. The caller does not wait for the end of the transaction."""
        try:
            self.answer(ask, future.set_result, scope, foreseen)
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            if not future.done():
                future.set_exception(error)

    def answer(
        self,
        ask: Callable[[PostgresSnapshot], T],
        give: Callable[[T], object],
        scope: Scope | None,
        foreseen: Foreseen = NOTHING_FORESEEN,
    ) -> None:
        """Pass the result of a query to `give`; repeat it if the connection breaks, within the store's patience."""
        until = time.monotonic() + self._patience_s
        with translated("cannot read"):
            while True:
                try:
                    return self._answer(ask, give, scope, foreseen)
                except (psycopg.OperationalError, psycopg.InterfaceError):
                    if time.monotonic() >= until:
                        raise
                    self._connections.check()  # replaces other broken connections

    def _answer(
        self, ask: Callable[[PostgresSnapshot], T], give: Callable[[T], object], scope: Scope | None, foreseen: Foreseen
    ) -> None:
        caller = like = None
        ahead: list[Asked] = []
        news: list[Asked] = []
        if scope is not None:
            caller, like = self._caller(scope)
            news = [*asked_by(foreseen.first), *self._cache.news(caller.spaces, caller.corpora)]
            ahead = [*caller.names_in(foreseen.about), *caller.within(foreseen.interval)]
            ahead += [*caller.replaced(foreseen.replaced), *caller.named(foreseen.names)]
            if like:
                ahead += [*like.anywhere(scope), *like.first_of(scope.owner, foreseen)]
            elif self._is_stale(scope):
                ahead += caller.asks(news)
            if not like and not self._cache.turns.are_held(caller.spaces):
                ahead += caller.words(foreseen.terms)
        with self.connected() as connection, reading(connection, scope=scope, ahead=ahead) as (version, rows):
            found = self._found(version, scope if self._upkeep else None)
            snapshot: Any = PostgresSnapshot(connection, self._cache, unchanged=found)  # type: ignore[arg-type]
            if scope is not None and caller is not None:
                snapshot.know_all(ahead, rows)
                snapshot.ask_cached(scope, caller, like, news)
            answer = ask(snapshot)
            if scope is not None and caller is not None:
                caller.learn(scope, found)
            give(answer)

    def _is_stale(self, scope: Scope) -> bool:
        """Return whether what a caller has cached is known to be out of date."""
        version, found = self._unchanged
        return version < self._latest() or (scope if self._upkeep else None) not in found

    def _caller(self, scope: Scope) -> tuple[Caller, Caller | None]:
        """Return what is known about a caller; of a new owner outside chats also about the latest other such owner."""
        with self._lock:
            caller = self._callers.pop(scope, None) or Caller()
            like = None
            if not caller.cached and scope == Scope(owner=scope.owner):
                others = (each for each in reversed(self._callers) if self._callers[each].cached)
                latest = next(others, None)
                like = self._callers[latest] if latest is not None and latest == Scope(owner=latest.owner) else None
            self._callers[scope] = caller  # the latest one is last
            if len(self._callers) > CALLERS_MOST:
                del self._callers[next(iter(self._callers))]
            return caller, like

    def holds_turns(self, scope: Scope) -> bool:
        """Return whether all turns of a caller are in memory."""
        caller = self._callers.get(scope)
        return caller is not None and self._cache.turns.are_held(caller.spaces)

    @contextlib.contextmanager
    def connected(self) -> Iterator[PostgresConnection]:
        """Provide a connection from the pool."""
        try:
            with self._connections.connection() as raw:
                yield PostgresConnection(raw, self._location, self._truth, upkeep=self._upkeep)
        except PoolTimeout as error:
            raise UnavailableError(
                "no connection to PostgreSQL is free", hint="check that the server runs, or raise its max_connections"
            ) from error

    def _found(self, version: int, scope: Scope | None) -> Unchanged:
        """Return what a caller has cached about the store as it was after this many batches."""
        with self._lock:
            if self._unchanged[0] != version:
                self._unchanged = (version, {})
            return self._unchanged[1].setdefault(scope, {})

    def close(self) -> None:
        """Let running queries finish, then close."""
        self._threads.shutdown(wait=True)
        self._connections.close()


@contextlib.contextmanager
def reading(
    connection: PostgresConnection, *, past: int | None = None, scope: Scope | None = None, ahead: Sequence[Asked] = ()
) -> Iterator[tuple[int, list[list[Any]]]]:
    """Run a block in one snapshot; yield what `begin_reading` returns."""
    try:
        yield connection.begin_reading(past=past, scope=scope, ahead=ahead)
    finally:
        with contextlib.suppress(psycopg.Error):
            connection.end("ROLLBACK")
