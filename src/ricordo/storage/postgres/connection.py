"""Connections to PostgreSQL with the interface that the shared statements need: SQLite's placeholders, plain tuples.

PostgreSQL cannot store NUL in a text. It is stored as U+F8F0 and "0", and U+F8F0 itself as U+F8F0 and "1".
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors, sql
from psycopg.adapt import Buffer, Loader
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

from ricordo.errors import StoreError, UnavailableError
from ricordo.model import Scope
from ricordo.storage.database.hashes import former_hash
from ricordo.storage.database.history import Truth, read_truth
from ricordo.storage.database.statements import statements as database_statements
from ricordo.storage.sql import named_statements

if TYPE_CHECKING:
    from ricordo.storage.postgres.location import Location

Row = tuple[Any, ...]

_ESCAPE = "\uf8f0"
_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|MERGE|TRUNCATE|ALTER)\b")
_UNNOTED = re.compile(r"^(?:INSERT INTO|UPDATE|DELETE FROM) (?:usage|leases)\b", re.MULTILINE)
_NUMBERED = re.compile(r"\?(\d+)")
_ONE_ROW = re.compile(r"VALUES (\([?:\w, ]+\))")
_ROWS_AT_ONCE = 50
_APPLICATION = 0x52434F52
"""The first half of the keys of advisory locks: `RCOR`."""
_EVERYTHING = "everything"


class _StrDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return escaped(obj).encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return _unescaped(text, "\0") if _ESCAPE in text else text


class _JsonLoader(Loader):
    """Keeps JSON as text, in which NUL is an escape sequence."""

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return _unescaped(text, "\\u0000") if _ESCAPE in text else text


class _NumericLoader(Loader):
    """Converts NUMERIC, which PostgreSQL returns for sums of integers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


