"""Turn lines into rows of a database: read the files, and write single lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import apsw

from ricordo.storage.database.history import marks, named, text_of_key
from ricordo.storage.database.statements import Row, insert_all, sql
from ricordo.storage.jsonl.layout import COMMITS
from ricordo.storage.jsonl.lines import (
    Findings,
    HandLine,
    Line,
    LineError,
    base64_bytes,
    encode,
    line_mark,
    lines_of,
    milliseconds,
    opened,
    parsed,
)
from ricordo.storage.jsonl.shapes import Shape, Shapes
from ricordo.storage.key import LineCipher

T = TypeVar("T")

_KEY_DIGITS = 18
"""One less than the digits of the largest key that SQLite can hold."""

COMMIT_COLUMNS = ("seq", "space", "at", "actor", "origin", "reason", "run_id", "seal", "digest", "hash")


class KnownKeys:
    """Keys of rows by their public names, from the lines read so far or from the database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[Any, int]] = {}
        self._spaces: dict[tuple[str, str], int] = {}

    def learn(self, shape: Shape, line: Line, row: str) -> None:
        """Record the key of the row in a line."""
        table = shape.table.name
        if not shape.has_own_key or not row.isdigit() or line.get("removed"):
            return
        if table == "sessions":
            space = self.space(str(line.get("owner_user_id") or ""), str(line.get("chat_id") or ""))
            self.note(table, (space, line.get("session_id")), int(row))
        elif "id" in line:
            self.note(table, line["id"], int(row))

    def note(self, table: str, name: Any, key: int) -> None:
        """Record the key of a row that will be written."""
        self._known.setdefault(table, {})[name] = key

    def space(self, owner: str, chat: str) -> int:
        """Return the key of a space, creating the space at its first use."""
        if (owner, chat) not in self._spaces:
            values = {"owner": owner, "chat": chat}
            key = self._connection.execute(sql("space_by_owner"), values).get
            if key is None:
                key = self._connection.execute(sql("space_insert"), values).get
            self._spaces[owner, chat] = int(key)
        return self._spaces[owner, chat]

    def key(self, target: str, name: Any, *, space: int | None) -> int | None:
        """Return the key of a row by its id, or of a session by its name in its space; None if there is none."""
        known = self._known.setdefault(target, {})
        if target != "sessions":
            public, statement, values = name, f'SELECT key FROM "{target}" WHERE id = :id', {"id": name}
        else:
            public, statement, values = (space, name), sql("session_by_id"), {"space": space, "session": name}
        if public not in known and (found := self._connection.execute(statement, values).get) is not None:
            known[public] = found
        return known.get(public)


