"""Turn rows into lines: of one commit, of one transaction, of a whole store, or of one caller."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import apsw

from ricordo.model import Scope
from ricordo.storage.database.history import text_of_key
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import sql
from ricordo.storage.jsonl.layout import (
    AFTER_ROWS,
    ARCHIVE,
    COMMITS,
    EPISODES,
    HISTORY,
    MEMORIES,
    MEMORY_FILES,
    SEQUENCE,
    SETTINGS,
    STORE,
    VECTORS,
    file_of,
)
from ricordo.storage.jsonl.lines import Line, content_hash, data, iso, summed
from ricordo.storage.jsonl.shapes import Shape, Shapes, shapes_of
from ricordo.storage.values import STANDING, Image

FileLine = tuple[str, bytes]
"""The name of a file and a line for it."""

_VECTORS = "embeddings"
_SETTINGS = ", ".join(f"'{name}'" for name in SETTINGS)
_IN_FILE = {
    MEMORIES: "t.closed_at IS NULL AND t.type != 'episodic'",
    EPISODES: "t.closed_at IS NULL AND t.type = 'episodic'",
    ARCHIVE: "t.closed_at IS NOT NULL",
}
"""The condition that selects the memories of each file."""


def watch(connection: apsw.Connection, shapes: Shapes) -> None:
    """Record in a temporary table which rows outside the truth a connection changes. SQL is built from the schema."""
    connection.execute(sql("touched_table"))
    for shape in shapes.kept.values():
        for event, side in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            # The list of rows to erase stays in the files until these rows are gone from the files as well.
            if (shape.table.name, event) != ("to_erase", "DELETE"):
                _watch(connection, shape.table.name, shape.table.key, event, side)
    for event, side in (("INSERT", "NEW"), ("DELETE", "OLD")):
        _watch(connection, _VECTORS, ("node", "model"), event, side)


def _watch(connection: apsw.Connection, table: str, key: tuple[str, ...], event: str, side: str) -> None:
    row = ", ".join(
        f'CASE typeof({side}."{name}") WHEN \'blob\' THEN hex({side}."{name}") ELSE {side}."{name}" END' for name in key
    )
    kept = f"WHEN {side}.name IN ({_SETTINGS})" if table == "meta" else ""
    connection.execute(
        f'CREATE TEMP TRIGGER IF NOT EXISTS "touched_{table}_{event}" AFTER {event} ON main."{table}" {kept} BEGIN '
        f"INSERT INTO touched VALUES ('{table}', json_array({row})) ON CONFLICT DO NOTHING; END"
    )


def commits_after(connection: apsw.Connection, seq: int) -> list[int]:
    """Return the commits made after one."""
    return [row[0] for row in connection.execute(sql("commits_after"), {"seq": seq})]


def lines_of_commit(connection: apsw.Connection, shapes: Shapes, seq: int, extra: Line) -> Iterator[FileLine]:
    """Yield the lines of everything that the newest commit wrote or removed, and last its own, with `extra` fields."""
    for shape in shapes.rows.values():
        for row in connection.execute(f"{shape.select} WHERE t.commit_seq = ?", (seq,)):
            yield row_line(shape, row)
    for name, row, before in DatabaseSnapshot(connection).rows("history_of_commit", {"seq": seq}):
        yield HISTORY, history_line(seq, name, row, before)
        table = shapes.truth.tables[name]
        if table.current(connection, table.row_id(table.image(before, row)).key) is None:
            yield file_of(name), data({**shapes.rows[name].kind, "row": row, "commit": seq, "removed": True})
    yield COMMITS, commit_line(connection, seq, extra)


def touched_lines(connection: apsw.Connection, shapes: Shapes, *, commit: int | None) -> list[FileLine]:
    """Return the lines of everything that this transaction changed outside the truth, and clear the record of it.

    Args:
        commit: the last commit of the transaction, without whose line these lines do not count; None if it has none.
    """
    found = []
    with_it: Line = {} if commit is None else {"commit": commit}
    for table, text in DatabaseSnapshot(connection).rows("touched_rows"):
        key = json.loads(text)
        if table == _VECTORS:
            found += vector_lines(connection, *key)
            continue
        shape = shapes.kept[table]
        row = connection.execute(f"{shape.select} WHERE {shape.where_key}", key).fetchone()
        gone = {"kind": shape.form.kind, "row": key, "removed": True, **with_it}
        found.append(kept_row_line(shape, row, with_it) if row is not None else (STORE, summed(gone)))
    if found:
        connection.execute(sql("touched_forget"))
    return found


def lines_of_file(connection: apsw.Connection, shapes: Shapes, name: str) -> Iterator[bytes]:
    """Yield all lines of a file in chronological order."""
    sources: dict[str, Callable[[], Iterator[bytes]]] = {
        HISTORY: lambda: (history_line(*row) for row in DatabaseSnapshot(connection).each("history_whole", {})),
        COMMITS: lambda: (commit_line(connection, seq, {}) for seq in commits_after(connection, 0)),
        VECTORS: lambda: (
            line
            for pair in DatabaseSnapshot(connection).rows("embedding_pairs")
            for _, line in vector_lines(connection, *pair)
        ),
        STORE: lambda: _kept_lines(connection, shapes),
    }
    return sources.get(name, lambda: _row_lines(connection, shapes, name))()


def _row_lines(connection: apsw.Connection, shapes: Shapes, name: str) -> Iterator[bytes]:
    where = _IN_FILE.get(name, "TRUE")
    for shape in shapes.rows.values():
        if name in MEMORY_FILES if shape.table.name == "nodes" else shape.form.file == name:
            order = ", ".join(f't."{each}"' for each in ("commit_seq", *shape.table.key))
            for row in connection.execute(f"{shape.select} WHERE {where} ORDER BY {order}"):
                yield row_line(shape, row)[1]


def _kept_lines(connection: apsw.Connection, shapes: Shapes) -> Iterator[bytes]:
    yield from (line for _, line in sequence_lines(connection, shapes))
    for shape in shapes.kept.values():
        where = f"t.name IN ({_SETTINGS})" if shape.table.name == "meta" else "TRUE"
        for row in connection.execute(f"{shape.select} WHERE {where}"):
            yield kept_row_line(shape, row, {})[1]


# single lines


def row_line(shape: Shape, row: tuple[Any, ...]) -> FileLine:
    """Return the line of a truth row, given as the result of the shape's `select`."""
    values = dict(zip((each.name for each in shape.columns), row, strict=False))
    extra = {"row": text_of_key(shape.key_of(row)), "commit": values["commit_seq"], "seal": values["seal"].hex()}
    return file_of(shape.table.name, values), data(shape.line(row, extra))


