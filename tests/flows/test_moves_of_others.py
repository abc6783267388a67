"""The move of a relative or of somebody named does not tell where the user lives, and ends nothing else."""

from __future__ import annotations

import pytest

from ricordo import Memory

MOVED = [
    ("Where do I live?", "I live in Porto.", "Mamma has sold the house in Cuneo and moved in with zia Carla in Alba."),
    ("Where do I live?", "I live in Porto.", "Oma has sold the house in Bonn and moved to a home in Köln."),
    ("Where do I live?", "I live in Porto.", "Бабушка has sold the dacha and moved to Kazan."),
    ("Where do I live?", "I live in Porto.", "Giulia sold the flat and moved to Alba."),
    ("Wo wohne ich?", "Ich wohne in Köln.", "Nonna hat das Haus in Cuneo verkauft und ist nach Alba gezogen."),
    ("Où est-ce que j'habite ?", "J'habite à Lyon.", "Nonna a vendu la maison de Cuneo et a déménagé à Alba."),
    ("¿Dónde vivo?", "Vivo en Madrid.", "Mamma ha vendido la casa de Cuneo y se ha mudado a Alba."),
    ("Dove abito?", "Abito a Torino.", "Maman ha venduto la casa di Nizza e si è trasferita ad Alba."),
    ("Onde moro?", "Moro no Porto.", "Nonna vendeu a casa em Cuneo e mudou-se para Alba."),
    ("Где я живу?", "Я живу в Казани.", "Мама продала дом и переехала в Москву."),
]


@pytest.mark.parametrize(("question", "home", "moved"), MOVED)
async def test_the_users_home_is_not_where_somebody_else_moved(
    memory: Memory, question: str, home: str, moved: str
) -> None:
    await memory.remember(home, at="2026-01-19")
    await memory.remember(moved, at="2026-11-22")
    assert (await memory.search(question))[0].content == home
    assert await memory.review() == []


async def test_an_own_clause_about_a_move_still_counts(memory: Memory) -> None:
    await memory.remember("I live in Porto.", at="2026-01-19")
    await memory.remember("Mum sold the house and I moved to Alba.", at="2026-11-22")
    assert (await memory.search("Where do I live?"))[0].content == "Mum sold the house and I moved to Alba."


MOVED_AWAY = [
    ("Mi vecina Marta tiene un gato.", "La vecina Marta se ha mudado a Avilés."),
    ("Ma voisine Julie a un chat.", "La voisine Julie a déménagé à Lyon."),
    ("La mia vicina Pia ha un gatto.", "La vicina Pia si è trasferita a Pisa."),
    ("A minha vizinha Rita tem um gato.", "A vizinha Rita mudou-se para Braga."),
    ("Il mio collega Ugo ha due figli.", "Il collega Ugo si è trasferito a Pisa."),
    ("Meine Nachbarin Anna hat eine Katze.", "Die Nachbarin Anna ist nach Bonn gezogen."),
    ("My neighbour Marta has a cat.", "The neighbour Marta has moved to Leeds."),
]


@pytest.mark.parametrize(("of_somebody", "moved"), MOVED_AWAY)
async def test_the_move_of_a_named_person_ends_nothing_else(memory: Memory, of_somebody: str, moved: str) -> None:
    await memory.remember(of_somebody)
    await memory.remember(moved)
    assert {each.content for each in await memory.list()} == {of_somebody, moved}
    assert await memory.review() == []


async def test_the_move_of_a_named_person_still_doubts_the_home(memory: Memory) -> None:
    await memory.remember("Mi vecina Marta vive en Gijón.")
    await memory.remember("La vecina Marta se ha mudado a Avilés.")
    assert [each.kind for each in await memory.review()] == ["conflict"]
