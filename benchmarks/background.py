"""Measure background work: how fast messages are embedded, and a change of embedder.

    python benchmarks/background.py [--turns 20000] [--out benchmarks/results/background.json]

The change: a store is filled with one embedder and opened with another. One process is killed in the middle; a second
one continues and searches meanwhile. At the end, vectors and answers are compared with those of a store that only ever
had the second embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw

from ricordo import Memory, Message
from ricordo.models.embedding import resolve
from speed import FAST, questions, talk


class Shortened:
    """The first 96 dimensions of another embedder, with the delay of a remote one."""

    name = "shortened-96"
    dimension = 96

    def __init__(self) -> None:
        self._whole: Any = resolve("hashing")

    async def embed(self, text: str, *, kind: str = "query") -> Any:
        return (await self._whole.embed(text))[:96]

    async def embed_batch(self, texts: Sequence[str], *, kind: str = "passage") -> list[Any]:
        await asyncio.sleep(0.02)
        return [vector[:96] for vector in await self._whole.embed_batch(texts)]


async def embedding_rate(repeats: int = 4) -> float:
    """Return how many messages per second the default embedder processes on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    lines = (files("ricordo.interfaces.demo") / "conversation.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines] * repeats
    async with Memory.open(":memory:", settings=FAST) as memory:
        await memory.add("the model is loaded by this")
        await memory.settle()
        started = time.perf_counter()
        await memory.add_many(
            [Message(text=row["text"], speaker=row["speaker"], session=row["session"]) for row in rows]
        )
        await memory.settle()
        return len(rows) / (time.perf_counter() - started)


async def fill(path: Path, turns: int, embedder: Any) -> None:
    async with Memory.open(path, embedder=embedder, settings=FAST) as memory:
        texts = enumerate(talk(turns))
        await memory.add_many([Message(text=text, session=f"s{n // 40}", id=f"m{n}") for n, text in texts])
        await memory.settle()


async def change(path: Path) -> dict[str, Any]:
    """Open with the other embedder and search until the change is complete."""
    worst, searches, started = 0.0, 0, time.perf_counter()
    async with Memory.open(path, embedder=Shortened(), settings=FAST) as memory:
        print("opened", flush=True)
        while True:
            begun = time.perf_counter()
            results = await memory.search(questions()[searches % 200])
            worst, searches = max(worst, time.perf_counter() - begun), searches + 1
            if not results.hits:
                raise SystemExit("a search found nothing")
            if (await memory.stats()).embedder == Shortened.name and not results.degraded:
                await memory.settle()
                seconds = round(time.perf_counter() - started, 1)
                return {"searches": searches, "slowest_search_ms": round(worst * 1e3), "seconds_after_kill": seconds}
            await asyncio.sleep(0.1)


async def state(path: Path) -> tuple[list[Any], list[list[str]]]:
    """Return every vector by id, and the answers to some questions."""
    async with Memory.open(path, embedder=Shortened(), settings=FAST) as memory:
        await memory.settle()
        answers = [(await memory.search(question)).ids for question in questions()[:50]]
    store = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    query = "SELECT n.id, e.vector FROM embeddings e JOIN nodes n ON n.key = e.node ORDER BY n.id"
    return store.execute(query).fetchall(), answers


def changed(turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path, fresh = Path(folder) / "changed.db", Path(folder) / "fresh.db"
        asyncio.run(fill(path, turns, "hashing"))
        asyncio.run(fill(fresh, turns, Shortened()))
        child = subprocess.Popen([sys.executable, __file__, "--change", str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(3)
        child.send_signal(signal.SIGKILL)
        child.wait()
        figures = asyncio.run(change(path))
        (vectors, answers), (wanted, expected) = asyncio.run(state(path)), asyncio.run(state(fresh))
    return {"turns": turns, **figures, "equal_vectors": vectors == wanted, "equal_answers": answers == expected}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "background.json")
    parser.add_argument("--change", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.change:
        asyncio.run(change(options.change))
        return
    report = {
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "change_of_embedder": changed(options.turns),
        "embedded_per_s_on_one_core": round(asyncio.run(embedding_rate()), 1),
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
