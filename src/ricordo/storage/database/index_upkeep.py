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
        values = {"model": model, "after": after, "most": most}
        return [Unembedded(*row) for row in self._sql.rows("lacking", values)]

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        from ricordo.storage.database.embeddings import put_vectors  # numpy takes a tenth of a second to import

        return put_vectors(self._sql, model, dimension, made)

    def compact(self) -> bool:
        from ricordo.storage.database.embeddings import pack_full_shelves

        return bool(pack_full_shelves(self._sql))

    def recentre(self, model: int, dimension: int) -> bool:
        from ricordo.storage.database.embeddings import recentre

        return recentre(self._sql, model, dimension)


class Upkeep:
    """Private upkeep of the backend's word index, in short steps, so that other writers wait only milliseconds."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def is_due(self) -> bool:
        return fulltext.is_fragmented(self._sql)

    def step(self) -> bool:
        return fulltext.merge_step(self._sql)
