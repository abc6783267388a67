"""The storage port."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ricordo.model import RowId, Scope
from ricordo.storage.values import Image


class Ledger(Protocol):
    """The versions of rows, by table and key, for undo."""

    def commits_of_run(self, scope: Scope, run_id: str) -> list[int]:
        """Return the commits of a run, oldest first; none if the caller may not see it."""

    def visible(self, scope: Scope, commits: Iterable[int]) -> set[int]:
        """Return which of these commits the caller may see."""

    def touched(self, commit: int) -> list[RowId]:
        """Return the rows a commit wrote, altered or removed, as far as anything is left of them."""

    def current(self, row: RowId) -> Image | None:
        """Return the row as it is; None if there is none."""

    def state(self, row: RowId, commit: int) -> Image | None:
        """Return the row as it was right after a commit; None if there was none."""

    def touches(self, row: RowId) -> list[int]:
        """Return the commits that wrote, altered or removed a row, ascending."""

    def children(self, row: RowId) -> list[RowId]:
        """Return the rows that refer to a row now."""

    def parents(self, row: RowId, image: Image) -> list[RowId]:
        """Return the rows that an image of a row refers to."""

    def rivals(self, row: RowId, image: Image) -> list[RowId]:
        """Return other rows that hold now what only one row may hold, an id for instance."""
