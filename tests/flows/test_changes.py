"""`changes`: every change of a memory once, in order, as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

import pytest

from ricordo import InvalidError, Memory, Scope
from ricordo.model import Commit
from ricordo.sync import Memory as Blocking


async def take(memory: Memory, count: int, *, after: int | None) -> list[Commit]:
    found: list[Commit] = []
    async with asyncio.timeout(20):
        async for commit in memory.changes(after=after):
            found.append(commit)
            if len(found) == count:
                break
    return found


async def test_changes_come_in_order_with_their_words() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        first = await memory.remember("Anna likes tea")
        await memory.correct(first.id, "Anna likes coffee")
        found = await take(memory, 2, after=0)
        assert [each.origin for each in found] == ["remember", "correct"]
        assert found[0].words == "Anna likes tea"
        assert found[1:] == await take(memory, 1, after=found[0].seq)


async def test_without_a_number_only_what_is_new_comes() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember("Anna likes tea")
        assert await told_while(memory.remember, "Ben likes milk", to=memory)


async def told_while(remember: Callable[[str], Awaitable[object]], text: str, *, to: Memory) -> bool:
    """Return whether the next change is a new one, made again and again until one comes."""
    waiting = asyncio.create_task(take(to, 1, after=None))
    while not (await asyncio.wait([waiting], timeout=0.1))[0]:
        await remember(text)
    return [each.words for each in await waiting] == [text]


async def test_another_processes_changes_come_too(tmp_path: Path) -> None:
    store = tmp_path / "me.db"
    async with Memory.open(store, embedder=None) as memory, Memory.open(store, embedder=None) as other:
        assert await told_while(other.remember, "Ben likes milk", to=memory)


async def test_another_owners_changes_do_not() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.scoped(Scope(owner="ann")).remember("The alarm code is on the fridge")
        await memory.remember("Ben likes milk")
        assert [each.words for each in await take(memory, 1, after=0)] == ["Ben likes milk"]


@pytest.mark.parametrize("after", [-1, True, "3"])
async def test_a_wrong_number_is_refused(after: int) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        with pytest.raises(InvalidError, match="after must be"):
            await take(memory, 1, after=after)


def test_the_blocking_memory_iterates() -> None:
    with Blocking.open(":memory:", embedder=None) as memory:
        memory.remember("Anna likes tea")
        memory.remember("Ben likes milk")
        found = list(islice(memory.changes(after=0), 2))
        assert [each.words for each in found] == ["Anna likes tea", "Ben likes milk"]
