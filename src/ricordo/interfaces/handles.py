"""Short ids that were shown lately: what an agent read a moment ago it may name by the end of its id."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ricordo.ids import handle_of
from ricordo.model import Hit, Node, Scope

HANDLE_CHARS = 8
_KEPT = 20_000


class Handles:
    """Handles and the ids they stand for, by scope. A handle that stands for two ids stands for none."""

    def __init__(self) -> None:
        self._ids: OrderedDict[tuple[Scope, str], str] = OrderedDict()

    def note(self, scope: Scope, value: object) -> None:
        """Keep the ids of all memories an answer shows."""
        for id in _ids(value):
            key = scope, handle_of(id)
            known = self._ids.pop(key, id)
            self._ids[key] = id if known == id else ""
        while len(self._ids) > _KEPT:
            self._ids.popitem(last=False)

    def whole(self, scope: Scope, handle: str) -> str | None:
        """The id that was shown with this end, or None."""
        return self._ids.get((scope, handle)) or None


def _ids(value: object, *, depth: int = 0) -> list[str]:
    """Of memories and hits, in whatever holds them."""
    if isinstance(value, list | tuple):
        return [id for each in value for id in _ids(each, depth=depth + 1)]
    if not is_dataclass(value) or isinstance(value, type) or depth > 4:
        return []
    own = [value.id] if isinstance(value, Node | Hit) else []
    parts = (getattr(value, name) for name in _names(type(value)))
    return own + [id for part in parts if not isinstance(part, _SIMPLE) for id in _ids(part, depth=depth + 1)]


_SIMPLE = (str, int, float, type(None))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
