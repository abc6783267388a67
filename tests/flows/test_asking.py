"""`ask`: answers from memory alone, in which each sentence rests on memories."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ricordo import Memory, Scope, UnavailableError
from ricordo.clock import to_ms
from ricordo.language import ScriptedModel
from ricordo.ports import Turn
from tests.flows.conftest import HandClock

pytestmark = pytest.mark.asyncio

_PEOPLE = ("Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hugo", "Irina", "Jonas")
_FACTS = (
    ("Where does {} work?", "{} works at Globex as an accountant"),
    ("Where does {} live?", "{} lives in Lisbon near the harbour"),
    ("What is {} allergic to?", "{} is allergic to walnuts"),
    ("What instrument does {} play?", "{} plays the cello in an orchestra"),
    ("What pet does {} have?", "{} has a tortoise called Ferdinand"),
    ("What does {} drink in the morning?", "{} drinks black tea in the morning"),
    ("What car does {} drive?", "{} drives a green Volvo"),
    ("What language is {} learning?", "{} is learning Finnish at an evening school"),
    ("Where did {} study?", "{} studied chemistry in Vienna"),
    ("What sport does {} do?", "{} rows in the club on Sundays"),
)


def _handles(turns: Sequence[Turn]) -> dict[str, str]:
    """Return the texts of the memories that a model is shown, by handle."""
    shown = turns[-1].text
    return dict(re.findall(r"^(m\d+) \([^)]*\) [^:]*: (.*)$", shown, flags=re.MULTILINE))


async def test_citations_of_a_model_that_behaves_point_at_what_supports_them() -> None:
    wanted = {q.format(who): fact.format(who) for who in _PEOPLE for q, fact in _FACTS}

    def behave(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        question = re.search(r"The question: (.*)", turns[-1].text)
        assert question is not None
        fact = wanted[question[1]]
        found = [handle for handle, text in _handles(turns).items() if text == fact]
        return {"known": bool(found), "sentences": [{"text": f"{fact}.", "evidence": found}] if found else []}

    async with Memory.open(":memory:", embedder=None, model=ScriptedModel(behave)) as memory:
        ids = {fact: (await memory.remember(fact)).id for fact in wanted.values()}
        right = 0
        for question, fact in wanted.items():
            answer = await memory.ask(question)
            right += [each.ids for each in answer.sentences] == [(ids[fact],)]
        assert right == 100


@pytest.mark.parametrize(
    ("memory_text", "question", "invented"),
    [
        ("Anna works at Globex", "Where does Anna work?", "Anna works at Initech."),
        ("Anna works at Globex", "Where does Anna work?", "Anna has worked at Globex since 2019."),
        ("Anna works at Globex", "Where does Anna work?", "She earns a very good salary and travels a lot."),
        ("Anna likes tea", "Does Anna live in Oslo?", "Anna lives in Oslo."),
        ("Анна работает в Яндексе", "Где работает Анна?", "Анна работает в Газпроме."),
        ("Анна работает в Яндексе", "Где работает Анна?", "Она получает большую зарплату и часто ездит в отпуск."),
        ("Anna arbeitet bei Siemens", "Wo arbeitet Anna?", "Sie bekommt 5000 Euro im Monat."),
        ("Anna trabaja en Telefónica", "¿Dónde trabaja Anna?", "Anna gana mucho dinero y viaja con frecuencia."),
    ],
)
async def test_a_sentence_without_support_is_cut(memory_text: str, question: str, invented: str) -> None:
    model = ScriptedModel(lambda *_: {"known": True, "sentences": [{"text": invented, "evidence": ["m1"]}]})
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember(memory_text)
        answer = await memory.ask(question)
        assert answer.hits, "the memory is found"
        assert (answer.known, answer.text, answer.sentences, answer.cut) == (False, "", (), 1)


@pytest.mark.parametrize(
    ("memory_text", "question", "written"),
    [
        ("I moved to Lisbon in May", "Where do I live?", "The user lives in Lisbon."),
        ("Anna works at Globex", "Does Anna still work at Globex?", "Anna does not work at Globex."),
        ("Анна живёт в Берлине", "Where does Anna live?", "Anna lives in Berlin."),
    ],
)
async def test_a_sentence_in_other_words_is_marked(memory_text: str, question: str, written: str) -> None:
    model = ScriptedModel(lambda *_: {"known": True, "sentences": [{"text": written, "evidence": ["m1"]}]})
    async with Memory.open(":memory:", model=model) as memory:
        await memory.remember(memory_text)
        answer = await memory.ask(question)
        assert answer.hits, "the memory is found"
        assert [each.support for each in answer.sentences] == ["drawn"]


async def test_what_a_memory_says_is_stated_though_the_grammar_differs() -> None:
    model = ScriptedModel(
        lambda *_: {"known": True, "sentences": [{"text": "The user lives in Oslo.", "evidence": ["m1", "m9"]}]}
    )
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        fact = await memory.remember("I live in Oslo")
        answer = await memory.ask("Where do I live?")
        assert [(each.ids, each.support) for each in answer.sentences] == [((fact.id,), "stated")]


async def test_a_sentence_that_cites_nothing_it_was_shown_is_cut() -> None:
    model = ScriptedModel(
        lambda *_: {"known": True, "sentences": [{"text": "The user lives in Oslo.", "evidence": ["m7"]}]}
    )
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember("I live in Oslo")
        assert not (await memory.ask("Where do I live?")).known


async def test_nothing_relevant_is_not_known_and_no_model_is_asked() -> None:
    model = ScriptedModel([])
    async with Memory.open(":memory:", model=model) as memory:
        await memory.remember("I live in Oslo")
        answer = await memory.ask("What is the boiling point of mercury?")
        assert (answer.known, answer.text, answer.hits) == (False, "", ())
        assert model.prompts == []


async def test_without_a_model_the_best_passages_answer() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        fact = await memory.remember("Anna works at Globex")
        answer = await memory.ask("Where does Anna work?")
        assert (answer.known, answer.model, answer.text) == (True, None, "Anna works at Globex")
        assert answer.sentences[0].ids == (fact.id,)


async def test_all_plans_answer_what_is_coming_up_and_all_open_tasks_what_there_is_to_do() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        days = [datetime.now(UTC) + timedelta(days=each) for each in range(2, 2 + len(_EVENTS))]
        said = [f"The {what} is on {day.day} {day:%B %Y}" for day, what in zip(days, _EVENTS, strict=True)]
        plans = [await memory.remember(each) for each in said]
        tasks = [await memory.remember(f"Paint the {what}", category="task") for what in _ROOMS]
        coming = await memory.ask("What is coming up?")
        assert {id for each in coming.sentences for id in each.ids} >= {plan.id for plan in plans}
        for question in _WHAT_TO_DO:
            found = [hit.id for hit in await memory.search(question)]
            assert set(found[: len(tasks)]) == {task.id for task in tasks}, question
        to_do = await memory.ask("things to do")
        assert {id for each in to_do.sentences for id in each.ids} >= {task.id for task in tasks}


_EVENTS = ("dentist", "concert", "exam", "wedding", "interview")
_ROOMS = ("kitchen", "cellar", "attic", "hall")
_WHAT_TO_DO = (
    "things to do",
    "noch zu erledigen",
    "дела",
    "cosas que hacer",
    "choses à faire",
    "cose da fare",
    "coisas para fazer",
)


async def test_a_model_that_fails_leaves_the_passages_and_says_so() -> None:
    model = ScriptedModel(lambda *_: UnavailableError("the model's server does not answer"))
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember("Anna works at Globex")
        answer = await memory.ask("Where does Anna work?")
        assert answer.text == "Anna works at Globex"
        assert answer.degraded == ("model: the model's server does not answer",)


async def test_contradictions_are_named() -> None:
    def both(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        assert "contradict each other" in turns[-1].text
        shown = _handles(turns)
        return {"known": True, "sentences": [{"text": text, "evidence": [handle]} for handle, text in shown.items()]}

    async with Memory.open(":memory:", embedder=None, model=ScriptedModel(both)) as memory:
        await memory.remember("The meeting room is on floor 3", confidence=0.9)
        newer = await memory.remember("The meeting room is on floor 5", confidence=0.2)
        assert newer.outdates
        answer = await memory.ask("On which floor is the meeting room?")
        assert [each.newer for each in answer.contradictions] == [newer.id]
        assert len(answer.sentences) == 2


async def test_an_answer_is_not_stored_and_its_cost_is() -> None:
    model = ScriptedModel(
        lambda *_: {"known": True, "sentences": [{"text": "Anna works at Globex.", "evidence": ["m1"]}]}
    )
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember("Anna works at Globex")
        before = await memory.log(), [node.content for node in (await memory.list()).nodes]
        await memory.ask("Where does Anna work?")
        assert (await memory.log(), [node.content for node in (await memory.list()).nodes]) == before
        assert sum(use.tokens_in for use in await memory.spending()) > 0


async def test_a_page_cannot_spend_the_owners_tokens() -> None:
    model = ScriptedModel([])
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember("Anna works at Globex")
        answer = await memory.scoped(Scope(owner="me", trust="web")).ask("Where does Anna work?")
        assert (answer.text, model.prompts) == ("Anna works at Globex", [])


async def test_another_owners_memories_answer_nothing() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.scoped(Scope(owner="ann")).remember("The alarm code is on the fridge")
        assert not (await memory.ask("Where is the alarm code?")).known


async def test_credentials_and_forgotten_sentences_do_not_reach_the_model() -> None:
    model = ScriptedModel(lambda *_: {"known": False, "sentences": []})
    async with Memory.open(":memory:", embedder=None, model=model) as memory:
        await memory.remember(
            "The door code of the cellar is hunter2-Xk9!vQ; password: hunter2-Xk9!vQ", keep_secrets=True
        )
        await memory.remember("The cellar door has a code")
        await memory.ask("What is the code of the cellar door?")
        assert model.prompts and all("hunter2" not in turn.text for turns in model.prompts for turn in turns)


@pytest.mark.parametrize(
    "question",
    [
        "Was steht im Dezember an?",
        "What is planned for December?",
        "What do I have in December?",
        "Che c'è a dicembre?",
    ],
)
async def test_all_plans_of_the_days_asked_about_are_listed(question: str) -> None:
    clock = HandClock()
    clock.ms = to_ms(datetime(2030, 11, 28, tzinfo=UTC))
    plans = {f"{what} on {day} December 2030" for day, what in enumerate(("Dentist", "Concert", "Gala", "Exam"), 3)}
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        for text in (*plans, "I like tea in December", "Meeting on 3 January 2031"):
            await memory.remember(text)
        answer = await memory.ask(question)
        assert plans <= {each.text for each in answer.sentences}
        block = str(await memory.context(question))
        assert all(plan in block for plan in plans)
        about_one = await memory.ask("What did I say about tea?")
        assert len(about_one.sentences) <= 3


@pytest.mark.parametrize(
    ("told", "question"),
    [
        (("My boss is Simon Archer", "My flight to Baku is on Friday"), "Who is in charge of me at work?"),
        (("Mein Arzt ist Herr Krug", "Ich fliege am Freitag nach Baku"), "Wann geht mein Flug?"),
        (("Мой начальник — Семён Гуров", "Я лечу в Баку в пятницу"), "Кто мой шеф?"),
    ],
)
async def test_a_question_that_was_asked_before_is_no_answer(told: Sequence[str], question: str) -> None:
    async with Memory.open(":memory:") as memory:
        for text in told:
            await memory.add(text, session="told")
        for number in range(4):
            await memory.add(question, session=f"asked {number}")
        await memory.settle()
        found = [hit.content for hit in await memory.search(question, limit=3)]
        assert set(found[: len(told)]) == set(told), found
        assert question not in (await memory.ask(question)).text


async def test_a_question_that_tells_something_is_an_answer() -> None:
    async with Memory.open(":memory:") as memory:
        await memory.add("Do you know that I live in Oslo?", session="a")
        await memory.add("I like the tram", session="b")
        await memory.settle()
        assert (await memory.search("Where do I live?")).hits[0].content == "Do you know that I live in Oslo?"
