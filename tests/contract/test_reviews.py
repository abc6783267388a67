"""Reviews, chains of versions, and facts that say much the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ricordo.clock import new_id
from ricordo.model import Edge, Entity, Review
from tests.storage.making import ME, NOON, closing, commit, fact


def question(newer, older, **fields):
    given = {"id": new_id(0), "kind": "conflict", "created_at": NOON, "owner": "me", **fields}
    return Review(newer=newer, older=older, **given)


def supersedes(newer, older):
    return Edge(source=newer.id, target=older.id, type="supersedes")


async def open_questions(store, **conditions):
    found = await store.read(lambda tx: tx.reviews.listed(ME, most=9, **conditions))
    return [each.id for each in found]


async def test_a_question_is_open_until_it_is_decided(store):
    red, blue = fact("it is red"), fact("it is blue", minutes=1)
    asked = question(blue, red)
    await commit(store, add=(red, blue), reviews=(asked,))
    (first,) = await store.read(lambda tx: tx.reviews.listed(ME, most=9))
    assert (first.newer.content, first.older.content, first.decision) == ("it is blue", "it is red", None)
    await commit(store, reviews=(replace(asked, decided_at=NOON, decision="keep both"),))
    assert await open_questions(store) == []
    decided = await store.read(lambda tx: tx.reviews.get(ME, asked.id))
    assert (decided.decision, decided.key) == ("keep both", first.key)


async def test_a_question_is_no_longer_open_when_one_of_its_facts_has_gone(store):
    red, blue = fact("it is red"), fact("it is blue")
    asked = question(blue, red)
    await commit(store, add=(red, blue), reviews=(asked,))
    await commit(store, close=(closing(red),))
    assert await open_questions(store) == []


async def test_live_conflicts_are_listed_before_what_a_rule_replaced_and_the_latest_first(store):
    facts = [fact(f"fact {number}") for number in range(4)]
    gone = replace(facts[0], closed_at=NOON, closed_reason="superseded")
    held = fact("in quarantine", closed_at=NOON, closed_reason="quarantined")
    asked = {
        "replaced": question(facts[1], gone, kind="replaced"),
        "conflict": question(facts[2], facts[1]),
        "several": question(facts[3], facts[1], kind="several"),
        "quarantine": question(held, None, kind="quarantine", reasons=("an instruction",), about=("Ann",)),
        "later": question(facts[3], facts[2]),
    }
    await commit(store, add=(gone, *facts[1:], held), reviews=tuple(asked.values()))
    order = [asked[name].id for name in ("later", "conflict", "several", "quarantine", "replaced")]
    found = await open_questions(store)
    assert sorted(found) == sorted(order)
    assert found[:2] == order[:2] and found[-1] == order[-1]
    assert await open_questions(store, kind="replaced") == [asked["replaced"].id]
    kept = await store.read(lambda tx: tx.reviews.get(ME, asked["quarantine"].id))
    assert (kept.reasons, kept.about, kept.older) == (("an instruction",), ("Ann",), None)


async def test_a_chain_of_versions_is_walked_both_ways(store):
    chain = [fact(f"version {number}") for number in range(4)]
    links = tuple(supersedes(newer, older) for older, newer in pairwise(chain))
    await commit(store, add=tuple(chain), link=links)
    for node in chain[:-1]:
        await commit(store, close=(replace(closing(node), reason="superseded"),))
    keys = [(await store.read(lambda tx, node=node: tx.nodes.get(ME, node.id))).key for node in chain]

    def ask(tx):
        return tx.nodes.replaced(keys[3]), tx.nodes.replacing(keys[0]), tx.nodes.successor(keys[0])

    older, newer, live = await store.read(ask)
    assert older == keys[2::-1] and newer == keys[1:] and live == keys[3]
    pairs = await store.read(lambda tx: tx.nodes.succession(keys[:2]))
    assert sorted(pairs) == [(keys[1], keys[0]), (keys[2], keys[1])]


async def test_what_was_replaced_is_found_by_its_words_with_its_newest_version(store):
    older, newer, newest, other = facts = [
        fact(text) for text in ("green tea at noon", "coffee at noon", "cocoa", "green tea was forgotten")
    ]
    theirs = [replace(fact(text), owner="eve") for text in ("green tea at noon", "milk")]
    links = (supersedes(newer, older), supersedes(newest, newer), supersedes(theirs[1], theirs[0]))
    await commit(store, add=tuple(facts))
    await commit(store, add=tuple(theirs), link=links)
    await commit(store, close=(replace(closing(theirs[0]), reason="superseded"), closing(other)))
    await commit(store, close=tuple(replace(closing(node), reason="superseded") for node in (older, newer)))
    key = (await store.read(lambda tx: tx.nodes.get(ME, newest.id))).key

    async def holding(*words, most=9):
        return await store.read(lambda tx: tx.nodes.replaced_holding(ME, words, most=most))

    assert await holding("green", "tea", "noon") == [("green tea at noon", key), ("coffee at noon", key)]
    assert await holding("noon") == [("coffee at noon", key), ("green tea at noon", key)]
    assert await holding("green", "tea", "noon", most=1) == [("green tea at noon", key)]
    assert await holding("cocoa") == await holding() == []
    await commit(store, close=(closing(newest),))
    assert await holding("noon") == []


async def test_a_message_is_older_than_the_live_version_of_what_was_learnt_from_it(store):
    said = replace(fact("I was told so"), type="episodic")
    chain = [fact(f"version {number}") for number in range(3)]
    learnt = Edge(source=chain[0].id, target=said.id, type="derived_from")
    links = tuple(supersedes(newer, older) for older, newer in pairwise(chain))
    await commit(store, add=(said, *chain), link=(learnt, *links))
    key, *keys = [(await store.read(lambda tx, node=node: tx.nodes.get(ME, node.id))).key for node in (said, *chain)]
    assert await store.read(lambda tx: tx.nodes.succession([key])) == []
    await commit(store, close=tuple(replace(closing(node), reason="superseded") for node in chain[:-1]))
    assert await store.read(lambda tx: tx.nodes.succession([key])) == [(keys[-1], key)]
    again = Edge(source=chain[-1].id, target=said.id, type="derived_from")
    await commit(store, link=(again,))
    assert await store.read(lambda tx: tx.nodes.succession([key])) == []


async def test_a_ring_of_versions_ends(store):
    one, two = fact("one"), fact("two")
    await commit(store, add=(one, two), link=(supersedes(one, two), supersedes(two, one)))
    await commit(store, close=tuple(replace(closing(node), reason="superseded") for node in (one, two)))
    keys = [(await store.read(lambda tx, node=node: tx.nodes.get(ME, node.id))).key for node in (one, two)]
    assert await store.read(lambda tx: tx.nodes.successor(keys[0])) is None
    assert await store.read(lambda tx: tx.nodes.replaced(keys[0])) == keys[1:]
    assert await store.read(lambda tx: tx.nodes.replacing(keys[0])) == keys[1:]


async def test_facts_that_say_much_the_same_follow_text_subjects_and_state(store):
    tea, rain = fact("Likes tea"), fact("Likes rain", type="opinion")
    people = [
        Entity(id=new_id(0), type="person", name=name, first_seen=NOON, last_updated=NOON, owner="me")
        for name in ("Ann", "Bob")
    ]

    async def near(*about):
        found = await store.read(lambda tx: tx.nodes.near_statements("me", "", [each.id for each in about], "likes"))
        return sorted(content for _, content in found)

    subjects = ((tea.id, people[1].id), (tea.id, people[0].id))
    await commit(store, add=(tea, rain), entities=tuple(people), subjects=subjects)
    assert await near() == ["Likes rain"]
    assert await near(*people) == await near(*reversed(people)) == ["Likes tea"]
    assert await near(people[0]) == []
    await commit(store, close=(closing(tea),))
    assert await near(*people) == []
    stored = await store.read(lambda tx: tx.nodes.get(ME, tea.id))
    await commit(store, put=(replace(stored, closed_at=None, closed_reason=None, content="Likes soup"),))
    assert await near(*people) == ["Likes soup"]
    assert (await store.doctor()).ok


async def test_of_many_alike_facts_the_nearest_are_given(store):
    await commit(store, add=tuple(fact(f"Likes number {number:02}") for number in range(20)))
    found = await store.read(lambda tx: tx.nodes.near_statements("me", "", [], "likes number 10"))
    assert [content[-2:] for _, content in found] == ["10", "11", "12", "09", "08", "07"]


async def test_the_latest_facts_with_a_word_are_given_with_who_said_them(store):
    tea = [fact(f"Cup {number} of tea") for number in range(5)]
    gone, said = fact("Tea is over"), fact("I make coffee", speaker="Gwen")
    await commit(store, add=(*tea, gone, said))
    await commit(store, close=(closing(gone),))

    async def holding(*words, most=9, owner="me"):
        found = await store.read(lambda tx: tx.nodes.facts_with(owner, "", words, most=most))
        return sorted(found.values())

    assert await holding(("tea",)) == [(node.content, None) for node in tea]
    assert await holding(("tea",), most=2) == [("Cup 3 of tea", None), ("Cup 4 of tea", None)]
    assert await holding(("milk", "coffe")) == [("I make coffee", "Gwen")]
    assert await holding(("tea",), owner="eve") == await holding() == []


async def test_pairs_that_were_decided_are_known(store):
    old, new, other = fact("Likes tea"), fact("Likes coffee"), fact("Likes milk")
    open_, decided = (
        Review(id=new_id(0), kind="conflict", newer=each, older=old, created_at=NOON, owner="me")
        for each in (new, other)
    )
    await commit(store, add=(old, new, other))
    await commit(store, reviews=(open_, replace(decided, decided_at=NOON, decision="keep both")))
    keys = {node.id: (await store.read(lambda tx, n=node: tx.nodes.get(ME, n.id))).key for node in (old, new, other)}
    assert await store.read(lambda tx: tx.reviews.decided_with(keys[old.id])) == {keys[other.id]}
    assert await store.read(lambda tx: tx.reviews.decided_with(keys[new.id])) == set()


async def test_open_conflicts_are_found_by_their_older_fact(store):
    old, new, other, third = (fact(text) for text in ("Likes tea", "Likes coffee", "Likes milk", "Likes water"))
    asked, decided, same = (
        Review(id=new_id(0), kind=kind, newer=each, older=old, created_at=NOON, owner="me")
        for kind, each in (("conflict", new), ("conflict", other), ("same", third))
    )
    await commit(store, add=(old, new, other, third))
    await commit(store, reviews=(asked, replace(decided, decided_at=NOON, decision="keep both"), same))
    keys = {node.id: (await store.read(lambda tx, n=node: tx.nodes.get(ME, n.id))).key for node in (old, new, other)}
    found = await store.read(lambda tx: tx.reviews.against(list(keys.values())))
    assert [tuple(row) for row in found] == [(keys[old.id], keys[new.id], asked.id)]
    assert await store.read(lambda tx: list(tx.reviews.against([keys[new.id]]))) == []
