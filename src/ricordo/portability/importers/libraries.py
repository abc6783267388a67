"""Memories of other libraries: mem0, a LangGraph store, and the MCP reference server's knowledge graph.

Source for mem0: docs.mem0.ai, "Get memories" and "Memory history": a memory has `id`, `memory`, `hash`, `metadata`,
`created_at`, `updated_at` and `user_id`, `agent_id`, `run_id`; and mem0ai 2.2, mem0/memory/storage.py: `history`
has `memory_id`, `old_memory`, `new_memory`, `event` (ADD, UPDATE, DELETE), `created_at`, `updated_at`, `is_deleted`.

Source for LangGraph: github.com/langchain-ai/langgraph, libs/checkpoint-sqlite (`langgraph/store/sqlite/base.py`) and
libs/checkpoint (`langgraph/store/base`, `Item`): a row has `prefix` (the namespace, joined by dots) or `namespace` (a
list), `key`, `value` (JSON), `created_at`, `updated_at` and `expires_at`. The value may have any form: LangMem keeps a
memory as `{"kind", "content"}`, in which `content` is a text or an object with a text.

Source for MCP: github.com/modelcontextprotocol/servers, src/memory: `memory.json` (or `memory.jsonl`) holds one object
a line, `{"type": "entity", "name", "entityType", "observations"}` or `{"type": "relation", "from", "to",
"relationType"}`; its tool `read_graph` answers with both lists in one object, which is also supported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Message
from ricordo.portability.records import (
    NOT_IMPORTED,
    Destination,
    ImportedLink,
    ImportedPerson,
    ImportedRelation,
    Records,
    category_of,
    check_owner,
    entity_type,
    label,
    object_of,
    parse_time,
    picked,
    required_text,
    text_of,
    texts_of,
    wanted_owner,
)
from ricordo.portability.sources import Placed, Row, Source, objects_in, one_document

# mem0

MEM0 = "mem0"

_HISTORY = frozenset(("memory_id", "old_memory", "new_memory", "event"))


def is_mem0(source: Source) -> bool:
    """Return whether the source is the result of `get_all`, the table `history`, or a folder with such a result."""
    if source.is_database:
        return source.tables.get("history", frozenset()) >= _HISTORY
    if source.is_folder:
        return any(_are_mem0(_memories(document)) for _, document in _documents(source))
    return _are_mem0(_memories(source.document)) or _are_mem0(source.first_rows)


def _are_mem0(rows: Sequence[Row]) -> bool:
    return any(
        (isinstance(row.get("memory"), str) and "id" in row) or {"memory_id", "new_memory", "event"} <= row.keys()
        for row in rows[:20]
    )


def _memories(document: object) -> list[Row]:
    return objects_in(document, "results", "memories")


def _documents(source: Source) -> Iterator[tuple[str, Any]]:
    for name in source.names:
        if name.endswith(".json"):
            yield name, one_document(source.text(name).text, name=name)


def read_mem0(source: Source, destination: Destination) -> Records:
    """Read the memories, and from the history their earlier versions, which are closed."""
    rows, refused = _mem0_rows(source)
    memories = [(place, row) for place, row in rows if "memory" in row]
    history = [(place, row) for place, row in rows if "memory" not in row]
    owner = wanted_owner(destination, {str(row["user_id"]) for _, row in memories if row.get("user_id")})
    records = _Mem0Records(format=MEM0, destination=destination, refused=refused, owner=owner)
    history.sort(key=lambda each: str(each[1].get("updated_at") or each[1].get("created_at")))
    records.read(memories, records.memory)
    records.read(history, records.event)
    records.close_deleted()
    return records


def _mem0_rows(source: Source) -> tuple[list[Placed], list[str]]:
    if source.is_database:
        return source.table("history"), []
    documents = _documents(source) if source.is_folder else iter([("", source.document)])
    rows = [
        (f"{name} memory {number}".strip(), row)
        for name, document in documents
        for number, row in enumerate(_memories(document), start=1)
    ]
    if rows or source.is_folder:
        return rows, []
    return list(source.lines.rows), list(source.lines.refused)


@dataclass(slots=True, kw_only=True)
class _Mem0Records(Records):
    """Collects memories, then their earlier versions from the history.

    Attributes:
        newest: the latest version in the history of a memory, by its id in mem0.
        present: the memory itself, by its id in mem0.
    """

    owner: str | None
    newest: dict[str, str] = field(default_factory=dict)
    present: dict[str, str] = field(default_factory=dict)

    def memory(self, place: str, row: Row) -> None:
        check_owner(label(row.get("user_id")), wanted=self.owner)
        metadata = dict(object_of(row.get("metadata")))
        kept = picked(row, "agent_id", "run_id", "app_id", "actor_id")
        self.present[str(row.get("id"))] = self.fact(
            place,
            required_text(row, "memory"),
            row.get("id"),
            category=category_of(metadata.get("category")),
            tags=tuple(dict.fromkeys((*texts_of(row.get("categories")), *texts_of(metadata.get("tags"))))),
            attributes={**metadata, **kept, "source_id": label(row.get("id"))},
            expires=parse_time(row.get("expiration_date"), name="expiration_date"),
            at=_latest_time(row),
        )

    def event(self, place: str, row: Row) -> None:
        """Read one change of a memory: close the previous version and add the next."""
        memory, event, at = str(row.get("memory_id")), str(row.get("event") or "").upper(), _latest_time(row)
        before = self.newest.get(memory)
        is_past = before is not None and before != self.present.get(memory)
        if event == "DELETE":
            if before is not None and is_past:
                self.close(before, "forgotten", at)
            return
        if event not in ("ADD", "UPDATE"):
            raise InvalidError(f"event {row.get('event')!r} is unknown", hint="ADD, UPDATE or DELETE is expected")
        content = required_text(row, "new_memory")
        identity = self.destination.id_of(MEM0, row.get("memory_id"), content)
        if identity not in self.facts:
            self.fact(place, content, row.get("memory_id"), attributes={"source_id": memory}, at=at)
        self.newest[memory] = identity
        if before is not None and is_past and before != identity:
            self.close(before, "superseded", at)
            self.links.append(ImportedLink(source=identity, target=before, type="supersedes", place=place))

    def close_deleted(self) -> None:
        """Close memories that are only in the history: they were deleted. Does nothing without present memories."""
        for memory, identity in self.newest.items():
            if self.present and memory not in self.present:
                self.close(identity, "forgotten")


def _latest_time(row: Row) -> datetime | str | None:
    return parse_time(row.get("updated_at") or row.get("created_at"), name="created_at")


# LangGraph

LANGGRAPH = "langgraph"

_TEXTS = ("content", "memory", "text", "fact", "data", "value", "summary", "description")


def is_langgraph(source: Source) -> bool:
    """Return whether the source is the SQLite database of a store, or JSON rows from one."""
    if source.is_database:
        return {"prefix", "key", "value"} <= source.tables.get("store", frozenset())
    rows = objects_in(source.document, "items")[:20] or source.first_rows
    return any("value" in row and "key" in row and ("namespace" in row or "prefix" in row) for row in rows)


def read_langgraph(source: Source, destination: Destination) -> Records:
    """Read each item as a fact, tagged with its namespace."""
    records = Records(format=LANGGRAPH, destination=destination)
    listed = enumerate(objects_in(source.document, "items"), start=1) if not source.is_database else ()
    rows = [*source.table("store"), *((f"item {number}", row) for number, row in listed)]

    return records.read_source(source, rows, partial(_read_item, records))


def _read_item(records: Records, place: str, row: Row) -> None:
    given = row.get("namespace", row.get("prefix"))
    namespace = ".".join(map(str, given)) if isinstance(given, list | tuple) else str(given or "")
    value = _json_value(row.get("value"))
    content = value if isinstance(value, str) else _item_text(object_of(value))
    if content is None or not content.strip():
        raise InvalidError("its value holds no text", hint=f"looked for {', '.join(_TEXTS)}")
    fields = object_of(value)
    rest = {key: each for key, each in fields.items() if each != content and key not in ("category", "type")}
    records.fact(
        place,
        content,
        namespace,
        row.get("key"),
        category=category_of(fields.get("category") or fields.get("type")),
        tags=(namespace,) if namespace else (),
        attributes={**rest, "source_id": str(row.get("key")), "namespace": namespace},
        expires=parse_time(row.get("expires_at"), name="expires_at"),
        at=_latest_time(row),
    )


def _item_text(value: Row) -> str | None:
    """Return a value's text: a text field, a nested object's, all fields if they are flat, or else the JSON."""
    found = text_of(value, *_TEXTS)
    if found is not None:
        return found
    for name in _TEXTS:
        if isinstance(value.get(name), dict):
            return _item_text(value[name])
    if value and all(isinstance(each, str | int | float | bool) for each in value.values()):
        return "; ".join(f"{key}: {each}" for key, each in value.items())
    return json.dumps(value, ensure_ascii=False) if _holds_words(value) else None


def _holds_words(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, Mapping):
        return any(_holds_words(each) for each in value.values())
    return isinstance(value, list) and any(_holds_words(each) for each in value)


def _json_value(value: object) -> object:
    """Decode a value, which databases keep as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# MCP

