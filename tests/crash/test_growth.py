"""A share of `python -m tests.crash.growth`: no pattern and no parser is made slow by a hostile text."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.crash.growth import ROOT, attacks, growth, is_steep


@pytest.mark.slow
def test_a_square_is_noticed() -> None:
    """The pattern of sentences that once held every writer for 30 seconds was of this kind."""
    slow = re.compile(r"\s+x")
    assert any(is_steep(growth(slow.search, attack, sizes=(4_096, 16_384, 65_536))) for attack in attacks(slow))


@pytest.mark.slow
def test_no_parser_is_slowed_down_by_a_hostile_text() -> None:
    """In a process of its own, so that every pattern is recorded when it is compiled."""
    command = [sys.executable, "-m", "tests.crash.growth", "--share", "80", "--largest", "16384", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["too_steep"] == []
    assert (found["patterns"] > 500, found["parsers"] > 40, found["calls"] > 500) == (True, True, True)
