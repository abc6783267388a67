"""Tokenizers: SentencePiece's unigram model and BERT's uncased word pieces, read from the models' own files."""

from __future__ import annotations

import unicodedata
from array import array
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

UNKNOWN, BOS, EOS = 0, 1, 2
_CONTROL_PIECES = 6  # <unk>, <s>, </s> and three unused ones: never to be matched in text
_MARK = "\u2581"  # what SentencePiece writes for the space before a word
_UNKNOWN_PENALTY = 10.0
_CACHED_WORDS = 32_768
_LONGEST_CACHED = 64
_MESSAGE, _SCORE, _NEWLINE = 0x0A, 0x15, 0x0A

# SentencePiece's nmt_nfkc: what becomes a space, and what disappears, before NFKC.
_BLANKS = "\t\n\x0c\r\u1680\u200b\u200e\u200f\u2028\u2029\ufeff\ufffd" + _MARK
_GONE = [*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F, *range(0xD800, 0xE000)]
_TABLE: dict[int, str | None] = {**dict.fromkeys(map(ord, _BLANKS), " "), **dict.fromkeys(_GONE)}


class Unigram:
    """A SentencePiece unigram tokenizer: cuts text, in any of the model's languages, into its most likely pieces.

    The reference implementation in pure Python takes 0.7 s to load 128,000 pieces; this one has no prefix tree, works
    word by word and caches words. Safe to call from several threads.

    Source: Kudo 2018, "Subword Regularization" (the unigram model and its Viterbi segmentation).
    """

    def __init__(self, path: Path) -> None:
        """Read a SentencePiece model whose pieces come first in the file.

        Raises:
            ValueError: the file has another layout.
        """
        self._ids, scores = _read_pieces(path.read_bytes())
        self._scores = array("f", scores.tobytes())  # an eighth of a list's memory, and faster to read than numpy's
        self._longest = max(map(len, self._ids))
        self._unknown_score = float(scores.min()) - _UNKNOWN_PENALTY
        self._word = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the piece ids of any text, without begin and end marks; empty for blank text."""
        normal = unicodedata.normalize("NFKC", text.translate(_TABLE))
        found: list[int] = []
        for word in normal.split():
            found += self._word(word) if len(word) <= _LONGEST_CACHED else self._split(word)
        return found

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the segmentation of a word with the highest sum of scores (log probabilities)."""
        text = _MARK + word
        best = [0.0] + [float("-inf")] * len(text)
        came: list[tuple[int, int]] = [(0, UNKNOWN)] * (len(text) + 1)
        for start in range(len(text)):
            # A single character is always a piece, known or not, so every end is reached.
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                piece = self._ids.get(text[start:end])
                if piece is None and end > start + 1:
                    continue
                score = best[start] + (self._unknown_score if piece is None else self._scores[piece])
                if score > best[end]:
                    best[end], came[end] = score, (start, UNKNOWN if piece is None else piece)
        return _walk_back(came)


def _walk_back(came: list[tuple[int, int]]) -> tuple[int, ...]:
    found: list[int] = []
    at = len(came) - 1
    while at > 0:
        at, piece = came[at]
        found.append(piece)
    return tuple(reversed(found))


def _read_pieces(data: bytes) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Return a map from piece to id, and the score of each id.

    All pieces are put into one string, one per line: only the bytes of their text and a newline are kept.
    """
    raw = np.frombuffer(data, np.uint8)
    starts = _piece_starts(raw)
    begins = starts + 4
    ends = begins + raw[starts + 3]
    if (raw[ends] != _SCORE).any():
        raise ValueError("not a SentencePiece model whose pieces consist of text and score")
    scores = raw[ends[:, None] + np.arange(1, 5)].copy().view("<f4")[:, 0]
    edges = np.zeros(ends[-1] + 2, np.int8)
    edges[begins] = 1
    edges[ends + 1] = -1
    text = raw[: len(edges)].copy()
    text[ends] = _NEWLINE
    pieces = text[np.cumsum(edges, dtype=np.int8).view(np.bool_)].tobytes().decode().split("\n")[:-1]
    if len(pieces) != len(starts):
        raise ValueError("a piece holds a newline")
    ids = dict(zip(pieces, range(len(pieces)), strict=True))
    for special in pieces[:_CONTROL_PIECES]:
        del ids[special]
    return ids, scores


def _piece_starts(raw: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find where the message of each piece begins: 0A size (0A size text) (15 float32), and a type if special.

    Ordinary pieces are found by that pattern, all at once, and checked to be contiguous: following 128,000
    messages one by one takes 0.1 s.
    """
    special = [0]
    for _ in range(_CONTROL_PIECES):
        special.append(special[-1] + 2 + int(raw[special[-1] + 1]))
    pattern = (raw[:-4] == _MESSAGE) & (raw[2:-2] == _MESSAGE) & (raw[1:-3] == raw[3:-1] + 7)
    found = np.flatnonzero(pattern)
    starts = np.concatenate([special[:-1], found[found >= special[-1]]])
    if not np.array_equal(starts[1:], starts[:-1] + 2 + raw[starts[:-1] + 1]):
        raise ValueError("not a SentencePiece model whose pieces come first and are contiguous")
    return starts


CLS, SEP = 101, 102
_UNKNOWN_WORD = 100
_LONGEST_WORD = 100  # as in the original: a longer word is unknown as a whole


class WordPiece:
    """BERT's uncased tokenizer: the word pieces that MiniLM was trained on, and their ids.

    It agrees with the `tokenizers` library except that a text that spells out a special token ("[SEP]") is read as
    text, so that a text cannot steer the model. Safe to call from several threads.

    Source: Devlin et al. 2018; Wu et al. 2016, "Google's Neural Machine Translation System" (WordPiece).
    """

    def __init__(self) -> None:
        vocabulary = Path(__file__).parent / "data/bert_uncased_vocab.txt"
        self.pieces = vocabulary.read_text(encoding="utf-8").splitlines()
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self._table = _Characters()
        # Chats repeat words; most of the work is done once per word.
        self._word = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the word pieces of any text, without special tokens; empty for blank text."""
        return [piece for word in self._words(text) for piece in self._word(word)]

    def _words(self, text: str) -> list[str]:
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        return text.translate(self._table).split()

    def _split(self, word: str) -> tuple[int, ...]:
        """Match greedily from the left, longest first; a word with an unknown part is unknown as a whole."""
        if len(word) > _LONGEST_WORD:
            return (_UNKNOWN_WORD,)
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            mark = "##" if start else ""
            while end > start and mark + word[start:end] not in self._ids:
                end -= 1
            if end == start:
                return (_UNKNOWN_WORD,)
            found.append(self._ids[mark + word[start:end]])
            start = end
        return tuple(found)


class _Characters(dict[int, str]):
    """The replacement of each character, filled on first use; at most one entry per Unicode character."""

    def __missing__(self, code: int) -> str:
        self[code] = result = _replacement(chr(code))
        return result


def _replacement(char: str) -> str:
    """Return the character in lower case, a space, nothing, or the character as a word of its own."""
    category = unicodedata.category(char)
    if char in "\t\n\r" or category[0] == "Z":
        return " "
    if char == "\ufffd" or category == "Mn" or (category[0] == "C" and category != "Cn"):
        return ""
    if category[0] == "P" or (char.isascii() and not char.isalnum()) or _is_ideograph(ord(char)):
        return f" {char} "
    return char.lower()


def _is_ideograph(code: int) -> bool:
    """Return whether a character is Chinese (also in Japanese text); kana and Hangul form words."""
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
