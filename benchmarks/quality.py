"""Measure retrieval quality on conversations with questions whose evidence is known.

    python benchmarks/quality.py FILE.jsonl [--embedder default|none|...] [--together] [--out RESULT.json]

FILE holds lines of kind "turn" (conv, session, date, speaker, text, caption, id) and "query" (conv, question,
category, evidence). Every conversation is a store of its own, filled through the public API, or all share one
(--together). Reported per category: the mean share of a question's evidence among the first k hits, with a 95 %
bootstrap interval.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ricordo import Memory, Message, Settings

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
DEPTHS = (5, 10, 20)
# LoCoMo, REALTALK, BEAM, RealMem.
DATE_FORMS = ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S", "%B-%d-%Y", "%Y-%m-%d (%A)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    category: str
    recall: dict[int, float]
    ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--together", action="store_true", help="all conversations in one store")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    embedder = None if options.embedder == "none" else options.embedder
    answered = asyncio.run(run(options.file, embedder, together=options.together))
    report = {
        "file": options.file.name,
        "embedder": options.embedder,
        "together": options.together,
        "machine": machine(),
        "results": summary(answered),
        "search_ms_median": round(statistics.median(each.ms for each in answered), 2),
    }
    show(report)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n")


async def run(file: Path, embedder: str | None, *, together: bool = False) -> list[Answered]:
    """Ask every question of every conversation."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    if together:
        rows = [as_one(row) for row in rows]
    answered: list[Answered] = []
    for conversation in dict.fromkeys(row["conv"] for row in rows):
        mine = [row for row in rows if row["conv"] == conversation]
        answered += await ask(mine, embedder)
        sys.stderr.write(f"\r{conversation}: {len(answered)} questions")
    sys.stderr.write("\n")
    return answered


def as_one(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line for the shared store: its numbers are prefixed with its conversation."""

    def named(number: str) -> str:
        return f"{row['conv']} {number}"

    numbered = {key: named(row[key]) for key in ("id", "session") if key in row}
    return row | numbered | {"conv": "all", "evidence": [named(number) for number in row.get("evidence") or ()]}


async def ask(rows: list[dict[str, Any]], embedder: str | None) -> list[Answered]:
    turns = {row["id"]: row for row in rows if row["kind"] == "turn"}
    async with Memory.open(":memory:", embedder=embedder, settings=Settings(durability="process")) as memory:
        ids = await memory.add_many([message(row) for row in turns.values()])
        await memory.settle()
        return await answers(memory, rows, dict(zip(ids, turns, strict=True)))


async def answers(memory: Memory, rows: Sequence[Mapping[str, Any]], turns: Mapping[str, str]) -> list[Answered]:
    """Ask a conversation's questions. `turns` maps ids in the memory to the names of turns."""
    known = set(turns.values())
    answered = []
    for row in rows:
        evidence = set(row.get("evidence") or ()) & known
        if row["kind"] == "query" and evidence:
            started = time.perf_counter()
            results = await memory.search(row["question"], limit=max(DEPTHS))
            ms = (time.perf_counter() - started) * 1_000
            found = [turns[hit.id] for hit in results.hits]
            recall = {k: len(evidence & set(found[:k])) / len(evidence) for k in DEPTHS}
            category = CATEGORIES.get(row["category"], row["category"])
            answered.append(Answered(category=category, recall=recall, ms=ms))
    return answered


def message(row: dict[str, Any]) -> Message:
    text = row["text"] or ""
    if row.get("caption"):
        text = f"{text} [shows a picture: {row['caption']}]".strip()
    at = instant(row["date"]) if row.get("date") else None
    speaker = row.get("speaker")
    if speaker in ("user", "assistant"):  # in a conversation with an assistant, the speakers are roles
        return Message(text=text, role=speaker, session=row.get("session"), at=at)
    return Message(text=text, speaker=speaker, session=row.get("session"), at=at)


def instant(date: str) -> datetime:
    for form in DATE_FORMS:
        try:
            return datetime.strptime(date, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"date: {date} has none of the formats {', '.join(DATE_FORMS)}")


def summary(answered: list[Answered]) -> dict[str, Any]:
    """Return the figures per category, and over all but the adversarial questions."""
    groups: dict[str, list[Answered]] = defaultdict(list)
    for each in answered:
        groups[each.category].append(each)
        if each.category != "adversarial":
            groups["all"].append(each)
    return {
        name: {"questions": len(each), **{f"recall@{k}": interval([one.recall[k] for one in each]) for k in DEPTHS}}
        for name, each in sorted(groups.items())
    }


def interval(values: list[float], *, samples: int = 1_000) -> dict[str, float]:
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


def show(report: dict[str, Any]) -> None:
    print(f"{report['file']}, embedder {report['embedder']}, median search {report['search_ms_median']} ms")
    print(f"{'':12} {'questions':>9} " + " ".join(f"{f'recall@{k}':>22}" for k in DEPTHS))
    for name, values in report["results"].items():
        cells = " ".join(_cell(values[f"recall@{k}"]).rjust(22) for k in DEPTHS)
        print(f"{name:12} {values['questions']:9} {cells}")


def _cell(value: dict[str, float]) -> str:
    return f"{value['mean']:.3f} ({value['low']:.3f}-{value['high']:.3f})"


if __name__ == "__main__":
    main()
