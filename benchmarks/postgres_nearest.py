"""Compare the vector search of PostgreSQL stores with an exact one, for owners of 0.01 % to 50 % of a table.

    python benchmarks/postgres_nearest.py ADDRESS FILE.jsonl ... [--messages 1000000] [--out RESULT.json]

ADDRESS is a server on this machine. The messages are turns of the FILEs (the form of `quality.py`) with a number that
makes each of them different, embedded by hashing; the questions are theirs. The store keeps owners apart by roles. For
each owner: how many of the ten asked for were found, and the share of them among the ten nearest by exact products of
float32 vectors (equal products count as nearest).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.postgres_scale import read, report

from ricordo import Memory, Message, Node, Scope, Settings
from ricordo.models.embedding.local import Hashing
from ricordo.storage.candidates import CandidateQuery
from ricordo.storage.protocol import Snapshot
from ricordo.storage.values import Filter

SHARES = (0.0001, 0.001, 0.01, 0.1, 0.5)
ASKED, QUESTIONS, AT_ONCE = 10, 40, 5_000


def texts_of(owner: str, count: int, turns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the messages of an owner, the same ones each time."""
    dice = random.Random(owner)
    return [f"{dice.choice(turns)[1]} {dice.randrange(1_000_000)}" for _ in range(count)]


async def fill(memory: Memory, sizes: dict[str, int], turns: Sequence[tuple[str, str]]) -> None:
    """Store the messages of all owners and wait for their vectors."""
    for owner, count in sizes.items():
        me, texts = memory.scoped(Scope(owner=owner)), texts_of(owner, count, turns)
        for first in range(0, count, AT_ONCE):
            await me.add_many([Message(text=text, session="s") for text in texts[first : first + AT_ONCE]])
        print(f"{owner}: {count} messages", flush=True)
    await memory.settle()


def nearest(snapshot: Snapshot, query: CandidateQuery) -> tuple[list[int], dict[int, Node]]:
    """Return the keys of the nearest memories, best first, and the memories."""
    keys = list(snapshot.candidates(query).found["meaning"])[:ASKED]
    return keys, snapshot.nodes.by_key(query.scope, keys)


async def measured(memory: Memory, owner: str, texts: Sequence[str], questions: Sequence[str]) -> dict[str, float]:
    """Return how many were found of an owner's nearest, and how many of those are the nearest."""
    embedder, scope = Hashing(), Scope(owner=owner)
    exact: NDArray[np.float32] = np.concatenate(
        [embedder.encode(texts[first : first + AT_ONCE], "passage") for first in range(0, len(texts), AT_ONCE)]
    )
    store = memory._opened.store.seen_by(scope)
    known = await store.read(lambda tx: tx.models.known())
    found, right, began = 0, 0, time.perf_counter()
    for question in questions:
        vector = embedder.encode([question], "query")[0]
        query = CandidateQuery(
            scope=scope,
            filter=Filter(),
            terms=(),
            vectors={known[0].key: vector},
            strategies=("meaning",),
            until=time.monotonic() + 60,
        )
        keys, nodes = await store.read(partial(nearest, query=query))
        products = exact @ vector
        least = np.partition(products, -ASKED)[-ASKED] - 1e-6
        found += len(keys)
        right += sum(float(embedder.encode([node.content], "passage")[0] @ vector) >= least for node in nodes.values())
    each = len(questions)
    return {
        "found": found / each,
        "recall": round(right / (ASKED * each), 4),
        "ms with the exact search": round((time.perf_counter() - began) * 1e3 / each, 1),
    }


async def run(place: str, given: argparse.Namespace) -> dict[str, Any]:
    """Fill a store and measure each owner."""
    turns, questions = read(given.files)
    sizes = {f"{share:.2%} of the table": round(share * given.messages) for share in SHARES}
    sizes["others"] = given.messages - sum(sizes.values())
    asked = random.Random(5).sample(questions, QUESTIONS)
    settings = Settings(durability="process", auto_gc=False)
    async with Memory.open(place, embedder="hashing", settings=settings) as memory:
        await fill(memory, sizes, turns)
    async with Memory.open(place, embedder="hashing", settings=settings) as memory:
        return {
            owner: await measured(memory, owner, texts_of(owner, count, turns), asked)
            for owner, count in sizes.items()
            if owner != "others"
        }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("address")
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--messages", type=int, default=1_000_000)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    os.environ["RICORDO_TEST_POSTGRES"] = given.address
    from tests.contract.server import guarded_location

    result = {
        "messages": given.messages,
        "questions": QUESTIONS,
        **asyncio.run(run(guarded_location(Path("/nearest")), given)),
    }
    report(result, given.out)


if __name__ == "__main__":
    main()
