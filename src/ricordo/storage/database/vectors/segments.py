"""Up to 65,536 rows of an index in a few arrays.

What a reader sees of a block never changes. Rows are written beyond `count`, where no reader looks, and
become visible with another `Block` over the same arrays; the dead are marked in a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.database.vectors.codec import Distances, Signs, distances, signs_of, words_of
from ricordo.storage.database.vectors.kernels import SCRATCH_VALUES, Kernel
from ricordo.storage.database.vectors.keys import is_ascending, overtaken

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
        """How far the signs of all rows are from those asked; the dead are as far as can be."""
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
