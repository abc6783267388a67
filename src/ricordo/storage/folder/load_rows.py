"""Lines become rows of an index, table by table."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import apsw

from ricordo.storage.database.bulk_insert import insert_all
from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import Row
from ricordo.storage.folder.change_lines import text_of_key, where_key
from ricordo.storage.folder.keys import KnownKeys
from ricordo.storage.folder.layout import MEMORY_FILES
from ricordo.storage.folder.lines import Line, Shape, Shapes, Unfit, encode, milliseconds

_KEY_DIGITS = 18
"""Of the largest key that SQLite can hold, less one."""


def shape_of(shapes: Shapes, file: str, line: Line) -> Shape | None:
    """What sort of row a line of a file is; a memory may be in three files."""
    kind = str(line.get("kind", ""))
    if not kind and file in MEMORY_FILES:
        return shapes.rows["nodes"]
    return shapes.by_kind.get((file, kind))


def drop_dangling(connection: apsw.Connection, shapes: Shapes, table: str) -> Iterator[tuple[str, str]]:
    """Take rows out of a table whose references lead nowhere: (row, the table that lacks what it refers to) of each.
    Names come from the schema.
    """
    shape = shapes.rows.get(table) or shapes.kept.get(table)
    key = shape.table.key if shape else ("NULL",)  # of what is made again anyway
    for reference in shapes.truth.references:
        if reference.table == table:
            gone = connection.execute(
                f'DELETE FROM "{table}" WHERE "{reference.column}" IS NOT NULL AND NOT EXISTS '
                f'(SELECT 1 FROM "{reference.target}" AS o WHERE o.rowid = "{table}"."{reference.column}")'
                f" RETURNING {', '.join(key)}"
            )
            yield from ((text_of_key(row), reference.target) for row in gone.fetchall())


class Inserting:
    """New rows of a table, many at a time. Names come from the schema, so the statements are put together."""

    def __init__(self, connection: apsw.Connection, table: str, columns: Sequence[str]) -> None:
        names = ", ".join(f'"{name}"' for name in columns)
        marks = f"({', '.join('?' * len(columns))})"
        self._connection = connection
        self._one = f'INSERT INTO "{table}" ({names}) VALUES {marks}'

    def possible(self, rows: Sequence[Row]) -> list[str | None]:
        """Put in all that can be. Why not, for each; None where it was."""
        self._connection.execute("SAVEPOINT inserting")
        try:
            insert_all(self._connection, self._one, rows)
            found: list[str | None] = [None] * len(rows)
        except (apsw.ConstraintError, apsw.MismatchError):
            self._connection.execute("ROLLBACK TO inserting")
            found = list(self._one_by_one(rows))
        self._connection.execute("RELEASE inserting")
        return found

    def _one_by_one(self, rows: Sequence[Row]) -> Iterator[str | None]:
        for row in rows:
            try:
                self._connection.execute(self._one, row)
            except (apsw.ConstraintError, apsw.MismatchError) as error:
                yield str(error)
            else:
                yield None


def whole_image(shape: Shape, line: Line, keys: KnownKeys) -> dict[str, Any]:
    """A row from a line that a commit wrote. Raises Unfit."""
    return dict(zip(shape.table.columns, shape.whole(line, keys), strict=True))


COMMIT_COLUMNS = ("seq", "space", "at", "actor", "origin", "reason", "run_id", "seal", "digest", "hash")


def commit_row(line: Line, keys: KnownKeys) -> Row:
    """`COMMIT_COLUMNS` of the line of a commit. Raises Unfit."""
    if any(type(line.get(name)) is not str for name in ("actor", "origin", "reason")):
        raise Unfit("no commit: it does not say who made it, whence and why")
    if not isinstance(line.get("run_id", ""), str):
        raise Unfit("no commit: run_id is no text")
    try:
        return (
            int(line["commit"]),
            keys.space(line.get("owner_user_id") or "", line.get("chat_id") or ""),
            milliseconds(line["at"]),
            line["actor"],
            line["origin"],
            line["reason"],
            line.get("run_id"),
            bytes.fromhex(line["seal"]),
            bytes.fromhex(line["digest"]),
            bytes.fromhex(line["hash"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unfit(f"no commit: {error}") from None


def adopted_by(line: Line) -> list[str]:
    """The marks of the lines that the line of a commit says it has adopted."""
    marks = line.get("adopted")
    return [mark for mark in marks if isinstance(mark, str)] if isinstance(marks, list) else []


def names_row(row: Any, shape: Shape) -> TypeGuard[str]:
    """Whether rows of a table can be named so."""
    if shape.table.key != ("key",):
        return isinstance(row, str)
    return isinstance(row, str) and row.isascii() and row.isdigit() and len(row) <= _KEY_DIGITS


def history_row(shapes: Shapes, line: Line) -> tuple[int, str, str, str]:
    """(commit, table, row, before) of the line of a before-image. Raises Unfit."""
    seq, table, row, before = (line.get(name) for name in ("commit", "table", "row", "before"))
    shape = shapes.rows.get(table) if isinstance(table, str) else None
    if not isinstance(seq, int) or not isinstance(before, dict) or shape is None or not names_row(row, shape):
        raise Unfit("no before-image of a row")
    return seq, shape.table.name, str(row), encode(before)


def put_kept(connection: apsw.Connection, shape: Shape, line: Line, keys: KnownKeys) -> None:
    """Bring a row outside the truth to what its line says. Names come from the schema. Raises Unfit."""
    table = shape.table
    if line.get("removed"):
        try:
            connection.execute(f'DELETE FROM "{table.name}" WHERE {where_key(shape)}', line["row"])
        except (KeyError, TypeError, OverflowError):
            raise Unfit("it names no row that could be removed") from None
        return
    image = shape.image(line, keys)
    if table.key == ("key",):
        if not names_row(line.get("row"), shape):
            raise Unfit("it names no row")
        image["key"] = int(line["row"])
    named, marks = ", ".join(f'"{name}"' for name in table.columns), ", ".join("?" * len(table.columns))
    values = [image[name] for name in table.columns]
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in table.columns if name not in table.key)
    then = f"DO UPDATE SET {updates}" if updates else "DO NOTHING"
    key = ", ".join(f'"{name}"' for name in table.key)
    connection.execute(f'INSERT INTO "{table.name}" ({named}) VALUES ({marks}) ON CONFLICT ({key}) {then}', values)


def _are_vectors_of(pieces: Any, words: bytes) -> bool:
    """Whether bytes can be vectors of as many pieces as a text names, with blanks between them."""
    count = len(pieces.split(" ")) if isinstance(pieces, str) and pieces else 0
    return count > 0 and len(words) >= count and len(words) % count == 0


def put_vector(
    connection: apsw.Connection,
    line: Line,
    *,
    models: Mapping[tuple[Any, Any], int],
    made_from: Mapping[str, tuple[int, str]],
) -> None:
    """Write the vector of a line, if it was made from what the memory says now, and by a model still in use; or take
    it out again, where the line says so.

    Raises:
        Unfit: the line holds no vector.
    """
    name, dimension = line.get("model"), line.get("dimension")
    if not isinstance(name, str) or not isinstance(dimension, int):
        raise Unfit("no vector of a model")
    model = models.get((name, dimension))
    key, wanted = made_from.get(str(line.get("memory")), (0, ""))
    if line.get("removed"):
        connection.execute(sql("vector_remove"), (key, model))
    if model is None or wanted != line.get("made_from"):
        return
    try:
        vector, pieces = b64decode(line["vector"], validate=True), line.get("pieces")
        words = None if pieces is None else b64decode(line["words"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise Unfit("no vector") from None
    if len(vector) != dimension + 4:
        raise Unfit("a vector of another length")
    if words is not None and not _are_vectors_of(pieces, words):
        raise Unfit("word vectors of another number")
    embedding = connection.execute(sql("vector_put"), (key, model, vector)).get
    if embedding is not None and words is not None:
        values = {"embedding": embedding, "pieces": pieces, "vectors": words}
        connection.execute(sql("word_vectors_insert"), values)
