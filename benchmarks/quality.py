"""Measure retrieval quality on public sets of questions whose evidence is known, for Ricordo and plain baselines.

    python benchmarks/quality.py [--sets locomo,beam,...] [--embedder default|none|bm25|hybrid|...] [--data DIR]
                                 [--questions N] [--resume] [--out RESULT.json]
    python benchmarks/quality.py FILE.jsonl [--together] ...   one file of conversations
    python benchmarks/quality.py --table         print the committed results and write them into the README

DIR (or RICORDO_QUALITY_DATA) holds the files named in `SETS`: lines of kind "turn" (conv, session, date, speaker, text,
caption, id) and "query" (conv, question, category, evidence). Every conversation is a store of its own, filled through
the public API, or all share one (--together). The data is not part of this repository.

- Conversations (LoCoMo, REALTALK, BEAM): the share of a question's evidence among the first k hits (recall@k), the mean
  reciprocal rank of the first evidence among the first 20 (MRR), and how often the first hit is evidence (hit@1), by
  category and over all but the adversarial ones.
- RealMem: the share of a question's evidence sessions among the first ten distinct sessions of the hits. The session in
  which it was asked does not count.
- XQuAD-R: sentences as facts; questions in their language and in others.
- FactConsolidation: facts in order, later ones contradicting earlier ones. How often the newest is the first hit and,
  of the questions with a contradicted fact, how often one stands above the newest.

The results, with 95 % bootstrap intervals, are written after each set; --resume skips the sets that the file has.
--questions takes a fixed random part of each set's questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evolution import newest_and_stale
from benchmarks.search_systems import Form, Index, Row, opened

RESULTS = Path(__file__).parent / "results"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ASKS_FOR_A_FACT = {
    "contradiction_resolution",
    "information_extraction",
    "knowledge_update",
    "multi_session_reasoning",
    "temporal_reasoning",
}
"""The five classes of BEAM that ask for a fact. The others ask for a summary, an order, or to follow an instruction."""
DEPTHS = (5, 10, 20)
_SESSIONS = 10
_ENOUGH_HITS = (100, 400, 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    category: str
    scores: Mapping[str, float]
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One store: its turns, and its questions."""

    name: str
    turns: Sequence[Row]
    questions: Sequence[Row]