MCP = "mcp"


def is_mcp(source: Source) -> bool:
    """Return whether the source is a knowledge graph, as lines or as one object."""
    return _is_graph(source.document) or any(
        row.get("type") in ("entity", "relation") and ({"name", "observations"} <= row.keys() or "from" in row)
        for row in source.first_rows
    )


def _is_graph(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("entities"), list) and "relations" in document


def read_mcp(source: Source, destination: Destination) -> Records:
    """Read entities, their observations as facts about them, and relations."""
    records = Records(format=MCP, destination=destination)

    def read(place: str, row: Row) -> None:
        if row.get("type") == "entity":
            _read_entity(row, place, records)
        elif row.get("type") == "relation":
            _read_relation(row, place, records)
        else:
            raise InvalidError(f"type {row.get('type')!r} is unknown", hint="entity or relation is expected")

    if not _is_graph(source.document):
        return records.read_source(source, (), read)
    for kind, name in (("entity", "entities"), ("relation", "relations")):
        rows = enumerate(source.document[name] or (), start=1)
        records.read([(f"{name} {at}", {**row, "type": kind}) for at, row in rows if isinstance(row, dict)], read)
    return records


def _read_entity(row: Row, place: str, records: Records) -> None:
    """Read an entity and its observations. Some forks of the server add `createdAt`."""
    name, given = required_text(row, "name"), row.get("observations") or []
    if not isinstance(given, list):
        raise InvalidError("`observations` is not a list")
    at = parse_time(row.get("createdAt"), name="createdAt")
    person = ImportedPerson(name=name, type=entity_type(row.get("entityType")), place=place)
    is_owner = name == records.destination.owner
    for text in dict.fromkeys(each for each in given if isinstance(each, str) and each.strip()):
        records.fact(place, text, name, about=() if is_owner else (name,), at=at)
    if not is_owner:
        records.people.append(person)


