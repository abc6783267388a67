"""Vectors as int8, with a scale of 4 bytes and one byte per dimension, and as signs, one bit per dimension.

Both forms are the same on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ricordo.errors import InvalidError

LARGEST = 127
# Within these limits the product of two scales neither overflows float32 nor becomes subnormal. So scores are finite,
# and machines cannot differ in how they round subnormal numbers.
SMALLEST_PEAK = 1e-12
LARGEST_PEAK = 1e12


def quantise(vector: ArrayLike, dimension: int, *, field: str) -> tuple[NDArray[np.int8], np.float32]:
    """Round each dimension to a multiple of the scale, which is the largest magnitude / 127.

    Args:
        vector: float[dimension], of any norm. With a largest magnitude under 1e-12, it is the zero vector.
        field: the name of the vector in an error.

    Returns:
        int8[dimension] within -127..127, and the scale (0 for the zero vector).

    Raises:
        InvalidError: wrong shape, NaN, infinity, or a magnitude over 1e12.
    """
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimension,):
        raise InvalidError(f"{field}: expected {dimension} numbers, got shape {values.shape}")
    peak = np.abs(values).max()
    if not peak <= LARGEST_PEAK:  # in this form it is also true for NaN
        raise InvalidError(f"{field}: every number must be finite and within ±{LARGEST_PEAK:g}")
    if peak < SMALLEST_PEAK:
        return np.zeros(dimension, np.int8), np.float32(0)
    scale = np.float32(peak / np.float32(LARGEST))
    # If the scale was rounded down, division can yield slightly more than 127.
    return np.rint(values / scale).clip(-LARGEST, LARGEST).astype(np.int8), scale


def encode(vector: ArrayLike, dimension: int) -> bytes:
    """Encode a vector for storage: float32 scale, little-endian, then int8[dimension].

    Args:
        vector: float[dimension], of any norm.

    Raises:
        InvalidError: wrong shape, NaN, infinity, or a magnitude over 1e12.
    """
    codes, scale = quantise(vector, dimension, field="vector")
    return bytes(scale.astype("<f4").tobytes() + codes.tobytes())


def decode(encoded: bytes) -> NDArray[np.float32]:
    """Decode a vector, float32[dimension]: each number is within half a scale of the encoded one.

    Raises:
        InvalidError: the bytes are too few for a scale and one dimension.
    """
    if len(encoded) < 5:
        raise InvalidError(f"encoded: {len(encoded)} bytes cannot hold a vector")
    scale = np.frombuffer(encoded, "<f4", count=1)[0]
    return np.frombuffer(encoded, np.int8, offset=4).astype(np.float32) * np.float32(scale)


def columns_of(encoded: bytes, dimension: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return concatenated encoded vectors as int8[n, dimension] and their scales, float32[n]."""
    rows = np.frombuffer(encoded, np.uint8).reshape(-1, 4 + dimension)
    scales = np.ascontiguousarray(rows[:, :4]).view("<f4")[:, 0]
    return np.ascontiguousarray(rows[:, 4:]).view(np.int8), scales.astype(np.float32, copy=False)


def numbers_in(text: str | None) -> NDArray[np.int64]:
    """Return the numbers of a text that separates them by commas, as `group_concat` does; none for NULL."""
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, np.int64)


def pack_segment(keys: Iterable[int], rows: Iterable[bytes]) -> bytes:
    """Pack encoded rows into one blob, by column: int64 keys, float32 scales, int8 codes; little-endian.

    The blob contains no count: it is the length / (12 + dimension). See `unpack_segment`.

    Args:
        keys: the row ids; ascending loads fastest.
        rows: one result of `encode` for each key, all of one dimension.

    Raises:
        InvalidError: the numbers of keys and rows differ, or rows differ in length.
    """
    ids, encoded = np.fromiter(keys, "<i8"), list(rows)
    if len(ids) != len(encoded) or len({len(row) for row in encoded}) > 1:
        raise InvalidError("rows: one row for each key, all of the same length")
    return pack_joined(ids, b"".join(encoded))


def pack_joined(keys: NDArray[np.int64], encoded: bytes) -> bytes:
    """Return what `pack_segment` does for concatenated rows."""
    table = np.frombuffer(encoded, np.uint8).reshape(len(keys), -1) if encoded else np.empty((0, 4), np.uint8)
    return keys.astype("<i8", copy=False).tobytes() + table[:, :4].tobytes() + table[:, 4:].tobytes()


