"""Direct reads of a store, for adapters that stand in for other libraries. No interface offers them to a caller.

Those libraries name a memory by its id alone, without an owner, and list memories as their own stores do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ricordo.errors import DeniedError
from ricordo.model import Json, Node, Scope
from ricordo.storage import Snapshot, Store
from ricordo.storage.values import Filter


class StoreView:
    """What one memory's scope may see, and, for the memory that opened the store, who owns what in it."""

    def __init__(self, store: Store, scope: Scope, *, now: Callable[[], int], sees_owners: bool) -> None:
        self._store = store
        self._scope = scope
        self._sees_owners = sees_owners
        self.now = now
        """Return the current time by the store's clock, in Unix milliseconds."""

    async def owners(self) -> Sequence[Scope]:
        """Return one scope for each owner and chat in the store; groups without an owner are left out.

        Raises:
            DeniedError: the memory did not open the store itself.
        """
        self._check_owners()
        found = await self._store.read(lambda tx: tx.lifecycle.scopes())
        return [each for each in found if each.owner]

    async def owner_of(self, id: str) -> Scope | None:
        """Return the scope of a memory, closed or not; None if no owner has this id. Raises as `owners` does."""
        self._check_owners()
        return await self._store.read(lambda tx: tx.lifecycle.whose(id))

    async def nodes(self, ids: Sequence[str]) -> dict[str, Node]:
        """Return those of some memories that the scope may see, by id, in one read."""

        def read(tx: Snapshot) -> dict[str, Node]:
            found = (tx.nodes.get(self._scope, id) for id in ids)
            return {node.id: node for node in found if node is not None}

        return await self._store.read(read)

    async def page(self, where: Json | None, *, before_key: int | None, limit: int) -> list[Node]:
        """Return live knowledge, and messages that have not become knowledge yet, latest first.

        Args:
            where: keys and values that the attributes must have.
            before_key: the `key` of the last node of the previous page.
        """
        now, wanted = self.now(), Filter(shelves=("k", "e"), where=where or None)
        return await self._store.read(
            lambda tx: tx.nodes.page(self._scope, wanted, now=tx.current(now), before_key=before_key, limit=limit)
        )

    def _check_owners(self) -> None:
        if not self._sees_owners:
            raise DeniedError("only the memory that opened the store may ask for owners")
