"""A SentencePiece unigram tokenizer: cuts text, in any of the model's languages, into its most likely pieces.

Read straight from the `.model` file. The reference implementation in pure Python takes 0.7 s to load 128,000
pieces; this one leaves out its prefix tree, works word by word and remembers the words it has seen.

Source: Kudo 2018, "Subword Regularization" (the unigram model and its Viterbi segmentation).
"""

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
    """Splits text into pieces of the vocabulary; safe to call from several threads."""

    def __init__(self, path: Path) -> None:
        """Read a SentencePiece model whose pieces stand first in the file.

        Raises:
            ValueError: the file is of another layout.
        """
        self._ids, scores = _read_pieces(path.read_bytes())
        self._scores = array(
            "f", scores.tobytes()
        )  # an eighth of a list's memory, and faster to read than numpy's
        self._longest = max(map(len, self._ids))
        self._unknown_score = float(scores.min()) - _UNKNOWN_PENALTY
        self._word = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of any text, without the marks of begin and end; empty for blank text."""
        normal = unicodedata.normalize("NFKC", text.translate(_TABLE))
        found: list[int] = []
        for word in normal.split():
            found += self._word(word) if len(word) <= _LONGEST_CACHED else self._split(word)
        return found

    def _split(self, word: str) -> tuple[int, ...]:
        """The segmentation of one word whose scores (log probabilities) sum to the most."""
        text = _MARK + word
        best = [0.0] + [float("-inf")] * len(text)
        came: list[tuple[int, int]] = [(0, UNKNOWN)] * (len(text) + 1)
        for start in range(len(text)):
            # One character is always a piece, known or not, so every end is reached.
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
    """Piece to id, and the score of each id.

    Each piece is a message of under 128 bytes: 0A size (0A size text) (15 float32) and, for special ones, its
    type. Read as columns: a loop that does more than find the messages takes five times as long.
    """
    starts = []
    at = 0
    while data[at] == _MESSAGE:
        starts.append(at)
        at += 2 + data[at + 1]
    raw = np.frombuffer(data, np.uint8)
    begins = np.array(starts, np.int64) + 4
    ends = begins + raw[begins - 1]
    if (raw[begins - 2] != _MESSAGE).any() or (raw[ends] != _SCORE).any() or (raw[begins - 3] > 127).any():
        raise ValueError("not a SentencePiece model whose pieces are text and score")
    scores = raw[ends[:, None] + np.arange(1, 5)].copy().view("<f4")[:, 0]
    # All pieces in one string, a line to each: keep the bytes of the text, and where the score begins a
    # newline.
    edges = np.zeros(at + 1, np.int8)
    edges[begins] = 1
    edges[ends + 1] = -1
    kept = raw[:at].copy()
    kept[ends] = _NEWLINE
    pieces = kept[np.cumsum(edges[:at]).astype(np.bool_)].tobytes().decode().split("\n")[:-1]
    if len(pieces) != len(starts):
        raise ValueError("a piece holds a newline")
    return {piece: i for i, piece in enumerate(pieces) if i >= _CONTROL_PIECES}, scores
