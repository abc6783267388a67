"""One snapshot of the database: what the port may ask at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ricordo.errors import InvalidError
from ricordo.model import Scope
from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist
from ricordo.storage.database import candidates
from ricordo.storage.database.entities import Entities, Mentions
from ricordo.storage.database.erase import Erasure
from ricordo.storage.database.history import History
from ricordo.storage.database.nodes import Export, Lifecycle
from ricordo.storage.database.runs import Evidence, Leases, Proposals, Reviews, Runs, Sessions
from ricordo.storage.database.upkeep import Upkeep, Vectors
from ricordo.storage.protocol import Snapshot


class DatabaseSnapshot(candidates.SearchReader):
    """One moment of a store. Lives inside one transaction of one thread. `Snapshot` describes the methods."""

    entities = cached_property(Entities)
    sessions = cached_property(Sessions)
    reviews = cached_property(Reviews)
    runs = cached_property(Runs)
    history = cached_property(History)
    lifecycle = cached_property(Lifecycle)
    mentions = cached_property(Mentions)
    export = cached_property(Export)
    evidence = cached_property(Evidence)
    vectors = cached_property(Vectors)
    upkeep = cached_property(Upkeep)
    leases = cached_property(Leases)
    proposals = cached_property(Proposals)
    erasure = cached_property(Erasure)

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        return candidates.candidates(self, query)

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int) -> Shortlist:
        return candidates.shortlist(self, scope, keys, archived=archived, now=now)

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        candidates.load_vectors(self, scope, shelves)

    def load_more_vectors(self) -> bool:
        return self.vector_shelves.read_on(self)

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        return candidates.load_turns(self, scope, ahead=ahead)


def database_of(snapshot: Snapshot) -> DatabaseSnapshot:
    """Narrow a snapshot to one of the database. Raises InvalidError."""
    if not isinstance(snapshot, DatabaseSnapshot):
        raise InvalidError("this backend can neither be backed up nor exported whole", hint="export to markdown")
    return snapshot
