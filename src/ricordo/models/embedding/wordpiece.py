"""BERT's uncased tokenizer: the word pieces, and their ids, that MiniLM was trained on.

Agrees with the `tokenizers` library but for one thing: a text that spells out a special token ("[SEP]") is
read as text, so that what someone writes cannot steer the model.

Source: Devlin et al. 2018; Wu et al. 2016, "Google's Neural Machine Translation System" (WordPiece).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from pathlib import Path

CLS, SEP = 101, 102
_UNKNOWN = 100
_LONGEST_WORD = 100  # as in the original: a longer one is unknown as a whole
_CACHED_WORDS = 32_768


class WordPiece:
    """Splits text into word pieces; safe to call from several threads."""

    def __init__(self) -> None:
        vocabulary = Path(__file__).parent / "data/bert_uncased_vocab.txt"
        self.pieces = vocabulary.read_text(encoding="utf-8").splitlines()
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self._table = _Characters()
        # Chat repeats its words; most of the work is done once for each.
        self._word = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Ids of the word pieces of any text, without the special tokens; empty for blank text."""
        return [piece for word in self._words(text) for piece in self._word(word)]

    def _words(self, text: str) -> list[str]:
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        return text.translate(self._table).split()

    def _split(self, word: str) -> tuple[int, ...]:
        """Greedy longest match from the left; unknown as a whole when any part is."""
        if len(word) > _LONGEST_WORD:
            return (_UNKNOWN,)
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            mark = "##" if start else ""
            while end > start and mark + word[start:end] not in self._ids:
                end -= 1
            if end == start:
                return (_UNKNOWN,)
            found.append(self._ids[mark + word[start:end]])
            start = end
        return tuple(found)


class _Characters(dict[int, str]):
    """What each character becomes, filled as characters turn up: at most Unicode's million."""

    def __missing__(self, code: int) -> str:
        self[code] = result = _become(chr(code))
        return result


def _become(char: str) -> str:
    """Lower case, blank, nothing, or the character set apart as a word of its own."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    if char == "\ufffd" or category == "Mn" or (category[0] == "C" and category != "Cn"):
        return ""
    if category[0] == "P" or (char.isascii() and not char.isalnum()) or _is_ideograph(ord(char)):
        return f" {char} "
    return char.lower()


def _is_ideograph(code: int) -> bool:
    """Chinese characters, also as used in Japanese; kana and Hangul are written in words."""
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
