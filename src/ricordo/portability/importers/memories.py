"""Memories that other programs keep in their own files: JSON lines, or a SQLite table `memories`.

JSON lines: `memories.jsonl`, `archive.jsonl` and `people.jsonl`, version 1, alone or in a folder. Their embeddings come
from another model, so texts are embedded again. Source: the specification "Memory" of the agent ash, seed 004 of this
project: sections "Memory Entry", "Person Entry", "Storage Architecture" and "Scoping".

SQLite: `memories` with a `kind` of memory, or with a reinforcement `score`. `memory_links` (how often two memories were
recalled together) is not read, since it holds no content. Source: "ADR 005: Simplified Memory
System" (`memories` by kind, and `entities`) and the "Memory Architecture" of koshi (`memories`, `memories_archive`),
seeds 002 and 003 of this project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Category, ClosedReason, EdgeType, Message
from ricordo.portability.records import (
    Destination,
    ImportedLink,
    ImportedPerson,
    Records,
    author,
    category_of,
    check_owner,
    clamped,
    entity_type,
    label,
    object_of,
    parse_time,
    picked,
    required_text,
    text_of,
    texts_of,
    vocabulary,
    wanted_owner,
)
from ricordo.portability.sources import JsonLines, Placed, Row, Source, json_lines

JSONL = "memories-jsonl"
SQLITE = "memories-sqlite"

# JSON lines

_FILES = ("people.jsonl", "memories.jsonl", "archive.jsonl")
_CLOSED_REASONS: Mapping[str, ClosedReason] = {
    "superseded": "superseded",
    "expired": "expired",
    "ephemeral_decay": "decayed",
    "forgotten": "forgotten",
}


def is_jsonl(source: Source) -> bool:
    """Return whether the source is such a file, or a folder with one."""
    if source.is_folder:
        return any(PurePosixPath(name).name == "memories.jsonl" for name in source.names)
    row = next(iter(source.first_rows), {})
    return ("memory_type" in row and "content" in row) or {"name", "relation", "aliases", "owner_user_id"} <= row.keys()


def read_jsonl(source: Source, destination: Destination) -> Records:
    """Read all files of a folder together: memories name people by the ids of another file."""
    rows, refused = _rows(source)
    owners = {row["owner_user_id"] for _, row in rows if isinstance(row.get("owner_user_id"), str)}
    owner = wanted_owner(destination, owners)
    records = _JsonlRecords(format=JSONL, destination=destination, refused=refused, owner=owner)
    records.read([each for each in rows if _is_person(each[1])], records.person)
    records.read([each for each in rows if not _is_person(each[1])], records.memory)
    records.link()
    return records


def _is_person(row: Row) -> bool:
    return "content" not in row and "name" in row


def _rows(source: Source) -> tuple[list[Placed], list[str]]:
    """Return each line with its place. If two lines have the same id, the later one counts: that in the archive."""
    files = [("", source.lines)] if not source.is_folder else list(_files(source))
    rows = [(f"{name}{place}", row) for name, lines in files for place, row in lines.rows]
    refused = [f"{name}{each}" for name, lines in files for each in lines.refused]
    newest = {(str(row.get("id")), "content" in row): place for place, row in rows if row.get("id") is not None}
    kept = [
        (place, row)
        for place, row in rows
        if row.get("id") is None or newest[str(row["id"]), "content" in row] == place
    ]
    return kept, refused


def _files(source: Source) -> Iterator[tuple[str, JsonLines]]:
    for wanted in _FILES:
        for name in source.names:
            if PurePosixPath(name).name == wanted:
                yield f"{name} ", json_lines(source.text(name).text)


@dataclass(slots=True, kw_only=True)
class _JsonlRecords(Records):
    """Collects people, then memories.

    Attributes:
        names, ids: names of people and ids of facts, by their ids in the files.
        successors: (successor's id in the files, id of the older fact, place).
    """

    owner: str | None
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    successors: list[tuple[str, str, str]] = field(default_factory=list)

    def check(self, row: Row) -> None:
        """Raise InvalidError for a row of another version or another owner."""
        if row.get("version", 1) != 1:
            raise InvalidError(f"version {row['version']!r} is unknown", hint="version 1 is supported")
        if row.get("chat_id") is None or row.get("owner_user_id") is not None:
            check_owner(row.get("owner_user_id"), wanted=self.owner)

    def person(self, place: str, row: Row) -> None:
        self.check(row)
        name = required_text(row, "name")
        if row.get("id") is not None:
            self.names[str(row["id"])] = name
        relation = text_of(row, "relation")
        self.people.append(
            ImportedPerson(name=name, aliases=texts_of(row.get("aliases")), relation=relation, place=place)
        )

    def memory(self, place: str, row: Row) -> None:
        self.check(row)
        about = [self.names[str(each)] for each in row.get("subject_person_ids") or () if str(each) in self.names]
        kept = {
            "source": label(row.get("source")),
            "source_id": label(row.get("id")),
            "message_id": label(row.get("source_message_id")),
            "extraction_confidence": row.get("extraction_confidence"),
        }
        identity = self.fact(
            place,
            required_text(row, "content"),
            row.get("id"),
            category=category_of(row.get("memory_type")),
            about=tuple(dict.fromkeys(about)),
            attributes={**object_of(row.get("metadata")), **picked(kept, *kept)},
            expires=parse_time(row.get("expires_at"), name="expires_at"),
            confidence=clamped(row.get("extraction_confidence"), 0.0, 1.0, otherwise=1.0),
            session=label(row.get("source_session_id")),
            at=parse_time(row.get("observed_at") or row.get("created_at"), name="created_at"),
            closed=_jsonl_closed(row),
            ended=parse_time(row.get("superseded_at"), name="superseded_at"),
            in_chat=self._is_chats(row),
        )
        if row.get("id") is not None:
            self.ids[str(row["id"])] = identity
        if row.get("superseded_by_id"):
            self.successors.append((str(row["superseded_by_id"]), identity, place))

    def _is_chats(self, row: Row) -> bool:
        """Return whether a memory belongs to the current chat; memories of other chats are refused."""
        chat = label(row.get("chat_id"))
        if chat is None or row.get("owner_user_id") is not None:
            return False
        if chat != self.destination.chat:
            raise InvalidError(f"the memory belongs to the chat {chat}", hint=f"import it with --chat {chat}")
        return True

    def link(self) -> None:
        """Link superseded facts with their successors."""
        for by, old, place in self.successors:
            if by in self.ids:
                self.links.append(ImportedLink(source=self.ids[by], target=old, type="supersedes", place=place))


def _jsonl_closed(row: Row) -> ClosedReason | None:
    """Return why the other memory had closed a memory; None if it had not."""
    if row.get("superseded_at") or row.get("superseded_by_id"):
        return "superseded"
    if row.get("archived_at") or row.get("archive_reason"):
        return _CLOSED_REASONS.get(str(row.get("archive_reason")), "pruned")
    return None


# SQLite

_KINDS: Mapping[str, Category | None] = {
    "fact": None,
    "preference": "preference",
    "reflection": "reflection",
    "summary": "summary",
}
_MOST_SCORE = 10.0


def is_sqlite(source: Source) -> bool:
    """Return whether the source is a database with such a table."""
    columns = source.tables.get("memories", frozenset())
    return {"id", "content"} <= columns and bool(columns & {"kind", "score"})


def read_sqlite(source: Source, destination: Destination) -> Records:
    """Read live and archived memories, the entities they name, and their sources.

    Raises:
        InvalidError: the table is missing.
    """
    if not is_sqlite(source):
        raise InvalidError(f"{source.path} has no table `memories` with a kind or a score")
    records = _SqliteRecords(format=SQLITE, destination=destination)
    memory = records.by_kind if "kind" in source.tables["memories"] else records.by_score
    for table, read in (
        ("entities", records.entity),
        ("memories", memory),
        ("memories_archive", memory),
        ("memory_entities", records.mention),
    ):
        is_archived = table == "memories_archive"
        records.read([(place, {**row, "archived": is_archived}) for place, row in source.table(table)], read)
    records.link()
    return records


@dataclass(slots=True, kw_only=True)
class _SqliteRecords(Records):
    """Collects entities, memories, and their links as `pairs` of an id here and an id in the file."""

    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    pairs: list[tuple[str, str, EdgeType, str]] = field(default_factory=list)

    def entity(self, place: str, row: Row) -> None:
        name = required_text(row, "canonical_name", "name")
        self.names[str(row.get("id"))] = name
        aliases = texts_of(row.get("aliases"))
        self.people.append(ImportedPerson(name=name, type=entity_type(row.get("type")), aliases=aliases, place=place))

    def by_kind(self, place: str, row: Row) -> None:
        content, kind = required_text(row, "content"), str(row.get("kind") or "fact")
        at = parse_time(row.get("event_time") or row.get("created_at"), name="event_time")
        attributes = {**object_of(row.get("attributes")), "source_id": label(row.get("id"))}
        if kind == "episode":
            identity = self.destination.id_of(SQLITE, row.get("id"), content)
            role = vocabulary()["roles"].get(str(attributes.get("role")).lower())
            message = Message(
                text=content,
                role=role or "user",
                speaker=None if role else author(attributes.get("speaker")),
                at=at,
                id=identity,
                session=label(attributes.get("session_id")),
                origin="import",
                attributes=attributes,
            )
            self.message(place, message)
        elif kind not in _KINDS:
            raise InvalidError(f"kind {kind!r} is unknown")
        else:
            ended = parse_time(row.get("valid_until"), name="valid_until")
            identity = self.fact(
                place,
                content,
                row.get("id"),
                category=_KINDS[kind],
                tags=texts_of(row.get("tags")),
                attributes=attributes,
                about=self._about(row),
                confidence=clamped(row.get("confidence"), 0.0, 1.0, otherwise=1.0),
                at=at,
                ended=ended,
                closed=_sqlite_closed(row, is_over=ended is not None),
                decay_rate=clamped(row.get("decay_rate"), 0.0, 10.0, otherwise=0.1),
            )
        self.ids[str(row.get("id"))] = identity
        self._rests_on(row, attributes, identity, place)

    def _rests_on(self, row: Row, attributes: Mapping[str, Any], identity: str, place: str) -> None:
        for each in texts_of(row.get("source_ids")):
            self.pairs.append((identity, each, "derived_from", place))
        if label(attributes.get("supersedes")) is not None:
            self.pairs.append((identity, str(attributes["supersedes"]), "supersedes", place))

    def _about(self, row: Row) -> tuple[str, ...]:
        wanted = texts_of(row.get("entity_ids"))
        return tuple(dict.fromkeys(self.names[each] for each in wanted if each in self.names))

    def mention(self, place: str, row: Row) -> None:
        """Read a row of the junction table, which may name more entities than the memory's own list."""
        identity, name = self.ids.get(str(row.get("memory_id"))), self.names.get(str(row.get("entity_id")))
        known = None if identity is None else self.facts.get(identity)
        if known is None or name is None or name in known.fact.about:
            return
        fact = replace(known.fact, about=(*known.fact.about, name))
        self.facts[known.fact.id or ""] = replace(known, fact=fact)

    def by_score(self, place: str, row: Row) -> None:
        kept = picked(row, "narrative_id", "task_id", "source")
        self.ids[str(row.get("id"))] = self.fact(
            place,
            required_text(row, "content"),
            row.get("id"),
            tags=texts_of(row.get("tags")),
            attributes={**kept, "source_id": label(row.get("id"))},
            session=label(row.get("session_id")),
            at=parse_time(row.get("created_at"), name="created_at"),
            closed=_sqlite_closed(row),
            score=clamped(row.get("score"), -_MOST_SCORE, _MOST_SCORE, otherwise=0.0),
        )

    def link(self) -> None:
        """Link memories, and close superseded ones, which the other program had only given a lower confidence."""
        for source, target, kind, place in self.pairs:
            if kind == "supersedes" and self.ids.get(target) in self.facts:
                self.close(self.ids[target], "superseded")
            if target in self.ids:
                self.links.append(ImportedLink(source=source, target=self.ids[target], type=kind, place=place))


def _sqlite_closed(row: Row, *, is_over: bool = False) -> ClosedReason | None:
    if is_over:
        return "superseded" if object_of(row.get("attributes")).get("superseded_by") else "expired"
    return "pruned" if row["archived"] else None
