"""What was forgotten or erased shows in no attribute, and comes back in none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Settings
from ricordo.integrations.items import listed
from tests.flows.conftest import HandClock, Place

SAID = "My sister Olga lives in Perm. The weather is nice."


@pytest.fixture
async def opened(place: Place, clock: HandClock) -> AsyncIterator[Memory]:
    settings = Settings(durability="process")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=settings) as memory:
        yield memory


async def test_a_forgotten_sentence_is_in_no_attribute_that_an_adapter_shows(opened: Memory) -> None:
    item: dict[str, Any] = {"role": "user", "content": [{"type": "input_text", "text": SAID}]}
    told = await opened.add(SAID, session="s", attributes={"item": item, "kind": "x", "note": [{"a": SAID}], SAID: 1})
    fact = await opened.remember("My sister Olga lives in Perm")
    await opened.forget(fact.id)
    await opened.settle(600)
    view = opened.store_view
    (shown,) = await view.shown([await opened.get(told)])
    assert "Perm" not in repr(shown)
    assert "The weather is nice" in repr(shown.attributes["item"])
    assert "Perm" not in repr(await view.nodes([told]))
    assert "Perm" not in repr([node async for node in view.each({"kind": "x"})])


async def test_an_erased_sentence_does_not_come_back_in_attributes_or_files(opened: Memory, place: Place) -> None:
    fact = await opened.remember("My sister Olga lives in Perm")
    await opened.erase(id=fact.id)
    await opened.add(SAID, session="s", origin="import", role="assistant", attributes={"item": {"content": SAID}})
    await opened.add("The weather is nice.", session="s", attributes={SAID: 1, "deep": [{"a": f"Well. {SAID}"}]})
    nodes = [node async for node in listed(opened, type="episodic")]
    assert len(nodes) == 2
    assert "Perm" not in repr(nodes)
    await opened.close()
    files = [file for file in Path(place.index).parent.rglob("*") if file.is_file()]
    assert not [file.name for file in files if b"Perm" in file.read_bytes()]