def unpack_segment(
    segment: bytes | memoryview, dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int8]]:
    """Return the columns of a segment without copying: keys int64[n], scales float32[n], codes int8[n, dimension].

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
    """Return the part of a large segment that is read first: int64 keys[n], uint64 signs[words, n]; little-endian."""
    keys, _, codes = unpack_segment(segment, dimension)
    return keys.tobytes() + signs_of(codes).astype("<u8", copy=False).tobytes()


Signs = NDArray[np.uint64]
Distances = NDArray[np.uint8] | NDArray[np.uint16]

# More bits improve results little and cost proportionally; longer vectors are folded.
MOST_BITS = 512
# So many rows are transformed at a time: they fit in the second-level cache.
_ROWS_AT_ONCE = 1_024
# So many rows are compared at a time: 65,536 took half as long again.
_COMPARED_AT_ONCE = 16_384


def bits_of(dimension: int) -> int:
    """Return the number of signs per vector: a power of two from 64 to 512."""
    return min(MOST_BITS, max(64, 1 << (dimension - 1).bit_length()))


def words_of(dimension: int) -> int:
    """Return the number of uint64 that hold the signs of a vector."""
    return bits_of(dimension) // 64


def signs_of(codes: NDArray[np.int8]) -> Signs:
    """Return the signs of int8[n, dimension] by column, uint64[words, n]. Scales make no difference."""
    signs = np.empty((words_of(codes.shape[1]), len(codes)), np.uint64)
    for top in range(0, len(codes), _ROWS_AT_ONCE):
        part = codes[top : top + _ROWS_AT_ONCE]
        bits = _turned(part) > 0
        bits[-1] = False  # so that at most 255 of 256 bits differ, and a distance fits in a byte
        columns = np.packbits(bits, axis=0).reshape(len(signs), 8, len(part))
        signs[:, top : top + len(part)] = columns.transpose(0, 2, 1).copy().view("<u8")[:, :, 0]
    return signs


def distances(signs: Signs, asked: Signs) -> Distances:
    """Return how many signs of each row differ from those `asked`, uint64[words, 1]."""
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
    """Multiply each row by fixed signs, fold it, and apply a Hadamard transform: int16[bits, n].

    Pseudorandom signs keep the sums small. A sum that does not fit wraps, in the same way on every machine.
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
    """Return pseudorandom but constant factors, +1 and -1."""
    drawn = hashlib.shake_128(b"ricordo signs").digest(-(-dimension // 8))
    return np.where(np.unpackbits(np.frombuffer(drawn, np.uint8))[:dimension], 1, -1).astype(np.int8)


def ascending(keys: ArrayLike) -> NDArray[np.int64]:
    """Return the keys in order, each once. `np.unique` would hash them first: 2 ms for 10,000 sorted keys."""
    values: NDArray[np.int64] = np.asarray(keys, np.int64)
    if not is_ascending(values):
        values = np.sort(values)
        values = values[runs_of(values)]
    return values


def runs_of(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each run of equal values begins, intp[runs]; empty for no values."""
    begins = np.empty(len(ordered), np.bool_)
    begins[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    places: NDArray[np.intp] = begins.nonzero()[0]
    return places


def is_ascending(keys: NDArray[np.int64]) -> bool:
    """Return whether each key is above the previous one."""
    return bool((keys[1:] > keys[:-1]).all())


def overtaken(keys: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the places of the keys that occur again later."""
    order: NDArray[np.intp] = np.argsort(keys, kind="stable")
    ordered = keys[order]
    places: NDArray[np.intp] = order[:-1][ordered[1:] == ordered[:-1]]
    return places


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
    """Compute dot products with BLAS. It has no int8, so a few rows at a time are converted to float32."""
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
    """Compute dot products with the processor's int8 instructions, summing in int32. Releases the GIL."""
    import simsimd  # imported late: a platform without a wheel uses the other kernel

    if not len(codes):
        return np.empty(0, np.float32)
    table = simsimd.cdist(query[np.newaxis], codes, "dot", out_dtype="float32")
    return np.asarray(table, dtype=np.float32).reshape(len(codes))


def squares(codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the dot product of each row of int8[n, dim] with itself, float32[n]. It is exact before it is rounded."""
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

LOWEST_SCORE = np.finfo(np.float32).min

_SAMPLED_EVERY = 64
# Groups per score wanted: with more groups, fewer scores pass that are not among the best.
_GROUPS = 8


def best(parts: Iterable[Part], limit: int) -> Part:
    """Return the `limit` highest scores of all parts, best first, equal ones by ascending key.

    Args:
        parts: keys int64[n] and scores float32[n]; a score of -inf excludes the key.
    """
    keys, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for part_keys, part_scores in parts:
        if len(scores):
            floor = _floor(scores, limit)
            kept = scores >= floor  # including ties at the floor, of which smaller keys go first
            keys, scores = keys[kept], scores[kept]
        else:  # with no scores to compare, an estimate saves copying the complete first part
            floor = _likely_floor(part_scores, limit)
        near = (part_scores >= floor).nonzero()[0]
        keys = np.concatenate([keys, part_keys.take(near)])
        scores = np.concatenate([scores, part_scores.take(near)])
    order = np.lexsort((keys, -scores))[:limit]
    return keys.take(order), scores.take(order)


def _likely_floor(scores: NDArray[np.float32], limit: int) -> np.float32:
    """Return a number that at least `limit` scores reach, found quickly: only the best score of each small group is
    compared.
    """
    groups = _GROUPS * limit
    if len(scores) < 2 * groups:
        return _floor(scores, limit)
    many = len(scores) // groups * groups
    return _floor(scores[:many].reshape(-1, groups).max(axis=0), limit)


def _floor(scores: NDArray[np.float32], limit: int) -> np.float32:
    """Return what a score must reach to be among the `limit` highest."""
    if len(scores) <= limit:
        return LOWEST_SCORE
    return max(LOWEST_SCORE, np.partition(scores, -limit)[-limit])


def nearest(parts: Sequence[Distances], count: int) -> list[NDArray[np.intp]]:
    """Return the rows of each part that are among the `count` nearest of all parts, or tie with the last of these.

    The result depends only on the distances. Counting all of them takes ten times as long as comparing them with a
    limit, so a sample provides the first limit.
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
    """Return the smallest distance within which `count` of these lie, or the largest one if there are fewer."""
    return int(np.searchsorted(np.cumsum(np.bincount(distances)), min(count, len(distances))))


Floats = NDArray[np.float32]


class Centre(NamedTuple):
    """The mean of some vectors, float32[d]; the same as int8[d] and a scale; and its dot product with itself."""

    mean: Floats
    codes: NDArray[np.int8]
    scale: np.float32
    square: float

    @classmethod
    def at(cls, mean: Floats) -> Centre:
        """Return the centre for a mean, float32[d]."""
        return cls(mean, *quantise(mean, len(mean), field="mean"), float(mean @ mean))


def centred_cosines(codes: NDArray[np.int8], scales: Floats, vector: Floats, centre: Centre) -> Floats:
    """Return the cosine of (row - mean) and (vector - mean) for each row, without computing the differences.

    Products of int8 are exact; the cosines are off by a few ten-thousandths, because vector and mean are rounded.

    Args:
        codes: int8[n, d], contiguous; with `scales`, float32[n], the rows.
        vector: float32[d].

    Returns:
        float32[n]; NaN if the scale is.
    """
    asked = vector - centre.mean
    asked_codes, asked_scale = quantise(asked, len(asked), field="vector")
    along = fastest(codes, asked_codes) * asked_scale
    about = fastest(codes, centre.codes) * centre.scale
    return _cosines_about(codes, scales, along, about, asked=asked, centre=centre)


def exact_centred_cosines(codes: NDArray[np.int8], scales: Floats, vector: Floats, centre: Centre) -> Floats:
    """Return the same without the error of rounding vector and mean; for some thousand rows."""
    asked = vector - centre.mean
    along, about = _dots(codes, asked), _dots(codes, centre.mean)
    return _cosines_about(codes, scales, along, about, asked=asked, centre=centre)


def _dots(codes: NDArray[np.int8], vector: Floats) -> Floats:
    """Return products of int8[n, d] with float32[d], to a few millionths: the vector as int8, plus its rest as int8.

    A float32 product would use another core as well, and take ten times as long if that core is busy.
    """
    first, scale = quantise(vector, len(vector), field="vector")
    second, fine = quantise(vector - first * scale, len(vector), field="vector")
    return np.asarray(fastest(codes, first) * scale + fastest(codes, second) * fine, np.float32)


def _cosines_about(
    codes: NDArray[np.int8], scales: Floats, along: Floats, about: Floats, *, asked: Floats, centre: Centre
) -> Floats:
    """Return cosines from the codes' products with the vector (`along`) and the mean (`about`), without scales."""
    squared = squares(codes) * (scales * scales) - 2 * about * scales + centre.square
    lengths = np.sqrt(np.maximum(squared, 0)) * np.sqrt(asked @ asked)
    return np.asarray((along * scales - centre.mean @ asked) / np.maximum(lengths, 1e-9), np.float32)
