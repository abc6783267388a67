"""Expressions are found by their first letters exactly where one pattern of all of them finds them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from ricordo.text.change import Cue
from ricordo.text.languages import Expressions, all_languages, any_of

PAIRS = Path(__file__).parents[2] / "benchmarks" / "data" / "knowledge" / "pairs.jsonl"
ROWS = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
TEXTS = sorted({row[name].lower() for row in ROWS for name in ("first", "second") if name in row})
CUES = [cue for cue in get_args(Cue) if cue != "asks"]


@pytest.mark.parametrize("cue", CUES)
def test_cues_are_found_where_one_pattern_finds_them(cue: str) -> None:
    languages = any_of(tuple(each.code for each in all_languages()))
    patterns = [each for each in languages.in_order(lambda each: getattr(each.change, cue)) if each]
    one = re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)")
    many = Expressions({cue: patterns}, followed_by=r"(?!\w)")
    found = [text for text in TEXTS if one.search(text)]
    assert len(found) > 3
    assert [text for text in TEXTS if cue in many.kinds_in(text)] == found
    for text in found:
        assert {each.start() for each in one.finditer(text)} == {each.start() for each in many.find(text, cue)}, text


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("(?:has |had )?moved", "she had moved, he moved", ["had moved", "moved"]),
        (r"(?<!by )lost(?! weight)|sold", "lost by lost; sold", ["lost", "sold"]),
        ("colou?r|[xy]es|a{2}b", "color yes aab no", ["color", "yes", "aab"]),
        (r"\w+'s closed|(?:a|b){2}c", "bank's closed abc", ["bank's closed", "abc"]),
        (r"won\.t|no|not|\(x\)", "not won.t (x) nothing", ["not", "won.t", "(x)"]),
    ],
)
def test_a_pattern_of_any_form_is_found(pattern: str, text: str, found: list[str]) -> None:
    expressions = Expressions({"it": [pattern]}, followed_by=r"(?!\w)")
    assert [each.group() for each in expressions.find(text, "it")] == found
