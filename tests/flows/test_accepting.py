"""Accept a replay of a run, whole or item by item, without losing what people changed."""

from __future__ import annotations

from typing import Any

import pytest

import ricordo
from ricordo import Memory
from tests.flows.conftest import ConfirmingModel, Place
from tests.flows.test_consolidation import contents, fact, opened, person, proposal  # noqa: F401 - a fixture
from tests.storage.canonical import canonical
from tests.storage.making import rows

CELLO, ROME, FLUTE = "Anna plays the cello", "Anna lives in Rome", "Boris plays the flute"
TEA = "Anna drinks green tea"


async def prepared(open_: Any) -> tuple[Memory, Any]:
    memory = await open_(proposal(fact(ROME, "e1"), fact(CELLO, "e2"), fact(TEA, "e3")))
    await memory.add("Anna lives in Rome.", session="s1", id="m1")
    await memory.add("Anna plays the cello, and Boris the flute.", session="s1", id="m2")
    await memory.add("Anna drinks green tea.", session="s1", id="m3")
    return memory, await memory.consolidate()


async def replayed(memory: Memory, run: Any) -> Any:
    better = proposal(
        fact(CELLO, "e2"),
        fact(FLUTE, "e2", about=["Boris"], slot="instrument"),
        fact("Nothing", "e9"),
        entities=[person("Boris", "e2")],
    )
    return await memory.replay(run.id, model=ConfirmingModel([better], name="better"))


def number_of(run: Any, text: str) -> int:
    return next(number for number, item in enumerate(run.items, start=1) if item.text == text)


def told(run: Any) -> set[tuple[str, str]]:
    return {(item.what, item.text) for item in run.items}


async def test_a_replay_is_accepted_whole_and_taken_back(opened, place):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    await memory.settle()
    before, log = canonical(place.index), await memory.log()
    done = await memory.accept(again)
    assert (done.id, done.kind, done.state, done.model) == (again.id, "replay", "done", "better")
    assert told(done) == {("added", FLUTE), ("entity", "Boris"), ("missing", ROME), ("missing", TEA)}
    assert await contents(memory) == {CELLO, FLUTE}
    (commit,) = [each for each in await memory.log() if each not in log]
    assert commit.run_id == again.id and commit.reason == "accept"
    flute = next(node for node in (await memory.list(type="semantic")).nodes if node.content == FLUTE)
    assert [node.id for node in (await memory.explain(flute.id)).sources] == ["m2"] and flute.about == ("Boris",)
    kept = await memory.run(again.id)
    assert (kept.model, kept.tokens_in, kept.sessions) == ("better", again.tokens_in, ("s1",))
    assert ("missing", ROME) in told(kept)
    assert [each.id for each in await memory.runs()] == [again.id, run.id]
    assert not (await memory.consolidate()).items, "its conversation does not wait again"
    await memory.undo(again.id)
    assert await contents(memory) == {CELLO, ROME, TEA}
    assert canonical(place.index) == before
    assert told(await memory.accept(again.id)) == told(done), "an undone replay can be accepted again"
    assert (await memory.doctor()).ok


async def test_items_are_accepted_one_by_one_and_only_once(opened):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    flute, rome = number_of(again, FLUTE), number_of(again, ROME)
    assert told(await memory.accept(again.id, [flute])) == {("added", FLUTE), ("entity", "Boris")}
    assert await contents(memory) == {CELLO, FLUTE, ROME, TEA}
    both = await memory.accept(again.id, [rome, flute])
    assert told(both) == {("added", FLUTE), ("entity", ""), ("missing", ROME)}
    log = await memory.log()
    assert told(await memory.accept(again.id, [rome, flute])) == told(both)
    assert await memory.log() == log
    for wrong in (0, 99, True, number_of(again, CELLO), number_of(again, "Nothing")):
        with pytest.raises(ricordo.InvalidError, match="item"):
            await memory.accept(again.id, [wrong])
    await memory.undo(again.id)
    assert await contents(memory) == {CELLO, ROME, TEA}, "all changes of it, as one"


@pytest.mark.parametrize("how", ["confirm", "correct", "reinforce", "update", "demote", "said again"])
async def test_memories_changed_since_the_run_are_kept(opened, how):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    tea = next(item.id for item in run.items if item.text == TEA)
    if how == "correct":
        await memory.correct(tea, "Anna drinks black tea")
    elif how == "update":
        await memory.update(tea, tags=("drinks",))
    elif how == "said again":
        await memory.remember(TEA)
    else:
        await getattr(memory, how)(tea)
    done = await memory.accept(again.id)
    assert await contents(memory) == {CELLO, FLUTE, "Anna drinks black tea" if how == "correct" else TEA}
    assert [item.id for item in done.items if item.what == "kept"] == ([] if how == "correct" else [tea])
    log = await memory.log()
    await memory.accept(again.id)
    assert await memory.log() == log


async def test_a_memory_whose_change_was_undone_is_not_kept(opened):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    await memory.confirm(next(item.id for item in run.items if item.text == TEA))
    await memory.undo((await memory.log())[0].seq)
    await memory.accept(again.id)
    assert await contents(memory) == {CELLO, FLUTE}


@pytest.mark.parametrize("how", ["forget", "update", "correct"])
async def test_a_replay_is_refused_when_a_message_changed_meanwhile(opened, how):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    await (memory.forget("m1") if how == "forget" else getattr(memory, how)("m1", content="Anna lives in Oslo."))
    log = await memory.log()
    for items in (None, [number_of(again, FLUTE)]):
        with pytest.raises(ricordo.ConflictError, match="changed or removed"):
            await memory.accept(again.id, items)
    assert await memory.log() == log


async def test_missing_and_foreign_replays_are_not_accepted(opened, place: Place):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    for scope in (ricordo.Scope(owner="eve"), ricordo.Scope(owner="eve", chat="group")):
        with pytest.raises(ricordo.NotFoundError):
            await memory.scoped(scope).accept(again.id)
    with pytest.raises(ricordo.DeniedError):
        await memory.scoped(ricordo.Scope(owner="me", trust="web")).accept(again.id)
    with pytest.raises(ricordo.NotFoundError):
        await memory.accept(run.id)
    undone = await replayed(memory, run)
    await memory.undo(run.id)
    with pytest.raises(ricordo.ConflictError, match="undone"):
        await memory.accept(undone.id)
    await memory.add("Something else.", id="other")
    await memory.erase(id="other")
    assert rows(place.index, "SELECT count(*) FROM proposals") == [(0,)]
    with pytest.raises(ricordo.NotFoundError):
        await memory.accept(again.id)


async def test_a_replay_does_not_bring_back_forgotten_facts(opened):  # noqa: F811
    memory, run = await prepared(opened)
    again = await replayed(memory, run)
    await memory.forget((await memory.remember(FLUTE)).id)
    done = await memory.accept(again.id, [number_of(again, FLUTE)])
    assert ("refused", "was forgotten") in {(item.what, item.reason) for item in done.items}
    assert FLUTE not in await contents(memory)