Score = Callable[[Index, Part, Row], Awaitable[dict[str, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualitySet:
    """How a file becomes stores and questions, and what counts as a good answer."""

    file: str
    parts: Callable[[Sequence[Row]], list[Part]]
    score: Score
    form: Form = "messages"


def conversations(rows: Sequence[Row]) -> list[Part]:
    """Return one part for each conversation, with the questions that have evidence."""
    parts = []
    for name in dict.fromkeys(row["conv"] for row in rows):
        turns = [row for row in rows if row["conv"] == name and row["kind"] == "turn"]
        asked = [row for row in rows if row["conv"] == name and row["kind"] == "query"]
        known = {row["id"] for row in turns} | {row.get("session") for row in turns}
        evidence = [known.intersection(row.get("evidence_sessions") or row.get("evidence") or ()) for row in asked]
        questions = [
            {**row, "evidence": each, "category": CATEGORIES.get(row["category"], row["category"])}
            for row, each in zip(asked, evidence, strict=True)
            if each
        ]
        parts.append(Part(name=name, turns=turns, questions=questions))
    return parts


def one_store(rows: Sequence[Row]) -> list[Part]:
    """Return all conversations as one part; names of turns and sessions are prefixed with their conversation."""

    def named(row: Row, value: str) -> str:
        return f"{row['conv']} {value}"

    together = []
    for row in rows:
        renamed = {key: named(row, row[key]) for key in ("id", "session") if key in row}
        evidence = [named(row, each) for each in row.get("evidence") or ()]
        together.append({**row, **renamed, "conv": "all", "evidence": evidence})
    return conversations(together)


def languages(rows: Sequence[Row]) -> list[Part]:
    """Return the English and the Russian sentences, each with the questions of the languages measured."""
    asked_in = {"en": ("en", "ru", "de", "es", "zh"), "ru": ("ru", "en")}
    by_language = {part.name: part for part in conversations(rows)}
    return [
        replace(by_language[target], questions=[row for each in sources for row in asked(by_language, each, target)])
        for target, sources in asked_in.items()
    ]


def asked(by_language: Mapping[str, Part], source: str, target: str) -> list[Row]:
    """Return the questions of a language whose sentence exists in another: a translation may join two sentences."""
    known = {row["id"] for row in by_language[target].turns}
    questions = by_language[source].questions
    return [{**row, "category": f"{source} to {target}"} for row in questions if row["evidence"] <= known]


async def ranked(index: Index, part: Part, row: Row) -> dict[str, float]:
    """Return recall at each depth, the reciprocal rank, and whether the first hit is evidence."""
    evidence = {index.ids[each] for each in row["evidence"]}
    return ranks(await index.find(row["question"], max(DEPTHS)), evidence)


def ranks(found: Sequence[str], evidence: set[str]) -> dict[str, float]:
    place = next((place for place, each in enumerate(found, start=1) if each in evidence), None)
    recall = {f"recall@{k}": len(evidence & set(found[:k])) / len(evidence) for k in DEPTHS}
    return {**recall, "mrr": 1 / place if place else 0.0, "hit@1": float(place == 1)}


async def sessions(index: Index, part: Part, row: Row) -> dict[str, float]:
    """Return the share of the evidence sessions among the first ten distinct ones, for as many hits as that takes."""
    names = {id: name for name, id in index.ids.items()}
    session_of = {turn["id"]: turn["session"] for turn in part.turns}
    found: list[str] = []
    for limit in _ENOUGH_HITS:
        hits = await index.find(row["question"], limit)
        distinct = dict.fromkeys(session_of[names[each]] for each in hits)
        found = list(islice((each for each in distinct if each != row["asked_in"]), _SESSIONS))
        if len(found) == _SESSIONS or len(hits) < limit:
            break
    evidence = row["evidence"] - {row["asked_in"]}
    place = next((place for place, each in enumerate(found, start=1) if each in evidence), None)
    share = len(evidence & set(found)) / len(evidence) if evidence else 0.0
    return {"sessions@10": share, "mrr": 1 / place if place else 0.0, "hit@1": float(place == 1)}


async def changes(index: Index, part: Part, row: Row) -> dict[str, float]:
    """Return whether the newest fact is first and, if there is a contradicted one, whether it stands above it."""
    newest = {index.ids[each] for each in row["evidence"]}
    stale = {index.ids[each] for each in row.get("stale", ())} - newest
    first, above = newest_and_stale(await index.find(row["question"], max(DEPTHS)), newest, stale)
    return {"newest first": float(first)} | ({"stale above": float(above)} if stale else {})


SETS = {
    "locomo": QualitySet(file="locomo_dev.jsonl", parts=conversations, score=ranked),
    "realtalk": QualitySet(file="realtalk.jsonl", parts=conversations, score=ranked),
    "beam": QualitySet(file="beam.jsonl", parts=conversations, score=ranked),
    "realmem": QualitySet(file="realmem.jsonl", parts=conversations, score=sessions),
    "xquad": QualitySet(file="xquad.jsonl", parts=languages, score=ranked, form="facts"),
    "factconsolidation": QualitySet(
        file="factconsolidation_dev.jsonl", parts=conversations, score=changes, form="facts in order"
    ),
}


def main() -> None:
    options = arguments()
    if options.table:
        from benchmarks.quality_table import table, write_table

        print(table(RESULTS))
        write_table(RESULTS)
        return
    chosen, folder = chosen_sets(options)
    out: Path | None = options.out
    report = json.loads(out.read_text()) if out and out.exists() else {}
    named = {"embedder": options.embedder} | ({"reranker": options.reranker} if options.reranker else {})
    report |= {**named, "machine": machine(), "sets": report.get("sets", {})}
    for name, each in chosen.items():
        if options.resume and name in report["sets"]:
            continue
        sys.stderr.write(f"{name}\n")
        report["sets"][name] = asyncio.run(
            measure(each, folder, options.embedder, reranker=options.reranker, questions=options.questions)
        )
        show(name, report["sets"][name])
        if out:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated; all by default")
    parser.add_argument("--embedder", default="default", help='of Ricordo, or "bm25" or "hybrid" for a baseline')
    parser.add_argument("--reranker", default="", help="of Ricordo, by name")
    parser.add_argument("--data", type=Path, default=os.environ.get("RICORDO_QUALITY_DATA"))
    parser.add_argument("--together", action="store_true", help="all conversations of the file in one store")
    parser.add_argument("--questions", type=int, help="ask so many of each set")
    parser.add_argument("--resume", action="store_true", help="keep the sets that --out already has")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not options.table and options.file is None and options.data is None:
        parser.error("--data DIR (or RICORDO_QUALITY_DATA) is required: the folder with the files of the sets")
    if unknown := set(options.sets.split(",")) - SETS.keys():
        parser.error(f"--sets: {', '.join(sorted(unknown))} is unknown; there are {', '.join(SETS)}")
    return options


def chosen_sets(options: argparse.Namespace) -> tuple[dict[str, QualitySet], Path]:
    """Return the sets to measure by name, and the folder of their files."""
    if options.file is None:
        return {name: SETS[name] for name in options.sets.split(",")}, Path(options.data)
    path: Path = options.file
    known = {each.file: (name, each) for name, each in SETS.items()}
    plain = (path.stem, QualitySet(file=path.name, parts=conversations, score=ranked))
    name, chosen = known.get(path.name, plain)
    if options.together:
        name, chosen = f"{name}, one store", replace(chosen, parts=one_store)
    return {name: chosen}, path.parent


async def measure(
    quality_set: QualitySet, folder: Path, system: str, *, reranker: str = "", questions: int | None = None
) -> dict[str, Any]:
    """Ask every question of a set, or a fixed random part of them."""
    started = time.monotonic()
    text = (folder / quality_set.file).read_text(encoding="utf-8")
    parts = some(quality_set.parts([json.loads(line) for line in text.splitlines()]), questions)
    answered: list[Answered] = []
    for part in parts:
        async with opened(system, part.turns, quality_set.form, reranker=reranker) as index:
            answered += [await answer(index, part, row, quality_set.score) for row in part.questions]
        sys.stderr.write(f"  {part.name}: {len(answered)} questions, {time.monotonic() - started:.0f} s\n")
    return {
        "file": quality_set.file,
        "seconds": round(time.monotonic() - started),
        "search_ms_median": round(statistics.median(each.ms for each in answered), 2),
        "results": summary(answered),
    }


async def answer(index: Index, part: Part, row: Row, score: Score) -> Answered:
    started = time.perf_counter()
    scores = await score(index, part, row)
    return Answered(category=row["category"], scores=scores, ms=(time.perf_counter() - started) * 1_000)


def some(parts: Sequence[Part], questions: int | None) -> list[Part]:
    """Return the parts with a fixed random choice of so many questions; parts without any are left out."""
    places = [(part.name, place) for part in parts for place in range(len(part.questions))]
    if questions is not None and questions < len(places):
        places = random.Random(7).sample(places, questions)
    kept = set(places)
    chosen = (
        replace(part, questions=[row for place, row in enumerate(part.questions) if (part.name, place) in kept])
        for part in parts
    )
    return [part for part in chosen if part.questions]


def summary(answered: Iterable[Answered]) -> dict[str, Any]:
    """Return the figures by category, over all but the adversarial questions, and over BEAM's questions for facts."""
    groups: dict[str, list[Answered]] = defaultdict(list)
    for each in answered:
        groups[each.category].append(each)
        if each.category != "adversarial":
            groups["all"].append(each)
        if each.category in ASKS_FOR_A_FACT:
            groups["asks for a fact"].append(each)
    return {name: _figures(each) for name, each in sorted(groups.items())}


def _figures(answered: Sequence[Answered]) -> dict[str, Any]:
    names = dict.fromkeys(name for each in answered for name in each.scores)
    values = {name: [each.scores[name] for each in answered if name in each.scores] for name in names}
    return {"questions": len(answered), **{name: interval(each) for name, each in values.items()}}


def interval(values: Sequence[float], *, samples: int = 1_000) -> dict[str, float]:
    """Return the mean, and the 2.5 and 97.5 percentiles of resampled means."""
    chance = random.Random(7)
    means = sorted(statistics.fmean(chance.choices(values, k=len(values))) for _ in range(samples))
    return {
        "mean": round(statistics.fmean(values), 4),
        "low": round(means[int(samples * 0.025)], 4),
        "high": round(means[int(samples * 0.975)], 4),
    }


def machine() -> dict[str, Any]:
    return {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}


def show(name: str, measured: Mapping[str, Any]) -> None:
    print(f"{name}, median search {measured['search_ms_median']} ms, {measured['seconds']} s in all")
    for category, values in measured["results"].items():
        cells = (f"{key} {_cell(each)}" for key, each in values.items() if key != "questions")
        print(f"  {category:26} {values['questions']:5}  {'  '.join(cells)}", flush=True)


def _cell(value: Mapping[str, float]) -> str:
    return f"{value['mean']:.3f} ({value['low']:.3f}-{value['high']:.3f})"


if __name__ == "__main__":
    main()
