"""Merges that are proposed: two entities that are probably one, and all those that only look like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ricordo import ConflictError, InvalidError, NotFoundError, Scope
from ricordo.text.name_match import match, name_form
from ricordo.text.relations import stated_aliases
from tests.flows.test_consolidation import opened, person, proposal  # noqa: F401  # a fixture

Told = Sequence[tuple[str, ...]]
"""Facts, each with the names that it is about; a tuple of one is a message."""


async def tell(memory: Any, told: Told) -> None:
    for text, *about in told:
        if about:
            await memory.remember(text, about=about)
        else:
            await memory.add(text)
    await memory.settle(600)


async def proposed(memory: Any) -> list[set[str]]:
    return [{each.name for each in review.entities} for review in await memory.review(kind="merge")]


ONE: Mapping[str, Told] = {
    "another script": [("Vera sings", "Vera"), ("Вера печёт хлеб, Vera (Вера) поёт",)],
    "a named companion": [
        ("Sarah plays tennis with Kai Wolf", "Sarah", "Kai Wolf"),
        ("Sarah Miller is the dentist of Kai Wolf", "Sarah Miller", "Kai Wolf"),
    ],
    "the same companion, in German": [
        ("Jonas spielt Schach mit Lotte Brandt", "Jonas", "Lotte Brandt"),
        ("Jonas Vogel vermietet an Lotte Brandt", "Jonas Vogel", "Lotte Brandt"),
    ],
    "the same companion, in Russian": [
        ("Игорь дружит с Линой Кац", "Игорь", "Лина Кац"),
        ("Игорь Мельник учит Лину Кац", "Игорь Мельник", "Лина Кац"),
    ],
    "the same fact": [("Tom lives in Leeds", "Tom"), ("Tom Ashby lives in Leeds", "Tom Ashby")],
    "the full name, then the first name": [
        ("Nina met Kai Wolf", "Nina", "Kai Wolf"),
        ("Nina Holm met Kai Wolf", "Nina Holm", "Kai Wolf"),
        ("Nina Holm came late. Nina was tired.",),
    ],
    "a stated alias": [
        ("Bob moved to Leeds", "Bob"),
        ("Robert Hall is a carpenter", "Robert Hall"),
        ("Everyone calls Robert Hall Bob.",),
    ],
    "a stated alias in German": [
        ("Mausi wohnt in Kiel", "Mausi"),
        ("Anna Vogt ist Ärztin", "Anna Vogt"),
        ("Anna Vogt, genannt Mausi, kommt morgen.",),
    ],
    "a stated alias in Russian": [
        ("Шурик живёт в Твери", "Шурик"),
        ("Александр Петров строит дом", "Александр Петров"),
        ("Шурик, он же Александр Петров, приедет завтра.",),
    ],
    "an address of one of them": [
        ("Bob's email is bob@hall.example", "Bob"),
        ("Robert Hall's email is bob@hall.example", "Robert Hall"),
    ],
}

TWO: Mapping[str, Told] = {
    "a first name and nothing else": [("Sarah plays tennis", "Sarah"), ("Sarah Miller is a dentist", "Sarah Miller")],
    "other surnames": [
        ("Sarah Miller met Kai Wolf", "Sarah Miller", "Kai Wolf"),
        ("Sarah Jones met Kai Wolf", "Sarah Jones", "Kai Wolf"),
    ],
    "other surnames in Russian": [
        ("Анна Белова знает Кая Вольфа", "Анна Белова"),
        ("Анна Чернова знает Кая Вольфа", "Анна Чернова"),
    ],
    "a man and a woman of one family": [
        ("Александр Орлов живёт в Твери", "Александр Орлов"),
        ("Александра Орлова живёт в Твери", "Александра Орлова"),
    ],
    "a man's and a woman's name": [("Jan kocht", "Jan"), ("Jana kocht", "Jana")],
    "facts of which one is true": [
        ("Jonas wohnt in Kiel", "Jonas"),
        ("Jonas Vogel wohnt in Bremen", "Jonas Vogel"),
        ("Jonas kennt Lotte Brandt", "Jonas", "Lotte Brandt"),
        ("Jonas Vogel kennt Lotte Brandt", "Jonas Vogel", "Lotte Brandt"),
    ],
    "named beside each other": [
        ("Jonas kennt Lotte Brandt", "Jonas", "Lotte Brandt"),
        ("Jonas Vogel kennt Lotte Brandt", "Jonas Vogel", "Lotte Brandt"),
        ("Gestern waren Jonas und Jonas Vogel da.",),
    ],
    "a short name for two": [
        ("Nina met Kai Wolf", "Nina", "Kai Wolf"),
        ("Nina Holm met Kai Wolf", "Nina Holm", "Kai Wolf"),
        ("Nina Berg met Kai Wolf", "Nina Berg", "Kai Wolf"),
    ],
    "names that differ in a vowel": [("Karin bakes", "Karin"), ("Karen rows", "Karen")],
    "the address of an office": [
        ("Anna's email is office@firm.example", "Anna"),
        ("Tom's email is office@firm.example", "Tom"),
    ],
    "somebody whom everybody knows": [
        ("Nina paints with Kai Wolf", "Nina", "Kai Wolf"),
        ("Nina Holm sued Kai Wolf", "Nina Holm", "Kai Wolf"),
        *[(f"Kai Wolf {deed}", "Kai Wolf") for deed in ("sails", "bakes", "sings", "swims", "rows", "skis")],
    ],
    "a question about a name": [
        ("Bob moved to Leeds", "Bob"),
        ("Robert Hall is a carpenter", "Robert Hall"),
        ("Is Bob short for Robert Hall?",),
    ],
}


@pytest.mark.parametrize("case", ONE)
async def test_what_is_probably_one_is_proposed(memory: Any, case: str) -> None:
    if case == "another script":
        await memory.add_entity("Вера")
    await tell(memory, ONE[case])
    if case == "another script":
        await memory.add_entity("Vera")
    assert len(await proposed(memory)) == 1


@pytest.mark.parametrize("case", TWO)
async def test_what_only_looks_alike_is_not_proposed(memory: Any, case: str) -> None:
    await tell(memory, TWO[case])
    assert await proposed(memory) == []


@pytest.mark.parametrize(("one", "other", "is_one"), [("sister", "colleague", False), ("sister", "sister", True)])
async def test_relations_to_the_owner_part_or_tie(memory: Any, one: str, other: str, is_one: bool) -> None:
    await memory.add_entity("Anna", relation=one)
    await memory.add_entity("Anna Schmidt", relation=other)
    assert bool(await proposed(memory)) == is_one


async def test_those_who_are_related_are_two(memory: Any) -> None:
    await memory.add_entity("Anna")
    await memory.add_entity("Аня")
    await memory.add_entity("Анна")
    assert await proposed(memory) == [{"Anna", "Анна"}]
    await memory.relate("Anna", "mother", source="Анна")
    assert await proposed(memory) == []


async def test_speakers_of_one_conversation_are_two(memory: Any) -> None:
    for speaker in ("Boris", "Борис"):
        await memory.add_entity(speaker)
        await memory.settle(600)
        await memory.add("Good evening", speaker=speaker, session="dinner")
    await memory.settle(600)
    assert await proposed(memory) == []


async def test_an_approved_merge_joins_both_and_can_be_undone(memory: Any) -> None:
    await tell(memory, ONE["a named companion"])
    (review,) = await memory.review(kind="merge")
    assert [each.name for each in review.entities] == ["Sarah Miller", "Sarah"]
    assert review.reasons == ("one name is part of the other", "both with: Kai Wolf")
    assert {node.content for node in review.evidence} == {text for text, *_ in ONE["a named companion"]}
    assert review.id in {each.id for each in await memory.review()}
    decided = await memory.resolve(review, decision="approve")
    assert decided.decision == "approve" and decided.entities[0].aliases == ("Sarah",)
    assert (await memory.entity("Sarah")).name == "Sarah Miller"
    assert len((await memory.entity("Sarah")).facts) == 2
    assert await proposed(memory) == []
    with pytest.raises(NotFoundError):
        await memory.resolve(review, decision="approve")
    await memory.undo((await memory.log(limit=1))[0].seq)
    assert (await memory.entity("Sarah")).name == "Sarah"
    assert await proposed(memory) == [{"Sarah", "Sarah Miller"}]


async def test_a_refused_merge_does_not_come_back_unless_undone(memory: Any) -> None:
    await tell(memory, ONE["a named companion"])
    (review,) = await memory.review(kind="merge")
    await memory.resolve(review.id, decision="refuse")
    refusal = (await memory.log(limit=1))[0].seq
    await tell(memory, [("Sarah rows with Kai Wolf", "Sarah", "Kai Wolf"), ("Sarah is short for Sarah Miller.",)])
    assert await proposed(memory) == []
    assert [each.predicate for each in (await memory.entity("Sarah")).relations if each.target_name] != []
    await memory.undo(refusal)
    assert await proposed(memory) == [{"Sarah", "Sarah Miller"}]


async def test_only_merging_or_refusing_decides_a_proposal(memory: Any) -> None:
    await tell(memory, ONE["a named companion"])
    (review,) = await memory.review(kind="merge")
    with pytest.raises(InvalidError):
        await memory.resolve(review, decision="keep both")
    with pytest.raises((InvalidError, NotFoundError, ConflictError)):
        await memory.resolve_many([review.id], decision="approve")


async def test_owners_and_chats_are_apart(memory: Any) -> None:
    await memory.add_entity("Vera")
    eve = memory.scoped(Scope(owner="eve"))
    await eve.add_entity("Вера")
    assert await proposed(memory) == [] == await proposed(eve)
    await memory.add_entity("Вера")
    (review,) = await memory.review(kind="merge")
    with pytest.raises(NotFoundError):
        await eve.resolve(review.id, decision="approve")
    assert await proposed(eve) == []


async def test_what_a_model_calls_one_is_proposed_with_what_it_read(opened) -> None:  # noqa: F811
    memory = await opened(proposal(entities=[person("Robert Hall", "e1", aliases=["Bob"])]))
    await memory.add_entity("Bob")
    await memory.add_entity("Robert Hall")
    await memory.add("Robert Hall came by, good old Bob.", session="s")
    await memory.consolidate("s")
    (review,) = await memory.review(kind="merge")
    assert {each.name for each in review.entities} == {"Bob", "Robert Hall"}
    assert review.reasons == ("stated to be the same",)
    assert [node.content for node in review.evidence] == ["Robert Hall came by, good old Bob."]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("Muhammad", "Mohammed", "spelling"),
        ("Müller", "Mueller", "spelling"),
        ("Екатерина Иванова", "Ekaterina Ivanova", "spelling"),
        ("Dr. Sarah Miller", "Sarah Miller", "spelling"),
        ("Sarah Jane Miller", "Sarah Miller", "spelling"),
        ("Karin", "Karen", "variant"),
        ("S. Miller", "Sarah Miller", "short"),
        ("Sarah", "Sarah Miller", "short"),
        ("Sarah Miller", "Sarah Jones", None),
        ("Anna", "Hanna", None),
        ("Tom Brown", "Tim Brown", None),
        ("Александр", "Александра", None),
        ("my wife", "wife", None),
    ],
)
def test_names_match_in_spelling_or_in_part(one: str, other: str, found: str | None) -> None:
    assert match(name_form(one), name_form(other)) == match(name_form(other), name_form(one)) == found


@pytest.mark.parametrize(
    "text",
    [
        "I call Anna tomorrow.",
        "Tom ist für Anna da.",
        'They said "Bob is short for Robert".',
        "Anna is short and happy.",
    ],
)
def test_other_sentences_state_no_alias(text: str) -> None:
    assert stated_aliases(text) == []


async def test_a_search_by_one_name_finds_what_was_said_under_the_other(memory: Any) -> None:
    for speaker, said in (
        ("Тётя Люда", "My surgery on the left eye is on 17 April"),
        ("Тётя Люда", "My new number is 612 448 019"),
        ("Tante Ludmila", "The honey from Strasbourg arrived"),
        ("Paul", "My eye is fine again after the surgery"),
    ):
        await memory.add(said, speaker=speaker, session=speaker)
    await memory.consolidate()
    await memory.merge("Tante Ludmila", "Тётя Люда")
    for question, answer in (("What is Ludmila's number?", "612"), ("When is aunt Ludmila's surgery?", "17 April")):
        assert answer in (await memory.search(question)).hits[0].content
