"""Vectors of many rows in memory, and the search for the nearest ones.

A block holds up to 65,536 rows in a few arrays. What a reader sees of a block never changes: rows are written beyond
`count`, where no reader looks, and become visible with another `Block` over the same arrays. Dead rows are marked in a
copy.
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

# Above this share of a block, scoring all rows costs less than first gathering the wanted ones.
GATHER_AT_MOST = 0.5
# From this many keys on, a lookup table of rows is worthwhile, if the keys are dense enough for it to stay small.
TABLE_PAYS_FROM = 64
TABLE_ENTRIES_PER_ROW = 4


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows `0..count` of `keys` int64, `scales` float32 and `codes` int8[.., dim]; `dead` bool, if any.

    `signs` uint64[words, ..] by column; without words while the index keeps no signs.
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
        """Return an empty block; the system provides its memory page by page as rows are written."""
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
        """Whether over a quarter of the rows are dead, so that the living should be copied elsewhere."""
        return self.dead_count * 4 > self.count

    def enlarged(self, rows: int) -> Block:
        """Return the same rows in arrays with room for `rows`."""
        copy = Block.with_room(rows, self.codes.shape[1], len(self.signs))
        for old, new in ((self.keys, copy.keys), (self.scales, copy.scales), (self.codes, copy.codes)):
            new[: self.count] = old[: self.count]
        copy.signs[:, : self.count] = self.signs[:, : self.count]
        dead = None if self.dead is None else np.concatenate([self.dead, np.zeros(rows - len(self.dead), bool)])
        return replace(self, keys=copy.keys, scales=copy.scales, codes=copy.codes, signs=copy.signs, dead=dead)

    def signed(self) -> Block:
        """Return the block with signs made from the codes."""
        signs = np.empty((words_of(self.codes.shape[1]), len(self.keys)), np.uint64)
        signs[:, : self.count] = signs_of(self.codes[: self.count])
        return replace(self, signs=signs)

    def appended(self, rows: int) -> Block:
        """Return the block with the next `rows` rows, already written, now visible; of equal keys the last lives."""
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
        """Return the block with `rows`, all of them alive, marked dead."""
        if not len(rows):
            return self
        dead = np.zeros(len(self.keys), bool) if self.dead is None else self.dead.copy()
        dead[rows] = True
        return replace(self, dead=dead, dead_count=self.dead_count + len(rows))

    def living(self) -> Rows:
        return self.alive(np.arange(self.count))

    def alive(self, rows: Rows) -> Rows:
        """Return the rows that are not dead."""
        return rows if self.dead is None else rows[~self.dead[rows]]

    def find(self, wanted: NDArray[np.int64]) -> tuple[Rows, Rows]:
        """Return which of the ascending keys `wanted` live here, as places in `wanted`, and their rows."""
        first, last = wanted.searchsorted(self.lowest), wanted.searchsorted(self.highest, side="right")
        if first == last:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        inside = wanted[first:last]
        rows = self._newest_rows(inside)
        hit = self._live_there(rows, inside)
        return first + hit.nonzero()[0], rows[hit]

    def rows_of(self, keys: NDArray[np.int64]) -> Rows | None:
        """Return the rows of keys in any order; None if not all of them live here."""
        if not len(keys) or not self.count or keys.min() < self.lowest or keys.max() > self.highest:
            return None
        rows = self._newest_rows(keys)
        return rows if self._live_there(rows, keys).all() else None

    def _live_there(self, rows: Rows, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        hit: NDArray[np.bool_] = self.keys.take(rows) == keys
        return hit if self.dead is None else hit & ~self.dead.take(rows)

    def _newest_rows(self, keys: NDArray[np.int64]) -> Rows:
        """Return for each key its newest row, the only one that can be alive, or any row if the key has none.

        Args:
            keys: within `lowest` to `highest`.
        """
        span = self.highest - self.lowest + 1
        if len(keys) >= TABLE_PAYS_FROM and span <= TABLE_ENTRIES_PER_ROW * self.count:
            return self._table[keys - self.lowest].astype(np.intp)
        if len(keys) == 1 and not self.is_ascending:  # a writer looks up one key: sorting would take ten times as long
            return np.append(0, (self.keys[: self.count] == keys).nonzero()[0])[-1:]
        places = self.keys[: self.count].searchsorted(keys, side="right", sorter=self._order) - 1
        return places if self._order is None else self._order[places]

    def scores(
        self, kernel: Kernel, query: NDArray[np.int8], scale: np.float32, rows: Rows | None = None
    ) -> NDArray[np.float32]:
        """Return float32 scores of `rows`, or of all rows with -inf for dead ones.

        A score is (the kernel's whole number * the row's scale) * the query's scale, in this order and in float32,
        however the rows were selected.
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
        """Return the distance of each row's signs from those asked for; for dead rows the largest number."""
        found = distances(self.signs[:, : self.count], asked)
        if self.dead is not None:
            found[self.dead[: self.count]] = np.iinfo(found.dtype).max
        return found

    @cached_property
    def _order(self) -> Rows | None:
        """Rows by key, equal keys by age; None if they are in this order already."""
        return None if self.is_ascending else np.argsort(self.keys[: self.count], kind="stable")

    @cached_property
    def _table(self) -> NDArray[np.uint32]:
        """The newest row by key - `lowest`. Bisection is far slower, because the processor mispredicts each branch."""
        table = np.zeros(self.highest - self.lowest + 1, np.uint32)
        table[self.keys[: self.count] - self.lowest] = np.arange(self.count)  # of equal keys the last one counts
        return table


