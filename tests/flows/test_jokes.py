"""What is marked as a joke becomes no fact and no relation by rule."""

from __future__ import annotations

from typing import Any

import pytest

JOKES = """
I'm allergic to Mondays lol
I live in a castle in Spain. Just kidding!
I moved to Atlantis 😂
I work at Hogwarts /s
I'm vegan, jk.
My wife is Siri haha
I still have your tent!! From 2021. I'm a bad person
I am such a terrible friend!
I'm an idiot, I left the keys on the train
I'm a complete disaster
My boss is Darth Vader. I'm only joking.
Ich wohne auf dem Mond, haha
Ich wohne in Atlantis. Nur Spaß!
Vivo en la luna jajaja
Trabajo en la NASA, es broma
J'habite sur la lune mdr
Je travaille à Poudlard. Je plaisante !
Я живу на луне хахаха
Я живу в Атлантиде. Шучу!
""".strip().splitlines()
MEANT = """
Haha, I live in Leeds
I live in Leeds. No joke.
I'm vegan lol. I live in Leeds.
Haha! I live in Leeds
lol I live in Leeds
Jaja, ich wohne in Bonn
Я живу в Риге. Не шучу.
""".strip().splitlines()


async def learnt(memory: Any, line: str) -> list[str]:
    await memory.add(line, session="s")
    await memory.end_session("s")
    await memory.consolidate()
    return [node.content for node in (await memory.list(type="semantic")).nodes]


@pytest.mark.parametrize("line", JOKES)
async def test_a_joke_is_not_learnt(memory: Any, line: str) -> None:
    assert await learnt(memory, line) == []
    assert [person.name for person in await memory.people()] == []


@pytest.mark.parametrize("line", MEANT)
async def test_who_only_laughs_is_believed(memory: Any, line: str) -> None:
    (fact,) = await learnt(memory, line)
    assert fact.endswith(("live in Leeds", "wohne in Bonn", "живу в Риге"))
