"""Vectors in the store, and the indexes over them that a process holds in memory.

The table `embeddings` holds the vectors; segments are copies in bulk that load fast. An index in memory follows both by
their ascending ids, also across processes: removed vectors are deleted first, then new ones are added.

In a large partition, only keys and signs are read at first, a sixth of the bytes. Until a process that searches again
has read the rest of the segments, the vectors that an answer needs are read from `embeddings`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import InvalidError
from ricordo.storage import faults
from ricordo.storage.candidates import Turns, WordVectors, stretches
from ricordo.storage.database.statements import Asked, Group, Statements
from ricordo.storage.database.vector_index import SKETCH_FROM, Room, VectorIndex, check_scales
from ricordo.storage.database.vector_math import (
    Centre,
    centred_cosines,
    columns_of,
    decode,
    encode,
    exact_centred_cosines,
    numbers_in,
    pack_joined,
    pack_segment,
    sketch_segment,
)
from ricordo.storage.values import EmbeddingModel, ModelState, NewVectors, Unembedded

PACK_ROWS = 16_384

# A first answer needs thousands of vectors, read one by one; reading this many in bulk takes no longer.
_READ_AT_ONCE = 150_000
# Until all segments are read, a search takes 30 ms longer. So read on for this long, not one segment per search.
_READ_ON_S = 0.03

Keys = NDArray[np.int64]
Scores = NDArray[np.float32]
Place = tuple[int, int, str]
"""Model, space, partition."""
Position = tuple[int, int, int]
"""The latest ids of an embedding, a removal and an erasure."""


class Corpus(NamedTuple):
    """The vectors that a caller searches: of one model, in some spaces and partitions."""

    model: int
    dimension: int
    spaces: Sequence[int]
    shelves: Sequence[str]

    @property
    def places(self) -> list[Place]:
        return [(self.model, space, shelf) for space in self.spaces for shelf in self.shelves]


@dataclass(slots=True)
class _Shelf:
    """The index of one model, space and partition, and how far it has followed the store.

    `unread` lists segments of which only keys and signs are in memory; until it is empty, the index can only sketch.
    `passages` are the encoded vectors of memories with several passages, if the store sends them along.
    """

    index: VectorIndex
    embedding: int = 0
    removal: int = 0
    passages: dict[int, bytes] = field(default_factory=dict)
    unread: list[tuple[int, Room]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def removed(self, place: Place) -> Asked:
        """Return what asks for the vectors that were removed since."""
        return "removals_new", {"model": place[0], "after": self.removal}

    def added(self, place: Place) -> Asked:
        """Return what asks for the vectors that were added since."""
        model, space, shelf = place
        values = {"model": model, "space": space, "shelf": shelf, "after": self.embedding, "most": PACK_ROWS}
        return "embeddings_new", values


class VectorShelves:
    """All vector indexes of a process. They are loaded at first use and then kept up to date."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[int, int, str], _Shelf] = {}
        self._erasure = 0
        self._lock = threading.Lock()

    def nearest(
        self, snapshot: Statements, corpus: Corpus, vector: NDArray[np.float32], *, limit: int, among: Keys | None
    ) -> tuple[Keys, Scores]:
        """Return the live nodes nearest to a vector, best first.

        Args:
            among: the keys to choose from; None for all.

        Returns:
            int64[k] keys and float32[k] dot products, equal products by ascending key.
        """
        position = _position(snapshot)
        parts = []
        for place in corpus.places:
            held = self._current(snapshot, place, corpus.dimension, position)
            if held.unread or len(held.index):
                parts.append(_search(snapshot, held, vector, model=corpus.model, limit=limit, among=among))
        return _merged(parts, limit)

    def news(self, corpus: Corpus) -> list[Asked]:
        """Return what the indexes of a caller will ask if vectors were written."""
        held = [(each, place) for place in corpus.places if (each := self._shelves.get(place))]
        return [asks(place) for each, place in held for asks in (each.removed, each.added)]

    def lacks(self, corpus: Corpus) -> list[Asked]:
        """Return what the indexes of a caller that are not in memory will ask."""
        return [_Shelf(VectorIndex(1)).added(place) for place in corpus.places if place not in self._shelves]

    def load(self, snapshot: Statements, corpus: Corpus) -> None:
        """Load the indexes of a caller before the first search."""
        position = _position(snapshot)
        for place in corpus.places:
            self._current(snapshot, place, corpus.dimension, position)

    def read_on(self, snapshot: Statements, *, for_s: float = _READ_ON_S) -> bool:
        """Read more vectors of large partitions for `for_s` seconds, at least a segment. Return whether any remain."""
        with self._lock:
            shelves = list(self._shelves.values())
        until = time.monotonic() + for_s
        for held in shelves:
            with held.lock:
                while held.unread and _position(snapshot)[2] <= self._erasure:  # after an erasure, a search reloads
                    _read_codes(snapshot, held)
                    if time.monotonic() >= until:
                        return True
        return False

    def vectors(self, snapshot: Statements, corpus: Corpus, keys: Keys) -> NDArray[np.float32]:
        """Return the vectors of live nodes, float32[n, dimension]; NaN for a node without one."""
        codes, scales = self._rows(snapshot, corpus, keys)
        return codes * scales[:, np.newaxis]

    def cosines(self, snapshot: Statements, corpus: Corpus, keys: Keys, vector: NDArray[np.float32]) -> Scores:
        """Return cosines of live nodes with a vector, after the mean of what the caller sees is subtracted from both,
        float32[n]; NaN for a node without a vector.
        """
        codes, scales = self._rows(snapshot, corpus, keys)
        return centred_cosines(codes, scales, vector, _centre(snapshot, corpus))

    def passages(self, snapshot: Statements, corpus: Corpus, keys: Keys) -> tuple[list[tuple[int, bytes]], list[Asked]]:
        """Return the vectors of passages that are in memory, by node; and what asks for those of the other nodes.

        Args:
            keys: the nodes, each once, ascending.
        """
        found, position = list[tuple[int, bytes]](), _position(snapshot)
        for place in () if snapshot.has_packs else corpus.places:
            held = self._current(snapshot, place, corpus.dimension, position)
            here = held.index.present(keys)
            found += [(key, vectors) for key in here.tolist() if (vectors := held.passages.get(key))]
            keys = np.setdiff1d(keys, here)
        asked = "passage_vectors_of", {"model": corpus.model, "nodes": json.dumps(keys.tolist())}
        return found, [asked] if len(keys) else []

    def _rows(self, snapshot: Statements, corpus: Corpus, keys: Keys) -> tuple[NDArray[np.int8], Scores]:
        """Return the stored form of live nodes' vectors: int8[n, dimension] and scales float32[n], NaN without a
        vector. A vector is the product of both; callers that need only dot products save the multiplication.
        """
        codes, scales = np.zeros((len(keys), corpus.dimension), np.int8), np.full(len(keys), np.nan, np.float32)
        position = _position(snapshot)
        for place in corpus.places:
            held = self._current(snapshot, place, corpus.dimension, position)
            index = held.index
            if held.unread:
                index = _fetched(snapshot, corpus.model, index, index.present(keys))
            index.write_rows(keys, codes, scales)
        return codes, scales

    def _current(self, snapshot: Statements, place: Place, dimension: int, position: Position) -> _Shelf:
        with self._lock:
            if position[2] > self._erasure:  # nothing that was erased may stay in memory
                self._shelves.clear()
                self._erasure = position[2]
            held = self._shelves.get(place)
            if held is None or _missed(snapshot, held, position):
                held = self._shelves[place] = _Shelf(VectorIndex(dimension, sketch_from=SKETCH_FROM))
        with held.lock:
            _follow(snapshot, held, place, position)
        return held

    def keep_only(self, models: Collection[int]) -> None:
        """Drop the indexes of other models."""
        with self._lock:
            for place in [place for place in self._shelves if place[0] not in models]:
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


