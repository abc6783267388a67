"""What may be asked of a store at one moment: one snapshot, its questions grouped by subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import apsw

from ricordo.model import Scope
from ricordo.storage.database.embedding_models import EmbeddingModels
from ricordo.storage.database.entities import Entities, Graph, Mentions
from ricordo.storage.database.erase import Erasure
from ricordo.storage.database.history import History
from ricordo.storage.database.index_upkeep import Upkeep, Vectors
from ricordo.storage.database.nodes import Export, Lifecycle, Nodes
from ricordo.storage.database.runs import Evidence, Leases, Proposals, Reviews, Runs, Sessions
from ricordo.storage.database.statements import Statements, Unchanged
from ricordo.storage.database.statistics import Statistics
from ricordo.storage.database.suppression import Suppression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.storage.database.embeddings import VectorShelves
    from ricordo.storage.database.turns import TurnTable

    Keys = NDArray[np.int64]


class Kept:
    """What a store's readers keep from one snapshot to the next. Made when first asked for: it needs numpy."""

    @cached_property
    def turns(self) -> TurnTable:
        """The turns that were read."""
        from ricordo.storage.database.turns import TurnTable

        return TurnTable()

    @cached_property
    def vectors(self) -> VectorShelves:
        """The vector indexes in memory."""
        from ricordo.storage.database.embeddings import VectorShelves

        return VectorShelves()


class GroupedReader(Statements):
    """The reader groups of one snapshot, and the in-memory tables its searches use."""

    def __init__(
        self, connection: apsw.Connection, kept: Kept | None = None, *, unchanged: Unchanged | None = None
    ) -> None:
        """
        Args:
            unchanged: a cache of answers that still hold; None where the store may change during this transaction.
        """
        super().__init__(connection, unchanged=unchanged)
        self._kept = Kept() if kept is None else kept

    @cached_property
    def nodes(self) -> Nodes:
        return Nodes(self)

    @cached_property
    def entities(self) -> Entities:
        return Entities(self)

    @cached_property
    def graph(self) -> Graph:
        return Graph(self)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self)

    @cached_property
    def reviews(self) -> Reviews:
        return Reviews(self, self.nodes)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self, self.nodes)

    @cached_property
    def history(self) -> History:
        return History(self)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(self, self.nodes)

    @cached_property
    def mentions(self) -> Mentions:
        return Mentions(self)

    @cached_property
    def suppression(self) -> Suppression:
        return Suppression(self)

    @cached_property
    def models(self) -> EmbeddingModels:
        return EmbeddingModels(self)

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics(self, self.models, self.lifecycle)

    @cached_property
    def export(self) -> Export:
        return Export(self, self.nodes, self.entities)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self)

    @cached_property
    def vectors(self) -> Vectors:
        return Vectors(self)

    @cached_property
    def upkeep(self) -> Upkeep:
        return Upkeep(self)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self)

    @cached_property
    def proposals(self) -> Proposals:
        return Proposals(self)

    @cached_property
    def erasure(self) -> Erasure:
        return Erasure(self)

    @property
    def vector_shelves(self) -> VectorShelves:
        """The vector indexes that the readers of this process share."""
        return self._kept.vectors

    @contextmanager
    def turns(self, *, shared: bool = True) -> Iterator[TurnTable]:
        """The turns that were read so far, come to where this snapshot is; one of its own where others are ahead.

        Args:
            shared: False where closed turns are looked at, which stand in no session's order.
        """
        from ricordo.storage.database.turns import TurnTable

        table = self._kept.turns
        if shared:
            with table.lock:
                if table.follow(self):
                    try:
                        yield table
                    except BaseException:  # it may have been left half done
                        table.drop(changes=-1, last=0)
                        raise
                    return
        own = TurnTable()
        own.follow(self)
        yield own

    def postings(
        self, scope: Scope, shelves: Sequence[str], terms: Sequence[str], *, archived: bool, most: int
    ) -> list[Keys]:
        """For each index term the nodes that hold it, ascending; at most `most` of them."""
        import numpy as np

        endings = self.once(
            ("endings", scope, *shelves, archived), lambda: self._endings(scope, shelves, archived=archived)
        )
        if not endings:
            return [np.empty(0, np.int64) for _ in terms]
        if not archived and self._all_lie_on(scope, shelves):
            with self.turns() as table:
                held = table.holding(self, terms, self.visible(scope))
            if held is not None:
                return [keys[:most] for keys in held]
        name = "archive_postings" if archived else "live_postings"
        found = []
        for term in terms:
            match = " OR ".join([f'"{term}{ending}"' for ending in endings])
            text = self.value(name, {"match": match, "most": most})
            found.append(np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, np.int64))
        return found

    def _all_lie_on(self, scope: Scope, shelves: Sequence[str]) -> bool:
        """Whether there is nothing a caller may see on any other shelf."""
        counts = self.rows_of_store("shelf_counts", self.scoped(scope))
        return all(shelf in shelves for _, shelf, nodes, _ in counts if nodes)

    def _endings(self, scope: Scope, shelves: Sequence[str], *, archived: bool) -> list[str]:
        """How the terms of those shelves end that a caller may look into and that may hold something: looking into one
        costs as much where nothing is on it.
        """
        if archived:
            return [f"·{space}{shelf}" for space in self.visible(scope) for shelf in shelves]
        counts = self.rows_of_store("shelf_counts", self.scoped(scope))
        return [f"·{space}{shelf}" for space, shelf, nodes, _ in counts if nodes and shelf in shelves]
