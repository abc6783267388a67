"""A home belongs to a person and is a place; what ends a job is not what retires a thing."""

from __future__ import annotations

import pytest

from ricordo import Memory

MOVED = [
    ("Where do I live?", "I live in Lisbon, in Graça.", "Meeting moved to 5"),
    ("Where do I live?", "I live in Lisbon, in Graça.", "She moved to the window"),
    ("Where do I live?", "I live in Lisbon, in Graça.", "Let us move to the next room"),
    ("Where do I live?", "I live in Lisbon, in Graça.", "I moved to the next chapter of the book"),
    ("Where do I live?", "I live in Lisbon, in Graça.", "They moved to Spain"),
    ("Wo wohne ich?", "Ich wohne in Bremen.", "Ich bin an den Fenstertisch umgezogen."),
    ("Wo wohne ich?", "Ich wohne in Bremen.", "Sie zog nach Kiel um."),
    ("Où est-ce que j'habite ?", "J'habite à Nantes.", "Je me suis installée à la fenêtre."),
    ("Où est-ce que j'habite ?", "J'habite à Nantes.", "Nous avons déménagé à la table 12."),
    ("¿Dónde vivo?", "Vivo en Sevilla.", "Me mudé al sofá."),
    ("Dove abito?", "Abito a Bologna.", "Lui si è trasferito a Roma."),
    ("Onde moro?", "Moro em Lisboa.", "Mudámos para a mesa 12."),
    ("Где я живу?", "Я живу в Москве.", "Мы переехали за столик 12."),
]
RETIRED = [
    ("Where do I work?", "I work at the city hospital as a nurse.", "I retired my old Rohde kiln."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "We retired the old dishwasher last week."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "We retired to the living room after dinner."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "I've retired from the chess club."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "I joined the two boards with glue."),
    ("Wo arbeite ich?", "Ich arbeite im Stadtspital.", "Ich habe das alte Fahrrad in Rente geschickt."),
    ("Où est-ce que je travaille ?", "Je travaille à l'hôpital.", "J'ai mis mon vieux vélo à la retraite."),
    ("¿Dónde trabajo?", "Trabajo en el hospital de enfermera.", "He jubilado la bici vieja."),
    ("Dove lavoro?", "Lavoro all'ospedale.", "Ho mandato in pensione la vecchia bici."),
    ("Onde trabalho?", "Trabalho no hospital.", "Aposentei a minha bicicleta velha."),
    ("Где я работаю?", "Я работаю в больнице.", "Я отправила старый велосипед на пенсию."),
]
OWN = [
    ("Where do I live?", "I live in Lisbon.", "I moved to the third floor"),
    ("Where do I live?", "I live in Lisbon.", "I moved to 5 Mill Road"),
    ("Wo wohne ich?", "Ich wohne in Bremen.", "Wir sind in eine größere Wohnung umgezogen."),
    ("Onde moro?", "Moro em Lisboa.", "Mudámos para um apartamento maior."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "I retired the day before yesterday."),
    ("Where do I work?", "I work at the city hospital as a nurse.", "I retired from the hospital."),
    ("¿Dónde trabajo?", "Trabajo en el hospital de enfermera.", "Me he jubilado."),
]


@pytest.mark.parametrize(("question", "state", "later"), [*MOVED, *RETIRED])
async def test_what_only_sounds_like_a_new_home_or_an_end_of_work_changes_nothing(
    memory: Memory, question: str, state: str, later: str
) -> None:
    await memory.remember(state, at="2026-01-19")
    await memory.remember(later, at="2026-11-22")
    assert (await memory.search(question))[0].content == state
    assert await memory.review() == []


@pytest.mark.parametrize(("question", "state", "later"), MOVED[:4])
async def test_nor_does_a_message(memory: Memory, question: str, state: str, later: str) -> None:
    await memory.add(state, role="user", at="2018-06-23T18:10:00Z")
    await memory.add(later, role="user", at="2022-12-13T12:26:00Z")
    assert (await memory.search(question))[0].content == state


@pytest.mark.parametrize(("question", "state", "later"), OWN)
async def test_a_move_and_a_retirement_still_come_first(memory: Memory, question: str, state: str, later: str) -> None:
    await memory.remember(state, at="2026-01-19")
    await memory.remember(later, at="2026-11-22")
    assert (await memory.search(question))[0].content == later


NO_LONGER = [
    (
        "Choir rehearsal is now on Thursdays at 20:00, no longer on Tuesdays.",
        "We moved: I now live in Emmendingen, no longer in Freiburg. Boxes everywhere.",
    ),
    ("Yoga is now on Mondays, no longer on Fridays.", "I now work in Leeds, no longer in York."),
    ("My dentist is now Dr Ray, no longer Dr Lee.", "My gym is now on Mill Road, no longer on Park Lane."),
    ("Yoga ist jetzt montags, nicht länger freitags.", "Ich arbeite jetzt in Leeds, nicht länger in York."),
    ("Le yoga est le lundi pour le moment.", "Je travaille à Lyon pour le moment."),
    ("El coro es los jueves de momento.", "Vivo en Cádiz de momento."),
    ("Хор по четвергам на данный момент.", "Я живу в Казани на данный момент."),
]


@pytest.mark.parametrize(("one", "other"), NO_LONGER)
async def test_two_changes_told_in_the_same_words_are_not_one(memory: Memory, one: str, other: str) -> None:
    await memory.remember(one, at="2026-10-19")
    await memory.remember(other, at="2026-11-16")
    assert await memory.review() == []
