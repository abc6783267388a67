"""Decide whether two written names may belong to one person or thing. Pure.

Looser than `likeness`, which recognises a name in a text: the user decides on what is found here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ricordo.text.languages import cached
from ricordo.text.names import MIN_SOUND_CHARS, relation_named, same_name_key, untitled_words

NameMatch = Literal["spelling", "variant", "short"]
"""The same name in another spelling or script, a name that differs in a vowel or two, or a part of the other name."""

_UMLAUTS = re.compile(r"(?<=[aou])e(?=[^aeiouy])")
_HARD = re.compile(r"ch(?=[rl])")
_VOWELS = "aeiouy"
_SWAPPED = ("ae", "ei", "ou")
"""Vowels that romanisations interchange: Ahmed and Ahmad, Khalid and Khaled, Muhammad and Mohammed."""
_SURE_CONSONANTS = 4
"""A name with fewer consonants, such as Karin or Karen, is another name if one vowel differs."""


class NameForm(NamedTuple):
    """The words of a name without titles, as they sound."""

    words: tuple[str, ...]

    @property
    def is_full(self) -> bool:
        return len(self.words) > 1


@cached(maxsize=16_384)
def name_form(name: str) -> NameForm:
    """Return the form in which names are compared; empty for a name that is too short, or a relation ("my wife")."""
    if relation_named(name):
        return NameForm(())
    sounds = tuple(_HARD.sub("k", _UMLAUTS.sub("", same_name_key(word))) for word in untitled_words(name))
    return NameForm(sounds if len("".join(sounds)) >= MIN_SOUND_CHARS and all(sounds) else ())


def match(one: NameForm, other: NameForm) -> NameMatch | None:
    """Return how two names match; None if they are different names.

    >>> match(name_form("Вера"), name_form("Vera")), match(name_form("Sarah"), name_form("Dr. Sarah Miller"))
    ('spelling', 'short')
    """
    if not one.words or not other.words:
        return None
    if sorted(one.words) == sorted(other.words):
        return "spelling"
    short, long = sorted((one.words, other.words), key=lambda words: (len(words), len("".join(words))))
    if _is_within(short, long):
        has_both_ends = len(short) > 1 and (short[0], short[-1]) == (long[0], long[-1])
        return "spelling" if has_both_ends else "short"
    return _by_vowels(short, long) if len(short) == len(long) else None


def _is_within(short: Sequence[str], long: Sequence[str]) -> bool:
    """Return whether the words of a name occur in a longer one in this order. An initial stands for a word."""
    rest = iter(long)
    return all(any(word == each or (len(word) == 1 and each.startswith(word)) for each in rest) for word in short)


def _by_vowels(one: Sequence[str], other: Sequence[str]) -> NameMatch | None:
    differing = [(word, each) for word, each in zip(one, other, strict=True) if word != each]
    if not all(_differs_in_vowels(word, each) for word, each in differing):
        return None
    is_sure = all(sum(letter not in _VOWELS for letter in word) >= _SURE_CONSONANTS for word, _ in differing)
    return "spelling" if is_sure else "variant"


def _differs_in_vowels(one: str, other: str) -> bool:
    if len(one) != len(other) or one[0] != other[0]:
        return False
    return all(
        letter == each or any(letter in swapped and each in swapped for swapped in _SWAPPED)
        for letter, each in zip(one, other, strict=True)
    )


def group_keys(form: NameForm) -> set[str]:
    """Return the consonants of each word: names that match have one of these keys in common."""
    return {word[0] + "".join(each for each in word[1:] if each not in _VOWELS) for word in form.words}


def are_full_names_of_two(ones: Sequence[NameForm], others: Sequence[NameForm]) -> bool:
    """Return whether both have full names, such as Sarah Miller and Sarah Jones, and none of them match."""
    mine, theirs = [each for each in ones if each.is_full], [each for each in others if each.is_full]
    return bool(mine and theirs) and not any(match(one, other) for one in mine for other in theirs)
