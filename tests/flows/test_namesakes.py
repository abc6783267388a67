"""Two people of one name stay two, and what is said of one closes nothing of the other."""

from __future__ import annotations

import pytest

from ricordo import Memory

OF_TWO = [
    ("My sister Sarah lives in Leeds.", "My colleague Sarah lives in Bath."),
    ("My doctor Anna lives in Leeds.", "My aunt Anna lives in Bath."),
    ("My sister Sarah works as a waitress.", "My colleague Sarah works as a porter."),
    ("My son Max is 7.", "My nephew Max is 9."),
    ("my brother tom lives in leeds", "my mate tom lives in hull"),
    ("The user's sister Sarah lives in Leeds.", "The user's colleague Sarah lives in Bath."),
    ("Meine Schwester Anna wohnt in Leipzig.", "Meine Kollegin Anna wohnt in Halle."),
    ("Ma sœur Julie habite à Lyon.", "Ma collègue Julie habite à Nantes."),
    ("Mi hermana Marta vive en Valencia.", "Mi compañera Marta vive en Sagunto."),
    ("Mia sorella Giulia vive a Torino.", "La mia collega Giulia vive a Pavia."),
    ("A minha irmã Rita mora em Braga.", "A minha colega Rita mora no Porto."),
    ("Моя сестра Аня живёт в Казани.", "Моя коллега Аня живёт в Туле."),
]


@pytest.mark.parametrize(("first", "second"), OF_TWO)
async def test_a_relative_and_somebody_else_of_the_same_name_are_two_people(
    memory: Memory, first: str, second: str
) -> None:
    await memory.remember(first)
    await memory.remember(second)
    assert {each.content for each in await memory.list()} == {first, second}
    assert await memory.review() == []
    assert len({each.relation for each in await memory.people()}) == len(await memory.people()) == 2


async def test_each_of_two_namesakes_keeps_her_facts(memory: Memory) -> None:
    await memory.remember("My sister Sarah lives in Leeds.")
    await memory.remember("My colleague Sarah lives in Bath.")
    await memory.remember("My sister Sarah lives in Hull now.")
    await memory.remember("My sister Sarah is vegan.", about=["Sarah"])
    assert {each.content for each in (await memory.entity("my sister")).facts} == {
        "My sister Sarah lives in Hull now.",
        "My sister Sarah is vegan.",
    }
    assert (await memory.search("Where does my colleague live?"))[0].content == "My colleague Sarah lives in Bath."


async def test_a_name_of_two_people_closes_nothing(memory: Memory) -> None:
    await memory.remember("Sarah lives in Leeds.")
    await memory.remember("My sister Sarah is a nurse.")
    await memory.remember("My colleague Sarah plays chess.")
    await memory.remember("Sarah lives in York now.")
    assert "Sarah lives in Leeds." in {each.content for each in await memory.list()}


async def test_relations_that_one_person_may_have_only_ask(memory: Memory) -> None:
    await memory.remember("My friend Sarah lives in Leeds.")
    await memory.remember("My colleague Sarah lives in Bath.")
    assert [each.kind for each in await memory.review()] == ["conflict"]
    assert [each.relation for each in await memory.people()] == ["friend, colleague"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("My girlfriend Sarah lives in Leeds.", "My wife Sarah lives in Bath."),
        ("My child Max lives in Leeds.", "My son Max lives in Bath."),
        ("My sister Sarah lives in Leeds.", "Sarah is my boss now."),
    ],
)
async def test_one_person_may_get_another_relation(memory: Memory, first: str, second: str) -> None:
    await memory.remember(first)
    await memory.remember(second)
    assert len(await memory.people()) == 1


OF_THE_USER = [
    ("My name is Daniel.", "I live in Bristol.", "My colleague Daniel lives in Bath.", "Daniel lives in Leeds now."),
    ("My name is Daniel.", "I live in Bristol.", "My colleague Daniel is 40.", "Daniel from work moved to Leeds."),
    ("My name is Anna.", "I work at Globex.", "My cousin Anna works at Initech.", "Anna works at Acme now."),
    ("Ich heiße Daniel.", "Ich wohne in Bern.", "Mein Bruder Daniel wohnt in Basel.", "Daniel wohnt jetzt in Zug."),
    ("Je m'appelle Julie.", "J'habite à Nice.", "Ma cousine Julie est végane.", "Julie habite à Lyon maintenant."),
    ("Me llamo Marta.", "Vivo en Oviedo.", "Mi cuñada Marta es vegetariana.", "Marta ahora vive en Madrid."),
    ("Mi chiamo Pia.", "Abito a Roma.", "Mia cugina Pia è vegana.", "Pia ora abita a Pisa."),
    ("Me chamo Rita.", "Moro em Braga.", "A minha prima Rita é vegana.", "Rita agora mora no Porto."),
    ("Меня зовут Аня.", "Я живу в Казани.", "Моя коллега Аня живёт в Туле.", "Аня теперь живёт в Твери."),
]


@pytest.mark.parametrize(("name", "own", "others", "of_name"), OF_THE_USER)
async def test_what_is_said_of_a_namesake_leaves_the_users_facts(
    memory: Memory, name: str, own: str, others: str, of_name: str
) -> None:
    for said in (name, own, others, of_name):
        await memory.remember(said)
    assert {name, own, others, of_name} == {each.content for each in await memory.list()}
    doubted = [each.older.content for each in await memory.review() if each.older is not None]
    assert name not in doubted and own not in doubted


async def test_without_a_namesake_the_name_means_the_user(memory: Memory) -> None:
    await memory.remember("My name is Daniel.")
    await memory.remember("I live in Bristol.")
    await memory.remember("Daniel lives in Leeds now.")
    assert "I live in Bristol." not in {each.content for each in await memory.list()}


INTRODUCED = [
    ("The user's apprentice is called Kenji, he is from Osaka.", "my apprentice"),
    ("Der Lehrling des Nutzers heißt Kenji, er kommt aus Osaka.", "mein Lehrling"),
    ("L'apprenti de l'utilisatrice s'appelle Kenji, il vient d'Osaka.", "mon apprenti"),
    ("El becario del usuario se llama Kenji.", "mi becario"),
    ("L'apprendista dell'utente si chiama Kenji.", "il mio apprendista"),
    ("O estagiário do usuário se chama Kenji.", "meu estagiário"),
]


@pytest.mark.parametrize(("said", "relation"), INTRODUCED)
async def test_somebody_who_learns_from_the_user_is_known_by_it(memory: Memory, said: str, relation: str) -> None:
    await memory.remember(said)
    assert (await memory.entity(relation)).name == "Kenji"


async def test_a_godmother_is_known_by_it(memory: Memory) -> None:
    await memory.remember("La marraine de l'utilisateur s'appelle Odile.")
    assert (await memory.entity("ma marraine")).name == "Odile"
