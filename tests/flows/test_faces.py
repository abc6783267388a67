"""The blocking twin where people use it: in a script, and in a notebook, whose own loop is running."""

from __future__ import annotations

from pathlib import Path

import pytest

import ricordo.sync
from ricordo import Scope, UnavailableError


async def test_the_blocking_twin_works_inside_a_running_loop(tmp_path: Path) -> None:
    with ricordo.sync.Memory.open(tmp_path / "me.db", embedder="hashing") as memory:
        memory.remember("The spare key is under the third pot")
        assert memory.search("spare key").hits[0].content == "The spare key is under the third pot"


def test_a_scope_shares_the_store_and_closing_it_closes_nothing(tmp_path: Path) -> None:
    memory = ricordo.sync.Memory.open(tmp_path / "me.db", embedder=None)
    with memory.scoped(Scope(owner="ann")) as ann:
        ann.add("hello")
    assert len(memory.scoped(Scope(owner="ann")).list().nodes) == 1
    memory.close()
    memory.close()
    with pytest.raises(UnavailableError):
        memory.add("too late")


def test_what_was_added_without_waiting_is_there_after_closing(tmp_path: Path) -> None:
    with ricordo.sync.Memory.open(tmp_path / "me.db", embedder=None) as memory:
        ids = [memory.add_nowait(f"message {n}", session="s") for n in range(500)]
    with ricordo.sync.Memory.open(tmp_path / "me.db", embedder=None) as memory:
        assert [memory.get(each).content for each in ids] == [f"message {n}" for n in range(500)]
