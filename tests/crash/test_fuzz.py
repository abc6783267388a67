"""Every text comes back unchanged or is refused with a message. The short version of `fuzz.py`."""

from __future__ import annotations

import asyncio

import pytest

from tests.crash.fuzz import fuzz


@pytest.mark.slow
def test_hundreds_of_strange_texts_pass_every_interface(tmp_path):
    found, unsound = asyncio.run(fuzz(tmp_path / "m.db", texts=400, seed=1))
    assert found.failures == []
    assert unsound == []
    assert found.refused["invalid"] > 20, "nothing was refused: the texts are not strange any more"
    assert min(found.calls.values()) > 20
