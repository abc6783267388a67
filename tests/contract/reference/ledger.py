"""The versions of rows, for undo: read from the truth as it was after each commit."""

from __future__ import annotations

from collections.abc import Iterable

from ricordo.model import RowId, Scope
from ricordo.storage.values import Image
from tests.contract.reference.tables import SHAPES, TRUTH, Row, State, children, key_of, parents


class Ledger:
    """The versions of rows, by table and key."""

    def __init__(self, state: State) -> None:
        self._state = state

    def _visible(self, scope: Scope) -> list[Row]:
        from tests.contract.reference.apply import visible

        spaces = visible(self._state, scope)
        return [row for row in self._state.commits.values() if row["space"] in spaces]

    def commits_of_run(self, scope: Scope, run_id: str) -> list[int]:
        return sorted(row["seq"] for row in self._visible(scope) if row["run_id"] == run_id)

    def visible(self, scope: Scope, commits: Iterable[int]) -> set[int]:
        return {row["seq"] for row in self._visible(scope)} & set(commits)

    def touched(self, commit: int) -> list[RowId]:
        before, after = self._state.past[commit - 1], self._state.past[commit]
        return [
            RowId(table=table, key=key)
            for table in TRUTH
            for key in {**before[table], **after[table]}
            if before[table].get(key) != after[table].get(key)
        ]

    def current(self, row: RowId) -> Image | None:
        return self._state.get(row.table, *row.key)

    def state(self, row: RowId, commit: int) -> Image | None:
        return self._state.past[commit][row.table].get(row.key)

    def touches(self, row: RowId) -> list[int]:
        return [seq for seq, _ in self._state.versions(row.table, row.key)]

    def children(self, row: RowId) -> list[RowId]:
        found = children(self._state, row.table, row.key, among=TRUTH)
        return [RowId(table=table, key=key) for table, key in found]

    def parents(self, row: RowId, image: Image) -> list[RowId]:
        return [RowId(table=table, key=key) for table, key in parents(row.table, dict(image))]

    def rivals(self, row: RowId, image: Image) -> list[RowId]:
        return [
            RowId(table=row.table, key=key_of(row.table, other))
            for columns in SHAPES[row.table].unique
            for other in self._state.all(row.table)
            if all(other[name] == image[name] for name in columns) and key_of(row.table, other) != row.key
        ]
