"""A question in one language finds a memory in another, through the whole search."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ricordo import Fact, InvalidError, Memory, Settings

DATA = json.loads((Path(__file__).parents[1] / "models/embedding/pairs.json").read_text(encoding="utf-8"))
PAIRS = DATA["pairs"][:20]
ENGLISH_FACT, RUSSIAN_FACT, ENGLISH, RUSSIAN = range(4)


async def found_among_the_first(depth: int, *, question: int, fact: int) -> int:
    """Return how many of 20 questions find their fact, among those of the other pairs and a hundred more."""
    async with Memory.open(":memory:", settings=Settings(durability="process")) as memory:
        nodes = await memory.remember_many([Fact(content=pair[fact]) for pair in PAIRS])
        await memory.remember_many([Fact(content=text) for text in (*DATA["others_en"], *DATA["others_ru"])])
        await memory.settle(600)
        hits = [(await memory.search(pair[question], limit=depth)).ids for pair in PAIRS]
    return sum(node.id in ids for node, ids in zip(nodes, hits, strict=True))


@pytest.mark.parametrize(
    ("question", "fact"),
    [(RUSSIAN, ENGLISH_FACT), (ENGLISH, RUSSIAN_FACT), (ENGLISH, ENGLISH_FACT), (RUSSIAN, RUSSIAN_FACT)],
    ids=["russian-english", "english-russian", "english-english", "russian-russian"],
)
async def test_eighteen_of_twenty_questions_find_their_fact(question: int, fact: int) -> None:
    assert await found_among_the_first(3, question=question, fact=fact) >= 18


@pytest.mark.parametrize(("question", "intent"), [("¿Quién es ella?", "who"), ("Warum ist sie gegangen?", "why")])
async def test_the_first_question_in_another_language_has_an_intent(question: str, intent: str) -> None:
    """The search waits for the reference questions, so that the answer does not depend on the load of the machine."""
    settings = Settings(durability="process", search_deadline_ms=60_000)
    async with Memory.open(":memory:", settings=settings) as memory:
        await memory.add("Ana went away")
        found = await memory.search(question)
    assert (found.intent, found.degraded) == (intent, ())


async def test_a_wrong_path_of_a_language_file_is_reported_with_its_setting() -> None:
    with pytest.raises(InvalidError, match=r"the setting `languages` names an invalid file: nope: ") as caught:
        await Memory.open(":memory:", embedder=None, settings=Settings(languages="nope"))
    assert "RICORDO_LANGUAGES" in caught.value.hint


@pytest.mark.parametrize(
    ("of_the_user", "said"),
    [
        ("The user goes to the gym.", "I go to the gym."),
        ("The user smokes.", "I smoke."),
        ("L'utilisatrice met toujours du sucre dans son thé.", "Je mets toujours du sucre dans mon thé."),
        ("L'utilisatrice aime le jazz.", "J'aime le jazz."),
        ("L'utilisatrice dort mal.", "Je dors mal."),
        ("L'utilisatrice perd souvent ses clés.", "Je perds souvent mes clés."),
        ("Die Nutzerin liebt Jazz.", "Ich liebe Jazz."),
        ("Der Nutzer lädt sein Handy nachts.", "Ich lade mein Handy nachts."),
        ("La usuaria cabe en una talla 38.", "Quepo en una talla 38."),
        ("L'utente gioca a tennis.", "Gioco a tennis."),
        ("All'utente piace il jazz.", "Mi piace il jazz."),
        ("O utilizador ouve jazz.", "Ouço jazz."),
        ("A usuária sempre põe açúcar no seu chá.", "Sempre ponho açúcar no meu chá."),
        ("Пользователь рисует.", "Я рисую."),
        ("Пользователь спит плохо.", "Я сплю плохо."),
        ("Пользователь терпеть не может джаз.", "Я терпеть не могу джаз."),
    ],
)
async def test_a_note_about_the_user_and_their_own_words_are_one_fact(
    memory: Memory, of_the_user: str, said: str
) -> None:
    noted = await memory.remember(of_the_user)
    assert (await memory.remember(said)).id == noted.id
