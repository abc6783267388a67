"""Facts that replace others: look-alike pairs, compatible pairs, and updates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.text.statement import compare, statement_line

FIXTURES = Path(__file__).parents[1] / "fixtures/evolution"


def pairs(name: str) -> list[tuple[str, str]]:
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["old"], row["new"]) for row in map(json.loads, lines)]


def test_none_of_two_hundred_look_alike_pairs_is_replaced_or_merged() -> None:
    found = [(old, new) for old, new in pairs("look_alikes") if compare(old, new) in ("replaced", "same")]
    assert len(pairs("look_alikes")) >= 200
    assert found == []


def test_the_same_pairs_the_other_way_round_are_not_replaced_either() -> None:
    """The order has no meaning, except for statements that are explicit in one fact only."""
    assert [(new, old) for old, new in pairs("look_alikes") if compare(new, old) in ("replaced", "same")] == []


def test_of_sixteen_compatible_pairs_few_are_replaced_and_all_are_noticed() -> None:
    verdicts = [compare(old, new) for old, new in pairs("both_true")]
    assert verdicts.count("replaced") <= 4
    assert None not in verdicts
    assert "same" not in verdicts


@pytest.mark.parametrize(("old", "new"), pairs("updates"))
def test_an_update_replaces(old: str, new: str) -> None:
    assert compare(old, new) == "replaced"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Anna lives in Paris", "anna  lives in PARIS."),
        ("Anna lives in Paris", "Anna currently lives in Paris!"),
        ("The capital of France is Paris", "Paris is the capital of France"),
        ("Ёлка стоит в углу", "елка стоит в углу."),
        ("My favorite color is red", "My favourite colour is red"),
        ("The dog is called Rex", "Dog is called Rex"),
    ],
)
def test_equal_statements_are_recognised_in_any_spelling(old: str, new: str) -> None:
    assert compare(old, new) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Anna lives in Paris", "Anna lived in Paris"),
        ("Anna likes Bob", "Bob likes Anna"),
        ("The room is 5 m wide", "The room is 6 m wide"),
        ("The rent is $5", "The rent is 5%"),
        ("Tom likes tea", "Tom does not like tea"),
        ("???", "!!!"),
        ("Anna likes C++", "Anna likes C"),
        ("It is -5 degrees", "It is 5 degrees"),
        ("Anna likes 🍕", "Anna likes 🍣"),
        ("Mi papá cocina", "Mi papa cocina"),
        ("Anna lives in Paris", "Anna lives in Paris?"),
        ("The list: " + "one, " * 200 + "two", "The list: " + "one, " * 200 + "three"),
        ("", ""),
    ],
)
def test_another_tense_number_or_negation_is_not_the_same(old: str, new: str) -> None:
    assert compare(old, new) != "same"


def test_languages_without_a_file_are_compared_for_equality_only() -> None:
    assert compare("Anna asuu Pariisissa", "Anna asuu Roomassa") != "replaced"
    assert compare("アンナはパリに住んでいる", "アンナはパリに住んでいる。") == "same"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared_and_a_text_is_the_same_as_itself(first: str, second: str) -> None:
    compare(first, second)
    assert compare(first, first) == ("same" if statement_line(first) else None)


@pytest.mark.parametrize("word", ["tea", "one two three"])
def test_long_texts_are_equal_only_as_a_whole(word: str) -> None:
    long = f"{word} " * 200
    assert compare(long, long) == "same"
    assert compare(long, long + "!") is None
