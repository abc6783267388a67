"""Measure changing facts: does the newest value rank first, and what does finding older ones cost `remember`?

    python benchmarks/evolution.py FILE.jsonl [--embedder default none] [--out benchmarks/results/evolution.json]

FILE holds lines of kind "turn" (id, text: facts in order, later ones contradicting earlier ones) and "query" (question,
evidence: the newest fact, stale: those it contradicts). The facts are passed one by one to `remember`, without a
language model. Reported: how often the newest fact is the first hit; of the questions with a contradicted fact, how
often one ranks above the newest; and the same without comparing, each fact simply added.

The cost: medians of awaited `remember` calls in a store of 10,000 facts, with and without looking for older facts,
alternating.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ricordo import Fact, Memory, Settings
from ricordo.consolidation.resolve import Arrived

FAST = Settings(durability="process")
FACTS = 10_000
MEASURED = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder", nargs="+", default=["default", "none"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.file.read_text(encoding="utf-8").splitlines()]
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    report: dict[str, Any] = {"file": options.file.name, "machine": machine}
    for name in options.embedder:
        embedder = None if name == "none" else name
        with without_evolution():
            plain = asyncio.run(order(rows, embedder))
        report[name] = {"newest first": asyncio.run(order(rows, embedder)), "without evolution": plain}
    report["remember_ms"] = asyncio.run(cost())
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


@contextlib.contextmanager
def without_evolution() -> Iterator[None]:
    """Only add facts. A benchmark may use internals to get a baseline."""
    with (
        patch("ricordo.consolidation.resolve.arrive", lambda tx, change, **_: Arrived(change=change, kept={})),
        patch("ricordo.storage.database.connection.statement_line", lambda text: ""),
    ):
        yield


async def order(rows: list[dict[str, Any]], embedder: str | None) -> dict[str, Any]:
    """Remember all facts in order, then ask all questions."""
    async with Memory.open(":memory:", embedder=embedder, settings=FAST) as memory:
        fact_of: dict[str, str] = {}
        ids: dict[str, str] = {}
        for row in rows:
            if row["kind"] == "turn":
                node = await memory.remember(row["text"])
                ids[row["id"]] = node.id
                fact_of.setdefault(node.id, row["id"])
        await memory.settle()
        first, conflicts, above = [], 0, 0
        for row in rows:
            if row["kind"] != "query":
                continue
            found = (await memory.search(row["question"], limit=20)).ids
            newest = {ids[each] for each in row["evidence"]}
            stale = {ids[each] for each in row.get("stale", ())} - newest
            is_first, is_stale_above = newest_and_stale(found, newest, stale)
            first.append(is_first)
            conflicts += bool(stale)
            above += is_stale_above
        listed = await memory.review(limit=1_000)
        live = len((await memory.list(limit=1_000)).nodes)
    return {
        "questions": len(first),
        "newest_first": round(statistics.fmean(first), 4),
        "conflicts": conflicts,
        "stale_above": round(above / conflicts, 4),
        "live": live,
        "facts": len(ids),
        "reviews": {kind: sum(each.kind == kind for each in listed) for kind in ("replaced", "conflict", "several")},
    }


def newest_and_stale(found: Sequence[str], newest: Set[str], stale: Set[str]) -> tuple[bool, bool]:
    """Return whether the newest fact is the first hit, and whether a contradicted one stands above it."""
    place = next((n for n, each in enumerate(found) if each in newest), len(found))
    return bool(found) and place == 0, any(each in stale for each in found[:place])


def statements(count: int, *, seed: int) -> Iterator[str]:
    """Return facts as agents write them: many begin alike, few share a slot."""
    chance = random.Random(seed)
    parts = ("ka", "ro", "mi", "ten", "lo", "sha", "vi", "ber", "an", "du", "sol", "pre", "nit", "or", "gal", "fe")
    templates = (
        "The user likes {0} with {1}",
        "{2} lives in {3}",
        "The user's favourite {0} is {1}",
        "{2} works at {3}",
        "The {0} of project {3} is {1}",
        "{2} told the user about a {0} and a {1}",
        "The user prefers {0} over {1}",
    )

    def word() -> str:
        return "".join(chance.choices(parts, k=chance.randint(2, 4)))

    for _ in range(count):
        yield chance.choice(templates).format(word(), word(), word().title(), word().title())


async def cost() -> dict[str, dict[str, float]]:
    """Return medians in milliseconds, wall-clock and process time. Both variants alternate, so that a busy machine
    affects both alike.
    """
    spent: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    async with (
        Memory.open(":memory:", embedder=None, settings=FAST) as evolving,
        Memory.open(":memory:", embedder=None, settings=FAST) as plain,
    ):
        facts = [Fact(content=text) for text in statements(FACTS, seed=1)]
        await evolving.remember_many(facts)
        with without_evolution():
            await plain.remember_many(facts)
        for text in statements(MEASURED, seed=2):
            spent["with"].append(await _timed(evolving, text))
            with without_evolution():
                spent["without"].append(await _timed(plain, text))
    report = {}
    for place, clock in enumerate(("wall", "processor")):
        medians = {name: statistics.median(each[place] for each in values) for name, values in spent.items()}
        medians["added"] = medians["with"] - medians["without"]
        report[clock] = {name: round(value, 3) for name, value in medians.items()}
    return report


async def _timed(memory: Memory, text: str) -> tuple[float, float]:
    wall, work = time.perf_counter(), time.process_time()
    await memory.remember(text)
    return (time.perf_counter() - wall) * 1_000, (time.process_time() - work) * 1_000


if __name__ == "__main__":
    main()
