"""Memories of mem0: what `get_all` answers, its table `history`, or both in a folder.

Source: docs.mem0.ai, "Get memories" and "Memory history": a memory has `id`, `memory`, `hash`, `metadata`,
`created_at`, `updated_at` and `user_id`, `agent_id`, `run_id`; and mem0ai 2.2, mem0/memory/storage.py: `history`
has `memory_id`, `old_memory`, `new_memory`, `event` (ADD, UPDATE, DELETE), `created_at`, `updated_at`, `is_deleted`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import (
    Known,
    Link,
    Parsed,
    Reader,
    category_of,
    label,
    mine,
    moment,
    object_of,
    text_of,
    texts_of,
)
from ricordo.portability.sources import Material, one_document

NAME = "mem0"

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether it is an answer of mem0's, its history, or a folder with one."""
    if material.is_database:
        return {"memory_id", "old_memory", "new_memory", "event"} <= material.tables.get("history", frozenset())
    if material.is_folder:
        return any(_is_mem0(_listed(document)) for _, document in _documents(material))
    return _is_mem0(_listed(material.document)) or _is_mem0([row for _, row in material.lines.rows[:20]])


def _is_mem0(rows: list[Row]) -> bool:
    return any(
        (isinstance(row.get("memory"), str) and "id" in row) or {"memory_id", "new_memory", "event"} <= row.keys()
        for row in rows[:20]
    )


def _listed(document: object) -> list[Row]:
    """The memories of an answer, with or without the object around them."""
    if isinstance(document, dict):
        document = document.get("results", document.get("memories"))
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def _documents(material: Material) -> Iterator[tuple[str, Any]]:
    for name in material.names:
        if name.endswith(".json"):
            file = material.text(name)
            yield name, one_document(file.text, name=name)


def read(material: Material, reader: Reader) -> Parsed:
    """Memories as they are; what the history tells of them before is in the archive, each version after the other."""
    rows, refused = _rows(material)
    memories = [(place, row) for place, row in rows if "memory" in row]
    history = [(place, row) for place, row in rows if "memory" not in row]
    whose = mine(reader, {str(row["user_id"]) for _, row in memories if row.get("user_id")})
    reading = _Reading(reader=reader, whose=whose, refused=refused)
    for place, row in memories:
        reading.take(place, row, reading.memory)
    for place, row in sorted(history, key=lambda each: str(each[1].get("updated_at") or each[1].get("created_at"))):
        reading.take(place, row, reading.event)
    return reading.parsed()


def _rows(material: Material) -> tuple[list[tuple[str, Row]], list[str]]:
    if material.is_database:
        return [(f"history row {number}", row) for number, row in material.table("history")], []
    if material.is_folder:
        return [
            (f"{name} memory {number}", row)
            for name, document in _documents(material)
            for number, row in enumerate(_listed(document), start=1)
        ], []
    if listed := _listed(material.document):
        return [(f"memory {number}", row) for number, row in enumerate(listed, start=1)], []
    return [(f"line {number}", row) for number, row in material.lines.rows], list(material.lines.refused)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers memories, then what the history knows of their earlier words. `newest` is the latest version of each."""

    reader: Reader
    whose: str | None
    refused: list[str]
    facts: dict[str, Known] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    links: dict[tuple[str, str], Link] = field(default_factory=dict)

    def take(self, place: str, row: Row, one: Any) -> None:
        try:
            one(place, row)
        except (InvalidError, ValueError, TypeError) as error:
            self.refused.append(f"{place}: {error}")

    def memory(self, place: str, row: Row) -> None:
        user = label(row.get("user_id"))
        if self.whose is not None and user is not None and user != self.whose:
            raise InvalidError(f"it is {user}'s")
        content = text_of(row, "memory")
        if content is None:
            raise InvalidError("no memory")
        metadata = dict(object_of(row.get("metadata")))
        kept = {key: row[key] for key in ("agent_id", "run_id", "app_id", "actor_id") if row.get(key) is not None}
        fact = Fact(
            content=content,
            category=category_of(metadata.get("category")),
            tags=tuple(dict.fromkeys((*texts_of(row.get("categories")), *texts_of(metadata.get("tags"))))),
            attributes={**metadata, **kept, "source_id": label(row.get("id"))},
            expires=moment(row.get("expiration_date"), name="expiration_date"),
            origin="import",
            id=self.reader.id_of(NAME, row.get("id"), content),
        )
        at = moment(row.get("updated_at") or row.get("created_at"), name="created_at")
        self.facts[fact.id or ""] = Known(fact=fact, at=at, place=place)
        self.present[str(row.get("id"))] = fact.id or ""

    def event(self, place: str, row: Row) -> None:
        """One change of a memory: the version before it ends, the one after it begins."""
        memory, event = str(row.get("memory_id")), str(row.get("event") or "").upper()
        at = moment(row.get("updated_at") or row.get("created_at"), name="created_at")
        before = self.newest.get(memory)
        if event == "DELETE":
            if before is not None and before != self.present.get(memory):
                self.facts[before] = replace(self.facts[before], closed="forgotten", ended=at)
            return
        if event not in ("ADD", "UPDATE"):
            raise InvalidError(f"event {row.get('event')!r} is unknown", hint="ADD, UPDATE or DELETE is expected")
        content = text_of(row, "new_memory")
        if content is None:
            raise InvalidError("no new_memory")
        identity = self.reader.id_of(NAME, row.get("memory_id"), content)
        if identity not in self.facts:
            fact = Fact(content=content, attributes={"source_id": memory}, origin="import", id=identity)
            self.facts[identity] = Known(fact=fact, at=at, place=place)
        self.newest[memory] = identity
        if before is not None and before != identity and before != self.present.get(memory):
            self.facts[before] = replace(self.facts[before], closed="superseded", ended=at)
            self.links[identity, before] = Link(source=identity, target=before, type="supersedes", place=place)

    def parsed(self) -> Parsed:
        """Where both are told of, what the history still calls alive and the answer does not hold is gone."""
        for memory, identity in self.newest.items():
            known = self.facts[identity]
            if self.present and memory not in self.present and known.closed is None:
                self.facts[identity] = replace(known, closed="forgotten")
        return Parsed(
            format=NAME, facts=tuple(self.facts.values()), links=tuple(self.links.values()), refused=tuple(self.refused)
        )
