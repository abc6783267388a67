"""Fit when a newer fact takes the first place of an older one, and write it to retrieval/relevance.json.

    OPENBLAS_NUM_THREADS=1 python tools/fit_present_answer.py [--write]

Each question is asked while no newer fact takes the place. An example is the best hit and one of the next few that was
told later; it is positive if only the later one answers. The questions are those of the years of
benchmarks/data/knowledge, those of its pairs, alone and told in crowds, and those of the sets of
tests/fixtures/relevance, whose facts all hold. Pairs and sets have half the weight of a year. The figures are of eight
folds, by the person asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.knowledge import DATA, FAST, Clock
from numpy.typing import NDArray

from fit_relevance import MEASURED, SETS, rows_of
from ricordo import Memory, Scope
from ricordo.retrieval import ranking, search

Floats = NDArray[np.float64]
Row = Mapping[str, Any]

TARGET = Path(ranking.__file__).with_name("relevance.json")
LEAST = 0.55
CROWD = 14
RIDGE = 1.0
FOLDS = 8
NEITHER, BOTH = 0.3, 0.1
"""The weight of an example of which neither fact answers, and of one of which both do."""
NOT_A_YEAR = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the texts that answer it; `group` names the person asked."""

    group: str
    kind: str
    text: str
    answers: frozenset[str]


@dataclass(slots=True)
class Told:
    """What somebody told, in order, and what they are asked."""

    group: str
    facts: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Example:
    """A newer fact among the best hits of a question; `ask` is the place of the question."""

    ask: int
    newer: str
    values: Mapping[str, float]
    is_instead: bool
    weight: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stores = [*_years(), *_crowds(), *_pairs(), *_sets()]
    found: dict[str, Any] = {"least": LEAST}
    for name, embedder in (("words", None), ("meaning", "default")):
        asked, first, examples = asyncio.run(_observed(stores, embedder))
        print(name, len(examples), "examples,", sum(each.is_instead for each in examples), "positive")
        found[name] = fit(asked, first, examples)
    if options.write:
        fitted = json.loads(TARGET.read_text("utf-8")) | {"instead": found}
        TARGET.write_text(json.dumps(fitted, indent=1) + "\n", "utf-8")


def _rows(pattern: str) -> list[Row]:
    return [json.loads(line) for path in sorted(DATA.glob(pattern)) for line in path.read_text("utf-8").splitlines()]


def _years() -> Iterator[Told]:
    for row in _rows("years*.jsonl"):
        facts = [fact["text"] for fact in row["facts"]]
        changed = {place for place, fact in enumerate(row["facts"]) if fact.get("replaces")}
        asked = [
            Asked(
                row["id"],
                "year, changed" if changed.intersection(each["answer"]) else "year, as told",
                each["ask"],
                frozenset(facts[place] for place in each["answer"]),
            )
            for each in row["questions"]
        ]
        yield Told(row["id"], facts, asked)