def _search(
    snapshot: Statements, held: _Shelf, vector: NDArray[np.float32], *, model: int, limit: int, among: Keys | None
) -> tuple[Keys, Scores]:
    """Search a partition. While part of it is unread, read the vectors to score from the store."""
    if not held.unread:
        return held.index.search(vector, limit, among=among)
    keys = held.index.sketch(vector, limit) if among is None else held.index.present(among)
    return _fetched(snapshot, model, held.index, keys).search(vector, limit)


def _fetched(snapshot: Statements, model: int, index: VectorIndex, keys: Keys) -> VectorIndex:
    """Return an index of a few rows that are read one by one: 7 microseconds each, in a store of a million."""
    rows = snapshot.rows("embeddings_of", {"model": model, "nodes": json.dumps(keys.tolist())})
    few = VectorIndex(index.dimension, sketch_from=len(rows))
    few.extend(pack_segment([row[0] for row in rows], [row[1] for row in rows]))
    return few


def _position(snapshot: Statements) -> Position:
    embedding, removal, erasure = snapshot.rows_of_store("embeddings_position")[0]
    return embedding, removal, erasure


def _missed(snapshot: Statements, held: _Shelf, position: Position) -> bool:
    """Return whether the index missed removals that are no longer recorded, so that it must be read again."""
    return (
        bool(held.embedding)
        and held.removal < position[1]
        and held.removal + 1 < EmbeddingModels(snapshot).dropped_below()
    )


