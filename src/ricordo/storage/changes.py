"""The stream of changes to a store, by whichever process: for caches, pages and other programs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ricordo.storage.protocol import Store
from ricordo.storage.values import ChangeEvent

_POLL_S = 0.1
"""How often to look for new commits. The store is asked, so that no process has to know of another."""

_AT_ONCE = 500


async def changes(store: Store, *, after: int) -> AsyncIterator[ChangeEvent]:
    """Yield an event for each commit after a number, in order and exactly once, then wait for more, without end.

    Args:
        after: the number of the last commit that the caller has taken in; 0 for all.

    Raises:
        StoreError: the store cannot be read.
        UnavailableError: the store was closed.
    """
    while True:
        events = await store.read(lambda tx, after=after: tx.history.events(after=after, most=_AT_ONCE))  # type: ignore[misc]
        for event in events:
            yield event
            after = event.commit
        if not events:
            await asyncio.sleep(_POLL_S)
