"""Erasure, through both APIs."""

from __future__ import annotations

import pytest

from ricordo.errors import InvalidError, NotFoundError


async def test_a_dry_run_reports_exactly_what_the_erasure_does(memory):
    said = await memory.add("My wife is Mirabel", session="talk")
    dry = await memory.erase(session="talk", dry_run=True)
    assert (dry.dry_run, dry.is_done) == (True, False)
    assert (await memory.get(said)).content == "My wife is Mirabel"
    report = await memory.erase(session="talk")
    assert report.erased == dry.erased
    assert {each.kind: each.count for each in report.erased} == {
        "episodic": 1,
        "entity": 1,
        "relation": 1,
        "session": 1,
    }
    with pytest.raises(NotFoundError, match="was erased on 2026-01-01"):
        await memory.get(said)
    with pytest.raises(NotFoundError):
        await memory.entity("Mirabel")


async def test_erasing_a_person_erases_every_memory_that_names_them(memory):
    await memory.add_entity("Mirabel Stone", aliases=["Mira"])
    await memory.remember("Mirabel Stone likes tea", about=["Mirabel Stone"])
    await memory.add("MIRA called", session="talk")
    await memory.add("a call for somebody else", session="talk")
    tom = await memory.remember("Tom met Mira's friend", about=["Tom"])
    plums = await memory.remember("Tom likes plums", about=["Tom"])
    was = await memory.remember("Mira likes plums too")
    await memory.update(was.id, content="they like plums too")
    await memory.settle(600)
    report = await memory.erase(entity="Mira")
    assert {each.kind: each.count for each in report.erased} == {"episodic": 1, "semantic": 3, "entity": 1}
    assert tom.id in [id_ for each in report.erased for id_ in each.ids]
    left = {node.content for node in (await memory.list()).nodes}
    assert left == {"a call for somebody else", "Tom likes plums"}
    assert (await memory.get(plums.id)).about == ("Tom",)
    assert (await memory.doctor()).ok


async def test_a_person_whom_a_newer_message_names_outlasts_the_memory_that_told_of_them(memory):
    told = await memory.remember("Mirabel likes tea", about=["Mirabel"])
    said = await memory.add("Mirabel sold the red bicycle")  # not linked yet
    dry = await memory.erase(id=told.id, dry_run=True)
    report = await memory.erase(id=told.id)
    assert report.erased == dry.erased
    assert {each.kind: each.count for each in report.erased} == {"semantic": 1}
    await memory.settle(600)
    assert (await memory.entity("Mirabel")).mention_count == 1
    report = await memory.erase(id=said)
    assert {each.kind: each.count for each in report.erased} == {"episodic": 1, "entity": 1}


async def test_a_person_whom_an_older_message_calls_by_a_new_name_outlasts_the_memory_that_told_of_them(memory):
    await memory.add("Mimi sold the red bicycle")
    told = await memory.remember("Mirabel likes tea", about=["Mirabel"])
    await memory.settle(600)
    await memory.update_entity("Mirabel", aliases=["Mimi"])  # the message is not linked to it yet
    report = await memory.erase(id=told.id)
    assert {each.kind: each.count for each in report.erased} == {"semantic": 1}
    await memory.settle(600)
    assert (await memory.entity("Mimi")).name == "Mirabel"


async def test_erasing_a_memory_erases_older_versions_and_keeps_its_successor(memory):
    red = await memory.remember("favourite colour is red")
    blue = await memory.correct(red.id, "favourite colour is blue")
    green = await memory.correct(blue.id, "favourite colour is green")
    await memory.erase(id=blue.id)
    assert [version.content for version in await memory.history(green.id)] == ["favourite colour is green"]
    assert (await memory.search("favourite colour", archived=True)).hits == ()
    assert (await memory.search("favourite colour")).ids == [green.id]


@pytest.mark.parametrize("what", ["id", "session", "entity"])
async def test_what_to_erase_is_text(memory, what):
    for given in ("half of a pair \ud800", 5, ""):
        with pytest.raises(InvalidError, match=f"^{what}"):
            await memory.erase(**{what: given}, dry_run=True)
    with pytest.raises(NotFoundError, match="nobody"):
        await memory.erase(**{what: "nobody"}, dry_run=True)
