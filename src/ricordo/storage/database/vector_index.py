"""Up to 65,536 rows of an index in a few arrays.

What a reader sees of a block never changes. Rows are written beyond `count`, where no reader looks, and
become visible with another `Block` over the same arrays; the dead are marked in a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ricordo.errors import InvalidError
from ricordo.storage.database.vector_math import (
    SCRATCH_VALUES,
    Distances,
    Kernel,
    Part,
    Signs,
    ascending,
    best,
    distances,
    fastest,
    is_ascending,
    nearest,
    overtaken,
    quantise,
    signs_of,
    unpack_segment,
    words_of,
)

Rows = NDArray[np.intp]

# Above this share of a block, scoring all of it costs less than first gathering the rows that were asked for.
GATHER_AT_MOST = 0.5
# From this many keys a table of rows is worth making, if keys are dense enough for it to stay small.
TABLE_PAYS_FROM = 64
TABLE_ENTRIES_PER_ROW = 4


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows `0..count` of `keys` int64, `scales` float32 and `codes` int8[.., dim]; `dead` bool, if any.

    `signs` uint64[words, ..] by column; no words while the index has none.
    """

    keys: NDArray[np.int64]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]
    signs: Signs
    count: int = 0
    dead: NDArray[np.bool_] | None = None
    dead_count: int = 0
    lowest: int = 0
    highest: int = 0
    is_ascending: bool = True

    @classmethod
    def with_room(cls, rows: int, dimension: int, words: int) -> Block:
        """An empty block; the system hands out its memory page by page as rows are written."""
        return cls(
            keys=np.empty(rows, np.int64),
            scales=np.empty(rows, np.float32),
            codes=np.empty((rows, dimension), np.int8),
            signs=np.empty((words, rows), np.uint64),
        )

    @property
    def live(self) -> int:
        return self.count - self.dead_count

    @property
    def is_sparse(self) -> bool:
        """Over a quarter dead: time to copy the living elsewhere."""
        return self.dead_count * 4 > self.count

    def enlarged(self, rows: int) -> Block:
        """The same rows in arrays with room for `rows`."""
        copy = Block.with_room(rows, self.codes.shape[1], len(self.signs))
        for old, new in ((self.keys, copy.keys), (self.scales, copy.scales), (self.codes, copy.codes)):
            new[: self.count] = old[: self.count]
        copy.signs[:, : self.count] = self.signs[:, : self.count]
        dead = None if self.dead is None else np.concatenate([self.dead, np.zeros(rows - len(self.dead), bool)])
        return replace(self, keys=copy.keys, scales=copy.scales, codes=copy.codes, signs=copy.signs, dead=dead)

    def signed(self) -> Block:
        """With signs, made from the codes."""
        signs = np.empty((words_of(self.codes.shape[1]), len(self.keys)), np.uint64)
        signs[:, : self.count] = signs_of(self.codes[: self.count])
        return replace(self, signs=signs)

    def appended(self, rows: int) -> Block:
        """With the next `rows` rows, already written, in sight; of a key that comes twice the later lives."""
        count = self.count + rows
        new = self.keys[self.count : count]
        lowest, highest = int(new.min()), int(new.max())
        follows = not self.count or int(new[0]) > self.highest
        grown = replace(
            self,
            count=count,
            lowest=min(lowest, self.lowest) if self.count else lowest,
            highest=max(highest, self.highest) if self.count else highest,
            is_ascending=self.is_ascending and follows and is_ascending(new),
        )
        return grown if grown.is_ascending else grown.buried(self.count + overtaken(new))

    def buried(self, rows: Rows) -> Block:
        """With `rows`, all alive, marked dead."""
        if not len(rows):
            return self
        dead = np.zeros(len(self.keys), bool) if self.dead is None else self.dead.copy()
        dead[rows] = True
        return replace(self, dead=dead, dead_count=self.dead_count + len(rows))

    def living(self) -> Rows:
        return self.alive(np.arange(self.count))

    def alive(self, rows: Rows) -> Rows:
        """Those of the rows that are not dead."""
        return rows if self.dead is None else rows[~self.dead[rows]]

    def find(self, wanted: NDArray[np.int64]) -> tuple[Rows, Rows]:
        """Which of the ascending keys `wanted` live here, as places in `wanted`, and their rows."""
        first, last = wanted.searchsorted(self.lowest), wanted.searchsorted(self.highest, side="right")
        if first == last:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        inside = wanted[first:last]
        rows = self._newest_rows(inside)
        hit = self._live_there(rows, inside)
        return first + hit.nonzero()[0], rows[hit]

    def rows_of(self, keys: NDArray[np.int64]) -> Rows | None:
        """The rows of keys in any order; None where not all of them live here."""
        if not len(keys) or not self.count or keys.min() < self.lowest or keys.max() > self.highest:
            return None
        rows = self._newest_rows(keys)
        return rows if self._live_there(rows, keys).all() else None

    def _live_there(self, rows: Rows, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        hit: NDArray[np.bool_] = self.keys.take(rows) == keys
        return hit if self.dead is None else hit & ~self.dead.take(rows)

    def _newest_rows(self, keys: NDArray[np.int64]) -> Rows:
        """For each key its newest row, the only one that can be alive; some other row if the key has none.

        Args:
            keys: within `lowest` to `highest`.
        """
        span = self.highest - self.lowest + 1
        if len(keys) >= TABLE_PAYS_FROM and span <= TABLE_ENTRIES_PER_ROW * self.count:
            return self._table[keys - self.lowest].astype(np.intp)
        if len(keys) == 1 and not self.is_ascending:  # a writer's question: sorting takes ten times as long
            return np.append(0, (self.keys[: self.count] == keys).nonzero()[0])[-1:]
        places = self.keys[: self.count].searchsorted(keys, side="right", sorter=self._order) - 1
        return places if self._order is None else self._order[places]

    def scores(
        self, kernel: Kernel, query: NDArray[np.int8], scale: np.float32, rows: Rows | None = None
    ) -> NDArray[np.float32]:
        """float32 scores of `rows`, or of all rows with -inf for the dead.

        A score is (the whole number from the kernel * the row's scale) * the query's, in this order and in
        float32, whichever way the rows were reached.
        """
        if rows is not None and len(rows) <= GATHER_AT_MOST * self.count:
            return _gathered_dots(self.codes, rows, kernel, query) * self.scales[rows] * scale
        scores = kernel(self.codes[: self.count], query)
        scores *= self.scales[: self.count]
        scores *= scale
        if rows is not None:
            return scores[rows]
        if self.dead is not None:
            scores[self.dead[: self.count]] = -np.inf
        return scores

    def distances(self, asked: Signs) -> Distances:
        """Return the distance of the signs of all rows from those asked for; of dead rows the largest."""
        found = distances(self.signs[:, : self.count], asked)
        if self.dead is not None:
            found[self.dead[: self.count]] = np.iinfo(found.dtype).max
        return found

    @cached_property
    def _order(self) -> Rows | None:
        """Rows by key, equal keys by age; None when they are so already."""
        return None if self.is_ascending else np.argsort(self.keys[: self.count], kind="stable")

    @cached_property
    def _table(self) -> NDArray[np.uint32]:
        """The newest row by key - `lowest`; bisection, which mispredicts each branch, takes far longer."""
        table = np.zeros(self.highest - self.lowest + 1, np.uint32)
        table[self.keys[: self.count] - self.lowest] = np.arange(self.count)  # of equal keys the last stays
        return table


def _gathered_dots(codes: NDArray[np.int8], rows: Rows, kernel: Kernel, query: NDArray[np.int8]) -> NDArray[np.float32]:
    """Dot products of some rows, copied side by side a cacheful at a time: the kernel wants them contiguous.

    One small buffer and not a copy of all: fresh memory from the system cost four times the copying.
    """
    dots = np.empty(len(rows), np.float32)
    height = max(1, min(len(rows), SCRATCH_VALUES // len(query)))
    scratch = np.empty((height, len(query)), np.int8)
    for top in range(0, len(rows), height):
        part = rows[top : top + height]
        # "clip" lets numpy write into the buffer directly; no row is out of range.
        np.take(codes, part, axis=0, out=scratch[: len(part)], mode="clip")
        dots[top : top + len(part)] = kernel(scratch[: len(part)], query)
    return dots


def packed(blocks: Sequence[Block]) -> Block:
    """The live rows of some blocks in one block without spare room, ascending by key."""
    living = [block.living() for block in blocks]
    keys = np.concatenate([block.keys[rows] for block, rows in zip(blocks, living, strict=True)])
    scales = np.concatenate([block.scales[rows] for block, rows in zip(blocks, living, strict=True)])
    codes = np.concatenate([block.codes[rows] for block, rows in zip(blocks, living, strict=True)])
    signs = np.concatenate([block.signs[:, rows] for block, rows in zip(blocks, living, strict=True)], axis=1)
    order = np.argsort(keys)
    merged = Block(keys=keys[order], scales=scales[order], codes=codes[order], signs=signs[:, order])
    return merged.appended(len(keys))


Keys = NDArray[np.int64]
Floats = NDArray[np.float32]

BLOCK_ROWS = 65_536
FIRST_ROWS = 256
LARGEST_DIMENSION = 65_536

SKETCH_FROM = 50_000
"""Above so many live rows a search without conditions looks at signs first."""
# The nearest by signs that are then scored exactly, for each row that is asked for, and at least. See decision 0003.
SKETCH_DEPTH = 60
SKETCH_LEAST = 4_800


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Writable arrays for rows to come: fill all, then `commit`; signs only where they come before the codes."""

    keys: Keys
    scales: Floats
    codes: NDArray[np.int8]
    signs: Signs
    block: Block
    blocks: tuple[Block, ...]


class VectorIndex:
    """Keys (row ids) and their vectors, quantised to int8.

    The score of a row is the dot product of the int8 query and the int8 row, times both scales. It is the
    same number, and ties go to the smaller key, whatever way it is reached: everything or a few keys, after
    any adds and removals, with any kernel. Up to `sketch_from` rows, and among given keys, a search looks at
    every row it may return. Above that it looks at those whose signs are nearest: which these are depends on
    nothing but the rows there are.

    One thread may write (`add`, `extend`, `remove`, `reserve`, `commit`) while others read. A reader works on
    the rows that were there when its call began: a write is seen whole or not at all.
    """

    def __init__(
        self, dimension: int, *, kernel: Kernel = fastest, block_rows: int = BLOCK_ROWS, sketch_from: int = SKETCH_FROM
    ) -> None:
        """An empty index.

        Args:
            dimension: of every vector, 1 to 65,536 (the sum of so many products still fits an int32).
            kernel: how dot products are computed; all give the same answer.
            block_rows: how many rows share an array, the unit of growth and of compaction.
            sketch_from: above so many live rows signs are kept and looked at first.
        """
        if not 1 <= dimension <= LARGEST_DIMENSION:
            raise InvalidError(f"dimension: expected 1 to {LARGEST_DIMENSION}, got {dimension}")
        self.dimension = dimension
        self._kernel = kernel
        self._block_rows = block_rows
        self.sketch_from = sketch_from
        self._words = 0
        self._is_whole = True
        self._blocks: tuple[Block, ...] = ()

    def __len__(self) -> int:
        return sum(block.live for block in self._blocks)

    def __contains__(self, key: int) -> bool:
        wanted = np.array([key], np.int64)
        return any(len(block.find(wanted)[0]) for block in self._blocks)

    def add(self, key: int, encoded: bytes) -> None:
        """One row, in place of the one of the same key, if any.

        Args:
            encoded: what `encode` made of a vector.

        Raises:
            InvalidError: `encoded` is not of this dimension, or its scale is not a finite number from 0.
        """
        if len(encoded) != 4 + self.dimension:
            raise InvalidError(f"encoded: expected {4 + self.dimension} bytes, got {len(encoded)}")
        room = self.reserve(1)
        room.keys[0] = key
        room.scales[0] = np.frombuffer(encoded, "<f4", count=1)[0]
        room.codes[0] = np.frombuffer(encoded, np.int8, offset=4)
        self.commit(room)

    def extend(self, segment: bytes | memoryview) -> None:
        """Many rows, packed by `pack_segment`, in place of those of the same keys; of a key the last counts.

        Each byte is copied once. Fastest when keys ascend and are above all keys so far. A segment that does
        not fit the last block becomes visible in two steps.

        Raises:
            InvalidError: the length is not a whole number of rows, or a scale is not a finite number from 0.
        """
        keys, scales, codes = unpack_segment(segment, self.dimension)
        check_scales(scales)
        done = 0
        while done < len(keys):
            rows = slice(done, done + self._rows_at_once(len(keys) - done))
            room = self.reserve(rows.stop - rows.start)
            room.keys[:], room.scales[:], room.codes[:] = keys[rows], scales[rows], codes[rows]
            self.commit(room)
            done = rows.stop

    def reserve(self, rows: int) -> Room:
        """Room for 1 to `block_rows` rows, to be written in place, for instance by a blob's `readinto`.

        Nothing is visible before `commit`; any other write makes the room void.
        """
        if not 1 <= rows <= self._block_rows:
            raise InvalidError(f"rows: expected 1 to {self._block_rows}, got {rows}")
        block = self._open_block(rows)
        span = slice(block.count, block.count + rows)
        return Room(
            keys=block.keys[span],
            scales=block.scales[span],
            codes=block.codes[span],
            signs=block.signs[:, span],
            block=block,
            blocks=self._blocks,
        )

    def commit(self, room: Room, *, is_whole: bool = True) -> None:
        """Makes the rows of a room visible, in place of those of the same keys.

        Args:
            is_whole: False if only keys and signs are there yet. Until the rest is written and `complete` called, the
                index knows what it holds and answers `sketch`, no other question.

        Raises:
            InvalidError: the index was written to since `reserve`, or a scale is not a finite number from 0.
        """
        if room.blocks is not self._blocks:
            raise InvalidError("room: the index has changed since it was reserved")
        if is_whole:
            check_scales(room.scales)
            if self._words:
                room.signs[:] = signs_of(room.codes)
        self._is_whole = self._is_whole and is_whole
        earlier = [*room.blocks[:-1], room.block] if room.block.count else list(room.blocks)
        blocks = _bury(earlier, room.keys)
        if not room.block.count:
            blocks.append(room.block)
        blocks[-1] = blocks[-1].appended(len(room.keys))
        self._publish(blocks)

    def keep_signs(self) -> None:
        """Begin to keep signs, as an index that has grown large does by itself."""
        if not self._words:
            self._words = words_of(self.dimension)
            self._publish([block.signed() for block in self._blocks])

    def complete(self) -> None:
        """All rows that were committed without codes and scales have them now."""
        self._is_whole = True
        self._publish(list(self._blocks))

    def remove(self, key: int) -> bool:
        """Takes a row out. False if there was none."""
        return self.remove_all([key]) > 0

    def remove_all(self, keys: ArrayLike) -> int:
        """Takes the rows of the int64 keys out, in one step for readers. How many there were."""
        before = len(self)
        unwanted = ascending(keys)
        if len(unwanted):
            self._publish(_bury(list(self._blocks), unwanted))
        return before - len(self)

    def search(self, query: ArrayLike, limit: int, *, among: ArrayLike | None = None) -> Part:
        """The nearest rows.

        Args:
            query: float[dimension], of any norm.
            limit: at most this many, from 1.
            among: int64 keys to choose from, in any order, also ones that are not here; None for all.

        Returns:
            Keys int64[k] and scores float32[k], best first, equal scores by ascending key.

        Raises:
            InvalidError: `query` has the wrong shape or a number that is not finite, or `limit` is under 1.
        """
        if limit < 1:
            raise InvalidError(f"limit: expected 1 or more, got {limit}")
        codes, scale = quantise(query, self.dimension, field="query")
        if among is not None:
            wanted = ascending(among)
            places, scores = self._scores_of(codes, scale, wanted)
            return best([(wanted[places], scores)], limit)
        blocks = self._blocks
        if not self._is_sketched(blocks):
            parts = [(block.keys[: block.count], block.scores(self._kernel, codes, scale)) for block in blocks]
            return best(parts, limit)
        return best([self._likely_scores(blocks, codes, scale, limit)], limit)

    def sketch(self, query: ArrayLike, limit: int) -> Keys:
        """The keys a search without conditions would score: the nearest by their signs, or all of few. Ascending.

        Raises:
            InvalidError: `query` has the wrong shape or a number that is not finite.
        """
        codes, _ = quantise(query, self.dimension, field="query")
        blocks = self._blocks
        chosen = _nearest_rows(blocks, codes, limit) if self._is_sketched(blocks) else [b.living() for b in blocks]
        keys = [block.keys[rows] for block, rows in zip(blocks, chosen, strict=True)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *keys]))

    def present(self, keys: ArrayLike) -> Keys:
        """Those of the keys that are here, ascending."""
        wanted = ascending(keys)
        here = np.zeros(len(wanted), np.bool_)
        for block in self._blocks:
            here[block.find(wanted)[0]] = True
        return wanted[here]

    def vectors(self, keys: ArrayLike) -> Floats:
        """The vectors of given keys, float32[n, dimension] in their order; NaN for a key that is not here."""
        asked = np.asarray(keys, np.int64)
        codes, scales = np.zeros((len(asked), self.dimension), np.int8), np.full(len(asked), np.nan, np.float32)
        self.write_rows(asked, codes, scales)
        return codes * scales[:, np.newaxis]

    def write_rows(self, keys: Keys, codes: NDArray[np.int8], scales: Floats) -> None:
        """Write the rows of given keys, in their order, into int8[n, dimension] and float32[n]: those that are here."""
        blocks = self._blocks
        if not blocks:
            return
        all_rows = blocks[0].rows_of(keys) if len(blocks) == 1 else None
        if all_rows is not None:  # the usual case: all in one block, written straight to where they belong
            # "clip" lets numpy write there directly; no row is out of range.
            np.take(blocks[0].codes, all_rows, axis=0, out=codes, mode="clip")
            np.take(blocks[0].scales, all_rows, out=scales, mode="clip")
            return
        order = None if is_ascending(keys) else np.argsort(keys, kind="stable")  # mostly two runs, merged
        ordered = keys if order is None else keys.take(order)
        for block in blocks:
            places, rows = block.find(ordered)
            if len(rows):
                places = places if order is None else order[places]
                codes[places], scales[places] = block.codes.take(rows, axis=0), block.scales.take(rows)

    def _is_sketched(self, blocks: Sequence[Block]) -> bool:
        """Whether so many rows are searched by their signs. Of an index that has only signs so far, `sketch` tells."""
        return len(blocks) > 0 and len(blocks[0].signs) > 0 and sum(block.live for block in blocks) > self.sketch_from

    def _likely_scores(self, blocks: Sequence[Block], codes: NDArray[np.int8], scale: np.float32, limit: int) -> Part:
        """The rows with the nearest signs and their scores."""
        chosen = list(zip(blocks, _nearest_rows(blocks, codes, limit), strict=True))
        scores = [block.scores(self._kernel, codes, scale, rows) for block, rows in chosen if len(rows)]
        return np.concatenate([block.keys[rows] for block, rows in chosen]), np.concatenate(scores)

    def _scores_of(self, query: NDArray[np.int8], scale: np.float32, wanted: Keys) -> tuple[NDArray[np.intp], Floats]:
        """Places in the ascending keys `wanted` of those that are here, and their scores."""
        places, scores = [np.empty(0, np.intp)], [np.empty(0, np.float32)]
        for block in self._blocks:
            found, rows = block.find(wanted)
            if len(rows):
                places.append(found)
                scores.append(block.scores(self._kernel, query, scale, rows))
        return np.concatenate(places), np.concatenate(scores)

    def _rows_at_once(self, rows: int) -> int:
        """As many as fill up the last block; all of a new one when it is full."""
        free = self._block_rows - self._blocks[-1].count if self._blocks else 0
        return min(rows, free or self._block_rows)

    def _open_block(self, rows: int) -> Block:
        """The last block if it has room or may grow, else a new one."""
        last = self._blocks[-1] if self._blocks else None
        needed = rows + (last.count if last else 0)
        if last is None or needed > self._block_rows:
            return Block.with_room(self._new_block_rows(rows), self.dimension, self._words)
        if needed <= len(last.keys):
            return last
        return last.enlarged(min(self._block_rows, max(needed, 2 * len(last.keys))))

    def _new_block_rows(self, rows: int) -> int:
        """A first block starts small, for an owner with few memories; any further one at full size.

        So does the first where signs are kept: rows whose codes are still to be read must stay where they are.
        """
        if self._blocks or self._words:
            return self._block_rows
        return min(self._block_rows, max(rows, FIRST_ROWS))

    def _publish(self, blocks: list[Block]) -> None:
        """One assignment: readers see all of a write or nothing."""
        if self._is_whole and any(block.is_sparse for block in blocks):
            blocks = self._compacted(blocks)
        if not self._words and sum(block.live for block in blocks) > self.sketch_from:
            self._words = words_of(self.dimension)
            blocks = [block.signed() for block in blocks]
        self._blocks = tuple(blocks)

    def _compacted(self, blocks: list[Block]) -> list[Block]:
        """The living of a sparse block move into the block before it if they fit, else into a new one."""
        result: list[Block] = []
        for block in blocks:
            if not block.is_sparse:
                result.append(block)
            elif result and result[-1].live + block.live <= self._block_rows:
                result[-1] = packed([result[-1], block])
            elif block.live:
                result.append(packed([block]))
        return result


def _nearest_rows(blocks: Sequence[Block], codes: NDArray[np.int8], limit: int) -> list[NDArray[np.intp]]:
    """The rows of each block that a search for `limit` scores exactly."""
    asked = signs_of(codes[np.newaxis])
    rows = nearest([block.distances(asked) for block in blocks], max(SKETCH_LEAST, SKETCH_DEPTH * limit))
    return [block.alive(near) for block, near in zip(blocks, rows, strict=True)]


def _bury(blocks: list[Block], keys: Keys) -> list[Block]:
    """The blocks with the rows of `keys` marked dead."""
    if not blocks or keys.min() > max(block.highest for block in blocks):
        return blocks  # appending in order, the usual case, looks nothing up
    wanted = ascending(keys)
    return [block.buried(block.find(wanted)[1]) for block in blocks]


def check_scales(scales: Floats) -> None:
    """Raises InvalidError: a scale is not a finite number from 0."""
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise InvalidError("scales: every scale must be a finite number from 0")
