"""Items of a LangGraph store: its SQLite table `store`, or rows of it as JSON.

Source: github.com/langchain-ai/langgraph, libs/checkpoint-sqlite (`langgraph/store/sqlite/base.py`) and
libs/checkpoint (`langgraph/store/base`, `Item`): a row has `prefix` (the namespace, joined by dots) or `namespace` (a
list), `key`, `value` (JSON), `created_at`, `updated_at` and `expires_at`. The value has any form: LangMem keeps a
memory as `{"kind", "content"}`, where content is a text or an object with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    Records,
    Row,
    category_of,
    object_of,
    parse_time,
    read_each,
    text_of,
)
from ricordo.portability.sources import Source

NAME = "langgraph"

_TEXTS = ("content", "memory", "text", "fact", "data", "value", "summary", "description")
_COLUMNS = frozenset(("prefix", "key", "value"))


def fits(source: Source) -> bool:
    """Return whether it is such a database, or JSON rows of one."""
    if source.is_database:
        return source.tables.get("store", frozenset()) >= _COLUMNS
    rows = _listed(source.document)[:20] or [row for _, row in source.lines.rows[:20]]
    return any("value" in row and "key" in row and ("namespace" in row or "prefix" in row) for row in rows)


def _listed(document: object) -> list[Row]:
    if isinstance(document, dict):
        document = document.get("items")
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def read(source: Source, destination: Destination) -> Records:
    """Read each item as a fact, tagged with its namespace."""
    facts: dict[str, ImportedFact] = {}
    rows, refused = _rows(source)

    def read_item(place: str, row: Row) -> None:
        item = _item(row, place, destination)
        facts[item.fact.id or ""] = item

    read_each(rows, read_item, refused)
    return Records(format=NAME, facts=tuple(facts.values()), refused=tuple(refused))


def _rows(source: Source) -> tuple[list[tuple[str, Row]], list[str]]:
    if source.is_database:
        return [(f"store row {number}", row) for number, row in source.table("store")], []
    if listed := _listed(source.document):
        return [(f"item {number}", row) for number, row in enumerate(listed, start=1)], []
    return [(f"line {number}", row) for number, row in source.lines.rows], list(source.lines.refused)


def _item(row: Row, place: str, destination: Destination) -> ImportedFact:
    namespace = _namespace(row)
    value = _json_value(row.get("value"))
    content = value if isinstance(value, str) else _text(object_of(value))
    if content is None or not content.strip():
        raise InvalidError("its value holds no text", hint=f"looked for {', '.join(_TEXTS)}")
    fields = object_of(value)
    rest = {key: each for key, each in fields.items() if each != content and key not in ("category", "type")}
    fact = Fact(
        content=content,
        category=category_of(fields.get("category") or fields.get("type")),
        tags=(namespace,) if namespace else (),
        attributes={**rest, "source_id": str(row.get("key")), "namespace": namespace},
        expires=parse_time(row.get("expires_at"), name="expires_at"),
        origin="import",
        id=destination.id_of(NAME, namespace, row.get("key"), content),
    )
    return ImportedFact(
        fact=fact, at=parse_time(row.get("updated_at") or row.get("created_at"), name="created_at"), place=place
    )


def _namespace(row: Row) -> str:
    given = row.get("namespace", row.get("prefix"))
    return ".".join(map(str, given)) if isinstance(given, list | tuple) else str(given or "")


def _text(value: Row) -> str | None:
    """Return a value's text: a text field, that of an inner object, or all of it if it is flat."""
    found = text_of(value, *_TEXTS)
    if found is not None:
        return found
    for name in _TEXTS:
        if isinstance(value.get(name), dict):
            return _text(value[name])
    is_flat = value and all(isinstance(each, str | int | float | bool) for each in value.values())
    return "; ".join(f"{key}: {each}" for key, each in value.items()) if is_flat else _whole(value)


def _whole(value: Row) -> str | None:
    """Return it as JSON, if it contains any words."""
    text = json.dumps(value, ensure_ascii=False)
    return text if _holds_words(value) else None


def _holds_words(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, Mapping):
        return any(_holds_words(each) for each in value.values())
    return isinstance(value, list) and any(_holds_words(each) for each in value)


def _json_value(value: object) -> object:
    """Decode a value: databases keep it as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
