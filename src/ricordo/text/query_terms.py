"""From a question to the terms worth looking up: function words leave by a list for its language.

The lists are closed classes only (articles, pronouns, prepositions, auxiliaries, question words). The lists on
the registry hold "fire", "computer" and "bill": words a memory is asked about.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from ricordo.text.analyzer import index_terms

MAX_TERMS = 64
"""A longer question is a document; its rarest words decide, and a full-text query of 1,000 terms takes seconds."""

MAX_QUESTION_CHARS = 20_000

_LATIN_LANGUAGES = ("en", "de", "fr", "es", "it", "pt")
_URL = re.compile(r"(?:https?|ftp)://\S+|www\.\S+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")


def question_terms(text: str) -> list[str]:
    """The distinct index terms of a question without its function words, in order, at most `MAX_TERMS`.

    URLs and single characters are dropped. A question of nothing but function words ("who am I?") keeps them:
    an answer from common words beats none.
    """
    text = _URL.sub(" ", text[:MAX_QUESTION_CHARS])
    ignored = function_terms(language_of(text))
    terms = [term for term in dict.fromkeys(index_terms(text)) if len(term) > 1 or not term.isascii()]
    content = [term for term in terms if term not in ignored]
    return (content or terms)[:MAX_TERMS]


def language_of(text: str) -> str:
    """The language whose function words the text uses most; English in doubt. Good for choosing a list, no more."""
    words = {word.lower() for word in _WORD.findall(text[:2_000])}
    if not text.isascii() and any(_CYRILLIC.search(word) for word in words):
        return "ru"
    counts = {language: len(words & function_words(language)) for language in _LATIN_LANGUAGES}
    return max(_LATIN_LANGUAGES, key=lambda language: counts[language])


@cache
def function_words(language: str) -> frozenset[str]:
    """The function words of a language as they are written."""
    path = files("ricordo.text") / "function_words" / f"{language}.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


@cache
def function_terms(language: str) -> frozenset[str]:
    """The function words of a language as the index knows them."""
    return frozenset(term for word in function_words(language) for term in index_terms(word))
