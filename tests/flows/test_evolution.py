"""Knowledge that changes: explicitly, and because of newer statements."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import ConflictError, Fact, InvalidError, Memory, NotFoundError, Scope
from tests.flows.conftest import DAY, HandClock


async def contents(memory: Any, question: str) -> list[str]:
    return [hit.content for hit in (await memory.search(question)).hits]


async def test_a_corrected_fact_no_longer_turns_up_in_search(memory: Any) -> None:
    red = await memory.remember(
        "favourite colour is red", about=["Ann"], tags=["taste"], category="preference", session="s1"
    )
    blue = await memory.correct(red.id, "favourite colour is blue")
    await memory.settle(600)
    assert (await memory.search("favourite colour")).ids == [blue.id]
    assert (await memory.search("favourite colour", entity="Ann")).ids == [blue.id]
    fresh = await memory.get(blue.id)
    assert (fresh.tags, fresh.category, fresh.session, fresh.about) == (("taste",), "preference", "s1", ("Ann",))
    assert (await memory.get(red.id)).closed_reason == "superseded"
    assert (await memory.stats()).edges["supersedes"] == 1
    assert len(await memory.log()) == 2


@pytest.mark.parametrize(
    ("before", "about", "after", "then"),
    [
        (
            "The user's contact at Helmbrecht is Sabine Kroll.",
            "Sabine Kroll",
            "The user's contact at Helmbrecht is Jonas Weidle.",
            "Jonas Weidle",
        ),
        (
            "Mein Kontakt bei Helmbrecht ist Sabine Kroll",
            "Sabine Kroll",
            "Mein Kontakt bei Helmbrecht ist Jonas Kroll",
            "Jonas Kroll",
        ),
        (
            "Mi contacto en Helmbrecht es Sabine Kroll",
            "Sabine Kroll",
            "Mi contacto en Helmbrecht es Jonas Weidle",
            "Jonas Weidle",
        ),
        (
            "Mon contact chez Helmbrecht est Sabine Kroll",
            "Sabine Kroll",
            "Mon contact chez Helmbrecht est Jonas Weidle",
            "Jonas Weidle",
        ),
        ("В Хельмбрехте звонить нужно Сабине", "Сабина", "В Хельмбрехте звонить нужно в офис", "Сабина"),
        ("Ben lives in Rome", "Ben", "Lives in Milan", "Ben"),
        ("The keys are with Ben", "Ben", "The keys are in the drawer", "Ben"),
        ("Ben lives in Rome", "Ben", "Ben lives in Milan", "Ben"),
    ],
)
async def test_a_correction_is_about_the_person_it_names_instead(
    memory: Any, before: str, about: str, after: str, then: str
) -> None:
    old = await memory.remember(before, about=[about])
    new = await memory.correct(old.id, after)
    assert new.about == (await memory.get(new.id)).about == (then,)
    if then != about:
        assert (await memory.search("Helmbrecht", entity=then)).ids == [new.id]
        assert (await memory.search("Helmbrecht", entity=about)).ids == []


async def test_history_lists_all_versions_from_any_of_them(memory: Any) -> None:
    first = await memory.remember("The code word is heron")
    second = await memory.correct(first.id, "The code word is egret")
    third = await memory.correct(second.id, "The code word is stork")
    told = [(version.content, version.closed_reason) for version in await memory.history(second.id)]
    assert told == [
        ("The code word is heron", None),
        ("The code word is heron", "superseded"),
        ("The code word is egret", None),
        ("The code word is egret", "superseded"),
        ("The code word is stork", None),
    ]
    assert await memory.history(first.id) == await memory.history(third.id)


async def test_correcting_an_old_version_names_the_current_one(memory: Any) -> None:
    first = await memory.remember("The code word is heron")
    second = await memory.correct(first.id, "The code word is egret")
    third = await memory.correct(second.id, "The code word is stork")
    for change in (memory.confirm, memory.reinforce, memory.demote):
        with pytest.raises(ConflictError, match=third.id):
            await change(first.id)
    with pytest.raises(ConflictError, match=third.id):
        await memory.correct(first.id, "The code word is crane")
    with pytest.raises(ConflictError, match="restore"):
        await memory.forget(third.id)
        await memory.update(third.id, tags=["x"])


async def test_a_correction_keeps_its_evidence_and_refuses_invalid_evidence(memory: Any) -> None:
    said = await memory.add("Actually the train leaves at ten")
    fact = await memory.remember("The train leaves at nine")
    with pytest.raises(NotFoundError):
        await memory.correct(fact.id, "The train leaves at ten", evidence=["no such id"])
    assert (await memory.get(fact.id)).is_live
    await memory.correct(fact.id, "The train leaves at ten", evidence=[said])
    with pytest.raises(InvalidError, match="content"):
        await memory.correct((await memory.search("train", type="semantic")).ids[0], "The train leaves at ten")


async def test_an_update_changes_in_place_and_history_keeps_the_old_value(memory: Any) -> None:
    node = await memory.remember("The dentist is Dr Alber", tags=["health"], attributes={"task_id": 1})
    altered = await memory.update(node.id, content="The dentist is Dr Albers", tags=["doctors"])
    await memory.settle(600)
    assert (altered.id, altered.tags, altered.attributes) == (node.id, ("doctors",), {"task_id": 1})
    assert (await memory.search("Albers")).ids == [node.id]
    assert [version.content for version in await memory.history(node.id)] == [
        "The dentist is Dr Alber",
        "The dentist is Dr Albers",
    ]
    assert (await memory.update(node.id, attributes={})).attributes == {}
    commits = len(await memory.log())
    assert (await memory.update(node.id, tags=["doctors"])).tags == ("doctors",)
    assert len(await memory.log()) == commits
    with pytest.raises(InvalidError, match="nothing to change"):
        await memory.update(node.id)
    with pytest.raises(InvalidError, match="tags"):
        await memory.update(node.id, tags=[1])


async def test_credentials_in_a_correction_are_redacted(memory: Any) -> None:
    node = await memory.remember("The key for the map service is in the vault")
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    assert key not in (await memory.update(node.id, content=f"The key for the map service is {key}")).content
    assert key not in (await memory.correct(node.id, f"The map service key is {key} now")).content


async def test_a_confirmed_fact_has_full_confidence_and_never_fades(memory: Any) -> None:
    node = await memory.remember("Kim is allergic to peanuts", confidence=0.4)
    sure = await memory.confirm(node.id)
    assert (sure.confidence, sure.decay_rate) == (1.0, 0.0)
    assert await memory.get(node.id) == await memory.confirm(node.id)
    assert len(await memory.log()) == 2


async def test_reinforcing_and_demoting_move_a_fact_up_and_down_within_bounds(memory: Any) -> None:
    tea, coffee = await memory.remember_many(
        [Fact(content="Green tea is good in the morning"), Fact(content="Black coffee is good in the morning")]
    )
    await memory.settle(600)
    for wanted in (tea, coffee):
        other = coffee if wanted is tea else tea
        for _ in range(5):
            await memory.reinforce(wanted.id)
        for _ in range(25):
            await memory.demote(other.id)
        assert (await memory.search("what is good in the morning")).ids == [wanted.id, other.id]
        assert ((await memory.get(wanted.id)).score, (await memory.get(other.id)).score) == (
            (10, -10) if wanted is tea else (5, -10)
        )
    assert (await memory.get(tea.id)).is_live


async def test_reinforcing_makes_an_old_fact_as_fresh_as_a_new_one(memory: Any, clock: HandClock) -> None:
    node = await memory.remember("The spare key is under the pot")
    clock.ms += 400 * DAY
    aged = {share.strategy for share in (await memory.search("spare key", trace=True)).hits[0].why}
    await memory.reinforce(node.id)
    fresh = {share.strategy for share in (await memory.search("spare key", trace=True)).hits[0].why}
    assert "recency" in aged
    assert "recency" not in fresh


async def test_memories_of_other_owners_look_absent(memory: Any) -> None:
    mine = await memory.remember("Anna lives in Paris", id="fact-1")
    await memory.remember("Anna lives in Rome")
    (item,) = await memory.review()
    eve = memory.scoped(Scope(owner="eve"))
    calls = [
        lambda store, id: store.correct(id, "x y z"),
        lambda store, id: store.update(id, tags=["x"]),
        lambda store, id: store.confirm(id),
        lambda store, id: store.reinforce(id),
        lambda store, id: store.demote(id),
    ]
    for call in calls:
        with pytest.raises(NotFoundError) as theirs:
            await call(eve, mine.id)
        with pytest.raises(NotFoundError) as nobodys:
            await call(eve, "fact-2")
        assert str(theirs.value).replace("fact-1", "") == str(nobodys.value).replace("fact-2", "")
    assert list(await eve.review()) == []
    with pytest.raises(NotFoundError):
        await eve.resolve(item, decision="replace")


# a newer fact


async def test_a_new_value_of_a_slot_replaces_the_old_one(memory: Any) -> None:
    paris = await memory.remember("Anna lives in Paris")
    rome = await memory.remember("Anna now lives in Rome")
    await memory.settle(600)
    assert await contents(memory, "where does Anna live?") == [rome.content]
    old = await memory.get(paris.id)
    assert (old.closed_reason, old.valid_until) == ("superseded", rome.valid_from)
    assert [item.kind for item in await memory.review()] == ["replaced"]
    back = await memory.remember("Anna lives in Paris")
    assert back.id != paris.id
    assert [version.content for version in await memory.history(back.id)][-1] == "Anna lives in Paris"
    assert (await memory.stats()).nodes == {"semantic": 1}


async def test_of_many_values_at_once_the_last_stays(memory: Any) -> None:
    nodes = await memory.remember_many(
        [Fact(content=f"Столица страны — {city}") for city in ("Алматы", "Астана", "Нур-Султан", "Астана")]
    )
    page = await memory.list()
    assert [node.content for node in page.nodes] == ["Столица страны — Астана"]
    assert [node.closed_reason for node in nodes] == ["superseded", "superseded", "superseded", None]
    assert (await memory.doctor()).ok


async def test_compatible_values_stay_newest_first_until_decided(memory: Any) -> None:
    first = await memory.remember("Good Omens was written by Terry Pratchett")
    second = await memory.remember("Good Omens was written by Neil Gaiman")
    await memory.settle(600)
    results = await memory.search("Terry Pratchett Good Omens", trace=True)
    assert results.ids == [second.id, first.id]
    for hit in results.hits:
        assert sum(share.share for share in hit.why) == pytest.approx(hit.score, abs=1e-5)
    (item,) = await memory.review()
    assert (item.kind, item.newer.id, item.older.id) == ("conflict", second.id, first.id)
    decided = await memory.resolve(item, decision="keep both")
    assert decided.decision == "keep both"
    assert list(await memory.review()) == []
    assert (await memory.search("Terry Pratchett Good Omens")).ids == [first.id, second.id]
    with pytest.raises(ConflictError, match="decided"):
        await memory.resolve(item.id, decision="replace")


@pytest.mark.parametrize(
    ("decision", "live"), [("replace", ["Rome"]), ("keep both", ["Paris", "Rome"]), ("keep_old", ["Paris"])]
)
@pytest.mark.parametrize("place", ["Anna lives in", "Anna works at"])
async def test_a_decision_is_carried_out(memory: Any, place: str, decision: str, live: list[str]) -> None:
    await memory.remember(f"{place} Paris")
    await memory.remember(f"{place} Rome")
    (item,) = await memory.review()
    await memory.resolve(item, decision=decision)
    page = await memory.list()
    assert sorted(node.content.split()[-1] for node in page.nodes) == live
    assert (await memory.stats()).edges.get("supersedes", 0) == (1 if decision == "replace" else 0)
    assert (await memory.doctor()).ok
    await memory.settle(600)
    found = sorted(text.split()[-1] for text in await contents(memory, "Anna"))
    assert found == live


async def test_a_bad_decision_is_refused(memory: Any) -> None:
    await memory.remember("Anna works at Acme")
    gone = await memory.remember("Anna works at Globex")
    (item,) = await memory.review()
    with pytest.raises(InvalidError, match="decision"):
        await memory.resolve(item, decision="perhaps")
    with pytest.raises(NotFoundError):
        await memory.resolve("no such review", decision="replace")
    await memory.forget(gone.id)
    assert list(await memory.review()) == []
    with pytest.raises(ConflictError, match="forgotten"):
        await memory.resolve(item, decision="replace")


async def test_multi_valued_slots_are_reviewed_only_at_first(memory: Any) -> None:
    for thing in ("tea", "chess", "jazz", "rain", "soup"):
        await memory.remember(f"Anna likes {thing}")
    assert {item.kind for item in await memory.review()} == {"several"}
    assert len(await memory.review()) == 2
    assert (await memory.stats()).nodes == {"semantic": 5}


async def test_a_repeated_fact_is_reinforced_and_not_kept_twice(memory: Any) -> None:
    first = await memory.remember("Anna likes tea", tags=["taste"], expires="2030-01-01")
    again = await memory.remember("anna likes tea.", tags=["drinks"], attributes={"task_id": 7})
    assert again.id == first.id
    assert (again.content, again.score, again.tags) == ("Anna likes tea", 1.0, ("taste", "drinks"))
    assert (again.attributes, again.expires_at) == ({"task_id": 7}, None)
    assert (await memory.stats()).nodes == {"semantic": 1}
    assert await memory.get(first.id) == again or (await memory.get(first.id)).score == again.score
    mine = await memory.remember("Anna likes tea", id="my-own")
    assert mine.id == "my-own"
    assert [item.kind for item in await memory.review()] == ["same"]


async def test_expired_facts_are_neither_repeated_nor_replaced(memory: Any, clock: HandClock) -> None:
    old = await memory.remember("Anna lives in Paris", expires="2026-01-15")
    clock.ms += 30 * DAY
    again = await memory.remember("Anna lives in Paris")
    assert again.id != old.id
    assert (await memory.search("Anna")).ids == [again.id]


async def test_facts_about_different_subjects_do_not_conflict(memory: Any) -> None:
    await memory.remember_many(
        [
            Fact(content="Lives in Paris", about=["Anna"]),
            Fact(content="Lives in Rome", about=["Bob"]),
            Fact(content="Lives in Oslo"),
            Fact(content="Lives in Lima", about=["Anna", "Bob"]),
            Fact(content="Lives in Lima", about=["Carl"]),
            Fact(content="Her sister lives in Bonn"),
            Fact(content="Lives in Rome", about=["Bob"], type="opinion"),
        ]
    )
    assert (await memory.stats()).nodes == {"semantic": 6, "opinion": 1}
    assert list(await memory.review()) == []
    moved = await memory.remember("Lives in Cairo", about=["bob"])
    assert moved.about == ("Bob",)
    assert [item.older.content for item in await memory.review()] == ["Lives in Rome"]


async def test_owners_do_not_replace_each_others_facts(memory: Any) -> None:
    mine = await memory.remember("The capital of Freedonia is Paris")
    await memory.scoped(Scope(owner="eve")).remember("The capital of Freedonia is Rome")
    assert (await memory.get(mine.id)).is_live


async def test_an_earlier_fact_does_not_replace_a_later_one(memory: Any) -> None:
    rome = await memory.remember("Anna lives in Rome", valid_from="2020-05-01")
    paris = await memory.remember("Anna lives in Paris", valid_from="2015-05-01")
    assert (await memory.get(rome.id)).is_live
    assert (await memory.get(paris.id)).is_live
    await memory.settle(600)
    assert (await memory.search("Anna lives in Paris")).ids == [rome.id, paris.id]
    (item,) = await memory.review()
    assert (item.kind, item.newer.id) == ("conflict", rome.id)


async def test_web_and_uncertain_facts_replace_nothing(memory: Any) -> None:
    mine = await memory.remember("My phone number is 555-1234")
    web = await memory.remember("My phone number is 555-6666", origin="web")
    await memory.remember("My phone number is 555-7777", confidence=0.2)
    await memory.settle(600)
    assert (await memory.get(mine.id)).is_live
    assert web.id not in (await memory.search("my phone number 555-6666")).ids  # it waits in quarantine
    (held,) = await memory.review(kind="quarantine")
    await memory.resolve(held, decision="approve")
    assert (await memory.get(mine.id)).is_live
    found = (await memory.search("my phone number 555-6666")).ids
    assert found.index(mine.id) < found.index(web.id)


async def test_an_updated_or_restored_fact_is_compared_by_its_current_text(memory: Any) -> None:
    node = await memory.remember("Anna lives in Pariss")
    await memory.update(node.id, content="Anna lives in Paris")
    assert (await memory.remember("Anna lives in Paris")).id == node.id
    await memory.forget(node.id)
    other = await memory.remember("Anna lives in Paris")
    assert other.id != node.id
    assert (await memory.doctor()).ok


async def test_a_category_follows_new_words_unless_it_was_chosen(memory: Any) -> None:
    moved = await memory.remember("I went to Trzebnica on Monday")
    chosen = await memory.remember("We visited the lighthouse", category="knowledge")
    lives = await memory.correct(moved.id, "I live in Trzebnica")
    assert (moved.category, lives.category) == ("event", "identity")
    assert (await memory.update(lives.id, content="I went to Oborniki on Monday")).category == "event"
    assert (await memory.correct(chosen.id, "We visited the old lighthouse")).category == "knowledge"


async def test_a_task_that_is_done_stays_a_task_under_new_words(memory: Any) -> None:
    task = await memory.remember("I need to call the plumber")
    done = await memory.update(task.id, content="Anna called the plumber", done=True)
    assert (task.category, done.category) == ("task", "task")
    assert (await memory.correct(done.id, "Bob called the plumber")).category == "task"


@pytest.mark.parametrize(
    ("before", "after", "asked", "name"),
    [
        ("Our landlord is Mr. Oduya", "Our landlord is Mrs. Szymanski", "my landlord", "Szymanski"),
        ("My dentist is Dr. Weiss", "My dentist is Dr. Brandt", "my dentist", "Brandt"),
        ("Моя начальница — Вера Котова", "Моя начальница — Нина Орлова", "my boss", "Нина Орлова"),
    ],
)
async def test_a_correction_that_names_another_person_is_about_them(
    memory: Any, before: str, after: str, asked: str, name: str
) -> None:
    corrected = await memory.correct((await memory.remember(before)).id, after)
    assert corrected.about == (name,)
    assert [fact.content for fact in (await memory.entity(asked)).facts] == [after]


async def test_a_correction_that_says_he_is_about_the_same_person(memory: Any) -> None:
    fact = await memory.remember("Emil lives in Lisbon", about="Emil")
    assert (await memory.correct(fact.id, "He lives in Porto")).about == ("Emil",)


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("prod runs on pelican", "pelican is gone, cormorant is the new box", "Which server does prod run on?"),
        ("flyers are printed by Copytop for 340", "copytop is done, going with Blanc, 290", "Who prints the flyers?"),
        ("за бэкенд отвечает том", "том больше не ведёт бэкенд, вместо него миша", "Кто сейчас отвечает за бэкенд?"),
        ("Der Stand ist in Halle 4", "sie haben den Stand verlegt, jetzt die 11", "In welcher Halle ist unser Stand?"),
        (  # each word of such a question has up to two index terms, of which an English fact has one
            "The user has an appointment with the dentist Dr Vasseur on 14 October at 9:30",
            "The secretary of Vasseur moved the user to 22 October at 11",
            "à quelle date le dentiste ?",
        ),
        (
            "The user has an appointment with the dentist Dr Vasseur on 14 October at 9:30",
            "The secretary of Vasseur moved the user to 22 October at 11",
            "in che data è il dentista?",
        ),
    ],
)
async def test_what_replaced_a_fact_is_found_by_the_words_of_that_fact(older: str, newer: str, question: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for other in ("the demo is on october 9", "standup is on monday", "Kiwi writes the app", "офис на Лесной"):
            await memory.remember(other)
        was = await memory.remember(older, at="2026-10-01")
        now = await memory.remember(newer)
        asked = [each for each in await memory.review() if each.older and each.older.id == was.id]
        assert [each.newer.id for each in asked] == [now.id]
        await memory.resolve(asked[0].id, decision="replace")
        assert (await memory.search(question)).ids[0] == now.id
        assert newer in str(await memory.context(question))
        assert newer not in str(await memory.context("What is the capital of France?"))
