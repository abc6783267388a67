"""Rows become lines and lines rows, by what the schema says of a table and by the names of `layout`.

A line holds the public ids of what it refers to. Beside what it says it carries `row` (the row's own key), `commit`
(who wrote it) and `seal` (that nobody else changed it since); what is no truth carries a `sum` instead.
Values that are absent or the default are left out.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Literal, Protocol

import apsw

from ricordo.clock import from_ms, to_ms
from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import is_sealed
from ricordo.storage.database.truth_tables import Table, Truth, truth_of
from ricordo.storage.folder.layout import KEPT, RESERVED, Form, form_of

Line = dict[str, Any]
"""A parsed line: field to value."""

Kind = Literal["plain", "real", "whole", "time", "json", "blob", "space", "reference", "own"]

_TIMES = frozenset(("event_time", "valid_from", "valid_until", "first_seen", "last_updated", "at", "expires_at"))
_NEVER_TIMES = frozenset(("first_at", "last_at"))
_HIDDEN = {"key": "row", "commit_seq": "commit", "seal": "seal"}
_SUM_BYTES = 8
_SUM, _SUM_END = b',"sum":"', b'"}'
_SUM_AT = -(len(_SUM) + 2 * _SUM_BYTES + len(_SUM_END))
_LARGEST = 1 << 63
_WORDS: Mapping[type, str] = {str: "text", int: "whole number", float: "number", bytes: "base64"}
_HOLDS: Mapping[str, type] = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_SAYS: Mapping[str, tuple[type, ...]] = {
    "commit": (int,),
    "row": (str, list),
    "kind": (str,),
    "id": (str,),
    "seal": (str,),
    "sum": (str,),
    "owner_user_id": (str,),
    "chat_id": (str,),
    "session_id": (str,),
}
"""What a line says of itself, and the sort of value that is said with."""
_sound: set[tuple[type, ...]] = set()
"""The sorts that were found right so far, by line: there are few."""

encode: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Unfit(ValueError):
    """A line that cannot be a row; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, the field it is written as, and how its values are."""

    name: str
    field: str
    kind: Kind
    holds: type = str
    target: str = ""
    default: str = ""


class Keys(Protocol):
    """Knows the keys of rows by their public names."""

    def space(self, owner: str, chat: str) -> int: ...

    def key(self, target: str, name: Any, *, space: int | None) -> int | None: ...


@dataclass(frozen=True)
class Shape:
    """A table as lines: what is selected of a row, and how it is written and read."""

    table: Table
    form: Form
    columns: tuple[Column, ...]

    @cached_property
    def select(self) -> str:
        """Everything of a row, what it refers to by public name, for use with a WHERE that calls it `t`. Names come
        from the schema, so the statement is put together.
        """
        wanted = [*(_expression(each) for each in self.columns), *(f't."{name}"' for name in self.table.key)]
        return f'SELECT {", ".join(wanted)} FROM main."{self.table.name}" AS t'

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key of a row of `select`."""
        return row[len(self.columns) :]

    def line(self, row: tuple[Any, ...], extra: Mapping[str, Any]) -> Line:
        """A row of `select` as a line."""
        found: Line = {"kind": self.form.kind} if self.form.kind else {}
        for column, value in zip(self.columns, row, strict=False):
            if value is None or (column.default and value == _default(column)):
                continue
            if column.kind == "space":
                owner, chat = json.loads(value)
                found["owner_user_id"], found["chat_id"] = owner or None, chat or None
            elif column.kind != "own":
                found[column.field] = _written(column, value)
        return {**found, **extra}

    def image(self, line: Line, keys: Keys) -> dict[str, Any]:
        """What a line says, column to value; without the row's own key, commit and seal.

        Raises:
            Unfit: it says nothing that could be a row.
        """
        values = self._values(line, keys)
        return {each.name: value for each, value in zip(self.columns, values, strict=True) if each.kind != "own"}

    def whole(self, line: Line, keys: Keys) -> tuple[Any, ...]:
        """The values of a row from a line that a commit wrote, in the order of the columns.

        Raises:
            Unfit: it says nothing that could be a row.
        """
        values = self._values(line, keys)
        try:
            values[self._commit], values[self._seal] = int(values[self._commit]), bytes.fromhex(values[self._seal])
            if self._key is not None:
                values[self._key] = int(values[self._key])
        except (TypeError, ValueError):
            raise Unfit("its commit, seal or row is missing or no such thing") from None
        return tuple(values)

    def holds(self, values: tuple[Any, ...]) -> bool:
        """Whether a whole row is as the commit wrote it that its seal is of."""
        return is_sealed(self._sealed(values), values[self._seal])

    def _values(self, line: Line, keys: Keys) -> list[Any]:
        """What a line says of each column. A million lines pass here, so what is common is done for all columns at
        once.
        """
        values: list[Any] = list(map(line.get, self._fields))
        for place, read in self._readers:
            if values[place] is not None:
                values[place] = read(values[place])
        space = None
        for place in self._spaces:
            values[place] = space = keys.space(_text(line, "owner_user_id"), _text(line, "chat_id"))
        for place, column in self._references:
            if values[place] is not None:
                values[place] = _key_of(column, values[place], keys, space)
        for place, default in self._defaults:
            if values[place] is None:
                values[place] = default
        kinds = tuple(map(type, values))
        if kinds not in self._fitting:
            values = [_bare(each, value) for each, value in zip(self.columns, values, strict=True)]
            if kinds == tuple(map(type, values)):
                self._fitting.add(kinds)
        return values

    @cached_property
    def _fitting(self) -> set[tuple[type, ...]]:
        """Of which sorts the values of rows were that could be."""
        return set()

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        """Where a line says what."""
        return tuple(_HIDDEN[each.name] if each.kind == "own" else each.field for each in self.columns)

    @cached_property
    def _spaces(self) -> tuple[int, ...]:
        return tuple(place for place, each in enumerate(self.columns) if each.kind == "space")

    @cached_property
    def _references(self) -> tuple[tuple[int, Column], ...]:
        return tuple((place, each) for place, each in enumerate(self.columns) if each.kind == "reference")

    @cached_property
    def _readers(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        """Of columns whose values are written otherwise than they are kept."""
        return tuple((place, _READERS[each.kind]) for place, each in enumerate(self.columns) if each.kind in _READERS)

    @cached_property
    def _defaults(self) -> tuple[tuple[int, Any], ...]:
        return tuple((place, _default(each)) for place, each in enumerate(self.columns) if each.default)

    @cached_property
    def _sealed(self) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        sealed = self.table.sealed
        return itemgetter(*(place for place, each in enumerate(self.columns) if each.name in sealed))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {each.name: place for place, each in enumerate(self.columns)}

    @cached_property
    def _commit(self) -> int:
        return self._places["commit_seq"]

    @cached_property
    def _seal(self) -> int:
        return self._places["seal"]

    @cached_property
    def _key(self) -> int | None:
        return self._places["key"] if self.table.key == ("key",) else None


def _text(line: Line, name: str) -> str:
    value = line.get(name)
    if value is not None and not isinstance(value, str):
        raise Unfit(f"{name} is no text")
    return value or ""


def _expression(column: Column) -> str:
    name = f't."{column.name}"'
    if column.kind == "space":
        return f"(SELECT json_array(owner, chat) FROM main.spaces WHERE key = {name})"
    if column.kind == "reference":
        public = "session_id" if column.target == "sessions" else "id"
        return f'(SELECT "{public}" FROM main."{column.target}" WHERE key = {name})'
    return name


def _written(column: Column, value: Any) -> Any:
    match column.kind:
        case "time":
            return iso(value)
        case "json":
            parsed = json.loads(value)
            return parsed if encode(parsed) == value else value
        case "blob":
            return b64encode(value).decode()
    return value


def _bare(column: Column, value: Any) -> Any:
    """A value of the sort that a column holds: SQLite would make it of another one, and then its seal be wrong."""
    if value is None or column.kind == "own":
        return value
    if isinstance(value, bool):
        value = int(value)
    if type(value) is not column.holds:
        raise Unfit(f"{column.field} is {value!r:.40}, which is no {_WORDS[column.holds]}")
    return value


def iso(ms: int) -> str:
    """Unix milliseconds as ISO 8601 text in UTC."""
    return from_ms(ms).isoformat(timespec="milliseconds")


def milliseconds(text: Any) -> int:
    """Unix milliseconds of ISO 8601 text; without a zone it is UTC. Raises Unfit."""
    try:
        return _milliseconds(text)
    except (TypeError, ValueError, OverflowError):
        raise Unfit(f"{text!r} is no time") from None


@lru_cache(maxsize=4_096)
def _milliseconds(text: str) -> int:
    """Cached: a line tells the same moment several times, and so do its neighbours."""
    at = datetime.fromisoformat(text)
    return to_ms(at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _key_of(column: Column, value: Any, keys: Keys, space: int | None) -> int:
    if type(value) is not str:  # the key itself, of a row without a name
        value = _whole(value)
    key = keys.key(column.target, value, space=space)
    if key is None:
        raise Unfit(f"{column.field}: {value!r} is not there")
    return key


def _whole(value: Any) -> int:
    """A whole number that SQLite can hold."""
    if not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        raise Unfit(f"{value!r:.40} is no such number")
    return int(value)


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unfit(f"{value!r} is no number")
    try:
        return float(value)
    except OverflowError:
        raise Unfit(f"{value!r:.40} is no such number") from None


def _json(value: Any) -> str:
    return value if isinstance(value, str) else encode(value)


def _decoded(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise Unfit("not base64") from None


_READERS: Mapping[Kind, Callable[[Any], Any]] = {
    "time": milliseconds,
    "json": _json,
    "blob": _decoded,
    "real": _number,
    "whole": _whole,
}


def _default(column: Column) -> Any:
    """What stands in a column of which a line says nothing."""
    text = column.default
    if not text:
        return None
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return float(text) if column.kind == "real" else int(text)


@dataclass(frozen=True)
class Shapes:
    """All tables that have lines, as the schema tells of them."""

    truth: Truth
    rows: Mapping[str, Shape]
    kept: Mapping[str, Shape]

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], Shape]:
        """Shapes by file and kind of line; the rows of a memory are in three files."""
        return {(each.form.file, each.form.kind): each for each in (*self.rows.values(), *self.kept.values())}


def shapes_of(connection: apsw.Connection) -> Shapes:
    """What the schema of an index says."""
    truth = truth_of(connection)
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    for table, name, declared, default in connection.execute(sql("schema_column_kinds")):
        kinds.setdefault(table, []).append((name, declared, default))
    # A row without a name of its own is referred to by its key, which is kept.
    named = {table for table, columns in kinds.items() if "id" in {name for name, *_ in columns}}
    named |= {"spaces", "sessions"}
    targets = {(each.table, each.column): each.target for each in truth.references if each.target in named}

    def shape(table: Table, form: Form) -> Shape:
        columns = tuple(
            _column(form, *each, target=targets.get((table.name, each[0]), "")) for each in kinds[table.name]
        )
        return Shape(table=table, form=form, columns=columns)

    rows = {name: shape(table, form_of(name)) for name, table in truth.tables.items()}
    kept = {
        name: shape(_plain_table(connection, name, tuple(each[0] for each in kinds[name])), form)
        for name, form in KEPT.items()
    }
    return Shapes(truth=truth, rows=rows, kept=kept)


def _plain_table(connection: apsw.Connection, name: str, columns: tuple[str, ...]) -> Table:
    """A table outside the truth, in the same words."""
    key = [
        (place, column) for table, column, place in connection.execute(sql("schema_columns")) if table == name and place
    ]
    return Table(name=name, columns=columns, key=tuple(column for _, column in sorted(key)), unique=())


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
    holds = int if target else _HOLDS[declared]
    return Column(name=name, field=field, kind=kind, holds=holds, target=target, default=default)


def data(line: Mapping[str, Any]) -> bytes:
    """A line as it stands in a file, its newline included."""
    return encode(line).encode() + b"\n"


def summed(line: Mapping[str, Any]) -> bytes:
    """As `data`, for a line without a seal: with a sum over it, so that damage to it is noticed."""
    plain = encode(line).encode()[:-1]
    return b"".join((plain, _SUM, _sum_of(plain), _SUM_END, b"\n"))


def _sum_of(plain: bytes) -> bytes:
    return blake2b(plain, digest_size=_SUM_BYTES).hexdigest().encode()


def _is_altered(raw: bytes) -> bool:
    """Whether a line ends in a sum that is not its own. Whoever edits one takes the sum out."""
    return raw[_SUM_AT : _SUM_AT + len(_SUM)] == _SUM and (
        raw[_SUM_AT + len(_SUM) :] != _sum_of(raw[:_SUM_AT]) + _SUM_END
    )


def quick_reader() -> Callable[[bytes], Any]:
    """Reads JSON in less than half the time that `json` takes, and takes as long to import as a thousand lines do."""
    from pydantic_core import from_json

    return partial(from_json, cache_strings="keys")


def parsed(raw: bytes, read: Callable[[bytes], Any] = json.loads) -> Line:
    """What stands in a line. Raises Unfit where it is no JSON object, or is not as its sum says."""
    found = decoded(raw, read)
    if _is_altered(raw):
        raise Unfit("altered since it was written")
    _check_said(raw, found)
    return found


def decoded(raw: bytes, read: Callable[[bytes], Any] = json.loads) -> Line:
    """As `parsed`, of a line that it was content with before. Raises Unfit where it is no JSON object."""
    try:
        found = read(raw)
    except (ValueError, RecursionError):
        # Of what a strict reader refuses some is JSON to others: half of a surrogate pair, say.
        if read is json.loads:
            raise Unfit("not JSON") from None
        return decoded(raw)
    if not isinstance(found, dict):
        raise Unfit("no JSON object")
    return found


def _check_said(raw: bytes, line: Line) -> None:
    """What can be no line of anything. Raises Unfit."""
    said = tuple(map(type, map(line.get, _SAYS)))
    if said not in _sound:
        _check_sorts(line)
        _sound.add(said)
    if not 0 <= (line.get("commit") or 0) < _LARGEST:
        raise Unfit(f"{line['commit']} is no commit")
    if (b"\\u" in raw or b"\xed" in raw) and _SURROGATE.search(raw):
        try:
            encode(line).encode()
        except UnicodeEncodeError:
            raise Unfit("half of a surrogate pair, which is no text") from None


def _check_sorts(line: Line) -> None:
    for name, kinds in _SAYS.items():
        value = line.get(name)
        if value is not None and type(value) not in kinds:
            raise Unfit(f"{name} is {value!r:.40}")


def content_hash(content: str, speaker: str | None) -> str:
    """What a vector was made from."""
    return blake2b(f"{speaker or ''}\0{content}".encode(), digest_size=12).hexdigest()


def line_mark(line: Line) -> str:
    """By which a commit says that it has adopted a line."""
    return content_hash(json.dumps(line, sort_keys=True, ensure_ascii=True), None)
