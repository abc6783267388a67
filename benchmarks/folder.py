"""Measure folder stores: rebuilding the index, and the cost of one more memory in small and large folders.

    python benchmarks/folder.py [--lines 100000 1000000] [--out benchmarks/results/folder.json]

Folders are filled with synthetic chat, a thousand messages at a time, and opened again without their index. Then
memories are written to all of them and to an empty one in turn, so that a busy machine affects all alike. Files are not
synced, because that would hide the difference. Rates are given by wall-clock and by process time; with other work on
the machine, the second is more accurate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw

from ricordo import Memory, Message
from speed import FAST, talk

ROOT = Path(__file__).parent
LOT = 1_000
APPENDED = 400
WITH_VECTORS = 20_000


def opened(path: Path, embedder: str | None = None, **more: Any) -> Memory:
    return Memory.open(f"{path}/", embedder=embedder, settings=FAST, **more)


async def fill(path: Path, lines: int, embedder: str | None = None) -> None:
    """Return messages of two speakers in sessions of forty."""
    async with opened(path, embedder) as memory:
        for start in range(0, lines, LOT):
            texts = enumerate(talk(min(LOT, lines - start), seed=start))
            await memory.add_many(
                [
                    Message(text=text, session=f"s{(start + n) // 40}", speaker="Ann" if n % 2 else "Bob")
                    for n, text in texts
                ]
            )
            sys.stderr.write(f"\rfilled {start + LOT:,} of {lines:,} ")
        await memory.settle()
    sys.stderr.write("\n")


async def rebuilt(path: Path, embedder: str | None = None) -> dict[str, Any]:
    """Open the folder without its index; return lines per second."""
    for file in path.glob("index.db*"):
        file.unlink()
    lines = sum(file.read_bytes().count(b"\n") for file in path.glob("*.jsonl"))
    started, ran = time.perf_counter(), time.process_time()

    def told(done: int, total: int) -> None:
        sys.stderr.write(f"\rread {done:,} of {total:,} ")

    async with opened(path, embedder, progress=told) as memory:
        seconds, ran = time.perf_counter() - started, time.process_time() - ran
        memories = sum((await memory.stats()).nodes.values())
    sys.stderr.write("\n")
    return {
        "lines": lines,
        "memories": memories,
        "mb": round(sum(f.stat().st_size for f in path.glob("*.jsonl")) / 1e6, 1),
        "seconds": round(seconds, 2),
        "lines_per_s": round(lines / seconds),
        "processor_seconds": round(ran, 2),
        "lines_per_processor_s": round(lines / ran),
    }


async def appended(paths: dict[str, Path]) -> dict[str, Any]:
    """Return the median milliseconds of awaited writes, alternating between the folders."""
    memories = {name: await opened(path).__aenter__() for name, path in paths.items()}
    acts: dict[str, Callable[[Memory, str], Awaitable[Any]]] = {
        "add": lambda memory, text: memory.add(text, session="now"),
        "remember": lambda memory, text: memory.remember(text),
    }
    spent: dict[str, dict[str, list[float]]] = {act: {name: [] for name in paths} for act in acts}
    try:
        for text in talk(APPENDED, seed=3):
            for act, how in acts.items():
                for name, memory in memories.items():
                    started = time.perf_counter()
                    await how(memory, text)
                    spent[act][name].append((time.perf_counter() - started) * 1_000)
    finally:
        for memory in memories.values():
            await memory.close()
    return {
        act: {
            name: {
                "p50_ms": round(statistics.median(taken), 3),
                "times_an_empty_one": round(statistics.median(taken) / statistics.median(by_folder["empty"]), 2),
            }
            for name, taken in by_folder.items()
        }
        for act, by_folder in spent.items()
    }


async def measured(sizes: list[int], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"made_anew": {}}
    paths = {"empty": folder / "empty"}
    for size in sizes:
        paths[f"{size}"] = folder / f"{size}"
        await fill(paths[f"{size}"], size)
        found["made_anew"][f"{size} messages"] = await rebuilt(paths[f"{size}"])
    await fill(folder / "vectors", WITH_VECTORS, "hashing")
    found["made_anew"][f"{WITH_VECTORS} messages with vectors"] = await rebuilt(folder / "vectors", "hashing")
    found["appended"] = await appended(paths)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[100_000])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "folder.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ricordo-folder-") as folder:
        result = {
            **asyncio.run(measured(given.lines, Path(folder))),
            "machine": {
                "system": f"{platform.system()} {platform.release()}",
                "processors": os.cpu_count(),
                "python": platform.python_version(),
                "sqlite": apsw.sqlite_lib_version(),
                "load_average": round(os.getloadavg()[2], 1),  # above the number of processors: other work was running
            },
        }
    given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
