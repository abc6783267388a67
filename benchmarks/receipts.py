"""How much longer a search takes that leaves a receipt: the same questions with and without, in turn, in one process.

    python benchmarks/receipts.py [--memories 10000] [--rounds 400] [--out FILE]

Prints the medians in milliseconds and the median of the differences of neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from ricordo import Memory, Message, Settings

_WORDS = (
    "walked",
    "cooked",
    "painted",
    "met",
    "bought",
    "lost",
    "found",
    "planned",
    "visited",
    "read",
    "wrote",
    "sold",
)
_THINGS = ("tea", "jazz", "chess", "pears", "cello", "boat", "garden", "letter", "train", "market", "river", "winter")
_PEOPLE = ("Anna", "Bob", "Carla", "Dora", "Emil")


async def measured(memories: int, rounds: int) -> dict[str, float]:
    random = Random(7)
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(durability="process")
        async with Memory.open(Path(place) / "me.db", embedder="hashing", settings=settings) as memory:
            texts = [
                f"{random.choice(_PEOPLE)} {random.choice(_WORDS)} the {random.choice(_THINGS)} with "
                f"{random.choice(_PEOPLE)} on day {number} by the {random.choice(_THINGS)}"
                for number in range(memories)
            ]
            await memory.add_many([Message(text=text, session=f"s{n // 40}") for n, text in enumerate(texts)])
            await memory.settle()
            questions = [f"when did {random.choice(_PEOPLE)} see the {random.choice(_THINGS)}" for _ in range(rounds)]
            for question in questions[:20]:
                await memory.search(question)
            taken: dict[bool, list[float]] = {False: [], True: []}
            for number, question in enumerate(questions):
                for wanted in (False, True) if number % 2 else (True, False):
                    started = time.perf_counter()
                    await memory.search(question, receipt=wanted)
                    taken[wanted].append((time.perf_counter() - started) * 1_000)
    more = [one - other for one, other in zip(taken[True], taken[False], strict=True)]
    return {
        "memories": memories,
        "rounds": rounds,
        "without_ms": round(statistics.median(taken[False]), 3),
        "with_ms": round(statistics.median(taken[True]), 3),
        "more_ms": round(statistics.median(more), 3),
        "ratio": round(statistics.median(taken[True]) / statistics.median(taken[False]), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = asyncio.run(measured(given.memories, given.rounds))
    sys.stdout.write(json.dumps(found) + "\n")
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
