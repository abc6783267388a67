"""Open a folder at every prefix of the bytes of its last commit.

    python -m tests.crash.prefixes

Each prefix is what a crash in the middle of writing leaves: the lines of the commit in write order, cut after
a number of bytes. The index is as it was before, or, at every second length, missing. The commit exists once its line
is complete; every prefix opens, passes `doctor`, and accepts writes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ricordo import Memory, Settings
from ricordo.storage.jsonl.layout import COMMITS, FILES, INDEX
from tests.crash.kills import ROOT, machine
from tests.storage.folders import without_index
from tests.storage.making import failing

RESULT = ROOT / "benchmarks" / "results" / "prefixes.json"
FIRST, LAST = "Anna likes tea", "Boris sold the red bicycle"


def _opened(folder: Path) -> Memory:
    return Memory.open(f"{folder}/", embedder=None, settings=Settings(durability="process"))


@dataclass(frozen=True)
class Torn:
    """A folder, its index and its files before the last commit, and the bytes that the commit appended, in order."""

    folder: Path
    index: bytes
    before: dict[str, bytes]
    grown: dict[str, bytes]

    @property
    def total(self) -> int:
        """Number of bytes of the commit."""
        return sum(len(data) for data in self.grown.values())

    @property
    def before_its_line(self) -> int:
        """Number of bytes before its own line."""
        return self.total - len(self.grown[COMMITS])


async def written(folder: Path) -> Torn:
    """A folder with two commits."""
    async with _opened(folder) as memory:
        await memory.remember(FIRST, about=["Anna"])
    before, index = _files(folder), (folder / INDEX).read_bytes()  # closed: all is in the file
    async with _opened(folder) as memory:
        await memory.remember(LAST, about=["Boris"], session="s")
    after = _files(folder)
    grown = {name: after[name][len(before.get(name, b"")) :] for name in FILES if after.get(name) != before.get(name)}
    return Torn(folder, index, before, grown)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


async def wrong(torn: Torn, length: int, place: Path) -> list[str]:
    """Return the errors of the folder cut after a number of bytes of its last commit."""
    shutil.copytree(torn.folder, place)
    left = length
    for name, data in torn.grown.items():
        (place / name).write_bytes(torn.before.get(name, b"") + data[: max(0, left)])
        left -= len(data)
    without_index(place)
    if length % 2 == 0:
        (place / INDEX).write_bytes(torn.index)
    # Only the newline of the commit's line may be missing: the line is complete without it.
    wanted = {FIRST, LAST} if length >= torn.total - 1 else {FIRST}
    try:
        async with _opened(place) as memory:
            found = await _texts(memory)
            await memory.add("and life goes on")
            problems = [f"doctor: {check}" for check in sorted(failing(await memory.doctor()))]
            problems += [f"holds {found}"] * (found != wanted)
            return problems + ["cannot be written on"] * (await _texts(memory) != {*wanted, "and life goes on"})
    except Exception as error:  # noqa: BLE001 - whatever keeps it shut is the finding
        return [f"not opened: {error}"]
    finally:
        shutil.rmtree(place)


async def _texts(memory: Memory) -> set[str]:
    return {node.content for node in (await memory.list(limit=100)).nodes}


async def all_wrong(
    torn: Torn, lengths: Iterable[int], place: Path, *, until: float = float("inf")
) -> tuple[int, dict[int, list[str]]]:
    """Return the number of lengths tried before a deadline (`time.monotonic`), and the errors by length."""
    found, tried = {}, 0
    for length in lengths:
        if time.monotonic() > until:
            break
        tried += 1
        if problems := await wrong(torn, length, place):
            found[length] = problems
    return tried, found


async def measured(step: int, *, most: int, least: int, until: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ricordo-prefixes-") as folder:
        torn = await written(Path(folder) / "memories")
        # The end first: that is where the commit is completed.
        lengths = range(min(torn.total, most), least - 1, -step)
        tried, found = await all_wrong(torn, lengths, Path(folder) / "torn", until=until)
    return {"bytes_of_the_commit": torn.total, "prefixes": tried, "wrong": found, "machine": machine()}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--step", type=int, default=1, help="bytes from one prefix to the next, from the end")
    options.add_argument("--most", type=int, default=sys.maxsize, help="the longest prefix, for a part of a run")
    options.add_argument("--least", type=int, default=0, help="the shortest")
    options.add_argument("--minutes", type=float, default=120)
    options.add_argument("--out", type=Path, default=RESULT)
    given = options.parse_args()
    logging.disable(logging.WARNING)  # each of them reports lines that were set aside
    until = time.monotonic() + given.minutes * 60
    result = asyncio.run(measured(given.step, most=given.most, least=given.least, until=until))
    given.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(given.out.read_text(encoding="utf-8"))
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
