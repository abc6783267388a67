"""Reads the weights of an ONNX file, and nothing else of it, without the onnx package.

Only the few protobuf fields that hold tensors are read: `ModelProto.graph` (7), `GraphProto.initializer` (5),
and of each tensor its dims (1), type (2), name (8) and raw data (9).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("f4"), 2: np.dtype("u1"), 3: np.dtype("i1"), 7: np.dtype("i8")}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Every initializer by name, in file order, as read-only views of the mapped file.

    The views keep the mapping alive; copy what is changed or long-lived and small.

    Raises:
        ValueError: the file is not ONNX, or is cut short.
    """
    with path.open("rb") as file:
        buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    graphs = [part for number, part in _fields(buffer) if number == 7 and isinstance(part, memoryview)]
    if not graphs:
        raise ValueError(f"{path} holds no ONNX graph")
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
    """Field numbers and values of one protobuf message; nested messages come as views."""
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
            raise ValueError("the file is cut short")
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
