"""Two processes append to a folder while a third rewrites its files in a loop: no line is lost.

    python -m tests.crash.folder_gc --seconds 60

Acknowledged writes are compared with what a fresh process reads, before and after a rebuild of the index.
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
from typing import Any

from ricordo.memory import Memory
from tests.crash.kills import ROOT, machine
from tests.storage.folders import everything, without_index

RESULT = ROOT / "benchmarks" / "results" / "folder_gc.json"
WRITERS = 2
PAUSE_S = 0.02


async def write(path: str, name: str, seconds: float) -> dict[str, str]:
    """Add messages and change every third one until the time is over; return acknowledged writes by id."""
    said: dict[str, str] = {}
    async with Memory.open(path, embedder=None) as memory:
        until, number = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            number += 1
            text = f"{name} fact {number} about tea"
            node = await memory.remember(text)
            said[node.id] = text
            if number % 3 == 0:  # this outdates the previous line, so that gc has work
                await memory.update(node.id, content=f"{name} fact {number} about coffee")
                said[node.id] = f"{name} fact {number} about coffee"
            said[await memory.add(f"{name} message {number}", session=name)] = f"{name} message {number}"
    return said


async def tidy(path: str, seconds: float) -> dict[str, int]:
    """Run `gc` in a loop; return the number of runs, and of runs that rewrote files."""
    runs = rewritten = 0
    files = Path(path) / "memories.jsonl"
    async with Memory.open(path, embedder=None) as memory:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            before = files.stat().st_ino if files.exists() else 0
            await memory.gc()
            runs += 1
            rewritten += files.exists() and files.stat().st_ino != before
            await asyncio.sleep(PAUSE_S)
    return {"gc": runs, "rewritten": rewritten}


def together(folder: Path, seconds: float) -> dict[str, Any]:
    """Run the three processes and check the result."""
    jobs = [*(f"writer{number}" for number in range(WRITERS)), "gc"]
    children = {
        job: subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "tests.crash.folder_gc",
                "--child",
                job,
                "--path",
                f"{folder}/",
                "--seconds",
                str(seconds),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for job in jobs
    }
    told = {job: child.communicate(timeout=seconds * 5 + 120) for job, child in children.items()}
    errors = [wrong for job, (_, wrong) in told.items() if wrong or children[job].returncode]
    if errors:
        return {"errors": errors, "missing": [], "findings": []}
    said = {id_: text for job in jobs[:WRITERS] for id_, text in json.loads(told[job][0]).items()}
    before, findings = asyncio.run(_held(folder))
    rows = everything(folder)
    without_index(folder)
    after, more = asyncio.run(_held(folder))
    return {
        "acknowledged": len(said),
        **json.loads(told["gc"][0]),
        "errors": errors,
        "missing": [text for id_, text in said.items() if before.get(id_) != text or after.get(id_) != text],
        "not_acknowledged": sorted(before.keys() - said.keys()),
        "findings": findings + more,
        "differs_from_a_rebuilt_index": [part for part, held in everything(folder).items() if held != rows[part]],
    }


async def _held(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return every memory by id, and the findings of `doctor`."""
    async with Memory.open(f"{folder}/", embedder=None) as memory:
        report = await memory.doctor()
        held = await memory._opened.store.read(
            lambda tx: tx.connection.execute("SELECT id, content FROM nodes").fetchall()
        )
        return dict(held), [f"{found.check}: {found.detail}" for found in report.findings if not found.ok]


def is_well(result: dict[str, Any]) -> bool:
    """Return whether nothing is missing, extra, or out of order."""
    wrong = ("errors", "missing", "not_acknowledged", "findings", "differs_from_a_rebuilt_index")
    return not any(result.get(name) for name in wrong)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--child")
    options.add_argument("--path")
    given = options.parse_args()
    if given.child:
        work = tidy(given.path, given.seconds) if given.child == "gc" else write(given.path, given.child, given.seconds)
        sys.stdout.write(json.dumps(asyncio.run(work)))
        return 0
    with tempfile.TemporaryDirectory(prefix="ricordo-folder-gc-") as folder:
        result = {"seconds": given.seconds, **together(Path(folder) / "memories", given.seconds), "machine": machine()}
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
    return 0 if is_well(result) else 1


if __name__ == "__main__":
    sys.exit(main())