def _follow(snapshot: Statements, held: _Shelf, place: Place, position: Position) -> None:
    """Bring an index to the state of the snapshot; an index that is ahead of it stays as it is."""
    embedding, removal, _ = position
    if held.embedding >= embedding and held.removal >= removal:
        return
    if held.embedding == 0:
        held.embedding = _load_packs(snapshot, held, place)
    else:
        for _, node in snapshot.rows(*held.removed(place)):
            held.index.remove(node)
            held.passages.pop(node, None)
    is_more = held.embedding < embedding
    while is_more:
        last, nodes, segment, passages = _added(snapshot, held.added(place))
        if last is not None:
            for node in held.passages.keys() & nodes.tolist():
                del held.passages[node]
            held.passages |= passages
            held.index.extend(segment)
            held.embedding = last
        is_more = len(nodes) == PACK_ROWS
    held.embedding, held.removal = max(held.embedding, embedding), max(held.removal, removal)


def _added(snapshot: Statements, asked: Asked) -> tuple[int | None, Keys, bytes, dict[int, bytes]]:
    """Return the last id of some new vectors, their nodes, the vectors as a segment, and those of passages by node, if
    the store sends them along; no id if there are none.
    """
    last, nodes, vectors, *passages = snapshot.rows(*asked)[0]
    keys = numbers_in(nodes)
    return last, keys, pack_joined(keys, vectors) if last is not None else b"", _passages_in(keys, *passages)


def _passages_in(nodes: Keys, lengths: str | None = None, joined: bytes | None = None) -> dict[int, bytes]:
    """Return the vectors of passages by node, from their lengths and the vectors of all nodes one after the other."""
    if not joined:
        return {}
    sizes = numbers_in(lengths)
    ends = sizes.cumsum()
    several = zip(nodes.tolist(), (ends - sizes).tolist(), ends.tolist(), strict=True)
    return {node: joined[start:end] for node, start, end in several if end > start}


