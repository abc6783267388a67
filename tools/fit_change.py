"""Fit the coefficients of `ricordo.text.change` and write change.json.

    python tools/fit_change.py [--write] [--show]

Pairs: the files of `PAIRS`; an update or an ending is a change, every other class is not, and where
the older statement answers the question, the newer one stands aside. Each pair is put among statements of other people
from the same file, none of which it changes: for the comparison of words in stores of several sizes, for that of
meaning in an answer to its question. The facts of years.jsonl are compared with those that one person told before. The
sentences of descriptions.jsonl change nothing. Figures are of ten folds: no pair or year is judged by coefficients that
saw it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.default import embedder
from ricordo.text.change import (
    APART,
    BY_MEANING,
    BY_WORDS,
    DOUBTS,
    are_of_two_people,
    by_meaning,
    by_words,
    features,
    topics,
)

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src/ricordo/text/change.json"
LEAST = {"words": 0.3, "own words": 0.22, "meaning": 0.32, "alone": 0.27, "aside": 0.5, "unsure": 0.8, "certain": 0.98}
"""The likelihood from which a pair is listed, the newer one ranks first, the older one does, and it is closed.

"alone" is the one from which the newer one of two facts ranks first if nothing else was found.
A wish or a condition that says nothing of a change is no new value below "unsure".
"""
PAIRS = ("pairs.jsonl", "pairs_by_agents.jsonl", "pairs_of_things.jsonl", "pairs_unusual.jsonl")
"""Without pairs_strange.jsonl: fitted with it, one held-out question fewer was answered first."""
STORES = (0, 0, 0, 8, 30, 100, 180)
"""The other facts of a store. Most people have few: pairs alone count three times."""
ANSWERS = (0, 1, 4, 24)
COMPARED = 6  # of the facts nearest to the question
LATEST = 8  # facts for each word
ORDERS = 2  # in which the facts of a life come, the first as they were told
PENALTY = 2.0  # of the squares of standardised coefficients
STRANGER_WEIGHT = 0.3
NEVER_FOR = frozenset((*DOUBTS, *APART, "denied", "only repeats", "long"))
"""Features that may only speak against a change."""

Floats = NDArray[np.float64]
Row = Mapping[str, Any]


class Example(NamedTuple):
    """A pair as it is judged: whether both are of one row, and which is to stand first, if either."""

    row: Row
    fold: int
    others: int
    is_own: bool
    first: str
    old: str
    values: Mapping[str, float]


class Year(NamedTuple):
    """What one person told in a year, in order.

    Attributes:
        replaced: the places (newer, older) of facts of which one makes the other out of date, at once or in steps.
    """

    language: str
    facts: Sequence[str]
    questions: Sequence[str]
    replaced: Set[tuple[int, int]]

    @classmethod
    def of(cls, row: Row) -> Year:
        replaced = set[tuple[int, int]]()
        for new, fact in enumerate(row["facts"]):
            for old in fact.get("replaces", ()):
                replaced |= {(new, old), *((new, older) for newer, older in replaced if newer == old)}
        facts = [fact["text"] for fact in row["facts"]]
        return cls(row["language"], facts, [each["ask"] for each in row["questions"]], replaced)

    def live_before(self, place: int) -> list[str]:
        """Return the facts told before one that nothing told before it has replaced."""
        over = {old for new, old in self.replaced if new < place}
        return [fact for at, fact in enumerate(self.facts[:place]) if at not in over]

    def example(self, number: int, old: str, new: str, values: Mapping[str, float]) -> Example:
        is_change = (self.facts.index(new), self.facts.index(old)) in self.replaced
        row = {"class": "change" if is_change else "unchanged", "second": new}
        return Example(row, number % 10, len(self.facts), True, "second" if is_change else "", old, values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the pairs that are judged wrongly")
    options = parser.parse_args()
    rows, described = [row for name in PAIRS for row in _lines(name)], _lines("descriptions.jsonl")
    years = [Year.of(row) for row in _lines("years.jsonl")]
    texts = {row[name] for row in rows for name in ("first", "second", "question")}
    of_years = (text for year in years for text in (*year.facts, *year.questions))
    vectors = asyncio.run(embed(sorted(texts.union(of_years, *(each["sentences"] for each in described)))))
    told = list(descriptions(described, vectors))
    by_word = [*stored(rows), *told, *lived(_lines("lives*.jsonl")), *told_in(years)]
    by_sense = [*answered(rows, vectors), *told, *compared_in(years, vectors)]
    written = {
        "least": LEAST,
        "words": fit(by_word, BY_WORDS, "second", show=options.show),
        "meaning": fit(by_sense, BY_MEANING, "second", show=options.show),
        "aside": fit(by_sense, BY_MEANING, "first", show=options.show),
    }
    if options.write:
        TARGET.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def _lines(pattern: str) -> list[Row]:
    files = sorted((ROOT / "benchmarks/data/knowledge").glob(pattern))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


async def embed(texts: Sequence[str]) -> dict[str, Floats]:
    made = await embedder().embed_batch(texts)
    return {text: np.asarray(vector) for text, vector in zip(texts, made, strict=True)}


def stored(rows: Sequence[Row]) -> Iterator[Example]:
    """Put each pair among other facts, and compare the newer one with all that share a telling word."""
    chance = random.Random(3)
    for number, row in enumerate(rows):
        for size in STORES:
            store = _strangers(row, rows, size, chance)
            store.insert(chance.randrange(len(store) + 1), row["first"])
            sharing = _sharing(store, row["second"])
            for old, context in by_words({text: text for text in sharing}, row["second"]).items():
                values = features(old, row["second"]) | context
                is_own = old == row["first"]
                if values["share"]:
                    first = "second" if is_own and row["old"] == "closed" else ""
                    yield Example(row, number % 10, size, is_own, first, old, values)


def _strangers(row: Row, rows: Sequence[Row], count: int, chance: random.Random) -> list[str]:
    others = [each for each in rows if each["language"] == row["language"] and each is not row]
    return [each[chance.choice(("first", "second"))] for each in chance.sample(others, min(count, len(others)))]


def _sharing(store: Sequence[str], new: str) -> list[str]:
    found: dict[str, None] = {}
    for stems in topics(new).stems:
        found |= dict.fromkeys([text for text in store if not topics(text).all_stems.isdisjoint(stems)][-LATEST:])
    return list(found)


def told_in(years: Sequence[Year]) -> Iterator[Example]:
    """Compare each fact of a year with those before it that share a telling word."""
    for number, year in enumerate(years):
        for place, new in enumerate(year.facts):
            for old, context in by_words({each: each for each in _sharing(year.live_before(place), new)}, new).items():
                values = features(old, new) | context
                if values["share"]:
                    yield year.example(number, old, new, values)


def compared_in(years: Sequence[Year], vectors: Mapping[str, Floats]) -> Iterator[Example]:
    """Compare each fact of a year with the nearest before it, and the facts that answer each question."""
    for number, year in enumerate(years):
        for place, new in enumerate(year.facts):
            near = sorted(year.live_before(place), key=lambda text: -float(vectors[new] @ vectors[text]))[:COMPARED]
            for old in near:
                yield year.example(number, old, new, _values(old, new, [*near, new], vectors))
        for question in year.questions:
            for old, new, values in _compared(year.facts, question, vectors):
                yield year.example(number, old, new, values)


def answered(rows: Sequence[Row], vectors: Mapping[str, Floats]) -> Iterator[Example]:
    """Ask for each pair among other facts, and compare the facts of the answer with those that came before them."""
    chance = random.Random(3)
    for number, row in enumerate(rows):
        for size in ANSWERS:
            strangers = _strangers(row, rows, size, chance)
            half = len(strangers) // 2
            order = [*strangers[:half], row["first"], row["second"], *strangers[half:]]
            wanted = row.get(row["answer"])
            for old, new, values in _compared(order, row["question"], vectors):
                is_own = (old, new) == (row["first"], row["second"])
                if wanted and (is_own or old == wanted):
                    yield Example(row, number % 10, size, is_own, row["answer"] if is_own else "", old, values)
        for stranger in _strangers(row, rows, 1, chance):
            for old, new, values in _compared([row["first"], stranger], row["question"], vectors):
                yield Example({**row, "second": new}, number % 10, 0, False, "", old, values)


def _compared(
    order: Sequence[str], question: str, vectors: Mapping[str, Floats]
) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Return (older, newer, features) of the facts that answer a question best."""
    cosines = {text: float(vectors[question] @ vectors[text]) for text in order}
    best = sorted(cosines, key=lambda text: -cosines[text])[:COMPARED]
    best.sort(key=order.index)
    for old, new in combinations(best, 2):
        yield old, new, _values(old, new, best, vectors)