class LineReader:
    """Reads the lines of a folder's files, and records those that are unusable."""

    def __init__(self, folder: Path, shapes: Shapes, found: Findings, cipher: LineCipher | None = None) -> None:
        self.folder, self.shapes, self.cipher = folder, shapes, cipher
        self.found = found  # collects the lines that are not returned
        self.adopted: set[str] = set()  # the marks of lines that commits have adopted
        self.parse: Callable[[bytes], Any] = json.loads

    def lines(self, name: str, *, start: int = 0) -> Iterator[tuple[int, Line]]:
        """Yield (offset, line) of a file. An incomplete last line counts as not committed.

        So do lines with NUL bytes that no committed line follows: a power cut may lose any sectors of the last batch,
        and those read as zeros. A commit that was written together with a lost one is no commit either.
        """
        path = self.folder / name
        size = path.stat().st_size if path.exists() else 0
        torn: list[tuple[int, LineError]] = []
        for offset, raw in lines_of(path, start=start):
            if not raw.strip():
                continue
            try:
                line = parsed(self.opened(name, raw), self.parse)
            except LineError as error:
                if offset + len(raw) == size:
                    self.found.cut(name, offset)
                elif b"\0" in raw:
                    torn.append((offset, error))
                else:
                    self.unused(name, offset, error)
                continue
            if torn and name == COMMITS and line.get("batch") is not None:
                self.found.cut(name, offset)
                continue
            yield offset, line
            if torn and offset not in self.found.uncommitted.get(name, ()):
                for place, why in torn:
                    self.unused(name, place, why)
                torn.clear()
        for place, _ in torn:
            self.found.cut(name, place)

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return a line of a file in plain text, decrypted if the store has a key. Raises LineError."""
        return opened(self.cipher, name, raw)

    def made(self, name: str, make: Callable[[Line], T], *, start: int = 0) -> Iterator[tuple[int, T]]:
        """Yield (offset, result of `make`) for the lines of a file. `make` may raise LineError."""
        for offset, line in self.lines(name, start=start):
            try:
                found = make(line)
            except LineError as error:
                self.unused(name, offset, error)
            else:
                yield offset, found

    def committed(self, name: str, *, start: int = 0) -> Iterator[tuple[int, Line, Shape]]:
        """Yield (offset, line, shape) for lines that name a row and a commit. Other lines were written by hand."""
        for offset, line in self.lines(name, start=start):
            shape = self.shapes.of_line(name, line)
            if shape is None:
                self.unused(name, offset, f"unknown kind of line: {line.get('kind')!r}")
            elif line.get("commit") is None or not names_row(line.get("row"), shape):
                self.by_hand(name, offset, line, shape.table.name)
            else:
                yield offset, line, shape

    def by_hand(self, name: str, offset: int, line: Line, table: str) -> None:
        """Record a line written by hand, unless a commit has adopted it."""
        if line_mark(line) not in self.adopted:
            self.found.by_hand.append(HandLine(name, offset, line, table))

    def unused(self, name: str, offset: int, why: object) -> None:
        """Record an unusable line."""
        self.found.unused.setdefault((name, offset), str(why))


def insert_rows(
    connection: apsw.Connection, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> list[str | None]:
    """Insert all valid rows. Return, for each row, None or why it is invalid. SQL is built from names in the schema."""
    statement = f'INSERT INTO "{table}" ({named(columns)}) VALUES ({marks(columns)})'
    connection.execute("SAVEPOINT inserting")
    try:
        insert_all(connection, statement, rows)
        found: list[str | None] = [None] * len(rows)
    except (apsw.ConstraintError, apsw.MismatchError):
        connection.execute("ROLLBACK TO inserting")
        found = [_why_not(connection, statement, row) for row in rows]
    connection.execute("RELEASE inserting")
    return found


def _why_not(connection: apsw.Connection, statement: str, row: Row) -> str | None:
    try:
        connection.execute(statement, row)
    except (apsw.ConstraintError, apsw.MismatchError) as error:
        return str(error)
    return None


def drop_dangling(connection: apsw.Connection, shapes: Shapes, table: str) -> Iterator[tuple[str, str]]:
    """Delete the rows of a table that refer to missing rows. Yield (row, table of the missing row) for each."""
    shape = shapes.rows.get(table) or shapes.kept.get(table)
    key = shape.table.key if shape else ("NULL",)  # a derived row: it is computed again anyway
    for reference in shapes.truth.references:
        if reference.table == table:
            gone = connection.execute(
                f'DELETE FROM "{table}" WHERE "{reference.column}" IS NOT NULL AND NOT EXISTS '
                f'(SELECT 1 FROM "{reference.target}" AS o WHERE o.rowid = "{table}"."{reference.column}")'
                f" RETURNING {', '.join(key)}"
            )
            yield from ((text_of_key(row), reference.target) for row in gone.fetchall())


def names_row(row: Any, shape: Shape) -> TypeGuard[str]:
    """Return whether a value is possible as the name of a row of a table."""
    is_key = isinstance(row, str) and row.isascii() and row.isdigit() and len(row) <= _KEY_DIGITS
    return is_key if shape.has_own_key else isinstance(row, str)


def commit_row(line: Line, keys: KnownKeys) -> Row:
    """Return the values of `COMMIT_COLUMNS` from the line of a commit. Raises LineError."""
    if any(type(line.get(name)) is not str for name in ("actor", "origin", "reason")):
        raise LineError("not a commit: actor, origin or reason is missing")
    if not isinstance(line.get("run_id", ""), str):
        raise LineError("not a commit: run_id is not text")
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
        raise LineError(f"not a commit: {error}") from None


def adopted_marks(line: Line) -> list[str]:
    """Return the marks of the lines that a commit has adopted, from the commit's line."""
    found = line.get("adopted")
    return [mark for mark in found if isinstance(mark, str)] if isinstance(found, list) else []


