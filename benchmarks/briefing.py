"""Time the briefing of a large memory, and check its budget.

    python benchmarks/briefing.py [--nodes 100000] [--out benchmarks/results/briefing.json]

Two stores of synthetic English words (see benchmarks/english.py): one of conversation with a few facts, as in
benchmarks/page.py, and one of facts alone, a fifth as many, in the categories that a briefing looks for. The first
briefing of a process, which loads modules and pages of the file, is timed apart from the following ones.
Processor time says more than the clock where other programs run, too.
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
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import page
from benchmarks.english import english

from ricordo import Fact, Memory, Settings

_SHARES = {"preference": 2, "identity": 1, "relationship": 1, "knowledge": 10, "event": 2, "task": 2, "context": 2}
_RUNS = 40


async def fill_with_facts(store: Path, nodes: int) -> None:
    """Add facts of nine words in the categories that a briefing looks for."""
    words, chosen = english(), random.Random(2)
    async with Memory.open(store, embedder=None, settings=Settings(durability="process")) as memory:
        for _ in range(nodes // 100):
            categories = chosen.choices(list(_SHARES), list(_SHARES.values()), k=100)
            facts = [
                Fact(content=" ".join(chosen.sample(words, 9)), category=each, expires="never")  # type: ignore[arg-type]
                for each in categories
            ]
            await memory.remember_many(facts)


async def measure(store: Path) -> dict[str, Any]:
    """Return times in milliseconds and the largest share of a budget that a briefing used."""
    async with Memory.open(store, embedder=None) as memory:
        begun = time.perf_counter()
        await memory.brief()
        first = 1_000 * (time.perf_counter() - begun)
        times, worked = [], []
        for _ in range(_RUNS):
            begun, busy = time.perf_counter(), time.process_time()
            await memory.brief()
            times.append(1_000 * (time.perf_counter() - begun))
            worked.append(1_000 * (time.process_time() - busy))
        parts = [await memory.brief_parts(budget=budget) for budget in (100, 400, 800, 2_000)]
        return {
            "memories": sum((await memory.stats()).nodes.values()),
            "first_ms": round(first, 1),
            "p50_ms": round(statistics.median(times), 1),
            "p95_ms": round(sorted(times)[int(0.95 * len(times))], 1),
            "cpu_p50_ms": round(statistics.median(worked), 1),
            "most_of_budget": round(max(each.tokens / each.budget for each in parts), 3),
        }


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {"machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"}
    with tempfile.TemporaryDirectory() as folder:
        await page.fill(Path(folder) / "talk.db", given.nodes)
        results["conversation"] = await measure(Path(folder) / "talk.db")
        await fill_with_facts(Path(folder) / "facts.db", given.nodes // 5)
        results["facts"] = await measure(Path(folder) / "facts.db")
    written = json.dumps(results, indent=2) + "\n"
    print(written)
    if given.out:
        given.out.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
