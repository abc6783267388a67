"""A text as sentences, and a sentence as the words that say what it says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ricordo.text.analyzer import index_terms
from ricordo.text.query_terms import function_terms

MAX_CHARS = 200_000
"""What is longer is a book; it is looked at from its beginning."""

# A full stop inside a number or an address ends no sentence.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?…;]+(?=\s|$)|[。！？]+|(?=\n)|$)")

# What merely leads up to what is said.
_LEAD = re.compile(
    r"\s*(?:(?:by the way|btw|fyi|also|actually|well|so|oh|ok|okay|yes|yeah|hi|hello|hey|and|but|note(?: that)?|"
    r"remember(?: that)?|please|кстати|между прочим|вообще|да|ну|а|и|но|привет|запомни(?:,? что)?|имей в виду)"
    r"\b[,:!]?\s+)+",
    re.IGNORECASE,
)

# How a fact speaks of whoever says "I".
_SELVES = "user users пользователь пользователя"


class Sentence(NamedTuple):
    """A piece of a text: where it begins, as it is written, and what it says."""

    start: int
    text: str
    words: frozenset[str]


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, in order. One without a word that says anything is left out."""
    for found in _SENTENCE.finditer(text[:MAX_CHARS]):
        words = telling_words(found.group())
        if words:
            yield Sentence(found.start(), found.group(), words)


def telling_words(text: str) -> frozenset[str]:
    """The folded and stemmed words of a sentence without function words: letter case, order, punctuation and who speaks
    ("I", "the user") tell no two apart.

    >>> sorted(telling_words("I am allergic to peanuts!")) == sorted(telling_words("User: allergic to the peanut"))
    True
    """
    terms = frozenset(index_terms(_LEAD.sub("", text)))
    return terms - _silent() or terms


@cache
def _silent() -> frozenset[str]:
    return function_terms("en") | function_terms("ru") | frozenset(index_terms(_SELVES))
