"""Reviews are durable, slots are derived: both follow the facts."""

from __future__ import annotations

import json

from tests.storage.making import ME, NOON, closing, commit, fact, failing, opened, raw, rows

from ricordo.clock import new_id
from ricordo.model import Edge, Entity, Review


def question(newer, older, **fields):
    return Review(id=new_id(0), kind="conflict", newer=newer, older=older, created_at=NOON, owner="me", **fields)


def test_a_decided_review_leaves_its_before_image_and_every_row_keeps_its_seal(tmp_path):
    path = tmp_path / "memory.db"
    red, blue = fact("it is red"), fact("it is blue", minutes=1)
    asked = question(blue, red)

    async def work(store):
        await commit(
            store, add=(red, blue), reviews=(asked,), link=(Edge(source=blue.id, target=red.id, type="supersedes"),)
        )
        first = await store.read(lambda tx: tx.reviews.listed(ME, most=9))
        decided = question(blue, red, decided_at=NOON, decision="keep both")
        await commit(
            store,
            reviews=(type(decided)(**{**_fields(decided), "id": asked.id}),),
            unlink=(Edge(source=blue.id, target=red.id, type="supersedes"),),
        )
        again = await store.read(lambda tx: tx.reviews.get(ME, asked.id))
        await commit(store, link=(Edge(source=blue.id, target=red.id, type="supersedes"),))
        return first, again, await store.doctor()

    first, again, report = opened(path, work)
    assert [each.newer.content for each in first] == ["it is blue"]
    assert again.decision == "keep both"
    assert report.ok
    before = [json.loads(text) for (text,) in rows(path, "SELECT before FROM history WHERE tbl = 'reviews'")]
    assert [image["decision"] for image in before] == [None]
    assert len(rows(path, "SELECT 1 FROM history WHERE tbl = 'edges'")) == 2


def _fields(review):
    return {name: getattr(review, name) for name in review.__dataclass_fields__}


def test_doctor_detects_changed_reviews_and_stale_slots(tmp_path):
    path = tmp_path / "memory.db"
    red, blue = fact("it is red"), fact("it is blue", minutes=1)

    async def work(store):
        await commit(store, add=(red, blue), reviews=(question(blue, red),))

    opened(path, work)
    damage = raw(path)
    damage.execute("UPDATE reviews SET kind = 'several'")
    damage.execute("DELETE FROM slots WHERE line = 'it is red'")
    damage.close()
    assert failing(opened(path, lambda store: store.doctor())) == {"row seals", "commit rows", "slots"}


def test_slots_follow_the_text_subjects_and_state_of_a_fact(tmp_path):
    path = tmp_path / "memory.db"
    tea, rain = fact("Likes tea"), fact("Likes rain", type="opinion")
    people = [
        Entity(id=new_id(0), type="person", name=name, first_seen=NOON, last_updated=NOON, owner="me")
        for name in ("Ann", "Bob")
    ]

    async def near(store, *about):
        found = await store.read(lambda tx: tx.nodes.near_statements("me", "", [each.id for each in about], "likes"))
        return sorted(content for _, content in found)

    async def work(store):
        await commit(
            store, add=(tea, rain), entities=tuple(people), subjects=((tea.id, people[1].id), (tea.id, people[0].id))
        )
        assert await near(store) == ["Likes rain"]
        assert await near(store, *people) == await near(store, *reversed(people)) == ["Likes tea"]
        assert await near(store, people[0]) == []
        await commit(store, close=(closing(tea),))
        assert await near(store, *people) == []
        stored = await store.read(lambda tx: tx.nodes.get(ME, tea.id))
        await commit(
            store,
            put=(
                type(stored)(**{**_fields(stored), "closed_at": None, "closed_reason": None, "content": "Likes soup"}),
            ),
        )
        assert await near(store, *people) == ["Likes soup"]
        assert (await store.doctor()).ok

    opened(path, work)
    damage = raw(path)
    damage.execute("PRAGMA foreign_keys = ON")
    damage.execute("DELETE FROM subjects WHERE entity = (SELECT max(entity) FROM subjects)")
    assert damage.execute("SELECT subjects FROM slots WHERE line = 'likes soup'").get == "1"
    damage.execute("DELETE FROM subjects")
    assert damage.execute("SELECT subjects FROM slots WHERE line = 'likes soup'").get == ""
    damage.close()