def kept_row_line(shape: Shape, row: tuple[Any, ...], with_it: Line) -> FileLine:
    """Return the line of a row outside the truth, given as the result of the shape's `select`.

    Args:
        with_it: the commit that it was written with, if the line does not count without that.
    """
    extra = {"row": text_of_key(shape.key_of(row))} if shape.has_own_key else {}
    return shape.form.file, summed(shape.line(row, extra | with_it))


def history_line(seq: int, table: str, row: str, before: str) -> bytes:
    """Return the line of a former version."""
    return data({"commit": seq, "table": table, "row": row, "before": json.loads(before)})


def commit_line(connection: apsw.Connection, seq: int, extra: Line) -> bytes:
    """Return the line of a commit, which makes its other lines valid."""
    row = connection.execute(sql("commit_line"), {"seq": seq}).fetchone()
    assert row is not None
    _, owner, chat, at, actor, origin, reason, run_id, *hashes = row
    line: Line = {"commit": seq, "at": iso(at), "actor": actor, "origin": origin, "reason": reason}
    line |= {"run_id": run_id} if run_id is not None else {}
    line |= {"owner_user_id": owner or None, "chat_id": chat or None}
    line |= {name: value.hex() for name, value in zip(("seal", "digest", "hash"), hashes, strict=True)}
    return data({**line, **extra})


