"""Connections to PostgreSQL with the interface that the shared statements need: SQLite's placeholders, plain tuples.

PostgreSQL cannot store NUL in a text. It is stored as U+F8F0 and "0", and U+F8F0 itself as U+F8F0 and "1".
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, cached_property, partial
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

from ricordo.errors import StoreError, UnavailableError
from ricordo.model import Scope
from ricordo.storage.database.hashes import former_hash
from ricordo.storage.database.history import Truth, read_truth
from ricordo.storage.database.statements import Asked
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
_BYTES = re.compile(r"(?:--[^\n]*\n)*(?:SELECT|WITH) [^;]*?\b(?:vectors?|traits)\b[^;]*?\bFROM\b")
_ROWS_AT_ONCE = 50
_APPLICATION = 0x52434F52
"""The first half of the keys of advisory locks: `RCOR`."""
_EVERYTHING = "everything"
_SPACE = re.compile(r"(?<![:\w]):(spaces?)\b")
_OWN_AS = {
    "space": "nullif(current_setting('ricordo.own', true), '')::bigint",
    "spaces": "('[' || current_setting('ricordo.own', true) || ']')",
}
_SMALL = frozenset(
    (
        "embeddings_position",
        "kinds_of_links",
        "lacking",
        "meta_get",
        "models_known",
        "names_any",
        "removals_since",
        "shelf_counts",
        "space_by_owner",
        "spaces_joined",
        "turns_position",
        "withheld_spans_any",
    )
)
"""Queries of a few short values, which are sent as one: each statement costs both sides as much again."""
_OF_ONE_ROW = "embeddings_new"
"""A query that returns one row, and that a search asks once for each kind of memories: these are sent as one, too."""
_ROWS_OF = "(SELECT json_agg(ROW(q.*)) FROM ({}) AS q)::text"
OWN: Any = object()
"""Stands for the space that the statement `own_space` finds, in place of its key or of a list with it."""


class _StrDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return escaped(obj).encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return _unescaped(text, "\0") if _ESCAPE in text else text


class _JsonLoader(Loader):
    """Keeps JSON as text, in which NUL is an escape sequence."""

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return _unescaped(text, "\\u0000") if _ESCAPE in text else text


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


class _BinaryJsonLoader(_JsonLoader):
    format = Format.BINARY


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
        ("text", _BinaryTextLoader),
        ("json", _JsonLoader),
        ("json", _BinaryJsonLoader),
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
        self._due: list[Callable[[], object]] = []
        """What the next round trip sends first."""
        self._showing: Callable[[], object] | None = None
        self._begun: psycopg.Cursor[Row] | None = None
        self.number: int | None = None
        """The number of the transaction of writes; None if it has not begun."""
        self.latest = 0
        """The number of batches when this connection last committed one."""
        self.has_savepoint = False
        """Whether this transaction has set a savepoint."""
        self._is_together = False
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
        """Show what a caller may see, or everything if None, from the next statement until the transaction ends."""
        wanted: Scope | str = _EVERYTHING if scope is None else scope
        if self.upkeep is not None and wanted != self._seen_by:
            if self._due and self._due[-1] is self._showing:
                self._due.pop()
            columns, given = self._seeing(scope)
            self._showing = partial(self._run, f"SELECT {columns}", given)
            self._due.append(self._showing)
            self._seen_by = wanted

    @contextmanager
    def seeing_everything(self) -> Iterator[None]:
        """Show the rows of all owners during a block."""
        before = self._seen_by
        self.see(None)
        try:
            yield
        finally:
            self.see(before if isinstance(before, Scope) else None)

    def _seeing(self, scope: Scope | None) -> tuple[str, list[str]]:
        """Return the columns of a query that shows what a caller may see, and their parameters."""
        if self.upkeep is None:
            return "NULL", []
        if scope is None:
            return "set_config('role', %s, true)", [self.upkeep]
        shared = "-" if scope.is_chat_itself else "*" if scope.spaces is None else json.dumps(list(scope.spaces))
        given = [each or "" for each in (scope.owner, scope.chat, shared)]
        return f"set_config('role', 'none', true), \"{self.location.schema}\".see(%s, %s, %s)", given

    def _run(self, statement: str, values: Any = None, *, prepare: bool | None = None) -> psycopg.Cursor[Row]:
        return self.raw.cursor().execute(statement, values, prepare=prepare, binary=_has_bytes(statement))

    @contextmanager
    def _in_pipeline(self) -> Iterator[None]:
        """Send what is due and the statements of a block in one round trip."""
        due, self._due = self._due, []
        with self.raw.pipeline():
            for each in due:
                each()
            yield
        if self._begun is not None:
            self.number, self._begun = int(self._begun.fetchall()[0][0]), None

    def execute(self, statement: str, values: Mapping[str, Any] | Sequence[Any] | None = None) -> Result:
        """Run a statement; return its rows."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise TimeoutError
        text, bound = _translated(statement, values)
        self._note(statement)
        if self._is_together:
            self._due.append(partial(self._run, text, bound))
            return Result()
        if statement.startswith("ROLLBACK TO"):  # it also undoes what was set in the savepoint
            self._due, self._seen_by = [], None
        with self._in_pipeline() if self._due else nullcontext():
            self._cursor.execute(text, bound, binary=_has_bytes(text))
        self.has_savepoint = self.has_savepoint or statement.startswith("SAVEPOINT")
        self._changed = self._cursor.rowcount
        return Result(self._cursor.fetchall()) if self._cursor.rownumber is not None else Result()

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of parameters, in one round trip; in a block of `in_one_trip`, later."""
        if not rows:
            return
        self.has_written, self.writes = True, self.writes + 1
        work = partial(_insert_all, self.raw, statement, list(rows))
        if self._is_together:
            self._due.append(work)
        else:
            with self._in_pipeline():
                work()

    @contextmanager
    def in_one_trip(self) -> Iterator[None]:
        """Send the statements of a block, which return no rows, in one round trip.

        Outside savepoints, that is the round trip of the next statement, or of the COMMIT; errors are raised there.
        """
        self._is_together = True
        try:
            yield
        finally:
            self._is_together = False
        if self.has_savepoint:
            with self._in_pipeline():
                pass

    def _note(self, statement: str) -> None:
        self.has_written = self.has_written or _is_noted(statement)
        self.writes += _is_write(statement)

    def rows_of_each(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """Run named statements with their parameters in one round trip; return the rows of each."""
        with self._in_pipeline():
            answers = self._ask(asked)
        return answers()

    def _ask(self, asked: Sequence[Asked]) -> Callable[[], list[list[Row]]]:
        """Send named statements; return a function that returns the rows of each once the server has answered."""
        for name, _ in asked:
            self._note(self.text(name))
        texts = [_located(self.text(name), values) for name, values in asked]
        small = sorted((place for place, (name, _) in enumerate(asked) if name in _SMALL), key=lambda at: texts[at])
        small = small if len(small) > 1 else []
        alike = [place for place, (name, _) in enumerate(asked) if name == _OF_ONE_ROW]
        alike = alike if len(alike) > 1 else []
        alone = [place for place in range(len(asked)) if place not in small and place not in alike]
        cursors = [self._run(*_translated(texts[place], asked[place][1])) for place in alone]
        stacked = self._run(*_as_rows([(texts[place], asked[place][1]) for place in alike])) if alike else None
        # Last: they may depend on what another one sets.
        joint = self._run(*_as_one([(texts[place], asked[place][1]) for place in small])) if small else None

        def answers() -> list[list[Row]]:
            found = dict(zip(alone, _rows_of(cursors), strict=True))
            if stacked is not None:
                found |= {alike[place]: [tuple(row)] for place, *row in stacked.fetchall()}
            if joint is not None:
                lists = (json.loads(each or "[]") for each in joint.fetchall()[0])
                found |= {
                    place: [tuple(row.values()) for row in rows] for place, rows in zip(small, lists, strict=True)
                }
            return [found[place] for place in range(len(asked))]

        return answers

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._changed

    def begin_reading(
        self, *, past: int | None = None, scope: Scope | None = None, ahead: Sequence[Asked] = ()
    ) -> tuple[int, list[list[Row]]]:
        """Begin one snapshot: of the past if a commit is given, and of what `scope` may see if it is given.

        Args:
            ahead: named statements with their parameters to run in the same round trip.

        Returns:
            The number of batches written before the snapshot, and the rows of each of these statements.
        """
        path = f'"{self.location.schema}"' if past is None else f'"{self.location.past}", "{self.location.schema}"'
        seen, given = self._seeing(scope)
        with self._in_pipeline():
            self._run(
                f"BEGIN ISOLATION LEVEL REPEATABLE READ {'READ ONLY' if past is None else 'READ WRITE'}", prepare=False
            )
            begun = self._run(
                f"SELECT (SELECT last FROM \"{self.location.schema}\".counters WHERE tbl = 'writes'),"
                f" set_config('search_path', %s, true), set_config('ricordo.as_of', %s, true), {seen}",
                [path, str(int(past or 0)), *given],
            )
            self._seen_by = _EVERYTHING if scope is None or self.upkeep is None else scope
            answers = self._ask(ahead)
        return int(begun.fetchall()[0][0]), answers()

    def begin_writing(self, *, patience_s: float, is_durable: bool) -> None:
        """Begin a transaction with the next statement, as soon as no other process writes to this store.

        That statement raises psycopg.errors.LockNotAvailable if another process writes for longer than the patience.
        """
        self._due, self.number = [partial(self._begin_writing, patience_s, is_durable)], None
        self._seen_by, self.has_savepoint, self.has_written = None, False, False
        self.see(None)

    def _begin_writing(self, patience_s: float, is_durable: bool) -> None:
        schema = self.location.schema
        self._run("BEGIN", prepare=False)
        self._run(
            "SELECT set_config('search_path', %s, true), set_config('lock_timeout', %s, true),"
            " set_config('synchronous_commit', %s, true)",
            [f'"{schema}"', str(max(1, round(patience_s * 1_000))), "on" if is_durable else "off"],
        )
        self._begun = self._run(
            "SELECT pg_current_xact_id()::text::bigint, pg_advisory_xact_lock(%s::int, hashtext(%s))",
            [_APPLICATION, schema],
        )

    def commit(self) -> None:
        """Commit a transaction of writes, unless it asked and wrote nothing. Increase the number of batches if readers'
        caches are no longer valid.
        """
        if self.number is None and self.has_written:
            with self._in_pipeline():  # the number decides whether a COMMIT without an answer took effect
                pass
        if self.number is None:
            self._due = []
            return
        with self._in_pipeline():
            if self.has_written:
                counters = f'"{self.location.schema}".counters'
                raised = self._run(f"UPDATE {counters} SET last = last + 1 WHERE tbl = 'writes' RETURNING last")
            self._run("COMMIT", prepare=False)
        if self.has_written:
            self.latest = int(raised.fetchall()[0][0])

    def end(self, statement: str) -> None:
        """Run COMMIT or ROLLBACK, without what is due."""
        self.deadline, self._due, self._begun = None, [], None
        self._cursor.execute(statement)

    # what other code computes with SQLite statements of its own

    def hashes_of(self, commit: int) -> list[bytes]:
        """Return the hashes that a commit's digest covers (see `integrity.hashes_of`)."""
        parts = [f'SELECT bare(seal) FROM "{name}" WHERE commit_seq = :seq' for name in self.truth.tables]
        parts.append("SELECT bare(decode(before ->> 'seal', 'hex')) FROM history WHERE made = :seq")
        asked = (" UNION ALL ".join(parts), "SELECT tbl, row, before FROM history WHERE seq = :seq")
        with self._in_pipeline():
            cursors = [self._run(*_translated(each, {"seq": commit})) for each in asked]
        written, former = _rows_of(cursors)
        return [hash_ for (hash_,) in written] + [former_hash(*row) for row in former]

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


