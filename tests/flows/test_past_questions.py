"""Questions about a past time: where somebody lived in 2019, what happened in April 2021."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ricordo import Memory
from ricordo.clock import to_ms
from tests.flows.conftest import HandClock


def _at(year: int, month: int = 6, day: int = 15) -> datetime:
    return datetime(year, month, day, 12, tzinfo=UTC)


# Of each story: the home since 2018, told then; since 2020, told in 2022; since 2021, told in 2023; the jobs since 2019
# and 2021; the events of April 2021 and July 2020; and what has nothing to do with the questions.
WHEN = [
    (2018, 3, 20),
    (2022, 5, 5),
    (2023, 1, 10),
    (2019, 2, 1),
    (2021, 2, 3),
    (2021, 4, 4),
    (2020, 7, 20),
    (2021, 8, 8),
    (2019, 9, 9),
    (2022, 3, 3),
    (2024, 4, 4),
    (2025, 5, 5),
]
STORIES = {
    "en": [
        "I moved to Porto in March 2018",
        "In 2020 I moved to Ghent",
        "I've lived in Lyon since 2021",
        "I work at Acme as a baker",
        "I've started a new job at Globex",
        "My cat Miso died",
        "We went hiking in Iceland",
        "I bought a new bike",
        "I love apple cake",
        "My sister Nora is learning Dutch",
        "My back hurts a lot",
        "I'm reading a book about bees",
    ],
    "de": [
        "Ich bin im März 2018 nach Porto gezogen",
        "2020 bin ich nach Gent gezogen",
        "Seit 2021 wohne ich in Lyon",
        "Ich arbeite bei Acme als Bäcker",
        "Ich habe eine neue Stelle bei Globex angefangen",
        "Meine Katze Miso ist gestorben",
        "Wir waren in Island wandern",
        "Ich habe mir ein neues Fahrrad gekauft",
        "Ich mag Apfelkuchen sehr",
        "Meine Schwester Nora lernt Niederländisch",
        "Mein Rücken tut sehr weh",
        "Ich lese ein Buch über Bienen",
    ],
    "ru": [
        "В марте 2018 года я переехал в Порту",
        "В 2020 году я переехал в Гент",
        "Я живу в Лионе с 2021 года",
        "Я работаю в Acme пекарем",
        "Я устроился на новую работу в Globex",
        "Моя кошка Мисо умерла",
        "Мы ходили в поход по Исландии",
        "Я купил новый велосипед",
        "Я люблю яблочный пирог",
        "Моя сестра Нора учит голландский",
        "У меня очень болит спина",
        "Я читаю книгу о пчёлах",
    ],
    "es": [
        "Me mudé a Oporto en marzo de 2018",
        "En 2020 me mudé a Gante",
        "Vivo en Lyon desde 2021",
        "Trabajo en Acme de panadero",
        "Empecé un trabajo nuevo en Globex",
        "Se murió mi gata Miso",
        "Fuimos de senderismo a Islandia",
        "Me compré una bicicleta nueva",
        "Me encanta la tarta de manzana",
        "Mi hermana Nora aprende neerlandés",
        "Me duele mucho la espalda",
        "Estoy leyendo un libro sobre abejas",
    ],
    "fr": [
        "J'ai déménagé à Porto en mars 2018",
        "En 2020 j'ai déménagé à Gand",
        "J'habite à Lyon depuis 2021",
        "Je travaille chez Acme comme boulanger",
        "J'ai commencé un nouveau boulot chez Globex",
        "Mon chat Miso est mort",
        "Nous sommes allés randonner en Islande",
        "J'ai acheté un nouveau vélo",
        "J'adore la tarte aux pommes",
        "Ma sœur Nora apprend le néerlandais",
        "J'ai très mal au dos",
        "Je lis un livre sur les abeilles",
    ],
    "it": [
        "Mi sono trasferito a Porto a marzo 2018",
        "Nel 2020 mi sono trasferito a Gand",
        "Vivo a Lione dal 2021",
        "Lavoro alla Acme come panettiere",
        "Ho iniziato un nuovo lavoro alla Globex",
        "La mia gatta Miso è morta",
        "Siamo andati a fare escursioni in Islanda",
        "Ho comprato una bici nuova",
        "Adoro la torta di mele",
        "Mia sorella Nora studia olandese",
        "Mi fa molto male la schiena",
        "Sto leggendo un libro sulle api",
    ],
    "pt": [
        "Mudei-me para o Porto em março de 2018",
        "Em 2020 mudei-me para Gante",
        "Moro em Lyon desde 2021",
        "Trabalho na Acme como padeiro",
        "Comecei um trabalho novo na Globex",
        "A minha gata Miso morreu",
        "Fomos fazer caminhadas na Islândia",
        "Comprei uma bicicleta nova",
        "Adoro tarte de maçã",
        "A minha irmã Nora está a aprender neerlandês",
        "Doem-me muito as costas",
        "Estou a ler um livro sobre abelhas",
    ],
}
# Of each language: the homes in 2019 and 2022, and the one before the last; the jobs in 2020 and 2022; and what
# happened in summer 2020, in April 2021 and in 2018.
RIGHT = [0, 2, 1, 3, 4, 6, 5, 0]
QUESTIONS = {
    "en": [
        "Where did I live in 2019?",
        "Where did I live in 2022?",
        "Where did I live before I moved to Lyon?",
        "Where did I work in 2020?",
        "Where did I work in 2022?",
        "What did I do in summer 2020?",
        "What happened in April 2021?",
        "What happened in 2018?",
    ],
    "de": [
        "Wo habe ich 2019 gewohnt?",
        "Wo habe ich 2022 gewohnt?",
        "Wo habe ich gewohnt, bevor ich nach Lyon gezogen bin?",
        "Wo habe ich 2020 gearbeitet?",
        "Wo habe ich 2022 gearbeitet?",
        "Was habe ich im Sommer 2020 gemacht?",
        "Was ist im April 2021 passiert?",
        "Was ist 2018 passiert?",
    ],
    "ru": [
        "Где я жил в 2019 году?",
        "Где я жил в 2022 году?",
        "Где я жил до переезда в Лион?",
        "Где я работал в 2020 году?",
        "Где я работал в 2022 году?",
        "Что я делал летом 2020 года?",
        "Что случилось в апреле 2021 года?",
        "Что случилось в 2018 году?",
    ],
    "es": [
        "¿Dónde vivía en 2019?",
        "¿Dónde vivía en 2022?",
        "¿Dónde vivía antes de mudarme a Lyon?",
        "¿Dónde trabajaba en 2020?",
        "¿Dónde trabajaba en 2022?",
        "¿Qué hice en el verano de 2020?",
        "¿Qué pasó en abril de 2021?",
        "¿Qué pasó en 2018?",
    ],
    "fr": [
        "Où est-ce que j'habitais en 2019 ?",
        "Où est-ce que j'habitais en 2022 ?",
        "Où est-ce que j'habitais avant de déménager à Lyon ?",
        "Où est-ce que je travaillais en 2020 ?",
        "Où est-ce que je travaillais en 2022 ?",
        "Qu'est-ce que j'ai fait pendant l'été 2020 ?",
        "Que s'est-il passé en avril 2021 ?",
        "Que s'est-il passé en 2018 ?",
    ],
    "it": [
        "Dove vivevo nel 2019?",
        "Dove vivevo nel 2022?",
        "Dove vivevo prima di trasferirmi a Lione?",
        "Dove lavoravo nel 2020?",
        "Dove lavoravo nel 2022?",
        "Cosa ho fatto nell'estate 2020?",
        "Cosa è successo ad aprile 2021?",
        "Cosa è successo nel 2018?",
    ],
    "pt": [
        "Onde é que eu morava em 2019?",
        "Onde é que eu morava em 2022?",
        "Onde é que eu morava antes de me mudar para Lyon?",
        "Onde é que eu trabalhava em 2020?",
        "Onde é que eu trabalhava em 2022?",
        "O que fiz no verão de 2020?",
        "O que aconteceu em abril de 2021?",
        "O que aconteceu em 2018?",
    ],
}


@pytest.fixture
def clock() -> HandClock:
    hand = HandClock()
    hand.ms = to_ms(_at(2026, 11, 28))
    return hand


@pytest.mark.parametrize("language", STORIES)
@pytest.mark.parametrize("is_said", [True, False])
async def test_what_held_or_happened_in_a_past_time_comes_first(language: str, is_said: bool, clock: HandClock) -> None:
    story = sorted(zip(WHEN, STORIES[language], strict=True))
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        for day, text in story:
            await (memory.add(text, session=text, at=_at(*day)) if is_said else memory.remember(text, at=_at(*day)))
        if is_said:
            await memory.consolidate()
        await memory.settle(600)
        for question, right in zip(QUESTIONS[language], RIGHT, strict=True):
            answer = STORIES[language][right]
            if question != "Qu'est-ce que j'ai fait pendant l'été 2020 ?":  # its "j'ai" is in other memories, too
                assert (await memory.search(question)).hits[0].content == answer, question
            assert answer in (await memory.context(question) or ""), question


async def _first(memory: Any, question: str) -> str | None:
    return next((hit.content for hit in (await memory.search(question)).hits), None)


async def test_a_replaced_fact_answers_for_the_time_in_which_it_held(clock: HandClock) -> None:
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        porto = await memory.remember("I live in Porto", valid_from="2018-03-01")
        ghent = await memory.correct(porto.id, "I live in Ghent", at="2020-05-01")
        lyon = await memory.correct(ghent.id, "I live in Lyon", at="2022-02-01")
        for year, content in ((2019, porto.content), (2021, ghent.content), (2023, lyon.content)):
            assert await _first(memory, f"Where did I live in {year}?") == content
            assert content in (await memory.context(f"Where did I live in {year}?") or "")
        assert await _first(memory, "Where did I live before I moved to Lyon?") == ghent.content
        assert (await memory.search("Where did I live in 2019?")).hits[0].notice == "replaced since 2020-05-01"
        assert (await memory.search("Where do I live?")).ids == [lyon.id]


async def test_a_forgotten_fact_answers_no_question_about_its_time(clock: HandClock) -> None:
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        fact = await memory.remember("I work at Acme", valid_from="2015-01-01")
        await memory.forget(fact.id)
        assert (await memory.search("Where did I work in 2016?")).ids == []


async def test_each_person_has_a_past_of_their_own(clock: HandClock) -> None:
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"], at=_at(2018))
        await memory.remember("Anna lives in Oslo", about=["Anna"], at=_at(2021))
        await memory.remember("I live in Bern", at=_at(2017))
        assert await _first(memory, "Where did Anna live in 2019?") == "Anna lives in Rome"
        assert await _first(memory, "Where did Anna live in 2022?") == "Anna lives in Oslo"
        assert await _first(memory, "Where did I live in 2022?") == "I live in Bern"


async def test_a_word_for_work_alone_ends_no_job(clock: HandClock) -> None:
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        for text, year in (
            ("I work at Acme", 2018),
            ("My way to work is long", 2019),
            ("I lived in Rome until 2009", 2023),
        ):
            await memory.add(text, session="talk", at=_at(year))
        assert await _first(memory, "Where did I work in 2021?") == "I work at Acme"
        assert await _first(memory, "Where did I live in 2007?") == "I lived in Rome until 2009"
        assert await _first(memory, "Where did I live before 2008?") == "I lived in Rome until 2009"


async def test_a_time_in_the_text_counts_more_than_the_day_on_which_it_was_said(clock: HandClock) -> None:
    async with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        told = await memory.add("We sold the boat in 2019", session="a", at=_at(2022))
        said = await memory.add("We painted the boat", session="b", at=_at(2022) + timedelta(days=1))
        assert (await memory.search("What about the boat in 2019?")).ids[0] == told
        assert (await memory.search("What about the boat in 2022?")).ids[0] == said


@pytest.mark.parametrize(
    "question",
    ["Where did I live?", "Where do I live?", "Wo habe ich gewohnt?", "Где я жил?", "Où est-ce que j'habitais ?"],
)
async def test_the_archive_is_asked_for_former_homes(memory: Any, question: str) -> None:
    home = await memory.remember("We moved to Porto", at="2024-01-10")
    second = await memory.correct(home.id, "We have moved to Ghent", at="2024-06-10")
    await memory.correct(second.id, "I live in Lyon", at="2025-06-10")
    found = [hit.content for hit in await memory.search(question, archived=True, only_relevant=True)]
    assert {*found} == {"We moved to Porto", "We have moved to Ghent"}
    in_march = await memory.search("Where did I live in March 2024?", archived=True, only_relevant=True)
    assert [hit.content for hit in in_march] == ["We moved to Porto"]


@pytest.mark.parametrize(
    ("question", "then"),
    [
        ("What happened in March 2019?", {"spoon", "boiler", "anniversary"}),
        ("What was there in spring 2019?", {"spoon", "boiler", "anniversary"}),
        ("What happened on 7 March 2019?", {"boiler", "anniversary"}),
        ("Was ist im März 2019 passiert?", {"spoon", "boiler", "anniversary"}),
        ("Cosa è successo nel marzo 2019?", {"spoon", "boiler", "anniversary"}),
    ],
)
async def test_what_happened_then_comes_before_hits_of_other_years(question: str, then: set[str]) -> None:
    said = {
        "spoon": ("Carved a spoon with Otto on the pier", _at(2019, 3, 2)),
        "boiler": ("The boiler gave up, ice on the windows", _at(2019, 3, 7)),
        "best": ("The best thing that happened to me, and what happened was odd", _at(2023, 3, 9)),
        "march": ("Was there anything else there in March? Was ist passiert? Cosa è successo?", _at(2022, 3, 3)),
        "spring": ("What was there was spring itself", _at(2024, 4, 1)),
        "anniversary": ("Seven years since the flood of 7 March 2019", _at(2025, 3, 7)),
    }
    async with Memory.open(":memory:", clock=HandClock()) as memory:
        for text, at in said.values():
            await memory.add(text, speaker="Ann", at=at)
        found = [hit.content for hit in (await memory.search(question, limit=6)).hits]
    names = [next(name for name, (text, _) in said.items() if text == content) for content in found]
    assert set(names[: len(then)]) == then, names


# Words of the questions below, in messages of other times.
ELSEWHERE = [
    "What happened with the bus was that it did not come, what a day",
    "Tell me what you did, I did nothing",
    "Was habe ich gemacht? Was ist passiert, was war los?",
    "Что случилось? Что я делал, чем занимался?",
    "¿Qué pasó? ¿Qué hice yo? ¿Qué hubo?",
    "Que s'est-il passé ? Qu'ai-je fait ? De quoi avons-nous parlé ?",
]


@pytest.mark.parametrize(
    "question",
    [
        "What happened in July 2024?",
        "What did I do in July 2024?",
        "How was July 2024?",
        "Was ist im Juli 2024 passiert?",
        "Was gab es im Juli 2024?",
        "Что случилось в июле 2024 года?",
        "Чем я занимался в июле 2024 года?",
        "¿Qué pasó en julio de 2024?",
        "¿Qué hubo en julio de 2024?",
        "Que s'est-il passé en juillet 2024 ?",
        "Qu'ai-je fait en juillet 2024 ?",
        "De quoi avons-nous parlé en juillet 2024 ?",
        "What happened on 9 July 2024?",
        "Was habe ich am 9. Juli 2024 gemacht?",
        "¿Qué hice el 9 de julio de 2024?",
    ],
)
async def test_what_happened_then_comes_first_in_order_of_time(question: str) -> None:
    then = {9: "The boiler gave up", 3: "Otto carved a spoon", 30: "Nora signed the lease", 17: "Tim hurt his arm"}
    async with Memory.open(":memory:", embedder=None, clock=HandClock()) as memory:
        for day, text in then.items():
            await memory.add(text, at=_at(2024, 7, day))
        for number in range(60):
            text = f"{ELSEWHERE[number % len(ELSEWHERE)]} {number}"
            await memory.add(text, at=_at(2024, 9) + timedelta(days=number))
        found = [hit.content for hit in await memory.search(question)]
    days = [9] if " 9" in question else sorted(then)
    assert found[: len(days)] == [then[day] for day in days]


@pytest.mark.parametrize(
    "question", ["What about the boiler in July 2024?", "What happened to the boiler in July 2024?"]
)
async def test_what_names_the_topic_in_the_time_asked_about_comes_before_other_times(question: str) -> None:
    async with Memory.open(":memory:", embedder=None, clock=HandClock()) as memory:
        await memory.add(
            "Some men came, and the boiler gave up again before they had left for good", at=_at(2024, 7, 9)
        )
        for number in range(8):
            text = f"What happened to the boiler happened to the boiler of flat {number}"
            await memory.add(text, at=_at(2024, 9) + timedelta(days=number))
        assert (await memory.search(question)).hits[0].content.startswith("Some men")
