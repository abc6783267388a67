"""Ids as people give them: whole, or by the end that tables show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ricordo.errors import InvalidError, NotFoundError
from ricordo.ids import handle_of

if TYPE_CHECKING:
    from ricordo.memory import Memory

# A search by the end of an id has no index, so it stays with what one can have just seen in a table.
_LATEST = 1_000
_HANDLE_CHARS = 8


async def whole_id(memory: Memory, given: str, *, as_of: str | int | None = None) -> str:
    """The id meant, among the memories of today or of then.

    Raises:
        NotFoundError: there is none, whole or among the latest 1,000 memories by its end.
        InvalidError: several end like this.
    """
    try:
        return (await memory.get(given, as_of=as_of)).id
    except NotFoundError:
        if len(given) != _HANDLE_CHARS:
            raise
    latest = [await memory.list(limit=_LATEST, archived=archived, as_of=as_of) for archived in (False, True)]
    found = [node.id for page in latest for node in page.nodes if handle_of(node.id) == given]
    if not found:
        hint = f"a short id finds the latest {_LATEST:,}; `search` and `--json` show whole ones"
        raise NotFoundError(f"there is no memory {given}", hint=hint)
    if len(set(found)) > 1:
        raise InvalidError(f"id: {given} is the end of several: {', '.join(found[:5])}", hint="give a whole one")
    return found[0]
