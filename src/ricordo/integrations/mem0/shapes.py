"""mem0's arguments, filters and answers, converted from and to Ricordo's, without any I/O.

Source: mem0ai 2.2, `Memory.get`, `search`, `history`: an item has `id`, `memory`, `hash`, `metadata`, `score`,
`created_at` and `updated_at`, and the ids and `role` given to `add`; an event of a history has `old_memory`,
`new_memory` and `event`. Filters: docs.mem0.ai, "Search memory" and "Enhanced metadata filtering".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ricordo.consolidation.plain_rules import Plain, plain_statements
from ricordo.integrations.items import text_of
from ricordo.model import Category, Fact, Json, Message, Node, Role, Version
from ricordo.text.categories import infer_category

Item = dict[str, Any]

IDENTITIES = ("user_id", "agent_id", "run_id")
OWN_KEYS = frozenset((*IDENTITIES, "actor_id"))
_BESIDE = (*IDENTITIES, "actor_id", "role", "attributed_to", "expiration_date")
_CORE = frozenset((*_BESIDE, "updated_at", "data", "hash", "created_at", "id", "text_lemmatized"))
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_PASSING: frozenset[Category] = frozenset(("context", "event", "task", "observation"))


def item(node: Node, *, score: float | None = None) -> Item:
    """Return a memory in mem0's form."""
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
    """Return whether the expiration date of a memory has passed."""
    until = node.attributes.get("expiration_date")
    return isinstance(until, str) and date.fromisoformat(until) < today


def expiration(value: object) -> str | None:
    """Return a date in mem0's form, YYYY-MM-DD.

    Raises:
        Mem0Error: the value is not a date.
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
    """Return a text, a message, or a list of these as a list of messages, without system messages.

    Raises:
        Mem0Error: the argument has another type.
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


def recorded(message: Mapping[str, Any], *, session: str, payload: Json) -> Message:
    """Return the message to record, word for word."""
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
    """Return the lasting facts that rules, without a model, find in a user's message."""
    if message.role != "user":
        return ()
    found = ((each, _lasting(each)) for each in plain_statements(message.text))
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
    """Return the category of a statement; None if it is temporary, like a promise."""
    category = "preference" if said.kind == "preference" else infer_category(said.text)
    return None if said.kind == "commitment" or category in _PASSING else category


def says_no_more(message: Message, facts: Sequence[Fact]) -> bool:
    """Return whether a message consists of one statement only, so that the fact is enough."""
    return len(facts) == 1 and message.text.strip().rstrip(".!").casefold() == facts[0].content.casefold()


def events(id: str, versions: Sequence[Version]) -> list[Item]:
    """Return the events of a memory, oldest first, as in mem0's table `history`."""
    found: list[Item] = []
    before: Version | None = None
    for version in versions:
        ended = version.closed_at is not None and version.closed_reason != "superseded"
        was = None if before is None or before.closed_reason == "forgotten" else before.content
        changed = before is None or _payload(before) != _payload(version) or was is None
        if not ended and version.closed_at is None and changed:
            found.append(_event(id, version, len(found), old=was, new=version.content))
        elif ended and (before is None or before.closed_at is None):
            found.append(_event(id, version, len(found), old=version.content, new=None))
        before = version
    return found


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


class Mem0Error(ValueError):
    """An argument is invalid in mem0. It is a ValueError, as callers of mem0 expect."""


def identity(value: object, name: str) -> str | None:
    """Return an id as text.

    Raises:
        Mem0Error: the id is blank or contains whitespace.
    """
    if value is None:
        return None
    text = str(value).strip()
    if not text or any(each.isspace() for each in text):
        raise Mem0Error(f"Invalid {name}: {value!r} is blank or has whitespace in it; give an id without spaces")
    return text


def identities(**given: object) -> dict[str, str]:
    """Return the ids that are given, as text. Raises the same errors as `identity`."""
    return {name: found for name, value in given.items() if (found := identity(value, name)) is not None}


def asked(filters: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters of a search with ids as text, combined with the ids given as arguments (mem0 1.x).

    Raises:
        Mem0Error: there is no id of a user, agent or run, or an argument is unknown.
    """
    unknown = given.keys() - set(IDENTITIES)
    if unknown:
        raise TypeError(f"unexpected arguments: {', '.join(sorted(unknown))}")
    if filters is not None and not isinstance(filters, Mapping):
        raise Mem0Error("filters must be a dict, for example {'user_id': 'u1'}")
    wanted = {**(filters or {}), **{name: value for name, value in given.items() if value is not None}}
    for name in IDENTITIES:
        if name in wanted and not isinstance(wanted[name], dict) and wanted[name] != "*":
            wanted[name] = identity(wanted[name], name)
    if not any(wanted.get(name) is not None for name in IDENTITIES):
        raise Mem0Error("filters must contain at least one of: user_id, agent_id, run_id, as {'user_id': 'u1'}")
    return wanted


def plain(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions that the store can check itself: equality of a key and a value."""
    return {
        name: value
        for name, value in filters.items()
        if name not in _LOGIC and value != "*" and isinstance(value, str | int | float | bool)
    }


def fits(payload: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return whether a memory's fields meet all conditions.

    Raises:
        Mem0Error: an operator does not exist, or the value of AND, OR or NOT is not a list.
    """
    return all(_holds(payload, name, condition) for name, condition in filters.items())


def _holds(payload: Mapping[str, Any], name: str, condition: Any) -> bool:
    if name in _LOGIC:
        if not isinstance(condition, Sequence) or isinstance(condition, str):
            raise Mem0Error(f"{name} operator requires a list of conditions")
        return _LOGIC[name]([fits(payload, each) for each in condition])
    value = payload.get(name)
    if condition == "*":
        return value is not None
    if isinstance(condition, Mapping):
        unknown = [operator for operator in condition if operator not in _OPERATORS]
        if unknown:
            raise Mem0Error(f"Unsupported metadata filter operator: {unknown[0]}")
        return all(_OPERATORS[operator](value, operand) for operator, operand in condition.items())
    return _is(value, condition)


def _is(value: Any, wanted: Any) -> bool:
    """Return whether a value is equal to the wanted one or is a list that contains it."""
    return bool(value == wanted or (isinstance(value, list) and wanted in value))


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return an operator for which values that cannot be compared, such as text and a number, do not match."""

    def one(value: Any, operand: Any) -> bool:
        try:
            return value is not None and compare(value, operand)
        except TypeError:
            return False

    return one


def _within(value: Any, operand: Any) -> bool:
    return any(_is(value, each) for each in operand)


_LOGIC: Mapping[str, Callable[[list[bool]], bool]] = {
    "AND": all,
    "OR": any,
    "NOT": lambda met: not any(met),
    "$and": all,
    "$or": any,
    "$not": lambda met: not any(met),
}
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _is,
    "ne": lambda value, operand: not _is(value, operand),
    "in": _within,
    "nin": lambda value, operand: not _within(value, operand),
    "gt": _compared(lambda value, operand: bool(value > operand)),
    "gte": _compared(lambda value, operand: bool(value >= operand)),
    "lt": _compared(lambda value, operand: bool(value < operand)),
    "lte": _compared(lambda value, operand: bool(value <= operand)),
    "contains": _compared(lambda value, operand: operand in value),
    "icontains": _compared(lambda value, operand: str(operand).casefold() in str(value).casefold()),
}
