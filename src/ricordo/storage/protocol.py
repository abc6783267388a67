"""The storage port: what the rest of Ricordo may ask of a store, whatever backend it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from ricordo.model import BackupFile, Change, Reason, Report, RowId, Scope
from ricordo.ports import Progress
from ricordo.storage.database.as_of import Links, PastSnapshot
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.values import Cleaned, Image, When

T = TypeVar("T")

Decide = Callable[[DatabaseSnapshot], tuple[Change, T]]
"""Reads the store, decides without side effects, returns the change and what the caller gets."""


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


class Store(Protocol):
    """An open store. Safe from any thread and any event loop."""

    @property
    def path(self) -> Path:
        """The file of the database."""
        ...

    @property
    def generation(self) -> int:
        """The identity of the database. What was read from one of another generation is out of date."""
        ...

    @property
    def erases_in_one_commit(self) -> bool:
        """Whether many rows are best erased in one commit, because each commit that erases is expensive."""
        ...

    @property
    def has_plain_files(self) -> bool:
        """Whether the truth is plain files in a folder, as `copy_files` and `rebuild` need."""
        ...

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        """Decide and apply as one commit; return when it is durable.

        Raises:
            StoreError: the disk is full or failing; nothing of the change was kept.
            UnavailableError: the store is closing, or was busy for longer than its patience.
        """
        ...

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        """Write without waiting. A failure is logged, and counted in `doctor`."""
        ...

    async def derive(self, work: Callable[[DatabaseSnapshot], T]) -> T:
        """Write derived rows: durable like the rest, but without a commit, since they can be computed again."""
        ...

    async def read(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Ask from one snapshot, in a reader's thread. Keep it short: nothing may be awaited inside."""
        ...

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        """Ask the store as it was, in a reader's thread.

        Args:
            scope: the caller. An instant stands for the caller's last commit that is not later.
            links: finds the entities named in texts, where texts or names have changed since.
        """
        ...

    async def look(self, ask: Callable[[DatabaseSnapshot], T]) -> T:
        """Ask a long question, with a connection and a thread of its own: other readers do not wait for it."""
        ...

    async def doctor(self) -> Report:
        """Look for damage. Changes nothing."""
        ...

    async def mend(self, report: Report) -> None:
        """Repair what is safe to repair of the damage that `doctor` found. Deletes nothing."""
        ...

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Rebuild the database from plain files. Return how many lines were read.

        Raises:
            InvalidError: the store has no plain files.
        """
        ...

    async def compact(self) -> int:
        """Rewrite plain files in which many lines are outdated. Return how many lines went; 0 without such files."""
        ...

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        """Rewrite the database so that no byte of deleted rows is left. Takes a second per 100 MB.

        Args:
            patience_s: how long to wait for other processes, in seconds; as for a write by default.

        Raises:
            StoreError: the disk is full.
            UnavailableError: another process kept writing.
        """
        ...

    def copy_to(self, target: Path) -> int:
        """Copy the whole store to a new single file, also while others write. Return its size in bytes.

        Raises:
            InvalidError: the target exists.
            StoreError: the copy cannot be written; nothing is left of it.
        """
        ...

    def copy_files(self, target: Path, look: Callable[[DatabaseSnapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Copy the plain files as they are at one moment to an empty folder, while others write.

        Returns:
            What `look` found at that moment, and the copies by name.

        Raises:
            InvalidError: the store has no plain files.
            OSError, StoreError: they cannot be read or written.
            UnavailableError: they were edited meanwhile.
        """
        ...

    def close(self) -> None:
        """Write what is queued, then release the store. Closing twice is fine."""
        ...
