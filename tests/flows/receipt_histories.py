"""Random histories with receipts: `python -m tests.flows.receipt_histories --histories 1000`.

In each, facts and messages are recorded, corrected, forgotten, undone and erased, and questions leave receipts. Some
receipts are then replayed: as of its commit each gives the same memories with the same shares, and if today's answer
differs, changes after the receipt are named. Nothing that was erased is in any receipt, nor in a byte of the file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from ricordo import ConflictError, Memory, Settings

_PEOPLE = ("Anna", "Bob", "Carla", "Dora")
_PLACES = ("Rome", "Milan", "Oslo", "Lima", "Kyoto")
_THINGS = ("tea", "jazz", "chess", "pears", "the cello")
_QUESTIONS = ("where does {} live", "what does {} like", "who met {}", "what about {} and tea")


async def history(seed: int, place: Path, *, steps: int) -> Counter[str]:
    """Live one history and check its receipts; return what was counted. Raises AssertionError."""
    random, told = Random(seed), Counter[str]()
    erased: list[str] = []
    file = place / f"{seed}.db"
    async with Memory.open(file, embedder="hashing", settings=Settings(durability="process")) as memory:
        for number in range(steps):
            await _step(memory, random, number, erased)
            if random.random() < 0.35:
                await memory.settle()
                await _ask(memory, random)
        await memory.settle()
        receipts = await memory.receipts(100)
        ids = {each.id for one in receipts for each in (*one.given, *one.left_out)}
        assert ids.isdisjoint(erased), (seed, "an erased id is in a receipt")
        for receipt in random.sample(receipts, min(3, len(receipts))):
            told["receipts"] += 1
            if receipt.question is None:
                told["question erased"] += 1
                continue
            found = await memory.replay_receipt(receipt.id)
            told["same as then"] += not found.differs_from_receipt
            told["different from then, with a reason"] += bool(found.differs_from_receipt and found.reasons)
            told["different today"] += bool(found.differs_today)
            assert not found.differs_from_receipt or found.commits or found.reasons, (seed, receipt.id)
            assert not found.differs_today or found.commits, (seed, receipt.id, "no change is named")
            assert all(each.seq > receipt.commit for each in found.commits), (seed, receipt.id)
    written = file.read_bytes()
    assert not [id_ for id_ in erased if id_.encode() in written], (seed, "an erased id is in the file")
    return told


async def _step(memory: Memory, random: Random, number: int, erased: list[str]) -> None:
    who, where, what = random.choice(_PEOPLE), random.choice(_PLACES), random.choice(_THINGS)
    live = [each.id for each in (await memory.list(limit=50)).nodes if each.type != "episodic"]
    kind = random.choice(("fact", "fact", "fact", "said", "said", "correct", "forget", "undo", "erase"))
    try:
        if kind == "fact" or not live:
            await memory.remember(random.choice((f"{who} lives in {where}", f"{who} likes {what}")), about=[who])
        elif kind == "said":
            await memory.add(f"I met {who} in {where}, number {number}", session=f"s{number % 3}")
        elif kind == "correct":
            await memory.correct(random.choice(live), f"{who} lives in {where} since {number}")
        elif kind == "forget":
            await memory.forget(random.choice(live))
        elif kind == "undo":
            await memory.undo((await memory.log(1))[0].seq)
        elif random.random() < 0.3:
            report = await memory.erase(id=random.choice(live))
            erased += [id_ for each in report.erased for id_ in each.ids if each.kind != "session"]
    except ConflictError:
        pass  # undone already, or replaced


async def _ask(memory: Memory, random: Random) -> None:
    question = random.choice(_QUESTIONS).format(random.choice(_PEOPLE))
    if random.random() < 0.3:
        await memory.context_parts(question, receipt=True)
    else:
        await memory.search(question, limit=random.choice((2, 5, 10)), receipt=True)


async def run(histories: int, *, first: int = 0, steps: int = 20) -> Counter[str]:
    """Live some histories; return what was counted."""
    told = Counter[str](histories=histories)
    with tempfile.TemporaryDirectory() as place:
        for seed in range(first, first + histories):
            told += await history(seed, Path(place), steps=steps)
            (Path(place) / f"{seed}.db").unlink()
    return told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    told = dict(asyncio.run(run(given.histories, first=given.first)))
    sys.stdout.write(f"{told}\n")
    if given.out is not None:
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
