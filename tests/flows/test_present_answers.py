"""A later fact that answers a question as well as the best hit comes first, without being marked as a change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ricordo import Memory

START = datetime(2026, 1, 5, tzinfo=UTC)
OTHERS = ("The keys hang beside the door", "Ruth plays the viola")


async def first_of(facts: tuple[str, ...], question: str) -> str:
    async with Memory.open(":memory:", embedder=None) as memory:
        for weeks, fact in enumerate((OTHERS[0], *facts, OTHERS[1])):
            await memory.remember(fact, at=START - timedelta(weeks=20 - weeks))
        assert await memory.review() == []
        return (await memory.search(question)).hits[0].content


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        (
            "I have my tea with two sugars",
            "Took some getting used to, but I drink my tea plain, dentist's orders, and it tastes of something",
            "How do I take my tea?",
        ),
        (
            "Netflix is 13 a month",
            "streaming got dearer again and it is 19.99 for Netflix and the rest of the family",
            "How much is Netflix?",
        ),
    ],
)
async def test_a_later_fact_in_other_words_comes_first(old, new, question):
    assert await first_of((old, new), question) == new
    assert await first_of((new, old), question) == old


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        (
            "I have my tea with two sugars",
            "My mother drinks her tea plain, dentist's orders, and it tastes of something to her for once",
            "How do I take my tea?",
        ),
        (
            "Netflix is 13 a month",
            "Maybe streaming gets dearer again and it is 19.99 for Netflix and the rest of the family",
            "How much is Netflix?",
        ),
        (
            "Netflix is 13 a month",
            "Cancel Netflix and look for a cheaper one for the rest of the family",
            "How much is Netflix?",
        ),
    ],
)
async def test_a_wish_a_task_or_what_is_said_of_somebody_else_does_not_take_the_place(old, new, question):
    assert await first_of((old, new), question) == old


@pytest.mark.parametrize(
    "question",
    ["How much was Netflix before?", "how much was Netflix", "Wie teuer war Netflix", "Сколько стоил Netflix"],
)
async def test_a_question_about_the_past_gets_the_older_fact(question):
    old = "Netflix is 13 a month"
    new = "streaming got dearer again and it is 19.99 for Netflix and the rest of the family"
    assert await first_of((old, new), question) == old


async def test_what_was_decided_is_left_alone():
    old = "Netflix is 13 a month"
    new = "streaming got dearer again and it is 19.99 for Netflix and the rest of the family"
    async with Memory.open(":memory:", embedder=None) as memory:
        known = await memory.remember(old, at=START - timedelta(weeks=20))
        await memory.remember(new, at=START - timedelta(weeks=2))
        assert (await memory.search("How much is Netflix?")).hits[0].content == new
        await memory.confirm(known.id)
        assert (await memory.search("How much is Netflix?")).hits[0].content == old


@pytest.mark.parametrize("embedder", [None, "default"])
@pytest.mark.parametrize(
    ("asked", "other", "question"),
    [
        ("My car is insured with AXA.", "My flat is insured with MAIF.", "Who insures my car?"),
        ("Ma voiture est assurée chez AXA.", "Mon appartement est assuré à la MAIF.", "Qui assure ma voiture ?"),
        ("My landlord is Herr Gutmann.", "Met Herr Vogelbacher, he wants plates.", "Who is my landlord?"),
        ("I was born in Hull", "We stopped in Hull for lunch", "Where was I born?"),
        ("Mein Büro ist in Berlin", "Ich bin den Berliner Marathon gelaufen", "Wo ist mein Büro?"),
        (
            "Choir is now on Thursdays, no longer on Tuesdays",
            "I now live in Leeds, no longer in York",
            "When is choir?",
        ),
        (
            "Yoga ist jetzt montags, nicht mehr freitags",
            "Ich arbeite jetzt in Leeds, nicht mehr in York",
            "Wann ist Yoga?",
        ),
        ("I'm allergic to nuts", "I don't eat pork", "What am I allergic to?"),
        ("Soy alérgica a las nueces", "No como cerdo", "¿A qué soy alérgica?"),
        ("У меня аллергия на орехи", "Я не ем свинину", "На что у меня аллергия?"),
    ],
)
async def test_the_newest_of_two_facts_is_not_first_for_that(
    embedder: str | None, asked: str, other: str, question: str
) -> None:
    async with Memory.open(":memory:", embedder=embedder) as memory:
        await memory.remember(asked, at=START)
        await memory.remember(other, at=START + timedelta(weeks=9))
        await memory.settle()
        assert (await memory.search(question))[0].content == asked
