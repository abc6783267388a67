"""The best of many scores, part by part."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Part = tuple[NDArray[np.int64], NDArray[np.float32]]

LOWEST_SCORE = np.finfo(np.float32).min


def best(parts: Iterable[Part], limit: int) -> Part:
    """The `limit` highest scores of all parts, best first, equal ones by ascending key.

    Args:
        parts: keys int64[n] and scores float32[n]; a score of -inf stands for "not this one".
    """
    keys, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    floor = LOWEST_SCORE
    for part_keys, part_scores in parts:
        if not len(scores):  # nothing to compare with yet: spares copying the whole first part
            floor = _floor(part_scores, limit)
        near = (part_scores >= floor).nonzero()[0]
        if len(near):
            keys = np.concatenate([keys, part_keys[near]])
            scores = np.concatenate([scores, part_scores[near]])
            floor = _floor(scores, limit)
            kept = scores >= floor  # with all that tie at the border: smaller keys among them go first
            keys, scores = keys[kept], scores[kept]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]


def _floor(scores: NDArray[np.float32], limit: int) -> np.float32:
    """What a score must reach to be among the `limit` highest."""
    if len(scores) <= limit:
        return LOWEST_SCORE
    return max(LOWEST_SCORE, np.partition(scores, -limit)[-limit])
