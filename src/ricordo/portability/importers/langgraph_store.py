"""Items of a LangGraph store: its SQLite table `store`, or rows of it as JSON.

Source: github.com/langchain-ai/langgraph, libs/checkpoint-sqlite (`langgraph/store/sqlite/base.py`) and
libs/checkpoint (`langgraph/store/base`, `Item`): a row has `prefix` (the namespace, joined by dots) or `namespace` (a
list), `key`, `value` (JSON), `created_at`, `updated_at` and `expires_at`. The value is anybody's: LangMem keeps a
memory as `{"kind", "content"}`, where content is a text or an object with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import Known, Parsed, Reader, category_of, moment, object_of, text_of
from ricordo.portability.sources import Material

NAME = "langgraph"

_TEXTS = ("content", "memory", "text", "fact", "data", "value", "summary", "description")
_COLUMNS = frozenset(("prefix", "key", "value"))

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether it is such a database, or JSON rows of one."""
    if material.is_database:
        return material.tables.get("store", frozenset()) >= _COLUMNS
    rows = _listed(material.document)[:20] or [row for _, row in material.lines.rows[:20]]
    return any("value" in row and "key" in row and ("namespace" in row or "prefix" in row) for row in rows)


def _listed(document: object) -> list[Row]:
    if isinstance(document, dict):
        document = document.get("items")
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def read(material: Material, reader: Reader) -> Parsed:
    """Each item becomes a fact; its namespace is its tag."""
    facts: dict[str, Known] = {}
    rows, refused = _rows(material)
    for place, row in rows:
        try:
            known = _item(row, place, reader)
            facts[known.fact.id or ""] = known
        except (InvalidError, ValueError, TypeError) as error:
            refused.append(f"{place}: {error}")
    return Parsed(format=NAME, facts=tuple(facts.values()), refused=tuple(refused))


def _rows(material: Material) -> tuple[list[tuple[str, Row]], list[str]]:
    if material.is_database:
        return [(f"store row {number}", row) for number, row in material.table("store")], []
    if listed := _listed(material.document):
        return [(f"item {number}", row) for number, row in enumerate(listed, start=1)], []
    return [(f"line {number}", row) for number, row in material.lines.rows], list(material.lines.refused)


def _item(row: Row, place: str, reader: Reader) -> Known:
    namespace = _namespace(row)
    value = row.get("value")
    value = _parsed(value)
    content = value if isinstance(value, str) else _text(object_of(value))
    if content is None or not content.strip():
        raise InvalidError("its value holds no text", hint=f"looked for {', '.join(_TEXTS)}")
    told = object_of(value)
    rest = {key: each for key, each in told.items() if each != content and key not in ("category", "type")}
    fact = Fact(
        content=content,
        category=category_of(told.get("category") or told.get("type")),
        tags=(namespace,) if namespace else (),
        attributes={**rest, "source_id": str(row.get("key")), "namespace": namespace},
        expires=moment(row.get("expires_at"), name="expires_at"),
        origin="import",
        id=reader.id_of(NAME, namespace, row.get("key"), content),
    )
    return Known(fact=fact, at=moment(row.get("updated_at") or row.get("created_at"), name="created_at"), place=place)


def _namespace(row: Row) -> str:
    given = row.get("namespace", row.get("prefix"))
    return ".".join(map(str, given)) if isinstance(given, list | tuple) else str(given or "")


def _text(value: Row) -> str | None:
    """What a value says: its text, that of the object in it, or the whole of it where it is small and flat."""
    found = text_of(value, *_TEXTS)
    if found is not None:
        return found
    for name in _TEXTS:
        if isinstance(value.get(name), dict):
            return _text(value[name])
    is_flat = value and all(isinstance(each, str | int | float | bool) for each in value.values())
    return "; ".join(f"{key}: {each}" for key, each in value.items()) if is_flat else _whole(value)


def _whole(value: Row) -> str | None:
    """As JSON, where any of it is in words."""
    text = json.dumps(value, ensure_ascii=False)
    return text if _holds_words(value) else None


def _holds_words(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, Mapping):
        return any(_holds_words(each) for each in value.values())
    return isinstance(value, list) and any(_holds_words(each) for each in value)


def _parsed(value: object) -> object:
    """A database holds it as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
