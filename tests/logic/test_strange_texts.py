"""Pure functions accept any text: none fails, and their guarantees hold for unusual texts."""

from __future__ import annotations

import random
import time
from zoneinfo import ZoneInfo

import pytest
from tests.logic.strange import strange_text

from ricordo.encoding.validation import TextRules, storable
from ricordo.errors import InvalidError
from ricordo.retrieval.hits import excerpt_of
from ricordo.storage.database.connection import all_terms, stored_terms
from ricordo.text.analyzer import index_terms, name_key, question_terms
from ricordo.text.dates import find_interval
from ricordo.text.names import runs_in, same_name_key
from ricordo.text.people import people_named
from ricordo.text.secrets import redact

DICE = random.Random(20)
TEXTS = [strange_text(DICE) for _ in range(400)]
NOW = 1_780_000_000_000


@pytest.mark.parametrize("function", [index_terms, question_terms, name_key, same_name_key, runs_in, redact])
def test_text_functions_accept_any_text(function):
    for text in TEXTS:
        function(text)


def test_an_index_term_has_no_separator():
    """The full-text index splits at ASCII blanks and puts a middle dot before the tenant of a term."""
    for text in TEXTS:
        for term in index_terms(text):
            assert term and not set(term) & set(' \t\r\n\0"'), (text, term)
            assert "·" not in term, (text, term)


def test_the_stored_terms_are_as_many_as_the_text_has():
    for text in TEXTS:
        terms = index_terms(text)
        assert stored_terms(all_terms(text, "[]", None), "1k").split() == [f"{term}·1k" for term in terms]


def test_a_text_is_stored_whole_or_refused():
    for text in TEXTS:
        try:
            stored = storable(text, name="text", rules=TextRules(secrets="keep"))
        except InvalidError as refusal:
            assert refusal.message
        else:
            assert stored == text
            stored.encode()


def test_redacting_twice_changes_nothing_more():
    for text in TEXTS:
        once = redact(text).text
        assert redact(once).text == once


def test_a_time_is_found_in_a_text_or_none_and_never_an_error():
    for text in TEXTS:
        found = find_interval(text[:2_000], now=NOW, zone=ZoneInfo("Europe/Berlin"))
        assert found is None or found.start <= found.end


def test_an_excerpt_is_a_short_part_of_the_text():
    for text in TEXTS:
        start, end = excerpt_of(text, ("tea", "漢"))
        assert 0 <= start <= end <= len(text)
        assert end - start <= 1_000


def test_a_list_of_words_that_lead_and_join_is_read_in_time() -> None:
    """Each repetition doubled the time: thirty took minutes, in every `remember`."""
    for text in ("and, " * 2_000, "so and, " * 2_000, "и, " * 2_000, "und, " * 2_000):
        started = time.process_time()
        assert people_named(text) == ()
        assert time.process_time() - started < 10
