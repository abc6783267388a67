"""Measure speed and scale: writing, opening, searching, memory and disk.

    python benchmarks/speed.py [--nodes 10000 100000 1000000] [--out benchmarks/results/speed.json]

Figures are medians of several runs on the named machine; use the ratios. Stores are filled with synthetic chat with a
natural distribution of words and embedded by the `hashing` embedder, so that no model's speed hides that of the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ricordo import Memory, Message, Scope, Settings

FAST = Settings(durability="process")
ROOT = Path(__file__).parent
QUESTIONS = 200
FUNCTION_WORDS = 100


def words(count: int = 30_000) -> list[str]:
    """Return a vocabulary of pronounceable words, most frequent first, the same in every run."""
    chance = random.Random(11)
    parts = ("ka", "ro", "mi", "ten", "lo", "sha", "vi", "ber", "an", "du", "sol", "pre", "nit", "or", "gal", "fe")
    return list(dict.fromkeys("".join(chance.choices(parts, k=chance.randint(2, 4))) for _ in range(count * 2)))[:count]


def talk(count: int, *, seed: int = 5, vocabulary: list[str] | None = None) -> Iterator[str]:
    """Return turns of 6 to 25 words with Zipf frequencies: the first word is in two thirds of all turns."""
    chance = random.Random(seed)
    vocabulary = vocabulary or words()
    for _ in range(count):
        ranks = (int(len(vocabulary) ** chance.random()) - 1 for _ in range(chance.randint(6, 25)))
        yield " ".join(vocabulary[rank] for rank in ranks)


def questions(*, seed: int = 77, vocabulary: list[str] | None = None) -> list[str]:
    """Return questions of 5 to 8 words with the same frequencies, without the hundred most common words, which act as
    function words.
    """
    chance = random.Random(seed)
    vocabulary = vocabulary or words()
    rarer = len(vocabulary) / FUNCTION_WORDS
    return [
        " ".join(vocabulary[int(FUNCTION_WORDS * rarer ** chance.random()) - 1] for _ in range(chance.randint(5, 8)))
        for _ in range(QUESTIONS)
    ]


def quantiles(ms: list[float]) -> dict[str, float]:
    ordered = sorted(ms)
    return {"p50": round(statistics.median(ordered), 3), "p95": round(ordered[int(len(ordered) * 0.95)], 3)}


async def writing() -> dict[str, Any]:
    """Measure awaited, bulk and background writes, without embeddings."""
    figures: dict[str, Any] = {}
    for durability in ("process", "disk"):
        async with Memory.open(":memory:", embedder=None, settings=Settings(durability=durability)) as memory:
            texts = list(talk(1_000))
            spent = []
            for text in texts:
                started = time.perf_counter()
                await memory.add(text, session="s")
                spent.append((time.perf_counter() - started) * 1_000)
            figures[f"add_awaited_ms_{durability}"] = quantiles(spent)
    async with Memory.open(":memory:", embedder=None, settings=FAST) as memory:
        spent = []
        for text in talk(2_000):
            started = time.perf_counter()
            memory.add_nowait(text, session="s")
            spent.append((time.perf_counter() - started) * 1_000)
        await memory.settle()
        figures["add_nowait_ms"] = quantiles(spent)
    rates = []
    for _ in range(3):
        async with Memory.open(":memory:", embedder=None, settings=FAST) as memory:
            messages = [Message(text=text, session=f"s{n // 50}", speaker="Ann") for n, text in enumerate(talk(20_000))]
            started = time.perf_counter()
            await memory.add_many(messages)
            rates.append(20_000 / (time.perf_counter() - started))
    figures["add_many_per_s"] = round(statistics.median(rates))
    return figures


def importing() -> dict[str, Any]:
    """Return the median of nine times of `import ricordo` in a fresh process, in milliseconds."""
    code = "import time; t = time.perf_counter(); import ricordo; print((time.perf_counter() - t) * 1000)"
    spent = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(9)
    ]
    return {"import_ms": round(statistics.median(spent), 1)}


async def fill(path: Path, nodes: int) -> dict[str, Any]:
    """Fill a store with a number of turns: 99 % of one owner, 1 % of another."""
    started = time.perf_counter()
    async with Memory.open(path, embedder="hashing", settings=FAST) as memory:
        small = memory.scoped(Scope(owner="small"))
        batch = 20_000
        for start in range(0, nodes, batch):
            turns = [
                Message(text=text, session=f"s{(start + n) // 40}", speaker="Ann" if n % 2 else "Bob")
                for n, text in enumerate(talk(min(batch, nodes - start), seed=start))
            ]
            await memory.add_many(turns[len(turns) // 100 :])
            await small.add_many(turns[: len(turns) // 100])
            sys.stderr.write(f"\r{start + len(turns):,} of {nodes:,}")
        added = time.perf_counter() - started
        await memory.settle()
    sys.stderr.write("\n")
    return {
        "add_and_embed_per_s": round(nodes / (time.perf_counter() - started)),
        "added_after_s": round(added, 1),
        "disk_mb": round(path.stat().st_size / 1e6, 1),
    }


async def opening(path: Path) -> dict[str, Any]:
    """Measure in a fresh process: opening, the first search, memory, and many searches without embedding."""
    asked = questions()
    started = time.perf_counter()
    async with Memory.open(path, embedder="hashing", settings=FAST) as memory:
        opened = time.perf_counter()
        await memory.search(asked[0])
        first = time.perf_counter()
        figures: dict[str, Any] = {
            "open_ms": round((opened - started) * 1e3, 1),
            "open_and_first_search_ms": round((first - started) * 1e3, 1),
            "anonymous_mb": anonymous_mb(),
        }
    from known_questions import (
        KnownQuestions,
    )  # imported here, because it imports numpy, which opening a store does not need

    async with Memory.open(path, embedder=await KnownQuestions.of(asked), settings=FAST) as memory:
        small = memory.scoped(Scope(owner="small"))
        for name, asking, conditions in (
            ("search_ms", memory, {}),
            ("search_session_ms", memory, {"session": "s3"}),
            ("search_small_owner_ms", small, {}),
        ):
            spent = []
            for question in asked:
                begun = time.perf_counter()
                await asking.search(question, **conditions)  # type: ignore[arg-type]
                spent.append((time.perf_counter() - begun) * 1e3)
            figures[name] = quantiles(spent)
    return figures


def anonymous_mb() -> float:
    """Return the private memory of the process in MB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return round(int(line.split()[1]) / 1e3, 1)
    return -1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "speed.json")
    parser.add_argument("--opening", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.opening:
        print(json.dumps(asyncio.run(opening(options.opening))))
        return
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    report: dict[str, Any] = {"machine": machine, **importing(), "writing": asyncio.run(writing()), "scale": {}}
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "big.db"
            figures = asyncio.run(fill(path, nodes))
            command = [sys.executable, __file__, "--opening", str(path)]
            runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
            figures |= sorted(runs, key=lambda run: run["open_and_first_search_ms"])[1]
            report["scale"][str(nodes)] = figures
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
