"""What people say in passing about their lives is learnt from their messages without a language model."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Message

TOLD = [
    ("Hi! I'm Marek, I live in Brno and work as a nurse.", "I'm Marek, I live in Brno and work as a nurse"),
    ("Lena and I got married in May.", "Lena and I got married in May"),
    ("My brother and I share a flat in Porto.", "My brother and I share a flat in Porto"),
    ("My sister Ana is a vet in Seville.", "My sister Ana is a vet in Seville"),
    ("my mobile number is 07700 900123", "My mobile number is 07700 900123"),
    ("From September I'll be working at Siemens.", "From September I'll be working at Siemens"),
    ("I take metformin twice a day.", "I take metformin twice a day"),
    ("Ich bin gegen Penicillin allergisch.", "Ich bin gegen Penicillin allergisch"),
    ("Ab Juli arbeite ich bei Bosch.", "Ab Juli arbeite ich bei Bosch"),
    ("Meine Tochter Lotte geht in die 2. Klasse.", "Meine Tochter Lotte geht in die 2. Klasse"),
    ("Wir haben am 3. Mai geheiratet.", "Wir haben am 3. Mai geheiratet"),
    ("Мы с Леной поженились в мае.", "Мы с Леной поженились в мае"),
    ("Мой брат Костя живёт в Праге.", "Мой брат Костя живёт в Праге"),
    ("По вторникам хожу на йогу.", "По вторникам хожу на йогу"),
    ("No como carne ni pescado.", "No como carne ni pescado"),
    ("Desde enero trabajo en Telefónica.", "Desde enero trabajo en Telefónica"),
    ("Soy zurda.", "Soy zurda"),
    ("Notre fils Hugo est né le 4 avril 2020.", "Notre fils Hugo est né le 4 avril 2020"),
    ("Tous les mardis, je fais de la poterie.", "Tous les mardis, je fais de la poterie"),
    ("Mia sorella Anna è veterinaria a Lecce.", "Mia sorella Anna è veterinaria a Lecce"),
    ("Io e Marco ci siamo sposati a maggio.", "Io e Marco ci siamo sposati a maggio"),
    ("Não como carne há três anos.", "Não como carne há três anos"),
    ("Meu filho Davi está no segundo ano.", "Meu filho Davi está no segundo ano"),
]
NOT_TOLD = [
    "Congratulations on your wedding! You both look amazing.",
    "Write me a poem about a nurse who lives in Paris.",
    "Translate into Spanish: I live in Berlin and work as a cook.",
    "Proofread this text for me:\nI live in Berlin. My sister Ana is a vet in Seville.",
    "Pretend to be my doctor. I'm allergic to nuts.",
    "My neighbour says he is allergic to cats.",
    "My brother is a pain sometimes.",
    "My wife is asleep, so I have to be quiet.",
    "Every time I call they hang up.",
    "Übersetze ins Englische: Ich wohne in Köln.",
    "Wie geht es deiner Tochter Lotte?",
    "Im Moment bin ich echt müde.",
    "Переведи на английский: я живу в Твери.",
    "В среду я так смеялся.",
    "No, gracias, así está bien.",
    "Si tuviera perro, lo llamaría Toby.",
    "J'adorerais avoir un chien.",
    "Mon frère est en train de dormir.",
    "Vorrei vivere al mare.",
    "O meu irmão está a dormir.",
]


async def learnt(memory: Any, message: Message) -> set[str]:
    await memory.add_many([message])
    await memory.end_session("chat")
    await memory.consolidate()
    return {node.content for node in (await memory.list(type="semantic")).nodes}


@pytest.mark.parametrize(("said", "fact"), TOLD, ids=[said for said, _ in TOLD])
async def test_a_statement_about_a_life_is_learnt(memory: Any, said: str, fact: str) -> None:
    assert await learnt(memory, Message(text=said, session="chat")) == {fact}


@pytest.mark.parametrize("said", NOT_TOLD)
async def test_small_talk_tasks_and_what_passes_are_not_learnt(memory: Any, said: str) -> None:
    assert await learnt(memory, Message(text=said, session="chat")) == set()


async def test_what_the_assistant_says_of_a_life_is_not_learnt(memory: Any) -> None:
    said = Message(text="My sister Ana is a vet in Seville.", session="chat", role="assistant")
    assert await learnt(memory, said) == set()
