"""Measure what becomes of a fact that a language model says is out of date.

    python -m benchmarks.contradictions [FILE.jsonl] [--half first|second] [--out FILE.json] [--show]

Each case is an old fact, a message that contradicts it, and what a model learns from that message. The old fact has one
of three origins: a model that names its slot, a model that names none, and `remember` in the first person. The model
is scripted, and says `contradicts` to each pair it is shown. The newer fact wins if it stands first for the question
and the old one is closed. Only the public API is used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ricordo import Memory, Scope, Settings
from ricordo.language import ScriptedModel
from ricordo.ports import Turn

DATA = Path(__file__).parent / "data" / "knowledge" / "contradictions.jsonl"
START = datetime(2026, 9, 7, 10, tzinfo=UTC)
ORIGINS = ("model, slot", "model, no slot", "remember")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a pair: whether the model was asked, the newer fact stands first, and the old one ended."""

    row: Row
    origin: str
    was_shown: bool
    is_first: bool
    is_closed: bool
    in_review: bool

    @property
    def wins(self) -> bool:
        return self.is_first and self.is_closed


class _Script:
    """The model: it proposes one fact, confirms it, and says that it contradicts what it is shown beside it."""

    def __init__(self) -> None:
        self.fact: dict[str, Any] = {}
        self.shown: list[str] = []

    def answer(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if schema["title"] == "Proposal":
            return {"facts": [self.fact], "entities": [], "relations": [], "causes": [], "summary": ""}
        if schema["title"] == "Checks":
            return {"checks": [{"claim": "c1", "is": "stated", "confidence": 0.95}]}
        text = turns[-1].text
        self.shown = re.findall(r"^p\d+ old: (.*)$", text, flags=re.MULTILINE)
        pairs = re.findall(r"^(p\d+) old: ", text, flags=re.MULTILINE)
        return {"verdicts": [{"pair": pair, "is": "contradicts", "confidence": 0.95} for pair in pairs]}

    def propose(self, row: Row, text: str, slot: str) -> None:
        self.shown = []
        self.fact = {"text": text, "kind": "fact", "category": "knowledge", "about": row["about"], "slot": slot}
        self.fact |= {"evidence": ["e1"], "said": True, "confidence": 0.95}


async def outcomes(rows: Sequence[Row], origin: str, *, embedder: str | None = "default") -> list[Outcome]:
    """Return what becomes of each pair whose old fact has this origin."""
    script, clock = _Script(), _Clock()
    settings = Settings(durability="process")
    model = ScriptedModel(script.answer)
    async with Memory.open(":memory:", embedder=embedder, model=model, settings=settings, clock=clock) as memory:
        return [await _outcome(memory.scoped(Scope(owner=row["id"])), script, clock, row, origin) for row in rows]


class _Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        return int(self.at.timestamp() * 1_000)


async def _outcome(memory: Memory, script: _Script, clock: _Clock, row: Row, origin: str) -> Outcome:
    clock.at = START
    if origin == "remember":
        old = row["said"]
        await memory.remember(old)
    else:
        old = row["old"]
        script.propose(row, old, row["slot"] if origin == "model, slot" else "")
        await _tell(memory, row["said"], "then")
    clock.at += timedelta(days=21)
    script.propose(row, row["new"], "" if origin == "model, no slot" else row["new_slot"])
    await _tell(memory, row["message"], "now")
    clock.at += timedelta(hours=1)
    hits = [hit.content for hit in (await memory.search(row["question"], type="semantic")).hits]
    live = [node.content for node in (await memory.list(type="semantic")).nodes]
    pairs = [(each.newer.content, each.older.content) for each in await memory.review() if each.older]
    return Outcome(
        row=row,
        origin=origin,
        was_shown=old in script.shown,
        is_first=hits[:1] == [row["new"]],
        is_closed=old not in live,
        in_review=(row["new"], old) in pairs,
    )


async def _tell(memory: Memory, text: str, session: str) -> None:
    await memory.add(text, session=session)
    await memory.consolidate(session)


def report(found: Sequence[Outcome]) -> dict[str, int]:
    """Return the figures of one origin."""
    return {
        "pairs": len(found),
        "newer wins": sum(each.wins for each in found),
        "newer first": sum(each.is_first for each in found),
        "old closed": sum(each.is_closed for each in found),
        "in review": sum(each.in_review for each in found),
        "shown to the model": sum(each.was_shown for each in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=DATA)
    parser.add_argument("--half", choices=("first", "second"), help="default: both")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--out", type=Path, help="write the figures here, too")
    parser.add_argument("--show", action="store_true", help="list the pairs in which the newer fact does not win")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    figures: dict[str, dict[str, dict[str, int]]] = {}
    for half in [given.half] if given.half else ["first", "second"]:
        for origin in ORIGINS:
            chosen = [row for row in rows if row["half"] == half]
            found = asyncio.run(outcomes(chosen, origin, embedder=None if given.embedder == "none" else given.embedder))
            figures.setdefault(half, {})[origin] = report(found)
            print(half, origin, json.dumps(report(found)))
            for each in (each for each in found if given.show and not each.wins):
                said = (
                    f"shown {each.was_shown}, first {each.is_first}, closed {each.is_closed}, review {each.in_review}"
                )
                print(f"  {each.row['id']} {each.row['said']} / {each.row['new']}: {said}")
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
