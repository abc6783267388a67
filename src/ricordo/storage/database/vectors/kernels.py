"""Dot products of int8 rows with one int8 query, cosines about a mean, and the best of many scores.

Every kernel gives the same numbers, bit for bit.

A dot product of int8 is a whole number. A kernel returns it rounded once to float32; it is exact before that,
so no order of summing, vector width or thread can change an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.database.vectors.codec import Distances, quantise

# 1,024 products of at most 127 * 128 sum to less than 2**24: float32 holds every partial sum exactly.
EXACT_COLUMNS = 1_024
# One block of float32 that stays in a core's second-level cache.
SCRATCH_VALUES = 1 << 18


class Kernel(Protocol):
    """A way to compute dot products."""

    def __call__(self, codes: NDArray[np.int8], query: NDArray[np.int8]) -> NDArray[np.float32]:
        """float32[n] from int8[n, dim], rows contiguous, and int8[dim]."""
        ...


def dots_by_numpy(codes: NDArray[np.int8], query: NDArray[np.int8]) -> NDArray[np.float32]:
    """Converts a few rows at a time to float32 and lets BLAS multiply: int8 has no BLAS of its own."""
    count, dimension = codes.shape
    result = np.zeros(count, np.float64)
    for left in range(0, dimension, EXACT_COLUMNS):
        _add_dots(codes[:, left : left + EXACT_COLUMNS], query[left : left + EXACT_COLUMNS], to=result)
    return result.astype(np.float32)


def _add_dots(codes: NDArray[np.int8], query: NDArray[np.int8], *, to: NDArray[np.float64]) -> None:
    count, width = codes.shape
    height = max(1, min(count, SCRATCH_VALUES // width))
    scratch = np.empty((height, width), np.float32)
    factors = query.astype(np.float32)
    for top in range(0, count, height):
        rows = codes[top : top + height]
        np.copyto(scratch[: len(rows)], rows)
        to[top : top + height] += scratch[: len(rows)] @ factors


def dots_by_simsimd(codes: NDArray[np.int8], query: NDArray[np.int8]) -> NDArray[np.float32]:
    """The machine's own int8 instructions; sums in int32 and lets other threads run meanwhile."""
    import simsimd  # not above: a platform without a wheel has the other kernel

    if not len(codes):
        return np.empty(0, np.float32)
    table = simsimd.cdist(query[np.newaxis], codes, "dot", out_dtype="float32")
    return np.asarray(table, dtype=np.float32).reshape(len(codes))