def vector_lines(connection: apsw.Connection, node: int, model: int) -> list[FileLine]:
    """Return the line of a vector or of its removal; [] if the memory no longer exists either."""
    row = connection.execute(sql("vector_lines"), (node, model)).fetchone()
    if row is None:
        gone = connection.execute(sql("vector_gone"), (node, model))
        return [
            (VECTORS, summed({"memory": memory, "model": name, "dimension": dimension, "removed": True}))
            for memory, name, dimension in gone
        ]
    memory, name, dimension, content, speaker, vector, passages, pieces, words = row
    line: Line = {"memory": memory, "model": name, "dimension": dimension}
    line |= {"made_from": content_hash(content, speaker), "vector": b64encode(vector).decode()}
    if passages is not None:
        line["passages"] = b64encode(passages).decode()
    if pieces is not None:
        line |= {"pieces": pieces, "words": b64encode(words).decode()}
    return [(VECTORS, summed(line))]


def sequence_lines(connection: apsw.Connection, shapes: Shapes) -> list[FileLine]:
    """Return lines with the last key used, for the tables that have lines."""
    return [
        (STORE, summed({"kind": SEQUENCE, "table": table, "last": last}))
        for table, last in connection.execute(sql("sequences"))
        if table in shapes.rows or table in shapes.kept
    ]


# everything of one caller

_SPACE = "space"
_PARTS = {"erased": ("erasures", "erasure"), "to_erase": ("erasing", "erasing")}
"""Kept tables whose rows belong to the owner of a row in another table: that table, and the column with its key."""