def escaped(text: str) -> str:
    """Return a text in the form in which PostgreSQL can store it."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
    return text


def _unescaped(text: str, nul: str) -> str:
    return text.replace(f"{_ESCAPE}0", nul).replace(f"{_ESCAPE}1", _ESCAPE)


def connect(location: Location, *, timeout_s: float = 10.0) -> psycopg.Connection[Row]:
    """Open a connection. Raises psycopg.Error."""
    raw = psycopg.connect(location.conninfo, connect_timeout=max(1, round(timeout_s)), autocommit=True)
    configure(raw, location)
    return raw


def _is_pooled(raw: psycopg.Connection[Row]) -> bool:
    """Return whether a pooler answers in place of the server: it names another process than the one that runs queries.

    A pooler that does not forward prepared statements may run another client's statement of the same name.
    """
    answering: Row | None = raw.execute("SELECT pg_backend_pid()").fetchone()
    return answering != (raw.info.backend_pid,)


def configure(raw: psycopg.Connection[Row], location: Location) -> None:
    """Make a connection convert values as the statements of the store expect, and prepare them where that is safe."""
    if location.prepare is False or (location.prepare is None and _is_pooled(raw)):
        raw.prepare_threshold = None
    raw.adapters.register_dumper(str, _StrDumper)
    raw.adapters.register_dumper(int, Int8Dumper)
    for name, loader in (
        ("text", _TextLoader),
        ("json", _JsonLoader),
        ("jsonb", _JsonLoader),
        ("numeric", _NumericLoader),
    ):
        raw.adapters.register_loader(name, loader)


class Result(list[Row]):
    """The rows of a statement."""

    @property
    def get(self) -> Any:
        """The first column of the first row, or None."""
        return self[0][0] if self else None

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        return self

    def fetchone(self) -> Row | None:
        """Return the first row, or None."""
        return self[0] if self else None


class PostgresConnection:
    """One connection with one store, which runs the statements of the shared code."""

    def __init__(
        self, raw: psycopg.Connection[Row], location: Location, truth: Truth | None = None, *, upkeep: str | None = None
    ) -> None:
        """
        Args:
            upkeep: the role that sees all owners; None if the connection's own role does.
        """
        self.raw = raw
        self.location = location
        self.upkeep = upkeep
        self._seen_by: Scope | str | None = None
        self.deadline: float | None = None
        """The time on the clock of `time.monotonic` after which no statement starts."""
        self._cursor = raw.cursor()
        self._changed = 0
        self.has_written = False
        """Whether this transaction has written anything that readers cache."""
        self.writes = 0
        """How many statements of this connection have written anything."""
        if truth is not None:
            self.truth = truth

    @cached_property
    def truth(self) -> Truth:
        """The truth tables as the schema describes them."""
        return read_truth(lambda name: self.execute(self.text(name)))

    def text(self, name: str) -> str:
        """Return a named statement with this store's schema names, in the variant for the current caller."""
        guarded = f"{name}_guarded"
        return _worded(self.location, guarded if isinstance(self._seen_by, Scope) and guarded in statements() else name)

    def see(self, scope: Scope | None) -> None:
        """Show what a caller may see, or everything if None, until the transaction or savepoint ends."""
        wanted: Scope | str = _EVERYTHING if scope is None else scope
        if self.upkeep is not None and wanted != self._seen_by:
            self._cursor.execute("".join(self._seeing(scope)))
            self._seen_by = wanted

    @contextmanager
    def seeing_everything(self) -> Iterator[None]:
        """Show the rows of all owners during a block."""
        before = self._seen_by
        self.see(None)
        try:
            yield
        finally:
            with suppress(psycopg.Error):  # a rollback in the block may have undone the setting
                self.see(before if isinstance(before, Scope) else None)

    def _seeing(self, scope: Scope | None) -> tuple[str, ...]:
        """Return the statements that show what a caller may see in a transaction; none if the role sees everything."""
        if self.upkeep is None:
            return ()
        if scope is None:
            return (f'SET LOCAL ROLE "{self.upkeep}";',)
        shared = "-" if scope.is_chat_itself else "*" if scope.spaces is None else json.dumps(list(scope.spaces))
        given = ", ".join(sql.quote(escaped(each or "")) for each in (scope.owner, scope.chat, shared))
        return "SET LOCAL ROLE NONE;", f'SELECT "{self.location.schema}".see({given});'

    def execute(self, statement: str, values: Mapping[str, Any] | Sequence[Any] | None = None) -> Result:
        """Run a statement; return its rows."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise TimeoutError
        text, bound = _translated(statement, values)
        self._cursor.execute(text, bound)
        if statement.startswith("ROLLBACK TO"):  # it also undoes what was set in the savepoint
            self._seen_by = None
        self._changed = self._cursor.rowcount
        self._note(statement)
        return Result(self._cursor.fetchall()) if self._cursor.description else Result()

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters, in one round trip."""
        if not rows:
            return
        self.has_written, self.writes = True, self.writes + 1
        wide, whole = _for_many_rows(statement), len(rows) - len(rows) % _ROWS_AT_ONCE
        cursor = self.raw.cursor()
        if wide is not None and whole:
            lots = (chain.from_iterable(rows[at : at + _ROWS_AT_ONCE]) for at in range(0, whole, _ROWS_AT_ONCE))
            cursor.executemany(wide, [tuple(lot) for lot in lots])
            rows = rows[whole:]
        bound = [_translated(statement, row) for row in rows]
        if bound:
            cursor.executemany(bound[0][0], [values for _, values in bound])

    @contextmanager
    def in_one_trip(self) -> Iterator[None]:
        """Send the statements of a block, which return no rows, in one round trip. Errors are raised at its end."""
        with self.raw.pipeline():
            yield

    def _note(self, statement: str) -> None:
        self.has_written = self.has_written or _is_noted(statement)
        self.writes += _WRITES.search(statement) is not None

    def rows_of_each(
        self, asked: Sequence[tuple[str, Mapping[str, Any]]], *, scope: Scope | None = None
    ) -> list[list[Row]]:
        """Run named statements with their parameters in one round trip; return the rows of each.

        Args:
            scope: first show what this caller may see.
        """
        cursors = []
        with self.raw.pipeline():
            if scope is not None and self.upkeep is not None and scope != self._seen_by:
                for each in self._seeing(scope):
                    self._cursor.execute(each)
                self._seen_by = scope
            for name, values in asked:
                statement = self.text(name)
                self._note(statement)
                cursors.append(self.raw.cursor().execute(*_translated(statement, values)))
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._changed

    def begin_reading(self, *, past: int | None = None, scope: Scope | None = None) -> int:
        """Begin one snapshot: of the past if a commit is given, and of what `scope` may see if it is given.

        Returns:
            The number of batches written before the snapshot.
        """
        path = f'"{self.location.schema}"' if past is None else f'"{self.location.past}", "{self.location.schema}"'
        mode = "READ ONLY" if past is None else "READ WRITE"
        self._cursor.execute(
            f"BEGIN ISOLATION LEVEL REPEATABLE READ {mode}; SET LOCAL search_path = {path};"
            f" SET LOCAL ricordo.as_of = '{int(past or 0)}'; {''.join(self._seeing(scope))}"
            f" SELECT last FROM \"{self.location.schema}\".counters WHERE tbl = 'writes'"
        )
        self._seen_by = _EVERYTHING if scope is None or self.upkeep is None else scope
        return int(self._last()[0][0])

    def begin_writing(self, *, patience_s: float, is_durable: bool) -> int:
        """Begin a transaction as soon as no other process writes to this store. Return its number.

        Raises:
            psycopg.errors.LockNotAvailable: another process wrote for longer than the patience.
        """
        schema = self.location.schema
        self._cursor.execute(
            f'BEGIN; SET LOCAL search_path = "{schema}"; SET LOCAL lock_timeout = {max(1, round(patience_s * 1_000))};'
            f" SET LOCAL synchronous_commit = {'on' if is_durable else 'off'};"
            f" SELECT pg_advisory_xact_lock({_APPLICATION}, hashtext('{schema}'));"
            f" {''.join(self._seeing(None))} SELECT pg_current_xact_id()::text::bigint"
        )
        self._seen_by = _EVERYTHING
        self.has_written = False
        return int(self._last()[0][0])

    def commit(self) -> None:
        """Commit a transaction of writes. Increase the number of batches if readers' caches are no longer valid."""
        raised = f"UPDATE \"{self.location.schema}\".counters SET last = last + 1 WHERE tbl = 'writes'; "
        self.end(f"{raised if self.has_written else ''}COMMIT")

    def end(self, statement: str) -> None:
        """Run COMMIT or ROLLBACK."""
        self.deadline = None
        self._cursor.execute(statement)

    def _last(self) -> list[Row]:
        """Return the rows of the last one of several statements."""
        while self._cursor.nextset():
            pass
        return list(self._cursor.fetchall())

    # what other code computes with SQLite statements of its own

    def hashes_of(self, commit: int) -> list[bytes]:
        """Return the hashes that a commit's digest covers (see `integrity.hashes_of`)."""
        parts = [f'SELECT bare(seal) FROM "{name}" WHERE commit_seq = %(seq)s' for name in self.truth.tables]
        parts.append("SELECT bare(decode(before ->> 'seal', 'hex')) FROM history WHERE made = %(seq)s")
        self._cursor.execute(" UNION ALL ".join(parts), {"seq": commit})
        written = [row[0] for row in self._cursor.fetchall()]
        self._cursor.execute("SELECT tbl, row, before FROM history WHERE seq = %(seq)s", {"seq": commit})
        return written + [former_hash(*row) for row in self._cursor.fetchall()]

    def all_hashes(self) -> Iterator[tuple[int, bytes, bool]]:
        """Yield (commit, hash, whether it replaces another hash) for all commits, in order (see `integrity`)."""
        parts = [f'SELECT commit_seq, bare(seal), FALSE FROM "{name}"' for name in self.truth.tables]
        parts.append("SELECT made, bare(decode(before ->> 'seal', 'hex')), FALSE FROM history")
        parts.append("SELECT made, hash, FALSE FROM erased WHERE what != 'words'")
        parts.append("SELECT made, now, TRUE FROM erased WHERE what != 'words' AND now IS NOT NULL")
        found = list(self.execute(" UNION ALL ".join(parts)))
        former = self.execute("SELECT seq, tbl, row, before FROM history")
        found += [(seq, former_hash(*row), False) for seq, *row in former]
        yield from sorted(found, key=lambda each: each[0])


