"""Features of a text that ranking needs, computed once, when the text is stored.

A search weighs a thousand turns: the candidates and those around them. Folding that many texts and looking for names,
numbers and times in them would take longer than the rest of the search; as features they are a few dozen bytes each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from ricordo.text.analyzer import raw_words
from ricordo.text.dates.grammar import holds_year, names_time
from ricordo.text.languages import ByWord, LanguageSet, cached, languages_of

ASKS = 1
"""A question mark stands in it."""
ENDS_ASKING = 2
"""A question mark ends it."""
FIRST_PERSON = 4
"""The speaker speaks of themselves."""
NUMBER = 8
NAME = 16
TIME = 32

_DIGITS = 1 << 31
"""A flag of a word, never of a text: it has figures, which may be those of a year."""

_HEAD = Struct("<II")
HEADER = 2
"""How many numbers precede the words: the flags above, and the length in characters."""

_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
# A capital within a sentence, but for that of "I'm". It stands first, so that a search looks at nothing else.
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ\u0410-\u042f\u0401](?<=[\w,;:'’\"] .)(?!(?<=I)['’])[\w'’-]+")
QUESTION_MARKS = ("?", "？")


def speaks_of_themselves(text: str) -> bool:
    """Return whether the speaker of a text speaks of themselves."""
    return not _first_person(languages_of(text)).isdisjoint(_LETTERS.findall(text[:2_000].lower()))


@cached()
def _first_person(languages: LanguageSet) -> frozenset[str]:
    return languages.words(lambda each: each.sentences.first_person)


def begins_with_oneself(text: str) -> bool:
    """Return whether its first two words speak of the speaker: "My brother repairs motorbikes"."""
    return speaks_of_themselves(" ".join(text.split(None, 2)[:2]))


def is_latin(text: str) -> bool:
    """Return whether at least half of the letters of a text (of its first 2,000 characters) are Latin."""
    if text.isascii():
        return True
    letters = [char for char in text[:2_000] if char.isalpha()]
    return sum(char < "\u0250" for char in letters) * 2 >= len(letters)


def traits_of(content: str, terms: Sequence[str], words: Sequence[str] | None = None) -> bytes:
    """Return a text's flags, its length in characters and the code of each of its index terms, as little-endian uint32.

    Args:
        terms: those of the text and of what it is found by besides, repeats included, in any order.
        words: of the text, as `raw_words` gives them, where they are known already.
    """
    flags = _flags(content, raw_words(content) if words is None else words)
    return _HEAD.pack(flags, len(content)) + b"".join(map(_CODES.__getitem__, terms))


def term_code(term: str) -> int:
    """Return the number of an index term, 1 to 2**32 - 1. Two terms hardly ever share one."""
    return crc32(term.encode("utf-8", "ignore")) or 1


_CODES = ByWord(lambda term: term_code(term).to_bytes(4, "little"))


def _flags(text: str, words: Sequence[str]) -> int:
    of_words = 0
    for each in set(map(_flags_by_word(languages_of(text)).__getitem__, words)):
        of_words |= each
    flags = of_words & ~_DIGITS
    if "?" in text or "？" in text:
        flags |= ASKS | (ENDS_ASKING if text.rstrip().endswith(QUESTION_MARKS) else 0)
    if not text.islower() and _NAME.search(text) is not None:
        flags |= NAME
    if of_words & _DIGITS and holds_year(text):
        flags |= TIME
    return flags


@cached()
def _flags_by_word(languages: LanguageSet) -> ByWord[int]:
    """Return the flags that each word alone sets on a text in some languages, and whether the word has figures."""
    first_person = _first_person(languages)
    number_words = languages.words(lambda each: each.sentences.number_words)

    def flags_of(word: str) -> int:
        letters = _LETTERS.findall(word)  # "i'm" is two words, and one of them speaks of oneself
        flags = 0 if first_person.isdisjoint(letters) else FIRST_PERSON
        if _DIGIT.search(word) is not None:
            flags |= NUMBER | _DIGITS
        if not number_words.isdisjoint(letters):
            flags |= NUMBER
        return flags | (TIME if names_time(letters, languages) else 0)

    return ByWord(flags_of)
