"""Brief searches run in the caller's thread; long ones, and those that would wait, in another."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.storage.making import ME, commit, fact

from ricordo.errors import UnavailableError
from ricordo.retrieval.pace import Pace
from ricordo.storage.registry import open_store

BRIEF_MS = 1_000.0
LONG_S = 0.02


def is_here(snapshot):
    """Return whether the current thread answers."""
    snapshot.statistics.size(ME, ("k",))
    return threading.current_thread() is threading.main_thread()


async def asked(pace, times, *, kind="search", is_calm=True, ask=is_here):
    return [await pace.read(ask, kind, is_calm=is_calm) for _ in range(times)]


async def test_after_three_brief_searches_the_next_run_in_the_caller_thread(store):
    pace = Pace(store, brief_ms=BRIEF_MS)
    assert await asked(pace, 6) == [False, False, False, True, True, True]
    assert await asked(pace, 4, kind="another") == [False, False, False, True]
    assert await asked(pace, 2, is_calm=False) == [False, False]


async def test_three_long_searches_of_five_move_back_to_a_thread(store):
    def long(snapshot):
        time.sleep(LONG_S)
        return is_here(snapshot)

    pace = Pace(store, brief_ms=1_000 * LONG_S / 2)
    await asked(pace, 5, ask=lambda snapshot: None)
    assert await asked(pace, 4, ask=long) == [True, True, True, False]


async def test_with_zero_every_search_uses_a_thread(store):
    assert not any(await asked(Pace(store, brief_ms=0), 6))


async def test_the_caller_thread_sees_recent_writes(store):
    pace = Pace(store, brief_ms=BRIEF_MS)
    for written in range(8):
        (count,) = await asked(pace, 1, ask=lambda snapshot: snapshot.statistics.size(ME, ("k",))[0])
        assert count == written
        await commit(store, add=(fact(f"the lake {written}"),))
    assert (await asked(pace, 1)) == [True]


async def test_other_tasks_run_before_each_brief_search(store):
    pace, order = Pace(store, brief_ms=BRIEF_MS), []
    await asked(pace, 3)

    async def others():
        for _ in range(3):
            order.append("other")
            await asyncio.sleep(0)

    def ask(snapshot):
        order.append("search" if is_here(snapshot) else "elsewhere")

    await asyncio.gather(*(asked(pace, 1, ask=ask) for _ in range(3)), others())
    assert order.count("search") == 3
    assert order.index("search") >= 2  # `others` made at least two steps before each search
    assert "elsewhere" not in order


async def test_a_nested_search_uses_a_thread(store):
    def ask(snapshot):
        with pytest.raises(UnavailableError, match="another question"):
            store.read_here(is_here)
        return is_here(snapshot)

    pace = Pace(store, brief_ms=BRIEF_MS)
    await asked(pace, 3)
    assert await asked(pace, 1, ask=ask) == [True]


async def test_a_deleted_index_is_rebuilt_in_a_thread(tmp_path):
    store = open_store(f"{tmp_path}/folder/", durability="process")
    try:
        await commit(store, add=(fact("the lake"),))
        pace = Pace(store, brief_ms=BRIEF_MS)
        await asked(pace, 3)
        for file in store.path.parent.glob(f"{store.path.name}*"):
            file.unlink()
        assert await asked(pace, 1) == [False]
        assert await asked(pace, 1, ask=lambda snapshot: snapshot.statistics.size(ME, ("k",))[0]) == [1]
    finally:
        store.close()


async def test_closing_waits_for_a_running_search_and_refuses_new_ones(store):
    closing = threading.Thread(target=store.close)

    def ask(snapshot):
        closing.start()
        time.sleep(LONG_S)
        return snapshot.statistics.size(ME, ("k",))[0]

    assert store.read_here(ask) == 0
    closing.join()
    with pytest.raises(UnavailableError, match="closed"):
        store.read_here(is_here)
    with pytest.raises(UnavailableError, match="closed"):
        await Pace(store, brief_ms=BRIEF_MS).read(is_here, "search", is_calm=True)
