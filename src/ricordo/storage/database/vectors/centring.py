"""Cosines about the mean of a collection: what all its vectors share is taken from both sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.storage.database.vectors.codec import quantise
from ricordo.storage.database.vectors.kernels import fastest, squares

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
