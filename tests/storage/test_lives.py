"""Random histories through the public API: a lost index is rebuilt equal."""

from __future__ import annotations

import pytest
from tests.storage.lives import ALL, KINDS, lived


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_lost_during_a_random_history_is_rebuilt_equal(tmp_path, kind, seed):
    told = lived(tmp_path, kind=kind, seed=seed, steps=40)
    assert told.differences == []
    assert told.losses > 0


def test_every_random_action_is_a_public_method():
    assert {name for name, _ in ALL if name is not None} <= set(dir(__import__("ricordo").Memory))
