"""All that a caller may see of a store, as the lines of a folder: what a complete export holds, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from ricordo.model import Scope
from ricordo.ports import Progress
from ricordo.storage.database.connection import connect, moment
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.row_hash import chain_anew
from ricordo.storage.database.schema import migrations
from ricordo.storage.folder.change_lines import (
    commit_line,
    history_line,
    kept_row_line,
    row_line,
    sequence_lines,
    vector_lines,
)
from ricordo.storage.folder.layout import AFTER_ROWS, COMMITS, HISTORY, SETTINGS
from ricordo.storage.folder.lines import Shape, Shapes, shapes_of
from ricordo.storage.folder.rebuild import Built, build, fill
from ricordo.storage.values import Image

_SPACE = "space"
_PARTS = {"erased": ("erasures", "erasure"), "to_erase": ("erasing", "erasing")}
"""Kept tables whose rows belong to whom a row of another does, by which column."""


class Whole:
    """What one caller may see, line by line. Lives inside one snapshot."""

    def __init__(self, snapshot: DatabaseSnapshot, scope: Scope) -> None:
        self._snapshot = snapshot
        self._connection = snapshot.connection
        self._shapes: Shapes = shapes_of(snapshot.connection)
        self._spaces = json.dumps(snapshot.visible(scope))
        self._visible = frozenset(snapshot.visible(scope))
        self._pairs = {(scope.owner, ""), ("", scope.chat or "")} - {("", "")}
        self._home = next(iter(snapshot.visible(scope)), 0)
        self._commits: set[int] = set()
        self._space_of = lru_cache(maxsize=100_000)(self._looked_up)

    @property
    def is_all(self) -> bool:
        """Whether there is nothing that the caller may not see."""
        return {key for (key,) in self._snapshot.rows("spaces_known")} <= self._visible

    def count(self) -> int:
        """About how many lines there will be."""
        return int(self._snapshot.value("whole_size", {"spaces": self._spaces}) or 0)

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """(file, line): what is kept beside the truth first, the commits last."""
        if self.is_all:
            yield from sequence_lines(self._connection, self._shapes)
        yield from self._kept(before_rows=True)
        for shape in self._shapes.rows.values():
            yield from self._rows(shape)
        yield from self._history()
        for node, model in self._connection.execute(sql("whole_vectors"), {"spaces": self._spaces}):
            yield from vector_lines(self._connection, node, model)
        yield from self._kept(before_rows=False)
        yield from self._commit_lines()

    def _rows(self, shape: Shape) -> Iterator[tuple[str, bytes]]:
        """Rows whose space, or everything they refer to, the caller may see. Names come from the schema."""
        order = ", ".join(f't."{name}"' for name in shape.table.key)
        statement = f"{shape.select} WHERE {self._condition(shape)} ORDER BY {order}"
        place = [column.name for column in shape.columns].index("commit_seq")
        for row in self._connection.execute(statement, {"spaces": self._spaces}):
            self._commits.add(row[place])
            yield row_line(shape, row)

    def _condition(self, shape: Shape) -> str:
        seen = "IN (SELECT value FROM json_each(:spaces))"
        if any(column.kind == "space" for column in shape.columns):
            return f't."{_SPACE}" {seen}'
        ends = [
            f'(t."{column.name}" IS NULL OR EXISTS (SELECT 1 FROM main."{column.target}" AS o'
            f' WHERE o.key = t."{column.name}" AND o."{_SPACE}" {seen}))'
            for column in shape.columns
            if column.kind == "reference"
        ]
        return " AND ".join(ends) or "0"  # what belongs to nobody is shown to nobody

    def _history(self) -> Iterator[tuple[str, bytes]]:
        for seq, table, row, before in self._connection.execute(sql("whole_history")):
            image = self._shapes.truth.tables[table].image(before, row)
            if self._is_visible(table, image):
                self._commits |= {seq, image["commit_seq"]}
                yield HISTORY, history_line(seq, table, row, before)

    def _is_visible(self, table: str, image: Image) -> bool:
        """As `_condition`, for a row as it was."""
        if _SPACE in image:
            return image[_SPACE] in self._visible
        ends = [
            self._space_of(column.target, image[column.name])
            for column in self._shapes.rows[table].columns
            if column.kind == "reference" and image[column.name] is not None
        ]
        return bool(ends) and all(space in self._visible for space in ends)

    def _looked_up(self, table: str, key: int) -> int | None:
        """Whose a row is, or was."""
        found = self._connection.execute(f'SELECT "{_SPACE}" FROM main."{table}" WHERE key = ?', (key,)).get
        if found is None:
            found = self._snapshot.value("space_of_gone", {"table": table, "row": str(key)})
        return None if found is None else int(found)

    def _kept(self, *, before_rows: bool) -> Iterator[tuple[str, bytes]]:
        """What is kept beside the truth. What refers to memories comes after them."""
        for name, shape in self._shapes.kept.items():
            if (name in AFTER_ROWS) == before_rows:
                continue
            columns = [column.name for column in shape.columns]
            raw = ", ".join(f't."{each}"' for each in columns)
            for row in self._connection.execute(f"SELECT {raw}, {shape.select.removeprefix('SELECT ')}"):
                if self._is_kept_visible(name, shape, dict(zip(columns, row, strict=False))):
                    yield kept_row_line(shape, row[len(columns) :])

    def _is_kept_visible(self, name: str, shape: Shape, image: Image) -> bool:
        """The models of a store are everybody's, its settings come with all of it; all else is its owner's."""
        if name in ("model_use", "meta"):
            return self.is_all and (name == "model_use" or image["name"] in SETTINGS)
        if name == "models":
            return True
        if "owner" in image:
            return (image["owner"], image["chat"]) in self._pairs
        if _SPACE in image:
            return image[_SPACE] in self._visible
        if name in _PARTS:
            whole, column = _PARTS[name]
            return self._space_of(whole, image[column]) in self._visible
        ends = [column for column in shape.columns if column.kind == "reference"]
        return bool(ends) and all(self._space_of(each.target, image[each.name]) in self._visible for each in ends)

    def _commit_lines(self) -> Iterator[tuple[str, bytes]]:
        """In order. One whose first row is in another's space belongs to the caller's own."""
        spaces = {key: (owner, chat) for key, owner, chat in self._snapshot.rows("spaces_named")}
        for seq, space in self._connection.execute(sql("whole_commits")):
            if space in self._visible or seq in self._commits:
                owner, chat = spaces[space if space in self._visible else self._home]
                yield (
                    COMMITS,
                    commit_line(self._connection, seq, {"owner_user_id": owner or None, "chat_id": chat or None}),
                )


def is_empty(snapshot: DatabaseSnapshot) -> bool:
    """Whether nothing was ever written to a store."""
    return not snapshot.rows("spaces_known") and not snapshot.rows("commit_last")


def holds_spaces(snapshot: DatabaseSnapshot, scope: Scope) -> bool:
    """Whether a store holds nothing but what a caller may see."""
    pairs = {(owner, chat) for _, owner, chat in snapshot.rows("spaces_named")}
    return pairs <= {(scope.owner, ""), ("", scope.chat or "")}


def knows_models(snapshot: DatabaseSnapshot) -> bool:
    """Whether a store has an embedding model already: its own stays."""
    return bool(snapshot.rows("models_known"))


def put_whole(snapshot: DatabaseSnapshot, folder: Path, *, is_whole: bool, progress: Progress | None) -> Built:
    """Fill an empty store with what the files of a folder say, inside the running transaction.

    Args:
        is_whole: whether nothing stayed behind; else the commits make a chain of their own.
    """
    built = fill(snapshot.connection, folder, progress=progress)
    if not is_whole:
        chain_anew(snapshot.connection)
    return built


@contextmanager
def looked_into(folder: Path, beside: Path) -> Iterator[tuple[DatabaseSnapshot, Built]]:
    """A snapshot of what the files of a folder hold, in a store of its own that goes again.

    Args:
        beside: a path nothing lies at.
    """
    built = build(beside, folder, steps=migrations())
    connection = connect(beside, read_only=True, patience_s=1)
    try:
        with moment(connection):
            yield DatabaseSnapshot(connection), built
    finally:
        connection.close()
