"""Cancelled callers do no harm: the writer lives, and acknowledged writes are there."""

from __future__ import annotations

import asyncio
import gc
import logging
import random

import pytest

from ricordo.memory import Memory
from ricordo.model import Message
from ricordo.settings import Settings

CANCELLED = 2_000
AT_ONCE = 250


class Callers:
    """Cancel tasks at random moments, and collect the results of the others."""

    def __init__(self, memory):
        self.memory = memory
        self.dice = random.Random(11)
        self.kept = {}
        self.cancelled = 0
        self.number = 0

    async def add(self, text):
        self.kept[await self.memory.add(text)] = text

    async def add_many(self, text):
        texts = [f"{text} {part}" for part in range(3)]
        ids = await self.memory.add_many([Message(text=each, session="s") for each in texts])
        self.kept.update(zip(ids, texts, strict=True))

    async def remember(self, text):
        node = await self.memory.remember(text, about=["Anna"])
        self.kept[node.id] = text

    async def search(self, text):
        await self.memory.search(text)

    def call(self):
        self.number += 1
        act = self.dice.choices((self.add, self.add_many, self.remember, self.search), (60, 8, 8, 1))[0]
        return asyncio.create_task(act(f"{self.number} about tea"))

    async def wave(self):
        """Start many tasks, cancel most of them one by one, and let the rest finish."""
        tasks = [self.call() for _ in range(AT_ONCE)]
        await asyncio.sleep(0)  # all of them have begun
        for task in self.dice.sample(tasks, AT_ONCE * 9 // 10):
            if self.dice.random() < 0.2:
                await asyncio.sleep(self.dice.choice((0, 0, 0.0005)))
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            self.cancelled += isinstance(outcome, asyncio.CancelledError)
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome


@pytest.mark.slow
def test_thousands_of_cancelled_awaits_damage_nothing(tmp_path, caplog):
    path = tmp_path / "m.db"
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with Memory.open(path, embedder="hashing", settings=Settings(durability="process")) as memory:
            callers = Callers(memory)
            while callers.cancelled < CANCELLED:
                await callers.wave()
            await callers.add("after all that")
            assert memory._opened.store.writer.is_alive
            gc.collect()
        async with Memory.open(path, embedder="hashing") as memory:
            for id_, text in callers.kept.items():
                assert (await memory.get(id_)).content == text
            return callers, await memory.doctor(), (await memory.search("after all that")).hits

    with caplog.at_level(logging.WARNING):
        callers, report, hits = asyncio.run(main())
    assert callers.cancelled >= CANCELLED
    assert len(callers.kept) > 100, "everything was cancelled: the test no longer mixes"
    assert report.ok, report
    assert hits[0].content == "after all that"
    assert complaints == []
    assert [record.getMessage() for record in caplog.records] == []


def test_a_cancelled_write_still_happens(tmp_path):
    async def main():
        async with Memory.open(tmp_path / "m.db", embedder=None) as memory:
            task = asyncio.create_task(memory.add("said anyway", id="mine"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await memory.add("next")
            return (await memory.get("mine")).content

    assert asyncio.run(main()) == "said anyway"


def test_a_cancelled_close_still_closes(tmp_path):
    async def main():
        memory = await Memory.open(tmp_path / "m.db", embedder="hashing")
        for number in range(300):
            memory.add_nowait(f"message {number}")
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        async with Memory.open(tmp_path / "m.db", embedder="hashing") as again:
            return sum((await again.stats()).nodes.values())

    assert asyncio.run(main()) == 300
