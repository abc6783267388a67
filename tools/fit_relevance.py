"""Fit what decides relevance, and write it to retrieval/relevance.json.

    OPENBLAS_NUM_THREADS=1 python tools/fit_relevance.py [--conversations FILE.jsonl ...]

**Facts.** The weights of the features that match a fact with a question. The data are the sets of
tests/fixtures/relevance/fitting and those of `MEASURED`, each alone and mixed with the facts about people of the other
fitting sets, so that the weights also fit a larger memory; and the generic prompts, which nothing answers. Two
logistic regressions have a small ridge: for questions that name a known entity, and for all others. The script also
prints, leaving out each set in turn, the mean precision and recall of its questions.

**Turns.** With conversations (in the form of LoCoMo), the constant `above`: the floor lies where `LET_IN` of the
unrelated prompts of tests/fixtures/relevance pass in the mean of them. The share of answerable questions that pass is
printed for each conversation, with the constant of the others and with that of all.

Run it again when the weights of signals or the embedder change: features hardly depend on the signals, but the order
of the hits does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from benchmarks.search_systems import message
from numpy.typing import NDArray

from ricordo import Fact, Memory, Settings
from ricordo.retrieval import answerability, relevance
from ricordo.retrieval.calibration import generic_prompts
from ricordo.retrieval.query import asked_in

Floats = NDArray[np.float64]
Row = Mapping[str, Any]

SETS = Path(__file__).parents[1] / "tests/fixtures/relevance"
MEASURED = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh")
LET_IN = 0.008
ASKED_EACH = 60
WRITTEN = Path(relevance.__file__).with_name("relevance.json")
SIXTY = 60.0  # the weight of a set, however many questions it has
PROMPT = 0.3
RIDGE = 3.0
NAMES = {
    True: tuple(name for name in answerability.NAMED if name != "constant"),
    False: tuple(name for name in answerability.UNNAMED if name != "constant"),
}
THEIR_OWN = frozenset(("my", "our", "мой", "моя", "наш"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of a set (None for a generic prompt) with its features; `worth` is its weight."""

    of: str
    row: Row | None
    ids: tuple[str, ...]
    weighed: relevance.Weighed
    is_named: bool
    asks_all: bool
    worth: float

    @property
    def answers(self) -> Floats:
        wanted = () if self.row is None else self.row["relevant"]
        return np.array([id in wanted for id in self.ids], np.float64)

    def table(self) -> Floats:
        """float64[facts, features]."""
        return np.stack([self.weighed.found[name] for name in NAMES[self.is_named]], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=Path, nargs="+")
    options = parser.parse_args()
    if options.conversations:
        fit_floor([row for path in options.conversations for row in rows_of(path)])
    else:
        fit_facts()


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def fit_floor(rows: Sequence[Row]) -> None:
    """Choose the constant of turns on some conversations."""
    names = sorted({row["conv"] for row in rows})
    best = {name: asyncio.run(best_of(name, rows)) for name in names}
    for name in names:
        others = [best[other][0] for other in names if other != name] or [best[name][0]]
        parts = [f"{np.mean(best[name][1] >= shift):.3f}" for shift in (shift_of(others), shift_of([best[name][0]]))]
        print(name, *parts)
    data = json.loads(WRITTEN.read_text("utf-8"))
    data["floor"]["above"] = round(relevance.TUNING.above + shift_of([unrelated for unrelated, _ in best.values()]), 1)
    WRITTEN.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def shift_of(unrelated: Sequence[Floats]) -> float:
    """Return by how much to raise the floor so that `LET_IN` of the unrelated prompts pass."""
    return float(np.quantile(np.concatenate(unrelated), 1 - LET_IN))


