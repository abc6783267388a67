"""Memories of an earlier time that are closed now."""

from __future__ import annotations

from typing import Any

from ricordo.clock import from_ms
from ricordo.interfaces.serialize import as_text
from tests.flows.conftest import DAY, HandClock


async def test_what_was_forgotten_since_is_marked_in_answers_about_an_earlier_time(
    memory: Any, clock: HandClock
) -> None:
    gone = await memory.remember("The boat is red")
    kept = await memory.remember("The boat has an engine")
    old = await memory.remember("The boat lies in Genoa")
    erased = await memory.remember("The boat cost 9,000 euros")
    then = from_ms(clock.ms)
    clock.ms += DAY
    today = f"{from_ms(clock.ms):%Y-%m-%d}"
    await memory.forget(gone.id)
    await memory.correct(old.id, "The boat lies in Pisa")
    await memory.erase(id=erased.id)
    await memory.settle(600)
    marks = {gone.id: f"forgotten since {today}", kept.id: "", old.id: f"replaced since {today}"}
    results = await memory.search("boat", as_of=then)
    assert {hit.id: hit.notice for hit in results} == marks
    assert {node.id: node.notice for node in (await memory.list(as_of=then)).nodes} == marks
    assert f"forgotten since {today}" in as_text(results)
    assert f"(forgotten since {today})" in await memory.context("What about the boat?", as_of=then)
    assert all(hit.notice == "" for hit in await memory.search("boat"))
