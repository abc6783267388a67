"""Relevance: unrelated prompts get nothing, and the reason can be shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ricordo import Memory, Message, Settings
from ricordo.clock import from_ms
from ricordo.errors import InvalidError
from tests.flows.conftest import START, HandClock, Place

FACTS = (
    "Anna is allergic to peanuts",
    "Anna lives in Oslo",
    "The boiler was serviced in January",
    "Our car is a grey Octavia",
    "We deploy on Tuesdays",
    "I take my coffee without sugar",
    "The spare keys are with Mrs. Novak",
    "Production runs PostgreSQL 15",
    "Boris plays the cello",
    "The rent is due on the fifth",
    "My dentist is Dr. Fonseca",
    "The router stands in the hall cupboard",
)


async def filled(memory: Any) -> dict[str, str]:
    await memory.add_entity("Anna", aliases=["Annie"])
    await memory.add_entity("Boris")
    nodes = [
        await memory.remember(text, about=[text.split()[0]] if text[:4] in ("Anna", "Bori") else []) for text in FACTS
    ]
    return {node.content: node.id for node in nodes}


@pytest.mark.parametrize(
    "question",
    [
        "What did we discuss in 2016?",
        "What did we chat about in 2016?",
        "What happened in 2016?",
        "Worüber haben wir 2016 gesprochen?",
        "Was haben wir 2016 besprochen?",
        "¿De qué hablamos en 2016?",
        "De quoi avons-nous discuté en 2016 ?",
    ],
)
async def test_a_question_about_a_year_gets_memories_from_all_over_it(question: str) -> None:
    said = [
        Message(text=f"{subject} number {day}", session=f"{month}", at=f"2016-{month:02d}-{day:02d}T12:00:00Z")
        for month, subject in enumerate(("Kites", "Boats", "Bread", "Bees", "Trains", "Maps") * 2, 1)
        for day in range(1, 22)
    ]
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.add_many([*said, Message(text="Nothing of that year", session="later", at="2018-03-01")])
        found = await memory.search(question, only_relevant=True, type="any", limit=40)
    assert {hit.session for hit in found.hits} == {str(month) for month in range(1, 13)}


@pytest.mark.parametrize("question", ["What does the user still have to do?", "What do I still have to do?"])
async def test_an_agent_finds_the_open_tasks_of_its_user(memory: Any, question: str) -> None:
    await filled(memory)
    task = await memory.remember("TODO: send the parcel to Lisbon")
    found = await memory.search(question, only_relevant=True)
    assert found.ids == [task.id]


async def test_only_relevant_facts_are_returned(memory: Any) -> None:
    await filled(memory)
    everything = await memory.search("Who serviced the boiler in January?")
    relevant = await memory.search("Who serviced the boiler in January?", only_relevant=True)
    assert [hit.content for hit in relevant.hits] == ["The boiler was serviced in January"]
    assert len(everything.hits) > 1
    assert relevant.hits[0].score == everything.hits[0].score


@pytest.mark.parametrize(
    "prompt", ["How do I reverse a linked list?", "Спасибо!", "When does Priya's visa expire?", "What is 17 times 23?"]
)
async def test_unrelated_prompts_get_nothing(memory: Any, prompt: str) -> None:
    await filled(memory)
    assert (await memory.search(prompt, only_relevant=True)).hits == ()
    assert await memory.context(prompt) is None


async def test_a_name_or_alias_returns_facts_about_that_person_only(memory: Any) -> None:
    await filled(memory)
    for name in ("Anna", "Annie"):
        found = await memory.search(f"Tell me about {name}.", only_relevant=True)
        assert {hit.content for hit in found.hits} == {"Anna is allergic to peanuts", "Anna lives in Oslo"}
    others = await memory.search("Is Boris allergic to peanuts?", only_relevant=True)
    assert "Anna is allergic to peanuts" not in [hit.content for hit in others.hits]


async def test_a_fact_about_the_user_does_not_answer_questions_about_others(memory: Any) -> None:
    await filled(memory)
    await memory.remember("My blood group is A negative")
    others = await memory.search("What is Anna's blood group?", only_relevant=True)
    assert "My blood group is A negative" not in [hit.content for hit in others.hits]
    own = await memory.search("What is my blood group?", only_relevant=True)
    assert [hit.content for hit in own.hits] == ["My blood group is A negative"]


async def test_why_not_explains_what_fell_below_the_floor(memory: Any) -> None:
    ids = await filled(memory)
    asked = "Is Boris allergic to peanuts?"
    found = await memory.search(asked, only_relevant=True, why_not=ids["Anna is allergic to peanuts"])
    assert found.trace.absence.stage == "not relevant"
    assert "someone other" in found.trace.absence.detail
    traced = await memory.search("What is 17 times 23?", only_relevant=True, trace=True)
    assert all(relevance < 0 and reason for _, relevance, reason in traced.trace.under_floor)
    unlimited = await memory.search(asked, trace=True)
    assert unlimited.trace.under_floor == ()


async def test_relevance_does_not_depend_on_the_process(place: Place) -> None:
    answers = []
    for _ in range(2):
        settings = Settings(durability="process", time_zone="Europe/Berlin")
        async with Memory.open(place.location, embedder="hashing", settings=settings, clock=HandClock()) as memory:
            if not answers:
                await filled(memory)
                await memory.settle()
            found = await memory.search("What about the router?", only_relevant=True, trace=True)
            assert found.trace is not None
            answers.append((found.ids, found.trace.under_floor))
    assert answers[0] == answers[1]


async def test_the_floor_is_stored_and_recalibrated_when_the_store_doubles(memory: Any) -> None:
    await filled(memory)
    assert await memory.context("Who serviced the boiler?") is not None
    before = await memory.search("Annie's router", only_relevant=True, trace=True)
    for number in range(40):
        await memory.remember(f"The router in room {number} restarts at {number} past noon")
    after = await memory.search("Annie's router", only_relevant=True, trace=True)
    assert {row[:2] for row in before.trace.under_floor} != {row[:2] for row in after.trace.under_floor}


async def test_a_search_that_does_not_wait_for_the_floor_marks_hits_once_it_is_measured(memory: Any) -> None:
    await filled(memory)
    found = await memory.search("Who serviced the boiler in January?", judge="if_known", trace=True)
    assert {hit.is_relevant for hit in found.hits} == {None}
    assert found.degraded == ()
    for _ in range(200):
        found = await memory.search("Who serviced the boiler in January?", judge="if_known")
        if found.hits[0].is_relevant is not None:
            break
        await asyncio.sleep(0.05)
    assert [hit.content for hit in found.hits if hit.is_relevant] == ["The boiler was serviced in January"]
    with pytest.raises(InvalidError, match="judge"):
        await memory.search("boiler", judge="perhaps")


async def test_relevance_works_without_an_embedder(place: Place) -> None:
    async with Memory.open(place.location, embedder=None) as memory:
        await filled(memory)
        found = await memory.search("Who serviced the boiler in January?", only_relevant=True)
        assert [hit.content for hit in found.hits] == ["The boiler was serviced in January"]
        assert await memory.context("How do I reverse a linked list?") is None


async def test_an_empty_memory_returns_nothing(memory: Any) -> None:
    assert await memory.context("Who are you?") is None
    assert (await memory.search("Who are you?", only_relevant=True)).hits == ()


async def test_each_part_of_a_question_is_answered_including_a_month() -> None:
    async with Memory.open(":memory:", settings=Settings(durability="process")) as memory:
        said = await filled(memory)
        said |= {
            (node := await memory.remember(text)).content: node.id
            for text in ("The tyres of the car are worn", "The tax is due in May", "We are away in August")
        }
        found = await memory.search("What is with the car, and who has the spare keys?", only_relevant=True)
        assert {said["Our car is a grey Octavia"], said["The spare keys are with Mrs. Novak"]} <= set(found.ids)
        found = await memory.search("What falls due in May?", only_relevant=True)
        assert (found.ids[0], said["We are away in August"] in found.ids) == (said["The tax is due in May"], False)


@pytest.mark.parametrize("embedder", ["hashing", "default"])
async def test_the_only_fact_of_a_memory_is_returned_if_it_answers(place: Place, embedder: str) -> None:
    async with Memory.open(place.location, embedder=embedder, settings=Settings(durability="process")) as memory:
        await memory.remember("The museum opens at ten", about=["Museum"])
        await memory.settle(600)
        for question in ("When does the museum open?", "What time does the museum open?", "Tell me about the museum"):
            assert "opens at ten" in (await memory.context(question) or ""), question
        assert await memory.context("What is the square root of 144?") is None


@pytest.mark.parametrize(
    "prompt",
    [
        "What happened last month?",
        "What did I tell you last month?",
        "Что я рассказывал в прошлом месяце?",
        "Was habe ich dir letzten Monat erzählt?",
    ],
)
async def test_a_question_for_a_period_gets_what_is_of_that_period(memory: Any, prompt: str) -> None:
    ago = {"I bought a red bike": 5, "The ferry was late": 20, "We painted the hall": 120}
    for text, days in ago.items():
        await memory.add(text, session="s", at=from_ms(START - days * 86_400_000))
    said = await memory.context(prompt)
    assert [text in said for text in ago] == [True, True, False]


async def test_a_question_about_a_stranger_brings_no_similar_fact(place: Place) -> None:
    async with Memory.open(place.location, settings=Settings(durability="process")) as memory:
        for text in FACTS:
            await memory.remember(text)
        await memory.settle(600)
        assert await memory.context("Which database runs in production?") is not None
        assert await memory.context("Which database does Globex run in production?") is None


MEALS = (
    ("What should I avoid eating?", True),
    ("What should I not cook for myself?", True),
    ("Was darf ich nicht kochen?", True),
    ("¿Qué no debo comer?", True),
    ("Bin ich gegen etwas allergisch?", True),
    ("Which medicine must I not take?", True),
    ("What should I not forget in the car?", False),
    ("Thanks for the dinner!", False),
)


async def test_a_search_for_a_meal_finds_what_must_not_be_missed(place: Place) -> None:
    async with Memory.open(place.location, settings=Settings(durability="process")) as memory:
        for text in (*FACTS[1:], "I am allergic to peanuts", "I cook pasta on Sundays", "I avoid flying"):
            await memory.remember(text)
        for question, is_needed in MEALS:
            for query in ({"limit": 5}, {"only_relevant": True}):
                hits = await memory.search(question, **query)
                found = [hit for hit in hits if "peanuts" in hit.content]
                assert len(found) == is_needed, (question, query)
                assert len(hits) <= query.get("limit", 10)
                assert all(hit.is_relevant for hit in found) or "limit" in query
            elsewhere = await memory.search(question, category="task")
            assert not any("peanuts" in hit.content for hit in elsewhere)


HEALTH = {
    "en": ["Ana is allergic to penicillin", "Ana was diagnosed with lupus in 2019", "Ana takes 500 mg of metformin"],
    "de": [
        "Ana ist gegen Penicillin allergisch",
        "Bei Ana wurde 2019 Lupus diagnostiziert",
        "Ana nimmt jeden Morgen 500 mg Metformin",
    ],
}


@pytest.mark.parametrize(
    "question",
    [
        "Is Ana healthy?",
        "What should I know about Ana's health?",
        "Does Ana have any conditions?",
        "Does Ana take any medication?",
        "Ist Ana gesund?",
        "Hat Ana Vorerkrankungen?",
        "¿Ana tiene alguna enfermedad?",
        "¿Qué tal la salud de Ana?",
        "Ana est-elle en bonne santé ?",
        "Quels sont les problèmes de santé d'Ana ?",
        "Ana è malata?",
        "A Ana tem alguma doença?",
    ],
)
@pytest.mark.parametrize("language", HEALTH)
async def test_a_question_for_somebodys_health_begins_with_what_ails_them(question: str, language: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for need in HEALTH[language]:
            await memory.remember(need)
        for habit in ("lives in Bonn", "plays tennis", "eats healthy food", "pays for health insurance", "has a key"):
            await memory.remember(f"Ana {habit}", about=["Ana"])
        for need in ("is diabetic", "is allergic to nuts", "has asthma"):
            await memory.remember(f"Ben {need}", about=["Ben"])
        hits = (await memory.search(question)).hits
    assert {hit.content for hit in hits[:3]} == {*HEALTH[language]}


async def test_a_question_for_health_in_russian_begins_with_what_ails_the_person() -> None:
    needs = {"У Анны аллергия на пенициллин", "Анне поставили диагноз волчанка", "Анна принимает лекарство от мигрени"}
    async with Memory.open(":memory:", embedder=None) as memory:
        for text in (*needs, "Анна живёт в Бонне", "Анна любит теннис", "Анна не болеет за Спартак", "У Бориса астма"):
            await memory.remember(text)
        for question in ("Анна здорова?", "Чем болеет Анна?", "Какие у Анны заболевания?"):
            hits = (await memory.search(question)).hits
            assert {hit.content for hit in hits[:3]} == needs, question


COOKED_FOR = """
Ana is allergic to peanuts | Ana | What should I keep in mind when I cook for Ana?
Ana is allergic to peanuts | Ana | Qu'est-ce que je dois éviter si je cuisine pour Ana ?
Jonas verträgt keine Milch | Jonas | Was kann ich für Jonas kochen?
Lucía es alérgica al marisco | Lucía | ¿Qué preparo de cena para Lucía?
Анна не ест рыбу | Анна | Что приготовить на ужин для Анны?
I am vegetarian | Ana | Suggest a recipe for tonight
""".strip().splitlines()


@pytest.mark.parametrize("line", COOKED_FOR)
async def test_what_somebody_does_not_eat_is_among_the_first_three(place: Place, line: str) -> None:
    need, name, question = line.split(" | ")
    async with Memory.open(place.location, embedder=None) as memory:
        await memory.remember(need)
        await memory.remember("Boris does not eat fish")
        for habit in ("lives in Bonn", "works at Siemens", "plays tennis", "has a spare key", "has a birthday in May"):
            await memory.remember(f"{name} {habit}", about=[name])
        hits = (await memory.search(question)).hits
    assert need in [hit.content for hit in hits[:3]], [hit.content for hit in hits]
    for hit in hits:
        assert sum(share.share for share in hit.why) == pytest.approx(hit.score)


@pytest.mark.parametrize("said", ["z", "Ok", "ж", "👍", "é!"])
async def test_a_fact_of_one_or_two_letters_answers_only_who_names_it(place: Place, said: str) -> None:
    settings = Settings(durability="process")
    async with Memory.open(place.location, embedder="default", settings=settings) as memory:
        node = await memory.remember(said)
        await memory.settle(600)
        for question in ("zahnarzt", "zebra", "what is my rent?", "жираф"):
            assert (await memory.search(question, only_relevant=True)).ids == [], question
            assert not any(hit.is_relevant for hit in (await memory.search(question, judge=True)).hits), question
        if said == "z":
            assert (await memory.search("what is z?", only_relevant=True)).ids == [node.id]
