"""Memories in the shape of mem0's answers, and its arguments in ours. Pure.

Source: mem0ai 2.2, `Memory.get`, `search`, `history`: an item has `id`, `memory`, `hash`, `metadata`, `score`,
`created_at`, `updated_at`, and beside them the ids and `role` it came with; an event of a history has `old_memory`,
`new_memory` and `event`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ricordo.consolidation.plain_rules import Plain, plainly_said
from ricordo.integrations.mem0.filters import IDENTITIES, Mem0Error
from ricordo.model import Category, Fact, Json, Message, Node, Role, Version
from ricordo.text.sentences import infer_category

Item = dict[str, Any]

OWN_KEYS = frozenset((*IDENTITIES, "actor_id"))
_BESIDE = (*IDENTITIES, "actor_id", "role", "attributed_to", "expiration_date")
_CORE = frozenset((*_BESIDE, "updated_at", "data", "hash", "created_at", "id", "text_lemmatized"))
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_PASSING: frozenset[Category] = frozenset(("context", "event", "task", "observation"))


def item(node: Node, *, score: float | None = None) -> Item:
    """A memory as mem0 shows it."""
    kept = dict(node.attributes)
    created = node.created_at.isoformat()
    shown: Item = {
        "id": node.id,
        "memory": node.content,
        "hash": hashlib.md5(node.content.encode()).hexdigest(),
        "metadata": {name: value for name, value in kept.items() if name not in _CORE} or None,
        "score": score,
        "created_at": created,
        "updated_at": kept.get("updated_at") or created,
    }
    return shown | {name: kept[name] for name in _BESIDE if kept.get(name) is not None}


def is_over(node: Node, today: date) -> bool:
    """Whether its expiration date has passed."""
    until = node.attributes.get("expiration_date")
    return isinstance(until, str) and date.fromisoformat(until) < today


def expiration(value: object) -> str | None:
    """A date as mem0 keeps it, YYYY-MM-DD.

    Raises:
        Mem0Error: it is none.
    """
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    try:
        return value.isoformat() if isinstance(value, date) else date.fromisoformat(value).isoformat()  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Mem0Error("expiration_date must be a valid date in YYYY-MM-DD format.") from error


def spoken(messages: object) -> list[Mapping[str, Any]]:
    """What somebody said, of a text, a message or a list of them. What a system is told is said by nobody.

    Raises:
        Mem0Error: it is something else.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, list):
        raise Mem0Error("messages must be str, dict, or list[dict]")
    return [
        each
        for each in messages
        if isinstance(each, Mapping) and each.get("role") not in (None, "system", "developer") and text_of(each).strip()
    ]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message; of one in parts, the parts that are text."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""


def recorded(message: Mapping[str, Any], *, session: str, payload: Json) -> Message:
    """The message as it is recorded, word for word."""
    name = message.get("name")
    beside = {"role": message["role"], **({"actor_id": name} if name else {})}
    return Message(
        text=text_of(message),
        role=_ROLES.get(str(message["role"]), "user"),
        speaker=name or None,
        session=session,
        attributes={**payload, **beside},
    )


def learnt(message: Message) -> tuple[Fact, ...]:
    """What the user says so plainly in a message that no model is needed, and that does not pass."""
    if message.role != "user":
        return ()
    found = ((each, _lasting(each)) for each in plainly_said(message.text))
    return tuple(
        Fact(
            content=each.text,
            type="opinion" if each.kind == "opinion" else "semantic",
            category=category,
            session=message.session,
            attributes=message.attributes,
        )
        for each, category in found
        if category is not None
    )


def _lasting(said: Plain) -> Category | None:
    """Its category; None where its time will pass, as that of a promise."""
    category = "preference" if said.kind == "preference" else infer_category(said.text)
    return None if said.kind == "commitment" or category in _PASSING else category


def says_no_more(message: Message, facts: Sequence[Fact]) -> bool:
    """Whether a message is one statement and nothing else: then the statement is enough."""
    return len(facts) == 1 and message.text.strip().rstrip(".!").casefold() == facts[0].content.casefold()


def events(id: str, versions: Sequence[Version]) -> list[Item]:
    """Return the history of a memory, oldest first, in the shape of mem0's table `history`."""
    told: list[Item] = []
    before: Version | None = None
    for version in versions:
        ended = version.closed_at is not None and version.closed_reason != "superseded"
        was = None if before is None or before.closed_reason == "forgotten" else before.content
        changed = before is None or _payload(before) != _payload(version) or was is None
        if not ended and version.closed_at is None and changed:
            told.append(_event(id, version, len(told), old=was, new=version.content))
        elif ended and (before is None or before.closed_at is None):
            told.append(_event(id, version, len(told), old=version.content, new=None))
        before = version
    return told


def _payload(version: Version) -> tuple[str, dict[str, Any]]:
    return version.content, dict(version.node.attributes)


def _event(id: str, version: Version, number: int, *, old: str | None, new: str | None) -> Item:
    kind = "DELETE" if new is None else "ADD" if old is None else "UPDATE"
    at = version.commit.at.isoformat() if version.commit else version.node.created_at.isoformat()
    return {
        "id": f"{id}-{number + 1}",
        "memory_id": id,
        "old_memory": old,
        "new_memory": new,
        "event": kind,
        "created_at": version.node.created_at.isoformat(),
        "updated_at": at,
        "is_deleted": new is None,
        "actor_id": version.node.attributes.get("actor_id"),
        "role": version.node.attributes.get("role"),
    }
