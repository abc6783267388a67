"""A store of English words with vectors as the default embedder makes them, filled in minutes.

Made-up words would be another load: the real models read a question for as long as it has word pieces, and such words
have four or five. What stored vectors say does not change the cost of a search, so each text's vector is a sum of one
random vector per word; the models would need more than an hour for 100,000 turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import ricordo.models.embedding
from ricordo.models.embedding import default
from ricordo.models.embedding.local import Worded
from ricordo.models.embedding.minilm import WORD_DIMENSION
from ricordo.ports import Kind

Floats = NDArray[np.float32]

_VOCABULARY = Path(ricordo.models.embedding.__file__).parent / "data/bert_uncased_vocab.txt"


def english() -> list[str]:
    """Return about 20,000 words, most frequent first: the whole words of MiniLM's vocabulary, in its order."""
    pieces = _VOCABULARY.read_text(encoding="utf-8").splitlines()
    return [each for each in pieces if len(each) > 1 and each.isascii() and each.isalpha()]


class StandIn:
    """Replaces the default embedder while a store is filled; the next opening uses the real one."""

    name = default.NAME
    dimension = default.DIMENSION

    async def embed(self, text: str, *, kind: Kind = "query") -> Floats:
        return _vector(text)

    async def embed_batch(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Floats]:
        return [_vector(text) for text in texts]

    async def embed_with_words(self, texts: Sequence[str], *, kind: Kind = "passage") -> list[Worded]:
        """Return, like the default embedder, the vector of each text, its words and float32[words, 64]."""
        split = [text.split() for text in texts]
        return [
            Worded(_vector(text), words, np.stack([_of_word(word)[1] for word in words]))
            for text, words in zip(texts, split, strict=True)
        ]


def _vector(text: str) -> Floats:
    total: Floats = np.sum([_of_word(word)[0] for word in text.split()], axis=0, dtype=np.float32)
    return _unit(total)


@cache
def _of_word(word: str) -> tuple[Floats, Floats]:
    chance = np.random.default_rng(crc32(word.encode()))
    made = chance.standard_normal(default.DIMENSION + WORD_DIMENSION).astype(np.float32)
    return _unit(made[: default.DIMENSION]), _unit(made[default.DIMENSION :])


def _unit(vector: Floats) -> Floats:
    result: Floats = vector / np.linalg.norm(vector)
    return result
