"""One bit per direction in place of a vector: what a search of very many rows looks at first.

A vector is turned (its coordinates get fixed signs, then a Walsh-Hadamard transform mixes them, so that every one of
the new coordinates tells about as much as another) and of each new coordinate only the sign is kept. The more of
these bits two vectors have in common, the smaller the angle between them is likely to be. The transform adds and
subtracts whole numbers: signs are the same on every machine, and depend on nothing but the row.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Signs = NDArray[np.uint64]
Distances = NDArray[np.uint8] | NDArray[np.uint16]

# More bits tell little more and cost as much again; longer vectors are folded.
MOST_BITS = 512
# So many rows are turned at a time: they stay in the second-level cache.
_ROWS_AT_ONCE = 1_024
# And so many are compared: 65,536 took half as long again.
_COMPARED_AT_ONCE = 16_384


def bits_of(dimension: int) -> int:
    """How many signs stand for a vector: a power of two from 64 to 512."""
    return min(MOST_BITS, max(64, 1 << (dimension - 1).bit_length()))


def words_of(dimension: int) -> int:
    """How many uint64 hold the signs of a vector."""
    return bits_of(dimension) // 64


def signs_of(codes: NDArray[np.int8]) -> Signs:
    """The signs of int8[n, dimension], by column: uint64[words, n]. Their scales make no difference."""
    signs = np.empty((words_of(codes.shape[1]), len(codes)), np.uint64)
    for top in range(0, len(codes), _ROWS_AT_ONCE):
        part = codes[top : top + _ROWS_AT_ONCE]
        bits = _turned(part) > 0
        bits[-1] = False  # so that of 256 bits 255 differ at most, and a distance fits a byte
        columns = np.packbits(bits, axis=0).reshape(len(signs), 8, len(part))
        signs[:, top : top + len(part)] = columns.transpose(0, 2, 1).copy().view("<u8")[:, :, 0]
    return signs


def distances(signs: Signs, asked: Signs) -> Distances:
    """How many of the signs of each row differ from those `asked`, uint64[words, 1]."""
    words, count = signs.shape
    total: Distances = np.zeros(count, np.uint8) if words <= 4 else np.zeros(count, np.uint16)
    differing, counts = np.empty(_COMPARED_AT_ONCE, np.uint64), np.empty(_COMPARED_AT_ONCE, np.uint8)
    for top in range(0, count, _COMPARED_AT_ONCE):
        part = total[top : top + _COMPARED_AT_ONCE]
        bits, ones = differing[: len(part)], counts[: len(part)]
        for column, word in zip(signs[:, top : top + len(part)], asked[:, 0], strict=True):
            np.bitwise_count(np.bitwise_xor(column, word, out=bits), out=ones)
            np.add(part, ones, out=part)
    return total


def _turned(codes: NDArray[np.int8]) -> NDArray[np.int16]:
    """Each row times fixed signs, folded, then transformed: int16[bits, n].

    Signs that are as good as random keep the sums small; one that did not fit would wrap, and be the same everywhere.
    """
    count, dimension = codes.shape
    bits = bits_of(dimension)
    values: NDArray[np.int16] = np.zeros((-(-dimension // bits), bits, count), np.int16)
    np.multiply(codes.T, _flips(dimension)[:, np.newaxis], out=values.reshape(-1, count)[:dimension], dtype=np.int16)
    values = values[0] if len(values) == 1 else np.add.reduce(values, axis=0, dtype=np.int16)
    other = np.empty_like(values)
    half = 1
    while half < bits:
        old, new = values.reshape(-1, 2, half, count), other.reshape(-1, 2, half, count)
        np.add(old[:, 0], old[:, 1], out=new[:, 0])
        np.subtract(old[:, 0], old[:, 1], out=new[:, 1])
        values, other = other, values
        half *= 2
    return values


@lru_cache(maxsize=8)
def _flips(dimension: int) -> NDArray[np.int8]:
    """+1 and -1, as by chance but always the same."""
    drawn = hashlib.shake_128(b"ricordo signs").digest(-(-dimension // 8))
    return np.where(np.unpackbits(np.frombuffer(drawn, np.uint8))[:dimension], 1, -1).astype(np.int8)
