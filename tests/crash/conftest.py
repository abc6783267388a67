"""A test that hangs here has found a bug: it fails, and the suite continues."""

from __future__ import annotations

import signal

import pytest

DEADLINE_S = 180
_LONG = {"test_ten_thousand_cancelled_awaits_damage_nothing": 900}
"""Seconds for tests that take minutes on a busy machine."""


@pytest.fixture(autouse=True)
def deadline(request):
    seconds = _LONG.get(request.node.name, DEADLINE_S)

    def give_up(*_):
        raise TimeoutError(f"still not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
