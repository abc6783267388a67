"""The same random operations leave the same memory on every backend."""

from __future__ import annotations

import pytest

from ricordo import Memory
from tests.contract.histories import compared


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_equal_histories_leave_equal_memories(tmp_path, seed):
    acts, differences = compared(tmp_path, seed=seed, steps=30)
    assert differences == []
    assert sum(":" not in act for act in acts) > 10  # refused ones leave nothing to compare


async def test_everything_shown_survives_reopening(open_memory, clock, tmp_path):
    from tests.contract.canonical import canonical
    from tests.storage.histories import PEOPLE, History

    async def dump(memory: Memory):
        return await canonical(memory, ids=history.ids, names=PEOPLE, points=(3, 9))

    async with open_memory() as memory:
        history = History(memory, clock, tmp_path, seed=77)
        for _ in range(25):
            await history.step()
        await memory.settle(600)
        before = await dump(memory)
    async with open_memory() as memory:
        assert await dump(memory) == before
