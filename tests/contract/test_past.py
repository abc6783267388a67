"""The store as it was is what was seen then, whatever happened since and wherever the clock went."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from ricordo.encoding.mentions import links
from ricordo.language import ScriptedModel
from ricordo.model import Change, Scope
from ricordo.storage.values import When
from tests.contract.canonical import canonical, differences
from tests.contract.histories import answer
from tests.contract.test_commits import ALL
from tests.storage.histories import HOUR, NICKNAMES, PEOPLE, History
from tests.storage.making import ME, NOON, WHY, closing, commit, fact

STEPS = 30
NAMES = (*PEOPLE, *NICKNAMES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_the_past_is_what_was_seen_then(memory, clock, tmp_path, seed):
    history = History(memory, clock, tmp_path, seed=seed)
    seen: dict[int, dict] = {}
    for number in range(STEPS):
        await history.step()
        await memory.settle(600)
        if number % 4 == 1 and (made := await history.commit()):
            at = (await memory.log(1))[0].at
            kept, clock.ms = clock.ms, int(at.timestamp() * 1_000)  # what had expired by then had expired
            dump = await canonical(memory, ids=(), names=NAMES)
            clock.ms = kept
            seen[made] = dump
    last = await canonical(memory, ids=(), names=NAMES, points=sorted(seen))
    for made, dump in seen.items():
        then = [{**each, "notice": ""} for each in last[f"as of {made}"]]  # which says what is closed today
        assert then == [*dump["memories"], *dump["archived"]], made
        for name in NAMES:
            assert differences(last[f"entity {name} as of {made}"], dump[f"entity {name}"]) == [], (name, made)


async def test_the_past_names_who_wrote_a_memory_of_a_shared_space(memory):
    ann, bob = (memory.scoped(Scope(owner=name, chat="team")) for name in ("ann", "bob"))
    await ann.create_space("team", members=["bob"])
    fact = await bob.remember("The alarm code of the boathouse is Mango", shared=True)
    told = (await ann.log(1))[0].seq
    await ann.correct(fact.id, "The alarm code of the boathouse is Papaya")
    corrected = (await ann.log(1))[0].seq

    async def written(**when) -> list[tuple[str, str]]:
        hits = (await ann.search("alarm code of the boathouse", **when)).hits
        return [(hit.content.split()[-1], hit.writer) for hit in hits]

    assert await written(as_of=told) == [("Mango", "bob")]
    assert await written(as_of=corrected) == await written() == [("Papaya", "ann")]


async def test_an_instant_stands_for_the_last_commit_by_number_that_is_not_after_it(store):
    """A clock that went back shows an instant twice: the later moment is meant."""
    for hours, text in ((0, "first"), (2, "second"), (-1, "third"), (3, "fourth")):
        change = Change(add=(fact(text),))
        at = NOON + timedelta(hours=hours)
        await store.write(lambda _, change=change: (change, None), scope=ME, reason=WHY, at=at)

    async def then(**when):
        def ask(tx):
            return [node.content for node in tx.nodes.page(ME, ALL, now=0, before_key=None, limit=9)]

        return await store.read_past(ask, scope=ME, when=When(**when), links=links)

    noon = int(NOON.timestamp() * 1_000)
    assert await then(at=noon - 2 * HOUR) == []
    assert await then(at=noon - HOUR) == ["third", "second", "first"]
    assert await then(at=noon + 2 * HOUR) == ["third", "second", "first"]
    assert await then(at=noon + 3 * HOUR) == ["fourth", "third", "second", "first"]
    assert await then(commit=0) == []
    assert await then(commit=2) == ["second", "first"]
    assert await then(commit=99) == ["fourth", "third", "second", "first"]


async def test_the_past_of_a_caller_is_that_of_their_own_commits(store):
    for owner in ("me", "you", "me"):
        change = Change(add=(fact(f"of {owner}", owner=owner),))
        await store.write(lambda _, change=change: (change, None), scope=Scope(owner=owner), reason=WHY, at=NOON)
    ask = lambda tx: [node.content for node in tx.nodes.page(ME, ALL, now=0, before_key=None, limit=9)]  # noqa: E731
    assert await store.read_past(ask, scope=ME, when=When(commit=2), links=links) == ["of me"]
    you = Scope(owner="you")
    assert await store.read_past(ask, scope=you, when=When(commit=3), links=links) == ["of me"]  # after 2


async def test_the_past_knows_which_texts_and_states_are_others_today(store):
    kept, changed, gone = fact("likes tea"), fact("likes old tea"), fact("likes green tea")
    await commit(store, add=(kept, changed, gone))
    keys = [(await store.read(lambda tx, node=node: tx.nodes.get(ME, node.id))).key for node in (kept, changed, gone)]
    await commit(store, put=(replace(changed, content="likes coffee"),), close=(closing(gone),))
    later = fact("tea again")
    await commit(store, add=(later,))

    def ask(tx):
        among = np.array(keys, np.int64)
        return (
            tx.altered,
            tx.holders(ME, "tea") & set(keys),
            tx.closed_since(among).tolist(),
            tx.is_past,
            tx.commit_number,
        )

    altered, holders, closed, is_past, number = await store.read_past(ask, scope=ME, when=When(commit=1), links=links)
    assert {key: text.content for key, text in altered.items()} == {keys[1]: "likes old tea"}
    assert holders == set(keys)
    assert (closed, is_past, number) == ([keys[2]], True, 1)
    assert await store.read(lambda tx: tx.is_past) is False


async def test_the_past_knows_no_later_commit(store):
    node = fact("likes tea")
    await commit(store, add=(node,))
    await commit(store, put=(replace(node, content="likes coffee"),))

    def ask(tx):
        versions = tx.history.versions(tx.nodes.get(ME, node.id))
        commits = tx.history.commits(ME, before=None, most=9)
        return [each.content for each, _ in versions], [each.seq for each in commits], tx.history.next_commit()

    when = When(commit=1)
    assert await store.read_past(ask, scope=ME, when=when, links=links) == (["likes tea"], [1], 2)
    assert await store.read(ask) == (["likes tea", "likes coffee"], [2, 1], 3)


async def test_a_memory_stays_in_the_past_when_the_summary_of_its_session_is_erased(open_memory):
    async with open_memory(model=ScriptedModel(answer)) as memory:
        stays = await memory.add("Anna likes tea", session="talk")
        goes = await memory.add("Bo plays chess", session="talk")
        await memory.consolidate()
        before = (await memory.log(1))[0].seq
        await memory.end_session("talk")
        await memory.erase(id=goes)
        for number in range(2, before + 1):
            ids = [node.id for node in (await memory.list(type="any", as_of=number)).nodes]
            assert stays in ids and goes not in ids
        assert (await memory.doctor()).ok


async def test_whom_a_name_meant_in_the_past_does_not_depend_on_who_bears_it_today(memory):
    await memory.add_entity("Em", type="person")
    said = await memory.add("Em likes the red bicycle")
    await memory.settle(600)
    then = (await memory.log(1))[0].seq
    await memory.add_entity("Emma", type="person", aliases=["Em"])
    await memory.settle(600)
    assert [node.id for node in (await memory.entity("Em", as_of=then)).mentions] == [said]


async def test_who_was_meant_by_a_relation_stays_in_the_past_when_they_get_another_name(memory):
    await memory.add_entity("Anna", type="person", relation="boss")
    said = await memory.add("my boss likes the night train")
    await memory.settle(600)
    then = (await memory.log(1))[0].seq
    await memory.add_entity("Anna", type="person", aliases=["Annie"])
    await memory.settle(600)
    assert [node.id for node in (await memory.entity("Anna", as_of=then)).mentions] == [said]
