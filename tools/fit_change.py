"""Fit the coefficients of `ricordo.text.change` and write change.json.

    python tools/fit_change.py [--write] [--show]

Pairs: benchmarks/data/knowledge/pairs*.jsonl (an update or an ending is a change, every other class is not), pairs of
statements of different people from the same file, which are none.
Figures are of ten folds: no pair is judged by coefficients that saw it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.default import embedder
from ricordo.text.change import FEATURES, features

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src/ricordo/text/change.json"
LEAST = {"several": 0.2, "conflict": 0.25, "conflict without a word of change": 0.4, "replaced": 0.9}
"""The likelihood from which a pair is listed, the newer one ranks first, and the older one is closed."""
PENALTY = 2.0  # of the squares of standardised coefficients
STRANGERS = 25  # pairs of unrelated statements for each pair
STRANGER_WEIGHT = 1.0

Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the pairs that are judged wrongly")
    options = parser.parse_args()
    pairs = examples()
    vectors = asyncio.run(embed(sorted({text for old, new, *_ in pairs for text in (old, new)})))
    written: dict[str, dict[str, float]] = {"least": LEAST}
    for kind in ("words", "meaning"):
        written[kind] = fit(pairs, vectors if kind == "meaning" else None, show=options.show)
    if options.write:
        TARGET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


Example = tuple[str, str, bool, str, int]
"""Older, newer, whether it is a change, its class, and its fold."""


def examples() -> list[Example]:
    files = sorted((ROOT / "benchmarks/data/knowledge").glob("pairs*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    found: list[Example] = []
    chance = random.Random(1)
    for number, row in enumerate(rows):
        is_change = row["class"] in ("update", "ending")
        found.append((row["first"], row["second"], is_change, row["class"], number % 10))
        others = [each for each in rows if each["language"] == row["language"] and each is not row]
        strangers = chance.sample(others, STRANGERS)
        found.extend((other["first"], row["second"], False, "strangers", number % 10) for other in strangers)
    return found


async def embed(texts: Sequence[str]) -> dict[str, Floats]:
    made = await embedder().embed_batch(texts)
    return {text: np.asarray(vector) for text, vector in zip(texts, made, strict=True)}


def fit(pairs: Sequence[Example], vectors: dict[str, Floats] | None, *, show: bool) -> dict[str, float]:
    kept: list[Example] = []
    rows: list[list[float]] = []
    names = [name for name in FEATURES if vectors is not None or name != "meaning"]
    for pair in pairs:
        cosine = None if vectors is None else float(vectors[pair[0]] @ vectors[pair[1]])
        found = features(pair[0], pair[1], cosine)
        if found is not None:
            kept.append(pair)
            rows.append([found[name] for name in names])
    x = np.array(rows)
    y = np.array([float(pair[2]) for pair in kept])
    folds = np.array([pair[4] for pair in kept])
    weight = np.where([pair[3] == "strangers" for pair in kept], STRANGER_WEIGHT, 1.0)
    judged = np.zeros(len(kept))
    for fold in range(10):
        out = folds == fold
        w, bias = _regress(x[~out], y[~out], weight[~out])
        judged[out] = _sigmoid(x[out] @ w + bias)
    kinds = np.array([pair[3] for pair in kept])
    missed = sum(pair[2] for pair in pairs) - y.sum()
    print(
        f"{'with' if vectors else 'without'} meaning: {len(kept)} pairs share a word; {missed:.0f} changes share none"
    )
    for least in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95):
        shares = {
            kind: round(float((judged[kinds == kind] > least).mean()), 3)
            for kind in dict.fromkeys(pair[3] for pair in kept)
        }
        print(least, shares)
    if show:
        for place in np.argsort(-np.abs(judged - y))[:40]:
            old, new, is_change, kind, _ = kept[place]
            on = [name for name, value in zip(names, rows[place], strict=True) if value]
            print(f"{judged[place]:.2f} {'change' if is_change else kind}: {old} | {new} {on}")
    w, bias = _regress(x, y, weight)
    return {"bias": round(bias, 4)} | {name: round(float(value), 4) for name, value in zip(names, w, strict=True)}


def _regress(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, float]:
    """Return the coefficients and the bias of a logistic regression by Newton's method."""
    mean, scale = x.mean(0), x.std(0) + 1e-6
    z = np.c_[(x - mean) / scale, np.ones(len(x))]
    w = np.zeros(z.shape[1])
    penalty = PENALTY * np.r_[np.ones(len(w) - 1), 0]
    for _ in range(50):
        p = _sigmoid(z @ w)
        gradient = z.T @ (weight * (p - y)) + penalty * w
        curvature = (z * (weight * p * (1 - p))[:, None]).T @ z + np.diag(penalty + 1e-6)
        w -= np.linalg.solve(curvature, gradient)
    return w[:-1] / scale, float(w[-1] - (w[:-1] * mean / scale).sum())


def _sigmoid(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


if __name__ == "__main__":
    main()
