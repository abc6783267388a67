"""A share of the damaged stores of `tests/crash/damage.py`; `make damage` runs all of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash import damage


@pytest.mark.slow
def test_the_command_that_an_error_names_mends_the_store() -> None:
    results = damage.run(6, seed=5)
    assert [each for each in results if not each["mended"]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.db", "history.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_moved_away(tmp_path: Path, name: str) -> None:
    store = damage.built(tmp_path)["folder"]
    damage.damage(store / name, "folder", random.Random(1))
    result = damage.mended(f"{store}/")
    assert result["mended"], result
    assert result["command"] == "doctor --fix"
    assert result["facts left"] == 60
