"""One snapshot of the database, with all groups of the port."""

from __future__ import annotations

from functools import cached_property

import apsw

from ricordo.errors import InvalidError
from ricordo.storage.database import candidates as search
from ricordo.storage.database.embeddings import Vectors
from ricordo.storage.database.entities import Entities, Mentions
from ricordo.storage.database.erase import Erasure
from ricordo.storage.database.history import History
from ricordo.storage.database.nodes import Export, Lifecycle, Members
from ricordo.storage.database.runs import Evidence, Leases, Proposals, Receipts, Reviews, Runs, Sessions
from ricordo.storage.database.word_index import Upkeep
from ricordo.storage.protocol import Snapshot


class DatabaseSnapshot(search.SearchReader):
    """A store at one moment, in one transaction of one thread. `Snapshot` describes the methods."""

    members = cached_property(Members)
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
    receipts = cached_property(Receipts)
    erasure = cached_property(Erasure)

    candidates = search.candidates
    shortlist = search.shortlist
    load_vectors = search.load_vectors
    load_turns = search.load_turns

    def load_more_vectors(self) -> bool:
        return self.vector_shelves.read_on(self)


def database_of(snapshot: Snapshot) -> DatabaseSnapshot:
    """Return a snapshot as one of a SQLite database. Raises InvalidError for other backends."""
    if not isinstance(snapshot, DatabaseSnapshot) or not isinstance(snapshot.connection, apsw.Connection):
        raise InvalidError(
            "this backend cannot write or read complete exports",
            hint="copy the store to a file with `ricordo migrate`, and use that file; or use another format",
        )
    return snapshot
