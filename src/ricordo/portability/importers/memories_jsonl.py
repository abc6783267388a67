"""Memories kept as JSON lines: `memories.jsonl`, `archive.jsonl` and `people.jsonl`, version 1, alone or in a folder.

Source: the specification "Memory" of the agent ash, seed 004 of this project: sections "Memory Entry", "Person Entry",
"Storage Architecture" and "Scoping". Its embeddings are another model's and are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import ClosedReason, Fact
from ricordo.portability.records import (
    Known,
    Link,
    Parsed,
    Person,
    Reader,
    category_of,
    label,
    mine,
    moment,
    number_in,
    object_of,
    text_of,
    texts_of,
)
from ricordo.portability.sources import Lines, Material, json_lines

NAME = "memories-jsonl"

_FILES = ("people.jsonl", "memories.jsonl", "archive.jsonl")
_REASONS: Mapping[str, ClosedReason] = {
    "superseded": "superseded",
    "expired": "expired",
    "ephemeral_decay": "decayed",
    "forgotten": "forgotten",
}

Rows = list[tuple[str, dict[str, Any]]]


def fits(material: Material) -> bool:
    """Whether it is such a file, or a folder with one."""
    if material.is_folder:
        return any(PurePosixPath(name).name == "memories.jsonl" for name in material.names)
    row = material.first_row()
    return ("memory_type" in row and "content" in row) or {"name", "relation", "aliases", "owner_user_id"} <= row.keys()


def read(material: Material, reader: Reader) -> Parsed:
    """All files of a folder together, so that people are known by the ids that memories name."""
    rows, refused = _rows(material)
    whose = mine(reader, {row["owner_user_id"] for _, row in rows if isinstance(row.get("owner_user_id"), str)})
    reading = _Reading(reader=reader, whose=whose, refused=refused)
    for place, row in rows:
        if "content" not in row and "name" in row:
            reading.take(place, row, reading.person)
    for place, row in rows:
        if "content" in row or "name" not in row:
            reading.take(place, row, reading.memory)
    return reading.parsed()


def _rows(material: Material) -> tuple[Rows, list[str]]:
    """Each line by its place. Of an id in both files, the archive's line is the later one."""
    files = [("", material.lines)] if not material.is_folder else list(_files(material))
    rows = [(f"{name}line {number}", row) for name, lines in files for number, row in lines.rows]
    refused = [f"{name}{each}" for name, lines in files for each in lines.refused]
    newest = {(str(row.get("id")), "content" in row): place for place, row in rows if row.get("id") is not None}
    kept = [
        (place, row)
        for place, row in rows
        if row.get("id") is None or newest[str(row["id"]), "content" in row] == place
    ]
    return kept, refused


def _files(material: Material) -> Iterator[tuple[str, Lines]]:
    for wanted in _FILES:
        for name in material.names:
            if PurePosixPath(name).name == wanted:
                yield f"{name} ", json_lines(material.text(name).text)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers people, then memories."""

    reader: Reader
    whose: str | None
    refused: list[str]
    people: list[Person] = field(default_factory=list)
    facts: list[Known] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    successors: list[tuple[str, str, str]] = field(default_factory=list)

    def take(self, place: str, row: dict[str, Any], one: Any) -> None:
        try:
            if row.get("version", 1) != 1:
                raise InvalidError(f"version {row['version']!r} is unknown", hint="version 1 is read")
            owner = row.get("owner_user_id")
            if self.whose is not None and owner is not None and owner != self.whose:
                raise InvalidError(f"it is {owner}'s")
            one(place, row)
        except (InvalidError, ValueError, TypeError) as error:
            self.refused.append(f"{place}: {error}")

    def person(self, place: str, row: dict[str, Any]) -> None:
        name = text_of(row, "name")
        if name is None:
            raise InvalidError("no name")
        if row.get("id") is not None:
            self.names[str(row["id"])] = name
        relation = text_of(row, "relation")
        self.people.append(Person(name=name, aliases=texts_of(row.get("aliases")), relation=relation, place=place))

    def memory(self, place: str, row: dict[str, Any]) -> None:
        content = text_of(row, "content")
        if content is None:
            raise InvalidError("no content")
        in_chat = self._is_chats(row)
        known = Known(
            fact=self._fact(row, content),
            at=moment(row.get("observed_at") or row.get("created_at"), name="created_at"),
            closed=_closed(row),
            ended=moment(row.get("superseded_at"), name="superseded_at"),
            in_chat=in_chat,
            place=place,
        )
        self.facts.append(known)
        if row.get("id") is not None:
            self.ids[str(row["id"])] = known.fact.id or ""
        if row.get("superseded_by_id"):
            self.successors.append((str(row["superseded_by_id"]), known.fact.id or "", place))

    def _is_chats(self, row: dict[str, Any]) -> bool:
        """Whether a memory is the present chat's. Another chat's is nobody's here."""
        chat = label(row.get("chat_id"))
        if chat is None or row.get("owner_user_id") is not None:
            return False
        if chat != self.reader.chat:
            raise InvalidError(f"it is of the chat {chat}", hint=f"--chat {chat} brings it in")
        return True

    def _fact(self, row: dict[str, Any], content: str) -> Fact:
        about = [self.names[str(each)] for each in row.get("subject_person_ids") or () if str(each) in self.names]
        kept = {
            "source": label(row.get("source")),
            "source_id": label(row.get("id")),
            "message_id": label(row.get("source_message_id")),
            "extraction_confidence": row.get("extraction_confidence"),
        }
        return Fact(
            content=content,
            category=category_of(row.get("memory_type")),
            about=tuple(dict.fromkeys(about)),
            attributes={
                **object_of(row.get("metadata")),
                **{key: each for key, each in kept.items() if each is not None},
            },
            expires=moment(row.get("expires_at"), name="expires_at"),
            confidence=number_in(row.get("extraction_confidence"), 0.0, 1.0, otherwise=1.0),
            session=label(row.get("source_session_id")),
            origin="import",
            id=self.reader.id_of(NAME, row.get("id"), content),
        )

    def parsed(self) -> Parsed:
        links = [
            Link(source=self.ids[by], target=old, type="supersedes", place=place)
            for by, old, place in self.successors
            if by in self.ids
        ]
        return Parsed(
            format=NAME,
            people=tuple(self.people),
            facts=tuple(self.facts),
            links=tuple(links),
            refused=tuple(self.refused),
        )


def _closed(row: dict[str, Any]) -> ClosedReason | None:
    """Why a memory had been put away, if it had."""
    if row.get("superseded_at") or row.get("superseded_by_id"):
        return "superseded"
    if row.get("archived_at") or row.get("archive_reason"):
        return _REASONS.get(str(row.get("archive_reason")), "pruned")
    return None