def _read_relation(row: Row, place: str, records: Records) -> None:
    source, target, predicate = (required_text(row, name) for name in ("from", "to", "relationType"))
    if source == records.destination.owner:  # Ricordo exports relations of the owner in this form
        records.people.append(ImportedPerson(name=target, relation=predicate.replace("_", " "), place=place))
    else:
        records.relations[ImportedRelation(source=source, predicate=predicate, target=target, place=place)] = None


# Zep

ZEP = "zep"


def is_zep(source: Source) -> bool:
    """Return whether the source holds facts (edges) of a Zep or Graphiti graph, alone or in an object."""
    return any("fact" in row and ("uuid" in row or "uuid_" in row) for row in _zep_rows(source)[:20])


def _zep_rows(source: Source) -> list[Row]:
    document = None if source.is_folder or source.is_database else source.document
    return objects_in(document, "facts", "edges") or list(source.first_rows)


def read_zep(source: Source, destination: Destination) -> Records:
    """Read the facts with their times; an invalid or expired fact is closed. Messages are read as well.

    Source: help.getzep.com, "Facts" and the SDK's `EntityEdge`: `uuid`, `fact`, `name`, `created_at`, `valid_at`,
    `invalid_at`, `expired_at`; and `Message`: `uuid`, `role`, `role_type`, `content`, `created_at`.
    """
    records = Records(format=ZEP, destination=destination)
    rows = [(f"fact {number}", row) for number, row in enumerate(objects_in(source.document, "facts", "edges"), 1)]
    rows = rows or list(source.lines.rows)

    def read(place: str, row: Row) -> None:
        at = parse_time(row.get("created_at"), name="created_at")
        since = parse_time(row.get("valid_at"), name="valid_at")
        id = records.fact(
            place, required_text(row, "fact"), row.get("uuid") or row.get("uuid_"), at=at, valid_from=since
        )
        ended = row.get("invalid_at") or row.get("expired_at")
        if ended:
            records.close(id, "superseded", parse_time(ended, name="invalid_at"))

    records.read(rows, read)
    said = objects_in(object_of(source.document).get("messages"))
    records.read([(f"message {n}", row) for n, row in enumerate(said, 1)], partial(_message, records, "zep"))
    return records