async def best_of(name: str, rows: Sequence[Row]) -> tuple[Floats, Floats]:
    """Return the relevance of the best hit for each unrelated prompt, and for each question of a conversation."""
    turns = [row for row in rows if row["conv"] == name and row["kind"] == "turn"]
    known = {row["id"] for row in turns}
    asked = [
        row["question"]
        for row in rows
        if row["conv"] == name and row["kind"] == "query" and known.intersection(row.get("evidence") or ())
    ]
    prompts = [row["text"] for row in rows_of(SETS / "unrelated.jsonl") if asked_in(row["text"])]
    async with Memory.open(":memory:", settings=Settings(durability="process")) as memory:
        await memory.add_many([replace(message(row), id=row["id"]) for row in turns])
        await memory.settle()
        found = [
            [await best_for(memory, text) for text in texts]
            for texts in (prompts, asked[:: 1 + len(asked) // ASKED_EACH])
        ]
    return np.array(found[0]), np.array(found[1])


async def best_for(memory: Memory, text: str) -> float:
    asked = await weigh(memory, "", None, text, 0.0)
    return -9.0 if asked is None else float(asked.weighed.as_turns[~asked.weighed.is_of_others].max(initial=-9.0))


def fit_facts() -> None:
    """Fit the weights of the features of facts."""
    paths = [*sorted((SETS / "fitting").glob("*.jsonl")), *(SETS / f"{name}.jsonl" for name in MEASURED)]
    sets = {path.stem: rows_of(path) for path in paths}
    asked = [each for name in sets for each in asyncio.run(ask(name, sets))]
    sys.stderr.write(f"{len(asked)} questions and prompts\n")
    for left_out in sets:
        learnt = {named: fit(asked, named=named, without=left_out) for named in NAMES}
        print(left_out, *(f"{value:.3f}" for value in judged(asked, learnt, left_out)))
    data = json.loads(WRITTEN.read_text("utf-8"))
    data["facts"] = {name: fit(asked, named=name == "named", without=None) for name in ("named", "unnamed")}
    WRITTEN.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


async def ask(name: str, sets: Mapping[str, Sequence[Row]]) -> list[Asked]:
    """Ask all questions of a set, alone and mixed with the facts of the others, and the generic prompts."""
    found: list[Asked] = []
    for others in (False, True):
        async with Memory.open(":memory:", settings=Settings(durability="process")) as memory:
            rows = [row for row in sets[name] if row["kind"] != "question"]
            await keep(memory, [*rows, *(strangers(name, sets) if others else ())])
            questions = [row for row in sets[name] if row["kind"] == "question"]
            worth = SIXTY / len(questions)
            found += [each for row in questions if (each := await weigh(memory, name, row, row["question"], worth))]
            found += [each for text in generic_prompts() if (each := await weigh(memory, name, None, text, PROMPT))]
    return found


def strangers(name: str, sets: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    """Return the people of the other fitting sets and the facts about them, without facts about the owner and without
    people of the same name.
    """
    taken = {each for row in sets[name] if row["kind"] == "entity" for each in (row["name"], *row["aliases"])}
    for other, rows in sets.items():
        same = {row["name"] for row in rows if row["kind"] == "entity" and taken & {row["name"], *row["aliases"]}}
        for row in rows if other not in (name, *MEASURED) else ():
            if same & {row.get("name"), *row.get("about", ())}:
                continue
            if row["kind"] == "entity":
                yield {**row, "relation": None}
            if row["kind"] == "fact" and row["about"] and THEIR_OWN.isdisjoint(row["text"].lower().split()):
                yield row


async def keep(memory: Memory, rows: Sequence[Row]) -> None:
    for row in rows:
        if row["kind"] == "entity":
            await memory.add_entity(row["name"], type=row["type"], aliases=row["aliases"], relation=row["relation"])
    facts = [row for row in rows if row["kind"] == "fact"]
    await memory.remember_many([Fact(content=row["text"], about=row["about"], id=row["id"]) for row in facts])
    await memory.settle()


async def weigh(memory: Memory, name: str, row: Row | None, text: str, worth: float) -> Asked | None:
    """Record the features that a search computes, without changing `judge`."""
    seen: list[Asked] = []
    weigh_up = relevance.weigh_up

    def noted(best: Any, evidence: Any, floor: Any, *, nodes: Any, question: str) -> relevance.Weighed:
        weighed = weigh_up(best, evidence, floor, nodes=nodes, question=question)
        ids = tuple(nodes[each.key].id for each in best)
        if ids:
            seen.append(
                Asked(
                    of=name,
                    row=row,
                    ids=ids,
                    weighed=weighed,
                    is_named=evidence.is_named,
                    asks_all=evidence.asks_all,
                    worth=worth,
                )
            )
        return weighed

    relevance.weigh_up = noted
    try:
        await memory.search(text, limit=20, only_relevant=True)
    finally:
        relevance.weigh_up = weigh_up
    return seen[0] if seen else None


def fit(asked: Sequence[Asked], *, named: bool, without: str | None) -> dict[str, float]:
    """Return the weights of a logistic regression on unscaled features; facts about other people are left out."""
    mine = [each for each in asked if each.is_named == named and each.of != without]
    kept = [~each.weighed.is_of_others for each in mine]
    x = np.concatenate([each.table()[rows] for each, rows in zip(mine, kept, strict=True)])
    y = np.concatenate([each.answers[rows] for each, rows in zip(mine, kept, strict=True)])
    w = np.concatenate([np.full(int(rows.sum()), each.worth) for each, rows in zip(mine, kept, strict=True)])
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    table = np.column_stack([(x - mean) / spread, np.ones(len(x))])
    weights, ridge = np.zeros(table.shape[1]), np.append(np.full(x.shape[1], RIDGE), 1e-6)
    for _ in range(40):
        odds = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        curve = table.T @ (table * (w * odds * (1 - odds))[:, None]) + np.diag(ridge)
        weights -= np.linalg.solve(curve, table.T @ (w * (odds - y)) + ridge * weights)
    plain = weights[:-1] / spread
    constant = weights[-1] - float(plain @ mean)
    told = dict(zip(NAMES[named], plain.tolist(), strict=True)) | {"constant": float(constant)}
    return {name: round(value, 2) for name, value in told.items()}


def judged(asked: Sequence[Asked], learnt: Mapping[bool, Mapping[str, float]], name: str) -> tuple[float, float]:
    """Return the mean precision over a set's questions, and the mean recall over those with an answer."""
    answerability.NAMED, answerability.UNNAMED = learnt[True], learnt[False]
    precisions: list[float] = []
    recalls: list[float] = []
    for each in asked:
        if each.of != name or each.row is None:
            continue
        odds = answerability.answer_odds(each.weighed.found, is_named=each.is_named, asks_all=each.asks_all)
        odds = np.where(each.weighed.is_of_others, -np.inf, odds - relevance.TUNING.fact_above)
        weighed = replace(each.weighed, relevance=odds)
        clears = max(odds.max(), weighed.as_turns[~weighed.is_of_others].max(initial=-np.inf)) >= 0
        is_kept = clears & ~relevance.under_floor(weighed) & ~relevance.behind_best(weighed)
        told, wanted = {each.ids[place] for place in np.flatnonzero(is_kept)}, set(each.row["relevant"])
        right = len(told & wanted)
        precisions.append(right / len(told) if told else float(not wanted))
        if wanted:
            recalls.append(right / len(wanted))
    return statistics.fmean(precisions), statistics.fmean(recalls)


if __name__ == "__main__":
    main()
