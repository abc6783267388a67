"""The versions of truth rows after each commit, from the rows and their before-images."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from ricordo.model import RowId, Scope
from ricordo.storage.database.statements import Statements
from ricordo.storage.database.truth_tables import Table, row_text, truth_of
from ricordo.storage.values import Image


class Ledger:
    """The versions of rows. Reads each row once; lives inside one transaction."""

    def __init__(self, snapshot: Statements) -> None:
        self._snapshot = snapshot
        self._connection = snapshot.connection
        self._truth = truth_of(snapshot.connection)
        self._current: dict[RowId, Image | None] = {}
        self._former: dict[RowId, list[tuple[int, Image]]] = {}

    def commits_of_run(self, scope: Scope, run_id: str) -> list[int]:
        """Return the commits of a run, oldest first; none if the caller may not see it."""
        values = {"run": run_id, "spaces": json.dumps(self._snapshot.visible(scope))}
        return [seq for (seq,) in self._snapshot.rows("commits_of_run", values)]

    def visible(self, scope: Scope, commits: Iterable[int]) -> set[int]:
        """Return which of these commits the caller may see."""
        values = {"seqs": json.dumps(sorted(commits)), "spaces": json.dumps(self._snapshot.visible(scope))}
        return {seq for (seq,) in self._snapshot.rows("commits_visible", values)}

    def touched(self, commit: int) -> list[RowId]:
        """Return the rows a commit wrote, altered or removed, as far as anything is left of them."""
        found: dict[RowId, None] = {}
        for name, row, before in self._snapshot.rows("history_touched", {"seq": commit}):
            table = self._truth.tables[name]
            found[table.row_id(table.image(before, row))] = None
        for table in self._truth.tables.values():
            for row_id, image in self._rows(table, "commit_seq = ?", (commit,)):
                self._current[row_id] = image
                found[row_id] = None
        return list(found)

    def current(self, row: RowId) -> Image | None:
        """Return the row as it is; None if there is none."""
        if row not in self._current:
            self._current[row] = current_image(self._connection, self._truth.tables[row.table], row)
        return self._current[row]

    def state(self, row: RowId, commit: int) -> Image | None:
        """Return the row as it was right after a commit; None if there was none."""
        for replaced, image in self._versions(row):
            if replaced > commit:
                return image if image["commit_seq"] <= commit else None
        now = self.current(row)
        return now if now is not None and now["commit_seq"] <= commit else None

    def touches(self, row: RowId) -> list[int]:
        """Return the commits that wrote, altered or removed a row, ascending."""
        found = {seq for replaced, image in self._versions(row) for seq in (replaced, image["commit_seq"])}
        now = self.current(row)
        return sorted(found | ({now["commit_seq"]} if now else set()))

    def children(self, row: RowId) -> list[RowId]:
        """Return the rows that refer to a row now."""
        found = []
        for reference in self._truth.children(row.table):
            rows = self._rows(self._truth.tables[reference.table], f'"{reference.column}" = ?', (row.key[0],))
            for row_id, image in rows:
                self._current[row_id] = image
                found.append(row_id)
        return found

    def parents(self, row: RowId, image: Image) -> list[RowId]:
        """Return the rows that an image of a row refers to."""
        return [
            RowId(table=reference.target, key=(image[reference.column],))
            for reference in self._truth.parents(row.table)
            if image[reference.column] is not None
        ]

    def rivals(self, row: RowId, image: Image) -> list[RowId]:
        """Return other rows that hold now what only one row may hold, an id for instance."""
        table = self._truth.tables[row.table]
        found = []
        for columns in table.unique:
            where = " AND ".join(f'"{name}" = ?' for name in columns)
            for row_id, other in self._rows(table, where, tuple(image[name] for name in columns)):
                self._current[row_id] = other
                if row_id != row:
                    found.append(row_id)
        return found

    def _versions(self, row: RowId) -> list[tuple[int, Image]]:
        if row not in self._former:
            table, text = self._truth.tables[row.table], row_text(row)
            found = self._snapshot.rows("history_of_row", {"table": row.table, "row": text})
            self._former[row] = [(seq, table.image(before, text)) for seq, before in found]
        return self._former[row]

    def _rows(self, table: Table, where: str, values: tuple[Any, ...]) -> list[tuple[RowId, Image]]:
        """Return rows with their images. Names come from the schema, so the statement is put together."""
        named = ", ".join(f'"{name}"' for name in table.columns)
        statement = f'SELECT {named} FROM "{table.name}" WHERE {where}'
        images = [dict(zip(table.columns, row, strict=True)) for row in self._connection.execute(statement, values)]
        return [(table.row_id(image), image) for image in images]


def current_image(connection: apsw.Connection, table: Table, row: RowId) -> Image | None:
    """Return a row as it is. Names come from the schema, so the statement is put together."""
    named = ", ".join(f'"{name}"' for name in table.columns)
    where = " AND ".join(f'"{name}" = ?' for name in table.key)
    found = connection.execute(f'SELECT {named} FROM "{table.name}" WHERE {where}', row.key).fetchone()
    return None if found is None else dict(zip(table.columns, found, strict=True))
