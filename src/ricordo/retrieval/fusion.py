"""How what the signals measured becomes one score. Pure: weighted sums of the measures, or of reciprocal ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Fusion

if TYPE_CHECKING:
    Floats = NDArray[np.float32]

# Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods"
# (2009), their value.
_RANK_CONSTANT = 60


def fuse(values: Mapping[str, Floats], weights: Mapping[str, float], *, fusion: Fusion) -> dict[str, Floats]:
    """What each signal adds to the score of each candidate.

    Args:
        values: what each signal measured, float32[candidates].
        weights: what each counts; together 1, so that a score is about 1 at most.
        fusion: "score" takes the weight times the measure, "rrf" the weight by the place: 61 / (60 + rank).
    """
    if fusion == "score":
        return {name: np.asarray(weights[name] * measured, np.float32) for name, measured in values.items()}
    return {name: np.asarray(weights[name] * _by_rank(measured), np.float32) for name, measured in values.items()}


def _by_rank(measured: Floats) -> NDArray[np.float64]:
    """(k + 1) / (k + rank), so that the first gets 1; 0 for those the signal does not speak for."""
    found = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + _ranks(measured))
    return np.where(measured > 0, found, 0.0)


def _ranks(measured: Floats) -> NDArray[np.intp]:
    """1 for the best; equal ones share the better place."""
    ascending = np.sort(measured)
    return 1 + len(measured) - np.searchsorted(ascending, measured, side="right")
