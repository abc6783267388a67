"""Fit the weights of `ricordo.text.passing` and write passing.bin and passing.json.

    python tools/fit_lifetimes.py [--write] [--show]

Statements: those that pass and those that last in the files of `WRITERS`, and as `BACKGROUND` what people say about
themselves in the other files, which lasts. Figures are of folds: each writer's statements, with a fifth of the
background, are judged by weights that saw none of them. The thresholds follow from them: at most `LOST` of the writers'
lasting statements expire, and at most `LOST_OF_OTHERS` of the background.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.default import embedder
from ricordo.text.dates.resolution import dated_phrases
from ricordo.text.lifetimes import is_guarded, may_pass
from ricordo.text.passing import BESIDE_MEANING, features

ROOT = Path(__file__).parents[1]
DATA = ROOT / "benchmarks/data/knowledge"
TARGET = ROOT / "src/ricordo/text"
WRITERS = {
    "first": ("lifetimes.jsonl", "lifetimes_hard.jsonl", "lifetimes_listed.jsonl"),
    "strange": ("lifetimes_strange.jsonl",),
    "plain": ("lifetimes_plain.jsonl",),
    "contrasts": ("lifetimes_contrasts.jsonl",),
    "everyday": ("lifetimes_everyday.jsonl",),
    "chat": ("lifetimes_chat.jsonl",),
}
FRESH = ("contrasts", "everyday", "chat")
"""Writers who saw no rule; the thresholds count their statements. The others wrote what earlier rules got wrong."""
BACKGROUND = (
    *("lives.jsonl", "lives_strange.jsonl", "descriptions.jsonl", "pairs.jsonl", "pairs_unusual.jsonl"),
    *("pairs_by_agents.jsonl", "pairs_of_things.jsonl", "pairs_strange.jsonl"),
    *("pairs_of_people.jsonl", "pairs_of_world.jsonl", "years.jsonl"),
)
BACKGROUND_WEIGHT = 0.3
"""With 1, half as many passing statements are recognised; with 0, five times as much of the background expires."""
SAID = date(2026, 11, 2)  # relative days of the statements count from it
LOST, LOST_OF_OTHERS = 0.01, 0.01
NEVER = -99.0  # the score of statements that a sign of what lasts keeps
LEAST_SEEN = 2  # statements
SMOOTHING = 1.0
LIGHTEST = 0.4  # weights below are left out of the file
VARIANCE = 3.0  # of the coefficients for vectors

Floats = NDArray[np.float64]


class Statement(NamedTuple):
    text: str
    language: str
    passes: bool
    writer: str
    """One of `WRITERS`, or "" for the background."""
    fold: str


class Words(NamedTuple):
    """The features of all statements: feature `columns[i]` is in statement `rows[i]`."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    hashes: NDArray[np.int64]
    lengths: Floats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the lasting statements that would expire")
    options = parser.parse_args()
    told = list(statements())
    words, vectors = words_of(told), asyncio.run(embed([each.text for each in told]))
    judged = {"words": np.zeros(len(told)), "meaning": np.zeros(len(told))}
    for fold in WRITERS:
        seen = np.array([each.fold != fold for each in told])
        by_words = scores(words, word_weights(words, told, seen))
        weights, bias = regress(vectors, told, seen)
        judged["words"][~seen] = by_words[~seen]
        by_meaning = vectors @ weights + bias
        judged["meaning"][~seen] = np.where(by_meaning > 0, by_meaning + BESIDE_MEANING * by_words, NEVER)[~seen]
    may = np.array([may_pass(each.text) for each in told])
    guarded = np.array([is_guarded(each.text) for each in told])
    by_words = np.where(may, judged["words"], NEVER)
    judged = {
        "words": np.where(guarded, by_words, NEVER),
        "words, unguarded": np.where(guarded, NEVER, by_words),
        "meaning": np.where(may & guarded, judged["meaning"], NEVER),
        "meaning, unguarded": np.where(may & ~guarded, judged["meaning"], NEVER),
    }
    least = {name: threshold(told, found, guarded ^ ("unguarded" in name)) for name, found in judged.items()}
    for name, found in judged.items():
        report(name, told, found, least[name])
        if options.show:
            wrong = [place for place in np.argsort(-found) if not told[place].passes and found[place] >= least[name]]
            print("\n".join(f"{found[place]:.2f} {told[place].writer}: {told[place].text}" for place in wrong))
    if options.write:
        everything = np.ones(len(told), bool)
        write(words, word_weights(words, told, everything), *regress(vectors, told, everything), least)


def statements() -> Iterator[Statement]:
    for writer, names in WRITERS.items():
        for name in names:
            for row in _lines(name):
                if row["kind"] != "dated":
                    yield Statement(row["text"], row["language"], row["kind"] == "passing", writer, writer)
    number, folds = 0, list(WRITERS)
    for name in BACKGROUND:
        for row in _lines(name):
            for text in _lasting(row):
                yield Statement(text, row.get("language", "en"), False, "", folds[number % len(folds)])
                number += 1


