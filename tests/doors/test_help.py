"""The help and the reference pages are those that were agreed on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.doors.conftest import RUN, clean_environment

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/cli_help.txt"


def test_the_help_is_the_golden_one() -> None:
    """After a wanted change: COLUMNS=80 ricordo --help > tests/golden/cli_help.txt"""
    environment = {**clean_environment(), "COLUMNS": "80"}
    command = [sys.executable, "-c", RUN, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == GOLDEN.read_text(encoding="utf-8")


def test_the_reference_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/generate_docs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
