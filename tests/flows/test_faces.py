"""The blocking API in a script, and in a notebook with a running event loop."""

from __future__ import annotations

import pytest

import ricordo.sync
from ricordo import Scope, UnavailableError
from tests.flows.conftest import Place


async def test_the_blocking_api_works_inside_a_running_loop(place: Place) -> None:
    with ricordo.sync.Memory.open(place.location, embedder="hashing") as memory:
        memory.remember("The spare key is under the third pot")
        assert memory.search("spare key").hits[0].content == "The spare key is under the third pot"


def test_a_scope_shares_the_store_and_closing_it_closes_nothing(place: Place) -> None:
    memory = ricordo.sync.Memory.open(place.location, embedder=None)
    with memory.scoped(Scope(owner="ann")) as ann:
        ann.add("hello")
    assert len(memory.scoped(Scope(owner="ann")).list().nodes) == 1
    memory.close()
    memory.close()
    with pytest.raises(UnavailableError):
        memory.add("too late")


def test_messages_added_without_waiting_are_stored_by_close(place: Place) -> None:
    with ricordo.sync.Memory.open(place.location, embedder=None) as memory:
        ids = [memory.add_nowait(f"message {n}", session="s") for n in range(500)]
    with ricordo.sync.Memory.open(place.location, embedder=None) as memory:
        assert [memory.get(each).content for each in ids] == [f"message {n}" for n in range(500)]
