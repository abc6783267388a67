"""Tasks: what is filed as one, and questions for what is still to be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from ricordo import InvalidError, Memory

_SETS = Path(__file__).parents[1] / "fixtures" / "tasks"


async def _filed_as_tasks(lines: list[str]) -> int:
    async with Memory.open(":memory:", embedder=None) as memory:
        return sum([(await memory.remember(line)).category == "task" for line in lines])


@pytest.mark.parametrize(
    ("name", "found", "false"),
    [("first", 60, 0), ("second", 58, 0), ("third", 50, 1)],
    ids=["used to make the rule", "used to extend it", "unseen by the rule"],
)
async def test_notes_to_oneself_are_tasks(name: str, found: int, false: int) -> None:
    lines = (_SETS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    tasks = [line[2:] for line in lines if line.startswith("+ ")]
    others = [line[2:] for line in lines if line.startswith("- ")]
    assert (len(tasks), len(others)) == (60, 60)
    assert await _filed_as_tasks(tasks) >= found
    assert await _filed_as_tasks(others) <= false


@pytest.mark.parametrize(
    "said",
    [
        "Call me Bob",
        "Take 5 mg daily",
        "Never call me before 9",
        "I got a cold",
        "Email: anna@example.org",
        "Phone: 0171 555 12 34",
        "Mail: anna@example.de",
        "Transfer of 120 EUR completed",
        "Don't remind me of anything on a Saturday",
        "If I ask about lunch, remind me that I am on a diet",
        "Se fue la luz en todo el barrio",
        "У Кости есть хомяк по кличке Пончик",
        "Я должен Серёге двадцать тысяч",
    ],
)
async def test_wishes_habits_and_reports_are_no_tasks(said: str) -> None:
    assert await _filed_as_tasks([said]) == 0


_ASKED = [
    "What do I still have to do?",
    "open tasks?",
    "What's left to do this week?",
    "What is to do?",
    "What still needs to be done?",
    "What should I not forget?",
    "Was muss ich noch erledigen?",
    "Was ist noch zu tun?",
    "Was muss noch erledigt werden?",
    "Offene Aufgaben?",
    "Что мне ещё нужно сделать?",
    "Какие у меня дела?",
    "¿Qué tengo que hacer todavía?",
    "¿Qué me queda por hacer?",
    "Qu'est-ce que je dois encore faire ?",
    "Que me reste-t-il à faire ?",
    "Qu'est-ce qu'il y a à faire ?",
    "Cosa mi resta da fare?",
    "O que me falta fazer?",
]


@pytest.mark.parametrize("embedder", [None, "default"])
async def test_open_tasks_are_found_in_any_language(embedder: str | None) -> None:
    options = {} if embedder == "default" else {"embedder": None}
    open_tasks = {
        "Müll rausbringen am Dienstag",
        "I still have to renew my passport",
        "Позвонить врачу завтра",
        "Buy a present for Sarah",
    }
    async with Memory.open(":memory:", **options) as memory:
        for said in open_tasks:
            await memory.remember(said, about=["Sarah"] if "Sarah" in said else [])
        done = await memory.remember("Pay the plumber by Friday")
        await memory.update(done.id, attributes={"done": True})
        for said in ("I like to do yoga", "Anna still has a dog", "My tasks at work are boring") * 15:
            await memory.remember(f"{said}, note {len(said)}")
        await memory.settle()
        for question in _ASKED:
            first = (await memory.search(question)).hits[:4]
            assert {hit.content for hit in first} == open_tasks, question
            relevant = [hit.content for hit in (await memory.search(question, only_relevant=True)).hits]
            assert set(relevant[:4]) == open_tasks, question
            assert {each.content for each in (await memory.ask(question)).hits} >= open_tasks, question
            block = str(await memory.context(question))
            assert all(said in block for said in open_tasks), question


@pytest.mark.parametrize(
    "question",
    [
        "What do I have to do to get a visa?",
        "What needs to be done to get a visa?",
        "What is there to do in Lisbon?",
        "What should I do about my back?",
        "Was muss ich tun, um abzunehmen?",
    ],
)
async def test_a_question_how_to_do_something_is_not_one_for_tasks(question: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember("Buy milk on the way home")
        assert not (await memory.search(question, only_relevant=True)).hits


async def test_a_task_is_done_and_open_again() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        first = await memory.remember("I still have to call the dentist")
        second = await memory.remember("I still have to renew my passport")
        done = await memory.update(first.id, done=True)
        assert done.attributes == {**first.attributes, "done": True}
        found = [hit.excerpt for hit in await memory.search("What do I still have to do?")]
        assert found == [second.content, f"{first.content} (done)"]
        open_ends = (await memory.brief()).partition("## Open ends")[2].partition("##")[0]
        assert second.content in open_ends and first.content not in open_ends
        assert (await memory.update(first.id, done=False)).attributes == first.attributes
        moved = await memory.remember("I moved to Rome")
        with pytest.raises(InvalidError, match="done: this memory is not a task"):
            await memory.update(moved.id, done=True)


async def test_a_done_task_does_not_come_first_for_its_day() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        task = await memory.remember("I have to call the bank tomorrow")
        visit = await memory.remember("The plumber comes tomorrow")
        await memory.update(task.id, done=True)
        assert (await memory.search("What do I have tomorrow?")).ids[0] == visit.id


@pytest.mark.parametrize(
    "told",
    [
        "I'll send Anna the invoice by Friday",
        "I promised to call Mum",
        "I promised Tom I would fix his bike",
        "I told Ben I'd return his drill",
        "Ich schicke Anna bis Freitag die Rechnung",
        "Ich habe versprochen, Mama anzurufen",
        "Le enviaré la factura a Ana antes del viernes",
        "Prometí llamar a mamá",
        "J'enverrai la facture à Anna d'ici vendredi",
        "J'ai promis d'appeler maman",
        "Manderò la fattura ad Anna entro venerdì",
        "Ho promesso di chiamare la mamma",
        "Vou enviar a fatura à Ana até sexta",
        "Prometi ligar à mãe",
        "Я отправлю Анне счёт до пятницы",
        "Я обещал позвонить маме",
    ],
)
async def test_a_promise_is_a_task_and_stands_among_the_open_ends(told: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        assert (await memory.remember(told)).category == "task"
        assert told[:15] in str(await memory.brief()).partition("## Open ends")[2]


@pytest.mark.parametrize(
    "told",
    [
        "I'll be in Rome on Friday",
        "I'll never eat there again",
        "I promised to always tell the truth",
        "Tom promised to call",
        "Ich habe bis Freitag Urlaub",
        "Анна обещала позвонить",
        "I'll see Anna before lunch",
    ],
)
async def test_a_plan_a_principle_and_what_others_promise_is_no_task(told: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        assert (await memory.remember(told)).category != "task"
