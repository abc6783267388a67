"""How much two statements say the same: of the same subject, the same value, in whatever words. Pure.

Function words and words for the user ("I", "the user") count for nothing.
"""

from __future__ import annotations

import re

from ricordo.text.analyzer import index_terms
from ricordo.text.kinship import relation_words
from ricordo.text.languages import LanguageSet, all_languages, cached, fold_letters, is_ordinary, languages_of
from ricordo.text.sentences import telling_words
from ricordo.text.statement import compare, statement_line

MUCH = 0.5
"""From this likeness on, two statements say much the same."""

_WORD = re.compile(r"[^\W_]+")
# Forms of a word share that many letters at least, and all but the last of the shorter one.
_FORM_CHARS = 4


def is_much_the_same(one: str, other: str) -> bool:
    """Return whether two statements say much the same, and neither adds more than it shares.

    >>> is_much_the_same("I have a dog", "The user has a dog named Rex")
    True
    """
    if likeness(one, other) < MUCH:
        return False
    fewer, more = sorted((_said(one), _said(other)), key=len)
    naming = all_languages().words(lambda each: each.sentences.naming)
    is_named = any(not naming.isdisjoint(_WORD.findall(text.lower())) for text in (one, other))
    return len(more) <= (2 + is_named) * len(fewer)


def likeness(one: str, other: str) -> float:
    """Return how much of the shorter of two statements the other one says too, from 0 to 1.

    Two values of one thing ("lives in Oslo", "lives in Rome") are not alike at all, nor are a statement and its denial,
    or statements about two relatives, or statements of which each has a name or a number of its own.
    """
    if statement_line(one) == statement_line(other):
        return 1.0
    if {compare(one, other), compare(other, one)} - {None, "same"} or _is_denied(one) != _is_denied(other):
        return 0.0
    fewer, more = sorted((_said(one), _said(other)), key=len)
    lost, added = _without(fewer, more), _without(more, fewer)
    if (lost & _values(one, other) and added & _values(one, other)) or (lost & _kin() and added & _kin()):
        return 0.0
    return 0.99 * (len(fewer) - len(lost)) / len(fewer) if fewer else 0.0


def _said(text: str) -> frozenset[str]:
    """Return the terms of a statement that say something: that somebody has a thing says the thing."""
    return telling_words(_silent(all_languages()).sub(" ", text)) or telling_words(text)


def _without(terms: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Return the terms that the others have in no form."""
    return frozenset(term for term in terms - others if not any(_is_form(term, other) for other in others))


def _is_form(term: str, other: str) -> bool:
    chars = max(_FORM_CHARS, min(len(term), len(other)) - 1)
    return term[:chars] == other[:chars] and len(term) >= chars <= len(other)


def _is_denied(text: str) -> bool:
    languages = languages_of(text)
    lowered = text.lower().replace("’", "'")
    negations = languages.words(lambda each: each.statements.negations)
    endings = tuple(languages.in_order(lambda each: each.statements.negated_endings))
    is_ending = any(word.endswith(endings) for word in lowered.split()) if endings else False
    return is_ending or not negations.isdisjoint(_WORD.findall(fold_letters(lowered)))


def _values(*texts: str) -> frozenset[str]:
    """Return the terms of names and numbers: words with a digit, or capitalised. The first word may be any word."""
    found = [
        word
        for text in texts
        for place, word in enumerate(_WORD.findall(text))
        if any(map(str.isdigit, word)) or (word[0].isupper() and (place or _is_name(word, text)))
    ]
    return frozenset(term for word in found for term in index_terms(word))


def _is_name(word: str, text: str) -> bool:
    folded = fold_letters(word.lower())
    languages = languages_of(text)
    silent = languages.words(lambda each: (*each.function_words, *each.sentences.self_words))
    return folded not in silent and not any(is_ordinary(folded, language) for language in languages)


@cached()
def _kin() -> frozenset[str]:
    return frozenset(term for word in relation_words() for term in index_terms(word))


@cached()
def _silent(languages: LanguageSet) -> re.Pattern[str]:
    words = languages.words(lambda each: (*each.sentences.having, *each.sentences.self_words, *each.sentences.naming))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b", re.IGNORECASE)
