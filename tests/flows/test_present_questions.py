"""A question for something of which a person has one at a time is answered by the latest statement about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ricordo import Memory, Scope
from tests.flows.conftest import DAY, HandClock

TOLD = {
    "en": ("I live in Porto", "We moved to Ghent", "I work at Acme as a baker", "Since June I work at Lidl"),
    "de": (
        "Ich wohne in Kiel",
        "Wir sind nach Graz gezogen",
        "Ich arbeite bei Siemens",
        "Seit Juni arbeite ich bei Lidl",
    ),
    "ru": ("Я живу в Риге", "Мы переехали в Таллин", "Я работаю в Яндексе", "С июня я работаю в Сбере"),
    "es": ("Vivo en Madrid", "Nos mudamos a Sevilla", "Trabajo en Acme", "Desde junio trabajo en Lidl"),
    "fr": (
        "J'habite à Lille",
        "On a déménagé à Nantes",
        "Je travaille chez Acme",
        "Depuis juin je travaille chez Lidl",
    ),
    "it": ("Vivo a Torino", "Ci siamo trasferiti a Milano", "Lavoro alla Fiat", "Da giugno lavoro alla Lidl"),
    "pt": ("Moro em Lisboa", "Mudei-me para o Porto", "Trabalho na Acme", "Desde junho trabalho no Lidl"),
}
ASKED = {
    "en": ("Where do I live?", "Where do I work?", "Where does Ines live?"),
    "de": ("Wo wohne ich?", "Wo arbeite ich jetzt?", "Wo wohnt Ines?"),
    "ru": ("Где я живу?", "Где я работаю?", "Где живёт Ines?"),
    "es": ("¿Dónde vivo?", "¿Dónde trabajo?", "¿Dónde vive Ines?"),
    "fr": ("Où est-ce que j'habite ?", "Où est-ce que je travaille ?", "Où habite Ines ?"),
    "it": ("Dove vivo?", "Dove lavoro?", "Dove vive Ines?"),
    "pt": ("Onde moro?", "Onde trabalho?", "Onde vive a Ines?"),
}
TIMES = ("2024-01-10", "2025-03-10", "2024-02-01", "2025-06-20")
SISTER = "My sister Ines lives in Faro"


@pytest.mark.parametrize("language", TOLD)
@pytest.mark.parametrize("is_message", [False, True])
async def test_the_latest_home_and_job_come_first(memory: Any, language: str, is_message: bool) -> None:
    for number, (text, at) in enumerate(zip((*TOLD[language], SISTER), (*TIMES, "2025-12-01"), strict=True)):
        if is_message:
            await memory.add(text, session=f"talk {number}", at=at)
        else:
            await memory.remember(text, at=at)
    _, home, _, job = TOLD[language]
    for question, answer in zip(ASKED[language], (home, job, SISTER), strict=True):
        assert (await memory.search(question)).hits[0].content == answer, question


async def test_the_home_of_a_relative_is_not_that_of_the_user(memory: Any) -> None:
    await memory.remember("My sister lives in Faro", at="2024-01-10")
    await memory.remember("My sister has moved to Coimbra", at="2025-01-10")
    await memory.remember("I have moved to Ghent", at="2025-06-10")
    assert (await memory.search("Where does my sister live?")).hits[0].content == "My sister has moved to Coimbra"
    assert (await memory.search("Where do I live?")).hits[0].content == "I have moved to Ghent"


async def test_a_period_that_is_over_stands_below_what_holds_since(memory: Any) -> None:
    await memory.remember("From April 2019 to May 2021 I lived with Pavel in a flat in Riga.")
    await memory.remember("Since 27 October 2023 we live in our own house in Viimsi.")
    hits = (await memory.search("Where do I live?")).hits
    assert [hit.content.split()[-1] for hit in hits] == ["Viimsi.", "Riga."]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("My dentist is Dr. Braun.", "My dentist is Dr. Weiss now.", "Who is my dentist?"),
        ("I drive a Volvo.", "Sold the Volvo, got a Tesla.", "What car do I drive?"),
        ("I work at Polpharma.", "I quit Polpharma, I'm at Nokia now.", "Where do I work?"),
    ],
)
async def test_a_message_stands_below_what_changed_since(memory: Any, older: str, newer: str, question: str) -> None:
    for session, (text, at) in enumerate(((older, "2025-03-01"), (newer, "2025-06-01"))):
        await memory.add(text, session=f"talk {session}", at=at)
        await memory.consolidate()
    assert (await memory.search(question)).hits[0].content.rstrip(".") == newer.rstrip(".")


CAR = {
    "en": ("I drive a Volvo.", "Sold the Volvo, we picked up a Skoda.", "What car do I drive?"),
    "de": (
        "Ich fahre einen Volvo.",
        "Den Volvo haben wir verkauft, jetzt ist es ein Skoda.",
        "Welches Auto fahre ich?",
    ),
    "ru": ("Я езжу на Вольво.", "Вольво продали, взяли Шкоду.", "На какой машине я езжу?"),
    "es": ("Conduzco un Volvo.", "Vendimos el Volvo y compramos un Skoda.", "¿Qué coche conduzco?"),
    "fr": ("Je conduis une Volvo.", "On a vendu la Volvo et pris une Skoda.", "Quelle voiture est-ce que je conduis ?"),
    "it": ("Guido una Volvo.", "Abbiamo venduto la Volvo e preso una Skoda.", "Che macchina guido?"),
    "pt": ("Conduzo um Volvo.", "Vendemos o Volvo e comprámos um Skoda.", "Que carro conduzo?"),
}
PHONE_AND_DOCTOR = [
    ("I have a Samsung Galaxy.", "Got a Pixel now.", "I left the phone at home.", "What phone do I have?"),
    ("My doctor is Dr. Braun.", "I've switched to Dr. Weiss as my GP.", "I need a pen.", "Who is my doctor?"),
    (
        "Lotte goes to Elm School.",
        "Lotte has moved to the Hill academy.",
        "Lotte sang.",
        "Which school does Lotte go to?",
    ),
]


@pytest.mark.parametrize(
    ("older", "newer", "last", "question"),
    [*((older, newer, "", question) for older, newer, question in CAR.values()), *PHONE_AND_DOCTOR],
)
async def test_the_latest_thing_of_a_kind_comes_first_in_any_words(
    memory: Any, older: str, newer: str, last: str, question: str
) -> None:
    for number, text in enumerate(filter(None, (older, newer, last))):
        await memory.add(text, session=f"talk {number}", at=f"2025-0{number + 1}-10")
    assert (await memory.search(question)).hits[0].content == newer


FORBIDDEN = {
    "en": ("Emil eats fast.", "Emil is allergic to peanuts.", "What can't Emil eat?"),
    "de": ("Emil darf heute im Garten essen.", "Emil verträgt keine Nüsse.", "Was darf Emil nicht essen?"),
    "ru": ("Костя ест быстро.", "У Кости аллергия на орехи.", "Что нельзя есть Косте?"),
    "es": ("Emilio come rápido.", "Emilio es alérgico a los cacahuetes.", "¿Qué no puede comer Emilio?"),
    "fr": ("Émile mange vite.", "Émile est allergique aux noix.", "Qu'est-ce qu'Émile ne peut pas manger ?"),
    "it": ("Emilio mangia in fretta.", "Emilio è allergico alle noci.", "Cosa non può mangiare Emilio?"),
    "pt": ("O Emílio come depressa.", "O Emílio é alérgico a nozes.", "O que é que o Emílio não pode comer?"),
}


@pytest.mark.parametrize("language", FORBIDDEN)
async def test_what_somebody_cannot_eat_comes_before_what_else_is_said_of_them(memory: Any, language: str) -> None:
    other, allergy, question = FORBIDDEN[language]
    await memory.add(allergy, session="first", speaker="Mia", at="2025-01-10")
    await memory.add(other, session="later", speaker="Mia", at="2025-02-10")
    assert (await memory.search(question)).hits[0].content == allergy


async def test_several_allergies_hold_at_once(memory: Any) -> None:
    for number, food in enumerate(("peanuts", "eggs")):
        await memory.add(f"Emil is allergic to {food}.", session=food, at=f"2025-0{number + 1}-10")
    await memory.add("Tom is allergic to cats.", session="cats", at="2025-03-10")
    await memory.add("Emil cooks, but he doesn't eat much.", session="much", at="2025-04-10")
    await memory.add("Emil eats his soup.", session="soup", at="2025-05-10")
    hits = (await memory.search("What is Emil not allowed to eat?")).hits
    assert {"Emil is allergic to eggs.", "Emil is allergic to peanuts."} <= {hit.content for hit in hits[:3]}


IDENTITY = {
    "en": ("Priya is my boss at the museum.", "Priya is late.", "Who is Priya?"),
    "de": ("Priya ist meine Chefin im Museum.", "Priya ist zu spät.", "Wer ist Priya?"),
    "ru": ("Вера — моя начальница в музее.", "Вера опаздывает.", "Кто такая Вера?"),
    "es": ("Priya es mi jefa en el museo.", "Priya llega tarde.", "¿Quién es Priya?"),
    "fr": ("Priya est ma chef au musée.", "Priya est en retard.", "Qui est Priya ?"),
    "it": ("Priya è la mia capa al museo.", "Priya è in ritardo.", "Chi è Priya?"),
    "pt": ("A Priya é a minha chefe no museu.", "A Priya está atrasada.", "Quem é a Priya?"),
}


@pytest.mark.parametrize("language", IDENTITY)
async def test_who_somebody_is_comes_before_what_they_say_and_do(memory: Any, language: str) -> None:
    role, other, question = IDENTITY[language]
    await memory.add(role, session="first", speaker="Mia", at="2025-01-10")
    await memory.add(other, session="later", speaker="Tom", at="2025-02-10")
    await memory.add("?!", session="later", speaker=role.removeprefix("A ").split()[0], at="2025-02-10")
    assert (await memory.search(question)).hits[0].content == role


async def test_a_word_for_a_state_finds_what_says_it_in_other_words(memory: Any) -> None:
    await memory.add("Clara and I tied the knot in 2019.", session="first", speaker="Jonas")
    for number in range(40):
        await memory.add(f"Box {number} is in the cellar.", session=f"talk {number // 5}", speaker="Jonas")
    hits = (await memory.search("When did Jonas get married?")).hits
    assert hits[0].content == "Clara and I tied the knot in 2019."


GIVEN_UP = {
    "en": ("My boss is Carla Mwangi", "We sold the Volvo, we cycle now", "What car do we have?"),
    "de": (
        "Mein Chef ist Emre Kaya",
        "Den Golf haben wir verkauft, wir fahren jetzt Rad",
        "Was für ein Auto haben wir?",
    ),
    "ru": ("Мой начальник — Олег", "Мы продали машину, теперь ездим на автобусе", "Какая у нас машина?"),
    "es": ("Mi jefa es Carla", "Vendimos el coche, ahora vamos en bici", "¿Qué coche tenemos?"),
}


async def test_an_end_that_nothing_follows_comes_before_what_is_about_something_else() -> None:
    async with Memory.open(":memory:") as memory:
        for number, (other, end, question) in enumerate(GIVEN_UP.values()):
            me = memory.scoped(Scope(owner=f"owner {number}"))
            await me.remember(other, at="2026-06-08")
            await me.remember(end, at="2026-09-20")
            await memory.settle(600)
            assert (await me.search(question)).hits[0].content == end


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("My aunt Ines lives in Faro", "Ines moved to Coimbra", "Where does my aunt live?"),
        ("Mein Bruder Jonas wohnt in Kiel", "Jonas ist nach Graz gezogen", "Wo wohnt mein Bruder?"),
        ("Мой брат Олег живёт в Риге", "Олег переехал в Таллин", "Где живёт мой брат?"),
    ],
)
async def test_a_relative_may_be_named_where_the_question_names_the_relation(
    memory: Any, older: str, newer: str, question: str
) -> None:
    await memory.remember(older, at="2024-01-10")
    await memory.remember(newer, at="2025-01-10")
    assert (await memory.search(question)).hits[0].content == newer


@pytest.mark.parametrize(
    ("home", "moved", "question"),
    [
        ("I live at 48 Elm Road in Leeds", "He called: the start moved to 15 March", "Where do I live?"),
        ("Vivo en Sevilla, en la calle Pureza", "La reunión se ha trasladado al lunes", "¿Dónde vivo?"),
        ("Abito a Bologna in via Saragozza", "L'esame è trasferito al 3 dicembre", "Dove abito?"),
        ("Moro em Lisboa, na Rua das Flores", "A reunião mudou para quinta-feira", "Onde moro?"),
        ("Я живу в Казани на Баумана", "Встреча переехала на пятницу", "Где я живу?"),
    ],
)
async def test_what_moves_to_another_time_is_no_home(memory: Any, home: str, moved: str, question: str) -> None:
    wanted = await memory.remember(home)
    await memory.add(moved, session="later")
    assert (await memory.search(question)).ids[:1] == [wanted.id]


async def test_a_change_that_begins_after_the_time_asked_about_stands_below(memory: Any) -> None:
    now = await memory.remember("The rent is 780 euros a month", at="2025-03-01")
    later = await memory.remember("From 1 July 2099 the rent will be 820 euros a month", at="2025-04-01")
    assert (await memory.search("What will the rent be in May 2099?")).ids[:2] == [now.id, later.id]
    assert (await memory.search("What will the rent be in August 2099?")).ids[:2] == [later.id, now.id]


@pytest.mark.parametrize(
    ("job", "question"),
    [
        ("I am an editor at Zanichelli in Bologna", "Where do I work?"),
        ("Ich bin Lehrerin an der Goetheschule", "Wo arbeite ich?"),
        ("Je suis professeur au lycée Ampère", "Où est-ce que je travaille ?"),
    ],
)
async def test_a_profession_comes_before_other_work(memory: Any, job: str, question: str) -> None:
    wanted = await memory.remember(job)
    await memory.add("The renovation: work starts on 12 January 2026", session="house")
    await memory.add("We got three quotes for the renovation work", session="house")
    await memory.settle()
    assert (await memory.search(question)).ids[:1] == [wanted.id]


async def test_a_question_for_something_in_a_long_time_is_answered_by_what_it_names(memory: Any) -> None:
    wanted = await memory.remember("We want to go to Northumberland at Whitsun, cottage in Beadnell")
    year = datetime.now(UTC).year + 1
    await memory.remember(f"My revalidation is due at the end of April {year}")
    await memory.remember(f"My mum lives in Otley and has her hip operation on 14 January {year}")
    await memory.settle()
    assert (await memory.search("Where do we want to go on holiday next year?")).ids[:1] == [wanted.id]


@pytest.mark.parametrize(
    ("mine", "other", "question"),
    [
        ("I teach chemistry at a school in Leeds", "My husband works at the post office", "Where do I work?"),
        (
            "I fit kitchens with a small outfit in Leeds",
            "Mum still works part-time at the post office",
            "Where do I work?",
        ),
        ("Ich fahre Bus bei der BVG", "Mein Mann arbeitet bei der Post", "Wo arbeite ich?"),
        ("Je garde des enfants dans une crèche", "Mon mari travaille à la poste", "Où est-ce que je travaille ?"),
        ("Я преподаю химию в школе", "Мой муж работает на почте", "Где я работаю?"),
        ("Doy clases de piano", "Mi marido trabaja en Correos", "¿Dónde trabajo?"),
        ("Insegno chimica al liceo", "Mio marito lavora alle poste", "Dove lavoro?"),
        ("Tenho uma pequena padaria", "Meu marido trabalha nos correios", "Onde eu trabalho?"),
    ],
)
async def test_own_work_without_a_word_for_it_comes_before_that_of_others(
    memory: Any, mine: str, other: str, question: str
) -> None:
    wanted = await memory.remember(mine)
    relative = await memory.remember(other)
    await memory.settle()
    assert (await memory.search(question)).ids[:2] == [wanted.id, relative.id]


@pytest.mark.parametrize(
    ("relative", "question"),
    [
        ("My husband works at the post office", "Where does my husband work?"),
        ("Mein Mann arbeitet bei der Post", "Wo arbeitet mein Mann?"),
        ("Mon mari travaille à la poste", "Où travaille mon mari ?"),
        ("Мой муж работает на почте", "Где работает мой муж?"),
        ("Mi marido trabaja en Correos", "¿Dónde trabaja mi marido?"),
        ("Mio marito lavora alle poste", "Dove lavora mio marito?"),
        ("O meu marido trabalha nos correios", "Onde trabalha o meu marido?"),
    ],
)
async def test_own_work_is_no_answer_to_where_a_relative_works(memory: Any, relative: str, question: str) -> None:
    await memory.remember("I teach chemistry")
    wanted = await memory.remember(relative)
    await memory.remember("I drive a bus for Arriva")
    await memory.settle()
    assert (await memory.search(question)).ids[:1] == [wanted.id]


@pytest.mark.parametrize(
    ("home", "wedding", "moved", "asked"),
    [
        ("I live in Leeds.", "My sister Martha marries in Cuenca.", "We've moved to York.", "Which city do I live in?"),
        (
            "Ich wohne in Köln.",
            "Meine Schwester heiratet in Kassel.",
            "Wir sind nach Bonn gezogen.",
            "In welcher Stadt wohne ich?",
        ),
        (
            "Vivo en Valencia.",
            "Mi hermana Marta se casa en Cuenca.",
            "Nos hemos mudado a Castellón.",
            "¿En qué ciudad vivo?",
        ),
        (
            "J'habite à Lyon.",
            "Ma sœur Marthe se marie à Tours.",
            "Nous avons déménagé à Nantes.",
            "Dans quelle ville j'habite ?",
        ),
        (
            "Vivo a Torino.",
            "Mia sorella Marta si sposa a Cuneo.",
            "Ci siamo trasferiti a Genova.",
            "In che città vivo?",
        ),
        ("Moro no Porto.", "A minha irmã casa-se em Coimbra.", "Mudámo-nos para Braga.", "Em que cidade moro?"),
        ("Я живу в Твери.", "Моя сестра выходит замуж в Калуге.", "Мы переехали в Казань.", "В каком городе я живу?"),
    ],
)
async def test_a_question_for_the_town_is_answered_by_the_latest_home(
    memory: Any, home: str, wedding: str, moved: str, asked: str
) -> None:
    for text in (home, wedding, "My dog is called Rex", moved):
        await memory.remember(text)
    await memory.settle(600)
    (review,) = await memory.review()
    for _ in range(2):
        assert (await memory.search(asked)).hits[0].content == moved
        assert moved in await memory.context(asked)
        if review.decision is None:
            review = await memory.resolve(review.id, decision="replace")


@pytest.mark.parametrize(
    ("moved", "asked"),
    [
        ("We have moved to Kvarnbygatan 8 in Mölndal.", ("What's my address?", "What is our home address?")),
        ("Wir sind in den Lindenweg 8 gezogen.", ("Wie ist unsere Adresse?", "Wie lautet meine Anschrift?")),
        ("Nos hemos mudado a la calle Sauce 8.", ("¿Cuál es nuestra dirección?",)),
        ("On a déménagé au 8 rue du Port.", ("Quelle est notre adresse ?",)),
        ("Ci siamo trasferiti in via Salice 8.", ("Qual è il nostro indirizzo?",)),
        ("Мы переехали на Садовую, 8.", ("Какой у нас адрес?",)),
    ],
)
async def test_a_question_for_the_address_is_answered_by_the_home(
    memory: Any, moved: str, asked: tuple[str, ...]
) -> None:
    for text in ("The office is on Harbour Street", "Staging runs on Hetzner", moved):
        await memory.remember(text)
    for question in asked:
        assert (await memory.search(question)).hits[0].content == moved
    other = await memory.search("What is the IP address of staging?")
    assert other.hits[0].content == "Staging runs on Hetzner"


@pytest.mark.parametrize(
    ("name", "before", "now", "question"),
    [
        ("My name is Katja", "I work at Otto", "Katja works part time at Kurzwerk", "Where do I work?"),
        ("Ich heiße Katja", "Ich arbeite bei Otto", "Katja arbeitet halbtags bei Kurzwerk", "Wo arbeite ich?"),
        ("Me llamo Marta", "Trabajo en Otto", "Marta trabaja a media jornada en Kurzwerk", "¿Dónde trabajo?"),
    ],
)
async def test_a_job_told_by_the_users_name_answers_where_they_work(
    memory: Any, name: str, before: str, now: str, question: str
) -> None:
    for text in (name, before, now):
        await memory.remember(text)
    assert (await memory.search(question))[0].content == now


ANNOUNCED = [
    ("My rent is 780 euros", "From October the rent is 845 euros", "How much rent do I pay?"),
    ("I'm insured with Hanse", "Starting in October my insurance is with Nordlicht", "Who is my insurance with?"),
    ("Ich wohne in Bremen", "Ab Oktober wohne ich in Walle", "Wo wohne ich?"),
    ("Mi alquiler es de 780 euros", "A partir de octubre el alquiler sube a 845", "¿Cuánto pago de alquiler?"),
    ("Mon loyer est de 780 euros", "À partir d'octobre le loyer passe à 845", "Combien est mon loyer ?"),
    ("Мы живём в Перми", "С октября мы живём в Казани", "Где мы живём?"),
]


@pytest.mark.parametrize(("now", "later", "question"), ANNOUNCED)
async def test_an_announced_change_counts_from_its_day(
    memory: Any, clock: HandClock, now: str, later: str, question: str
) -> None:
    await memory.remember(now)
    clock.ms += DAY
    assert (await memory.remember(later)).outdates == ()
    clock.ms += 400 * DAY
    assert [hit.content for hit in (await memory.search(question)).hits[:2]] == [later, now]


@pytest.mark.parametrize(("now", "later", "question"), ANNOUNCED)
async def test_an_announcement_that_has_come_when_it_is_told_is_a_change(
    memory: Any, now: str, later: str, question: str
) -> None:
    await memory.remember(now, at="2024-05-01")
    assert [each.content for each in (await memory.remember(later, at="2024-09-20")).outdates] == [now]


async def test_the_rent_that_went_up_is_ones_own(memory: Any) -> None:
    await memory.remember("My rent is 780 euros")
    told = await memory.remember("The rent went up to 845 euros")
    assert [each.content for each in told.outdates] == ["My rent is 780 euros"]


@pytest.mark.parametrize(
    "question", ["What do I do for a living?", "What does the user do for a living?", "How do I make a living?"]
)
async def test_an_idiom_for_work_asks_for_the_work(question: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for told in ("I live in Leeds with my boyfriend", "The living room needs paint"):
            await memory.remember(told)
        work = await memory.remember("I work as a nurse")
        assert (await memory.search(question)).ids[0] == work.id