def _gathered_dots(codes: NDArray[np.int8], rows: Rows, kernel: Kernel, query: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return dot products of some rows, copied to a small buffer part by part: the kernel needs contiguous rows.

    The buffer is small, since fresh memory from the system cost four times as much as copying.
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
    """Return the live rows of some blocks in one block without spare room, ascending by key."""
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
"""With more live rows than this, a search without conditions looks at signs first."""
# For each result wanted, this many rows with the nearest signs are scored exactly, and at least so many. Decision 0003.
SKETCH_DEPTH = 60
SKETCH_LEAST = 4_800


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Writable arrays for new rows: fill all, then `commit`. Signs only if they are read before the codes."""

    keys: Keys
    scales: Floats
    codes: NDArray[np.int8]
    signs: Signs
    block: Block
    blocks: tuple[Block, ...]


class VectorIndex:
    """Keys (row ids) and their vectors, quantised to int8.

    The score of a row is the dot product of the int8 query and the int8 row, times both scales. The score is always the
    same, and ties go to the smaller key, whether all rows or a few keys are searched, after any additions and removals,
    and with any kernel. Up to `sketch_from` rows, and among given keys, a search scores every row it may return. Above
    that, it scores the rows whose signs are nearest; which ones depends only on the rows in the index.

    One thread may write (`add`, `extend`, `remove`, `reserve`, `commit`) while others read. A reader works on the rows
    that existed when its call began: it sees all of a write or nothing.
    """

    def __init__(
        self, dimension: int, *, kernel: Kernel = fastest, block_rows: int = BLOCK_ROWS, sketch_from: int = SKETCH_FROM
    ) -> None:
        """Create an empty index.

        Args:
            dimension: of every vector, 1 to 65,536 (the sum of so many products still fits an int32).
            kernel: computes dot products; all kernels give the same result.
            block_rows: how many rows share an array, the unit of growth and compaction.
            sketch_from: with more live rows than this, signs are kept and looked at first.
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
        """Add one row, replacing the row with the same key, if any.

        Args:
            encoded: a result of `encode`.

        Raises:
            InvalidError: `encoded` has another dimension, or its scale is negative or not finite.
        """
        if len(encoded) != 4 + self.dimension:
            raise InvalidError(f"encoded: expected {4 + self.dimension} bytes, got {len(encoded)}")
        room = self.reserve(1)
        room.keys[0] = key
        room.scales[0] = np.frombuffer(encoded, "<f4", count=1)[0]
        room.codes[0] = np.frombuffer(encoded, np.int8, offset=4)
        self.commit(room)

    def extend(self, segment: bytes | memoryview) -> None:
        """Add many rows packed by `pack_segment`, replacing those with the same keys; of equal keys the last one
        counts.

        Each byte is copied once. It is fastest if keys ascend and are above all keys so far. A segment that does not
        fit the last block becomes visible in two steps.

        Raises:
            InvalidError: the length is not a whole number of rows, or a scale is negative or not finite.
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
        """Return room for 1 to `block_rows` rows, to be written in place, for instance by a blob's `readinto`.

        Nothing is visible before `commit`; any other write invalidates the room.
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
        """Make the rows of a room visible, replacing those with the same keys.

        Args:
            is_whole: False if only keys and signs are written so far. Until the rest is written and `complete` called,
                the index can answer `present` and `sketch` only.

        Raises:
            InvalidError: the index was changed since `reserve`, or a scale is negative or not finite.
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
        """Start to keep signs, as an index does by itself once it is large."""
        if not self._words:
            self._words = words_of(self.dimension)
            self._publish([block.signed() for block in self._blocks])

    def complete(self) -> None:
        """Declare that all rows committed without codes and scales have them now."""
        self._is_whole = True
        self._publish(list(self._blocks))

    def remove(self, key: int) -> bool:
        """Remove a row. Return False if there was none."""
        return self.remove_all([key]) > 0

    def remove_all(self, keys: ArrayLike) -> int:
        """Remove the rows of the int64 keys, in one step for readers. Return how many there were."""
        before = len(self)
        unwanted = ascending(keys)
        if len(unwanted):
            self._publish(_bury(list(self._blocks), unwanted))
        return before - len(self)

    def search(self, query: ArrayLike, limit: int, *, among: ArrayLike | None = None) -> Part:
        """Return the nearest rows.

        Args:
            query: float[dimension], of any norm.
            limit: upper bound of the results, from 1.
            among: int64 keys to choose from, in any order; unknown keys are ignored. None for all.

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
        """Return the keys that a search without conditions would score: those with the nearest signs, or all.
        Ascending.

        Raises:
            InvalidError: `query` has the wrong shape or a number that is not finite.
        """
        codes, _ = quantise(query, self.dimension, field="query")
        blocks = self._blocks
        chosen = _nearest_rows(blocks, codes, limit) if self._is_sketched(blocks) else [b.living() for b in blocks]
        keys = [block.keys[rows] for block, rows in zip(blocks, chosen, strict=True)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *keys]))

    def present(self, keys: ArrayLike) -> Keys:
        """Return the keys that are in the index, ascending."""
        wanted = ascending(keys)
        here = np.zeros(len(wanted), np.bool_)
        for block in self._blocks:
            here[block.find(wanted)[0]] = True
        return wanted[here]

    def vectors(self, keys: ArrayLike) -> Floats:
        """Return the vectors of keys in their order, float32[n, dimension]; NaN for a key that is not in the index."""
        asked = np.asarray(keys, np.int64)
        codes, scales = np.zeros((len(asked), self.dimension), np.int8), np.full(len(asked), np.nan, np.float32)
        self.write_rows(asked, codes, scales)
        return codes * scales[:, np.newaxis]

    def write_rows(self, keys: Keys, codes: NDArray[np.int8], scales: Floats) -> None:
        """Write the rows of keys into int8[n, dimension] and float32[n], at their places; unknown keys are skipped."""
        blocks = self._blocks
        if not blocks:
            return
        all_rows = blocks[0].rows_of(keys) if len(blocks) == 1 else None
        if all_rows is not None:  # the usual case: all are in one block, so they are written directly to their places
            # "clip" lets numpy write there directly; no row is out of range.
            np.take(blocks[0].codes, all_rows, axis=0, out=codes, mode="clip")
            np.take(blocks[0].scales, all_rows, out=scales, mode="clip")
            return
        order = None if is_ascending(keys) else np.argsort(keys, kind="stable")  # mostly a merge of two runs
        ordered = keys if order is None else keys.take(order)
        for block in blocks:
            places, rows = block.find(ordered)
            if len(rows):
                places = places if order is None else order[places]
                codes[places], scales[places] = block.codes.take(rows, axis=0), block.scales.take(rows)

    def _is_sketched(self, blocks: Sequence[Block]) -> bool:
        """Return whether a search looks at signs first, because there are so many rows."""
        return len(blocks) > 0 and len(blocks[0].signs) > 0 and sum(block.live for block in blocks) > self.sketch_from

    def _likely_scores(self, blocks: Sequence[Block], codes: NDArray[np.int8], scale: np.float32, limit: int) -> Part:
        """Return the keys of the rows with the nearest signs, and their scores."""
        chosen = list(zip(blocks, _nearest_rows(blocks, codes, limit), strict=True))
        scores = [block.scores(self._kernel, codes, scale, rows) for block, rows in chosen if len(rows)]
        return np.concatenate([block.keys[rows] for block, rows in chosen]), np.concatenate(scores)

    def _scores_of(self, query: NDArray[np.int8], scale: np.float32, wanted: Keys) -> tuple[NDArray[np.intp], Floats]:
        """Return the places, in the ascending keys `wanted`, of keys that are in the index, and their scores."""
        places, scores = [np.empty(0, np.intp)], [np.empty(0, np.float32)]
        for block in self._blocks:
            found, rows = block.find(wanted)
            if len(rows):
                places.append(found)
                scores.append(block.scores(self._kernel, query, scale, rows))
        return np.concatenate(places), np.concatenate(scores)

    def _rows_at_once(self, rows: int) -> int:
        """Return how many rows can be added at once: what fits in the last block or, if it is full, in a new one."""
        free = self._block_rows - self._blocks[-1].count if self._blocks else 0
        return min(rows, free or self._block_rows)

    def _open_block(self, rows: int) -> Block:
        """Return the last block if it has room or may grow, else a new one."""
        last = self._blocks[-1] if self._blocks else None
        needed = rows + (last.count if last else 0)
        if last is None or needed > self._block_rows:
            return Block.with_room(self._new_block_rows(rows), self.dimension, self._words)
        if needed <= len(last.keys):
            return last
        return last.enlarged(min(self._block_rows, max(needed, 2 * len(last.keys))))

    def _new_block_rows(self, rows: int) -> int:
        """Return the size of a new block: small for the first one, since many owners have few memories, then full size.

        If signs are kept, the first block has full size, too: rows whose codes are still to be read must not move.
        """
        if self._blocks or self._words:
            return self._block_rows
        return min(self._block_rows, max(rows, FIRST_ROWS))

    def _publish(self, blocks: list[Block]) -> None:
        """Replace the blocks in one assignment, so that readers see all of a write or nothing."""
        if self._is_whole and any(block.is_sparse for block in blocks):
            blocks = self._compacted(blocks)
        if not self._words and sum(block.live for block in blocks) > self.sketch_from:
            self._words = words_of(self.dimension)
            blocks = [block.signed() for block in blocks]
        self._blocks = tuple(blocks)

    def _compacted(self, blocks: list[Block]) -> list[Block]:
        """Move the living rows of sparse blocks into the block before, if they fit, or else into a new one."""
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
    """Return the rows of each block that a search for `limit` results scores exactly."""
    asked = signs_of(codes[np.newaxis])
    rows = nearest([block.distances(asked) for block in blocks], max(SKETCH_LEAST, SKETCH_DEPTH * limit))
    return [block.alive(near) for block, near in zip(blocks, rows, strict=True)]


def _bury(blocks: list[Block], keys: Keys) -> list[Block]:
    """Return the blocks with the rows of `keys` marked dead."""
    if not blocks or keys.min() > max(block.highest for block in blocks):
        return blocks  # the usual case: keys are appended in order, so there is nothing to look up
    wanted = ascending(keys)
    return [block.buried(block.find(wanted)[1]) for block in blocks]


def check_scales(scales: Floats) -> None:
    """Raise InvalidError if a scale is negative or not finite."""
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise InvalidError("scales: every scale must be finite and not negative")