def _lasting(row: Mapping[str, Any]) -> list[str]:
    """Return the statements of a line of the background that last. Those of a year do if they answer a question, change
    an older one or are changed, and name no day.
    """
    if "questions" not in row:
        return list(row.get("facts") or row.get("sentences") or [row["first"]])
    lasting = {place for question in row["questions"] for place in question["answer"]}
    for place, fact in enumerate(row["facts"]):
        lasting |= {place, *fact["replaces"]} if fact.get("replaces") else set()
    texts = [row["facts"][place]["text"] for place in sorted(lasting)]
    return [text for text in texts if not dated_phrases(text, today=SAID)]


def _lines(name: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines() if line]


def words_of(told: Sequence[Statement]) -> Words:
    found = [np.array(sorted(features(each.text)), np.int64) for each in told]
    rows = np.repeat(np.arange(len(told)), [len(each) for each in found])
    hashes, columns = np.unique(np.concatenate(found), return_inverse=True)
    return Words(rows, columns, hashes, np.array([float(len(each)) for each in found]))


async def embed(texts: Sequence[str]) -> Floats:
    return np.asarray(await embedder().embed_batch(texts), np.float64)


def weight_of(told: Sequence[Statement], seen: NDArray[np.bool_]) -> Floats:
    return np.asarray(seen * np.array([1.0 if each.writer else BACKGROUND_WEIGHT for each in told]))


def word_weights(words: Words, told: Sequence[Statement], seen: NDArray[np.bool_]) -> Floats:
    """Return the log ratio of each feature's likelihood in passing and in lasting statements; 0 for rare ones."""
    weight = weight_of(told, seen)
    passing = weight * np.array([each.passes for each in told])
    lasting = weight - passing

    def logs(of: Floats) -> Floats:
        count = np.bincount(words.columns, weights=of[words.rows], minlength=len(words.hashes))
        return np.asarray(np.log((count + SMOOTHING) / (of.sum() + 2 * SMOOTHING)))

    times = np.bincount(words.columns, weights=seen[words.rows], minlength=len(words.hashes))
    return np.asarray(np.where(times >= LEAST_SEEN, logs(passing) - logs(lasting), 0.0))


def scores(words: Words, weights: Floats) -> Floats:
    total = np.bincount(words.rows, weights=weights[words.columns], minlength=len(words.lengths))
    return np.asarray(total / np.sqrt(words.lengths))


def regress(vectors: Floats, told: Sequence[Statement], seen: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Return the coefficients and the bias of a logistic regression on vectors, by Newton's method."""
    x = np.c_[vectors[seen], np.ones(seen.sum())]
    y = np.array([float(each.passes) for each in told])[seen]
    weight = weight_of(told, seen)[seen]
    penalty = np.r_[np.full(vectors.shape[1], 1 / VARIANCE), 1e-9]
    w = np.zeros(x.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-x @ w))
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        w -= np.linalg.solve(curvature, x.T @ (weight * (p - y)) + penalty * w)
    return w[:-1], float(w[-1])


def threshold(told: Sequence[Statement], judged: Floats, counted: NDArray[np.bool_]) -> float:
    """Return the score above which as few lasting statements are as `LOST` and `LOST_OF_OTHERS` say."""
    fresh = counted & np.array([each.writer in FRESH and not each.passes for each in told])
    others = counted & np.array([not each.writer for each in told])
    return float(max(np.quantile(judged[fresh], 1 - LOST), np.quantile(judged[others], 1 - LOST_OF_OTHERS)))


def report(name: str, told: Sequence[Statement], judged: Floats, least: float) -> None:
    print(f"by {name}: share of passing recognised / lasting expired at thresholds around {least:.2f}")
    groups = {writer: [each.writer == writer for each in told] for writer in (*WRITERS, "")}
    fresh = [each.writer in FRESH for each in told]
    for language in sorted({each.language for each in told}):
        groups[language] = [is_fresh and each.language == language for is_fresh, each in zip(fresh, told, strict=True)]
    passing = np.array([each.passes for each in told])
    for group, chosen in groups.items():
        found = []
        for at in (least - 1, least - 0.5, least, least + 0.5, least + 1):
            kinds = [np.array(chosen) & kind for kind in (passing, ~passing)]
            shares = [float((judged[kind] >= at).mean()) if kind.any() else 0.0 for kind in kinds]
            found.append(f"{shares[0]:.2f} / {shares[1]:.3f}")
        print(f"{group or 'background':12}", "   ".join(found))


def write(words: Words, weights: Floats, meaning: Floats, bias: float, least: Mapping[str, float]) -> None:
    scale = float(np.abs(weights).max() / 127)
    kept = np.abs(weights) >= LIGHTEST
    hashes = array("I", words.hashes[kept].tolist())
    if sys.byteorder == "big":
        hashes.byteswap()
    rounded = array("b", np.rint(weights[kept] / scale).astype(int).tolist())
    (TARGET / "passing.bin").write_bytes(hashes.tobytes() + rounded.tobytes())
    rest = {
        "scale": round(scale, 6),
        "least": {name: round(value, 3) for name, value in least.items()},
        "bias": round(bias, 4),
        "meaning": [round(float(value), 3) for value in meaning],
    }
    (TARGET / "passing.json").write_text(json.dumps(rest) + "\n", encoding="utf-8")
    print(f"{kept.sum():,} weights written, {len(words.hashes):,} features seen")


if __name__ == "__main__":
    main()
