"""Consolidation without a language model: plain statements, without duplicates."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Message
from tests.flows.conftest import DAY, HandClock


async def told(memory: Any) -> None:
    await memory.add_many(
        [
            Message(text="Hi! I'm allergic to peanuts.", session="s1"),
            Message(text="Noted. I love helping with recipes.", role="assistant", session="s1"),
            Message(text="Ты знаешь, я очень люблю грузинскую кухню", session="s1"),
            Message(text="Do I like coffee? Maybe I do.", session="s1"),
            Message(text="I live in Lisbon", role="tool", origin="tool_result", session="s1"),
        ]
    )


async def facts(memory: Any) -> list[str]:
    return sorted(hit.content for hit in (await memory.list(type="semantic")).nodes)


async def test_plain_statements_are_kept_with_evidence_and_the_session_keeps_waiting(memory: Any) -> None:
    await told(memory)
    run = await memory.consolidate()
    assert (run.model, run.state) == ("rules", "done")
    assert [item.what for item in run.items] == ["added", "added"]
    assert await facts(memory) == ["I'm allergic to peanuts", "Я очень люблю грузинскую кухню"]
    allergy = next(node for node in (await memory.list(type="semantic")).nodes if "peanuts" in node.content)
    assert allergy.origin == "conversation"
    assert (await memory.search("peanuts", type="semantic")).hits[0].trust == "user", "they are the user's own words"
    assert allergy.category == "preference"
    why = await memory.explain(allergy.id)
    assert [source.content for source in why.sources] == ["Hi! I'm allergic to peanuts."]
    assert (await memory.stats()).sessions_waiting == 1


@pytest.mark.parametrize(
    "line",
    [
        "> I'm vegan. I live in Oslo.\nThanks for this!",
        "He wrote:\n> My wife is Greta Lang lol.\n>\n> My boss is Tom. I moved to Bergen.",
        "> Hi\n> there. Ich bin Veganer. Meine Chefin ist Anke Weber.",
        "[attached: notes, I'm vegan.txt]",
    ],
)
async def test_nothing_is_learnt_from_what_a_message_quotes(memory: Any, line: str) -> None:
    await memory.add(line, session="s")
    await memory.end_session("s")
    await memory.consolidate()
    assert await facts(memory) == []
    assert [person.name for person in await memory.people()] == []


async def test_a_quote_ends_no_relation(memory: Any) -> None:
    await memory.remember("My boss is Tom")
    await memory.add("> Hi. Tom is no longer my boss.\nSad news")
    assert [(each.name, each.relation) for each in await memory.people()] == [("Tom", "boss")]


async def test_a_second_run_adds_nothing_and_forgotten_facts_stay_forgotten(memory: Any, clock: HandClock) -> None:
    await told(memory)
    await memory.consolidate()
    before = await memory.log(limit=100)
    assert (await memory.consolidate()).items == ()
    assert await memory.log(limit=100) == before
    allergy = next(node for node in (await memory.list(type="semantic")).nodes if "peanuts" in node.content)
    await memory.forget(allergy.id)
    clock.ms += DAY
    await memory.consolidate()
    assert await facts(memory) == ["Я очень люблю грузинскую кухню"]


async def test_a_rule_run_has_a_dry_run_and_can_be_undone(memory: Any) -> None:
    await told(memory)
    dry = await memory.consolidate(dry_run=True)
    assert len(dry.items) == 2
    assert await facts(memory) == []
    run = await memory.consolidate()
    await memory.undo(run.id)
    assert await facts(memory) == []


async def test_maintain_extracts_facts_from_ended_sessions(memory: Any, clock: HandClock) -> None:
    await told(memory)
    clock.ms += DAY
    report = await memory.maintain()
    assert report.steps[0].detail == "2 plain statements kept by rule; 1 conversation waits for a language model"
    assert len(await facts(memory)) == 2


async def test_plainly_named_people_and_things_become_entities_once(memory: Any) -> None:
    await memory.add_many(
        [
            Message(text="I had lunch with Marta Solberg, she works at Hollow Lab.", session="s1"),
            Message(text="We live in Lisbon. Paris said no.", session="s1"),
            Message(text="Tom Alder told me so.", role="assistant", session="s1"),
            Message(text="Nina Fields from the Hollow Road Trust wrote this.", role="tool", session="s1"),
        ]
    )
    run = await memory.consolidate()
    made = [item.text for item in run.items if item.what == "entity"]
    known = {name: (await memory.entity(name)).type for name in made}
    assert known == {"Marta Solberg": "person", "Hollow Lab": "organization", "Lisbon": "place"}
    assert [each.name for each in await memory.people()] == ["Marta Solberg"]
    assert not any(item.what == "entity" for item in (await memory.consolidate()).items)
    await memory.undo(run.id)
    assert [*(await memory.people())] == []


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("Sono celiaca", "Che cosa non posso mangiare a cena?"),
        ("I'm allergic to peanuts.", "What can't I eat at the dinner?"),
        ("Je travaille chez Airbus.", "Où est-ce que je travaille ?"),
        ("Ich wohne in Bonn.", "Wo wohne ich?"),
    ],
)
async def test_a_message_and_the_fact_learnt_from_it_word_for_word_are_shown_once(
    memory: Any, said: str, question: str
) -> None:
    await memory.add_many([Message(text=f"La cena, the dinner {number}", session=f"s{number}") for number in range(30)])
    await memory.add(said, session="talk")
    await memory.settle(600)
    await memory.consolidate()
    await memory.settle(600)
    (fact,) = [node.content for node in (await memory.list(type="semantic")).nodes]
    found = [(hit.type, hit.content) for hit in (await memory.search(question)).hits]
    assert [kind for kind, content in found if content.strip(".") == fact] == ["semantic"]
    context = await memory.context(question)
    assert str(context).count(fact) == 1
    assert said in [hit.content for hit in (await memory.search(said, type="episodic")).hits]


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("My dentist is Dr. Weiss.", "My dentist is Dr. Bell now.", "Who is my dentist?"),
        ("I live in Turin.", "I moved to Genoa in March.", "Where do I live?"),
        ("Ich arbeite bei Globex.", "Ich habe bei Globex gekündigt, jetzt arbeite ich bei Initech.", "Wo arbeite ich?"),
        ("Я живу в Туле.", "Я переехал в Калугу.", "Где я живу?"),
    ],
)
async def test_a_message_ranks_below_the_fact_that_replaced_what_it_says(memory: Any, old, new, question) -> None:
    for session, text in enumerate([old, "My cat is called Tom.", new]):
        await memory.add(text, session=f"s{session}")
        await memory.end_session(f"s{session}")
    await memory.consolidate()
    for review in await memory.review():
        if review.decided_at is None:
            await memory.resolve(review, decision="replace")
    found = [(hit.type, hit.content, hit.notice) for hit in await memory.search(question)]
    places = {content.rstrip("."): place for place, (_, content, _) in reversed(list(enumerate(found)))}
    assert places[new.rstrip(".")] < places[old.rstrip(".")], found
    assert ("episodic", old, f"since changed: “{new.rstrip('.')}”") in found
    assert f"“{old}” (since changed: “{new.rstrip('.')}”)" in await memory.context(question)
    assert (await memory.ask(question)).sentences[0].text.rstrip(".") == new.rstrip(".")
    assert not any(hit.notice for hit in await memory.search("What is my cat called?") if "Tom" in hit.content)


@pytest.mark.parametrize("said", ["me llamo la clinica, que el doctor no puede", "me llamo mi madre y que no viene"])
async def test_who_called_is_not_the_name_of_the_user(memory: Any, said: str) -> None:
    await memory.add(said, session="s", role="user")
    await memory.add("Me llamo Andrés Pérez", session="s", role="user")
    await memory.consolidate()
    assert [node.content for node in await memory.list(type="semantic")] == ["Me llamo Andrés Pérez"]
