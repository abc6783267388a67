"""No method shows data of another owner, or reveals that it exists."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ricordo import DeniedError, InvalidError, Memory, NotFoundError, Scope, Settings
from ricordo.language import ScriptedModel
from ricordo.storage.database.statements import Statements
from tests.contract import server
from tests.leaks.calls import NOT_TRIED, table
from tests.leaks.many import Still, beside_another, try_all
from tests.leaks.world import extracted, group, others, private


@pytest.fixture(params=["file", *(["postgres"] if server.is_wanted() else [])])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    place = server.guarded_location(tmp_path) if request.param == "postgres" else tmp_path / "me.db"
    settings = Settings(durability="process")
    model = ScriptedModel(extracted)
    async with Memory.open(place, embedder="hashing", model=model, settings=settings, clock=Still()) as opened:
        yield opened


def test_every_public_method_is_tested(tmp_path: Path) -> None:
    public = {name for name, _ in inspect.getmembers(Memory) if not name.startswith("_")}
    assert public == set(table(tmp_path)) | set(NOT_TRIED)


async def test_no_canary_leaks_and_forbidden_data_looks_absent(memory: Memory, tmp_path: Path) -> None:
    tally = await try_all(memory, tmp_path, calls=800, seed=7)
    assert (tally.canaries, tally.told_apart) == ([], [])
    assert set(tally.by_method) == set(table(tmp_path))


async def test_only_the_opener_of_a_store_sees_its_owners(memory: Memory) -> None:
    kept = (await others(memory))["id"]
    assert (await memory.store_view.owner_of(kept), Scope(owner="eve") in await memory.store_view.owners()) == (
        Scope(owner="eve"),
        True,
    )
    with pytest.raises(DeniedError):
        await memory.scoped(Scope(owner="eve")).store_view.owners()
    with pytest.raises(DeniedError):
        await memory.scoped(Scope(owner="eve")).store_view.owner_of(kept)


async def test_statistics_ignore_other_owners(memory: Memory, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "alone.db", embedder="hashing", clock=Still()) as alone:
        await others(alone)
        await alone.settle(600)
        await private(memory, Random(1))
        await group(memory, Random(2))
        await others(memory)
        await memory.settle(600)
        eve, eve_alone = (each.scoped(Scope(owner="eve", chat="other")) for each in (memory, alone))
        assert asdict(await eve.stats()) == asdict(await eve_alone.stats())
        assert [commit.reason for commit in await eve.log()] == [commit.reason for commit in await eve_alone.log()]
        assert [each.name for each in await eve.people()] == [each.name for each in await eve_alone.people()]


@pytest.mark.slow
async def test_ten_thousand_memories_of_another_owner_change_no_result(memory: Memory) -> None:
    before, after = await beside_another(memory, count=10_000)
    assert sum(bool(said) for said in before) >= 24
    assert after == before


async def test_another_owner_costs_a_search_no_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search asks the database depends on what its owner stored, apart from one look for versions."""
    asked: list[str] = []
    for name in ("rows", "value"):
        whole = getattr(Statements, name)

        def noted(self: Statements, statement: str, *given: Any, whole: Any = whole) -> Any:
            asked.append(statement)
            return whole(self, statement, *given)

        monkeypatch.setattr(Statements, name, noted)
    told = []
    for count in (0, 2_000):
        async with Memory.open(tmp_path / f"{count}.db", embedder="hashing", clock=Still()) as memory:
            await beside_another(memory, count=count)
            me = memory.scoped(Scope(owner="me"))
            for _ in range(2):
                asked.clear()
                for question in ("Who likes tea in Paris?", "ships rope", "zqabsent7"):
                    await me.search(question)
            told.append({each: asked.count(each) for each in ("names_known", "live_postings", "windows", "traits_of")})
    assert told[0] == told[1]


async def test_a_member_shares_group_memories_only(memory: Memory) -> None:
    ann, bob = (memory.scoped(Scope(owner=owner, chat="team")) for owner in ("ann", "bob"))
    mine = await ann.remember("I like coffee")
    ours = await ann.remember("Our standup is at nine", shared=True)
    assert ((mine.owner, mine.chat), (ours.owner, ours.chat)) == (("ann", ""), ("", "team"))
    assert {node.id for node in (await ann.list()).nodes} == {mine.id, ours.id}
    assert {node.id for node in (await bob.list()).nodes} == {ours.id}
    elsewhere = memory.scoped(Scope(owner="ann", chat="family"))
    assert {node.id for node in (await elsewhere.list()).nodes} == {mine.id}
    with pytest.raises(NotFoundError):
        await elsewhere.forget(ours.id)
    await bob.forget(ours.id)  # a member of the chat
    with pytest.raises(NotFoundError):
        await bob.forget(mine.id)
    with pytest.raises(InvalidError, match="no chat"):
        await memory.scoped(Scope(owner="ann")).remember("Our standup is at ten", shared=True)


async def test_a_memory_refers_only_to_entities_of_its_side(memory: Memory) -> None:
    ann, bob = (memory.scoped(Scope(owner=owner, chat="team")) for owner in ("ann", "bob"))
    shared = await ann.remember("Lena leads the team", about=["Lena"], shared=True)
    await ann.remember("Lena owes me money", about=["Lena"])
    await memory.settle(600)
    assert (await bob.entity("Lena")).mention_count == 1
    assert [node.id for node in (await bob.entity("Lena")).facts] == [shared.id]
    await ann.remember("my boss is Zora")
    assert [each.name for each in await bob.people()] == ["Lena"]
    with pytest.raises(NotFoundError):
        await bob.entity("Zora")


async def test_a_change_with_private_rows_can_be_undone_by_its_owner_only(memory: Memory) -> None:
    """Ann's statement about her wife is hers; the message belongs to the group."""
    ann, bob = (memory.scoped(Scope(owner=owner, chat="team")) for owner in ("ann", "bob"))
    await memory.scoped(Scope(owner="ann")).add_entity("Sarah")
    await ann.add("my wife is Sarah", speaker="Ann")
    (commit, *_) = await ann.log()
    assert (await ann.entity("my wife")).name == "Sarah"
    with pytest.raises(NotFoundError):
        await bob.undo(commit.seq)
    await ann.undo(commit.seq)


async def test_evidence_for_a_group_memory_must_be_visible_to_the_group(memory: Memory) -> None:
    ann = memory.scoped(Scope(owner="ann", chat="team"))
    mine, ours = await ann.remember("I heard it on Monday"), await ann.remember("The standup is at nine", shared=True)
    with pytest.raises(InvalidError, match="private"):
        await ann.correct(ours.id, "The standup is at ten", evidence=[mine.id])


async def test_only_the_opener_of_a_store_maintains_all_owners(memory: Memory) -> None:
    for name in ("gc", "prune", "maintain"):
        with pytest.raises(DeniedError):
            await getattr(memory.scoped(Scope(owner="eve")), name)(all_owners=True)
