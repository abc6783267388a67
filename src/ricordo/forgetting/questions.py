"""Which questions in receipts go with memories that are erased: those that say something of them. Pure.

A question stays if what it says is still in something that is remembered. "Where does Anna live" says nothing of
"Anna lives in Rome" while other memories name Anna and say where somebody lives; "who lives in Rome" repeats a part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from ricordo.text.analyzer import function_terms, index_terms, language_of_function_words
from ricordo.text.sentences import sentences

# A question that repeats so many words of an erased text in a row, two of them telling ones, quotes it.
_QUOTED_WORDS = 3
_TELLING_WORDS = 2
# Words that are not found in so many remaining texts count as gone: an erasure must not read a huge store for minutes.
_READ_MOST = 50_000


class AskedText(NamedTuple):
    """What a caller asked: the receipt's id, all text of the question, and whether an erased memory answered it."""

    id: str
    text: str
    gave_erased: bool


def telling(
    asked: Iterable[AskedText], *, erased: Sequence[str], names: Collection[str], left: Iterable[str]
) -> list[str]:
    """Return the ids of the receipts whose questions say something of what is erased.

    Args:
        erased: the texts that are erased, with their former versions.
        names: the names of the entities that are erased.
        left: the texts that remain where the erased ones were.
    """
    parts = {each: index_terms(each.text) for each in asked}
    words = {each: _content(each.text, terms) for each, terms in parts.items()}
    going = {term for text in (*erased, *names) for term in index_terms(text)}
    doubtful = {term for each, own in words.items() for term in (own if each.gave_erased else own & going)}
    gone = _not_in(left, doubtful)
    runs = {run for text in erased for run in _runs(text, index_terms(text))}
    said = {sentence.words for text in erased for sentence in sentences(text) if len(sentence.words) >= _TELLING_WORDS}
    said |= {frozenset(index_terms(name)) for name in names} - {frozenset()}
    return [
        each.id
        for each, own in words.items()
        if not gone.isdisjoint(own if each.gave_erased else own & going)
        or not runs.isdisjoint(_runs(each.text, parts[each]))
        or any(sentence <= own for sentence in said)
    ]


def _content(text: str, terms: Iterable[str]) -> frozenset[str]:
    """Return the terms of a text without function words; all of them if it has no others."""
    found = frozenset(terms)
    return found - function_terms(language_of_function_words(text)) or found


def _runs(text: str, terms: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the runs of terms by which a text can be quoted."""
    content = _content(text, terms)
    runs = (tuple(terms[at : at + _QUOTED_WORDS]) for at in range(len(terms) - _QUOTED_WORDS + 1))
    return {run for run in runs if sum(term in content for term in run) >= _TELLING_WORDS}


def _not_in(texts: Iterable[str], terms: Collection[str]) -> set[str]:
    """Return which of some terms are in none of the first texts."""
    wanted = set(terms)
    for text in islice(texts, _READ_MOST) if wanted else ():
        wanted.difference_update(index_terms(text))
        if not wanted:
            break
    return wanted
