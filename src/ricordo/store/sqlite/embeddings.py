"""Vectors in the store, and the indexes over them that a process holds in memory.

`embeddings` is what there is; packs are a cache of it that loads fast; the index in memory follows both by their
ascending ids, whoever wrote them: first what was removed is taken out, then what is new is put in.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ricordo.store.sqlite import faults
from ricordo.store.sqlite.models import CENTRE_MOST, centres_due
from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.store.sqlite.vectors import VectorIndex, encode, pack_segment

PACK_ROWS = 16_384

Keys = NDArray[np.int64]
Scores = NDArray[np.float32]


@dataclass(slots=True)
class _Shelf:
    """The index of one model, space and shelf, and how far it has followed the store."""

    index: VectorIndex
    embedding: int = 0
    removal: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class VectorShelves:
    """All vector indexes of a process. Loaded when first asked, then kept in step."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[int, int, str], _Shelf] = {}
        self._lock = threading.Lock()

    def nearest(self, snapshot: Snapshot, vector: NDArray[np.float32], *, model: int, spaces: Sequence[int],
                shelves: Sequence[str], limit: int, among: Keys | None) -> tuple[Keys, Scores]:  # fmt: skip
        """The live nodes nearest to a vector, over several spaces and shelves, best first.

        Args:
            among: only these keys; None for all.

        Returns:
            int64[k] keys and float32[k] dot products, equal ones by ascending key.
        """
        parts = [
            self._current(snapshot, model, space, shelf, len(vector)).search(vector, limit, among=among)
            for space in spaces
            for shelf in shelves
        ]
        return _merged(parts, limit)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been loaded yet."""
        return not self._shelves

    def load(
        self, snapshot: Snapshot, *, model: int, dimension: int, spaces: Sequence[int], shelves: Sequence[str]
    ) -> None:
        """Bring the indexes of a caller into memory before they are asked."""
        for space in spaces:
            for shelf in shelves:
                self._current(snapshot, model, space, shelf, dimension)

    def vectors(self, snapshot: Snapshot, keys: Keys, *, model: int, dimension: int, spaces: Sequence[int],
                shelves: Sequence[str]) -> NDArray[np.float32]:  # fmt: skip
        """The vectors of live nodes, float32[n, dimension], NaN where there is none."""
        found = np.full((len(keys), dimension), np.nan, np.float32)
        for space in spaces:
            for shelf in shelves:
                rows = self._current(snapshot, model, space, shelf, dimension).vectors(keys)
                here = ~np.isnan(rows[:, 0])
                found[here] = rows[here]
        return found

    def _current(self, snapshot: Snapshot, model: int, space: int, shelf: str, dimension: int) -> VectorIndex:
        place = (model, space, shelf)
        with self._lock:
            held = self._shelves.setdefault(place, _Shelf(VectorIndex(dimension)))
        with held.lock:
            _follow(snapshot, held, place)
        return held.index

    def forget(self, model: int) -> None:
        """Let go of a model's indexes."""
        with self._lock:
            for place in [place for place in self._shelves if place[0] == model]:
                del self._shelves[place]


def _merged(parts: list[tuple[Keys, Scores]], limit: int) -> tuple[Keys, Scores]:
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([part[0] for part in parts])
    scores = np.concatenate([part[1] for part in parts])
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]


def _follow(snapshot: Snapshot, held: _Shelf, place: tuple[int, int, str]) -> None:
    """Bring an index to where the snapshot is; one that is ahead already is left alone."""
    embedding, removal = snapshot.rows("embeddings_position")[0]
    if held.embedding >= embedding and held.removal >= removal:
        return
    values = {"model": place[0], "space": place[1], "shelf": place[2]}
    removed = snapshot.rows("removals_new", {"model": place[0], "after": held.removal})
    if held.embedding == 0:
        held.embedding = _load_packs(snapshot, held.index, values, removed)
    else:
        for _, node in removed:
            held.index.remove(node)
    while fresh := snapshot.rows("embeddings_new", {**values, "after": held.embedding, "most": PACK_ROWS}):
        held.index.extend(pack_segment([row[1] for row in fresh], [row[2] for row in fresh]))
        held.embedding = fresh[-1][0]
    held.embedding, held.removal = max(held.embedding, embedding), max(held.removal, removal)


