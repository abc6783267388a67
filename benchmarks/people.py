"""Measure the profile of an entity with very many facts, and a search through a dense graph of causes.

    python benchmarks/people.py [--facts 100000] [--out benchmarks/results/people.json]

Median and maximum of fifteen calls in milliseconds, each followed by the time of a purely arithmetic loop, to reveal a
slow machine. The dense graph: 100 facts, each a cause of every other, and a complex question, whose causes are followed
four steps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.quality import machine

import ricordo
from ricordo import Fact, Scope, Settings
from ricordo.model import Change, Edge, Reason
from ricordo.sync import Memory

BATCH = 10_000
KNOT = 100
TIMES = 15
QUESTION = "Why did every heron and all the omens and each of the birds come?"
SETTINGS = Settings(durability="process", max_text_chars=10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {"facts": options.facts, "machine": machine()}
    figures |= _somebody(options.facts)
    figures["causes of a knot, in a search"] = asyncio.run(_knot())
    figures["a loop of arithmetic"] = _figures([_timed(lambda: sum(range(300_000))) for _ in range(TIMES)])
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _somebody(facts: int) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "me.db", embedder=None, settings=SETTINGS) as memory,
    ):
        _fill(memory, facts)
        memory.settle()
        works: dict[str, Callable[[], object]] = {
            f"entity({name!r})": lambda name=name: memory.entity(name)  # type: ignore[misc]
            for name in ("Sarah", "my wife", "Сарой", "Tom")
        }
        works["people()"] = memory.people
        works["remember(about=['Sarah'])"] = lambda: memory.remember("She likes rain", about=["Sarah"])
        works["list(entity='Sarah')"] = lambda: memory.list(entity="Sarah")
        return {what: _figures([_timed(work) for _ in range(TIMES)]) for what, work in works.items()} | {
            "merge": _figures([_timed(lambda: memory.merge("Tom", "Sarah"))]),
            "entity('Sarah') merged": _figures([_timed(lambda: memory.entity("Sarah")) for _ in range(TIMES)]),
            "split": _figures([_timed(lambda: memory.split("Tom", ["Sarah"]))]),
        }


def _fill(memory: Memory, facts: int) -> None:
    memory.add("My wife is Sarah")
    memory.remember("Tom is here", about=["Tom"])
    for start in range(0, facts, BATCH):
        memory.remember_many(
            [
                Fact(content=f"Sarah did thing {number} with Person{number % 300}", about=["Sarah"])
                for number in range(start, min(start + BATCH, facts))
            ]
        )
    for number in range(300):
        memory.add_entity(f"Person{number}")


async def _knot() -> dict[str, float]:
    async with ricordo.Memory.open(":memory:", embedder=None, settings=SETTINGS) as memory:
        nodes = [await memory.remember(f"Omen {number} of the heron") for number in range(KNOT)]
        links = tuple(
            Edge(source=one.id, target=other.id, type="causal") for one in nodes for other in nodes if one is not other
        )
        why = Reason(actor="me", origin="benchmark", reason="benchmark")
        # Internal: the public API does not allow ten thousand causes.
        await memory._opened.store.write(
            lambda _: (Change(link=links), None), scope=Scope(owner="me"), reason=why, at=nodes[0].created_at
        )
        spent = []
        for _ in range(TIMES):
            trace = (await memory.search(QUESTION, trace=True)).trace
            assert trace is not None
            spent.append(trace.timings_ms["causal"])
        return _figures(spent)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1_000


def _figures(ms: list[float]) -> dict[str, float]:
    return {"median_ms": round(median(ms), 2), "worst_ms": round(max(ms), 2)}


if __name__ == "__main__":
    main()
