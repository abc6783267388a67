"""The int8 form of a vector, 4 bytes of scale and one byte per dimension, and its binary form, one bit per dimension.

Both are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ricordo.errors import InvalidError

LARGEST = 127
# Between these the product of two scales can neither overflow float32 nor vanish, so a score is always finite
# and two machines cannot differ on how they round a subnormal number.
SMALLEST_PEAK = 1e-12
LARGEST_PEAK = 1e12


def quantise(vector: ArrayLike, dimension: int, *, field: str) -> tuple[NDArray[np.int8], np.float32]:
    """The nearest multiple of the scale in each dimension; the scale is the largest magnitude / 127.

    Args:
        vector: float[dimension], of any norm. A largest magnitude under 1e-12 counts as the zero vector.
        field: what an error calls the vector.

    Returns:
        int8[dimension] within -127..127, and the scale (0 for the zero vector).

    Raises:
        InvalidError: wrong shape, NaN, infinity, or a magnitude over 1e12.
    """
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimension,):
        raise InvalidError(f"{field}: expected {dimension} numbers, got shape {values.shape}")
    peak = np.abs(values).max()
    if not peak <= LARGEST_PEAK:  # written so that NaN is refused, too
        raise InvalidError(f"{field}: every number must be finite and within ±{LARGEST_PEAK:g}")
    if peak < SMALLEST_PEAK:
        return np.zeros(dimension, np.int8), np.float32(0)
    scale = np.float32(peak / np.float32(LARGEST))
    # Division can land a hair beyond 127 when the scale was rounded down.
    return np.rint(values / scale).clip(-LARGEST, LARGEST).astype(np.int8), scale


def encode(vector: ArrayLike, dimension: int) -> bytes:
    """A vector as it is stored: float32 scale, little-endian, then int8[dimension].

    Args:
        vector: float[dimension], of any norm.

    Raises:
        InvalidError: wrong shape, NaN, infinity, or a magnitude over 1e12.
    """
    codes, scale = quantise(vector, dimension, field="vector")
    return bytes(scale.astype("<f4").tobytes() + codes.tobytes())


def decode(encoded: bytes) -> NDArray[np.float32]:
    """The vector that `encoded` stands for, float32[dimension]: within half a scale of what was encoded.

    Raises:
        InvalidError: too short to hold a scale and one dimension.
    """
    if len(encoded) < 5:
        raise InvalidError(f"encoded: {len(encoded)} bytes cannot hold a vector")
    scale = np.frombuffer(encoded, "<f4", count=1)[0]
    return np.frombuffer(encoded, np.int8, offset=4).astype(np.float32) * np.float32(scale)


def pack_segment(keys: Iterable[int], rows: Iterable[bytes]) -> bytes:
    """Many encoded rows as one blob, by column: int64 keys, float32 scales, int8 codes; little-endian.

    The blob holds no count: it is the length / (12 + dimension). See `unpack_segment`.

    Args:
        keys: the row ids; ascending loads fastest.
        rows: as many results of `encode`, all of one dimension.

    Raises:
        InvalidError: not one row of the same length for each key.
    """
    ids, encoded = np.fromiter(keys, "<i8"), list(rows)
    if len(ids) != len(encoded) or len({len(row) for row in encoded}) > 1:
        raise InvalidError("rows: one row for each key, all of the same length")
    table = np.frombuffer(b"".join(encoded), np.uint8).reshape(len(ids), -1) if encoded else np.empty((0, 4), np.uint8)
    return ids.tobytes() + table[:, :4].tobytes() + table[:, 4:].tobytes()


def unpack_segment(
    segment: bytes | memoryview, dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int8]]:
    """The columns of a segment without copying: keys int64[n], scales float32[n], codes int8[n, dimension].

    Raises:
        InvalidError: the length is not a whole number of rows.
    """
    count, rest = divmod(len(segment), 12 + dimension)
    if rest:
        raise InvalidError(f"segment: {len(segment)} bytes are not rows of dimension {dimension}")
    keys = np.frombuffer(segment, "<i8", count=count)
    scales = np.frombuffer(segment, "<f4", count=count, offset=8 * count)
    codes = np.frombuffer(segment, np.int8, offset=12 * count).reshape(count, dimension)
    return keys, scales, codes


def sketch_segment(segment: bytes, dimension: int) -> bytes:
    """What is read first of many segments, by column: int64 keys[n], uint64 signs[words, n]; little-endian."""
    keys, _, codes = unpack_segment(segment, dimension)
    return keys.tobytes() + signs_of(codes).astype("<u8", copy=False).tobytes()


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
