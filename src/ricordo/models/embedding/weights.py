"""Weights of models: reading them from .npz and ONNX files without the onnx package, and int8 multiplication."""

from __future__ import annotations

import mmap
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray


def _kernels() -> ModuleType | None:
    """Import numkong; return None on platforms without a wheel, where numpy takes four times as long."""
    try:
        import numkong
    except ImportError:
        return None
    found: ModuleType = numkong
    return found


_numkong = _kernels()

Floats = NDArray[np.float32]

_LARGEST = 127
_SMALLEST = np.float32(1e-30)
_FLAT = np.float32(
    1e-3
)  # the smallest step of a row, so that for nearly equal values the middle, in steps, stays small
# Rows at a time, so that the products with the widest matrix of a model fit into a core's second-level cache.
ROWS_AT_ONCE = 64


class Int8Matrix:
    """An affine map whose matrix is int8 with a scale per column. Input rows are rounded to integers, too.

    The step (rounding unit) of a row depends only on its own smallest and largest value, and integer sums are exact.
    Therefore a row's result does not depend on other rows, the kernel or the order of summation. With int8 instructions
    (AVX-512 VNNI) a product takes a quarter of the time of float32. Safe to call from several threads; the product
    releases the GIL.

    Args:
        codes: int8[inputs, outputs].
        scales: float32[outputs]; column i of the matrix is `codes[:, i] * scales[i]`.
        bias: float32[outputs].
        outliers: inputs that are much larger than all others. They are ignored for the step and may exceed int8.
    """

    def __init__(self, codes: NDArray[np.int8], scales: Floats, bias: Floats, *, outliers: Sequence[int] = ()) -> None:
        self._outliers = np.array(outliers, np.intp)
        inner = codes.copy()
        inner[self._outliers] = 0
        self._dots = _dots_by_numpy(inner) if _numkong is None else _dots_by_numkong(inner, _numkong)
        # The matrix rows of the outliers, and the sum of all other matrix rows, by which the middle is multiplied.
        # Products with them are integers below 2**24, which float32 represents exactly.
        self._rest = np.vstack([codes[self._outliers], inner.sum(axis=0, dtype=np.int64)]).astype(np.float32)
        self._scales = np.asarray(scales, np.float32).ravel()
        self._bias = np.asarray(bias, np.float32)

    @classmethod
    def of(cls, matrix: Floats, bias: Floats) -> Int8Matrix:
        """Round float32[inputs, outputs] to int8, each column by its largest magnitude."""
        scales = np.maximum(np.abs(matrix).max(axis=0), _SMALLEST) / np.float32(_LARGEST)
        return cls(np.rint(matrix / scales).astype(np.int8), scales, bias)

    def __call__(self, x: Floats) -> Floats:
        """Return float32[rows, outputs] of float32[rows, inputs]."""
        result = np.empty((len(x), len(self._scales)), np.float32)
        for top in range(0, len(x), ROWS_AT_ONCE):
            self._multiply(x[top : top + ROWS_AT_ONCE], result[top : top + ROWS_AT_ONCE])
        return result

    def _multiply(self, x: Floats, result: Floats) -> None:
        inner = x.copy()
        inner[:, self._outliers] = 0
        steps, middles = _steps(inner)
        inner *= 1 / steps
        np.rint(inner, out=inner)
        inner -= middles
        inner[:, self._outliers] = 0
        rest = np.hstack([np.rint(x[:, self._outliers] / steps), middles])
        np.add(self._dots(inner.astype(np.int8)), rest @ self._rest, out=result, dtype=np.float32, casting="unsafe")
        result *= self._scales
        result *= steps
        result += self._bias


def _steps(x: Floats) -> tuple[Floats, Floats]:
    """Return the step of each row, and the middle of the row in steps: float32[rows, 1] each."""
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    middles = (low + high) / 2
    # Rounding the middle and a value can each add half a step, so the largest code is 127.
    steps: Floats = np.maximum(np.maximum(high - low, np.abs(middles) * _FLAT) / (2 * _LARGEST - 2), _SMALLEST)
    return steps, np.rint(middles / steps)


def _dots_by_numkong(codes: NDArray[np.int8], kernels: ModuleType) -> Callable[[NDArray[np.int8]], NDArray[Any]]:
    packed = kernels.dots_pack(np.ascontiguousarray(codes.T))
    return lambda rows: np.asarray(kernels.dots_packed(rows, packed))


def _dots_by_numpy(codes: NDArray[np.int8]) -> Callable[[NDArray[np.int8]], NDArray[Any]]:
    matrix = codes.astype(np.float32)
    return lambda rows: rows.astype(np.float32) @ matrix


