"""A first story: no language model, the built-in embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import ricordo
from ricordo import Settings
from tests.flows.conftest import DAY, HandClock, Place


@pytest.fixture
async def memory(place: Place, clock: HandClock) -> AsyncIterator[Any]:
    settings = Settings(durability="process", time_zone="Europe/Berlin", fresh_wait_ms=60_000)
    async with ricordo.Memory.open(place.location, clock=clock, settings=settings) as opened:
        yield opened


async def test_a_remembered_fact_is_known_later(memory: Any, clock: HandClock) -> None:
    await memory.remember("I'm allergic to peanuts")
    await memory.add("My wife's name is Sarah")
    await memory.remember("Sarah likes Italian food", about=["my wife"])
    red = await memory.remember("My favourite colour is red")
    dentist = await memory.remember("I have a dentist's appointment in two weeks", expires="in 2 weeks")
    clock.ms += DAY
    blue = await memory.remember("My favourite colour is blue")

    assert "I'm allergic to peanuts" in await memory.context("What should I avoid eating?")
    assert (await memory.entity("my wife")).name == "Sarah"
    likes = (await memory.search("What does my wife like?")).hits[0]
    assert (likes.content, likes.about) == ("Sarah likes Italian food", ("Sarah",))
    assert [each.name for each in await memory.people()] == ["Sarah"]

    colours = await memory.search("What's my favourite colour?")
    assert colours.ids[0] == blue.id
    assert red.id not in colours.ids
    assert [(each.node.content, each.node.closed_reason) for each in await memory.history(blue.id)][-1] == (
        "My favourite colour is blue",
        None,
    )
    former = await memory.search("favourite colour", archived=True)
    assert list(former.ids) == [red.id]

    assert (await memory.search("dentist")).ids[0] == dentist.id
    clock.ms += 15 * DAY
    assert dentist.id not in (await memory.search("dentist")).ids
    assert "I'm allergic to peanuts" in await memory.context("What should I avoid eating?")


async def test_a_fact_about_a_person_does_not_replace_a_general_one(memory: Any) -> None:
    mine = await memory.remember("My favourite colour is red")
    hers = await memory.remember("Her favourite colour is blue", about=["Sarah"])
    found = (await memory.search("favourite colour")).ids
    assert {mine.id, hers.id} <= set(found)
    assert not await memory.review()
