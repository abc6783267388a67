"""Split a text into passages, and compute what the search index keeps of each passage. Pure.

A passage is a run of whole sentences of about 60 to 120 words, embedded and scored as one unit. A short text is one
passage. Code and tables have no sentences and are cut at line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from ricordo.text.analyzer import QUESTION_MARKS, first_person_words, index_terms, raw_words
from ricordo.text.dates.grammar import holds_year, names_time
from ricordo.text.languages import ByWord, LanguageSet, cached, languages_of

LEAST, MOST = 360, 720
"""Characters in a passage: about 60 to 120 English words. A Chinese, Japanese or Korean character counts as three."""

_STOPS, _WIDE_STOPS = ".!?…؟।", "。！？"
_INSIDE = rf"[^\n{_STOPS}{_WIDE_STOPS}]*"
# A full stop inside a number or an address does not end a sentence.
_SENTENCE = re.compile(
    rf"{_INSIDE}(?:[{_STOPS}](?!\s){_INSIDE})*(?:[{_STOPS}]+[\"'”’»)\]]*\s*|[{_WIDE_STOPS}]+|\n\s*|\Z)"
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fa1f]")


def passages_of(text: str) -> list[tuple[int, int]]:
    """Return the span [start, end) of each passage of a text, in characters. The spans cover the text without gaps.

    >>> passages_of("One sentence. And another.")
    [(0, 26)]
    """
    if size_of(text) <= MOST:
        return [(0, len(text))]
    ends = sentence_ends(text)
    found, start, size, last = [], 0, 0, 0
    for end in ends:
        more = size_of(text[last:end])
        if size >= LEAST and size + more > MOST:
            found.append((start, last))
            start, size = last, 0
        size, last = size + more, end
    if found and size < LEAST // 3:  # the remainder is too short to be a passage
        start = found.pop()[0]
    return [*found, (start, len(text))]


def size_of(text: str) -> int:
    """Return the length of a text in characters. A Chinese, Japanese or Korean character counts as three."""
    return len(text) if text.isascii() else len(text) + 2 * len(_WIDE.findall(text))


def sentence_ends(text: str) -> list[int]:
    """Return the end offsets of sentences and lines. A sentence longer than a passage is cut at blanks."""
    ends: list[int] = []
    at = 0
    for found in _SENTENCE.finditer(text):
        end = found.end()
        while end - at > LEAST:
            cut = text.rfind(" ", at, at + LEAST)
            at = at + LEAST if cut <= at else cut + 1
            ends.append(at)
        if end > at:
            ends.append(end)
            at = end
    return ends


# ---- what the index keeps of a passage

ASKS = 1
"""The text contains a question mark."""
ENDS_ASKING = 2
"""The text ends with a question mark."""
FIRST_PERSON = 4
"""The text has a first-person word."""
NUMBER = 8
NAME = 16
TIME = 32
ASSISTANT = 64
"""The text was written by an assistant. Set for a complete message only."""
ASKS_ONLY = 128
"""The text consists mostly of questions. Set for a complete message only."""
TOOL = 256
"""The text came from a tool or a document. Set for a complete message only."""

_MOSTLY = 0.65
"""Minimum share of characters inside questions for the flag `ASKS_ONLY`."""

_DIGITS = 1 << 31
"""Set for a word, never for a text: the word has digits, which may be a year."""

_HEAD = Struct("<II")
HEADER = 2
"""How many numbers come before the term codes: the flags above, and the length in characters."""

_LETTERS = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
# A capitalised word within a sentence, except "I'm". The capital comes first, so that the search is fast.
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ\u0410-\u042f\u0401](?<=[\w,;:'’\"] .)(?!(?<=I)['’])[\w'’-]+")


MARKS_BELOW = 1 << 16
"""Codes below this number are passage headers: the passage's flags times 1,024, plus its length in characters."""
MARK_LENGTH = 1 << 10


def traits_of(
    content: str,
    terms: Sequence[str],
    besides: Sequence[str],
    words: Sequence[str] | None = None,
    *,
    role: str | None = None,
) -> bytes:
    """Return a text's flags, its length in characters and the code of each of its index terms, as little-endian uint32.

    In a text with several passages, the terms are grouped by passage, and each group follows its passage header.

    Args:
        terms: index terms of the text in order, repeats included.
        besides: further index terms, from tags and the speaker; they are added to each passage.
        words: `raw_words(content)`, if already computed.
        role: who wrote the text.
    """
    languages = languages_of(content)
    flags = _flags(content, raw_words(content) if words is None else words, languages)
    flags |= ASSISTANT * (role == "assistant") | TOOL * (role == "tool")
    flags |= ASKS_ONLY * (bool(flags & ASKS) and _asks_only(content))
    head, spans = _HEAD.pack(flags, len(content)), passages_of(content)
    if len(spans) == 1:
        return head + _codes(terms) + _codes(besides)
    parts = [head]
    for start, end in spans:
        text = content[start:end]
        words = raw_words(text)
        mark = _flags(text, words, languages) * MARK_LENGTH + min(end - start, MARK_LENGTH - 1)
        parts += [mark.to_bytes(4, "little"), _codes(index_terms(text, words, languages=languages)), _codes(besides)]
    return b"".join(parts)


def names_something(text: str) -> bool:
    """Return whether a text has a name, a number, a time or a word of the first person."""
    return bool(_flags(text, raw_words(text), languages_of(text)) & (FIRST_PERSON | NAME | NUMBER | TIME))


def _asks_only(text: str) -> bool:
    sentences = (found.group().rstrip() for found in _SENTENCE.finditer(text))
    asked = sum(len(each) for each in sentences if each.rstrip("\"'”’»)]").endswith(QUESTION_MARKS))
    return asked >= _MOSTLY * len(text.strip())


def _codes(terms: Sequence[str]) -> bytes:
    return b"".join(map(TERM_CODES.__getitem__, terms))


def _code(term: str) -> bytes:
    code = crc32(term.encode("utf-8", "ignore"))
    return (code if code >= MARKS_BELOW else code + MARKS_BELOW).to_bytes(4, "little")


TERM_CODES = ByWord(_code)
"""The code of an index term: four bytes, a number from `MARKS_BELOW` to 2**32 - 1. Collisions are rare."""


def _flags(text: str, words: Sequence[str], languages: LanguageSet) -> int:
    of_words = 0
    for each in set(map(_flags_by_word(languages).__getitem__, words)):
        of_words |= each
    flags = of_words & ~_DIGITS
    if "?" in text or (not text.isascii() and any(mark in text for mark in QUESTION_MARKS)):
        flags |= ASKS | (ENDS_ASKING if text.rstrip().endswith(QUESTION_MARKS) else 0)
    if not text.islower() and _NAME.search(text) is not None:
        flags |= NAME
    if of_words & _DIGITS and holds_year(text):
        flags |= TIME
    return flags


@cached()
def _flags_by_word(languages: LanguageSet) -> ByWord[int]:
    """Return, per word, the flags that it sets on a text in the given languages, and whether it has digits."""
    first_person = first_person_words(languages)
    number_words = languages.words(lambda each: each.sentences.number_words)

    def flags_of(word: str) -> int:
        letters = _LETTERS.findall(word)  # "i'm" is two words, and one of them is first person
        flags = 0 if first_person.isdisjoint(letters) else FIRST_PERSON
        if _DIGIT.search(word) is not None:
            flags |= NUMBER | _DIGITS
        if not number_words.isdisjoint(letters):
            flags |= NUMBER
        return flags | (TIME if names_time(letters, languages) else 0)

    return ByWord(flags_of)
