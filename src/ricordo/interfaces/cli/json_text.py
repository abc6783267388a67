"""Answers as JSON: what `--json` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Any


def json_text(value: object) -> str:
    """One JSON document. Unpaired surrogates, which UTF-8 has no place for, become question marks."""
    return json.dumps(plain_value(value), ensure_ascii=False, indent=2).encode("utf-8", "replace").decode()


_PLAIN = (str, int, type(None))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name != "key")


def plain_value(value: object) -> Any:
    """Dataclasses become objects without the store's own `key`, instants ISO 8601 text in UTC."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float):
        return value if isfinite(value) else None
    if is_dataclass(value):
        kind: Any = type(value)
        return {name: plain_value(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, Mapping):
        return {str(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")
