"""A share of the walk through the sharing matrix; `make spaces` makes 2,000 calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from ricordo.model import Change, Scope
from ricordo.rights import ROLE_NEEDED, role_allows
from ricordo.storage import Snapshot
from ricordo.storage.database import store
from ricordo.storage.database.statements import Statements
from tests.spaces.matrix import ACTIONS, OWNERS, cells, tried


def test_every_action_has_a_row_and_the_rows_agree_with_the_table_of_roles() -> None:
    table = cells()
    assert {action for action, _ in table} == set(ACTIONS)
    kinds = {
        "add": "write",
        "approve": "approve",
        "erase": "erase",
        "invite": "invite",
        "leave": "leave",
        "get": "read",
    }
    assert set(kinds.values()) == set(ROLE_NEEDED) - {"propose"}  # by callers that only propose: test_proposals.py
    for action, kind in kinds.items():
        for role in ("reader", "writer", "keeper"):
            assert (table[action, f"{role}-named"] == "yes") == role_allows(role, kind)  # type: ignore[arg-type]
    assert {who.partition("-")[0] for _, who in table} == set(OWNERS)


async def test_a_share_of_the_matrix_holds(tmp_path: Path) -> None:
    walk = await tried(tmp_path, calls=16, seed=7)
    assert (walk.leaks, walk.wrong) == ([], [])
    assert walk.calls.total() == 16


async def test_sharing_obeys_the_table_by_every_interface(tmp_path: Path) -> None:
    actions = ("remember", "share", "take_back")
    only = {cell for cell, expected in cells().items() if cell[0] in actions and expected != "-"}
    walk = await tried(tmp_path, calls=15 + 2 * 16, seed=3, only=only)
    assert (walk.leaks, walk.wrong) == ([], [])
    assert walk.cells == only


async def test_without_the_check_of_changes_the_walk_finds_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(snapshot: Snapshot, change: Change, scope: Scope) -> None:
        """Let every change pass."""

    monkeypatch.setattr(store, "check_change", unchecked)
    walk = await tried(tmp_path, calls=3, seed=1, only={("correct", "reader-named")})
    assert walk.wrong


async def test_without_the_check_of_members_the_walk_finds_canaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Statements, "_is_shared", lambda self, space: False)
    walk = await tried(tmp_path, calls=3, seed=1, only={("list", "outsider")})
    assert walk.leaks
