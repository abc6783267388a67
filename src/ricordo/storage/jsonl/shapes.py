"""How rows of each table are converted to lines and back, derived from the schema and the names in `layout`."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import apsw

from ricordo.storage.database.hashes import is_sealed
from ricordo.storage.database.history import Table, Truth, truth_of
from ricordo.storage.database.statements import sql
from ricordo.storage.jsonl.layout import KEPT, MEMORY_FILES, RESERVED, Form, form_of
from ricordo.storage.jsonl.lines import (
    Line,
    LineError,
    base64_bytes,
    encode,
    iso,
    json_text,
    milliseconds,
    real_number,
    text_in,
    whole_number,
)

Kind = Literal["plain", "real", "whole", "time", "json", "blob", "space", "reference", "own"]

_TIMES = frozenset(("event_time", "valid_from", "valid_until", "first_seen", "last_updated", "at", "expires_at"))
_NEVER_TIMES = frozenset(("first_at", "last_at"))
_HIDDEN = {"key": "row", "commit_seq": "commit", "seal": "seal"}
_TYPE_NAMES: Mapping[type, str] = {str: "text", int: "a whole number", float: "a number", bytes: "base64"}
_COLUMN_TYPES: Mapping[str, type] = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}


def _json_value(text: str) -> Any:
    parsed = json.loads(text)
    return parsed if encode(parsed) == text else text


_FORMS: Mapping[Kind, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    "time": (milliseconds, iso),
    "json": (json_text, _json_value),
    "blob": (base64_bytes, lambda value: b64encode(value).decode()),
    "real": (real_number, None),
    "whole": (whole_number, None),
}
"""Per kind: how a value is read from a line and, unless it is written unchanged, how it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, the name of its field in a line, and the kind of its values.

    Args:
        target: the table that a reference refers to.
        default: the value if a line does not contain the field.
    """

    name: str
    field: str
    kind: Kind
    holds: type
    target: str
    default: Any


class Keys(Protocol):
    """Finds the keys of rows by public names."""

    def space(self, owner: str, chat: str) -> int: ...

    def key(self, target: str, name: Any, *, space: int | None) -> int | None: ...


class Shape:
    """A table as lines: how its rows are selected, written and read.

    Attributes:
        select: a SELECT of all columns of a row, with public names for references, for use with a WHERE that calls the
            table `t`. It is built from names in the schema.
        where_key: the condition that finds a row by its key; bytes are given as hexadecimal digits.
    """

    def __init__(self, table: Table, form: Form, columns: tuple[Column, ...]) -> None:
        self.table, self.form, self.columns = table, form, columns
        wanted = [*map(_expression, columns), *(f't."{name}"' for name in table.key)]
        self.select = f'SELECT {", ".join(wanted)} FROM main."{table.name}" AS t'
        blobs = {each.name for each in columns if each.kind == "blob"}
        self.where_key = " AND ".join(f'"{name}" = {"unhex(?)" if name in blobs else "?"}' for name in table.key)
        self.has_own_key = table.key == ("key",)
        self.kind: Line = {"kind": form.kind} if form.kind else {}
        self.references = tuple(each for each in columns if each.kind == "reference")
        self._places = {each.name: place for place, each in enumerate(columns)}
        self._fields = tuple(_HIDDEN[each.name] if each.kind == "own" else each.field for each in columns)
        numbered = tuple(enumerate(columns))
        self._spaces = tuple(place for place, each in numbered if each.kind == "space")
        self._references = tuple((place, each) for place, each in numbered if each.kind == "reference")
        self._readers = tuple((place, _FORMS[each.kind][0]) for place, each in numbered if each.kind in _FORMS)
        self._defaults = tuple((place, each.default) for place, each in numbered if each.default is not None)
        self._sealed = tuple(place for place, each in numbered if each.name != "seal")
        self._valid_types: set[tuple[type, ...]] = set()  # combinations of value types found valid so far

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key of a row of `select`."""
        return row[len(self.columns) :]

    def line(self, row: tuple[Any, ...], extra: Mapping[str, Any]) -> Line:
        """Return a row of `select` as a line."""
        found = dict(self.kind)
        for column, value in zip(self.columns, row, strict=False):
            if value is None or column.kind == "own" or value == column.default:
                continue
            if column.kind == "space":
                owner, chat = json.loads(value)
                found["owner_user_id"], found["chat_id"] = owner or None, chat or None
            else:
                _, write = _FORMS.get(column.kind, (None, None))
                found[column.field] = write(value) if write else value
        return {**found, **extra}

    def image(self, line: Line, keys: Keys) -> dict[str, Any]:
        """Return the content of a line, column to value, without the row's key, commit and seal. Raises LineError."""
        values = self._values(line, keys)
        return {each.name: value for each, value in zip(self.columns, values, strict=True) if each.kind != "own"}

    def whole(self, line: Line, keys: Keys) -> tuple[Any, ...]:
        """Return the values of a row from a line that a commit wrote, in the order of the columns. Raises LineError."""
        values, places = self._values(line, keys), self._places
        try:
            values[places["commit_seq"]] = int(values[places["commit_seq"]])
            values[places["seal"]] = bytes.fromhex(values[places["seal"]])
            if self.has_own_key:
                values[places["key"]] = int(values[places["key"]])
        except (TypeError, ValueError):
            raise LineError("`commit`, `seal` or `row` is missing or malformed") from None
        return tuple(values)

    def whole_image(self, line: Line, keys: Keys) -> dict[str, Any]:
        """Return `whole` as column to value. Raises LineError."""
        return dict(zip(self.table.columns, self.whole(line, keys), strict=True))

    def holds(self, values: tuple[Any, ...]) -> bool:
        """Return whether a complete row is unchanged since its commit wrote it."""
        return is_sealed([values[place] for place in self._sealed], values[self._places["seal"]])

    def _values(self, line: Line, keys: Keys) -> list[Any]:
        """Return the value of each column from a line. Each step handles all columns: there may be a million lines."""
        values: list[Any] = list(map(line.get, self._fields))
        for place, read in self._readers:
            if values[place] is not None:
                values[place] = read(values[place])
        space = None
        for place in self._spaces:
            values[place] = space = keys.space(text_in(line, "owner_user_id"), text_in(line, "chat_id"))
        for place, column in self._references:
            if values[place] is not None:
                values[place] = _key_of(column, values[place], keys, space)
        for place, default in self._defaults:
            if values[place] is None:
                values[place] = default
        types = tuple(map(type, values))
        if types not in self._valid_types:
            values = [_checked(each, value) for each, value in zip(self.columns, values, strict=True)]
            if types == tuple(map(type, values)):
                self._valid_types.add(types)
        return values


