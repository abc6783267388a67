"""What ranking needs to know of a text without reading it, worked out once, when the text is stored.

A search weighs a thousand turns, the candidates and those around them. Folding that many texts and looking for names,
numbers and times in them takes longer than all the rest of a search; here they are a few dozen bytes each.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from ricordo.times import mentions_time

ASKS = 1
"""A question mark stands in it."""
ENDS_ASKING = 2
"""A question mark ends it."""
FIRST_PERSON = 4
"""Somebody speaks of themselves."""
NUMBER = 8
NAME = 16
TIME = 32

HEADER = 2
"""How many numbers stand before the words: the flags above, and the length in characters."""

_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
_INSIDE_WORDS = re.compile(r"[0-9']")
_MIXED = re.compile(r"[0-9'](?:(?=[A-Za-z])|(?<=[A-Za-z].))")
# A capital within a sentence, but for that of "I'm". It stands first, so that a search looks at nothing else.
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯЁ](?<=[\w,;:'’\"] .)(?!(?<=I)['’])[\w'’-]+")
QUESTION_MARKS = ("?", "？")

_FIRST_PERSON_WORDS = frozenset((
    "i", "my", "me", "mine", "we", "our", "us", "я", "мне", "меня", "мной", "мой", "моя", "моё", "мое", "мои",
    "мою", "моей", "моего", "моему", "моим", "моём", "моем", "моих", "моими", "мною", "мы", "нас", "нам",
    "нами", "наш", "наша", "наше", "наши", "нашу", "нашей", "нашего", "нашему", "нашим", "нашем", "наших",
    "нашими"
))  # fmt: skip
_NUMBER_WORDS = frozenset((
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty", "fifty",
    "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "once", "twice", "half", "dozen",
    "couple", "один", "одна", "одно", "одного", "одной", "одну", "два", "две", "двух", "двое", "двоих", "вдвоём",
    "вдвоем", "три", "трёх", "трех", "трое", "троих", "втроём", "втроем", "четыре", "четырёх", "четырех", "четверо",
    "пять", "пяти", "шесть", "шести", "семь", "семи", "восемь", "восьми", "девять", "девяти", "десять", "десяти",
    "одиннадцать", "двенадцать", "тринадцать", "четырнадцать", "пятнадцать", "шестнадцать", "семнадцать",
    "восемнадцать", "девятнадцать", "двадцать", "двадцати", "тридцать", "тридцати", "сорок", "сорока", "пятьдесят",
    "пятидесяти", "шестьдесят", "семьдесят", "восемьдесят", "девяносто", "сто", "двести", "триста", "четыреста",
    "пятьсот", "шестьсот", "семьсот", "восемьсот", "девятьсот", "тысяча", "тысячи", "тысячу", "тысяч", "тысячей",
    "миллион", "миллиона", "миллионов", "пол", "полтора", "полторы", "половина", "половину", "половины", "полгода",
    "полчаса", "полкило", "раз", "дважды", "трижды", "дюжина", "дюжину", "пара", "пару"
))  # fmt: skip


def speaks_of_themselves(text: str) -> bool:
    """Whether whoever says this speaks of themselves."""
    return not _FIRST_PERSON_WORDS.isdisjoint(_LETTERS.findall(text[:2_000].lower()))


def begins_with_oneself(text: str) -> bool:
    """Whether whoever says this speaks of themselves in its first two words: "My brother repairs motorbikes"."""
    return speaks_of_themselves(" ".join(text.split(None, 2)[:2]))


def is_latin(text: str) -> bool:
    """Whether at least half of the letters of a text (of its first 2,000 characters) are Latin."""
    if text.isascii():
        return True
    letters = [char for char in text[:2_000] if char.isalpha()]
    return sum(char < "\u0250" for char in letters) * 2 >= len(letters)


def traits_of(content: str, terms: Sequence[str], words: Sequence[str] | None = None) -> bytes:
    """A text's flags, its length in characters and the code of each of its index terms, as little-endian uint32.

    Args:
        terms: those of the text and of what it is found by besides, repeats included, in any order.
        words: of the text, as `raw_words` gives them, where they are known already.
    """
    numbers = array("I", [_flags(content, words), len(content), *map(term_code, terms)])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


@lru_cache(maxsize=65_536)
def term_code(term: str) -> int:
    """A number that stands for an index term, 1 to 2**32 - 1. Two terms hardly ever share one."""
    return crc32(term.encode("utf-8", "ignore")) or 1


def _flags(text: str, words: Sequence[str] | None) -> int:
    # Words are runs of letters, but for those with figures or apostrophes inside; most texts have neither.
    is_plain = text.isascii() and _INSIDE_WORDS.search(text) is None
    has_digits = not is_plain and _DIGIT.search(text) is not None
    letters = _runs_of_letters(text, words, is_plain=is_plain)
    flags = 0
    if "?" in text or "？" in text:
        flags = ASKS | (ENDS_ASKING if text.rstrip().endswith(QUESTION_MARKS) else 0)
    if not _FIRST_PERSON_WORDS.isdisjoint(letters):
        flags |= FIRST_PERSON
    if has_digits or not _NUMBER_WORDS.isdisjoint(letters):
        flags |= NUMBER
    if not text.islower() and _NAME.search(text) is not None:
        flags |= NAME
    if mentions_time(text, letters, has_digits=has_digits):
        flags |= TIME
    return flags


def _runs_of_letters(text: str, words: Sequence[str] | None, *, is_plain: bool) -> Sequence[str]:
    """Those of a text, in lower case and any order; the words themselves where they are known and no figure or
    apostrophe touches a letter, for that is quicker. A number among them is no word anybody looks for.
    """
    if words is None or not (is_plain or (text.isascii() and _MIXED.search(text) is None)):
        return _LETTERS.findall(text.lower())
    return words
