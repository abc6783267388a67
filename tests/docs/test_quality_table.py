"""The README shows the committed results of `benchmarks/quality.py`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.quality_table import BEGIN, END, table

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_readme_is_that_of_the_results() -> None:
    shown = (ROOT / "README.md").read_text("utf-8").split(BEGIN)[1].split(END)[0].strip()
    assert shown == table(ROOT / "benchmarks/results"), "run: python benchmarks/quality.py --table"