class Archive:
    """The arrays of a memory-mapped .npz file. isal decompresses 4 MB in 8 ms, zlib in 22 ms."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file, ZipFile(file) as archive:
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            self._entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}

    def names(self) -> list[str]:
        return list(self._entries)

    def read(self, name: str) -> NDArray[Any]:
        """Return one array. Safe to call from several threads."""
        plain = isal_zlib.decompress(self._packed(name), wbits=_RAW, bufsize=self._entries[name].file_size)
        return _array(plain, plain)

    def rows(self, name: str) -> Rows:
        """Return one array that is decompressed as its rows are read."""
        return Rows(self._packed(name), self._entries[name].file_size)

    def _packed(self, name: str) -> memoryview:
        entry = self._entries[name]
        if entry.compress_type != ZIP_DEFLATED:
            raise ValueError(f"{name} of {self._path} is not deflated")
        at = entry.header_offset + _NAME_SIZES
        # Name and extra field may have other lengths in the local header than in the central directory.
        skipped = sum(int.from_bytes(self._data[n : n + 2], "little") for n in (at, at + 2))
        return self._data[at + 4 + skipped :][: entry.compress_size]


class Rows:
    """A deflated array, decompressed from its beginning up to the last row that was read. The rest takes no memory.

    Safe to call from several threads.
    """

    def __init__(self, packed: memoryview, size: int) -> None:
        self._packed = packed
        self._inflater = isal_zlib.decompressobj(wbits=_RAW)
        self._plain = np.empty(size, np.uint8)
        self._known = self._read = 0
        self._lock = threading.Lock()
        self._inflate()
        self._rows = _array(self._plain[: self._known].tobytes(), self._plain)

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows with the given numbers."""
        needed = len(self._plain) - (len(self._rows) - 1 - int(numbers.max())) * self._rows.strides[0]
        with self._lock:
            while self._known < needed:
                self._inflate()
        found: NDArray[Any] = self._rows[numbers]
        return found

    def _inflate(self) -> None:
        if self._read >= len(self._packed):
            raise ValueError("the file is truncated")
        plain = self._inflater.decompress(self._packed[self._read : self._read + _PACKED_AT_ONCE])
        self._plain[self._known : self._known + len(plain)] = np.frombuffer(plain, np.uint8)
        self._read += _PACKED_AT_ONCE
        self._known += len(plain)


_RAW = -15  # deflated data without a header
_NAME_SIZES = 26  # offset of the lengths of name and extra field in a local file header of a zip
_PACKED_AT_ONCE = 1 << 16

_HEADER = re.compile(rb"'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]*)\)")


def _array(beginning: bytes, plain: bytes | NDArray[np.uint8]) -> NDArray[Any]:
    """Return an array in .npy format, version 1, whose header is in `beginning`.

    `numpy.load` parses the header with `ast.literal_eval`, which sometimes fails in two threads at once in CPython 3.11
    (SystemError: AST constructor recursion depth mismatch).
    """
    length = int.from_bytes(beginning[8:10], "little")
    header = _HEADER.search(beginning, 10, 10 + length)
    if beginning[:7] != b"\x93NUMPY\x01" or header is None:
        raise ValueError("not an array in .npy format, version 1")
    shape = [int(size) for size in header[2].replace(b" ", b"").split(b",") if size]
    return np.frombuffer(plain, np.dtype(header[1].decode()), offset=10 + length).reshape(shape)


_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 7: np.dtype("i8")}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return every initializer of an ONNX file by name, in file order, as read-only views of the mapped file.

    Only the protobuf fields of tensors are read: `ModelProto.graph` (7), `GraphProto.initializer` (5), and of each
    tensor its dims (1), type (2), name (8) and raw data (9). The views keep the mapping alive, so copy arrays that are
    small and long-lived, or that must be changed.

    Raises:
        ValueError: the file is not ONNX, or is truncated.
    """
    with path.open("rb") as file:
        buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    graphs = [part for number, part in _fields(buffer) if number == 7 and isinstance(part, memoryview)]
    if not graphs:
        raise ValueError(f"{path} contains no ONNX graph")
    tensors = (_tensor(part) for number, part in _fields(graphs[0]) if number == 5)
    return {name: values for name, values in tensors if values is not None}


def _tensor(part: int | memoryview) -> tuple[str, NDArray[Any] | None]:
    name, kind = "", 0
    shape: list[int] = []
    raw: memoryview | None = None
    if isinstance(part, int):
        raise ValueError("an ONNX tensor is a message, not a number")
    for number, value in _fields(part):
        if number == 1:
            shape += [value] if isinstance(value, int) else _packed(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8 and isinstance(value, memoryview):
            name = str(value, "utf-8")
        elif number == 9 and isinstance(value, memoryview):
            raw = value
    if raw is None or kind not in _TYPES:
        return name, None
    return name, np.frombuffer(raw, dtype=_TYPES[kind]).reshape(shape)


def _fields(buffer: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the field numbers and values of a protobuf message; nested messages as views."""
    at = 0
    while at < len(buffer):
        tag, at = _varint(buffer, at)
        wire = tag & 7
        if wire == 0:
            number, at = _varint(buffer, at)
            yield tag >> 3, number
            continue
        if wire == 2:
            size, at = _varint(buffer, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown protobuf wire type {wire}")
        if at + size > len(buffer):
            raise ValueError("the file is truncated")
        yield tag >> 3, buffer[at : at + size]
        at += size


def _packed(buffer: memoryview) -> list[int]:
    numbers, at = [], 0
    while at < len(buffer):
        number, at = _varint(buffer, at)
        numbers.append(number)
    return numbers


def _varint(buffer: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
