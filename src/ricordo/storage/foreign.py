"""Read SQLite files of other programs without changing them. Table names come from the file itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from ricordo.errors import InvalidError
from ricordo.storage.database.connection import APPLICATION_ID

_BUSY_MS = 5_000
_LEAST_ROW_BYTES = 4
"""In the file format of SQLite: two bytes that point to a row, its length and its key."""
_MOST_REPEATED = 10
"""How many times the size of a file its rows may hold together. A column that was added later may have a default, which
is stored once; beyond that, pages point to each other, and reading them may never end."""


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database. SQLite itself opens it: opened in any other way, a store in use would
    lose its locks when the file is closed.
    """
    if path.stat().st_size < 512:
        return False
    try:
        with _opened(path) as connection:
            connection.pragma("schema_version")
    except apsw.NotADBError:
        return False
    except apsw.Error as error:
        raise InvalidError(
            f"{path} cannot be read: {error}", hint="check that the file is complete and not damaged"
        ) from error
    return True


def tables(path: Path) -> Mapping[str, frozenset[str]]:
    """Return the tables of a database with their columns. Raises InvalidError."""
    with _reading(path) as connection:
        if connection.pragma("application_id") == APPLICATION_ID:
            raise InvalidError(
                f"{path} is a Ricordo store", hint=f"`ricordo --store {path} export all.jsonl`, and import that"
            )
        # Not virtual tables or views: they run queries that came with the file and may never end.
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        return {
            str(name): frozenset(_columns(connection, str(name))) for (name,) in connection.execute(names).fetchall()
        }


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    """Return the stored columns of a table. Generated ones are not stored, but may take long to compute."""
    return [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def rows(path: Path, table: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (row number, column to value) for each row of a table, in order. Raises InvalidError."""
    left = _MOST_REPEATED * (path.stat().st_size + _size(path.with_name(f"{path.name}-wal")))
    with _reading(path) as connection:
        names = _columns(connection, table)
        quoted = ", ".join(_quoted(name) for name in names)
        # The names come from the file itself, so they cannot be parameters.
        for number, row in enumerate(connection.execute(f"SELECT {quoted} FROM {_quoted(table)}"), start=1):
            left -= _LEAST_ROW_BYTES * _MOST_REPEATED
            left -= sum(len(value) for value in row if isinstance(value, str | bytes))
            if left < 0:
                raise InvalidError(
                    f"{path} cannot be read: its table {table} holds more than the file can contain",
                    hint="check that the file is complete and not damaged",
                )
            yield number, dict(zip(names, row, strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    try:
        with _opened(path) as connection:
            yield connection
    except apsw.Error as error:
        raise InvalidError(
            f"{path} cannot be read: {error}", hint="check that the file is complete and not damaged"
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    """Open a file for reading. In a read-only folder, its write-ahead log is not read."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    address = path.resolve().as_uri()
    connection = apsw.Connection(f"{address}?mode=ro", flags=flags)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        connection = apsw.Connection(f"{address}?mode=ro&immutable=1", flags=flags)
    except apsw.Error:
        connection.close()
        raise
    try:
        connection.set_busy_timeout(_BUSY_MS)
        yield connection
    finally:
        connection.close()
