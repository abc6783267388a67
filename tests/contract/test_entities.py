"""Entities: names, what is linked to them, merging and splitting, and what they are to each other."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ricordo import Scope
from ricordo.model import Entity, NameMove, Relation
from tests.storage.making import ME, NOON, commit, fact, said


def person(name: str, **fields) -> Entity:
    given = {"id": name.casefold(), "type": "person", "owner": "me", **fields}
    return Entity(name=name, first_seen=NOON, last_updated=NOON, **given)


async def test_counts_follow_linking_forgetting_and_restoring(memory):
    kept = await memory.remember("Sarah bakes", about=["Sarah"])
    await memory.add("I met Sarah")
    await memory.remember("It rains")
    await memory.settle(600)

    async def count() -> int:
        return (await memory.entity("Sarah")).mention_count

    assert await count() == 2
    await memory.forget(kept.id)
    assert await count() == 1
    await memory.restore(kept.id)
    assert await count() == 2
    assert (await memory.doctor()).ok


async def test_every_change_to_people_is_one_commit(memory):
    await memory.remember("Sarah bakes", about=["Sarah"])
    await memory.remember("Sal runs", about=["Sal"])
    await memory.add_entity("Alexander", aliases=["Alex"])
    await memory.remember("Alex rows", about=["Alex"])
    for call in (
        lambda: memory.merge("Sarah", "Sal"),
        lambda: memory.split("Alexander", ["Alex"]),
        lambda: memory.relate("Alexander", "wife"),
    ):
        before = (await memory.log(1))[0].seq
        await call()
        assert (await memory.log(1))[0].seq == before + 1
    assert (await memory.doctor()).ok


async def test_a_merged_entity_lends_its_names_and_memories_and_takes_them_back(memory):
    await memory.remember("Sarah bakes", about=["Sarah"])
    await memory.remember("Sal runs", about=["Sal"])
    merged = await memory.merge("Sarah", "Sal")
    assert {node.content for node in (await memory.list(entity="Sal")).nodes} == {"Sarah bakes", "Sal runs"}
    assert (await memory.entity("Sal")).id == merged.id
    assert [each.name for each in await memory.people()] == ["Sarah"]
    await memory.split("Sarah", ["Sal"])
    assert [node.content for node in (await memory.list(entity="Sal")).nodes] == ["Sal runs"]
    assert [node.content for node in (await memory.list(entity="Sarah")).nodes] == ["Sarah bakes"]


async def test_a_moved_name_takes_its_memories_along(store):
    ann, bob, node = person("Ann", aliases=("Annie",)), person("Bob"), fact("Annie sings")
    await commit(
        store,
        entities=(ann, bob),
        add=(node,),
        subjects=((node.id, "ann"),),
        subject_names=((node.id, "ann", "annie"),),
    )
    moved = NameMove(alias="Annie", source="ann", target="bob")
    await commit(store, moved_names=(moved,), moved_subjects=((node.id, "ann", "bob"),))
    found = await store.read(lambda tx: [tx.entities.named(ME, name).entities for name in ("Ann", "Annie")])
    assert [[entity.id for entity in each] for each in found] == [["ann"], ["bob"]]
    assert (await store.read(lambda tx: tx.nodes.get(ME, node.id))).about == ("Bob",)


async def test_names_are_found_by_letters_form_and_sound_of_the_callers_own_spaces(store):
    await commit(store, entities=(person("Катя"), person("Sarah"), replace(person("Sarah"), id="theirs", owner="you")))
    named = {
        name: await store.read(lambda tx, name=name: tx.entities.named(ME, name))
        for name in ("Катей", "sarah", "Nobody")
    }
    assert [each.name for each in named["Катей"].entities] == ["Катя"]
    assert [(each.id, named["sarah"].by) for each in named["sarah"].entities] == [("sarah", "same")]
    assert named["Nobody"].entities == ()


async def test_relations_hold_from_one_change_to_another(store):
    ann, bob = person("Ann"), person("Bob")
    wife = Relation(id="r1", predicate="wife", target="ann", created_at=NOON, owner="me", evidence=("m1",))
    boss = Relation(id="r2", predicate="boss", source="ann", target="bob", created_at=NOON, owner="me")
    await commit(store, entities=(ann, bob), relations=(wife, boss))
    known = await store.read(lambda tx: tx.entities.open_relations(ME, "wife"))
    assert [(each.target_name, each.source_name, each.evidence) for each in known] == [("Ann", None, ("m1",))]
    assert (await store.read(lambda tx: tx.entities.by_id(ME, "ann"))).relation == "wife"
    await commit(store, put_relations=(replace(known[0], valid_until=NOON),))
    assert await store.read(lambda tx: tx.entities.open_relations(ME, "wife")) == []
    key = (await store.read(lambda tx: tx.entities.by_id(ME, "ann"))).key
    told = await store.read(lambda tx: tx.entities.relations(key))
    assert [(each.predicate, each.source_name, each.target_name) for each in told] == [
        ("boss", "Ann", "Bob"),
        ("wife", None, "Ann"),
    ]


async def test_who_is_named_together_and_what_is_latest_about_somebody(store):
    ann, bob, eve = person("Ann"), person("Bob"), person("Eve")
    nodes = [fact("Ann and Bob dance"), fact("Ann and Bob sing"), fact("Ann and Eve swim"), said("Ann came by")]
    about = ((0, "ann"), (0, "bob"), (1, "ann"), (1, "bob"), (2, "ann"), (2, "eve"))
    await commit(
        store, entities=(ann, bob, eve), add=tuple(nodes), subjects=tuple((nodes[n].id, who) for n, who in about)
    )
    keys = [(await store.read(lambda tx, node=node: tx.nodes.get(ME, node.id))).key for node in nodes]
    ann_key = (await store.read(lambda tx: tx.entities.by_id(ME, "ann"))).key
    await store.derive(lambda tx: tx.mentions.put_links([(keys[3], ann_key), (keys[0], ann_key)]))
    together = await store.read(lambda tx: tx.entities.named_together(ann_key, keys, most=9))
    assert [(each.name, each.together) for each in together] == [("Bob", 2), ("Eve", 1)]
    latest = await store.read(lambda tx: tx.entities.latest(ann_key, "subject", now=0, most=2))
    assert [each.key for each in latest] == [keys[2], keys[1]]
    named = await store.read(lambda tx: tx.entities.latest(ann_key, "mention", now=0, most=9))
    assert [each.key for each in named] == [keys[3]]


async def test_what_belongs_to_one_owner_is_unknown_to_another(memory):
    await memory.remember("Sarah bakes", about=["Sarah"])
    assert await memory.scoped(Scope(owner="eve")).people() == ()


async def test_names_of_one_owner_are_none_of_another(store):
    await commit(store, entities=(person("Anna Holm"),))
    assert await store.read(lambda tx: (tx.graph.has_names(ME), tx.graph.has_names(Scope(owner="eve")))) == (
        True,
        False,
    )


async def test_a_word_may_begin_a_longer_name(store):
    await commit(store, entities=(person("Anna Holm"),), add=(fact("Anna Holm bakes"),))

    async def begins(word, scope=ME):
        return (await store.read(lambda tx: tx.entities.begun_by(scope, ["tom", word]))).get(word, [])

    assert len(await begins("anna")) == 1
    assert not await begins("holm")
    assert not await begins("anna holm")
    assert not await begins("ann")
    assert not await begins("anna", Scope(owner="eve"))
    await commit(store, entities=(person("Anna Bell"), person("Anna Low")))
    assert len(await begins("anna")) == 3


async def test_all_names_lead_to_the_entity_that_has_them_now(store):
    await commit(store, entities=(person("Anna", aliases=("Ann",), attributes={"email": "a@b.c"}), person("Anja")))
    anna = await store.read(lambda tx: tx.entities.key_of("anna"))
    anja = await store.read(lambda tx: tx.entities.by_id(ME, "anja"))
    await commit(store, put_entities=(replace(anja, merged_into="anna", closed_at=NOON, aliases=()),))
    names = await store.read(lambda tx: tx.entities.all_names(ME))
    assert {(each.name, each.entity) for each in names} == {("Anna", anna), ("Ann", anna), ("Anja", anna)}
    assert next(json.loads(each.attributes) for each in names if each.name == "Ann") == {"email": "a@b.c"}
    assert await store.read(lambda tx: tx.entities.all_names(Scope(owner="eve"))) == []


async def test_open_relations_of_a_kind_lead_from_entity_to_entity(store):
    people = (person("Anna"), person("Bob"), person("Carl"))
    given = {"created_at": NOON, "owner": "me"}
    relations = (
        Relation(id="r1", predicate="same as", source="anna", target="bob", **given),
        Relation(id="r2", predicate="same as", source="bob", target="carl", valid_until=NOON, **given),
        Relation(id="r3", predicate="same as", target="carl", **given),
        Relation(id="r4", predicate="boss", source="carl", target="anna", **given),
    )
    await commit(store, entities=people, relations=relations)
    keys = [await store.read(lambda tx, id=each.id: tx.entities.key_of(id)) for each in people]

    async def related(*predicates, scope=ME):
        return sorted(await store.read(lambda tx: tx.entities.related_by(scope, predicates)))

    assert await related("same as") == [(keys[0], keys[1])]
    assert await related("same as", "boss") == [(keys[0], keys[1]), (keys[2], keys[0])]
    assert await related("same as", scope=Scope(owner="eve")) == []


@pytest.mark.parametrize("way", ["undo", "erase"])
async def test_a_name_means_its_former_bearer_again_once_another_is_gone(memory, way):
    await memory.add_entity("Em", type="person")
    said = await memory.add("Em likes the red bicycle")
    await memory.settle(600)
    await memory.add_entity("Emma", type="person", aliases=["Em"])
    await memory.settle(600)
    if way == "undo":
        await memory.undo((await memory.log(1))[0].seq)
    else:
        await memory.erase(entity="Emma")
    await memory.settle(600)
    em = await memory.entity("Em")
    assert ([node.id for node in em.mentions], em.mention_count) == ([said], 1)