def _crowds() -> Iterator[Told]:
    """Tell a dozen first statements of pairs, then most of the second ones."""
    chance = random.Random(11)
    rows = [row for row in _rows("pairs*.jsonl") if "first" in row]
    for language in sorted({row["language"] for row in rows}):
        of_language = chance.sample(mine := [row for row in rows if row["language"] == language], len(mine))
        for start in range(0, len(of_language), CROWD):
            crowd = of_language[start : start + CROWD]
            later = chance.sample(crowd, len(crowd) * 3 // 4)
            told = Told(
                f"crowd {language} {start}", [each["first"] for each in crowd] + [row["second"] for row in later]
            )
            for row in crowd:
                answer = row.get("answer") if row in later else "first"
                if answer in ("first", "second"):
                    kind = "crowd, changed" if answer == "second" else "crowd, as told"
                    told.asked.append(Asked(told.group, kind, row["question"], frozenset((row[answer],))))
            yield told


def _pairs() -> Iterator[Told]:
    """Tell each pair alone."""
    for row in _rows("pairs*.jsonl"):
        if row.get("answer") in ("first", "second"):
            kind = "pair, changed" if row["answer"] == "second" else "pair, as told"
            asked = Asked(f"pair {row['id']}", kind, row["question"], frozenset((row[row["answer"]],)))
            yield Told(asked.group, [row["first"], row["second"]], [asked])


def _sets() -> Iterator[Told]:
    for name in MEASURED:
        rows = rows_of(SETS / f"{name}.jsonl")
        facts = {row["id"]: row["text"] for row in rows if row["kind"] == "fact"}
        told = Told(f"set {name}", random.Random(name).sample(list(facts.values()), len(facts)))
        for row in rows:
            if answers := frozenset(facts[id] for id in row.get("relevant", ()) if id in facts):
                told.asked.append(Asked(told.group, "set, as told", row["question"], answers))
        yield told


async def _observed(stores: Sequence[Told], embedder: str | None) -> tuple[list[Asked], list[str], list[Example]]:
    """Return the questions, the best hit of each without a change of places, and the examples."""
    clock, asked, first, examples = Clock(), list[Asked](), list[str](), list[Example]()
    seen = list[tuple[Any, ...]]()
    search.instead_of_best = lambda *given: seen.append(given) or {}  # type: ignore[attr-defined,func-returns-value]
    async with Memory.open(":memory:", embedder=embedder, settings=FAST, clock=clock) as memory:
        for place in range(max(len(told.facts) for told in stores)):
            for told in stores:
                if place < len(told.facts):
                    await memory.scoped(Scope(owner=told.group)).remember(told.facts[place])
            clock.at += timedelta(days=7)
        await memory.settle()
        for told in stores:
            mine = memory.scoped(Scope(owner=told.group))
            for each in told.asked:
                seen.clear()
                hits = await mine.search(each.text, limit=2)
                asked.append(each)
                first.append(hits[0].content if hits else "")
                examples += [example for given in seen for example in _examples(len(asked) - 1, each, *given)]
    return asked, first, examples


def _examples(
    ask: int,
    asked: Asked,
    question: str,
    texts: Sequence[str],
    scores: Sequence[float],
    newer: Sequence[int],
    meaning: Any,
) -> Iterator[Example]:
    is_right = texts[0] in asked.answers
    for place in newer:
        is_answer = texts[place] in asked.answers
        weight = BOTH if is_right and is_answer else 1.0 if is_right or is_answer else NEITHER
        values = ranking.features_instead(question, texts, scores, place, meaning)
        factor = 1.0 if asked.kind.startswith("year") else NOT_A_YEAR
        yield Example(ask, texts[place], values, is_answer and not is_right, weight * factor)


def fit(asked: Sequence[Asked], first: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Return the coefficients, and print how many first hits of questions that they did not see are right."""
    names = list(examples[0].values)
    x = np.array([[1.0, *(each.values[name] for name in names)] for each in examples])
    y = np.array([float(each.is_instead) for each in examples])
    weight = np.array([each.weight for each in examples])
    groups = sorted({each.group for each in asked})
    folds = np.array([groups.index(asked[each.ask].group) % FOLDS for each in examples])
    judged = np.zeros(len(examples))
    for fold in range(FOLDS):
        others = folds != fold
        judged[~others] = _sigmoid(x[~others] @ _newton(x[others], y[others], weight[others]))
    instead = dict[int, tuple[float, str]]()
    for each, estimate in zip(examples, judged, strict=True):
        instead[each.ask] = max(instead.get(each.ask, (LEAST, first[each.ask])), (float(estimate), each.newer))
    for kind in sorted({each.kind for each in asked}):
        places = [place for place, each in enumerate(asked) if each.kind == kind]
        before = sum(first[place] in asked[place].answers for place in places)
        after = sum(instead.get(place, (0, first[place]))[1] in asked[place].answers for place in places)
        print(f"{kind:16} {len(places):4} questions, right first {before:4} before, {after:4} now")
    found = _newton(x, y, weight)
    return {"constant": round(float(found[0]), 3)} | {
        name: round(float(value), 3) for name, value in zip(names, found[1:], strict=True)
    }


def _newton(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return the coefficients of a logistic regression with a ridge, but for the constant, which is the first."""
    found, ridge = np.zeros(x.shape[1]), RIDGE * np.r_[1e-6, np.ones(x.shape[1] - 1)]
    step = np.full(x.shape[1], inf)
    while np.abs(step).max() > 1e-6:
        p = _sigmoid(x @ found)
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(curvature, x.T @ (weight * (p - y)) + ridge * found)
        found -= step
    return found


def _sigmoid(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


if __name__ == "__main__":
    main()
