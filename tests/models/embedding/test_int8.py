"""Products of int8 matrices: close to float32, the same on every kernel and in any company of rows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from ricordo.models.embedding import resolve, weights
from ricordo.models.embedding.weights import Int8Matrix

HERE = Path(__file__).parent
CHANCE = np.random.default_rng(7)
OUTLIERS = (3, 200)


def matrix(inputs: int = 384, outputs: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes = CHANCE.integers(-127, 128, (inputs, outputs)).astype(np.int8)
    return codes, CHANCE.random(outputs, np.float32), CHANCE.normal(size=outputs).astype(np.float32)


def rows(count: int, width: int = 384) -> np.ndarray:
    x = CHANCE.normal(size=(count, width)).astype(np.float32)
    x[:, OUTLIERS] *= 30
    return x


def test_a_product_is_close_to_that_of_float32():
    codes, scales, bias = matrix()
    x = rows(150)
    exact = x @ (codes * scales) + bias
    error = np.abs(Int8Matrix(codes, scales, bias, outliers=OUTLIERS)(x) - exact).max()
    assert error < 0.02 * exact.std()
    # A matrix that does not know its outliers rounds everything else coarsely.
    assert np.abs(Int8Matrix(codes, scales, bias)(x) - exact).max() > 2 * error


def test_rows_do_not_depend_on_those_beside_them():
    product = Int8Matrix(*matrix(), outliers=OUTLIERS)
    x = rows(150)
    together = product(x)
    assert all(np.array_equal(product(x[at : at + size])[0], together[at]) for at, size in [(0, 1), (7, 3), (64, 80)])


def test_numpy_gives_the_same_numbers_where_the_kernel_is_missing(monkeypatch):
    arguments, x = matrix(inputs=1_536), rows(70, 1_536)
    by_kernel = Int8Matrix(*arguments, outliers=OUTLIERS)(x)
    monkeypatch.setattr(weights, "_numkong", None)
    assert np.array_equal(Int8Matrix(*arguments, outliers=OUTLIERS)(x), by_kernel)


@pytest.mark.parametrize("value", [0.0, 1e-30, 3.5, -1e6])
def test_a_row_of_equal_values_stays_finite_and_right(value):
    codes, scales, bias = matrix()
    x = np.full((2, 384), value, np.float32)
    exact = x @ (codes * scales) + bias
    found = Int8Matrix(codes, scales, bias)(x)
    assert np.allclose(found, exact, rtol=0.01, atol=0.01 * float(np.abs(exact).max()))


def test_vectors_agree_with_those_of_version_0_1_0():
    pairs = json.loads((HERE / "pairs.json").read_text(encoding="utf-8"))["pairs"][:8]
    texts = [text for pair in pairs for text in pair[:2]] + [" ".join(pair[0] for pair in pairs) * 3]
    before = np.load(HERE / "vectors_0_1_0.npz")
    embedder = resolve("default")
    assert embedder is not None and embedder.name == "ricordo-default-256-v1"
    found = asyncio.run(embedder.embed_with_words(texts))  # type: ignore[attr-defined]
    assert np.einsum("ij,ij->i", np.stack([each.vector for each in found]), before["vectors"]).min() > 0.999
    assert np.einsum("ij,ij->i", np.vstack([found[0].words, found[2].words]), before["words"]).min() > 0.99
