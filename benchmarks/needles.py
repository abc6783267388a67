"""Measure whether a sentence in the middle of a very long message is found and shown.

    python benchmarks/needles.py beam.jsonl [--embedder default|none|...] [--out benchmarks/results/needles.json]

benchmarks/data/needles.jsonl has 50 sentences in three languages with a question each, written without sight of
Ricordo's rules. Each sentence is put into the middle of a text of 35,000 characters, which is put together from long
messages of the file (in the form that benchmarks/quality.py describes). All 50 are in one store. A needle is found
if its text is the first hit, and shown if it is in the excerpt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quality import machine
from ricordo import Memory, Message, Settings

NEEDLES = Path(__file__).parent / "data" / "needles.jsonl"
CHARACTERS = 35_000
LIMIT = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hay", type=Path)
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    needles = [json.loads(line) for line in NEEDLES.read_text("utf-8").splitlines()]
    report = asyncio.run(run(needles, messages(arguments.hay, len(needles)), arguments.embedder))
    print(json.dumps(report, indent=1, ensure_ascii=False))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def messages(path: Path, count: int) -> Iterator[tuple[str, str]]:
    """Yield what stands before and after each needle, together `CHARACTERS` long."""
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    texts = iter([row["text"] for row in rows if row["kind"] == "turn" and len(row["text"]) > 1_000])
    for _ in range(count):
        halves = [""] * 2
        for half in range(2):
            while len(halves[half]) < CHARACTERS // 2:
                halves[half] += next(texts) + "\n\n"
        yield halves[0][-CHARACTERS // 2 :], halves[1][: CHARACTERS // 2]


async def run(needles: Sequence[dict[str, str]], hay: Iterator[tuple[str, str]], embedder: str) -> dict[str, Any]:
    """Return how many needles are first, and how many of those are the excerpt; and those that are not."""
    settings = Settings(durability="process", search_deadline_ms=60_000)
    async with Memory.open(":memory:", embedder=None if embedder == "none" else embedder, settings=settings) as memory:
        began = time.perf_counter()
        texts = [f"{before}\n{needle['needle']}\n{after}" for needle, (before, after) in zip(needles, hay, strict=True)]
        added = await memory.add_many([Message(text=text) for text in texts])
        await memory.settle(3_600)
        seconds = time.perf_counter() - began
        found = [await place_of(memory, needle, id) for needle, id in zip(needles, added, strict=True)]
    return {
        "embedder": embedder,
        "machine": machine(),
        "messages": len(texts),
        "characters": CHARACTERS,
        "seconds_to_store": round(seconds, 1),
        "first": sum(place == 1 for place, _ in found),
        "excerpt": sum(place == 1 and is_shown for place, is_shown in found),
        "missed": [
            {**needle, "place": place, "excerpt": is_shown}
            for needle, (place, is_shown) in zip(needles, found, strict=True)
            if place != 1 or not is_shown
        ],
    }


async def place_of(memory: Memory, needle: dict[str, str], wanted: str) -> tuple[int | None, bool]:
    """Return the place of a needle's message among the hits, and whether its excerpt shows the needle."""
    hits = (await memory.search(needle["question"], limit=LIMIT)).hits
    place = next((place for place, hit in enumerate(hits, 1) if hit.id == wanted), None)
    return place, place is not None and needle["needle"] in (hits[place - 1].excerpt or "")


if __name__ == "__main__":
    main()
