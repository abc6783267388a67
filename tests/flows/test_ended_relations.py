"""Relations end with a death or a divorce, and only then."""

from __future__ import annotations

import pytest

from ricordo import Memory


async def _ends(relations: dict[str, str], said: str) -> set[str]:
    """Return the names whose relation to the owner a statement ends."""
    async with Memory.open(":memory:", embedder=None) as memory:
        for name, predicate in relations.items():
            await memory.add_entity(name)
            await memory.relate(name, predicate)
        await memory.remember(said)
        found = {name: (await memory.entity(name)).relations for name in relations}
        return {name for name, (relation,) in found.items() if relation.valid_until is not None}


@pytest.mark.parametrize(
    ("predicate", "name", "said"),
    [
        ("dog", "Bruno", "Bruno died last week"),
        ("dog", "Bruno", "Sadly, our dog Bruno passed away"),
        ("dog", "Bruno", "My dog died"),
        ("dog", "Bruno", "Bruno ist gestern gestorben"),
        ("dog", "Бруно", "Бруно умер"),
        ("dog", "Bruno", "Bruno murió ayer"),
        ("dog", "Bruno", "Bruno est mort"),
        ("husband", "Max", "Max passed away in March"),
        ("husband", "Max", "My husband died"),
        ("husband", "Max", "I got divorced"),
        ("husband", "Max", "We are divorced now"),
        ("husband", "Max", "My divorce is final"),
        ("husband", "Max", "I'm no longer married to Max"),
        ("husband", "Max", "Max is my ex-husband now"),
        ("husband", "Max", "Wir haben uns scheiden lassen"),
        ("boyfriend", "Euan", "euan and i have split up"),
        ("boyfriend", "Iker", "he roto con iker"),
        ("partner", "Iker", "Iker y yo lo hemos dejado"),
        ("husband", "Bastien", "me and bastien split up last month"),
        ("girlfriend", "Valentina", "valentina and me are done, its over"),
        ("girlfriend", "Valentina", "hab mich von Valentina getrennt"),
        ("girlfriend", "Valentina", "ich bin nicht mehr mit valentina zusammen"),
        ("boyfriend", "Jannis", "ich hab mit Jannis schluss gemacht"),
        ("boyfriend", "Jannis", "jannis hat schluss gemacht"),
        ("boyfriend", "Jannis", "zwischen Jannis und mir ist es aus"),
        ("girlfriend", "Jule", "Jule broke up with me"),
        ("girlfriend", "Marta", "Marta ha roto conmigo"),
        ("girlfriend", "Marie", "avec Marie, c'est fini"),
        ("girlfriend", "Giulia", "con Giulia è finita"),
        ("girlfriend", "Ana", "a Ana terminou comigo"),
        ("girlfriend", "Аня", "Аня порвала со мной"),
        ("boyfriend", "Paul", "Paul et moi, on s'est séparés"),
        ("boyfriend", "Marco", "ho lasciato Marco"),
        ("boyfriend", "João", "acabei com o João"),
        ("partner", "Тимур", "мы с Тимуром больше не вместе"),
        ("doctor", "Okafor", "My new doctor is Dr Lindqvist"),
        ("boss", "Denise", "new boss, she's called Farah"),
        ("boss", "Anselmo", "Anselmo se ha jubilado, ahora mi jefa es Puri"),
        ("husband", "Макс", "Мы развелись"),
        ("husband", "Max", "Me he divorciado"),
        ("husband", "Max", "Nous avons divorcé"),
        ("boss", "Eva", "Eva died"),
    ],
)
async def test_a_relation_ends(predicate: str, name: str, said: str) -> None:
    assert await _ends({name: predicate, "Tom": "brother"}, said) == {name}


@pytest.mark.parametrize(
    "said",
    [
        "Bruno almost died",
        "Bruno didn't die",
        "Did Bruno die?",
        "If Bruno died, I would cry",
        "Bruno's brother died",
        "The vet of Bruno died",
        "My phone died",
        "Max died laughing",
        "Bruno ist nicht gestorben",
        "Бруно чуть не умер",
        "My parents got divorced",
        "My neighbour got divorced",
        "Max and I are finished with dinner",
        "Max hat Schluss gemacht mit dem Rauchen",
        "Max ha terminado conmigo el proyecto",
        "We are not divorced",
        "Anna passed away",
        "My mother died",
    ],
)
async def test_a_relation_does_not_end(said: str) -> None:
    relations = {"Bruno": "dog", "Бруно": "cat", "Max": "husband", "Anna": "mother"}
    assert await _ends(relations, said) == set()


async def test_of_several_nobody_is_taken_for_the_dead() -> None:
    assert await _ends({"Bruno": "dog", "Rex": "dog"}, "My dog died") == set()
    assert await _ends({"Bruno": "dog", "Rex": "dog"}, "My dog Rex died") == {"Rex"}


@pytest.mark.parametrize(
    ("before", "now", "ended"),
    [
        ("Our dentist is Dr. Kim", "Our dentist is Dr. Weiss now", {"Kim"}),
        ("Dr. Kim is our vet. My doctor is Dr. Kim", "Dr. Weiss is my doctor now", {"Kim"}),
        ("Unser Zahnarzt ist Dr. Kim", "Unser Zahnarzt ist jetzt Dr. Weiss", {"Kim"}),
        ("Наш врач — Петрова", "Теперь наш врач — Иванова", {"Петрова"}),
        ("Notre dentiste est Madame Roux", "Notre dentiste est maintenant Madame Petit", {"Roux"}),
        ("Mi dentista es la doctora Ruiz", "Mi dentista es ahora la doctora Gil", {"Ruiz"}),
        ("Our dentist is Dr. Kim", "Our dentist is Dr. Weiss", set()),
        ("My friend is Kim", "My friend is Nora now", set()),
    ],
)
async def test_who_has_a_relation_now_takes_it_over(before: str, now: str, ended: set[str]) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember(before)
        await memory.remember(now)
        found = {each.name: (await memory.entity(each.name)).relations for each in await memory.people()}
        assert {name for name, held in found.items() if any(each.valid_until for each in held)} == ended


@pytest.mark.parametrize("said", ["\ue000 died.", "My sister and \ue000 passed away", "\ue000 and I got divorced"])
async def test_a_character_without_a_meaning_is_no_relation(said: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        assert (await memory.remember(said)).is_live
