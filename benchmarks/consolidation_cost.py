"""What a page of 30 messages costs a model, and what a model that thinks costs a search.

    python benchmarks/consolidation_cost.py [--out FILE]

Tokens are estimated as everywhere in Ricordo (a quarter of the Latin characters), on the demo's conversation; the form
of the answer is counted once, as the schema a server is given. The model takes half a second for each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ricordo import Memory, Settings
from ricordo.consolidation.pages import pages
from ricordo.consolidation.prompts import extraction
from ricordo.consolidation.proposal import Proposal
from ricordo.demo import conversation
from ricordo.language.asking import as_text, schema_of
from ricordo.ports import Completion, Turn
from ricordo.retrieval.context import EstimatedTokens

_SEARCHES = 150


class Slow:
    """Thinks for half a second, and finds nothing."""

    name = "slow"
    context_tokens = 16_000

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        await asyncio.sleep(0.5)
        return Completion(text=json.dumps({"facts": [], "verdicts": []}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = asyncio.run(run())
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


async def run() -> dict[str, Any]:
    tokens = EstimatedTokens()
    async with Memory.open(":memory:", model=Slow(), settings=Settings(durability="process")) as memory:
        with conversation() as path:
            await memory.import_(path)
        await memory.settle()
        episodes = sorted((await memory.list(type="episodic", limit=1_000)).nodes, key=lambda node: node.event_time)
        shown = pages(episodes, room=12_000, tokens=tokens)
        full = [page for page in shown if len(page.lines) == 30]
        prompts = [
            sum(tokens.count(turn.text) for turn in extraction(page.lines, before=page.before, day=page.day))
            for page in full
        ]
        idle = await searches(memory)
        thinking = asyncio.ensure_future(memory.consolidate())
        await asyncio.sleep(0.05)
        busy = await searches(memory)
        was_thinking = not thinking.done()
        await thinking
    return {
        "pages of 30 messages": len(full), "prompt tokens, mean": round(statistics.fmean(prompts)),
        "form tokens": tokens.count(as_text(schema_of(Proposal))), "search p50 idle, ms": round(idle, 2),
        "search p50 while a model thinks, ms": round(busy, 2), "ratio": round(busy / idle, 3),
        "it thought all the while": was_thinking,
    }  # fmt: skip


async def searches(memory: Memory) -> float:
    """The median time of a search in milliseconds."""
    for _ in range(20):
        await memory.search("What does Jonas like to drink best these days?")
    times = []
    for _ in range(_SEARCHES):
        started = time.perf_counter()
        await memory.search("What does Jonas like to drink best these days?")
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
