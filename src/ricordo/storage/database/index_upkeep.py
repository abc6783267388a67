"""Background work of the store itself: writing vectors, and keeping its private indexes compact."""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.storage.database import fulltext
from ricordo.storage.database.statements import Statements
from ricordo.storage.values import NewVectors, Unembedded


class Vectors:
    """Vectors of nodes: which are missing, and writing them. Methods that write run inside a write transaction."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def lacking(self, model: int, *, after: int, most: int) -> list[Unembedded]:
        """Return live nodes with a key above `after` that have no vector of a model: by ascending key, the first
        `most`.
        """
        values = {"model": model, "after": after, "most": most}
        return [Unembedded(*row) for row in self._sql.rows("lacking", values)]

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        """Store vectors of live nodes whose content is still the text they were made from.

        Returns:
            The key of the first node that was left out, in the order given; None where all were stored.
        """
        from ricordo.storage.database.embeddings import put_vectors  # numpy takes a tenth of a second to import

        return put_vectors(self._sql, model, dimension, made)

    def compact(self) -> bool:
        """Do some of the backend's own work on the vectors just stored; return whether there may be more.

        Call it in write transactions of its own until it returns False. A backend without such work returns False.
        """
        from ricordo.storage.database.embeddings import pack_full_shelves

        return bool(pack_full_shelves(self._sql))

    def recentre(self, model: int, dimension: int) -> bool:
        """Store the mean vector of each part of the store that `models.centres_due` names; return whether any was due.

        The mean is taken of the part's first 20,000 vectors.
        """
        from ricordo.storage.database.embeddings import recentre

        return recentre(self._sql, model, dimension)


class Upkeep:
    """Private upkeep of the backend's word index, in short steps, so that other writers wait only milliseconds."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def is_due(self) -> bool:
        """Return whether upkeep would pay. A backend without such work returns False."""
        return fulltext.is_fragmented(self._sql)

    def step(self) -> bool:
        """Do one step inside a write transaction; return whether there is more to do."""
        return fulltext.merge_step(self._sql)
