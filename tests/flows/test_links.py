"""Memories found through links, and the usage counts of those that are shown."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import ricordo
from ricordo import Settings
from ricordo.model import Change, Edge, Reason, Scope
from tests.flows.conftest import HandClock, Place

ME = Scope(owner="me")
MINUTE = 60_000


def inside(memory: Any) -> Any:
    """Return the asynchronous memory behind either API."""
    return getattr(getattr(memory, "_memory", memory), "_memory", getattr(memory, "_memory", memory))


def store_of(memory: Any) -> Any:
    return inside(memory)._opened.store


async def read(memory: Any, ask: Any) -> Any:
    return await store_of(memory).read(ask)


async def cause(memory: Any, pairs: list[tuple[str, str]]) -> None:
    links = tuple(Edge(source=source, target=target, type="causal") for source, target in pairs)
    why = Reason(actor="me", origin="test", reason="test")
    at = (await memory.get(pairs[0][0])).created_at
    await store_of(memory).write(lambda _: (Change(link=links), None), scope=ME, reason=why, at=at)


async def test_a_question_has_an_intent_and_a_complexity(memory: Any) -> None:
    results = await memory.search("Why did Anna and Tom and Lena leave?")
    assert (results.intent, results.complexity) == ("why", "complex")
    assert (await memory.search("Когда у Сары день рождения?")).intent == "when"
    assert (await memory.search("peanuts", trace=True)).intent == "general"


async def test_facts_about_the_named_person_are_candidates(memory: Any) -> None:
    fact = await memory.remember("Shellfish must never be served", about=["Anna Weber"])
    await memory.remember("The boiler was serviced in spring")
    await memory.settle(600)
    results = await memory.query("Weber Anna Weber's plans")  # full text only: it shares no word with the fact
    assert fact.id in results.ids
    traced = await memory.search("What about Anna Weber?", trace=True)
    assert traced.trace.candidates["entity"] == 1
    assert {share.strategy for share in traced.hits[0].why} >= {"entity"}
    other = memory.scoped(Scope(owner="somebody else"))
    assert (await other.search("What about Anna Weber?", trace=True)).trace.candidates["entity"] == 0


async def test_my_wife_resolves_to_her_entity(memory: Any) -> None:
    fact = await memory.remember("Size 38 shoes", about=["Sarah"])
    await memory.relate("Sarah", "wife")
    await memory.settle(600)
    assert (await memory.query("my wife feet")).ids == [fact.id]


async def test_entity_candidates_obey_filters_and_partitions(memory: Any) -> None:
    fact = await memory.remember("Shellfish must never be served", about=["Anna"], tags=["food"])
    await memory.settle(600)
    assert (await memory.search("Anna?", tag="food")).ids == [fact.id]
    assert (await memory.search("Anna?", tag="cars")).ids == []
    assert (await memory.search("Anna?", type="episodic")).ids == []
    await memory.forget(fact.id)
    assert (await memory.search("Anna?")).ids == []


async def test_causes_are_reached_step_by_step(memory: Any) -> None:
    texts = ["The bakery closed", "Flour doubled its price", "Harvests failed", "Rain never came", "El Nino grew"]
    chain = [await memory.remember(text) for text in texts]
    await cause(memory, [(later.id, earlier.id) for earlier, later in pairwise(chain)])
    near = (await memory.query("bakery", limit=10)).ids
    assert near == [chain[0].id, chain[1].id, chain[2].id]  # two steps for a simple question
    far = (await memory.query("bakery and shops and all else", limit=10)).ids
    assert far == [each.id for each in chain]
    why = await memory.search("Why did the bakery close?", trace=True)
    what = await memory.search("Did the bakery close?", trace=True)
    shares = []
    for found in (why, what):
        told = {share.strategy: share.share for hit in found.hits if hit.id == chain[1].id for share in hit.why}
        shares.append(told["linked"])
    assert shares[0] > 1.5 * shares[1] > 0


async def test_a_closed_cause_and_a_forgotten_one_are_not_reached(memory: Any) -> None:
    shop, flour = await memory.remember("The bakery closed"), await memory.remember("Flour doubled its price")
    await cause(memory, [(flour.id, shop.id)])
    assert (await memory.query("bakery")).ids == [shop.id, flour.id]
    await memory.forget(flour.id)
    assert (await memory.query("bakery")).ids == [shop.id]


async def test_a_clique_of_causes_is_walked_quickly(memory: Any) -> None:
    nodes = [await memory.remember(f"Omen {number} of the heron") for number in range(100)]
    await cause(memory, [(one.id, other.id) for one in nodes for other in nodes if one is not other])
    question = "Why did every heron and all the omens and each of the birds come?"
    await memory.query(question)
    took = []
    for _ in range(5):
        traced = await memory.search(question, trace=True)
        took.append(traced.trace.timings_ms["causal"])
    assert min(took) < 500, "each path walked by itself takes seconds"


async def test_memories_reinforced_together_are_found_together(memory: Any, clock: HandClock) -> None:
    visa = await memory.remember("The visa needs two photographs")
    consul = await memory.remember("Herr Brandt answers on Tuesdays only")
    later = await memory.remember("Coffee keeps best in the freezer")
    await memory.reinforce(visa.id)
    clock.ms += 20_000
    await memory.reinforce(consul.id)
    clock.ms += 5 * MINUTE
    await memory.reinforce(later.id)
    results = await memory.query("photographs")
    assert results.ids == [visa.id, consul.id]
    first = await read(memory, lambda tx: tx.graph.associates(ME, [1], each=5))
    await memory.reinforce(visa.id)
    await memory.reinforce(consul.id)
    second = await read(memory, lambda tx: tx.graph.associates(ME, [1], each=5))
    strength = [next(step.weight for step in steps if step.key == 2) for steps in (first, second)]
    assert strength[0] == pytest.approx(0.3) and strength[0] < strength[1] < 1
    report = await memory.doctor()
    assert report.ok, report


async def test_memories_that_one_answer_quotes_are_found_together(memory: Any) -> None:
    visa = await memory.remember("The visa for Bhutan needs two photographs")
    consul = await memory.remember("Herr Brandt answers visa letters on Tuesdays only")
    await memory.context("visa photographs Brandt letters")
    await memory.add(f"{visa.content}. And {consul.content}.", role="assistant", session="s")
    associates = await read(memory, lambda tx: tx.graph.associates(ME, [1], each=5))
    assert [step.key for step in associates] == [2]


async def test_memories_of_other_owners_are_never_associates(memory: Any) -> None:
    mine = await memory.remember("The visa needs two photographs")
    other = memory.scoped(Scope(owner="you"))
    theirs = await other.remember("Herr Brandt answers on Tuesdays only")
    await memory.reinforce(mine.id)
    await other.reinforce(theirs.id)
    assert (await memory.query("photographs")).ids == [mine.id]


async def test_of_equal_facts_only_the_newest_is_shown(memory: Any, clock: HandClock) -> None:
    old = await memory.remember("The code word is heron.", about=["Club"])
    other = await memory.remember("The code word is heron", about=["Fleet"])
    clock.ms += MINUTE
    new = await memory.remember("the code word is now HERON", about=["Club"])
    found = (await memory.search("code word heron")).ids
    assert other.id in found
    live = [each.id for each in (old, new) if (await memory.get(each.id)).is_live]
    assert [each for each in found if each != other.id] == [live[-1]]


async def test_of_two_equal_live_facts_the_older_is_hidden_and_why_not_says_so(memory: Any, clock: HandClock) -> None:
    old = await memory.remember("The code word is heron")
    clock.ms += MINUTE
    new = await memory.remember("Egrets nest in reeds")
    await memory.update(old.id, content="The spare key hangs on the hook")
    await memory.update(new.id, content="The spare key now hangs on the hook.")
    await memory.settle(600)
    assert all([(await memory.get(each.id)).is_live for each in (old, new)])
    results = await memory.search("spare key", why_not=old.id)
    assert results.ids == [new.id]
    assert new.id in results.trace.absence.detail


async def test_showing_a_memory_is_counted_later_and_changes_no_rank(place: Place) -> None:
    path = place.location
    async with ricordo.Memory.open(path, embedder=None, settings=Settings(durability="process")) as memory:
        shown = await memory.remember("The code word is heron")
        await memory.remember("The gate is green")
        before = await memory.search("code word")
        for _ in range(4):
            await memory.search("code word")
        assert await read(memory, lambda tx: tx.graph.usage([1, 2])) == {}
        commits = len(await memory.log())
    async with ricordo.Memory.open(path, embedder=None) as memory:
        used = await read(memory, lambda tx: tx.graph.usage([1, 2]))
        assert {key: use.shown for key, use in used.items()} == {1: 5}
        assert used[1].last_access > 0
        after = await memory.search("code word")
        assert after.ids == before.ids == [shown.id]
        assert after.hits[0].score == pytest.approx(before.hits[0].score, rel=1e-4)
        assert len(await memory.log()) == commits
        assert (await memory.doctor()).ok


@pytest.mark.slow
async def test_an_entity_with_very_many_facts_is_read_in_part(place: Place) -> None:
    async with ricordo.Memory.open(place.location, embedder=None, settings=Settings(durability="process")) as memory:
        await memory.add_entity("Anna", type="person")
        facts = [ricordo.Fact(content=f"Anna met number {number}", about=("Anna",)) for number in range(500)]
        await memory.remember_many(facts)
        assert (await memory.search("Anna?", trace=True)).trace.candidates["entity"] == 40
        assert len(await read(memory, lambda tx: tx.graph.near_entity(ME, 1, walk=100))) <= 200


async def test_in_a_question_for_several_things_repetitions_lose_score(memory: Any) -> None:
    said = ["We bought red apples at the market", "We bought red apples at a market", "We bought old lamps at the fair"]
    for text in said:
        await memory.add(text, speaker="Ann", session=text)
    await memory.settle(600)
    several = await memory.search("What things have we bought at the market?", trace=True)
    lost = {
        hit.content: sum(share.share for share in hit.why if share.strategy == "said already") for hit in several.hits
    }
    assert min(lost.values()) == min(lost[said[0]], lost[said[1]]) < 1.5 * lost[said[2]] <= 0
    assert 0.0 in (lost[said[0]], lost[said[1]])  # the best hit loses nothing
    one = await memory.search("we bought at the market", trace=True)
    assert not [share for hit in one.hits for share in hit.why if share.strategy == "said already"]


@pytest.mark.parametrize(
    ("said", "fact", "asked"),
    [
        ("My wife's name is Sarah", "Sarah likes Italian food", "What does my wife like?"),
        ("Мою жену зовут Зоя", "Зоя любит грузинскую кухню", "Что любит моя жена?"),
    ],
)
async def test_a_fact_about_a_person_answers_questions_by_another_name(
    memory: Any, said: str, fact: str, asked: str
) -> None:
    await memory.add(said)
    told = await memory.remember(fact, about=["my wife"])
    for number in range(30):
        await memory.add(f"It rained on day {number}, в {number} день шёл дождь")
    await memory.add("My colleague likes tea. Мой коллега любит чай")
    await memory.settle(600)
    assert (await memory.search(asked)).ids[0] == told.id
