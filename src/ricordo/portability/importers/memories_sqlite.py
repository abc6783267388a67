"""Memories in a SQLite table `memories`, of two makes: with a `kind` of memory, or with a reinforcement `score`.

Source: "ADR 005: Simplified Memory System" (`memories` by kind, and `entities`) and the "Memory Architecture" of koshi
(`memories`, `memories_archive`), seeds 002 and 003 of this project. How often two were recalled together
(`memory_links`) is how they were found and not what they say: that grows anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Category, ClosedReason, EdgeType, Fact, Message
from ricordo.portability.records import (
    Known,
    Link,
    Parsed,
    Person,
    Reader,
    Said,
    entity_type,
    label,
    moment,
    number_in,
    object_of,
    text_of,
    texts_of,
)
from ricordo.portability.sources import Material

NAME = "memories-sqlite"

_KINDS: Mapping[str, Category | None] = {
    "fact": None,
    "preference": "preference",
    "reflection": "reflection",
    "summary": "summary",
}
_MOST_SCORE = 10.0

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether it is a database with such a table."""
    columns = material.tables.get("memories", frozenset())
    return {"id", "content"} <= columns and bool(columns & {"kind", "score"})


def read(material: Material, reader: Reader) -> Parsed:
    """Live and archived memories, the entities they name, and what they rest on.

    Raises:
        InvalidError: there is no such table.
    """
    if not fits(material):
        raise InvalidError(f"{material.path} has no table `memories` with a kind or a score")
    reading = _Reading(reader=reader)
    for number, row in material.table("entities"):
        reading.take(f"entities row {number}", row, reading.entity)
    by_kind = "kind" in material.tables["memories"]
    for table, is_archive in (("memories", False), ("memories_archive", True)):
        for number, row in material.table(table):
            one = reading.by_kind if by_kind else reading.by_score
            reading.take(f"{table} row {number}", {**row, "archived": is_archive}, one)
    for number, row in material.table("memory_entities"):
        reading.take(f"memory_entities row {number}", row, reading.named)
    return reading.parsed()


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers entities, then memories, then what ties them together."""

    reader: Reader
    refused: list[str] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)
    messages: dict[str, Said] = field(default_factory=dict)
    facts: dict[str, Known] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    pairs: list[tuple[str, str, EdgeType, str]] = field(default_factory=list)

    def take(self, place: str, row: Row, one: Any) -> None:
        try:
            one(place, row)
        except (InvalidError, ValueError, TypeError) as error:
            self.refused.append(f"{place}: {error}")

    def entity(self, place: str, row: Row) -> None:
        name = text_of(row, "canonical_name", "name")
        if name is None:
            raise InvalidError("no name")
        self.names[str(row.get("id"))] = name
        aliases = texts_of(row.get("aliases"))
        self.people.append(Person(name=name, type=entity_type(row.get("type")), aliases=aliases, place=place))

    def by_kind(self, place: str, row: Row) -> None:
        content, kind = _content(row), str(row.get("kind") or "fact")
        identity = self.ids[str(row.get("id"))] = self.reader.id_of(NAME, row.get("id"), content)
        at = moment(row.get("event_time") or row.get("created_at"), name="event_time")
        attributes = {**object_of(row.get("attributes")), "source_id": label(row.get("id"))}
        self._rests_on(row, attributes, identity, place)
        if kind == "episode":
            self._said(place, row, content, identity, at, attributes)
            return
        if kind not in _KINDS:
            raise InvalidError(f"kind {kind!r} is unknown")
        ended = moment(row.get("valid_until"), name="valid_until")
        fact = Fact(
            content=content,
            category=_KINDS[kind],
            tags=texts_of(row.get("tags")),
            attributes=attributes,
            about=self._about(row),
            confidence=number_in(row.get("confidence"), 0.0, 1.0, otherwise=1.0),
            origin="import",
            id=identity,
        )
        self.facts[identity] = Known(
            fact=fact,
            at=at,
            ended=ended,
            closed=_closed(row, is_over=ended is not None),
            place=place,
            decay_rate=number_in(row.get("decay_rate"), 0.0, 10.0, otherwise=0.1),
        )

    def _rests_on(self, row: Row, attributes: Mapping[str, Any], identity: str, place: str) -> None:
        for each in texts_of(row.get("source_ids")):
            self.pairs.append((identity, each, "derived_from", place))
        if label(attributes.get("supersedes")) is not None:
            self.pairs.append((identity, str(attributes["supersedes"]), "supersedes", place))

    def _said(
        self,
        place: str,
        row: Row,
        content: str,
        identity: str,
        at: datetime | str | None,
        attributes: Mapping[str, Any],
    ) -> None:
        role = str(attributes.get("role") or "user")
        self.messages[identity] = Said(
            message=Message(
                text=content,
                role="assistant" if role in ("assistant", "agent") else "user",
                at=at,
                id=identity,
                session=label(attributes.get("session_id")),
                origin="import",
                attributes=attributes,
            ),
            place=place,
        )

    def _about(self, row: Row) -> tuple[str, ...]:
        wanted = texts_of(row.get("entity_ids"))
        return tuple(dict.fromkeys(self.names[each] for each in wanted if each in self.names))

    def named(self, place: str, row: Row) -> None:
        """A row of the junction table: it may know more than the memory's own list."""
        identity, name = self.ids.get(str(row.get("memory_id"))), self.names.get(str(row.get("entity_id")))
        known = None if identity is None else self.facts.get(identity)
        if known is None or name is None or name in known.fact.about:
            return
        fact = replace(known.fact, about=(*known.fact.about, name))
        self.facts[known.fact.id or ""] = replace(known, fact=fact)

    def by_score(self, place: str, row: Row) -> None:
        content = _content(row)
        identity = self.ids[str(row.get("id"))] = self.reader.id_of(NAME, row.get("id"), content)
        kept = {key: row[key] for key in ("narrative_id", "task_id", "source") if row.get(key) is not None}
        fact = Fact(
            content=content,
            tags=texts_of(row.get("tags")),
            attributes={**kept, "source_id": label(row.get("id"))},
            session=label(row.get("session_id")),
            origin="import",
            id=identity,
        )
        self.facts[identity] = Known(
            fact=fact,
            at=moment(row.get("created_at"), name="created_at"),
            place=place,
            closed=_closed(row),
            score=number_in(row.get("score"), -_MOST_SCORE, _MOST_SCORE, otherwise=0.0),
        )

    def parsed(self) -> Parsed:
        """All of it. What another memory supersedes had merely been given little confidence: it is closed."""
        for _, target, kind, _ in self.pairs:
            old = self.facts.get(self.ids.get(target, "")) if kind == "supersedes" else None
            if old is not None and old.closed is None:
                self.facts[old.fact.id or ""] = replace(old, closed="superseded")
        links = [
            Link(source=source, target=self.ids[target], type=kind, place=place)
            for source, target, kind, place in self.pairs
            if target in self.ids
        ]
        return Parsed(
            format=NAME,
            people=tuple(self.people),
            messages=tuple(self.messages.values()),
            facts=tuple(self.facts.values()),
            links=tuple(links),
            refused=tuple(self.refused),
        )


def _content(row: Row) -> str:
    content = text_of(row, "content")
    if content is None:
        raise InvalidError("no content")
    return content


def _closed(row: Row, *, is_over: bool = False) -> ClosedReason | None:
    if is_over:
        return "superseded" if object_of(row.get("attributes")).get("superseded_by") else "expired"
    return "pruned" if row["archived"] else None
