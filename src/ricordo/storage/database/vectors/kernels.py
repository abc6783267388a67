"""Dot products of int8 rows with one int8 query. Every kernel gives the same numbers, bit for bit.

A dot product of int8 is a whole number. A kernel returns it rounded once to float32; it is exact before that,
so no order of summing, vector width or thread can change an answer.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
