"""What people say in a conversation is held against what is known, as a remembered fact is. No language model."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Message
from tests.flows.conftest import DAY, HandClock

TOLD = [
    ("I drive a Skoda Octavia", "I've sold the Skoda, I drive a Kia Ceed now.", "What car do I drive?"),
    ("My wife Gudrun works at the library", "Gudrun retired this week.", "Does my wife still work?"),
    (
        "My wife Lena works as a dentist",
        "Lena quit the clinic and teaches at the university now.",
        "What is Lena's job?",
    ),
    ("Моя жена Анна работает в библиотеке", "Анна с этой недели на пенсии.", "Моя жена работает?"),
    ("Ich wohne in Köln", "Im Mai zog ich nach Bonn um.", "Wo wohne ich?"),
    ("La clase de cerámica es los miércoles", "La clase de cerámica pasa a los jueves.", "¿Cuándo tengo cerámica?"),
    ("I live in Leeds", "Busy week! We've moved out of Leeds, we're in Hull since Monday.", "Where do I live?"),
    ("I'm subscribed to Netflix", "I cancelled Netflix yesterday.", "Which service am I subscribed to?"),
    ("The standup is at 9:30", "The standup moved to 10:15. Lovely weather.", "When is the standup?"),
    ("My dentist is Dr. Bell", "My dentist is Dr. Okafor.", "Who is my dentist?"),
    ("My sister Anna lives in Bergen", "Anna has moved to Oslo.", "Where does Anna live?"),
    ("I bank with Barclays", "I've switched from Barclays to Monzo, could you update that?", "Which bank am I with?"),
    ("Ich fahre einen Golf", "Den Golf habe ich verkauft, ich fahre jetzt einen Skoda.", "Welches Auto fahre ich?"),
    ("Я работаю в Яндексе", "Я уволился из Яндекса, теперь работаю в Сбере.", "Где я работаю?"),
    ("Juego al pádel los martes", "He dejado el pádel por la rodilla.", "¿Qué deporte hago?"),
    ("Je conduis une Clio", "J'ai vendu la Clio, je roule maintenant en Zoé.", "Quelle voiture ai-je ?"),
    ("Guido una Panda", "Ho venduto la Panda, adesso guido una Yaris.", "Che macchina guido?"),
    ("Tenho um Fiat Uno", "Vendi o Fiat Uno e comprei um Tesla.", "Que carro tenho?"),
]
STAYS = [
    ("I drive a Skoda Octavia", "If I sold the Skoda, how much would I get for it?"),
    ("I drive a Skoda Octavia", "I wish I had sold the Skoda last year."),
    ("I drive a Skoda Octavia", "My brother has sold his Skoda."),
    ("I drive a Skoda Octavia", "Have I sold the Skoda?"),
    ("I live in Tampere", "We moved releases to Tuesday mornings."),
    ("Ich wohne in Köln", "Vor dem Theater zog ich mich schnell um."),
    ("Ich wohne in Köln", "Tamsin zog letzten Monat nach Felsdorf."),
    ("Tom hasn't paid the November rent yet", "Tom will pay the November rent on Friday."),
    ("Tom hasn't paid the November rent yet", "Has Tom paid the November rent?"),
    ("I work at Novatek", "My friend Ben quit Novatek yesterday."),
    ("I play tennis every Thursday", "I've bought new shoes, Thursday was a long day."),
    ("I love painting together with the kids", "Here's a painting I made just now with the kids."),
    ("My accountant is Helen Marsh", 'Translate: "My accountant is now Tom Adeyemi."'),
    ("Ich arbeite bei Siemens", "Mein Bruder hat bei Siemens gekündigt."),
    ("Я живу в Казани", "Если бы мы переехали из Казани, я бы скучал."),
    ("Tengo un Seat Ibiza", "Ojalá hubiera vendido el Seat Ibiza."),
    ("Lavoro alla Fiat", "Mio padre non lavora più alla Fiat."),
    ("J'habite à Lyon", "Mon frère a déménagé de Lyon à Nantes."),
    ("Moro em Lisboa", "O meu irmão mudou-se de Lisboa para o Porto."),
]
OF_RELATIVES = [
    ("I live in Leeds", "My sister Ana moved to Hull."),
    ("J'habite à Lyon", "Mon frère a déménagé à Nantes."),
    ("Я работаю в Сбере", "Мой брат Костя работает в Яндексе."),
]


async def known(memory: Any) -> set[str]:
    return {node.content for node in (await memory.list(type="semantic")).nodes}


async def outdated(memory: Any) -> set[tuple[str, str]]:
    """Return the facts that were replaced or are listed for review, each with the newer one."""
    reviews = await memory.review()
    return {
        (each.older.content, each.newer.content)
        for each in reviews
        if each.older and each.kind in ("replaced", "conflict")
    }


async def tell(memory: Any, clock: HandClock, *messages: str, session: str = "later", role: str = "user") -> None:
    for text in messages:
        clock.ms += 60_000
        await memory.add(text, session=session, role=role)
    await memory.end_session(session)
    await memory.consolidate()


@pytest.mark.parametrize(("before", "message", "question"), TOLD, ids=[message for _, message, _ in TOLD])
async def test_a_change_told_in_a_message_is_known_and_ends_what_was_known(
    memory: Any, clock: HandClock, before: str, message: str, question: str
) -> None:
    await memory.remember(before)
    clock.ms += 8 * DAY
    await tell(memory, clock, message)
    (newer,) = await known(memory) - {before}
    assert newer.rstrip(".") in message
    assert await outdated(memory) == {(before, newer)}
    found = (await memory.search(question, type="semantic")).hits
    assert not found or found[0].content == newer


@pytest.mark.parametrize(("before", "message"), STAYS, ids=[message for _, message in STAYS])
async def test_wishes_questions_and_news_of_others_change_nothing(
    memory: Any, clock: HandClock, before: str, message: str
) -> None:
    await memory.remember(before)
    clock.ms += 8 * DAY
    await tell(memory, clock, message)
    assert await known(memory) == {before}
    assert await outdated(memory) == set()


@pytest.mark.parametrize(("before", "message"), OF_RELATIVES, ids=[message for _, message in OF_RELATIVES])
async def test_news_of_relatives_are_learnt_and_change_nothing_of_ours(
    memory: Any, clock: HandClock, before: str, message: str
) -> None:
    await memory.remember(before)
    clock.ms += 8 * DAY
    await tell(memory, clock, message)
    assert await known(memory) == {before, message.rstrip(".")}
    assert await outdated(memory) == set()


async def test_a_change_is_held_against_what_an_earlier_conversation_taught(memory: Any, clock: HandClock) -> None:
    await tell(memory, clock, "I drive a Skoda Octavia.", session="first")
    clock.ms += 8 * DAY
    await tell(memory, clock, "I've sold the Skoda, I drive a Kia Ceed now.")
    newer = "I've sold the Skoda, I drive a Kia Ceed now"
    assert await outdated(memory) == {("I drive a Skoda Octavia", newer)}
    asked = await memory.search("What car do I drive?", type="semantic")
    assert asked.hits[0].content == newer


async def test_a_later_message_changes_what_an_earlier_one_of_the_conversation_said(
    memory: Any, clock: HandClock
) -> None:
    await tell(memory, clock, "I live in Leeds.", "Nice weather today.", "We've moved out of Leeds.")
    assert await known(memory) == {"We've moved out of Leeds"}


async def test_every_sentence_of_a_message_is_compared(memory: Any, clock: HandClock) -> None:
    await memory.remember("I drive a Skoda Octavia")
    await memory.remember("I'm subscribed to Netflix")
    await memory.remember("I work at Novatek")
    clock.ms += 8 * DAY
    await tell(memory, clock, "I've sold the Skoda. And I cancelled Netflix! I quit Novatek. I'm at Brightline now.")
    assert await outdated(memory) == {
        ("I drive a Skoda Octavia", "I've sold the Skoda"),
        ("I'm subscribed to Netflix", "I cancelled Netflix"),
        ("I work at Novatek", "I quit Novatek. I'm at Brightline now"),
    }


async def test_what_changes_nothing_known_is_not_learnt(memory: Any, clock: HandClock) -> None:
    await tell(memory, clock, "I've sold the Skoda.", "I moved my desk to the window, finally finished.")
    assert await known(memory) == set()


async def test_what_the_assistant_says_changes_nothing(memory: Any, clock: HandClock) -> None:
    await memory.remember("I drive a Skoda Octavia")
    clock.ms += 8 * DAY
    await tell(memory, clock, "I've sold the Skoda, I drive a Kia Ceed now.", role="assistant")
    assert await known(memory) == {"I drive a Skoda Octavia"}


async def test_an_older_message_changes_no_later_fact(memory: Any, clock: HandClock) -> None:
    await memory.add("I've sold the Skoda.", session="early")
    clock.ms += DAY
    await memory.remember("I drive a Skoda Octavia")
    await memory.end_session("early")
    await memory.consolidate()
    assert await known(memory) == {"I drive a Skoda Octavia"}
    assert await outdated(memory) == set()


async def test_other_speakers_change_only_what_is_known_of_them(memory: Any, clock: HandClock) -> None:
    await memory.remember("I live in Leeds")
    await memory.add_many([Message(text="I live in Leeds.", session="first", speaker="Joanna")])
    await memory.end_session("first")
    await memory.consolidate()
    clock.ms += 8 * DAY
    await memory.add_many([Message(text="We've moved out of Leeds.", session="later", speaker="Joanna")])
    await memory.end_session("later")
    await memory.consolidate()
    live = (await memory.list(type="semantic")).nodes
    assert ("I live in Leeds", None) in {(node.content, node.speaker) for node in live}


async def test_reading_a_conversation_again_adds_nothing(memory: Any, clock: HandClock) -> None:
    await memory.remember("I drive a Skoda Octavia")
    clock.ms += 8 * DAY
    await tell(memory, clock, "I've sold the Skoda, I drive a Kia Ceed now.")
    before = await memory.log(limit=100)
    clock.ms += DAY
    assert (await memory.consolidate()).items == ()
    assert await memory.log(limit=100) == before
