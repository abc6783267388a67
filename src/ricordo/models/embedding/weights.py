"""Read the weights of models from .npz and ONNX files, without the onnx package."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray


class Archive:
    """The arrays of an .npz file, inflated with isal: 4 MB in 8 ms, where zlib takes 22 ms."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with ZipFile(path) as archive:
            self._entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}

    def names(self) -> list[str]:
        return list(self._entries)

    def read(self, name: str) -> NDArray[Any]:
        """Return one array. Safe to call from several threads."""
        entry = self._entries[name]
        if entry.compress_type != ZIP_DEFLATED:
            raise ValueError(f"{name} of {self._path} is not deflated")
        with self._path.open("rb") as file:
            file.seek(entry.header_offset + _NAME_SIZES)
            # The local header's name and extra field may differ in length from the directory's.
            skipped = sum(int.from_bytes(file.read(2), "little") for _ in range(2))
            file.seek(skipped, 1)
            packed = file.read(entry.compress_size)
        plain = isal_zlib.decompress(packed, wbits=-15, bufsize=entry.file_size)
        return _array(plain)


_NAME_SIZES = 26  # offset of the lengths of name and extra field in a local file header of a zip


_HEADER = re.compile(rb"'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]*)\)")


def _array(plain: bytes) -> NDArray[Any]:
    """Read an array in .npy format, version 1.

    `numpy.load` parses the header with `ast.literal_eval`, which sometimes fails in two threads at once in CPython 3.11
    (SystemError: AST constructor recursion depth mismatch).
    """
    length = int.from_bytes(plain[8:10], "little")
    header = _HEADER.search(plain, 10, 10 + length)
    if plain[:7] != b"\x93NUMPY\x01" or header is None:
        raise ValueError("not an array in .npy format, version 1")
    shape = [int(size) for size in header[2].replace(b" ", b"").split(b",") if size]
    return np.frombuffer(plain, np.dtype(header[1].decode()), offset=10 + length).reshape(shape)


_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 7: np.dtype("i8")}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return every initializer of an ONNX file by name, in file order, as read-only views of the mapped file.

    Only the protobuf fields of tensors are read: `ModelProto.graph` (7), `GraphProto.initializer` (5), and of each
    tensor its dims (1), type (2), name (8) and raw data (9). The views keep the mapping alive; copy arrays that are
    changed, or small and long-lived.

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
