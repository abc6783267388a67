"""A test that hangs here has found a bug: it fails, and the suite continues."""

from __future__ import annotations

import signal

import pytest

DEADLINE_S = 900
"""On a busy machine, tests of some seconds take minutes."""


@pytest.fixture(autouse=True)
def deadline():
    def give_up(*_):
        raise TimeoutError(f"still not done after {DEADLINE_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(DEADLINE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