class ScopedLines:
    """The lines of everything that one caller may see. Valid inside one snapshot."""

    def __init__(self, snapshot: DatabaseSnapshot, scope: Scope) -> None:
        self._snapshot = snapshot
        self._connection = snapshot.connection
        self._shapes = shapes_of(snapshot.connection)
        visible = snapshot.visible(scope)
        self._visible, self._home = frozenset(visible), next(iter(visible), 0)
        self._spaces = {"spaces": json.dumps(visible)}
        pairs = {(scope.owner, ""), ("", scope.chat or "")} - {("", "")}
        self._pairs = {pair for pair in pairs if snapshot.space(*pair) in self._visible}
        self._chats = ("", scope.chat)
        self._commits: set[int] = set()
        self._space_of = lru_cache(maxsize=100_000)(self._read_space)

    @property
    def is_all(self) -> bool:
        """Whether the caller may see the whole store."""
        return {key for (key,) in self._snapshot.rows("spaces_known")} <= self._visible

    def count(self) -> int:
        """Return an estimate of the number of lines."""
        return int(self._snapshot.value("whole_size", self._spaces) or 0)

    def lines(self) -> Iterator[FileLine]:
        """Yield the lines: first those outside the truth, last those of commits."""
        if self.is_all:
            yield from sequence_lines(self._connection, self._shapes)
        yield from self._kept(before_rows=True)
        for shape in self._shapes.rows.values():
            yield from self._rows(shape)
        yield from self._history()
        for node, model in self._connection.execute(sql("whole_vectors"), self._spaces):
            yield from vector_lines(self._connection, node, model)
        yield from self._kept(before_rows=False)
        yield from self._commit_lines()

    def _rows(self, shape: Shape) -> Iterator[FileLine]:
        """Yield rows in a space that the caller sees, or that refer to such rows only. SQL is built from the schema."""
        order = ", ".join(f't."{name}"' for name in shape.table.key)
        statement = f"{shape.select} WHERE {self._condition(shape)} ORDER BY {order}"
        place = shape.table.columns.index("commit_seq")
        for row in self._connection.execute(statement, self._spaces):
            self._commits.add(row[place])
            yield row_line(shape, row)

    def _condition(self, shape: Shape) -> str:
        seen = "IN (SELECT value FROM json_each(:spaces))"
        if _SPACE in shape.table.columns:
            return f't."{_SPACE}" {seen}'
        ends = [
            f'(t."{column.name}" IS NULL OR EXISTS (SELECT 1 FROM main."{column.target}" AS o'
            f' WHERE o.key = t."{column.name}" AND o."{_SPACE}" {seen}))'
            for column in shape.references
        ]
        return " AND ".join(ends) or "0"  # a row without an owner is not visible to any caller

    def _history(self) -> Iterator[FileLine]:
        for seq, table, row, before in self._connection.execute(sql("whole_history")):
            image = self._shapes.truth.tables[table].image(before, row)
            if self._is_visible(table, image):
                self._commits |= {seq, image["commit_seq"]}
                yield HISTORY, history_line(seq, table, row, before)

    def _is_visible(self, table: str, image: Image) -> bool:
        """Return whether the caller may see a former version of a row, as `_condition` decides for present rows."""
        if _SPACE in image:
            return image[_SPACE] in self._visible
        return self._are_ends_visible(self._shapes.rows[table], image)

    def _are_ends_visible(self, shape: Shape, image: Image) -> bool:
        ends = [each for each in shape.references if image[each.name] is not None]
        return bool(ends) and all(self._space_of(each.target, image[each.name]) in self._visible for each in ends)

    def _read_space(self, table: str, key: int) -> int | None:
        """Return the space of a row, or its last space if it was removed."""
        found = self._connection.execute(f'SELECT "{_SPACE}" FROM main."{table}" WHERE key = ?', (key,)).get
        if found is None:
            found = self._snapshot.value("space_of_gone", {"table": table, "row": str(key)})
        return None if found is None else int(found)

    def _kept(self, *, before_rows: bool) -> Iterator[FileLine]:
        """Yield rows outside the truth, in two parts: those that refer to memories come after the memories."""
        for name, shape in self._shapes.kept.items():
            if (name in AFTER_ROWS) == before_rows:
                continue
            columns = shape.table.columns
            raw = ", ".join(f't."{each}"' for each in columns)
            for row in self._connection.execute(f"SELECT {raw}, {shape.select.removeprefix('SELECT ')}"):
                if self._is_kept_visible(name, shape, dict(zip(columns, row, strict=False))):
                    yield kept_row_line(shape, row[len(columns) :], {})

    def _is_kept_visible(self, name: str, shape: Shape, image: Image) -> bool:
        """Return whether the caller may see a row outside the truth: models always, settings with the whole store."""
        if name in ("model_use", "meta"):
            return self.is_all and (name == "model_use" or image["name"] in SETTINGS)
        if name == "models":
            return True
        if "owner" in image:
            return (image["owner"], image["chat"]) in self._pairs
        if name == "receipts" and image["verb"] == STANDING and image["in_chat"] not in self._chats:
            return self.is_all  # the answer quotes memories of a chat that the caller does not see here
        if _SPACE in image:
            return image[_SPACE] in self._visible
        if name in _PARTS:
            whole, column = _PARTS[name]
            return self._space_of(whole, image[column]) in self._visible
        return self._are_ends_visible(shape, image)

    def _commit_lines(self) -> Iterator[FileLine]:
        """Yield the commits in order. A commit listed under another space is moved to the caller's own."""
        spaces = {key: (owner, chat) for key, owner, chat in self._snapshot.rows("spaces_named")}
        for seq, space in self._connection.execute(sql("whole_commits")):
            if space in self._visible or seq in self._commits:
                owner, chat = spaces[space if space in self._visible else self._home]
                whose = {"owner_user_id": owner or None, "chat_id": chat or None}
                yield COMMITS, commit_line(self._connection, seq, whose)
