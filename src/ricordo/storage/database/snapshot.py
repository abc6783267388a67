"""One snapshot of the database: what the port may ask at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ricordo.errors import InvalidError
from ricordo.model import Scope
from ricordo.storage.database.reader import GroupedReader
from ricordo.storage.protocol import Snapshot

if TYPE_CHECKING:
    from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist


class DatabaseSnapshot(GroupedReader):
    """One moment of a store. Lives inside one transaction of one thread."""

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        """Return the candidates of a search with what ranking needs to know of them."""
        from ricordo.storage.database.candidates import candidates

        return candidates(self, query)

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int) -> Shortlist:
        """Return what is known of the best candidates; `now` in Unix milliseconds."""
        from ricordo.storage.database.candidates import shortlist

        return shortlist(self, scope, keys, archived=archived, now=now)

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        """Load the vectors that a caller's first search takes, so that it need not wait for them."""
        from ricordo.storage.database.candidates import load_vectors

        load_vectors(self, scope, shelves)

    def load_more_vectors(self) -> bool:
        """Load some more of the vectors that searches read one by one so far. Return whether any are left."""
        return self.vector_shelves.read_on(self)

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        """Load all turns of a caller, so that searches need not read them one by one.

        Args:
            ahead: drop nobody else's turns for them. Returns False where there is no room.
        """
        from ricordo.storage.database.candidates import load_turns

        return load_turns(self, scope, ahead=ahead)


def database_of(snapshot: Snapshot) -> DatabaseSnapshot:
    """Narrow a snapshot to one of the database.

    Raises:
        InvalidError: it is one of another backend.
    """
    if not isinstance(snapshot, DatabaseSnapshot):
        raise InvalidError("this backend can neither be backed up nor exported whole", hint="export to markdown")
    return snapshot
