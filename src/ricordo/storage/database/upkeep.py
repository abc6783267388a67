"""Derived data of the database, kept up in the background: the full-text index and the vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from ricordo.storage import faults
from ricordo.storage.database import embeddings
from ricordo.storage.database.embeddings import CENTRE_MOST, EmbeddingModels
from ricordo.storage.database.statements import Group, Statements, asks, rows_as
from ricordo.storage.database.statements import sql as statement
from ricordo.storage.database.vector_math import decode, encode, pack_segment, sketch_segment
from ricordo.storage.sql import transaction
from ricordo.storage.values import NewVectors, Unembedded
from ricordo.text.languages import analyzer_version

_ANALYZER_KEY = "analyzer"
"""The version of the analyzer that made a store's index terms, features and statement lines."""

_ANALYZE_AGAIN = (
    "text_live_clear",
    "text_live_fill",
    "text_archive_clear",
    "text_archive_fill",
    "features_refill",
    "slots_clear",
    "slots_fill",
    "turns_changed",
)

# Segments are merged when the largest holds less than this share: a word is then written about four times in all.
_LARGEST_SHARE = 0.75
# Fewer pages are searched quickly anyway.
_LEAST_PAGES = 64
# Pages merged per step: some milliseconds, in which nothing else can be written.
_PAGES_PER_STEP = 64


def space_postings(sql: Statements, space: int, term: str, *, most: int) -> list[int]:
    """Return the nodes of one space that hold an index term, closed ones too; at most `most` of either."""
    match = " OR ".join(f'"{term}·{space}{shelf}"' for shelf in "kec")
    lists = (sql.value(name, {"match": match, "most": most}) for name in ("live_postings", "archive_postings"))
    return [int(key) for text in lists if text for key in text.split(",")]


def analyze_again(connection: apsw.Connection) -> None:
    """Rebuild the index terms, features and statement lines of a store if another analyzer made them.

    Takes some seconds for 100,000 memories, in one transaction: other processes wait or see the former index.
    """
    version = analyzer_version()
    if _stored_version(connection) == version:
        return
    with transaction(connection):
        if _stored_version(connection) == version:  # another process was first
            return
        for name in _ANALYZE_AGAIN:
            connection.execute(statement(name))
        connection.execute(statement("meta_put"), {"name": _ANALYZER_KEY, "value": version})


def _stored_version(connection: apsw.Connection) -> str | None:
    found: str | None = connection.execute(statement("meta_get"), {"name": _ANALYZER_KEY}).get
    return found


class Vectors(Group):
    """Vectors of nodes: which are missing, and writing them. Methods that write run inside a write transaction."""

    lacking = asks("lacking", "model after most", rows_as(Unembedded._make))

    def of(self, model: int, keys: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        rows = self._sql.rows("embeddings_of", {"model": model, "nodes": json.dumps(list(keys))})
        return {key: decode(vector) for key, vector in rows}

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        return put_vectors(self._sql, model, dimension, made)

    def compact(self) -> bool:
        return bool(pack_full_shelves(self._sql))

    def recentre(self, model: int, dimension: int) -> bool:
        return recentre(self._sql, model, dimension)


class Upkeep(Group):
    """Private upkeep of the backend's word index, in short steps, so that other writers wait only milliseconds."""

    def is_due(self, *, least: int = _LEAST_PAGES) -> bool:
        """Return whether merging the segments pays. Each write adds one, each search reads all; SQLite merges some of
        equal size and stops at about a dozen. An index of fewer than `least` pages is left as it is.
        """
        pages = self._sql.rows_of_store("word_parts")[0]
        return bool(pages[1] >= least and pages[0] < _LARGEST_SHARE * pages[1])

    def step(self) -> bool:
        """Merge the segments a little further. Return False when only one is left."""
        before = self._sql.connection.total_changes()
        self._sql.rows("word_parts_join", {"pages": -_PAGES_PER_STEP})
        return self._sql.connection.total_changes() - before > 1  # the command itself counts as one


# writing: each of these runs inside the writer's transaction


def put_vectors(snapshot: Statements, model: int, dimension: int, found: Sequence[NewVectors]) -> int | None:
    """Store the vectors of nodes that still hold the text they were made from. Returns the first node left out."""
    left: int | None = None
    faults.reached("vectors: before storing")
    for new in found:
        values = {"node": new.key, "content": new.content, "model": model, "vector": encode(new.vector, dimension)}
        embedding = snapshot.value("embedding_insert", values)
        if embedding is None:
            left = new.key if left is None else left
            continue
        if new.passages is not None:
            vectors = b"".join(encode(each, dimension) for each in new.passages)
            snapshot.rows("passage_vectors_insert", {"embedding": embedding, "vectors": vectors})
        if new.words is not None:
            words = {"embedding": embedding, "pieces": " ".join(new.pieces), "vectors": encode_words(new.words)}
            snapshot.rows("word_vectors_insert", words)
    return left


def encode_words(words: NDArray[np.float32]) -> bytes:
    """Unit vectors as int8: 127 stands for 1."""
    return bytes(np.rint(words * 127).astype(np.int8).tobytes())


def recentre(snapshot: Statements, model: int, dimension: int) -> bool:
    """Take the mean of each partition that has grown by a third since the last time, of its first 20,000 vectors.

    Taking the mean of the collection from both sides of the cosine lifted recall@10 by 1 to 8 points (MEASURED.md). The
    mean of a few vectors is mostly those vectors themselves: below 50 there is none.
    """
    due = EmbeddingModels(snapshot).centres_due(model)
    for space, shelf in due:
        values = {"model": model, "space": space, "shelf": shelf}
        rows = [row[0] for row in snapshot.rows("centre_sample", {**values, "most": CENTRE_MOST})]
        coded = np.frombuffer(b"".join(rows), [("scale", "<f4"), ("code", "i1", (dimension,))])
        total = (coded["code"] * coded["scale"][:, np.newaxis].astype(np.float64)).sum(axis=0)
        mean = (total / max(1, len(rows))).astype("<f4").tobytes()
        snapshot.rows("centre_put", {**values, "count": len(rows), "vector": mean})
    return bool(due)


def pack_full_shelves(snapshot: Statements) -> int:
    """Write a segment of vectors for each partition that has enough loose ones. Return how many were written."""
    made = 0
    for model, space, shelf, after in snapshot.rows("shelves_to_pack", {"least": embeddings.PACK_ROWS}):
        values = {"model": model, "space": space, "shelf": shelf}
        rows = snapshot.rows("embeddings_new", {**values, "after": after, "most": embeddings.PACK_ROWS})
        if not rows:  # all of them were closed before they were packed
            continue
        removals = snapshot.rows("embeddings_position")[0][1]
        segment = pack_segment([row[1] for row in rows], [row[2] for row in rows])
        pack = {
            "through": rows[-1][0],
            "removals": removals,
            "sketch": sketch_segment(segment, len(rows[0][2]) - 4),
            "segment": segment,
        }
        faults.reached("vectors: before packing")
        snapshot.rows("pack_insert", {**values, **pack})
        faults.reached("vectors: after packing")
        made += 1
    return made