def _rows_of(cursors: Sequence[psycopg.Cursor[Row]]) -> list[list[Row]]:
    return [cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


def _insert_all(raw: psycopg.Connection[Row], statement: str, rows: Sequence[Sequence[Any]]) -> None:
    wide, whole = _for_many_rows(statement), len(rows) - len(rows) % _ROWS_AT_ONCE
    cursor = raw.cursor()
    if wide is not None and whole:
        lots = (chain.from_iterable(rows[at : at + _ROWS_AT_ONCE]) for at in range(0, whole, _ROWS_AT_ONCE))
        cursor.executemany(wide, [tuple(lot) for lot in lots])
        rows = rows[whole:]
    bound = [_translated(statement, row) for row in rows]
    if bound:
        cursor.executemany(bound[0][0], [values for _, values in bound])


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


def _as_one(asked: Sequence[Asked]) -> tuple[str, dict[str, Any]]:
    """Return several queries as one, with their rows as JSON, and the parameters of all: `:after` of the third is
    `:after_3`.
    """
    return _joint(tuple(text for text, _ in asked)), _values_of_all(asked)


def _as_rows(asked: Sequence[Asked]) -> tuple[str, dict[str, Any]]:
    """Return several queries of one row as one query that returns these rows, each after its place; and the parameters
    of all.
    """
    return _stacked(tuple(text for text, _ in asked)), _values_of_all(asked)


def _values_of_all(asked: Sequence[Asked]) -> dict[str, Any]:
    return {f"{key}_{place}": value for place, (_, own) in enumerate(asked) for key, value in own.items()}


@cache
def _joint(statements: tuple[str, ...]) -> str:
    lists = (_ROWS_OF.format(each) for each in _with_own_values(statements))
    return _placeholders(f"SELECT {', '.join(lists)}")[0]


@cache
def _stacked(statements: tuple[str, ...]) -> str:
    rows = (f"SELECT {place}, q.* FROM ({each}) AS q" for place, each in enumerate(_with_own_values(statements)))
    return _placeholders(" UNION ALL ".join(rows))[0]


def _with_own_values(statements: Sequence[str]) -> Iterator[str]:
    """Yield statements whose parameters have names of their own."""
    yield from (_NAMED.sub(rf":\1_{place}", each) for place, each in enumerate(statements))


def _located(statement: str, values: Mapping[str, Any]) -> str:
    """Return a statement that reads its space from the transaction if the parameters hold `OWN`."""
    return _in_own_space(statement) if any(value is OWN for value in values.values()) else statement


@cache
def _in_own_space(statement: str) -> str:
    return _SPACE.sub(lambda found: _OWN_AS[found[1]], statement)


@cache
def _is_noted(statement: str) -> bool:
    """Return whether a statement changes what readers cache: anything but leases and usage counts."""
    return _is_write(statement) and _UNNOTED.search(statement) is None


@cache
def _is_write(statement: str) -> bool:
    return _WRITES.search(statement) is not None


@cache
def _has_bytes(statement: str) -> bool:
    """Return whether a statement returns bytes, which are twice as long as text."""
    return _BYTES.match(statement) is not None


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
