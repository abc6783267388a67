"""Limits on what one call may bring, and calls that once took as long as the square of their input."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ricordo import Fact, InvalidError, Memory, Message

_GENEROUS_S = 10.0
"""On a busy core. Each of these calls took half a minute or more before."""


async def took(work: Awaitable[Any]) -> float:
    started = time.process_time()
    await work
    return time.process_time() - started


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("about", lambda memory, many: memory.remember("a fact", about=many)),
        ("about", lambda memory, many: memory.remember_many([Fact(content="a fact", about=many)])),
        ("about", lambda memory, many: memory.add_entity("Zed", aliases=many)),
        ("tags", lambda memory, many: memory.remember("a fact", tags=many)),
        ("attributes", lambda memory, many: memory.remember("a fact", attributes=dict.fromkeys(many, "x" * 50))),
    ],
)
async def test_a_list_that_is_too_long_is_refused_by_name(field: str, call: Callable[[Memory, list[str]], Any]) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        with pytest.raises(InvalidError, match=field) as caught:
            await call(memory, [f"Person Name{number}" for number in range(4_000)])
        assert "at most" in caught.value.hint


async def test_many_names_in_one_batch_take_time_in_proportion() -> None:
    """Four thousand names took 54 seconds under the write lock."""
    async with Memory.open(":memory:", embedder=None) as memory:
        facts = [
            Fact(content=f"Fact number {n}", about=[f"Person Name{n * 150 + each}" for each in range(150)])
            for n in range(20)
        ]
        assert await took(memory.remember_many(facts)) < _GENEROUS_S
        assert len(await memory.people(limit=1_000)) == 1_000


async def test_blanks_stop_no_one() -> None:
    """One message of 12 KB held every writer for 30 seconds."""
    async with Memory.open(":memory:", embedder=None) as memory:
        gone = await memory.remember("Bob plays the cello")
        await memory.forget(gone.id)
        blank = "Q" + " " * 100_000 + "x"
        id = await memory.add(f"Bob said{blank}")
        for work in (memory.add(blank), memory.remember(blank), memory.forget(id), memory.context(blank)):
            assert await took(work) < _GENEROUS_S


@pytest.mark.parametrize("given", [["tea"], "tea", None, [{"text": "tea"}], [Message(text="tea"), 7]])
async def test_a_list_of_something_else_is_refused_by_name_and_nothing_is_stored(memory: Any, given: Any) -> None:
    with pytest.raises(InvalidError, match="messages"):
        await memory.add_many(given)
    with pytest.raises(InvalidError, match="facts_"):
        await memory.remember_many(given)
    assert not (await memory.list(type="any")).nodes
