"""A search waits briefly for the vectors of earlier writes, and for nothing later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ricordo import Memory, Settings


class Held:
    """An embedder that embeds a message only when released."""

    name, dimension = "held", 4

    def __init__(self) -> None:
        self.let = asyncio.Semaphore(0)
        self.begun = asyncio.Event()

    async def embed(self, text: str, *, kind: str = "query") -> np.ndarray:
        return np.ones(4, np.float32)

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[np.ndarray]:
        self.begun.set()
        await self.let.acquire()
        return [np.ones(4, np.float32) for _ in texts]


async def test_a_search_waits_for_earlier_writes_only(tmp_path: Path) -> None:
    held = Held()
    async with Memory.open(tmp_path / "me.db", embedder=held, settings=Settings(fresh_wait_ms=20_000)) as memory:
        await memory.add("the ship leaves at nine")
        search = asyncio.ensure_future(memory.search("When does the ship leave?"))
        await held.begun.wait()
        assert not search.done()
        await memory.add("the train leaves at ten")  # the first batch is under way
        held.let.release()
        found = await asyncio.wait_for(search, 10)
        assert found.hits and found.degraded == ()
        assert memory._opened.backlog.fresh > 0  # the second still waits for its vector
        for _ in range(20):
            held.let.release()
        await memory.settle(20)


async def test_a_search_that_stops_waiting_says_so(tmp_path: Path) -> None:
    held = Held()
    async with Memory.open(tmp_path / "me.db", embedder=held, settings=Settings(fresh_wait_ms=100)) as memory:
        await memory.add("the ship leaves at nine")
        found = await memory.search("When does the ship leave?")
        assert found.hits and "wait for their vector" in found.degraded[0]
        for _ in range(20):
            held.let.release()
        await memory.settle(20)
        assert (await memory.search("When does the ship leave?")).degraded == ()
