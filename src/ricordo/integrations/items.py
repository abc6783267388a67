"""Things with a name, kept as they are: what key-value stores and folders of files of other libraries become here.

An item is a message nobody said in a conversation: it is found like everything else, and never merged with another, nor
replaced by one. What is put in its place is in its history; what is taken away can be restored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.model import Json, Message, Node

if TYPE_CHECKING:
    from ricordo.memory import Memory

_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What is to be kept: `text` is what it is found by, `fields` are its attributes."""

    name: Sequence[str]
    text: str
    fields: Json


class Items:
    """The items of one kind in a caller's memory."""

    def __init__(self, memory: Memory, *, kind: str) -> None:
        self._memory = memory
        self._kind = kind

    def id_of(self, name: Sequence[str]) -> str:
        """The id of whatever has this name; ids are unique in a store, so the owner is part of it."""
        scope = self._memory.scope
        told = json.dumps([self._kind, scope.owner, scope.chat, *name], ensure_ascii=False)
        return f"{self._kind}-{hashlib.sha256(told.encode()).hexdigest()[:32]}"

    async def get(self, names: Sequence[Sequence[str]]) -> list[Node | None]:
        """Those that are there, in the order asked for."""
        found = await self._memory.store_view.nodes([self.id_of(name) for name in names])
        nodes = (found.get(self.id_of(name)) for name in names)
        return [node if node is not None and node.is_live else None for node in nodes]

    async def put(self, items: Sequence[Item]) -> None:
        """Keep them; what has the same name gets the new text and fields. What is new comes as one commit."""
        ids = [self.id_of(item.name) for item in items]
        known = await self._memory.store_view.nodes(ids)
        fresh = [
            Message(text=item.text, role="assistant", origin="agent", id=id, attributes=self._fields(item))
            for id, item in zip(ids, items, strict=True)
            if id not in known
        ]
        if fresh:
            await self._memory.add_many(fresh)
        for id, item in zip(ids, items, strict=True):
            if id in known:
                if not known[id].is_live:
                    await self._memory.restore(id)
                await self._memory.update(id, content=item.text, attributes=self._fields(item))

    async def touch(self, node: Node, fields: Json) -> None:
        """Alter some fields of an item."""
        await self._memory.update(node.id, attributes={**node.attributes, **fields})

    async def delete(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            await self._memory.forget(node.id)

    async def all(self, where: Json) -> list[Node]:
        """Those whose fields have these values, in the order in which they were first put."""
        found: list[Node] = []
        wanted = {"kind": self._kind, **where}
        last: int | None = None
        while page := await self._memory.store_view.page(wanted, before_key=last, limit=_PAGE):
            found += page
            last = page[-1].key
        return found[::-1]

    async def search(self, text: str, where: Json, *, limit: int) -> list[tuple[Node, float]]:
        """Those that answer a question, best first, with scores; at most 1,000."""
        wanted = {"kind": self._kind, **where}
        results = await self._memory.search(text, type="episodic", where=wanted, limit=min(1_000, max(1, limit)))
        nodes = await self._memory.store_view.nodes(results.ids)
        return [(nodes[hit.id], hit.score) for hit in results.hits if hit.id in nodes]

    def _fields(self, item: Item) -> Json:
        return {**item.fields, "kind": self._kind}
