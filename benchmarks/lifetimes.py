"""Measure how long facts are kept by what they say: do lasting ones stay, passing ones go, dated ones wait?

    python benchmarks/lifetimes.py [FILE.jsonl ...] [--embedder default] [--out benchmarks/results/lifetimes.json]

A line has an id, a language, a text, the day it was `said` (2 November 2026 by default), a kind and, for dated ones,
the last day that it speaks of (`until`). The texts are remembered through the public API, without a model, in stores
whose clock is moved on; upkeep runs after 60 days, in the evening of `until`, and after two years. Reported by
language: lasting facts that expired, passing ones still there after 60 days, dated ones gone before their date.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from ricordo import Memory, Settings

DATA = Path(__file__).parent / "data" / "knowledge" / "lifetimes.jsonl"
SAID = datetime(2026, 11, 2, 10, tzinfo=UTC)
PASSED = timedelta(days=60)
LATEST = timedelta(days=730)


@dataclass(slots=True)
class MovableClock:
    """A clock that stands still until it is set."""

    at: datetime

    def now(self) -> int:
        return round(self.at.timestamp() * 1_000)


async def measure(cases: Iterable[dict[str, Any]], *, embedder: str | None = None) -> dict[str, dict[str, int]]:
    """Return, by language, how many facts of each kind there are, and how many of them are wrong."""
    counts: dict[str, Counter[str]] = {}
    looked_at: dict[tuple[datetime, datetime], list[dict[str, Any]]] = {}
    for case in cases:
        looked_at.setdefault((_said(case), _looked_at(case)), []).append(case)
    for (said, at), together in looked_at.items():
        expired = await _expired([case["text"] for case in together], said, at, embedder=embedder)
        for case, is_expired in zip(together, expired, strict=True):
            found = counts.setdefault(case["language"], Counter())
            found[case["kind"]] += 1
            found[f"{case['kind']} wrong"] += is_expired != (case["kind"] == "passing")
    return {language: dict(found) for language, found in sorted(counts.items())}


def _said(case: dict[str, Any]) -> datetime:
    return datetime.combine(date.fromisoformat(case["said"]), SAID.timetz()) if "said" in case else SAID


def _looked_at(case: dict[str, Any]) -> datetime:
    if case["kind"] == "dated":
        return datetime.combine(date.fromisoformat(case["until"]), time(20), tzinfo=UTC)
    return _said(case) + (LATEST if case["kind"] == "lasting" else PASSED)


async def _expired(texts: Sequence[str], said: datetime, at: datetime, *, embedder: str | None) -> list[bool]:
    """Return which facts have expired when upkeep runs at a time."""
    clock = MovableClock(said)
    async with Memory.open(":memory:", embedder=embedder, clock=clock, settings=Settings(time_zone="UTC")) as memory:
        nodes = [await memory.remember(text) for text in texts]
        await memory.settle()
        clock.at = at
        await memory.maintain()
        return [(await memory.get(node.id)).closed_reason == "expired" for node in nodes]


def read(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the cases of some files."""
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", default=[DATA])
    parser.add_argument("--embedder", help='"default": what passes by its meaning is found, too')
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report = asyncio.run(measure(read(arguments.files), embedder=arguments.embedder))
    text = json.dumps(report, indent=2) + "\n"
    print(text, end="")
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