def _expression(column: Column) -> str:
    name = f't."{column.name}"'
    if column.kind == "space":
        return f"(SELECT json_array(owner, chat) FROM main.spaces WHERE key = {name})"
    if column.kind == "reference":
        public = "session_id" if column.target == "sessions" else "id"
        return f'(SELECT "{public}" FROM main."{column.target}" WHERE key = {name})'
    return name


def _checked(column: Column, value: Any) -> Any:
    """Return a value of the column's type. SQLite would convert other types, and the seal would then be wrong."""
    if value is None or column.kind == "own":
        return value
    if isinstance(value, bool):
        value = int(value)
    if type(value) is not column.holds:
        raise LineError(f"{column.field} is {value!r:.40}, which is not {_TYPE_NAMES[column.holds]}")
    return value


def _key_of(column: Column, value: Any, keys: Keys, space: int | None) -> int:
    if type(value) is not str:  # the key itself, of a row without a name
        value = whole_number(value)
    key = keys.key(column.target, value, space=space)
    if key is None:
        raise LineError(f"{column.field}: {value!r} does not exist")
    return key


@dataclass(frozen=True)
class Shapes:
    """The shapes of all tables that have lines."""

    truth: Truth
    rows: Mapping[str, Shape]
    kept: Mapping[str, Shape]

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], Shape]:
        """Shapes by file and kind of line. Memories are in three files, so they are missing here."""
        return {(each.form.file, each.form.kind): each for each in (*self.rows.values(), *self.kept.values())}

    def of_line(self, file: str, line: Line) -> Shape | None:
        """Return the shape for a line in a file; None if the line's kind is unknown."""
        kind = str(line.get("kind", ""))
        if not kind and file in MEMORY_FILES:
            return self.rows["nodes"]
        return self.by_kind.get((file, kind))


def shapes_of(connection: apsw.Connection) -> Shapes:
    """Return the shapes that follow from the schema of a database."""
    truth = truth_of(connection)
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    for name, *column in connection.execute(sql("schema_column_kinds")):
        kinds.setdefault(name, []).append((column[0], column[1], column[2]))
    keys: dict[str, list[tuple[int, str]]] = {}
    for name, column_name, place in connection.execute(sql("schema_columns")):
        if place:
            keys.setdefault(name, []).append((place, column_name))
    # A row without a public name is referred to by its key.
    named = {table for table, columns in kinds.items() if "id" in {name for name, *_ in columns}}
    named |= {"spaces", "sessions"}
    targets = {(each.table, each.column): each.target for each in truth.references if each.target in named}

    def shape(table: Table, form: Form) -> Shape:
        columns = (_column(form, *each, target=targets.get((table.name, each[0]), "")) for each in kinds[table.name])
        return Shape(table, form, tuple(columns))

    def plain(name: str) -> Table:
        key = tuple(column for _, column in sorted(keys[name]))
        return Table(name=name, columns=tuple(each[0] for each in kinds[name]), key=key)

    rows = {name: shape(table, form_of(name)) for name, table in truth.tables.items()}
    return Shapes(truth=truth, rows=rows, kept={name: shape(plain(name), form) for name, form in KEPT.items()})


def _column(form: Form, name: str, declared: str, default: str, *, target: str) -> Column:
    kind: Kind = "plain"
    if name in _HIDDEN:
        kind = "own"
    elif target == "spaces":
        kind = "space"
    elif target:
        kind = "reference"
    elif default in ("'[]'", "'{}'"):
        kind = "json"
    elif declared == "BLOB":
        kind = "blob"
    elif declared == "REAL":
        kind = "real"
    elif declared == "INTEGER" and (name in _TIMES or name.endswith("_at")) and name not in _NEVER_TIMES:
        kind = "time"
    elif declared == "INTEGER":
        kind = "whole"
    field = form.names.get(name, f"{name}_" if name in RESERVED else name)
    value: Any = None
    if default:
        is_text = default.startswith("'")
        value = default[1:-1].replace("''", "'") if is_text else (float if kind == "real" else int)(default)
    holds = int if target else _COLUMN_TYPES[declared]
    return Column(name=name, field=field, kind=kind, holds=holds, target=target, default=value)
