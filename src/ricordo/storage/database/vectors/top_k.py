"""The best of many scores, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.database.vectors.binary_codes import Distances

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
