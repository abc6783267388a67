"""What a page of 30 messages costs a model, in and out, and what a model that thinks costs a search.

    python benchmarks/consolidation_cost.py [--out FILE]

Tokens are estimated as everywhere in Ricordo (a quarter of the Latin characters). In: the demo's conversation in pages
of 30, and the form of the answer once, as the schema a server is given. Out: a full answer of the demo's evening
(`dinner.json`, four messages of which each says something), and what the rules find on each page of the demo's
conversation, in the form a model answers in, with summary and names. Then whole runs, verifying questions included.

The searches: rounds of 25, one while nothing else goes on, one while a consolidation waits for its model, in turn; the
figure is the median of a round, the ratio that of the medians of all.
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
from ricordo.consolidation.pages import Page, pages
from ricordo.consolidation.plain import proposed
from ricordo.consolidation.prompts import extraction
from ricordo.consolidation.proposal import Proposal
from ricordo.demo import conversation
from ricordo.demo.learning import script
from ricordo.language import ScriptedModel
from ricordo.language.asking import as_text, schema_of
from ricordo.ports import Completion, Turn
from ricordo.retrieval.context import EstimatedTokens

_ROUNDS, _SEARCHES = 12, 25
_QUESTION = "What does Jonas like to drink best these days?"


class Slow:
    """Thinks until it is told to answer, and finds nothing."""

    name = "slow"
    context_tokens = 16_000

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        self.asked.set()
        await self.go_on.wait()
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
    slow = Slow()
    async with Memory.open(":memory:", model=slow, settings=Settings(durability="process")) as memory:
        with conversation() as path:
            await memory.import_(path)
        await memory.settle()
        episodes = sorted((await memory.list(type="episodic", limit=1_000)).nodes, key=lambda node: node.event_time)
        tokens = EstimatedTokens()
        full = [page for page in pages(episodes, room=12_000, tokens=tokens) if len(page.lines) == 30]
        return {**cost(full), **await whole(full), **await delay(memory, slow)}


def cost(full: Sequence[Page]) -> dict[str, Any]:
    """Of the extracting question alone."""
    tokens = EstimatedTokens()
    prompts = [
        sum(tokens.count(turn.text) for turn in extraction(page.lines, before=page.before, day=page.day))
        for page in full
    ]
    evening = script()["conversations"][0]["proposal"]
    answers = [tokens.count(answer(page)) for page in full]
    return {
        "pages of 30 messages": len(full), "prompt tokens, mean": round(statistics.fmean(prompts)),
        "form tokens": tokens.count(as_text(schema_of(Proposal))),
        "answer tokens, the demo's evening of 4 messages and 5 facts": tokens.count(as_text(evening)),
        "answer tokens, what the rules find, mean": round(statistics.fmean(answers)),
        "answer tokens, most": max(answers),
    }  # fmt: skip


def answer(page: Page) -> str:
    """What the rules find on a page, as a model would say it."""
    found = proposed(page).model_dump()
    names = sorted({node.speaker for node in page.episodes.values() if node.speaker and node.role == "user"})
    entities = [{"name": name, "type": "person", "aliases": [], "relation": "", "evidence": ["e1"]} for name in names]
    summary = "They spoke of plans for the weekend, of friends, and of what is still to be done in the house."
    return as_text({**found, "entities": entities, "summary": summary})


async def whole(full: Sequence[Page]) -> dict[str, Any]:
    """What a whole consolidation of each page takes, verifying questions included, on a store that grows."""
    spent: list[tuple[int, int]] = []
    by_line = {page.lines[0].partition(" ")[2]: answer(page) for page in full}

    def says(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if schema["title"] == "Verdicts":
            return {"verdicts": []}
        return next(said for line, said in by_line.items() if f"e1 {line}" in turns[-1].text)

    model = ScriptedModel(says, context_tokens=16_000)
    async with Memory.open(":memory:", model=model, settings=Settings(durability="process")) as memory:
        for number, page in enumerate(full):
            for node in page.episodes.values():
                await memory.add(
                    node.content, role=node.role, speaker=node.speaker, session=f"p{number}", at=node.event_time
                )
            await memory.settle()
            done = await memory.consolidate(f"p{number}")
            spent.append((done.tokens_in, done.tokens_out))
            await memory.settle()
    return {
        "tokens in of a run without the form, first page": spent[0][0],
        "tokens in of a run without the form, last page": spent[-1][0],
        "tokens in of a run without the form, mean": round(statistics.fmean(one for one, _ in spent)),
        "tokens out of a run, mean": round(statistics.fmean(other for _, other in spent)),
    }  # fmt: skip


async def delay(memory: Memory, slow: Slow) -> dict[str, Any]:
    """Searches while nothing goes on, and while a consolidation waits, in turn."""
    idle, busy = list[float](), list[float]()
    await searches(memory)
    for _ in range(_ROUNDS):
        idle += await searches(memory)
        slow.asked.clear()
        thinking = asyncio.ensure_future(memory.consolidate(dry_run=True))
        await slow.asked.wait()
        busy += await searches(memory)
        assert not thinking.done()
        thinking.cancel()
        await asyncio.wait([thinking])
    before, meanwhile = statistics.median(idle), statistics.median(busy)
    return {
        "rounds": _ROUNDS, "search p50 idle, ms": round(before, 2),
        "search p50 while a model thinks, ms": round(meanwhile, 2), "ratio": round(meanwhile / before, 3),
    }  # fmt: skip


async def searches(memory: Memory) -> list[float]:
    """The times of a round of searches in milliseconds."""
    times = []
    for _ in range(_SEARCHES):
        started = time.perf_counter()
        await memory.search(_QUESTION)
        times.append((time.perf_counter() - started) * 1_000)
    return times


if __name__ == "__main__":
    main()
