"""Events survive kills, and each handler's effect comes once. `bus_kills.py` in short."""

from __future__ import annotations

from tests.crash.bus_kills import Tally, one_journal


def test_killed_again_and_again_no_event_is_lost_and_no_effect_comes_twice() -> None:
    tally = Tally()
    one_journal(tally, seed=7, kills=3)
    assert tally.kills >= 1 and tally.published > 20
    assert (tally.lost, tally.twice) == ([], [])
