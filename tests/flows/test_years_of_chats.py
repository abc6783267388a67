"""Questions over years of messages: about one of the years, and about the present."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Memory, Message, Settings

PLACES = ("Crete", "Bornholm", "Madeira", "Corsica", "Gotland", "Elba", "Skye", "Usedom", "Malta", "Rügen")


async def years_of_chat(memory: Any) -> None:
    """Add ten years of messages: each summer a holiday, and then chatter about holidays until the end of the year."""
    said = []
    for number, place in enumerate(PLACES):
        year = 2012 + number
        told = f"Our holiday here on {place} is so quiet"
        said.append(Message(text=told, at=f"{year}-07-10", speaker="Ann", session=f"s{year}"))
        for day in range(1, 61):
            text = f"I need another holiday, day {day} of rain" if day % 2 else f"Ok, see you at {day}"
            at = f"{year}-{9 + day // 28:02}-{1 + day % 28:02}"
            said.append(Message(text=text, at=at, speaker="Bob", session=f"c{year}{day // 10}"))
    told = "Do you remember how we got lost on our holiday on Gozo in 2009"
    said.append(Message(text=told, at="2021-02-03", speaker="Ann", session="later"))
    await memory.add_many(said)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Where were we on holiday in summer 2014?", "Madeira"),
        ("Where did we go on holiday in 2013?", "Bornholm"),
        ("Where were we on our holiday in 2009?", "Gozo"),
    ],
)
async def test_a_question_about_a_year_is_answered_from_that_year(memory: Any, question: str, place: str) -> None:
    await years_of_chat(memory)
    best = (await memory.search(question, limit=5)).hits
    assert any(place in hit.content for hit in best)


@pytest.mark.parametrize("question", ["our 2016 holiday", "holiday 2016", "Was war 2016 mit holiday?"])
async def test_what_was_said_in_the_year_comes_first(memory: Any, question: str) -> None:
    await years_of_chat(memory)
    assert {hit.event_time.year for hit in (await memory.search(question, limit=5)).hits} == {2016}


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Wo waren wir 2021 im Urlaub?", "2021"),
        ("Wer hat 2016 geheiratet?", "2016"),
        ("Weihnachten 2020", "2020"),
        ("im Juli 2019", "im Juli 2019"),
        ("Dove eravamo nel 2019?", "nel 2019"),
        ("Onde estávamos em 2020?", "em 2020"),
        ("Отпуск 2021", "2021"),
        ("Where were we at Christmas 2019?", "2019"),
        ("What is my PIN 2019?", ""),
        ("Wo ist das Zimmer 2024?", ""),
        ("Wie habe ich die 2000 Euro verdient?", ""),
        ("who wrote 1984", ""),
    ],
)
async def test_a_year_without_a_preposition_is_understood(memory: Any, question: str, meant: str) -> None:
    await memory.add("Hello")
    trace = (await memory.search(question, trace=True)).trace
    assert trace.interval == meant


NOW = """
Where does Tom work now? | Tom works at Acme | Tom works at Globex | Tom works at Initech
Anna's current address? | Anna's address is Elm Road 1 | Anna's address is Oak Lane 2 | Anna's address is Pine Way 3
Wo arbeitet Tom jetzt? | Tom arbeitet bei Acme | Tom arbeitet bei Globex | Tom arbeitet bei Initech
Где сейчас работает Том? | Том работает в Акме | Том работает в Глобексе | Том работает в Инитеке
¿Dónde trabaja Tom ahora? | Tom trabaja en Acme | Tom trabaja en Globex | Tom trabaja en Initech
Où travaille Tom maintenant ? | Tom travaille chez Acme | Tom travaille chez Globex | Tom travaille chez Initech
""".strip().splitlines()


@pytest.mark.parametrize("line", NOW)
async def test_a_question_about_now_is_answered_by_the_latest_message(memory: Any, line: str) -> None:
    question, *said = line.split(" | ")
    for number in (2, 0, 1):
        at = f"{2015 + 3 * number}-05-01"
        await memory.add(said[number], at=at, speaker="Bob", session=f"s{number}")
        await memory.add("Nice weather today", at=at, speaker="Eve", session=f"s{number}")
    assert [hit.content for hit in (await memory.search(question, limit=3)).hits] == said[::-1]


MOVED = {
    "en": ("I live in Leeds", "Since May the three of us have been settled in Ghent", "Where do I live?"),
    "de": ("Ich wohne in Kiel", "Vertrag unterschrieben: wir leben jetzt in Graz", "Wo wohne ich?"),
    "ru": ("Я живу в Риге", "Ключи у нас: теперь мы поселились в Таллине", "Где я живу?"),
    "es": ("Vivo en Lugo", "Firmamos ayer: ahora residimos en Sevilla", "¿Dónde vivo?"),
    "fr": ("J'habite à Lille", "C'est signé : nous vivons maintenant à Nantes", "Où est-ce que j'habite ?"),
    "it": ("Abito a Bra", "Preso possesso della casa: adesso viviamo a Lecce", "Dove abito?"),
    "pt": ("Moro em Faro", "Escritura assinada: agora vivemos em Braga", "Onde moro?"),
}


@pytest.mark.parametrize("language", MOVED)
async def test_the_present_home_is_found_in_another_form_among_hundreds_of_messages(memory: Any, language: str) -> None:
    old, new, question = MOVED[language]
    said = [Message(text=f"{old}, {number}", at=f"2015-02-{number:02}", session="old") for number in range(1, 29)]
    said += [Message(text=f"Ok, {number}!", at=f"2018-{1 + number % 9:02}-11", session="ok") for number in range(300)]
    said.append(Message(text=new, at="2019-05-01", session="new"))
    said += [Message(text=f"{old}, {number}", at="2014-02-01", session="older") for number in range(70)]
    await memory.add_many(said)
    await memory.add("I live in Rome now", session="friend", speaker="Bob", at="2020-01-01")
    assert (await memory.search(question)).hits[0].content == new


async def test_a_word_for_a_state_in_another_sense_does_not_answer_for_the_present(memory: Any) -> None:
    await memory.add("We live in Ghent", session="home", at="2024-01-10")
    for number, thing in enumerate(("the sofa", "our meeting", "everything")):
        await memory.add(f"We moved {thing} today", session=thing, at=f"2025-0{number + 1}-10")
    assert (await memory.search("Where do I live?")).hits[0].content == "We live in Ghent"


@pytest.mark.parametrize(
    ("repeated", "answer", "question", "when"),
    [
        (
            "The lift is broken again",
            "Kone sent two people for the lift",
            "Who mends our broken lift?",
            "When was the lift broken?",
        ),
        (
            "Der Aufzug ist schon wieder kaputt",
            "Kone hat zwei Leute wegen dem Aufzug geschickt",
            "Wer macht den Aufzug, der kaputt ist?",
            "Wann war der Aufzug kaputt?",
        ),
    ],
)
async def test_a_message_sent_many_times_does_not_crowd_out_others(
    memory: Any, repeated: str, answer: str, question: str, when: str
) -> None:
    said = [Message(text=repeated, at=f"2021-{1 + number % 12:02}-10", session=f"s{number}") for number in range(45)]
    said.append(Message(text=answer, at="2022-01-10", session="later"))
    said += [Message(text=f"See you at {number}", at="2019-01-10", session="first") for number in range(20)]
    await memory.add_many(said)
    assert {hit.content for hit in (await memory.search(question)).hits[:2]} == {repeated, answer}
    often = [hit.content for hit in (await memory.search(when)).hits]
    assert often.count(repeated) > 1


async def test_what_the_named_person_says_comes_before_what_others_say_of_themselves(memory: Any) -> None:
    said = (
        ("Olga", "I opened the bakery on Elm Street!"),
        (None, "I go back to work in May, part time"),
        ("Ben", "I work at the harbour now"),
        (None, "Work is a lot these days"),
        ("Olga", "Good morning"),
    )
    for day, (speaker, text) in enumerate(said):
        await memory.add(text, session="friends", speaker=speaker, at=f"2025-01-{10 + day}")
    for question in ("Where does Olga work?", "Where does Olga work now?"):
        assert [hit.speaker for hit in (await memory.search(question)).hits[:2]] == ["Olga", "Olga"], question


async def test_what_others_say_of_themselves_is_not_who_the_owner_is(memory: Any) -> None:
    said = [(None, "I live in Leipzig"), ("Tom", "I'm allergic to peanuts"), ("Anna", "I'm pregnant")]
    await memory.add_many([Message(text=text, speaker=name, session="group", role="user") for name, text in said])
    await memory.consolidate()
    who = (await memory.brief(since="2020-01-01")).split("## New")[0]
    assert "Leipzig" in who
    assert "peanuts" not in who
    assert "pregnant" not in who
    assert [fact.content for fact in (await memory.entity("me")).facts] == ["I live in Leipzig"]
    assert "I'm pregnant (said by Anna)" in await memory.context("Who is pregnant?")


SMALL_TALK = (
    "Ahahah",
    "Ligo-te depois",
    "Que sono",
    "Estou no metro",
    "Perdi os auscultadores",
    "Está trânsito na ponte",
    "Boa noite, até amanhã",
    "Tenho saudades",
    "Que calor",
    "Compra detergente",
    "Dormi sete horas",
    "Trazes pão?",
)


async def chats_with_tiago(memory: Any) -> None:
    """Add three hundred empty messages of Tiago, and what others said of work, birthdays and concrete."""
    said = [
        Message(text=text, at=f"20{15 + each // 2}-03-{1 + place}", speaker="Tiago Moreira", session=f"t{each}")
        for each in range(20)
        for place, text in enumerate(SMALL_TALK)
    ]
    told = (
        "I work at a design studio",
        "Happy birthday to all of you",
        "Tell me a joke about concrete",
        "Call the plumber",
    )
    said += [Message(text=text, at="2023-05-02", role="user", session=f"own{place}") for place, text in enumerate(told)]
    said.append(
        Message(
            text="My washing machine leaks on the kitchen floor", at="2024-02-01", speaker="Tiago Moreira", session="x"
        )
    )
    await memory.add_many(said)
    await memory.settle(600)


async def test_the_name_of_a_speaker_alone_brings_nothing_that_person_said() -> None:
    async with Memory.open(":memory:", embedder="default", settings=Settings(durability="process")) as memory:
        await chats_with_tiago(memory)
        prompts = (
            "Where does Tiago work?",
            "What should I give Tiago for his birthday?",
            "I should call Tiago about the concrete",
            "What is Tiago's blood type?",
        )
        for prompt in prompts:
            found = await memory.search(prompt, judge=True)
            assert not [hit.content for hit in found if hit.is_relevant and hit.speaker], prompt
            assert "Tiago" not in (await memory.context(prompt) or ""), prompt
        (best, *_) = await memory.search("What is wrong with Tiago's washing machine?", only_relevant=True)
        assert best.content == "My washing machine leaks on the kitchen floor"