def _load_packs(snapshot: Statements, held: _Shelf, place: Place) -> int:
    """Read all segments of a partition. Removals later than a segment apply before the next segment is added."""
    through, index = 0, held.index
    values = dict(zip(("model", "space", "shelf"), place, strict=True))
    rows = snapshot.rows("packs_of", values) if snapshot.has_packs else []
    packs = [(*row[:3], row[3] // (12 + index.dimension)) for row in rows]
    removed = snapshot.rows(*held.removed(place)) if packs else []
    count = sum(rows for *_, rows in packs)
    is_large = count > index.sketch_from
    if is_large:
        index.keep_signs()
    for key, removals, through, rows in packs:  # noqa: B007
        if is_large:
            held.unread.append((key, _read_signs(snapshot, index, key, rows)))
        else:
            _read_pack(snapshot, index, key, rows)
        gone = [node for id_, node in removed if id_ > removals]
        if gone:
            index.remove_all(gone)
    with suppress(InvalidError):  # a corrupt segment stays unread
        while held.unread and count <= _READ_AT_ONCE:
            _read_codes(snapshot, held)
    return through


def _read_pack(snapshot: Statements, index: VectorIndex, key: int, rows: int) -> None:
    """Read a segment directly into the arrays of the index: a quarter faster than as a column value."""
    room = index.reserve(rows)
    _read_into(snapshot, "segment", key, (room.keys, room.scales, room.codes))
    index.commit(room)


def _read_signs(snapshot: Statements, index: VectorIndex, key: int, rows: int) -> Room:
    """Read keys and signs of a segment. Return the room for its codes."""
    room = index.reserve(rows)
    _read_into(snapshot, "sketch", key, (room.keys, *room.signs))
    index.commit(room, is_whole=False)
    return room


def _read_codes(snapshot: Statements, held: _Shelf) -> None:
    """Read the codes of a segment of which only keys and signs were read. A corrupt segment stays unread forever."""
    key, room = held.unread[-1]
    _read_into(snapshot, "segment", key, (np.empty_like(room.keys), room.scales, room.codes))
    check_scales(room.scales)
    if len(held.unread) == 1:
        held.index.complete()
    held.unread.pop()


def _read_into(snapshot: Statements, column: str, key: int, arrays: Sequence[NDArray[Any]]) -> None:
    """Read a blob of a segment from its start into the arrays, one after the other."""
    with snapshot.connection.blob_open("main", "packs", column, key, False) as blob:
        for array in arrays:
            blob.read_into(array.data.cast("B"))


def words_asked(model: int, keys: Keys) -> dict[str, Any]:
    """Return the parameters of the statements that begin with `word_vectors_`."""
    return {"model": model, "nodes": json.dumps(keys.tolist())}


def word_vectors(snapshot: Statements, asked: Asked, turns: Turns, *, width: int) -> WordVectors:
    """Return the vectors of the words of some passages.

    Args:
        asked: the statement that reads them, perhaps together with those of other turns.
    """
    wanted = set(turns.keys.tolist())
    rows = [row for row in snapshot.rows(*asked) if row[0] in wanted]
    codes = np.frombuffer(b"".join([vectors for _, vectors in rows]), np.int8).reshape(-1, width)
    ends = np.cumsum([len(vectors) // width for _, vectors in rows], dtype=np.intp)
    nodes, starts = np.array([node for node, _ in rows], np.int64), np.append(0, ends)[:-1].astype(np.intp)
    if turns.several.any():
        return _by_passage(turns, nodes, starts, ends, codes)
    order = turns.keys.argsort()
    return WordVectors(places=order[turns.keys.searchsorted(nodes, sorter=order)], starts=starts, codes=codes)


def _by_passage(
    turns: Turns, nodes: Keys, starts: NDArray[np.intp], ends: NDArray[np.intp], codes: NDArray[np.int8]
) -> WordVectors:
    """Return word vectors by passage. In `codes`, a row of zeros separates the passages of a memory."""
    gaps = np.flatnonzero(~codes.any(axis=1))
    of_gap = np.arange(len(nodes)).repeat(ends - starts).take(gaps)
    whose = np.concatenate((np.arange(len(nodes)), of_gap))
    begins = np.concatenate((starts, gaps + 1))
    order = np.lexsort((begins, whose))
    whose, begins = whose.take(order), begins.take(order)
    number = np.arange(len(whose)) - whose.searchsorted(whose)
    is_last = np.append(whose[1:] != whose[:-1], True)
    until = np.where(is_last, ends.take(whose), np.append(begins[1:], 0) - 1)
    place_of = {
        pair: place for place, pair in enumerate(zip(turns.keys.tolist(), turns.passages.tolist(), strict=True))
    }
    pairs = zip(nodes.take(whose).tolist(), number.tolist(), strict=True)
    places = np.array([place_of.get(pair, -1) for pair in pairs], np.intp)
    kept = ((places >= 0) & (until > begins)).nonzero()[0]
    sizes = (until - begins).take(kept)
    return WordVectors(
        places=places.take(kept),
        starts=(sizes.cumsum() - sizes).astype(np.intp),
        codes=codes.take(stretches(begins.take(kept), sizes), axis=0),
    )


def passage_cosines(
    snapshot: Statements,
    shelves: VectorShelves,
    corpus: Corpus,
    turns: Turns,
    places: NDArray[np.intp],
    vector: NDArray[np.float32],
) -> Scores:
    """Return the centred cosines of passages of memories with several, float32[n]; NaN for one without a vector."""
    width, of_place = corpus.dimension, turns.keys.take(places)
    nodes = np.unique(of_place)
    rows, asked = shelves.passages(snapshot, corpus, nodes)
    rows += [row for each in asked for row in snapshot.rows(*each)]
    codes, scales = columns_of(b"".join(encoded for _, encoded in rows), width)
    cosines = exact_centred_cosines(codes, scales, vector, _centre(snapshot, corpus))
    # The vectors of a memory follow each other, in the order of the rows.
    here = nodes.searchsorted(np.array([node for node, _ in rows], np.int64))
    sizes = np.array([len(encoded) // (4 + width) for _, encoded in rows], np.intp)
    starts, counts = np.zeros(len(nodes), np.intp), np.zeros(len(nodes), np.intp)
    starts[here], counts[here] = sizes.cumsum() - sizes, sizes
    of_node, numbers = nodes.searchsorted(of_place), turns.passages.take(places)
    has_vector = numbers < counts.take(of_node)
    found = np.full(len(places), np.nan, np.float32)
    found[has_vector] = cosines.take((starts.take(of_node) + numbers)[has_vector])
    return found


def mean_vector(snapshot: Statements, corpus: Corpus) -> NDArray[np.float32]:
    """Return the mean of what a caller searches, float32[dimension]; zeros while there are few vectors."""
    return _centre(snapshot, corpus).mean


def _centre(snapshot: Statements, corpus: Corpus) -> Centre:
    asked = "centre", corpus.model, corpus.dimension, *corpus.spaces, *corpus.shelves
    return snapshot.once(asked, lambda: Centre.at(_mean_of_centres(snapshot, corpus)))


def _mean_of_centres(snapshot: Statements, corpus: Corpus) -> NDArray[np.float32]:
    values = {"model": corpus.model, "spaces": json.dumps(corpus.spaces), "shelves": json.dumps(corpus.shelves)}
    rows = snapshot.rows("centres_of", values)
    total = np.zeros(corpus.dimension, np.float64)
    for count, vector in rows:
        total += count * np.frombuffer(vector, "<f4").astype(np.float64)
    return np.asarray(total / max(1, sum(count for count, _ in rows)), np.float32)


_DROP_ROWS = 2_000

CENTRE_LEAST = 50
CENTRE_MOST = 20_000


def _progress_name(model: int) -> str:
    return f"vectors of model {model} made through node, removal"


_DROPPED = "removals dropped below"


class EmbeddingModels(Group):
    """The embedding models of a store, and the switch from one to another."""

    def known(self) -> list[EmbeddingModel]:
        return self._sql.once(
            ("known_models",),
            lambda: [
                EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
                for key, name, dimension, spec, state in self._sql.rows("models_known")
            ],
        )

    def adopt(self, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
        models = self.known()
        mine = next((model for model in models if (model.name, model.dimension) == (name, dimension)), None)
        active = next((model for model in models if model.state == "active"), None)
        state: ModelState = "active" if active is None or active == mine else "coming"
        for model in models:
            if model.state == "coming" and model != mine:
                self._sql.rows("model_state", {"key": model.key, "state": "retiring"})
        if mine is None:
            values = {"name": name, "dimension": dimension, "spec": spec, "state": state}
            key = self._sql.value("model_insert", values)
            faults.reached("model: adopted")
            return EmbeddingModel(key=key, name=name, dimension=dimension, spec=spec, state=state)
        if mine.state != state:
            self.note_progress(mine.key, 0, 0)  # some of its vectors may already be dropped
            self._sql.rows("model_state", {"key": mine.key, "state": state})
        return EmbeddingModel(key=mine.key, name=name, dimension=dimension, spec=spec, state=state)

    def switch(self, coming: int) -> bool:
        if self._sql.rows("lacking", {"model": coming, "after": 0, "most": 1}):
            return False
        faults.reached("model: before switch")
        for model in self.known():
            if model.state == "active" and model.key != coming:
                self._sql.rows("model_state", {"key": model.key, "state": "retiring"})
                faults.reached("model: in switch")
        self._sql.rows("model_state", {"key": coming, "state": "active"})
        return True

    def progress(self, model: int) -> tuple[int, int, tuple[int, int]]:
        after, _, removals = (self._sql.meta(_progress_name(model)) or "0,0").partition(",")
        return int(after), int(removals), (int(after), int(removals))

    def note_progress(self, model: int, after: int, removals: int) -> None:
        self._sql.rows("meta_put", {"name": _progress_name(model), "value": f"{after},{removals}"})

    def lost_since(self, removal: int) -> tuple[int, int | None]:
        newest, least = self._sql.rows_of_store("removals_since", {"after": removal})[0]
        if removal + 1 < self.dropped_below():  # the notes in between were dropped: look at all nodes again
            least = 1
        return max(removal, newest or 0), least

    def drop_removals(self) -> int:
        noted = [self.progress(model.key)[1] for model in self.known()]
        before = self._sql.value("removals_needed", {"least": min(noted, default=1 << 62)})
        if before is None or before <= self.dropped_below():
            return 0
        self._sql.rows("removals_drop", {"before": before})
        gone = int(self._sql.connection.changes())
        self._sql.rows("meta_put", {"name": _DROPPED, "value": str(before)})
        return gone

    def dropped_below(self) -> int:
        return int(self._sql.meta(_DROPPED) or 0)

    def centres_due(self, model: int) -> list[tuple[int, str]]:
        values = {"model": model, "least": CENTRE_LEAST, "most": CENTRE_MOST}
        return [(space, shelf) for space, shelf in self._sql.rows("centres_due", values)]

    def drop_retired(self) -> bool:
        retired = [model.key for model in self.known() if model.state == "retiring"]
        for key in retired:
            self._sql.rows("model_packs_drop", {"model": key})
            self._sql.rows("model_removals_drop", {"model": key})
            self._sql.rows("model_drop", {"model": key})
            self._sql.rows("model_vectors_drop", {"model": key, "most": _DROP_ROWS})
            faults.reached("model: in dropping")
        return bool(retired)


class Vectors(Group):
    """Vectors of nodes: finding missing ones, and writing them. Methods that write run in a write transaction."""

    def lacking(self, model: int, *, after: int, most: int) -> list[Unembedded]:
        rows = self._sql.rows_of_store("lacking", {"model": model, "after": after, "most": most})
        return [Unembedded(*row) for row in rows]

    def of(self, model: int, keys: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        rows = self._sql.rows("embeddings_of", {"model": model, "nodes": json.dumps(list(keys))})
        return {key: decode(vector) for key, vector in rows}

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        faults.reached("vectors: before storing")
        values = [
            {"node": new.key, "content": new.content, "model": model, "vector": encode(new.vector, dimension)}
            for new in made
        ]
        stored = list(zip(self._sql.values("embedding_insert", values), made, strict=True))
        passages = [
            (embedding, b"".join(encode(each, dimension) for each in new.passages))
            for embedding, new in stored
            if embedding is not None and new.passages is not None
        ]
        words = [  # unit vectors: 127 stands for 1
            (embedding, " ".join(new.pieces), np.rint(new.words * 127).astype(np.int8).tobytes())
            for embedding, new in stored
            if embedding is not None and new.words is not None
        ]
        with self._sql.in_one_trip():
            self._sql.many("passage_vectors_insert", passages)
            self._sql.many("word_vectors_insert", words)
        return next((new.key for embedding, new in stored if embedding is None), None)

    def compact(self) -> bool:
        """Write a segment for each partition with enough vectors outside segments; return whether there was any."""
        is_any = False
        for model, space, shelf, after in self._sql.rows("shelves_to_pack", {"least": PACK_ROWS}):
            values = {"model": model, "space": space, "shelf": shelf}
            asked = "embeddings_new", {**values, "after": after, "most": PACK_ROWS}
            through, nodes, segment, _ = _added(self._sql, asked)
            if through is None:  # all these nodes were closed before
                continue
            removals = self._sql.rows("embeddings_position")[0][1]
            sketch = sketch_segment(segment, len(segment) // len(nodes) - 12)
            faults.reached("vectors: before packing")
            pack = {"through": through, "removals": removals, "sketch": sketch, "segment": segment}
            self._sql.rows("pack_insert", {**values, **pack})
            faults.reached("vectors: after packing")
            is_any = True
        return is_any

    def recentre(self, model: int, dimension: int) -> bool:
        """Compute the mean of the first 20,000 vectors of each partition that has grown by a third since the last time.

        Subtracting the mean from both sides of the cosine improved recall@10 by 1 to 8 points (MEASURED.md). The mean
        of a few vectors consists mostly of these vectors themselves, so partitions below 50 have none.
        """
        due = EmbeddingModels(self._sql).centres_due(model)
        for space, shelf in due:
            values = {"model": model, "space": space, "shelf": shelf}
            rows = [row[0] for row in self._sql.rows("centre_sample", {**values, "most": CENTRE_MOST})]
            coded = np.frombuffer(b"".join(rows), [("scale", "<f4"), ("code", "i1", (dimension,))])
            total = (coded["code"] * coded["scale"][:, np.newaxis].astype(np.float64)).sum(axis=0)
            mean = (total / max(1, len(rows))).astype("<f4").tobytes()
            self._sql.rows("centre_put", {**values, "count": len(rows), "vector": mean})
        return bool(due)
