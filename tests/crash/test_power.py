"""Power cuts and bit flips. The short versions of `power.py` and `flips.py`."""

from __future__ import annotations

import pytest

from tests.crash import flips, power


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_with_durability_disk_no_power_cut_loses_or_damages_anything(kind):
    tally = power.many(15, seed=40, kind=kind)
    assert (tally.lost, tally.damaged) == ([], [])
    assert tally.acknowledged > 20


def test_without_disk_durability_some_cuts_lose_data():
    assert power.many(25, seed=40, kind="file", durability="process").lost != []


def test_no_flipped_bit_goes_unnoticed():
    tally = flips.many(16, seed=4)
    assert tally.silent == []
    assert tally.outcomes["flips"] == 16
