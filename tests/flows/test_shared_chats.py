"""In a chat that several people see, it is known whose "I" a statement is."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import Scope

TEAM = "team"


def of(memory: Any, owner: str, **more: Any) -> Any:
    return memory.scoped(Scope(owner=owner, chat=TEAM, **more))


async def test_others_see_who_said_it_and_oneself_reads_it_as_ones_own(memory: Any) -> None:
    ann, ben = of(memory, "ann"), of(memory, "ben")
    await ann.add("I am allergic to walnuts.", session="lunch")
    await ann.remember("I work from Lisbon until March", shared=True)
    await ann.end_session("lunch")
    await ann.consolidate()
    asked = "What food am I allergic to, and where do I work?"
    seen = {(hit.content, hit.speaker) for hit in (await ben.search(asked)).hits}
    assert seen == {
        ("I am allergic to walnuts.", "ann"),
        ("I am allergic to walnuts", "ann"),
        ("I work from Lisbon until March", "ann"),
    }
    assert {hit.speaker for hit in (await ann.search(asked)).hits} == {None}
    assert {hit.about for hit in (await ann.search(asked)).hits} == {()}
    told = await ben.context("What am I allergic to?")
    assert "I am allergic to walnuts (about ann)" in told
    assert "ann (2026-01-01, just now): “I am allergic to walnuts.”" in told
    own = await ann.context("What am I allergic to?")
    assert "ann" not in own
    assert "user (2026-01-01, just now): “I am allergic to walnuts.”" in own


@pytest.mark.parametrize(
    ("content", "about"),
    [
        ("My dog is called Rex", ("ann",)),
        ("The user lives in Rome", ("ann",)),
        ("Живу в Перми", ("ann",)),
        ("Ich wohne in Bonn", ("ann",)),
        ("We meet on Tuesdays at ten", ()),
        ("Unser Büro ist in Bonn", ()),
        ("The printer is on the second floor", ()),
        ("Dora plays the cello", ("Dora",)),
        ("My sister Anna lives in Rome", ("Anna",)),
    ],
)
async def test_a_shared_fact_is_about_its_owner_if_it_is_one_persons(memory: Any, content: str, about: Any) -> None:
    shared = await of(memory, "ann").remember(content, shared=True)
    assert shared.about == about
    is_own = about in (("ann",), ("Anna",))
    assert shared.speaker == ("ann" if is_own else None)


async def test_a_relative_named_in_a_shared_fact_is_the_owners(memory: Any) -> None:
    await of(memory, "ann").remember("My sister is Clara", shared=True)
    found = (await of(memory, "ben").search("whose sister is Clara?")).hits[0]
    assert (found.about, found.speaker) == (("Clara",), "ann")
    assert "(about Clara, said by ann)" in await of(memory, "ben").context("What do we know about Clara?")
    relations = (await of(memory, "ben").entity("Clara")).relations
    assert [(each.source_name, each.predicate) for each in relations] == [("ann", "sister")]


async def test_two_peoples_own_facts_do_not_replace_each_other(memory: Any) -> None:
    first = await of(memory, "ann").remember("I live in Rome", shared=True)
    second = await of(memory, "ben").remember("I live in Oslo", shared=True)
    third = await of(memory, "ann").remember("I live in Lima", shared=True)
    assert not second.outdates
    assert [older.id for older in third.outdates] == [first.id]


async def test_named_speakers_tools_and_an_owner_called_me_are_as_given(memory: Any) -> None:
    ann = of(memory, "ann")
    await ann.add("I like tea", speaker="Dora", session="s")
    await ann.add("I can help", role="assistant", session="s")
    await ann.add("I am a page", origin="web", session="s")
    await of(memory, "me").add("I like rice", session="s")
    await memory.scoped(Scope(owner="ann")).add("I like figs", session="own")
    said = {turn.content: turn.speaker for turn in (await ann.session("s")).turns}
    assert said == {"I like tea": "Dora", "I can help": None, "I am a page": None, "I like rice": None}
    (own,) = (await memory.scoped(Scope(owner="ann")).session("own")).turns
    assert own.speaker is None


async def test_a_briefing_reads_ones_own_facts_as_ones_own(memory: Any) -> None:
    await of(memory, "ann").remember("I decided to keep the rabbits", shared=True)
    assert "I decided to keep the rabbits (about ann)" in await of(memory, "ben").brief()
    told = await of(memory, "ann").brief()
    assert "I decided to keep the rabbits" in told and "ann" not in told.partition("rabbits")[2].splitlines()[0]
