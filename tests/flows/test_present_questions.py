"""A question for something of which a person has one at a time is answered by the latest statement about it."""

from __future__ import annotations

from typing import Any

import pytest

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