def squares(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """The dot product of each row with itself, float32[n] from int8[n, dim], likewise exact before it is rounded."""
    if fastest is dots_by_simsimd and len(codes):
        import simsimd

        return np.asarray(simsimd.dot(codes, codes), np.float32)
    return np.asarray(np.einsum("nd,nd->n", codes, codes, dtype=np.int32), np.float32)


def _fastest() -> Kernel:
    try:
        import simsimd  # noqa: F401
    except ImportError:
        return dots_by_numpy
    return dots_by_simsimd


fastest: Kernel = _fastest()


Part = tuple[NDArray[np.int64], NDArray[np.float32]]
Rows = NDArray[np.intp]

LOWEST_SCORE = np.finfo(np.float32).min

_SAMPLED_EVERY = 64
# Groups for each score that is asked for: with more of them fewer scores pass that are not among the best.
_GROUPS = 8


def best(parts: Iterable[Part], limit: int) -> Part:
    """The `limit` highest scores of all parts, best first, equal ones by ascending key.

    Args:
        parts: keys int64[n] and scores float32[n]; a score of -inf stands for "not this one".
    """
    keys, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for part_keys, part_scores in parts:
        if len(scores):
            floor = _floor(scores, limit)
            kept = scores >= floor  # with all that tie at the border: smaller keys among them go first
            keys, scores = keys[kept], scores[kept]
        else:  # nothing to compare with yet: spares copying the whole first part
            floor = _likely_floor(part_scores, limit)
        near = (part_scores >= floor).nonzero()[0]
        keys = np.concatenate([keys, part_keys.take(near)])
        scores = np.concatenate([scores, part_scores.take(near)])
    order = np.lexsort((keys, -scores))[:limit]
    return keys.take(order), scores.take(order)


def _likely_floor(scores: NDArray[np.float32], limit: int) -> np.float32:
    """What `limit` scores reach, or a little less: the best of each small group are among the scores, and the least of
    the `limit` best of them is soon found.
    """
    groups = _GROUPS * limit
    if len(scores) < 2 * groups:
        return _floor(scores, limit)
    many = len(scores) // groups * groups
    return _floor(scores[:many].reshape(-1, groups).max(axis=0), limit)


def _floor(scores: NDArray[np.float32], limit: int) -> np.float32:
    """What a score must reach to be among the `limit` highest."""
    if len(scores) <= limit:
        return LOWEST_SCORE
    return max(LOWEST_SCORE, np.partition(scores, -limit)[-limit])


def nearest(parts: Sequence[Distances], count: int) -> list[Rows]:
    """The rows of each part that are among the `count` nearest of all parts, and all that tie with the last of them.

    What comes back depends on nothing but the distances. Counting them all takes ten times as long as comparing them
    with a limit; so a sample tells where to begin.
    """
    count, limit = min(count, sum(map(len, parts))), _likely_limit(parts, count)
    while True:
        rows = [(part <= limit).nonzero()[0] for part in parts]
        if sum(map(len, rows)) >= count:
            break
        limit += 2 + limit // 8
    found = [part[near] for part, near in zip(parts, rows, strict=True)]
    last = _limit_of(np.concatenate(found), count)
    return [near[distances <= last] for near, distances in zip(rows, found, strict=True)]


def _likely_limit(parts: Sequence[Distances], count: int) -> int:
    """Return a limit that very likely admits `count` rows: a sample estimate plus three standard errors."""
    sample = np.concatenate([part[::_SAMPLED_EVERY] for part in parts])
    share = count / _SAMPLED_EVERY
    return _limit_of(sample, int(share + 3 * share**0.5) + 1)


def _limit_of(distances: NDArray[np.unsignedinteger], count: int) -> int:
    """The least distance within which `count` of these are; the greatest there is if they are fewer."""
    return int(np.searchsorted(np.cumsum(np.bincount(distances)), min(count, len(distances))))


Floats = NDArray[np.float32]


class Centre(NamedTuple):
    """The mean of some vectors, float32[d]; itself as int8[d] and a scale; its dot product with itself."""

    mean: Floats
    codes: NDArray[np.int8]
    scale: np.float32
    square: float

    @classmethod
    def at(cls, mean: Floats) -> Centre:
        """The centre at float32[d]."""
        return cls(mean, *quantise(mean, len(mean), field="mean"), float(mean @ mean))


def centred_cosines(codes: NDArray[np.int8], scales: Floats, vector: Floats, centre: Centre) -> Floats:
    """The cosine of (row - mean) and (vector - mean) for each row, without writing the differences down.

    Products with rows are of int8: exact, and the cosines a few ten-thousandths off by what was rounded before.

    Args:
        codes: int8[n, d], contiguous; with `scales`, float32[n], the rows.
        vector: float32[d].

    Returns:
        float32[n]; NaN where the scale is.
    """
    asked = vector - centre.mean
    asked_codes, asked_scale = quantise(asked, len(asked), field="vector")
    along = fastest(codes, asked_codes) * scales * asked_scale - centre.mean @ asked
    about = fastest(codes, centre.codes) * scales * centre.scale
    lengths = np.sqrt(np.maximum(squares(codes) * (scales * scales) - 2 * about + centre.square, 0))
    return np.asarray(along / np.maximum(lengths * np.sqrt(asked @ asked), 1e-9), np.float32)
