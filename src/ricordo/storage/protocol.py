"""The storage port: what the rest of Ricordo may ask of a store, whatever its backend.

A `Store` gives out snapshots and applies changes; a `Snapshot` answers questions, grouped by subject (see `groups`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import BackupFile, Change, Entity, Reason, Report, Scope
from ricordo.ports import Progress
from ricordo.storage.groups import (
    EmbeddingModels,
    Entities,
    Erasure,
    Evidence,
    Export,
    Graph,
    History,
    Leases,
    Lifecycle,
    Mentions,
    Nodes,
    Proposals,
    Receipts,
    Reviews,
    Runs,
    Sessions,
    Statistics,
    Suppression,
    Upkeep,
    Vectors,
)
from ricordo.storage.values import ChangeEvent, Cleaned, FormerText, When

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist

    Keys = NDArray[np.int64]
T = TypeVar("T")


class Snapshot(Protocol):
    """One moment of a store. Lives inside one transaction; use it only inside the work that got it."""

    @property
    def nodes(self) -> Nodes: ...
    @property
    def entities(self) -> Entities: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def reviews(self) -> Reviews: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def history(self) -> History: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def mentions(self) -> Mentions: ...
    @property
    def suppression(self) -> Suppression: ...
    @property
    def models(self) -> EmbeddingModels: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def export(self) -> Export: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def proposals(self) -> Proposals: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def erasure(self) -> Erasure: ...

    @property
    def is_past(self) -> bool:
        """Whether this is the store as it was, not as it is."""
        ...

    def current(self, now: int) -> int:
        """Return the instant that counts as now, in Unix milliseconds: `now`, or the instant of the past."""
        ...

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """Return the result of some work; raise TimeoutError at a moment of `time.monotonic`, in seconds."""
        ...

    def space(self, owner: str, chat: str) -> int | None:
        """Return the key of a space; None if nothing was ever written to it."""
        ...

    def visible(self, scope: Scope) -> tuple[int, ...]:
        """Return the spaces a caller sees: their own, and that of the present chat."""
        ...

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        """Return the candidates of a search, with all that ranking needs to know of them."""
        ...

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int) -> Shortlist:
        """Return what is known of the best candidates; `now` in Unix milliseconds."""
        ...

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        """Load the vectors that a caller's first search needs. A backend without such a cache does nothing."""
        ...

    def load_more_vectors(self) -> bool:
        """Load more of the vectors that searches read one by one so far; return whether any are left."""
        ...

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        """Load all turns of a caller into the cache of the backend.

        Args:
            ahead: do not evict turns of other callers; return False if there is no room.
        """
        ...


class PastSnapshot(Snapshot, Protocol):
    """The store as it was right after a commit. Vectors and indexes are those of today."""

    @property
    def today(self) -> Snapshot:
        """The store as it is."""
        ...

    @property
    def commit_number(self) -> int: ...

    @property
    def at(self) -> int:
        """The instant that counts as now, in Unix milliseconds."""
        ...

    @property
    def altered(self) -> Mapping[int, FormerText]:
        """The texts that today's indexes do not hold, by node: they were changed since, or are gone."""
        ...

    def holders(self, scope: Scope, term: str) -> set[int]:
        """Return the nodes that held an index term, live or not."""
        ...

    def closed_since(self, keys: Keys) -> Keys:
        """Return those of the nodes that are closed today."""
        ...

    def similar(
        self,
        scope: Scope,
        vectors: Mapping[int, NDArray[np.float32]],
        *,
        among: Keys,
        shelves: Sequence[str],
        most: int,
    ) -> dict[int, float]:
        """Return the memories most like a question, by cosine after today's mean is subtracted from both sides.

        What is live today is found by today's index, what was closed since by its vectors. Texts that were altered
        since have no vector any more.

        Args:
            vectors: by model, the question's vector, float32[dimension].
            among: keys of the memories of then, ascending.
            shelves: whose mean is subtracted.
            most: upper bound for each model.
        """
        ...


Links = Callable[[Snapshot, int, Sequence[int]], Iterable[tuple[int, int]]]
"""Finds mentions by rule: (snapshot, space, node keys) to (node key, entity key) pairs."""

Decide = Callable[[Snapshot], tuple[Change, T]]
"""Reads the store, decides without side effects, returns the change and what the caller gets."""


Gate = Callable[[Snapshot, Change, Reason], tuple[Change, Reason]]
"""Screens every change and its reason inside the transaction, and returns what may be stored."""


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

    def seen_by(self, scope: Scope) -> Self:
        """Return this store as a caller sees it. A backend that can keeps other owners' rows from its transactions
        itself, besides the conditions of each question. This store shows everything: it is for upkeep.
        """
        ...

    def check_writable(self) -> None:
        """Raise StoreError if the store lies on a disk that cannot be written: then it only answers."""
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

    async def derive(self, work: Callable[[Snapshot], T]) -> T:
        """Write derived rows: durable like the rest, but without a commit, since they can be computed again."""
        ...

    async def read(self, ask: Callable[[Snapshot], T]) -> T:
        """Ask from one snapshot, in a reader's thread. Keep it short: nothing may be awaited inside."""
        ...

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        """Ask the store as it was, in a reader's thread.

        Args:
            scope: the caller. An instant stands for the caller's last commit that is not later.
            links: finds the entities named in texts, where texts or names have changed since.
        """
        ...

    async def look(self, ask: Callable[[Snapshot], T]) -> T:
        """Ask a long question, with a connection and a thread of its own: other readers do not wait for it."""
        ...

    async def doctor(self) -> Report:
        """Look for damage. Changes nothing."""
        ...

    async def mend(self, report: Report) -> None:
        """Repair what is safe to repair of the damage that `doctor` found. Deletes nothing."""
        ...

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Rebuild the database from plain files. Return how many lines were read. Raises InvalidError."""
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

    def copy_files(self, target: Path, look: Callable[[Snapshot], T]) -> tuple[T, dict[str, BackupFile]]:
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


_POLL_S = 0.1
"""How often to look for new commits. The store is asked, so that no process has to know of another."""

_AT_ONCE = 500


def entity_meant(snapshot: Snapshot, scope: Scope, name: str) -> Entity:
    """Return the entity of an id or of a name: any name or alias in any script, a case of it, or "my wife".

    Raises:
        NotFoundError: no entity has that name.
        InvalidError: it may be one of several.
    """
    if (entity := snapshot.entities.by_id(scope, name)) is not None:
        return entity
    named = snapshot.entities.named(scope, name)
    if not named.entities:
        raise NotFoundError(f"entity: no person or thing is known as {name!r}")
    if named.by != "same" and not named.is_clear:
        several = ", ".join(f"{entity.name} ({entity.id})" for entity in named.entities)
        raise InvalidError(f"entity: {name!r} may be any of {several}", hint="give the name or the id")
    return named.entities[0]


async def changes(store: Store, *, after: int) -> AsyncIterator[ChangeEvent]:
    """Yield an event for each commit after a number, in order and exactly once, then wait for more, without end.

    Args:
        after: the number of the last commit that the caller has taken in; 0 for all.

    Raises:
        StoreError: the store cannot be read.
        UnavailableError: the store was closed.
    """
    while True:
        events = await store.read(lambda tx, after=after: tx.history.events(after=after, most=_AT_ONCE))  # type: ignore[misc]
        for event in events:
            yield event
            after = event.commit
        if not events:
            await asyncio.sleep(_POLL_S)
