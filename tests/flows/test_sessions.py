"""Conversations can be listed and read, with their summaries."""

from __future__ import annotations

from typing import Any

import pytest

import ricordo
from ricordo import Scope
from tests.flows.conftest import DAY, HandClock


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
