"""Every commit is one change event, in order, whichever process made it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from ricordo import Message, Scope, UnavailableError
from ricordo.model import Entity
from ricordo.storage import changes
from tests.contract.backends import SHARED, open_backend
from tests.crash.kills import ROOT
from tests.storage.making import NOON, closing, commit, fact, said

ANNA = Entity(id="anna", type="person", name="Anna", first_seen=NOON, last_updated=NOON, owner="me")


async def taken(store, count, *, after=0):
    """Return the next so many events."""
    found = []
    async with asyncio.timeout(30):
        async for event in changes(store, after=after):
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_an_event_says_who_committed_where_and_what_kinds_of_items(store):
    anna, tea = said("Anna came", session="s"), fact("Anna likes tea", chat="family", owner="")
    await commit(store, entities=(ANNA,), add=(anna,), subjects=((anna.id, "anna"),))
    await commit(store, scope=Scope(owner="me", chat="family"), add=(tea,))
    await commit(store, put=(replace(anna, content="Anna left"),))
    await commit(store, close=(closing(anna),))
    await store.derive(lambda tx: None)
    one, two, three, four = await taken(store, 4)
    assert one.kinds == {"nodes", "sessions", "entities", "aliases", "subjects"}
    assert (one.commit, one.owner, one.chat, one.actor, one.origin) == (1, "me", "", "me", "test")
    assert (two.commit, two.owner, two.chat, two.kinds) == (2, "", "family", {"nodes"})
    assert (three.kinds, four.kinds) == ({"nodes"}, {"nodes"})
    assert await store.read(lambda tx: tx.history.events(after=1, most=2)) == [two, three]
    assert await store.read(lambda tx: tx.history.events(after=4, most=2)) == []


async def test_undo_and_erasure_are_events_and_what_was_erased_is_in_none(memory):
    store = memory._opened.store
    first = await memory.remember("Anna likes tea", about=["Anna"])
    await memory.undo((await memory.log(1))[0].seq)
    await memory.undo((await memory.log(1))[0].seq)
    *_, back = await taken(store, 3)
    assert back.kinds == {"nodes", "entities", "aliases", "subjects"}
    await memory.erase(id=first.id)
    *before, erasure = await taken(store, 4)
    assert (erasure.origin, erasure.kinds) == ("erase", {"erasures"})
    assert not any("nodes" in event.kinds for event in before)


async def test_a_follower_sees_the_commits_of_this_process_once_and_in_order(memory):
    following = asyncio.create_task(taken(memory._opened.store, 41))
    for number in range(20):
        memory.add_nowait(f"unawaited {number}")
        await memory.add(f"awaited {number}")
    await memory.add_many([Message(text=f"one of many {number}") for number in range(9)])
    assert [event.commit for event in await following] == [*range(1, 42)]
    assert (await memory.log(1))[0].seq == 41


WRITER = """
import asyncio, sys
from ricordo import Memory, Scope

async def main(place, name):
    async with Memory.open(place, embedder=None, scope=Scope(owner=name)) as memory:
        for number in range(15):
            await memory.add(f"{name} {number}")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", SHARED, indirect=True)
async def test_a_follower_sees_the_commits_of_all_processes_once_and_in_order(memory, where):
    following = asyncio.create_task(taken(memory._opened.store, 45))
    command = [sys.executable, "-c", WRITER, where]
    others = [await asyncio.create_subprocess_exec(*command, name, cwd=ROOT) for name in ("one", "two")]
    for number in range(15):
        await memory.add(f"own {number}")
    found = await following
    assert [await other.wait() for other in others] == [0, 0]
    assert [event.commit for event in found] == [*range(1, 46)]
    actors = [event.actor for event in found]
    assert {name: actors.count(name) for name in set(actors)} == {"me": 15, "one": 15, "two": 15}


@pytest.mark.parametrize("backend", ["folder"], indirect=True)
async def test_rebuilding_an_index_repeats_no_event(memory):
    for number in range(3):
        await memory.add(f"before {number}")
    following = asyncio.create_task(taken(memory._opened.store, 1, after=3))
    await memory.rebuild_index()
    await memory.add("after")
    assert [event.commit for event in await following] == [4]


async def test_a_stream_ends_when_the_store_is_closed(where):
    store = open_backend(where)
    following = asyncio.create_task(taken(store, 1))
    await asyncio.sleep(0.05)
    store.close()
    with pytest.raises(UnavailableError, match="closed"):
        await following
