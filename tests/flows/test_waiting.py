"""A search waits briefly for the vectors of earlier writes, and for nothing later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ricordo import Memory, Message, Settings

MESSAGES = ("leaves at", "plumber")
PATIENT = Settings(fresh_wait_ms=60_000, search_deadline_ms=60_000)  # a busy machine may need longer than the defaults


class Held:
    """An embedder that embeds a message only when released."""

    name, dimension = "held", 4

    def __init__(self) -> None:
        self.let = asyncio.Semaphore(0)
        self.begun = asyncio.Event()

    async def embed(self, text: str, *, kind: str = "query") -> np.ndarray:
        return np.ones(4, np.float32)

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[np.ndarray]:
        if any(word in text for text in texts for word in MESSAGES):  # not what the scale of cosines is measured on
            self.begun.set()
            await self.let.acquire()
        return [np.ones(4, np.float32) for _ in texts]


async def test_a_search_waits_for_earlier_writes_only(tmp_path: Path) -> None:
    held = Held()
    async with Memory.open(tmp_path / "me.db", embedder=held, settings=PATIENT) as memory:
        await memory.add("the ship leaves at nine")
        search = asyncio.ensure_future(memory.search("When does the ship leave?"))
        await held.begun.wait()
        assert not search.done()
        await memory.add("the train leaves at ten")  # the first batch is under way
        held.let.release()
        try:
            found = await asyncio.wait_for(search, 10)
            assert found.hits and found.degraded == ()
            assert memory._opened.backlog.fresh > 0  # the second still waits for its vector
        finally:  # closing waits for the batch
            for _ in range(20):
                held.let.release()
        await memory.settle(600)


async def test_a_search_that_stops_waiting_says_so(tmp_path: Path) -> None:
    held = Held()
    async with Memory.open(tmp_path / "me.db", embedder=held, settings=Settings(fresh_wait_ms=100)) as memory:
        await memory.add("the ship leaves at nine")
        found = await memory.search("When does the ship leave?")
        assert found.hits and "1 memory waits for its vector" in found.degraded[0]
        for _ in range(20):
            held.let.release()
        await memory.settle(600)
        assert (await memory.search("When does the ship leave?")).degraded == ()


async def test_a_search_does_not_wait_for_the_links_of_a_bulk_import() -> None:
    async with Memory.open(":memory:", embedder=None, settings=Settings(fresh_wait_ms=60_000)) as memory:
        await memory.add("My brother is Tom", speaker="Anna")
        await memory.add_many([Message(text=f"Anna met Tom on day {day}", speaker="Anna") for day in range(5_000)])
        found = await memory.search("What did Anna do on day 7?")
        assert "links: names in recent memories are not linked" in found.degraded
        await memory.settle()
        assert (await memory.search("What did Anna do on day 7?")).degraded == ()


@pytest.mark.parametrize("place", ["me.db", "notes/"])
async def test_the_first_search_after_opening_waits_for_what_was_left(tmp_path: Path, place: str) -> None:
    location = f"{tmp_path}/{place}"
    await _left_behind(location)
    async with Memory.open(location, embedder="hashing", settings=Settings(fresh_wait_ms=20_000)) as memory:
        found = await memory.search("Anna's plumber", entity="Anna")
        assert [hit.content for hit in found.hits] == ["Anna knows a plumber"]
        assert found.degraded == ()


async def test_a_search_names_what_was_left_if_there_is_no_time_for_it(tmp_path: Path) -> None:
    await _left_behind(f"{tmp_path}/me.db")
    held = Held()
    settings = Settings(fresh_wait_ms=50, search_deadline_ms=2_000)
    async with Memory.open(tmp_path / "me.db", embedder=held, settings=settings) as memory:
        found = await memory.search("plumber")
        assert "embedding: 1 memory waits for its vector" in found.degraded
        for _ in range(20):
            held.let.release()


async def test_a_search_waits_for_what_another_process_wrote(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder="hashing") as reader:
        await reader.search("plumber")
        async with Memory.open(tmp_path / "me.db", embedder=None) as writer:
            await writer.remember("The plumber comes on Thursdays")
        found = await reader.search("Thursdayz", trace=True)
        assert found.degraded == ()
        assert [hit.content for hit in found.hits] == ["The plumber comes on Thursdays"]  # by its vector alone


async def _left_behind(location: str) -> None:
    """Leave a memory without its vector and its links, as an abrupt exit does."""
    async with Memory.open(location, embedder=None) as memory:
        await memory.add_entity("Anna")
        await memory.settle()
        memory._opened.backlog._closing = True  # it stops before the next memory
        await memory._opened.backlog._task
        await memory.remember("Anna knows a plumber")
