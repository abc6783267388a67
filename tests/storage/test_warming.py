"""Turns are prefetched when a caller pauses or asks again; a search meanwhile waits briefly."""

from __future__ import annotations

import asyncio

import pytest
from tests.storage.making import ME, commit, said

from ricordo.model import Scope
from ricordo.retrieval import service
from ricordo.retrieval.service import Prefetch
from ricordo.storage.database import turns

OTHER = Scope(owner="somebody else")


@pytest.fixture
def tasks():
    return []


@pytest.fixture
async def reading(store, tasks, monkeypatch):
    """A prefetcher for two callers of nine turns each, with a short delay."""
    monkeypatch.setattr(service, "_QUIET_S", 0.001)
    for who in (ME, OTHER):
        await commit(store, who, add=tuple(said("the lake", minutes=n, owner=who.owner) for n in range(9)))

    def beside(work):
        tasks.append(asyncio.ensure_future(work))
        return tasks[-1]

    return Prefetch(store, shelves=("k", "e"), beside=beside)


async def done(tasks):
    """Wait until a started prefetch is done, and one that may start after a pause."""
    for _ in range(3):
        await asyncio.sleep(0.01)
        if tasks:
            await asyncio.wait(tasks)


async def are_read(store, scope):
    def look(tx):
        with tx.turns(tx.visible(scope)) as table:
            return table.holding(("lake",), tx.visible(scope)) is not None

    return await store.read(look)


async def test_turns_are_prefetched_after_the_first_answer_and_a_pause(store, reading, tasks):
    reading.asked(ME, by_vector=False)
    await done(tasks)
    assert not await are_read(store, ME) and not tasks
    reading.answered(ME)
    reading.answered(ME)
    await done(tasks)
    assert await are_read(store, ME) and len(tasks) == 1


async def test_a_second_question_starts_the_prefetch_at_once(store, reading, tasks):
    for _ in range(3):
        reading.asked(ME, by_vector=False)
        reading.answered(ME)
    await done(tasks)
    assert await are_read(store, ME) and len(tasks) == 1


async def test_a_caller_who_leaves_starts_no_prefetch(store, reading, tasks):
    reading.answered(ME)
    reading.close()
    await done(tasks)
    assert not tasks


async def test_cached_turns_are_replaced_only_for_returning_callers(store, reading, tasks, monkeypatch):
    monkeypatch.setattr(turns, "KEPT_MOST", 12)
    reading.answered(ME)
    await done(tasks)
    reading.asked(OTHER, by_vector=False)
    reading.answered(OTHER)
    await done(tasks)
    assert await are_read(store, ME) and not await are_read(store, OTHER)
    reading.asked(OTHER, by_vector=False)
    await done(tasks)
    assert await are_read(store, OTHER)


async def test_turns_of_several_callers_are_cached_at_a_time(store, reading, tasks):
    for scope in (ME, OTHER):
        reading.answered(scope)
        await done(tasks)
    assert await are_read(store, ME) and await are_read(store, OTHER)


@pytest.mark.parametrize(("limit", "most"), [("KEPT_MOST", 8), ("KEPT_CHARS", 71)])
async def test_more_turns_than_the_cache_holds_are_not_prefetched(store, reading, tasks, monkeypatch, limit, most):
    monkeypatch.setattr(turns, limit, most)
    for _ in range(3):
        reading.asked(ME, by_vector=False)
        reading.answered(ME)
    await done(tasks)
    assert not await are_read(store, ME) and len(tasks) == 1


async def test_a_question_waits_only_briefly_for_the_prefetch(reading, tasks, monkeypatch):
    monkeypatch.setattr(service, "_PATIENCE_S", 0.001)
    begin = asyncio.Event()

    def question(tx):
        return None

    async def slow(ask, *_):
        if ask is not question:
            await begin.wait()
        return True

    monkeypatch.setattr(reading._store, "read", slow)
    await reading.read(ME, question)
    reading.load_turns(ME)
    await reading.read(ME, question)
    assert not tasks[0].done()
    monkeypatch.setattr(service, "_PATIENCE_S", 60)
    asyncio.get_running_loop().call_later(0.01, begin.set)
    await reading.read(ME, question)
    assert tasks[0].done()
