"""A tiny embedder without a model: words and parts of words, hashed.

It finds texts that share words or stems, in any language, and knows nothing of meaning. It needs no weights
and does the same on every machine, which makes it the embedder for tests and for where no model fits.

Source: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.local import LocalEmbedder
from ricordo.ports import Kind

Floats = NDArray[np.float32]

NAME = "hashing-256-v1"
DIMENSION = 256

_WORD = re.compile(r"\w+")
_GRAM = 4
_MOST_WORDS = 20_000
_CACHED_WORDS = 65_536


class Hashing:
    """The whole word, and its runs of four letters, each one of 256 numbers with a sign."""

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Unit vectors float32[n, 256]; a text without words is all zeros. Both kinds are embedded alike."""
        features = [[f for w in _WORD.findall(text.lower())[:_MOST_WORDS] for f in _features(w)] for text in texts]
        places = np.fromiter(chain.from_iterable(features), np.int64)
        rows = np.repeat(np.arange(len(texts)), [len(of_text) for of_text in features])
        flat = np.bincount(rows * DIMENSION + (places >> 1), _SIGNS[places & 1], len(texts) * DIMENSION)
        vectors = flat.reshape(len(texts), DIMENSION)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        result: Floats = (vectors / lengths).astype(np.float32)
        return result


_SIGNS = np.array([1.0, -1.0])


def embedder() -> LocalEmbedder[Hashing]:
    """The hashing embedder: unit vectors of 256 dimensions."""
    return LocalEmbedder(NAME, dimension=DIMENSION, load=Hashing)


@lru_cache(maxsize=_CACHED_WORDS)
def _features(word: str) -> tuple[int, ...]:
    """Twice the place of each feature, plus one where its sign is minus."""
    edged = f"^{word[:64]}$"
    grams = [edged[at : at + _GRAM] for at in range(max(1, len(edged) - _GRAM + 1))]
    return tuple(_place(part) for part in [word, *grams])


def _place(part: str) -> int:
    # Lone surrogates cannot be encoded strictly; crc32 because Python's own hash differs between processes.
    return crc32(part.encode("utf-8", "surrogatepass")) % (2 * DIMENSION)
