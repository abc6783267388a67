"""What a model says is out of date: facts of every origin give way, and nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.contradictions import DATA, ORIGINS, outcomes

from ricordo import Memory, Settings
from ricordo.language import ScriptedModel
from tests.flows.test_consolidation import contents, fact, proposal, verdict

PAIRS = [row for row in map(json.loads, DATA.read_text(encoding="utf-8").splitlines()) if row["half"] == "first"]


@pytest.mark.parametrize("origin", ORIGINS)
async def test_a_newer_fact_wins_wherever_the_old_one_comes_from(origin):
    found = await outcomes(PAIRS, origin)
    assert len(found) == 22 and not [each.row["id"] for each in found if not each.wins]


async def told(place: str, old: str, new: dict[str, object], message: str, **given: object) -> Memory:
    """Return a memory with a remembered fact, and what a model learns from a message that it says contradicts it."""
    answers = {"Proposal": proposal(new), "Verdicts": verdict("p1", "contradicts")}
    checks = {"checks": [{"claim": "c1", "is": "stated", "confidence": 0.9}]}
    model = ScriptedModel(lambda turns, schema: answers.get(schema["title"], checks))
    memory = await Memory.open(place, model=model, settings=Settings(durability="process"))
    await memory.remember(old, **given)
    await memory.add(message, session="s1")
    await memory.consolidate("s1")
    return memory


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("I like tea", fact("The user likes coffee", "e1"), "I like coffee."),
        ("I speak Dutch", fact("The user speaks Polish", "e1"), "I speak Polish."),
        ("I work at Acme", fact("The user lives in Acme Street", "e1", slot="home"), "I live in Acme Street."),
    ],
)
async def test_what_may_both_hold_is_reviewed_whatever_a_model_says(tmp_path, old, new, message):
    memory = await told(str(tmp_path / "me.db"), old, new, message)
    assert await contents(memory) == {old, new["text"]}
    assert not [each for each in await memory.review() if each.kind == "replaced"]
    await memory.close()


async def test_what_the_owner_does_is_never_ended_by_what_another_does(tmp_path):
    new = fact("Anna works at Globex", "e1", about=["Anna"])
    memory = await told(str(tmp_path / "me.db"), "I work at Acme", new, "Anna works at Globex.")
    assert await contents(memory) == {"I work at Acme", "Anna works at Globex"}
    await memory.close()


async def test_a_fact_that_a_model_learns_in_other_words_for_the_owner_is_kept_once(tmp_path):
    memory = await told(
        str(tmp_path / "me.db"), "I work at Acme", fact("The user works at Acme", "e1"), "I work at Acme, by the way."
    )
    assert await contents(memory) == {"I work at Acme"}
    await memory.close()


@pytest.mark.parametrize(
    ("speaker", "said", "by_a_model"),
    [
        ("Anna", "I work at Globex", "Anna works at Globex"),
        ("Anna", "Ich wohne in Kiel", "Anna wohnt in Kiel"),
        (None, "I work at Globex", "The user works at Globex"),
        (None, "Ich wohne in Kiel", "Der Nutzer wohnt in Kiel"),
        (None, "Я живу в Перми", "Пользователь живёт в Перми"),
    ],
)
async def test_what_a_rule_learnt_is_not_stored_again_by_a_model(tmp_path, speaker, said, by_a_model):
    settings = Settings(durability="process")
    async with Memory.open(tmp_path / "me.db", embedder="hashing", settings=settings) as memory:
        await memory.add(f"{said}.", session="s1", speaker=speaker)
        await memory.consolidate("s1")
        assert await contents(memory) == {said}
    about = [speaker] if speaker else []
    answers = {"Proposal": proposal(fact(by_a_model, "e1", about=about)), "Verdicts": {"verdicts": []}}
    checks = {"checks": [{"claim": "c1", "is": "stated", "confidence": 0.9}]}
    model = ScriptedModel(lambda turns, schema: answers.get(schema["title"], checks))
    async with Memory.open(tmp_path / "me.db", embedder="hashing", model=model, settings=settings) as memory:
        run = await memory.consolidate("s1")
        assert await contents(memory) == {said} and "repeated" in [item.what for item in run.items]


async def test_a_newer_home_in_anothers_words_replaces_what_they_said_of_themselves(tmp_path):
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=Settings(durability="process")) as memory:
        await memory.add("I live in Kassel.", session="s1", speaker="Anna")
        await memory.consolidate("s1")
        await memory.remember("I live in Leeds")
        moved = await memory.remember("Anna lives in Bremen", about=["Anna"])
        assert [each.content for each in moved.outdates] == ["I live in Kassel"]
        assert await contents(memory) == {"I live in Leeds", "Anna lives in Bremen"}


BESIDE = (
    (
        "Juno can't have cow's milk, she gets a rash from it",
        "Juno's milk thing turned out to be harmless, the allergist says she can eat dairy again",
        "Juno",
    ),
    ("My sister Greta lives in Bergen", "Greta has perhaps moved to Stavanger", "Greta"),
    ("Mein Bruder Jan wohnt in Kiel", "Jan ist vielleicht nach Lübeck gezogen", "Jan"),
    ("Моя сестра Лена живёт в Туле", "Лена переехала, кажется, в Калугу", "Лена"),
    ("Mi hermana Inés vive en Madrid", "Inés se mudó quizá a Valencia", "Inés"),
    ("Mon frère Luc travaille chez Renault", "Luc travaille maintenant chez Peugeot, je crois", "Luc"),
)
QUESTIONS = ("What shall I cook for {}?", "Who is {}?", "Send a card to {}")


@pytest.mark.parametrize(("old", "new", "name"), BESIDE)
async def test_where_an_older_fact_about_somebody_is_shown_the_newer_one_is_beside_it(
    memory: Any, old: str, new: str, name: str
) -> None:
    await memory.remember(old)
    await memory.remember(new)
    for other in ("swims", "paints", "likes jazz"):
        await memory.remember(f"{name} {other}")
    (review,) = await memory.review(kind="conflict")
    assert (review.older.content, review.newer.content) == (old, new)
    for question in QUESTIONS:
        lines = str(await memory.context(question.format(name))).splitlines()
        assert [line for line in lines if old in line.replace(f"“{old}”", "") and f"“{new}”" not in line] == []
    facts = {fact.content: fact.notice for fact in (await memory.entity(name)).facts}
    assert facts[old] == f"perhaps out of date, newer: “{new}”" and not facts.get(new)


DOUBTED = (
    ("I work as a nurse at St Mary's hospital", "I handed in my notice at the hospital", "Where do I work?"),
    ("My therapist is Dr. Holm", "Dr. Holm moved away", "Which therapist do I see?"),
    ("Mein Zahnarzt ist Dr. Weber", "Dr. Weber ist in Rente gegangen", "Zu welchem Zahnarzt gehe ich?"),
    ("Il mio meccanico è Gino", "Gino è andato in pensione", "Quale meccanico ho?"),
    ("Мой врач — доктор Котов", "Доктор Котов ушёл на пенсию", "Кто мой врач?"),
)


@pytest.mark.parametrize("embedder", ["default", None])
@pytest.mark.parametrize(("old", "new", "question"), DOUBTED)
async def test_a_fact_in_doubt_stands_below_the_newer_one_in_every_answer(
    old: str, new: str, question: str, embedder: str | None
) -> None:
    memory = await Memory.open(":memory:", embedder=embedder)
    for other in ("I like hiking in the Alps", "Our wifi password is on the fridge", "Leo likes jazz"):
        await memory.remember(other)
    await memory.remember(old)
    await memory.remember(new)
    (review,) = await memory.review(kind="conflict")
    assert (review.older.content, review.newer.content) == (old, new)
    for options in ({}, {"judge": True}, {"only_relevant": True}):
        hits = [hit for hit in await memory.search(question, **options) if hit.content in (old, new)]
        assert [hit.content for hit in hits] == [new, old]
        assert [each.content for each in hits[1].doubted_by] == [new]
        assert all(hit.is_relevant is not False for hit in hits)
    lines = [line for line in str(await memory.context(question)).splitlines() if line.startswith("- ")]
    assert [line.startswith(f"- {new}") for line in lines if new in line] == [True, False]
    await memory.close()


async def test_a_message_whose_fact_is_in_doubt_stands_beside_the_newer_one(memory: Any) -> None:
    for number, said in enumerate(("I can't eat shellfish", "Actually I can eat shellfish, the test was wrong")):
        await memory.add(said, session=f"s{number}")
        await memory.end_session(f"s{number}")
        await memory.consolidate()
    assert await memory.review(kind="conflict")
    for question in ("What can't I eat?", "Plan a dinner for Friday", "shellfish"):
        lines = str(await memory.context(question)).splitlines()
        assert [line for line in lines if "I can't eat shellfish" in line and "Actually I can eat" not in line] == []


async def test_a_memory_in_doubt_for_two_reasons_shows_both(memory: Any) -> None:
    await memory.remember("My GP is Dr. Lemoine and the appointment is on 15 January at 9")
    newer = ["Dr. Lemoine has retired", "The appointment with Dr. Lemoine moved to 22 January at 11"]
    for each in newer:
        await memory.remember(each)
    told = await memory.context("When is my appointment with Dr. Lemoine?")
    assert told
    assert all(f"not decided, newer: “{each}”" in told for each in newer)
