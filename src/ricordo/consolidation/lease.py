"""One process at a time takes a conversation in, so that a model is not paid for it twice.

Nothing rests on it but money: whoever commits looks again at what is there, lease or no lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from ricordo.errors import RicordoError
from ricordo.holders import is_gone, new_holder
from ricordo.storage import Store

LEASE_MS = 30_000
"""For how long a lease is taken, and how long it stands where nobody can tell that its holder has died."""


@contextlib.asynccontextmanager
async def leased(store: Store, name: str) -> AsyncIterator[bool]:
    """Whether a lease is ours while the block runs; prolonged meanwhile, however long a model thinks."""
    holder = new_holder()
    if not await _take(store, name, holder):
        yield False
        return
    keeping = asyncio.create_task(_keep(store, name, holder), name="ricordo-lease")
    try:
        yield True
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        with contextlib.suppress(RicordoError):  # where that cannot be written, it runs out
            await store.derive(lambda tx: tx.leases.drop(name, holder))


async def _keep(store: Store, name: str, holder: str) -> None:
    while True:
        await asyncio.sleep(LEASE_MS / 3_000)
        with contextlib.suppress(RicordoError):  # once more in ten seconds
            await _take(store, name, holder)


async def _take(store: Store, name: str, holder: str) -> bool:
    now = _now()
    return await store.derive(lambda tx: tx.leases.take(name, holder, now=now, until=now + LEASE_MS, is_gone=is_gone))


def _now() -> int:
    """Unix milliseconds. Between processes the machine's clock counts, not one that a caller moves."""
    return time.time_ns() // 1_000_000
