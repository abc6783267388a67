"""List which people of public conversations are proposed as the same person, to judge each proposal by eye.

Every conversation is one owner's: its messages are added with their speakers, and each is remembered as a fact about
every capitalised name in it, as a careless language model would do. So the store knows far more people and things than
from messages alone, and many that are neither. With --together, all conversations are one owner's, so that strangers
who share a first name meet.

    python benchmarks/merges.py locomo.jsonl realtalk.jsonl --together --out FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections import defaultdict
from pathlib import Path

from ricordo import Fact, Memory, Message


async def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("files", nargs="+", type=Path)
    given.add_argument("--together", action="store_true")
    given.add_argument("--out", type=Path)
    args = given.parse_args()
    turns: defaultdict[str, list[dict]] = defaultdict(list)
    for file in args.files:
        for line in file.read_text("utf-8").splitlines():
            if (row := json.loads(line)).get("kind") == "turn":
                turns["all" if args.together else row["conv"]].append(row)
    results = [await measure(name, rows) for name, rows in turns.items()]
    report = {"files": [file.name for file in args.files], "together": args.together, "conversations": results}
    text = json.dumps(report, ensure_ascii=False, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", "utf-8")


def names_in(text: str) -> list[str]:
    """Return the capitalised words within sentences, joined where they follow each other."""
    found = re.findall(r"(?<=[a-z,] )[A-Z][a-z’'-]{2,}(?: [A-Z][a-z’'-]{2,}){0,2}", text)
    return list(dict.fromkeys(name.removesuffix("'s").removesuffix("’s") for name in found))[:10]


async def measure(name: str, rows: list[dict]) -> dict:
    """Return the proposals for one owner, with the processor time to find them."""
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.add_many(
            [Message(text=row["text"], speaker=row["speaker"], session=row["session"]) for row in rows]
        )
        facts = [Fact(content=row["text"], about=names) for row in rows if (names := names_in(row["text"]))]
        for start in range(0, len(facts), 500):
            await memory.remember_many(facts[start : start + 500])
        await memory.settle()
        began = time.process_time()
        found = await memory.review(1_000, kind="merge")
        took = time.process_time() - began
        people = await memory.people(limit=1_000)
        return {
            "conversation": name,
            "messages": len(rows),
            "people": sorted(each.name for each in people),
            "proposals": [
                {
                    "names": [each.name for each in review.entities],
                    "reasons": review.reasons,
                    "evidence": [node.content[:200] for node in review.evidence],
                }
                for review in found
            ],
            "processor_ms": round(took * 1000, 1),
        }


if __name__ == "__main__":
    asyncio.run(main())
