"""Check commits of other devices before they are merged: anyone who can write to a shared folder can make some."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args

import apsw

from ricordo.storage.database.connection import add_functions
from ricordo.storage.database.history import TABLES
from ricordo.storage.database.schema import migrations
from ricordo.storage.exchange import Delta, ExchangedCommit, State, record_of
from ricordo.storage.jsonl.shapes import Column, shapes_of

_LARGEST = 2**53
_FIRST_MS, _LAST_MS = -62_135_510_400_000, 253_370_764_799_999
"""The years 1 to 9998, in Unix milliseconds: what can be converted to any time zone."""
_MOST_NAME = 100


def is_valid(commit: ExchangedCommit) -> bool:
    """Return whether all parts of a commit have the types and ranges of the schema."""
    numbers = (commit.after, commit.number)
    names = (commit.device, commit.actor, commit.origin, commit.reason, commit.run_id or "")
    if not all(type(each) is int for each in numbers) or not 0 <= commit.after < commit.number < _LARGEST:
        return False
    return all(map(_is_text, names)) and 0 < len(commit.device) <= _MOST_NAME and all(map(_is_valid, commit.deltas))


def _is_valid(delta: Delta) -> bool:
    is_known = _is_text(delta.table) and delta.table in TABLES["exchanged"] and delta.state in get_args(State)
    if not is_known or not _is_text(delta.record) or not isinstance(delta.values, dict):
        return False
    checks = _checks()[delta.table]
    if not all(name in checks and (value is None or checks[name](value)) for name, value in delta.values.items()):
        return False
    if delta.state in ("gone", "erased"):
        return not delta.values
    try:
        return delta.record == record_of(delta.table, delta.values)
    except KeyError:
        return False


@cache
def _checks() -> Mapping[str, Mapping[str, Callable[[Any], bool]]]:
    """Return a check of the values of each column of each table."""
    connection = apsw.Connection(":memory:")
    add_functions(connection)
    for step in migrations():
        connection.execute(step.sql)
    shapes = shapes_of(connection).rows
    connection.close()
    return {
        name: {each.name: _check(each) for each in shapes[name].columns if each.kind not in ("own", "space")}
        for name in TABLES["exchanged"]
    }


def _check(column: Column) -> Callable[[Any], bool]:
    if column.kind == "reference" or column.holds is str:
        return _is_json_like(column.default) if column.kind == "json" else _is_text
    if column.kind == "time":
        return lambda value: type(value) is int and _FIRST_MS <= value <= _LAST_MS
    if column.kind == "real":
        return lambda value: type(value) is float and math.isfinite(value)
    return lambda value: type(value) is int and abs(value) < _LARGEST


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_json_like(default: str) -> Callable[[Any], bool]:
    """Return a check of JSON text: an object like the default, or a list of texts."""

    def check(value: Any) -> bool:
        try:
            parsed = json.loads(value) if _is_text(value) else None
        except (ValueError, RecursionError):
            return False
        if default == "{}":
            return isinstance(parsed, dict)
        return isinstance(parsed, list) and all(map(_is_text, parsed))

    return check
