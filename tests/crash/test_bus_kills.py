"""Events survive kills, and each handler's effect happens once. The short version of `bus_kills.py`."""

from __future__ import annotations

import pytest

from tests.crash.bus_kills import Tally, one_journal


@pytest.mark.slow
def test_after_repeated_kills_no_event_is_lost_or_handled_twice() -> None:
    tally = Tally()
    one_journal(tally, seed=7, kills=2)
    assert tally.kills >= 1 and tally.published > 20
    assert (tally.lost, tally.twice) == ([], [])
