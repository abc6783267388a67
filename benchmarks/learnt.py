"""List statements that the rules learn from conversations, each with its message, to be read and judged.

    python -m benchmarks.learnt FILE.jsonl… [--sample 200] [--seed 1]

The conversations are read without a language model, one memory each, and the statements are drawn at random. A
statement is right if it is about the right person, and if it would be true when told to a stranger who knows nothing
of the conversation. That is for a person to judge: the counts in the result file are entered by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.search_systems import message

from ricordo import Memory, Node, Settings

Row = Mapping[str, Any]


class Learnt(NamedTuple):
    """A statement, the message it was learnt from, and the message before that."""

    source: str
    fact: Node
    said: str
    before: str


def conversations(files: Sequence[Path]) -> dict[str, list[Row]]:
    """Return the turns of each conversation, in order."""
    found: dict[str, list[Row]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["kind"] == "turn":
                found.setdefault(f"{file.stem} {row['conv']}", []).append(row)
    return found


async def learnt(source: str, turns: Sequence[Row]) -> list[Learnt]:
    """Return what the rules learn from a conversation."""
    async with Memory.open(":memory:", embedder=None, settings=Settings(durability="process")) as memory:
        ids = await memory.add_many([message(dict(row)) for row in turns])
        await memory.consolidate()
        place = {node_id: number for number, node_id in enumerate(ids)}
        found = []
        for kind in ("semantic", "opinion", "procedural"):
            async for fact in _all(memory, kind):
                (evidence, *_) = [node for node in (await memory.explain(fact.id)).sources if node.id in place]
                number = place[evidence.id]
                before = turns[number - 1] if number else {"speaker": "", "text": ""}
                told = f"{turns[number]['speaker']}: {turns[number]['text']}"
                found.append(Learnt(source, fact, told, f"{before['speaker']}: {before['text']}"))
        return found


async def _all(memory: Memory, kind: str) -> Any:
    page = await memory.list(type=kind, limit=1_000)
    for node in page.nodes:
        yield node


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found: list[Learnt] = []
    for source, turns in conversations(given.files).items():
        found += asyncio.run(learnt(source, turns))
    counts: dict[str, int] = {}
    for each in found:
        name = each.source.split()[0]
        counts[name] = counts.get(name, 0) + 1
    print(f"{len(found)} statements: {json.dumps(counts)}")
    found.sort(key=lambda each: (each.source, each.fact.content))
    drawn = random.Random(given.seed).sample(found, min(given.sample, len(found)))
    for number, each in enumerate(drawn, start=1):
        about = ", ".join(each.fact.about) or "-"
        print(f"\n{number}. [{each.source}] about: {about} | {each.fact.category} | {each.fact.content}")
        print(f"   before: {' '.join(each.before.split())[:110]}\n   said: {_around(each)}")


def _around(each: Learnt) -> str:
    """Return the part of a message around a statement."""
    said = " ".join(each.said.split())
    place = max(said.casefold().find(each.fact.content.casefold()[:40]), 0)
    return said[max(0, place - 100) : place + len(each.fact.content) + 60]


if __name__ == "__main__":
    main()