def history_row(shapes: Shapes, line: Line) -> tuple[int, str, str, str]:
    """Return (commit, table, row, before) from the line of a former version. Raises LineError."""
    seq, table, row, before = (line.get(name) for name in ("commit", "table", "row", "before"))
    shape = shapes.rows.get(table) if isinstance(table, str) else None
    if not isinstance(seq, int) or not isinstance(before, dict) or shape is None or not names_row(row, shape):
        raise LineError("not a before-image of a row")
    return seq, shape.table.name, str(row), encode(before)


def put_kept(connection: apsw.Connection, shape: Shape, line: Line, keys: KnownKeys) -> None:
    """Write or delete a row outside the truth, as its line says. SQL is built from the schema. Raises LineError."""
    table = shape.table
    if line.get("removed"):
        try:
            connection.execute(f'DELETE FROM "{table.name}" WHERE {shape.where_key}', line["row"])
        except (KeyError, TypeError, OverflowError):
            raise LineError("the line does not identify a row to remove") from None
        return
    image = shape.image(line, keys)
    if shape.has_own_key:
        if not names_row(line.get("row"), shape):
            raise LineError("the line does not identify a row")
        image["key"] = int(line["row"])
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in table.columns if name not in table.key)
    then = f"DO UPDATE SET {updates}" if updates else "DO NOTHING"
    values = [image[name] for name in table.columns]
    connection.execute(f"{table.insert} ON CONFLICT ({named(table.key)}) {then}", values)


def put_vector(
    connection: apsw.Connection,
    line: Line,
    *,
    models: Mapping[tuple[Any, Any], int],
    sources: Mapping[str, tuple[int, str]],
) -> None:
    """Write the vector of a line, or delete it if the line says so. A vector of an older text or an unknown model is
    skipped. Raises LineError.

    Args:
        models: keys of the models by name and dimension.
        sources: by id of a memory, its key and the hash of its text.
    """
    name, dimension = line.get("model"), line.get("dimension")
    if not isinstance(name, str) or not isinstance(dimension, int):
        raise LineError("not a vector of a model")
    model = models.get((name, dimension))
    key, wanted = sources.get(str(line.get("memory")), (0, ""))
    if line.get("removed"):
        connection.execute(sql("vector_remove"), (key, model))
    if model is None or wanted != line.get("made_from"):
        return
    vector, pieces = base64_bytes(line.get("vector")), line.get("pieces")
    words = None if pieces is None else base64_bytes(line.get("words"))
    passages = base64_bytes(line.get("passages", ""))
    if len(vector) != dimension + 4 or len(passages) % (dimension + 4):
        raise LineError("the vector has the wrong length")
    count = len(pieces.split(" ")) if isinstance(pieces, str) and pieces else 0
    if words is not None and (count == 0 or len(words) < count or len(words) % count):
        raise LineError("the number of word vectors is wrong")
    embedding = connection.execute(sql("vector_put"), (key, model, vector)).get
    if embedding is not None and passages:
        connection.execute(sql("passage_vectors_insert"), (embedding, passages))
    if embedding is not None and words is not None:
        connection.execute(sql("word_vectors_insert"), (embedding, pieces, words))
