"""Measure the tokens of a page of 30 messages, and the effect of a running consolidation on search.

    pip install --group benchmarks
    python benchmarks/consolidation_cost.py [--out FILE]

Tokens are counted by a real tokenizer, o200k, and by Ricordo's own estimate (a quarter of the Latin characters). The
demo conversation is consolidated page by page, 30 messages each. The model extracts one fact from every third message,
in the message's own words, with the names and a summary, and calls no facts the same. All prompts and answers are
counted, including the verifying call and both JSON forms. Then the same page is consolidated in stores with more and
more similar memories.

Searches run in rounds of 25, alternating: one round idle, one while a consolidation waits for its model. The figure is
the median of a round, the ratio that of the medians of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import toktok

from ricordo import Fact, Memory, Settings
from ricordo.consolidation.prompts import Page, extraction, pages
from ricordo.consolidation.proposed import Proposal
from ricordo.interfaces.demo import conversation
from ricordo.language import ScriptedModel
from ricordo.models.language import schema_of
from ricordo.models.language.servers import as_text
from ricordo.ports import Completion, Turn
from ricordo.retrieval.context import EstimatedTokens

_ENCODING = "o200k_base"
_LINE = re.compile(r"^(e\d+) ([^:]+): (.*)$", re.MULTILINE)
_ROUNDS, _SEARCHES = 12, 25
_QUESTION = "What does Jonas like to drink best these days?"


class Slow:
    """A model that waits until it may answer, and finds nothing."""

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
        found = pages(episodes, room=12_000, tokens=EstimatedTokens())
        full = [page for page in found if len(page.lines) == 30]
        by_store = {str(held): await on_store(full, held) for held in (0, 1_000, 10_000)}
        return {
            "tokenizer": _ENCODING,
            "pages of 30 messages": len(full),
            **parts(full[0]),
            **await whole(full),
            "tokens in, by memories in the store": by_store,
            **await delay(memory, slow),
        }


def tokens_of(*texts: str) -> int:
    return sum(toktok.batch_count(texts, _ENCODING))


def parts(page: Page) -> dict[str, Any]:
    """Return the parts of the first prompt in tokens, counted and estimated."""
    asked, form = texts_of(extraction(page.lines, before=page.before, day=page.day)), as_text(schema_of(Proposal))
    named = {"instructions": asked[:1], "messages": asked[1:], "form": [form]}
    estimated = EstimatedTokens()
    return {
        "first question": {name: tokens_of(*texts) for name, texts in named.items()},
        "first question, estimated": {name: sum(map(estimated.count, texts)) for name, texts in named.items()},
    }


def texts_of(turns: Sequence[Turn]) -> list[str]:
    return [turn.text for turn in turns]


class Counted:
    """A model that extracts a fact from every third message and counts its tokens with a real tokenizer."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._answer, context_tokens=16_000)
        self.questions = 0

    def _answer(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        self.questions += 1
        said = as_text({"verdicts": []} if schema["title"] == "Verdicts" else kept(turns[-1].text))
        return Completion(text=said, tokens_in=tokens_of(*texts_of(turns), as_text(schema)), tokens_out=tokens_of(said))


def kept(shown: str) -> Mapping[str, Any]:
    lines = _LINE.findall(shown)
    facts = [
        {
            "text": said,
            "kind": "fact",
            "category": "knowledge",
            "about": [speaker],
            "slot": "",
            "evidence": [handle],
            "said": True,
            "confidence": 0.9,
        }
        for handle, speaker, said in lines[::3]
    ]
    entities = [
        {"name": name, "type": "person", "aliases": [], "relation": "", "evidence": ["e1"]}
        for name in sorted({speaker for _, speaker, _ in lines})
    ]
    summary = "They spoke of plans for the weekend, of friends, and of what is still to be done in the house."
    return {"facts": facts, "entities": entities, "relations": [], "causes": [], "summary": summary}


async def whole(full: Sequence[Page]) -> dict[str, Any]:
    """Consolidate the pages one after another in one store; return the tokens of each."""
    counted = Counted()
    spent = []
    async with Memory.open(":memory:", model=counted.model, settings=Settings(durability="process")) as memory:
        for number, page in enumerate(full):
            spent.append(await consolidated(memory, page, f"p{number}"))
    return {
        "questions of a run, mean": counted.questions / len(full),
        "tokens in of a run, first page": spent[0][0],
        "tokens in of a run, last page": spent[-1][0],
        "tokens in of a run, mean": round(statistics.fmean(one for one, _ in spent)),
        "tokens out of a run, mean": round(statistics.fmean(other for _, other in spent)),
    }


async def on_store(full: Sequence[Page], held: int) -> int:
    """Return the prompt tokens of the first page in a store with a number of similar facts."""
    said = [node.content for page in full for node in page.episodes.values()]
    facts = [Fact(content=f"{text} ({number})") for number, text in zip(range(held), cycle(said), strict=False)]
    settings = Settings(durability="process")
    async with Memory.open(":memory:", embedder="hashing", model=Counted().model, settings=settings) as memory:
        await memory.remember_many(facts)
        await memory.settle()
        return (await consolidated(memory, full[0], "p"))[0]


async def consolidated(memory: Memory, page: Page, session: str) -> tuple[int, int]:
    """Return the tokens in and out of a run on one page."""
    for node in page.episodes.values():
        await memory.add(node.content, role=node.role, speaker=node.speaker, session=session, at=node.event_time)
    await memory.settle()
    done = await memory.consolidate(session)
    assert done.state == "done", done.reason
    await memory.settle()
    return done.tokens_in, done.tokens_out


async def delay(memory: Memory, slow: Slow) -> dict[str, Any]:
    """Alternate searches while idle and while a consolidation waits."""
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
        "rounds": _ROUNDS,
        "search p50 idle, ms": round(before, 2),
        "search p50 while a model thinks, ms": round(meanwhile, 2),
        "ratio": round(meanwhile / before, 3),
    }


async def searches(memory: Memory) -> list[float]:
    """Return the times of a round of searches in milliseconds."""
    times = []
    for _ in range(_SEARCHES):
        started = time.perf_counter()
        await memory.search(_QUESTION)
        times.append((time.perf_counter() - started) * 1_000)
    return times


if __name__ == "__main__":
    main()
