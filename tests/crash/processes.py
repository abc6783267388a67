"""Several processes on one store, each awaiting every write, some of them searching as well.

    python -m tests.crash.processes --writes 1000

Reports how long writes and searches took for their callers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ricordo.memory import Memory
from tests.crash.kills import ROOT, machine

RESULT = ROOT / "benchmarks" / "results" / "processes.json"
WRITERS = 4
SEARCHERS = 2
CALLERS = 4


async def work(path: str, name: str, writes: int, *, searches: bool) -> dict[str, list]:
    """Four callers in one process, each awaiting its writes one by one."""
    took: dict[str, list] = {"write": [], "search": [], "errors": []}

    async def timed(kind, call):
        started = time.perf_counter()
        try:
            await call
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent wants to know
            took["errors"].append(repr(error))
        took[kind].append(time.perf_counter() - started)

    async def caller(memory, first):
        for number in range(first, writes, CALLERS):
            await timed("write", memory.add(f"{name} {number} said something about tea", session=name))
            if searches and number % 10 == first:
                await timed("search", memory.search(f"{name} {number}"))

    async with Memory.open(path, embedder="hashing") as memory:
        await asyncio.gather(*(caller(memory, first) for first in range(CALLERS)))
    return took


def together(path: Path, writes: int) -> dict[str, list]:
    """Run the processes and join their measurements."""
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "tests.crash.processes",
                "--child",
                f"process{number}",
                "--path",
                str(path),
                "--writes",
                str(writes),
                *(["--search"] if number < SEARCHERS else []),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    measured: dict[str, list] = {"write": [], "search": [], "errors": []}
    for child in children:
        said, errors = child.communicate(timeout=600)
        measured["errors"] += [errors] if errors or child.returncode else []
        for kind, values in (json.loads(said) if said else {}).items():
            measured[kind] += values
    return measured


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    ordered = sorted(seconds)
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000, 1)
        for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1.0))
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--writes", type=int, default=1_000)
    options.add_argument("--child")
    options.add_argument("--path")
    options.add_argument("--search", action="store_true")
    given = options.parse_args()
    if given.child:
        sys.stdout.write(json.dumps(asyncio.run(work(given.path, given.child, given.writes, searches=given.search))))
        return 0
    with tempfile.TemporaryDirectory(prefix="ricordo-processes-") as folder:
        started = time.monotonic()
        measured = together(Path(folder) / "memory.db", given.writes)
        result = {
            "processes": WRITERS,
            "writes": len(measured["write"]),
            "seconds": round(time.monotonic() - started, 1),
            "write_ms": quantiles(measured["write"]),
            "search_ms": quantiles(measured["search"]),
            "errors": measured["errors"],
            "missing": WRITERS * given.writes - asyncio.run(_count(Path(folder) / "memory.db")),
            "machine": machine(),
        }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 1 if result["errors"] or result["missing"] else 0


async def _count(path: Path) -> int:
    async with Memory.open(path, embedder="hashing") as memory:
        return sum((await memory.stats()).nodes.values())


if __name__ == "__main__":
    sys.exit(main())
