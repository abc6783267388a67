"""Copy a complete store between a PostgreSQL database and a single file: all rows, with history, hashes and vectors.

Both sides have the same tables. What the analyzer derives is derived again; the rest is copied and then verified: for
each table, the sums of the hashes of all rows must be equal. The target appears completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from psycopg.types.json import Jsonb

from ricordo.errors import InvalidError, StoreError
from ricordo.storage.database.connection import connect as connect_file
from ricordo.storage.database.hashes import row_sum
from ricordo.storage.database.history import named
from ricordo.storage.database.integrity import SUM_MASK
from ricordo.storage.database.schema import migrations, prepare
from ricordo.storage.database.statements import sql
from ricordo.storage.postgres.connection import PostgresConnection, escaped
from ricordo.storage.postgres.snapshot import PostgresSnapshot
from ricordo.storage.postgres.words import reindex
from ricordo.storage.sql import transaction, translated

_ELSEWHERE = frozenset(
    (
        "migrations",
        "counters",
        "words",
        "traits",
        "slots",
        "shelves",
        "sums",
        "packs",
        "leases",
        "removals",
        "proposals",
    )
)
"""Tables that are not copied: records specific to one backend, rows derived again, and work in progress."""
_BY_TRIGGERS = ("entity_counts", "relations_to_link", "to_link")
"""Tables that triggers of other tables fill: they are emptied and then copied last."""
_AT_ONCE = 2_000

Rows = Iterator[tuple[Any, ...]]


def copy_to_file(connection: PostgresConnection, target: Path) -> None:
    """Write the store that a connection reads into a new file. Raises StoreError."""
    partial_file = target.with_name(f"{target.name}.partial")
    partial_file.unlink(missing_ok=True)
    partial_file.touch(mode=0o600)
    try:
        with translated(f"cannot write {target}"):
            with closing(connect_file(partial_file, durability="process", patience_s=1)) as file:
                prepare(file, partial_file, migrations())
                _fill_file(file, connection)
            with closing(apsw.Connection(str(partial_file))) as file:
                file.execute("PRAGMA journal_mode = DELETE").fetchall()
        partial_file.replace(target)
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            partial_file.with_name(f"{partial_file.name}{ending}").unlink(missing_ok=True)


def _fill_file(file: apsw.Connection, source: PostgresConnection) -> None:
    file.execute("PRAGMA foreign_keys = OFF")
    columns = _columns(file, source)
    with transaction(file):
        for table, names in columns.items():
            file.execute(f'DELETE FROM "{table}"')
            marks = ", ".join("?" * len(names))
            statement = f'INSERT INTO "{table}" ({named(names)}) VALUES ({marks})'
            file.executemany(statement, _rows_of_server(source, table, names))
        for name in ("text_live_fill", "text_archive_fill", "slots_clear", "slots_fill"):
            file.execute(sql(name))
        file.execute(
            sql("nodes_traits_again"), {"nodes": json.dumps([row[0] for row in file.execute("SELECT key FROM nodes")])}
        )
        for table, last in source.execute("SELECT tbl, last FROM counters WHERE tbl != 'writes' AND last > 0"):
            file.execute(sql("sequence_begin"), {"table": table, "key": last})
            file.execute(sql("sequence_raise"), {"table": table, "key": last})
        _copy_shelves(file, source)
    _compare(columns, partial(_rows_of_server, source), partial(_rows_of_file, file))


def _copy_shelves(file: apsw.Connection, source: PostgresConnection) -> None:
    file.execute("DELETE FROM shelves")
    rows = source.execute("SELECT space, shelf, nodes, chars FROM shelves")
    file.executemany("INSERT INTO shelves (space, shelf, nodes, chars) VALUES (?, ?, ?, ?)", rows)


def fill_database(snapshot: PostgresSnapshot, path: Path) -> None:
    """Insert the rows of a file into an empty store, inside a write. Raises InvalidError, StoreError."""
    connection: Any = snapshot.connection
    if connection.execute("SELECT EXISTS (SELECT 1 FROM spaces)").get:
        raise InvalidError(
            f"path: {connection.location.path} is not empty", hint="add another ?schema=name; nothing is overwritten"
        )
    with closing(connect_file(path, read_only=True, patience_s=30)) as file:
        columns = _columns(file, connection)
        connection.execute("SET CONSTRAINTS ALL DEFERRED")
        for table in columns:
            connection.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
        for table, names in columns.items():
            connection.execute(f'DELETE FROM "{table}"')
            _copy_in(connection, table, names, _rows_of_file(file, table, names))
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in columns:
            connection.execute(f'ALTER TABLE "{table}" ENABLE TRIGGER USER')
        _copy_in(
            connection,
            "shelves",
            ("space", "shelf", "nodes", "chars"),
            file.execute("SELECT space, shelf, nodes, chars FROM shelves"),
        )
        _raise_keys(connection, file)
        _compare(columns, partial(_rows_of_file, file), partial(_rows_of_server, connection))
    reindex(snapshot, [key for (key,) in snapshot.rows("nodes_all")])


def _columns(file: apsw.Connection, server: PostgresConnection) -> dict[str, tuple[str, ...]]:
    """Return the tables to copy with their columns, in an order that references between tables allow."""
    known: dict[str, list[str]] = {}
    for table, column, _ in file.execute(sql("schema_columns")):
        known.setdefault(table, []).append(column)
    there = {row[0] for row in server.execute(server.text("schema_columns"))}
    tables = [name for name in known if name in there and name not in _ELSEWHERE]
    order = ["meta", "spaces", "commits", "models", *server.truth.tables]
    rank = {name: place for place, name in enumerate(order)}
    late = {name: len(order) + 9 for name in (*_BY_TRIGGERS, "passage_vectors", "word_vectors")}
    tables.sort(key=lambda name: (rank.get(name, late.get(name, len(order))), name))
    return {name: tuple(known[name]) for name in tables}


def _rows_of_server(server: PostgresConnection, table: str, columns: Sequence[str]) -> Rows:
    """Yield the rows of a table, fetched in batches."""
    with server.raw.cursor(name=f"rows_of_{table}") as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(f'SELECT {named(columns)} FROM "{table}"')
        yield from cursor


def _rows_of_file(file: apsw.Connection, table: str, columns: Sequence[str]) -> Rows:
    yield from file.execute(f'SELECT {named(columns)} FROM "{table}"')


def _copy_in(server: PostgresConnection, table: str, columns: Sequence[str], rows: Rows) -> None:
    """Insert rows into a table. A former version is converted to JSON, and its commit stored in a column."""
    names = (*columns, "made") if table == "history" else columns
    server.has_written = True
    with server.raw.cursor() as cursor, cursor.copy(f'COPY "{table}" ({named(names)}) FROM STDIN') as copy:
        for row in rows:
            if table == "history":
                image = json.loads(row[columns.index("before")])
                jsonb = Jsonb(
                    {name: escaped(value) if isinstance(value, str) else value for name, value in image.items()}
                )
                copy.write_row(
                    (
                        *(jsonb if name == "before" else value for name, value in zip(columns, row, strict=True)),
                        image["commit_seq"],
                    )
                )
            else:
                copy.write_row(row)


def _raise_keys(server: PostgresConnection, file: apsw.Connection) -> None:
    """Make sure that new rows get keys above all that were ever used."""
    given = dict(file.execute("SELECT name, seq FROM sqlite_sequence"))
    for table, last in given.items():
        server.execute(
            "UPDATE counters SET last = greatest(last, :last) WHERE tbl = :table", {"table": table, "last": last}
        )
    used = file.execute(sql("session_last_key")).get
    server.execute("UPDATE counters SET last = greatest(last, :last) WHERE tbl = 'sessions'", {"last": used})
    for table, column in server.execute(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = :schema AND is_identity = 'YES'",
        {"schema": server.location.schema},
    ):
        highest = max(given.get(table, 0), server.execute(f'SELECT coalesce(max("{column}"), 0) FROM "{table}"').get)
        if highest:
            sequence = f'"{server.location.schema}"."{table}_{column}_seq"'
            server.execute(
                "SELECT setval(CAST(:sequence AS regclass), :highest)", {"sequence": sequence, "highest": highest}
            )


def _compare(columns: Mapping[str, Sequence[str]], of_source: Any, of_target: Any) -> None:
    """Compare all rows of both sides. Raises StoreError."""
    for table, names in columns.items():
        one, other = _summed(table, of_source(table, names), names), _summed(table, of_target(table, names), names)
        if one != other:
            raise StoreError(
                f"the copy differs from the original in {table}: {one[0]} and {other[0]} rows",
                hint="please report this",
            )


def _summed(table: str, rows: Rows, columns: Sequence[str]) -> tuple[int, int]:
    """Return the number of rows, and the sum of their hashes."""
    count = total = 0
    before = columns.index("before") if table == "history" else None
    for row in rows:
        if before is not None:
            row = (*row[:before], json.dumps(json.loads(row[before]), sort_keys=True), *row[before + 1 :])
        count, total = count + 1, (total + row_sum(*row)) & SUM_MASK
    return count, total
