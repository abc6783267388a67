"""A share of the damaged stores of `tests/crash/damage.py`; `make damage` runs all of them."""

from __future__ import annotations

from tests.crash import damage


def test_the_command_that_an_error_names_mends_the_store() -> None:
    results = damage.run(6, seed=5)
    assert [each for each in results if not each["mended"]] == []