@cache
def statements() -> dict[str, str]:
    """Return every statement by name: the `.sql` files in `queries`, and the statements of SQLite listed in
    `shared.txt`, which work in both databases.
    """
    shared = (files("ricordo.storage.postgres") / "queries" / "shared.txt").read_text(encoding="utf-8").split()
    of_sqlite = database_statements()
    return {name: of_sqlite[name] for name in shared} | named_statements("ricordo.storage.postgres", "queries")


@cache
def _worded(location: Location, name: str) -> str:
    return location.worded(statements()[name])


@cache
def _is_noted(statement: str) -> bool:
    """Return whether a statement changes what readers cache: anything but leases and usage counts."""
    return _WRITES.search(statement) is not None and _UNNOTED.search(statement) is None


@cache
def _placeholders(statement: str) -> tuple[str, str]:
    """Return a statement with the placeholders of psycopg, and how its parameters are passed."""
    escaped = statement.replace("%", "%%")
    if _NUMBERED.search(escaped):
        return _NUMBERED.sub(r"%(p\1)s", escaped), "numbered"
    if "?" in escaped:
        return escaped.replace("?", "%s"), "in order"
    return _NAMED.sub(r"%(\1)s", escaped), "named"


@cache
def _for_many_rows(statement: str) -> str | None:
    """Return an INSERT of one row as an INSERT of many, which takes a fraction of the time; None if it must stay alone:
    one statement cannot update a row twice.
    """
    if "DO UPDATE" in statement or len(_ONE_ROW.findall(statement)) != 1:
        return None
    text = _ONE_ROW.sub(lambda found: f"VALUES {', '.join([found[1]] * _ROWS_AT_ONCE)}", statement)
    return _placeholders(text)[0] if _placeholders(text)[1] == "in order" else None


