"""What ranking needs to know of a text without reading it, worked out once, when the text is stored.

A search weighs a thousand turns, the candidates and those around them. Folding that many texts and looking for names,
numbers and times in them takes longer than all the rest of a search; here they are a few dozen bytes each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from ricordo.text import raw_words
from ricordo.text.dates import mentions_time
from ricordo.text.word_cache import ByWord

ASKS = 1
"""A question mark stands in it."""
ENDS_ASKING = 2
"""A question mark ends it."""
FIRST_PERSON = 4
"""Somebody speaks of themselves."""
NUMBER = 8
NAME = 16
TIME = 32

_DIGITS = 1 << 31
"""Said of a word and of no text: whether it has figures, which may be those of a year."""

_HEAD = Struct("<II")
HEADER = 2
"""How many numbers stand before the words: the flags above, and the length in characters."""

_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
# A capital within a sentence, but for that of "I'm". It stands first, so that a search looks at nothing else.
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯЁ](?<=[\w,;:'’\"] .)(?!(?<=I)['’])[\w'’-]+")
QUESTION_MARKS = ("?", "？")

_FIRST_PERSON_WORDS = frozenset(
    (
        "i",
        "my",
        "me",
        "mine",
        "we",
        "our",
        "us",
        "я",
        "мне",
        "меня",
        "мной",
        "мой",
        "моя",
        "моё",
        "мое",
        "мои",
        "мою",
        "моей",
        "моего",
        "моему",
        "моим",
        "моём",
        "моем",
        "моих",
        "моими",
        "мною",
        "мы",
        "нас",
        "нам",
        "нами",
        "наш",
        "наша",
        "наше",
        "наши",
        "нашу",
        "нашей",
        "нашего",
        "нашему",
        "нашим",
        "нашем",
        "наших",
        "нашими",
    )
)
_NUMBER_WORDS = frozenset(
    (
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
        "once",
        "twice",
        "half",
        "dozen",
        "couple",
        "один",
        "одна",
        "одно",
        "одного",
        "одной",
        "одну",
        "два",
        "две",
        "двух",
        "двое",
        "двоих",
        "вдвоём",
        "вдвоем",
        "три",
        "трёх",
        "трех",
        "трое",
        "троих",
        "втроём",
        "втроем",
        "четыре",
        "четырёх",
        "четырех",
        "четверо",
        "пять",
        "пяти",
        "шесть",
        "шести",
        "семь",
        "семи",
        "восемь",
        "восьми",
        "девять",
        "девяти",
        "десять",
        "десяти",
        "одиннадцать",
        "двенадцать",
        "тринадцать",
        "четырнадцать",
        "пятнадцать",
        "шестнадцать",
        "семнадцать",
        "восемнадцать",
        "девятнадцать",
        "двадцать",
        "двадцати",
        "тридцать",
        "тридцати",
        "сорок",
        "сорока",
        "пятьдесят",
        "пятидесяти",
        "шестьдесят",
        "семьдесят",
        "восемьдесят",
        "девяносто",
        "сто",
        "двести",
        "триста",
        "четыреста",
        "пятьсот",
        "шестьсот",
        "семьсот",
        "восемьсот",
        "девятьсот",
        "тысяча",
        "тысячи",
        "тысячу",
        "тысяч",
        "тысячей",
        "миллион",
        "миллиона",
        "миллионов",
        "пол",
        "полтора",
        "полторы",
        "половина",
        "половину",
        "половины",
        "полгода",
        "полчаса",
        "полкило",
        "раз",
        "дважды",
        "трижды",
        "дюжина",
        "дюжину",
        "пара",
        "пару",
    )
)


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
    flags = _flags(content, raw_words(content) if words is None else words)
    return _HEAD.pack(flags, len(content)) + b"".join(map(_CODES.__getitem__, terms))


def term_code(term: str) -> int:
    """A number that stands for an index term, 1 to 2**32 - 1. Two terms hardly ever share one."""
    return crc32(term.encode("utf-8", "ignore")) or 1


_CODES = ByWord(lambda term: term_code(term).to_bytes(4, "little"))


def _flags(text: str, words: Sequence[str]) -> int:
    told = 0
    for each in set(map(_TOLD.__getitem__, words)):
        told |= each
    flags = told & ~_DIGITS
    if "?" in text or "？" in text:
        flags |= ASKS | (ENDS_ASKING if text.rstrip().endswith(QUESTION_MARKS) else 0)
    if not text.islower() and _NAME.search(text) is not None:
        flags |= NAME
    if told & _DIGITS and mentions_time(text, ()):
        flags |= TIME
    return flags


def _told_by(word: str) -> int:
    """The flags a word alone sets on a text, and whether it has figures. What stands between figures and apostrophes
    are words, too: "i'm" speaks of oneself.
    """
    letters = _LETTERS.findall(word)
    flags = 0 if _FIRST_PERSON_WORDS.isdisjoint(letters) else FIRST_PERSON
    if _DIGIT.search(word) is not None:
        flags |= NUMBER | _DIGITS
    if not _NUMBER_WORDS.isdisjoint(letters):
        flags |= NUMBER
    return flags | (TIME if mentions_time(word, letters, has_digits=False) else 0)


_TOLD = ByWord(_told_by)
