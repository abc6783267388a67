"""A tiny embedder without a model: hashed words and character n-grams.

It finds texts that share words or stems, in any language, and knows nothing of meaning. It needs no weights and
gives the same vectors on every machine: it serves tests, and machines on which no model fits.

Source: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from zlib import crc32

import numpy as np

from ricordo.models.embedding.local import Floats, LocalEmbedder
from ricordo.ports import Kind

NAME = "hashing-256-v1"
DIMENSION = 256

_WORD = re.compile(r"\w+")
_GRAM = 4
_MOST_WORDS = 20_000
_CACHED_WORDS = 65_536


class Hashing:
    """Maps each word and its 4-grams to one of 256 dimensions and a sign."""

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return unit vectors float32[n, 256]; zeros for a text without words. Both kinds are embedded alike."""
        features = [[f for w in _WORD.findall(text.lower())[:_MOST_WORDS] for f in _features(w)] for text in texts]
        buckets = np.fromiter(chain.from_iterable(features), np.int64)
        rows = np.repeat(np.arange(len(texts)), [len(of_text) for of_text in features])
        flat = np.bincount(rows * DIMENSION + (buckets >> 1), _SIGNS[buckets & 1], len(texts) * DIMENSION)
        vectors = flat.reshape(len(texts), DIMENSION)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        result: Floats = (vectors / lengths).astype(np.float32)
        return result


_SIGNS = np.array([1.0, -1.0])


def embedder() -> LocalEmbedder[Hashing]:
    """Return the hashing embedder: unit vectors of 256 dimensions."""
    return LocalEmbedder(NAME, dimension=DIMENSION, load=Hashing)


@lru_cache(maxsize=_CACHED_WORDS)
def _features(word: str) -> tuple[int, ...]:
    """Return twice the dimension of each feature, plus 1 where its sign is negative."""
    edged = f"^{word[:64]}$"
    grams = [edged[at : at + _GRAM] for at in range(max(1, len(edged) - _GRAM + 1))]
    return tuple(_bucket(part) for part in [word, *grams])


def _bucket(part: str) -> int:
    # Lone surrogates cannot be encoded strictly; crc32 because Python's own hash differs between processes.
    return crc32(part.encode("utf-8", "surrogatepass")) % (2 * DIMENSION)
