"""The examples in docstrings run, and show what really comes out."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
MODULES = [
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in sorted((SRC / "ricordo").rglob("*.py"))
    if re.search(r"^ +>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert found.attempted
    assert not found.failed
