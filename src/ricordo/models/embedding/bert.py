"""The forward pass of a small BERT in numpy: the last layer's vector of every token.

No inference runtime: onnxruntime and what it brings would add 72 MB to the install, and for this model, whose
weights are stored as int8 and computed as float32, it is no faster than numpy's BLAS on one thread.

Sentences are laid end to end, never padded, so short ones cost what they hold and a text gets the same vector
alone or in a batch (up to the last bits of float32).

Source: Devlin et al. 2018, "BERT"; Reimers and Gurevych 2019, "Sentence-BERT" (mean pooling).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.onnx_weights import read_tensors

Floats = NDArray[np.float32]

_EPSILON = 1e-12
_GELU = np.float32((2.0 / np.pi) ** 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block; matrices are float32[inputs, outputs]."""

    qkv: Floats
    qkv_bias: Floats
    joined: Floats
    joined_bias: Floats
    norm1: tuple[Floats, Floats]
    wide: Floats
    wide_bias: Floats
    narrow: Floats
    narrow_bias: Floats
    norm2: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bert:
    """Weights of the model; `words` stay int8 in the mapped file and are scaled row by row when read."""

    words: NDArray[np.int8]
    word_scales: Floats
    positions: Floats
    norm: tuple[Floats, Floats]
    layers: tuple[Layer, ...]
    heads: int

    def forward(self, sequences: Sequence[Sequence[int]]) -> list[Floats]:
        """The last layer for each sequence of token ids: float32[len(sequence), width], in order.

        Sequences of one length next to one another are cheapest. None may be empty or longer than the
        positions.
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
        _normalise(x, *self.norm)
        return x


def load_bert(path: Path, *, heads: int) -> Bert:
    """Read the weights of an ONNX export whose matrices are int8 with a scale per column.

    Raises:
        ValueError: the file is of another layout.
    """
    tensors = read_tensors(path)
    prefix = "inner.embeddings."
    words, positions = (tensors[f"{prefix}{part}_embeddings.weight_q"] for part in ("word", "position"))
    scales = tensors[f"{prefix}position_embeddings.weight_scale"]
    # The exporter named the matrices by number; they stand in the order of use, six to a layer.
    matrices = [tensors[n] * tensors[n[:-1] + "scale"] for n in tensors if n.startswith("val_") and n.endswith("_q")]
    if not matrices or len(matrices) % 6:
        raise ValueError(f"{path} has {len(matrices)} int8 matrices; six to a layer were expected")
    return Bert(
        words=words,
        word_scales=tensors[f"{prefix}word_embeddings.weight_scale"].copy(),
        # Only one sentence is ever given, so the vector of its segment is a constant of every position.
        positions=positions * scales + tensors[f"{prefix}token_type_embeddings.weight"][0],
        norm=_norm(tensors, prefix),
        layers=tuple(
            _layer(tensors, index, matrices[6 * index : 6 * index + 6], heads) for index in range(len(matrices) // 6)
        ),
        heads=heads,
    )


def _layer(tensors: dict[str, NDArray[Any]], index: int, matrices: list[Floats], heads: int) -> Layer:
    prefix = f"inner.encoder.layer.{index}."
    query, key, value, joined, wide, narrow = matrices
    biases = [tensors[f"{prefix}attention.self.{part}.bias"] for part in ("query", "key", "value")]
    # The softmax's 1 / sqrt(head width) is folded into the queries once, here.
    scale = np.float32((query.shape[1] / heads) ** -0.5)
    return Layer(
        qkv=np.hstack([query * scale, key, value]),
        qkv_bias=np.hstack([biases[0] * scale, *biases[1:]]),
        joined=joined,
        joined_bias=tensors[f"{prefix}attention.output.dense.bias"].copy(),
        norm1=_norm(tensors, f"{prefix}attention.output."),
        wide=wide,
        wide_bias=tensors[f"{prefix}intermediate.dense.bias"].copy(),
        narrow=narrow,
        narrow_bias=tensors[f"{prefix}output.dense.bias"].copy(),
        norm2=_norm(tensors, f"{prefix}output."),
    )


def _norm(tensors: dict[str, NDArray[Any]], prefix: str) -> tuple[Floats, Floats]:
    return tensors[f"{prefix}LayerNorm.weight"].copy(), tensors[f"{prefix}LayerNorm.bias"].copy()


def _attend(x: Floats, layer: Layer, runs: Sequence[tuple[int, int, int]], heads: int) -> None:
    """Self-attention within each sequence, added to x[tokens, width] in place."""
    width = x.shape[1]
    qkv = x @ layer.qkv
    qkv += layer.qkv_bias
    mixed = np.empty_like(x)
    for start, count, length in runs:
        part = qkv[start : start + count * length].reshape(count, length, 3, heads, width // heads)
        query, key, value = (part[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = query @ key.transpose(0, 1, 3, 2)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        target = mixed[start : start + count * length].reshape(count, length, heads, width // heads)
        np.matmul(scores, value, out=target.transpose(0, 2, 1, 3))
    joined = mixed @ layer.joined
    joined += layer.joined_bias
    x += joined
    _normalise(x, *layer.norm1)


def _feed(x: Floats, layer: Layer) -> None:
    """The feed-forward half of a block, added to x[tokens, width] in place."""
    wide = x @ layer.wide
    wide += layer.wide_bias
    narrow = _gelu(wide) @ layer.narrow
    narrow += layer.narrow_bias
    x += narrow
    _normalise(x, *layer.norm2)


def _gelu(x: Floats) -> Floats:
    """Gaussian error linear unit by its tanh form (numpy has no erf); differs from the exact one by at most
    5e-4.
    """
    inner = x * x
    inner *= 0.044715
    inner += 1.0
    inner *= x
    inner *= _GELU
    np.tanh(inner, out=inner)
    inner += 1.0
    inner *= x
    inner *= 0.5
    return inner


def _normalise(x: Floats, gain: Floats, shift: Floats) -> None:
    """Layer norm over the rows of x[n, width], in place."""
    x -= x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
    x *= (1.0 / np.sqrt(variance + _EPSILON))[:, None]
    x *= gain
    x += shift


def _runs(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Neighbours of one length as (first row, how many, length), so that their attention is one call."""
    start = 0
    for length, group in groupby(lengths):
        count = sum(1 for _ in group)
        yield start, count, length
        start += count * length
