"""A change is one commit, whole or not at all; commits are ordered by their numbers; what they replace is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ricordo.errors import NotFoundError
from ricordo.model import Change, Edge, Entity, Reason, RowId, RowState, Scope, Session
from ricordo.storage.values import Filter
from tests.storage.making import ME, NOON, WHY, closing, commit, fact, said

ANNA = Entity(id="anna", type="person", name="Anna", first_seen=NOON, last_updated=NOON, owner="me")
ALL = Filter(shelves=("k", "e", "c"))


async def listed(store, scope=ME, **conditions):
    """The contents of the live memories, newest first."""
    asked = replace(ALL, **conditions)
    nodes = await store.read(lambda tx: tx.nodes.page(scope, asked, now=0, before_key=None, limit=1_000))
    return [node.content for node in nodes]


async def numbers(store, scope=ME):
    commits = await store.read(lambda tx: tx.history.commits(scope, before=None, most=1_000))
    return [each.seq for each in commits]


async def got(store, node, scope=ME):
    return await store.read(lambda tx: tx.nodes.get(scope, node.id))


async def test_a_change_is_one_commit_with_actor_origin_and_reason(store):
    tea = fact("likes tea")
    reason = Reason(actor="me", origin="cli", reason="as asked", run_id="run-1")
    change = Change(add=(tea,), entities=(ANNA,), subjects=((tea.id, "anna"),))
    assert await store.write(lambda _: (change, "result"), scope=ME, reason=reason, at=NOON) == "result"
    (made,) = await store.read(lambda tx: tx.history.commits(ME, before=None, most=9))
    assert (made.seq, made.at, made.actor, made.origin) == (1, NOON, "me", "cli")
    assert (made.reason, made.run_id) == ("as asked", "run-1")
    assert (await got(store, tea)).about == ("Anna",)


async def test_commits_are_ordered_by_number_and_not_by_clock(store):
    for minutes in (5, -90, 0):
        change = Change(add=(fact(f"at {minutes}"),))
        await store.write(
            lambda _, change=change: (change, None), scope=ME, reason=WHY, at=NOON + timedelta(minutes=minutes)
        )
    commits = await store.read(lambda tx: tx.history.commits(ME, before=None, most=9))
    assert [each.seq for each in commits] == [3, 2, 1]
    assert [each.at for each in commits] == [NOON, NOON - timedelta(minutes=90), NOON + timedelta(minutes=5)]
    older = await store.read(lambda tx: tx.history.commits(ME, before=3, most=1))
    assert [each.seq for each in older] == [2]


async def test_each_commit_has_a_hash_of_its_own(store):
    for _ in range(3):
        await commit(store, add=(fact("the same"),))
    commits = await store.read(lambda tx: tx.history.commits(ME, before=None, most=9))
    assert len({each.hash for each in commits}) == 3


async def test_a_changed_row_leaves_its_before_image(store):
    tea, coffee = fact("likes tea"), fact("likes coffee")
    await commit(store, add=(tea,))
    await commit(store, add=(coffee,), link=(Edge(source=coffee.id, target=tea.id, type="supersedes"),))
    await commit(store, close=(closing(tea),))
    await commit(store, put=(replace(coffee, content="likes strong coffee"),))
    versions = await store.read(lambda tx: tx.history.versions(tx.nodes.get(ME, coffee.id)))
    assert [(node.content, made.seq) for node, made in versions] == [("likes coffee", 2), ("likes strong coffee", 4)]
    versions = await store.read(lambda tx: tx.history.versions(tx.nodes.get(ME, tea.id)))
    assert [(node.is_live, made.seq) for node, made in versions] == [(True, 1), (False, 3)]


@pytest.mark.parametrize("text", ["a\0b", "\0", 'quote " and \\ and \n', "тест 🫖 \u202e", "\ud7ff\ue000\U0010ffff"])
async def test_a_before_image_holds_any_text_as_it_was(store, text):
    node = fact(text, tags=(text,), attributes={text: text}, speaker=text)
    await commit(store, add=(node,))
    await commit(store, put=(replace(node, content="other", tags=(), attributes={}, speaker=None),))
    was = await store.read(lambda tx: tx.history.versions(tx.nodes.get(ME, node.id))[0][0])
    assert (was.content, was.tags, was.attributes, was.speaker) == (text, (text,), {text: text}, text)


async def test_every_field_of_a_memory_comes_back_as_it_was_written(store):
    later = NOON + timedelta(hours=1)
    node = fact(
        "likes tea",
        category="preference",
        role="user",
        speaker="Ann",
        session="s",
        origin="cli",
        tags=("a", "b"),
        attributes={"deep": {"list": [1, 1.5, None, True, "ж"]}},
        valid_until=later,
        expires_at=later,
        confidence=0.25,
        decay_rate=0.5,
        score=-3.5,
        reinforced_at=later,
    )
    await commit(store, add=(node,))
    assert replace(await got(store, node), key=0) == node


async def test_closing_twice_changes_nothing_the_second_time(store):
    node = fact("likes tea")
    await commit(store, add=(node,))
    await commit(store, close=(closing(node),))
    again = replace(closing(node), reason="expired")
    await commit(store, close=(again,))
    versions = await store.read(lambda tx: tx.history.versions(tx.nodes.get(ME, node.id)))
    assert [each.closed_reason for each, _ in versions] == [None, "forgotten"]


async def test_a_memory_another_caller_cannot_see_is_not_closed(store):
    node = fact("likes tea")
    await commit(store, add=(node,))
    await commit(store, Scope(owner="eve"), close=(closing(node),))
    assert (await got(store, node)).is_live


async def test_a_change_of_missing_rows_writes_nothing(store):
    node = fact("likes tea")
    for refers in (
        {"link": (Edge(source=node.id, target="no such id", type="causal"),)},
        {"subjects": ((node.id, "nobody"),)},
        {"close": (replace(closing(node), id="no such id"),)},
        {"put": (replace(node, id="no such id"),)},
    ):
        with pytest.raises(NotFoundError):
            await commit(store, add=(node,), **refers)
    assert await listed(store) == []
    assert await numbers(store) == []
    assert await store.read(lambda tx: tx.lifecycle.scopes()) == []


async def test_an_empty_change_makes_no_commit(store):
    await commit(store)
    assert Change().is_empty
    assert await numbers(store) == []


async def test_a_failing_decision_leaves_nothing_and_reaches_its_caller(store):
    def decide(tx):
        tx.leases.take("job", "mine", now=0, until=10, is_gone=lambda holder: False)
        raise ZeroDivisionError("as it happens")

    with pytest.raises(ZeroDivisionError, match="as it happens"):
        await store.write(decide, scope=ME, reason=WHY, at=NOON)
    taken = await store.derive(lambda tx: tx.leases.take("job", "other", now=0, until=10, is_gone=lambda holder: False))
    assert taken
    await commit(store, add=(fact("likes tea"),))
    assert await numbers(store) == [1]


async def test_a_decision_sees_what_was_committed_before_it(store):
    await commit(store, add=(fact("first"),))
    seen = []

    def decide(tx):
        seen.append([node.content for node in tx.nodes.page(ME, ALL, now=0, before_key=None, limit=9)])
        seen.append(tx.history.next_commit())
        return Change(add=(fact("second"),)), None

    await store.write(decide, scope=ME, reason=WHY, at=NOON)
    assert seen == [["first"], 2]
    assert await listed(store) == ["second", "first"]


async def test_a_session_begins_with_its_first_message_and_is_ended_by_a_change(store):
    await commit(store, add=(said("hello", session="s", minutes=9),))
    begun = await store.read(lambda tx: tx.sessions.get(ME, "s"))
    assert (begun.first_seen_at, begun.ended_at, begun.owner) == (NOON, None, "me")
    await commit(store, sessions=(replace(begun, ended_at=NOON, summary="they met"),))
    ended = await store.read(lambda tx: tx.sessions.get(ME, "s"))
    assert isinstance(ended, Session) and (ended.ended_at, ended.summary, ended.key) == (NOON, "they met", begun.key)
    assert await store.read(lambda tx: tx.sessions.get(Scope(owner="eve"), "s")) is None


async def test_an_edge_is_put_closed_and_opened_again(store):
    one, two = fact("rain"), fact("flood")
    edge = Edge(source=one.id, target=two.id, type="causal", weight=0.5, confidence=0.5, evidence=("e",))
    await commit(store, add=(one, two), link=(edge,))
    node = await got(store, one)
    assert await store.read(lambda tx: tx.nodes.edges(ME, node)) == [edge]
    await commit(store, unlink=(edge,))
    await commit(store, unlink=(edge,))
    assert await store.read(lambda tx: tx.nodes.edges(ME, node)) == []
    stronger = replace(edge, weight=1.0)
    await commit(store, link=(stronger,))
    assert await store.read(lambda tx: tx.nodes.edges(ME, node)) == [stronger]


async def test_rows_are_taken_back_to_any_state(store):
    """What undo writes: a row as it was, and none where there was none."""
    tea, other = fact("likes tea"), fact("likes rain")
    await commit(store, add=(tea,))
    key = (await got(store, tea)).key
    row = RowId(table="nodes", key=(key,))
    first = await store.read(lambda tx: tx.history.ledger().current(row))
    await commit(store, put=(replace(tea, content="likes coffee"),), add=(other,))
    await commit(store, rows=(RowState(row=row, values=first),))
    assert await listed(store) == ["likes rain", "likes tea"]
    await commit(store, rows=(RowState(row=row, values=None),))
    assert await listed(store) == ["likes rain"]
    ledger = await store.read(lambda tx: [tx.history.ledger().state(row, seq) for seq in range(1, 5)])
    assert [each and each["content"] for each in ledger] == ["likes tea", "likes coffee", "likes tea", None]
    assert await store.read(lambda tx: tx.history.ledger().touches(row)) == [1, 2, 3, 4]
    await commit(store, rows=(RowState(row=row, values=first),))
    assert (await got(store, tea)).key == key
