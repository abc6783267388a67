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
    found: dict[str, set[str]] = {}
    with _reading(path) as connection:
        if connection.pragma("application_id") == APPLICATION_ID:
            raise InvalidError(
                f"{path} is a Ricordo store", hint=f"`ricordo --store {path} export all.jsonl`, and import that"
            )
        names = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        try:
            for table, column in connection.execute(names):
                found.setdefault(str(table), set()).add(str(column))
        except apsw.SQLError:  # the query stops at a virtual table whose module is not loaded
            found = _plain_tables(connection)
    return {name: frozenset(columns) for name, columns in found.items()}


def _plain_tables(connection: apsw.Connection) -> dict[str, set[str]]:
    names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    columns = "SELECT name FROM pragma_table_info(?)"
    return {
        str(table): {str(column) for (column,) in connection.execute(columns, (table,))}
        for (table,) in connection.execute(names).fetchall()
    }


def rows(path: Path, table: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (row number, column to value) for each row of a table, in order. Raises InvalidError."""
    quoted = table.replace('"', '""')
    with _reading(path) as connection:
        cursor = connection.execute(f'SELECT * FROM "{quoted}"')  # the name comes from the file, and is quoted
        names: list[str] | None = None
        for number, row in enumerate(cursor, start=1):
            names = names or [column[0] for column in cursor.get_description()]
            yield number, dict(zip(names, row, strict=True))


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