def _translated(statement: str, values: Mapping[str, Any] | Sequence[Any] | None) -> tuple[str, Any]:
    text, how = _placeholders(statement)
    if how == "numbered" and values is not None and not isinstance(values, Mapping):
        return text, {f"p{number}": value for number, value in enumerate(values, 1)}
    return text, {} if values is None else values


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate errors of PostgreSQL into errors of Ricordo, with a remedy.

    Args:
        doing: what failed, such as "cannot write".
    """
    try:
        yield
    except (errors.LockNotAvailable, errors.QueryCanceled) as error:
        raise UnavailableError(f"{doing}: another process holds the store", hint="try again") from error
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StoreError(f"{doing}: the server is out of space: {_said(error)}", hint="free some and repeat") from error
    except (errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName) as error:
        hint = "remove prepare=on from the address: the pooler before the server does not forward prepared statements"
        raise StoreError(f"{doing}: {_said(error)}", hint=hint) from error
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{doing}: {_said(error)}", hint="grant the role its rights (docs/how-to/use-postgresql.md)"
        ) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        hint = "check that the server runs and the address is right, then try again"
        raise UnavailableError(f"{doing}: no connection to PostgreSQL: {_said(error)}", hint=hint) from error
    except psycopg.Error as error:
        raise StoreError(f"{doing}: {_said(error)}", hint="please report this") from error


def _said(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def reconnected(location: Location, *, patience_s: float) -> psycopg.Connection[Row]:
    """Open a connection, retrying for a while: a restarting server is back in seconds. Raises psycopg.Error."""
    until = time.monotonic() + patience_s
    while True:
        try:
            return connect(location, timeout_s=max(1.0, until - time.monotonic()))
        except psycopg.OperationalError:
            if time.monotonic() >= until:
                raise
            time.sleep(random.uniform(0.05, 0.2))
