"""Find the questions in receipts that reveal something about erased memories, and must be removed with them. Pure.

A question stays if its content is still covered by remaining memories. "Where does Anna live" reveals nothing of "Anna
lives in Rome" while other memories name Anna and say where somebody lives; "who lives in Rome" repeats a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from ricordo.text.analyzer import function_terms, index_terms, language_of_function_words
from ricordo.text.names import name_words, nominatives, same_name_key
from ricordo.text.sentences import sentences

# A question quotes an erased text if it repeats this many of its words in a row, at least two of them significant.
_QUOTED_WORDS = 3
_TELLING_WORDS = 2
# Number of remaining texts to read, to limit the time in a huge store. Words not found in them count as gone.
_READ_MOST = 50_000


class AskedText(NamedTuple):
    """A caller's question: the receipt's id, its full text, and whether an erased memory was in the answer."""

    id: str
    text: str
    gave_erased: bool


def revealing_questions(
    asked: Iterable[AskedText], *, erased: Sequence[str], names: Collection[str], left: Iterable[str]
) -> list[str]:
    """Return the ids of the receipts whose questions reveal something about erased memories.

    Args:
        erased: the erased texts, with their former versions.
        names: the names of the erased entities.
        left: the texts that remain in the same space.
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


_LEAST_WITHIN = 3
"""A shorter word of a name counts only as a complete word: "Al" is not in "journal"."""


def names_anybody(file: str, names: Iterable[str]) -> bool:
    """Return whether the name of a file contains a word of a name, in any script, also within a word.

    >>> names_anybody("DanielsChat.zip", ["Daniel Weber"]), names_anybody("journal.md", ["Al"])
    (True, False)
    """
    whole = {same_name_key(form) for word in name_words(file) for form in nominatives(word)}
    within = same_name_key(file)
    keys = {same_name_key(word) or word for name in names for word in name_words(name)}
    return any(key in whole or (len(key) >= _LEAST_WITHIN and key in within) for key in keys)


def _content(text: str, terms: Iterable[str]) -> frozenset[str]:
    """Return the terms of a text without function words, or all terms if there are no others."""
    found = frozenset(terms)
    return found - function_terms(language_of_function_words(text)) or found


def _runs(text: str, terms: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the sequences of terms that count as a quotation of a text."""
    content = _content(text, terms)
    runs = (tuple(terms[at : at + _QUOTED_WORDS]) for at in range(len(terms) - _QUOTED_WORDS + 1))
    return {run for run in runs if sum(term in content for term in run) >= _TELLING_WORDS}


def _not_in(texts: Iterable[str], terms: Collection[str]) -> set[str]:
    """Return the terms that do not occur in the first texts."""
    wanted = set(terms)
    for text in islice(texts, _READ_MOST) if wanted else ():
        wanted.difference_update(index_terms(text))
        if not wanted:
            break
    return wanted
