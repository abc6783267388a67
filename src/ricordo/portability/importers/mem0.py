"""Memories of mem0: the answer of `get_all`, its table `history`, or both in a folder.

Source: docs.mem0.ai, "Get memories" and "Memory history": a memory has `id`, `memory`, `hash`, `metadata`,
`created_at`, `updated_at` and `user_id`, `agent_id`, `run_id`; and mem0ai 2.2, mem0/memory/storage.py: `history`
has `memory_id`, `old_memory`, `new_memory`, `event` (ADD, UPDATE, DELETE), `created_at`, `updated_at`, `is_deleted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Fact
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    ImportedLink,
    Records,
    Row,
    category_of,
    label,
    object_of,
    parse_time,
    read_each,
    text_of,
    texts_of,
    wanted_owner,
)
from ricordo.portability.sources import Source, one_document

NAME = "mem0"


def fits(source: Source) -> bool:
    """Return whether it is an answer of mem0, its history, or a folder with one."""
    if source.is_database:
        return {"memory_id", "old_memory", "new_memory", "event"} <= source.tables.get("history", frozenset())
    if source.is_folder:
        return any(_is_mem0(_listed(document)) for _, document in _documents(source))
    return _is_mem0(_listed(source.document)) or _is_mem0([row for _, row in source.lines.rows[:20]])


def _is_mem0(rows: list[Row]) -> bool:
    return any(
        (isinstance(row.get("memory"), str) and "id" in row) or {"memory_id", "new_memory", "event"} <= row.keys()
        for row in rows[:20]
    )


def _listed(document: object) -> list[Row]:
    """Return the memories of an answer, with or without the enclosing object."""
    if isinstance(document, dict):
        document = document.get("results", document.get("memories"))
    return [row for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def _documents(source: Source) -> Iterator[tuple[str, Any]]:
    for name in source.names:
        if name.endswith(".json"):
            file = source.text(name)
            yield name, one_document(file.text, name=name)


def read(source: Source, destination: Destination) -> Records:
    """Read the memories, and their earlier versions from the history, which are closed."""
    rows, refused = _rows(source)
    memories = [(place, row) for place, row in rows if "memory" in row]
    history = [(place, row) for place, row in rows if "memory" not in row]
    owner = wanted_owner(destination, {str(row["user_id"]) for _, row in memories if row.get("user_id")})
    reading = _Reading(destination=destination, owner=owner, refused=refused)
    history.sort(key=lambda each: str(each[1].get("updated_at") or each[1].get("created_at")))
    read_each(memories, reading.memory, refused)
    read_each(history, reading.event, refused)
    return reading.records()


def _rows(source: Source) -> tuple[list[tuple[str, Row]], list[str]]:
    if source.is_database:
        return [(f"history row {number}", row) for number, row in source.table("history")], []
    if source.is_folder:
        return [
            (f"{name} memory {number}", row)
            for name, document in _documents(source)
            for number, row in enumerate(_listed(document), start=1)
        ], []
    if listed := _listed(source.document):
        return [(f"memory {number}", row) for number, row in enumerate(listed, start=1)], []
    return [(f"line {number}", row) for number, row in source.lines.rows], list(source.lines.refused)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers memories, then their earlier versions from the history. `newest` is the latest version of each."""

    destination: Destination
    owner: str | None
    refused: list[str]
    facts: dict[str, ImportedFact] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)
    links: dict[tuple[str, str], ImportedLink] = field(default_factory=dict)

    def memory(self, place: str, row: Row) -> None:
        user = label(row.get("user_id"))
        if self.owner is not None and user is not None and user != self.owner:
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
            expires=parse_time(row.get("expiration_date"), name="expiration_date"),
            origin="import",
            id=self.destination.id_of(NAME, row.get("id"), content),
        )
        at = parse_time(row.get("updated_at") or row.get("created_at"), name="created_at")
        self.facts[fact.id or ""] = ImportedFact(fact=fact, at=at, place=place)
        self.present[str(row.get("id"))] = fact.id or ""

    def event(self, place: str, row: Row) -> None:
        """Read one change of a memory: it closes the previous version and adds the next."""
        memory, event = str(row.get("memory_id")), str(row.get("event") or "").upper()
        at = parse_time(row.get("updated_at") or row.get("created_at"), name="created_at")
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
        identity = self.destination.id_of(NAME, row.get("memory_id"), content)
        if identity not in self.facts:
            fact = Fact(content=content, attributes={"source_id": memory}, origin="import", id=identity)
            self.facts[identity] = ImportedFact(fact=fact, at=at, place=place)
        self.newest[memory] = identity
        if before is not None and before != identity and before != self.present.get(memory):
            self.facts[before] = replace(self.facts[before], closed="superseded", ended=at)
            self.links[identity, before] = ImportedLink(source=identity, target=before, type="supersedes", place=place)

    def records(self) -> Records:
        """Return everything. If both are given, a memory that is only in the history was deleted."""
        for memory, identity in self.newest.items():
            known = self.facts[identity]
            if self.present and memory not in self.present and known.closed is None:
                self.facts[identity] = replace(known, closed="forgotten")
        return Records(
            format=NAME, facts=tuple(self.facts.values()), links=tuple(self.links.values()), refused=tuple(self.refused)
        )
