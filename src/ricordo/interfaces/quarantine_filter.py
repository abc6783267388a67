"""What is held in quarantine is told to its user, not to an agent: text that reads like an order must not reach one by
an id or a review.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ricordo.model import Node, Version

T = TypeVar("T")

HELD = "quarantined"
NOTICE = "held in quarantine: the user looks at it and decides"


def withheld(answer: T) -> T:
    """The answer, with a notice in place of every text that is held."""
    return cast(T, _without(answer))


def _without(value: Any) -> Any:
    if isinstance(value, Node) and value.closed_reason == HELD:
        return replace(value, content=NOTICE, attributes={}, tags=(), about=(), speaker=None)
    if isinstance(value, Version) and value.closed_reason == HELD:
        return replace(value, content=NOTICE, node=_without(value.node))
    if isinstance(value, list | tuple):
        return _altered(value, _without)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = ((each.name, getattr(value, each.name)) for each in fields(value) if each.init)
    changed = {name: new for name, part in parts if (new := _without(part)) is not part}
    if getattr(value, "kind", None) == "quarantine":
        changed["about"] = ()
    return replace(value, **changed) if changed else value


def _altered(values: list[Any] | tuple[Any, ...], alter: Callable[[Any], Any]) -> list[Any] | tuple[Any, ...]:
    """The same object where nothing in it is altered."""
    new = [alter(each) for each in values]
    if all(one is other for one, other in zip(new, values, strict=True)):
        return values
    return new if isinstance(values, list) else tuple(new)
