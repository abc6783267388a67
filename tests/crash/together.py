"""Kill one of several processes that write to one store, then the others; reopen, compare.

    python -m tests.crash.together --runs 200 --kind folder

All of them do everything: add, correct, forget, undo, erase, consolidate, maintain, back up, migrate.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.crash import workload
from tests.crash.forking import FORKED
from tests.crash.kills import ROOT, machine, parsed
from tests.crash.verify import Acknowledged, Verdict, verify

PROCESSES = 3
_MOST_S = 1.5
_MOST_WRITES = 100
_RUNS_PER_STORE = 3


class Child:
    """One process, and a thread that hears what it says."""

    def __init__(self, path: Path, seed: int) -> None:
        self.said = Acknowledged()
        self.errors = path.with_name(f"errors-{seed}.txt")
        self._listening, speaking = FORKED.Pipe(duplex=False)
        arguments = [str(path), "--seed", str(seed), "--together"]
        self.process = FORKED.Process(target=workload.heard, args=(speaking, self.errors, arguments))
        self.process.start()
        speaking.close()
        self._hearing = threading.Thread(target=self._hear)
        self._hearing.start()

    def _hear(self) -> None:
        with open(self._listening.fileno(), encoding="utf-8", closefd=False) as lines:
            for line in lines:
                self.said.hear(parsed(line))

    def end(self) -> str:
        """Kill it; return what it said if it had failed by itself."""
        self.process.kill()
        self.process.join()
        self._hearing.join()
        self._listening.close()
        failed = self.process.exitcode not in (0, -9)
        self.process.close()
        return self.errors.read_text(encoding="utf-8", errors="replace") if failed else ""


def join(said: Acknowledged, other: Acknowledged) -> None:
    """Add what another process said: each touches its own memories only."""
    for name in ("texts", "about", "closed", "erased"):
        getattr(said, name).update(getattr(other, name))
    said.erasing |= other.erasing
    said.entities += other.entities
    said.copies += other.copies
    said.doing.update(other.doing)
    said.count += other.count


def kill_together(path: Path, said: Acknowledged, *, seed: int) -> tuple[Verdict, Counter[str]]:
    """Let several processes write, kill one and later the others, and check the store."""
    dice = random.Random(seed)
    children = [Child(path, seed * 10 + number) for number in range(PROCESSES)]
    until = time.monotonic() + 60
    wanted = dice.randrange(_MOST_WRITES)
    while sum(child.said.count for child in children) <= wanted and time.monotonic() < until:
        time.sleep(0.01)
    wrong, during = [], Counter[str]()
    for child in children:
        time.sleep(dice.uniform(0.05, _MOST_S / PROCESSES))
        if failed := child.end():
            wrong.append(f"seed {seed}: a process failed by itself: {failed[-600:]}")
        during.update(name for name, count in child.said.doing.items() if count)
        child.said.doing.clear()
        join(said, child.said)
    verdict = verify(path, said)
    verdict.half += wrong
    return verdict, during


def many(runs: int, *, seed: int, kind: str) -> dict[str, object]:
    """Kill that many groups of processes, with progress on standard error."""
    lost, half, during, acknowledged = list[str](), list[str](), Counter[str](), 0
    for run in range(0, runs, _RUNS_PER_STORE):
        folder, said = Path(tempfile.mkdtemp(prefix="ricordo-together-")), Acknowledged()
        place = folder / ("memories" if kind == "folder" else "memory.db")
        if kind == "folder":
            place.mkdir()
        wrong = 0
        for number in range(run, min(run + _RUNS_PER_STORE, runs)):
            verdict, under_way = kill_together(place, said, seed=seed * 100_000 + number)
            lost += [f"run {number}: {each}" for each in verdict.lost]
            half += [f"run {number}: {each}" for each in verdict.half]
            during.update(under_way)
            wrong += not verdict.ok
        acknowledged += said.count
        if wrong:
            sys.stderr.write(f"kept: {folder}\n")
        else:
            shutil.rmtree(folder)
        sys.stderr.write(
            f"{run + _RUNS_PER_STORE}/{runs}, {acknowledged:,} acknowledged, {len(lost)} lost, {len(half)} half\n"
        )
    return {
        "store": kind,
        "kills": runs * PROCESSES,
        "processes at a time": PROCESSES,
        "acknowledged_writes": acknowledged,
        "lost": lost,
        "half_done": half,
        "under_way_when_killed": dict(sorted(during.items())),
        "seed": seed,
        "machine": machine(),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kind", choices=("file", "folder"), default="file")
    given = options.parse_args()
    result = many(given.runs, seed=given.seed, kind=given.kind)
    place = ROOT / "benchmarks" / "results" / f"kills_together{'_folder' if given.kind == 'folder' else ''}.json"
    place.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(bool(result["lost"] or result["half_done"]))


if __name__ == "__main__":
    sys.exit(main())