def _values(old: str, new: str, found: Sequence[str], vectors: Mapping[str, Floats]) -> dict[str, float]:
    """Return the features of two facts among all that were found, the oldest first."""
    return features(old, new) | by_meaning(
        float(vectors[old] @ vectors[new]),
        of_old=[float(vectors[old] @ vectors[each]) for each in found if each not in (old, new)],
        of_new=[
            float(vectors[new] @ vectors[each])
            for each in found[: found.index(new)]
            if each != old and not are_of_two_people(each, new)
        ],
    )


def descriptions(described: Sequence[Row], vectors: Mapping[str, Floats]) -> Iterator[Example]:
    """Compare sentences that describe and narrate with those most like them, of the same text and of others."""
    for language in sorted({each["language"] for each in described}):
        texts = [each for each in described if each["language"] == language]
        order = [sentence for each in texts for sentence in each["sentences"]]
        for number, text in enumerate(texts):
            for sentence in text["sentences"]:
                for old, new, values in _compared(order, sentence, vectors):
                    contexts = by_words({each: each for each in _sharing(order, new)} | {old: old}, new)
                    row = {"class": "described", "second": new}
                    yield Example(row, number % 10, len(order), False, "", old, values | contexts[old])


def lived(lives: Sequence[Row]) -> Iterator[Example]:
    """Compare each fact of a life with those before it that share a telling word: all of them hold."""
    chance = random.Random(3)
    for number, life in enumerate(lives):
        for order in range(ORDERS):
            facts = chance.sample(life["facts"], len(life["facts"])) if order else life["facts"]
            for place, new in enumerate(facts):
                for old, context in by_words({each: each for each in _sharing(facts[:place], new)}, new).items():
                    row = {"class": "lived", "second": new}
                    yield Example(row, number % 10, 14, False, "", old, features(old, new) | context)


