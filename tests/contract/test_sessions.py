"""A run names the sessions it read, and never one that began after it."""

from __future__ import annotations

import pytest

from ricordo import Scope
from ricordo.clock import from_ms
from ricordo.language import ScriptedModel
from tests.contract.backends import SHARED
from tests.contract.histories import answer
from tests.storage.folders import without_index
from tests.storage.making import raw


@pytest.fixture
async def consolidated(open_memory):
    """An open memory whose one run has read the sessions "kept" and "gone", and the id of the run."""
    async with open_memory(model=ScriptedModel(answer)) as memory:
        await memory.add("Anna likes tea", session="kept")
        await memory.add("Bo plays chess", session="gone")
        run = await memory.consolidate()
        assert run.sessions == ("kept", "gone")
        yield memory, run.id


async def test_a_session_after_an_erased_one_is_in_no_earlier_run(consolidated):
    memory, run = consolidated
    await memory.erase(session="gone")
    await memory.add("It rains", session="later")
    assert (await memory.run(run)).sessions == ("kept",)


async def test_an_undone_session_comes_back_beside_one_that_began_meanwhile(memory):
    first = await memory.add("Anna likes tea", session="first")
    undone = await memory.undo((await memory.log(1))[0].seq)
    second = await memory.add("It rains", session="second")
    await memory.undo(undone.seq)
    assert {node.id: node.session for node in (await memory.list(type="any")).nodes} == {
        first: "first",
        second: "second",
    }
    assert (await memory.doctor()).ok


async def test_the_sessions_of_a_run_survive_reopening_and_erasing_all_of_them(consolidated, open_memory):
    memory, run = consolidated
    await memory.erase(session="gone")
    await memory.erase(session="kept")
    await memory.close()
    async with open_memory() as again:
        await again.add("It rains", session="later")
        assert (await again.run(run)).sessions == ()
        assert (await again.doctor()).ok


@pytest.mark.parametrize("backend", SHARED, indirect=True)
async def test_a_migrated_or_rebuilt_store_gives_no_key_of_a_session_again(
    consolidated, open_memory, backend, tmp_path
):
    memory, run = consolidated
    await memory.erase(session="gone")
    target = f"{tmp_path / 'other'}{'/' if backend == 'sqlite' else '.db'}"
    await memory.migrate(target)
    await memory.close()
    if backend == "folder":
        without_index(tmp_path / "memory")
    for place in (None, target):
        async with open_memory() if place is None else type(memory).open(place, embedder=None) as again:
            await again.add("It rains", session="later")
            assert (await again.run(run)).sessions == ("kept",)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_store_of_an_older_version_gives_no_key_again_that_a_run_holds(consolidated, open_memory, where):
    memory, run = consolidated
    await memory.erase(session="gone")
    await memory.close()
    connection = raw(where)
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'sessions'")
    connection.close()
    async with open_memory() as again:
        await again.add("It rains", session="later")
        assert (await again.run(run)).sessions == ("kept",)


async def test_of_two_sessions_of_one_name_the_older_one_is_ended(memory):
    """The session of the chat is older; the owner's space is older."""
    me, family = memory.scoped(Scope(owner="me")), memory.scoped(Scope(owner="", chat="family"))
    await me.add("It rains", session="first")
    await family.add("Tea is ready", session="both")
    await me.add("Anna likes tea", session="both")
    await memory.scoped(Scope(owner="me", chat="family")).end_session("both")
    assert [each.ended_at is not None for each in ((await family.session("both")), (await me.session("both")))] == [
        True,
        False,
    ]


async def test_chats_are_those_in_which_an_owner_wrote_and_the_shared_spaces_of_a_member(memory, clock):
    def at(owner, chat=None):
        return memory.scoped(Scope(owner=owner, chat=chat))

    async def told(here):
        return [(each.name, each.messages, each.facts) for each in await here.chats()]

    await at("ann").remember("Anna likes tea")
    await at("ann", "github.com/ann/shop").add("We use pnpm")
    clock.ms += 1_000
    await at("ann", "climbers").remember("The hut is closed", shared=True)
    clock.ms += 1_000
    await at("bob", "climbers").add("It rains")
    await at("bob", "poems").add("Roses are red")
    both = [("climbers", 1, 1), ("github.com/ann/shop", 1, 0)]
    assert await told(at("ann")) == await told(at("ann", "github.com/ann/shop")) == both
    assert await told(at("cy")) == []
    assert await told(at("cy", "poems")) == [("poems", 1, 0)]
    assert (await at("ann").chats())[0].last_at == from_ms(clock.ms)
    await at("ann").create_space("team")
    await at("ann").set_member("team", "bob", "writer")
    await at("bob", "team").add("We meet at noon")
    assert ("team", 1, 0) in await told(at("bob"))
    await at("ann").remove_member("team", "bob")
    assert [name for name, *_ in await told(at("bob"))] == ["climbers", "poems"]
