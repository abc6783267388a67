"""mem0's filters: which memories they mean, and whose. Pure.

Source: docs.mem0.ai, "Search memory" and "Enhanced metadata filtering"; mem0ai 2.2, `Memory.search`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

IDENTITIES = ("user_id", "agent_id", "run_id")


class Mem0Error(ValueError):
    """An argument that mem0 would refuse, too, with the error its callers expect."""


def identity(value: object, name: str) -> str | None:
    """An id as text; numbers become text.

    Raises:
        Mem0Error: it is blank, or has blanks inside.
    """
    if value is None:
        return None
    text = str(value).strip()
    if not text or any(each.isspace() for each in text):
        raise Mem0Error(f"Invalid {name}: {value!r} is blank or has whitespace in it; give an id without spaces")
    return text


def asked(filters: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of a question, ids as text, with what was given beside them as mem0 1.x took it.

    Raises:
        Mem0Error: no id of a user, agent or run is among them, or an argument is unknown.
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
    """Those of the conditions that a store looks up by itself: a key is one value."""
    return {
        name: value
        for name, value in filters.items()
        if name not in _LOGIC and value != "*" and isinstance(value, str | int | float | bool)
    }


def fits(payload: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether a memory's fields meet all conditions.

    Raises:
        Mem0Error: there is no such operator, or AND, OR or NOT has no list.
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
    """A list has the value if it holds it."""
    return bool(value == wanted or (isinstance(value, list) and wanted in value))


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """What cannot be compared, a text with a number for instance, does not fit."""

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