def fit(examples: Sequence[Example], names: Sequence[str], wanted: str, *, show: bool) -> dict[str, float]:
    """Return the coefficients, and print what they would have done to pairs they did not see.

    Args:
        wanted: "second" for how likely the newer statement stands first, "first" for the older one.
    """
    x = np.array([[each.values[name] for name in names] for each in examples])
    y = np.array([float(each.first == wanted) for each in examples])
    never = {place for place, name in enumerate(names) if wanted == "second" and name in NEVER_FOR}
    counts = [each.is_own or each.row["class"] == "lived" or names is not BY_WORDS for each in examples]
    weight = np.where(counts, 1.0, STRANGER_WEIGHT)
    folds = np.array([each.fold for each in examples])
    judged = np.zeros(len(examples))
    for fold in range(10):
        w, bias = _regress(x[folds != fold], y[folds != fold], weight[folds != fold], never=never)
        judged[folds == fold] = _sigmoid(x[folds == fold] @ w + bias)
    print(f"{wanted} by {names[-1]}: share from .2, .3 … on, by class, among so many other facts")
    for size in dict.fromkeys(each.others for each in examples):
        for group in dict.fromkeys(map(_group, examples)):
            found = np.array([each.others == size and _group(each) == group for each in examples])
            if found.any():
                shares = [round(float((judged[found] > least / 10).mean()), 3) for least in range(2, 10)]
                print(f"{size:4} {group:13} {found.sum():5} {shares}")
    if show:
        for place in np.argsort(-np.abs(judged - y))[:60]:
            each = examples[place]
            on = {name: round(each.values[name], 2) for name in names if each.values[name]}
            print(f"{judged[place]:.2f} {_group(each)} {each.others}: {each.old} | {each.row['second']} {on}")
    w, bias = _regress(x, y, weight, never=never)
    return {"bias": round(bias, 4)} | {name: round(float(value), 4) for name, value in zip(names, w, strict=True)}


def _group(example: Example) -> str:
    return str(example.row["class"]) if example.is_own or "language" not in example.row else "strangers"


def _regress(x: Floats, y: Floats, weight: Floats, *, never: Set[int]) -> tuple[Floats, float]:
    """Return the coefficients and the bias of a logistic regression by Newton's method.

    Args:
        never: columns whose coefficients must not be positive; those that would be are left out.
    """
    kept = list(range(x.shape[1]))
    while True:
        w, bias = _newton(x[:, kept], y, weight)
        wrong = {column for column, value in zip(kept, w, strict=True) if column in never and value > 0}
        if not wrong:
            whole = np.zeros(x.shape[1])
            whole[kept] = w
            return whole, bias
        kept = [column for column in kept if column not in wrong]


def _newton(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, float]:
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
