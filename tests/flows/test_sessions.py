"""Conversations can be listed and read, with their summaries."""

from __future__ import annotations

from typing import Any

import pytest

import ricordo
from ricordo import Scope
from tests.flows.conftest import DAY, HandClock
from tests.flows.test_consolidation import opened, proposal  # noqa: F401  # a fixture


async def test_conversations_are_listed_and_read_in_order(memory: Any, clock: HandClock) -> None:
    assert await memory.sessions() == []
    await memory.add("The boiler is broken.", session="monday")
    clock.ms += DAY
    await memory.add("I bought skis.", session="tuesday", speaker="Ann")
    await memory.add("Nice!", session="tuesday", role="assistant")
    await memory.end_session("tuesday")
    listed = await memory.sessions()
    assert [(each.id, each.messages, each.ended_at is not None) for each in listed] == [
        ("tuesday", 2, True),
        ("monday", 1, False),
    ]
    assert [each.id for each in await memory.sessions(1)] == ["tuesday"]
    read = await memory.session("tuesday")
    assert [(turn.speaker, turn.role, turn.content) for turn in read.turns] == [
        ("Ann", "user", "I bought skis."),
        (None, "assistant", "Nice!"),
    ]
    assert read.begun_at == read.turns[0].event_time and read.last_at == read.turns[-1].event_time


async def test_what_was_forgotten_is_not_read_and_others_read_nothing(memory: Any) -> None:
    await memory.add("I live in Rome. The bridge is closed.", session="s")
    known = await memory.remember("I live in Rome")
    await memory.forget(known.id)
    (turn,) = (await memory.session("s")).turns
    assert "Rome" not in turn.content and "bridge" in turn.content
    bob = memory.scoped(Scope(owner="bob"))
    assert await bob.sessions() == []
    with pytest.raises(ricordo.NotFoundError):
        await bob.session("s")
    with pytest.raises(ricordo.NotFoundError):
        await memory.session("nowhere")


async def test_a_conversation_without_title_and_summary_is_listed_with_how_it_begins(memory: Any) -> None:
    await memory.add("I live in Rome. Can you help me\n\nplan a trip to Norway?", session="0f0c2bd2", id="m1")
    await memory.add("Of course.", session="0f0c2bd2", role="assistant")
    await memory.add("Plan it. " * 200, session="long")
    openings = {each.id: each.opening for each in await memory.sessions()}
    assert openings["0f0c2bd2"] == "I live in Rome. Can you help me plan a trip to Norway?"
    assert openings["long"].startswith("Plan it. Plan") and len(openings["long"]) <= 200
    known = await memory.remember("I live in Rome")
    await memory.forget(known.id)
    assert {each.opening for each in await memory.sessions() if each.id != "long"} == {
        "Can you help me plan a trip to Norway?"
    }
    await memory.forget("m1")
    assert {each.opening for each in await memory.sessions() if each.id != "long"} == {"Of course."}


async def talked(open_: Any, clock: HandClock) -> Any:
    memory = await open_(
        proposal(summary="The boiler, and who repairs it."), proposal(summary="Skis for the winter in Davos.")
    )
    await memory.add("The boiler is broken, and Joe repairs it.", session="monday", id="m1")
    await memory.consolidate("monday")
    clock.ms += DAY
    await memory.add("I want skis for Davos.", session="tuesday", id="t1")
    await memory.consolidate("tuesday")
    clock.ms += DAY
    return memory


async def test_a_question_for_a_day_finds_the_summary_of_its_conversation(opened, clock):  # noqa: F811
    memory = await talked(opened, clock)
    found = await memory.search("what did we discuss yesterday")
    assert found.hits[0].content == "Skis for the winter in Davos." and found.hits[0].session == "tuesday"
    assert (await memory.session("tuesday")).summary == "Skis for the winter in Davos."
    assert [node.id for node in (await memory.explain(found.hits[0].id)).sources] == ["t1"]


async def test_a_summary_is_forgotten_with_what_it_rests_on(opened, clock):  # noqa: F811
    memory = await talked(opened, clock)
    await memory.forget("t1")
    assert (await memory.sessions())[0].summary != "Skis for the winter in Davos."
    assert "Davos" not in (await memory.context("What about the skis for Davos?") or "")
    await memory.erase(id="m1")
    assert not [node for node in (await memory.list(type="semantic")).nodes if node.category == "summary"]


async def test_a_search_in_a_session_finds_what_was_said_there_also_once_it_is_consolidated(opened):  # noqa: F811
    memory = await opened(proposal(summary="They spoke of ferries."))
    said = await memory.add("The ferry to Oslo leaves at nine", session="A")
    await memory.add("The ferry to Bergen leaves at ten", session="B")
    assert (await memory.consolidate("A")).state == "done"
    found = await memory.search("When does the ferry leave?", session="A")
    assert said in found.ids
    assert not any("Bergen" in hit.content for hit in found.hits)
    assert said not in (await memory.search("When does the ferry leave?")).ids
