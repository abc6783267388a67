"""`docs/architecture.md` names every package, and every path it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/ricordo"
NAMED = set(re.findall(r"`(\w[\w/]*\w(?:\.\w+)?)`", (ROOT / "docs/architecture.md").read_text("utf-8")))


def test_every_package_is_named() -> None:
    packages = {str(each.parent.relative_to(SOURCE)) for each in SOURCE.rglob("*/__init__.py")}
    assert packages - NAMED == set()


def test_every_path_that_is_named_exists() -> None:
    paths = {name for name in NAMED if "/" in name or name.endswith(".py")}
    assert {name for name in paths if not (SOURCE / name).exists()} == set()
