"""The tables of `docs/explanation/security.md` match the results of the suites."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

pytest.importorskip("agmi", reason="agent-memory-integrity is not installed")
pytest.importorskip("agent_memory_guard", reason="agent-memory-guard is not installed")

from tests.adversaries import tables


@pytest.fixture(autouse=True)
def quiet() -> Any:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return json.loads(tables.RESULTS.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.slow
def test_file_attacks_are_detected_except_an_older_copy(known: dict[str, Any]) -> None:
    found = tables.at_rest()
    assert {store: {name: each["noticed"] for name, each in cells.items()} for store, cells in found.items()} == {
        store: {name: each["noticed"] for name, each in cells.items()} for store, cells in known["at_rest"].items()
    }
    missed = {(store, name) for store, cells in found.items() for name, each in cells.items() if not each["noticed"]}
    assert missed == {("ricordo, file", "snapshot_rollback"), ("ricordo, folder", "snapshot_rollback")}


def test_tool_text_never_comes_back_and_owners_stay_apart(known: dict[str, Any]) -> None:
    found = tables.recall("memory_injection", "cross_session_bleed", embedder=None)
    assert found["memory_injection"]["external"] == known["recall"]["memory_injection"]["external"] == 0
    assert found["cross_session_bleed"] == known["recall"]["cross_session_bleed"] == {"cross-user": 0}


def test_poisoned_tool_notes_are_never_read_and_harmless_ones_are(known: dict[str, Any]) -> None:
    assert tables.poisoned() == known["poisoned"]
    assert known["poisoned"]["came_back"] == []


def test_through_an_agent_only_values_without_a_sign_of_an_order_come_back(known: dict[str, Any]) -> None:
    found = tables.poisoned("agent")
    assert found == known["poisoned through a connection"]["agent"]
    assert set(found["came_back"]) == {"esc-role", "esc-permissions"}