def _message(records: Records, session: str, place: str, row: Row) -> None:
    """Add a message of another library; `content` is a text or a list of parts with a text."""
    content = row.get("content") if row.get("content") is not None else row.get("text")
    parts = [content] if isinstance(content, str) else [str(each.get("text") or "") for each in objects_in(content)]
    role = str(row.get("role_type") or row.get("role") or "").lower()
    text = "\n".join(part for part in parts if part.strip())
    if role not in ("user", "assistant") or not text:
        return
    session = str(row.get("session_id") or row.get("thread_id") or session)
    records.message(
        place,
        Message(
            text=text,
            role="user" if role == "user" else "assistant",
            speaker=label(row.get("name") or (row.get("role") if row.get("role_type") else None)),
            session=session,
            at=parse_time(row.get("created_at"), name="created_at"),
            id=records.destination.id_of(records.format, session, row.get("uuid") or row.get("id") or place, text),
            origin="import",
        ),
    )


# Letta

LETTA = "letta"


def is_letta(source: Source) -> bool:
    """Return whether the source is an agent file of either version."""
    document = None if source.is_folder or source.is_database or source.is_archive else source.document
    found = object_of(document)
    return bool("core_memory" in found or ("blocks" in found and "agents" in found))


def read_letta(source: Source, destination: Destination) -> Records:
    """Read memory blocks, one fact per line, and messages. Blocks other than "human" become procedures.

    Source: github.com/letta-ai/agent-file, "Agent File (.af)": `core_memory` or `blocks` of `label` and `value`, and
    `messages`, in `agents` since the second version.
    """
    records = Records(format=LETTA, destination=destination)
    document = object_of(source.document)
    blocks = objects_in(document.get("core_memory")) or objects_in(document.get("blocks"))
    for block in blocks:
        name = label(block.get("label")) or "block"
        kind = "semantic" if name == "human" else "procedural"
        for line in str(block.get("value") or "").splitlines():
            if line.strip(" -*#"):
                records.fact(f"block {name}", line.strip(" -*#"), name, type=kind, tags=(name,))
    agents = objects_in(document.get("agents")) or [document]
    for agent in agents:
        session = label(agent.get("name")) or "letta"
        said = enumerate(objects_in(agent.get("messages")), start=1)
        records.read([(f"message {n}", row) for n, row in said], partial(_message, records, session))
    left = [name for name in ("files", "sources", "tools", "mcp_servers", "tool_rules") if document.get(name)]
    records.refused += [f"{NOT_IMPORTED}{name}, which hold no memories" for name in left]
    return records
