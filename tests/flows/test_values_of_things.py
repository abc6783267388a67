"""Of several facts about a thing, a change belongs to the one that gives the same kind of value: its place, a time, an
amount.
"""

from __future__ import annotations

import pytest

from ricordo import Memory

CHANGES = [
    (
        ["The user's workshop is on rue Crébillon.", "The user's workshop is insured with MAIF."],
        "The user has moved her workshop; it is on quai de la Fosse now.",
    ),
    (
        ["My office is on Baker Street.", "My office is open from nine to five.", "My office has four desks."],
        "I've moved my office, it's on Park Lane now.",
    ),
    (
        ["The bikes are in the cellar.", "The bikes are insured with AXA.", "The bikes belong to the club."],
        "We moved the bikes, they are in the garage now.",
    ),
    (
        ["The choir meets on Tuesdays at 19:00.", "The choir has nine altos.", "The choir is in the town hall."],
        "The choir has moved to Thursdays at 20:00.",
    ),
    (
        ["Meine Praxis ist in der Gartenstraße.", "Meine Praxis hat vier Räume."],
        "Meine Praxis ist umgezogen, sie ist jetzt in der Hafenstraße.",
    ),
    (
        ["Mon atelier est rue Crébillon.", "Mon atelier a quatre établis."],
        "J'ai déménagé mon atelier, il est maintenant quai de la Fosse.",
    ),
    (
        ["Le club est rue Pasteur.", "Le club coûte 30 euros par mois."],
        "Le club a déménagé, il est maintenant avenue Foch.",
    ),
    (
        ["El coro está en la calle Sol.", "El coro tiene nueve voces."],
        "Hemos mudado el coro, ahora está en la calle Luna.",
    ),
    (
        ["La palestra è in via Roma.", "La palestra costa 40 euro al mese."],
        "La palestra si è trasferita, adesso è in via Verdi.",
    ),
    (
        ["O ginásio fica na rua Augusta.", "O ginásio custa 40 euros por mês."],
        "O ginásio mudou-se, agora fica na rua do Ouro.",
    ),
    (
        ["Спортзал на улице Ленина.", "Спортзал стоит 2000 рублей в месяц."],
        "Спортзал переехал, теперь он на проспекте Мира.",
    ),
]


@pytest.mark.parametrize(("facts", "change"), CHANGES)
async def test_a_change_belongs_to_the_fact_with_the_same_kind_of_value(
    memory: Memory, facts: list[str], change: str
) -> None:
    for fact in facts:
        await memory.remember(fact, at="2026-03-02")
    newer = await memory.remember(change, at="2026-09-14")
    listed = [each.older.content for each in await memory.review() if each.newer.id == newer.id and each.older]
    assert listed == facts[:1]
    assert (await memory.search(facts[0])).ids.index(newer.id) < 2