def _load_packs(
    snapshot: Snapshot, index: VectorIndex, values: dict[str, object], removed: list[tuple[int, int]]
) -> int:
    """Read all packs of a shelf; what was removed after a pack was made is taken out before the next one adds."""
    through = 0
    for key, removals, through, size in snapshot.rows("packs_of", values):  # noqa: B007
        _read_pack(snapshot, index, key, size // (12 + index.dimension))
        gone = [node for id_, node in removed if id_ > removals]
        if gone:
            index.remove_all(gone)
    return through


def _read_pack(snapshot: Snapshot, index: VectorIndex, key: int, rows: int) -> None:
    """Read a pack straight into the index: a quarter faster than through a value of a row."""
    with snapshot.connection.blob_open("main", "packs", "segment", key, False) as blob:
        room = index.reserve(rows)
        for column in (room.keys.data, room.scales.data, room.codes.data):
            blob.read_into(column.cast("B"))
        index.commit(room)


# writing: each of these runs inside the writer's transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVectors:
    """A node's vector and those of its words, made from `content`."""

    key: int
    content: str
    vector: NDArray[np.float32]
    pieces: tuple[str, ...] = ()
    words: NDArray[np.float32] | None = None


def put_vectors(snapshot: Snapshot, model: int, dimension: int, found: Sequence[NewVectors]) -> int | None:
    """Store the vectors of nodes that still hold the text they were made from. Returns the first node left out."""
    left: int | None = None
    faults.reached("vectors: before storing")
    for new in found:
        values = {
            "node": new.key,
            "content": new.content,
            "model": model,
            "vector": encode(new.vector, dimension),
        }
        embedding = snapshot.value("embedding_insert", values)
        if embedding is None:
            left = new.key if left is None else left
        elif new.words is not None:
            words = {
                "embedding": embedding,
                "pieces": " ".join(new.pieces),
                "vectors": encode_words(new.words),
            }
            snapshot.rows("word_vectors_insert", words)
    return left


def encode_words(words: NDArray[np.float32]) -> bytes:
    """Unit vectors as int8: 127 stands for 1."""
    return bytes(np.rint(words * 127).astype(np.int8).tobytes())


def word_vectors(snapshot: Snapshot, model: int, keys: Sequence[int], *, width: int) -> tuple[
    Keys, NDArray[np.intp], NDArray[np.int8]
]:  # fmt: skip
    """The vectors of the words of some nodes, one below the other.

    Returns:
        The nodes that have any, int64[n]; the row each begins at, intp[n]; the vectors, int8[rows, width], 127 for 1.
    """
    rows = snapshot.rows("word_vectors_of", {"model": model, "nodes": json.dumps(keys)})
    lengths = [len(vectors) for _, vectors in rows]
    stacked = np.frombuffer(b"".join([vectors for _, vectors in rows]), np.int8).reshape(-1, width)
    starts = np.cumsum([0, *lengths], dtype=np.intp)[:-1] // width
    return np.array([node for node, _ in rows], np.int64), starts, stacked


def recentre(snapshot: Snapshot, model: int, dimension: int) -> bool:
    """Take the mean of each shelf that has grown by a third since the last time, of its first 20,000 vectors.

    Taking the mean of the collection from both sides of the cosine lifted recall@10 by 1 to 8 points (MEASURED.md). The
    mean of a few vectors is mostly those vectors themselves: below 50 there is none.
    """
    due = centres_due(snapshot, model)
    for space, shelf in due:
        values = {"model": model, "space": space, "shelf": shelf}
        rows = [row[0] for row in snapshot.rows("centre_sample", {**values, "most": CENTRE_MOST})]
        coded = np.frombuffer(b"".join(rows), [("scale", "<f4"), ("code", "i1", (dimension,))])
        total = (coded["code"] * coded["scale"][:, np.newaxis].astype(np.float64)).sum(axis=0)
        mean = (total / max(1, len(rows))).astype("<f4").tobytes()
        snapshot.rows("centre_put", {**values, "count": len(rows), "vector": mean})
    return bool(due)


def centre(
    snapshot: Snapshot, *, model: int, dimension: int, spaces: Sequence[int], shelves: Sequence[str]
) -> NDArray[np.float32]:
    """The mean of what a caller sees, float32[dimension]; zeros while there is little."""
    values = {"model": model, "spaces": json.dumps(spaces), "shelves": json.dumps(shelves)}
    rows = snapshot.rows("centres_of", values)
    total = np.zeros(dimension, np.float64)
    for count, vector in rows:
        total += count * np.frombuffer(vector, "<f4").astype(np.float64)
    return np.asarray(total / max(1, sum(count for count, _ in rows)), np.float32)


def pack_full_shelves(snapshot: Snapshot) -> int:
    """Pack one lot of vectors of each shelf that has enough loose ones. Returns how many packs were made."""
    made = 0
    for model, space, shelf, after in snapshot.rows("shelves_to_pack", {"least": PACK_ROWS}):
        values = {"model": model, "space": space, "shelf": shelf}
        rows = snapshot.rows("embeddings_new", {**values, "after": after, "most": PACK_ROWS})
        if not rows:  # all of them were closed before they were packed
            continue
        removals = snapshot.rows("embeddings_position")[0][1]
        segment = pack_segment([row[1] for row in rows], [row[2] for row in rows])
        faults.reached("vectors: before packing")
        snapshot.rows("pack_insert", {**values, "through": rows[-1][0], "removals": removals, "segment": segment})
        faults.reached("vectors: after packing")
        made += 1
    return made
