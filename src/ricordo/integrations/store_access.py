"""What an adapter asks of the store it opened itself, across all owners in it. No caller with a scope of its own can.

The libraries that adapters stand in for name a memory by its id alone, without saying whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ricordo.model import Json, Node, Scope

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.storage import Snapshot


async def scopes(memory: Memory) -> Sequence[Scope]:
    """Everybody's memories in the store that have an owner, one scope each."""

    found = await memory._opened.store.read(lambda tx: tx.lifecycle.scopes())
    return [each for each in found if each.owner]


async def whose(memory: Memory, id: str) -> Scope | None:
    """Whose memory has this id, closed or not; None where there is none, or it has no owner."""

    return await memory._opened.store.read(lambda tx: tx.lifecycle.whose(id))


async def nodes(memory: Memory, ids: Sequence[str]) -> dict[str, Node]:
    """Those of some memories that the scope of `memory` may see, by id, in one read."""

    def read(tx: Snapshot) -> dict[str, Node]:
        found = (tx.nodes.get(memory.scope, id) for id in ids)
        return {node.id: node for node in found if node is not None}

    return await memory._opened.store.read(read)


async def listed(memory: Memory, where: Json | None, *, before_key: int | None, limit: int) -> list[Node]:
    """Live knowledge, and messages that have not become knowledge yet: what a search looks among. Latest first.

    Args:
        where: keys and values the attributes must have.
        before_key: the `key` of the last one of the page before.
    """
    from ricordo.storage.values import Filter

    now, wanted = memory._opened.now(), Filter(shelves=("k", "e"), where=where or None)
    return await memory._opened.store.read(
        lambda tx: tx.nodes.page(memory.scope, wanted, now=tx.current(now), before_key=before_key, limit=limit)
    )
