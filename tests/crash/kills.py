"""Kill a writing process again and again, reopen, compare.

    python -m tests.crash.kills --runs 300

Two thirds of the kills come at a random moment, the others at the n-th pass of a fault point. A store
is used for several kills in a row, so that recovered stores are killed again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import apsw

from ricordo.memory import Memory
from tests.crash import workload
from tests.crash.forking import FORKED
from tests.crash.points import POINTS
from tests.crash.verify import Acknowledged, Verdict, verify, verify_upgrade
from tests.storage.folders import without_index

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "kills.json"
KILLS_PER_STORE = 5
_INDEX_GONE = 0.2
PATIENCE_S = 60

# A random kill comes after at most this many output lines, and up to this long after: on a busy
# machine the process has then done as much as on an idle one.
_LINES = 120
_JITTER_S = 0.2

_NAMING = "folder: before naming"
# Points of features with tests of their own.
ELSEWHERE = (
    "restore: before naming",
    "rekey: before copy",
    "rekey: before naming",
    "rekey: after naming",
    *(point for point in POINTS if point.startswith("sync:")),
)
# Points passed at every write are killed at a later pass; rare ones at the first.
SELDOM = (
    "folder: before replacing",
    _NAMING,
    "schema",
    "model",
    "backup",
    "close",
    "erase",
    "undo",
    "vectors: before packing",
    "vectors: after packing",
)


@dataclass(slots=True)
class Run:
    """One kill and its result."""

    point: str | None
    was_killed: bool
    acknowledged: int
    verdict: Verdict
    stderr: str = ""
    during: tuple[str, ...] = ()
    """The operation in progress."""


@dataclass(slots=True)
class Tally:
    """The results of all kills so far."""

    runs: int = 0
    not_reached: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    by_point: Counter[str] = field(default_factory=Counter)
    during: Counter[str] = field(default_factory=Counter)

    def count(self, run: Run, seed: int) -> None:
        self.acknowledged += run.acknowledged
        if not run.was_killed:
            self.not_reached += 1
            return
        self.runs += 1
        self.by_point[run.point or "at random"] += 1
        self.during.update(run.during)
        self.lost += [f"seed {seed}, {run.point}: {problem}" for problem in run.verdict.lost]
        self.half += [f"seed {seed}, {run.point}: {problem}" for problem in run.verdict.half]


def kill_once(path: Path, said: Acknowledged, *, seed: int, point: str | None = None, rounds: int = 1_000) -> Run:
    """Let a process write to the store at `path`, kill it, and check the store."""
    dice = random.Random(seed)
    before = said.count
    if is_for_folder(point):
        path.mkdir(exist_ok=True)
    elif path.is_dir() and point is None and dice.random() < _INDEX_GONE:
        without_index(path)  # then it is being rebuilt at the kill
    said.doing.clear()
    is_upgrade = point is not None and point.startswith("schema:")
    if is_upgrade:
        _fill(path)
        contents = _contents(path)
    passes = 1 if point is None or point.startswith(SELDOM) else dice.randrange(1, 12)
    status, stderr, is_late = _run_child(path, said, seed=seed, point=point, passes=passes, rounds=rounds, dice=dice)
    if status not in (0, -9):
        raise RuntimeError(f"the workload failed by itself (seed {seed}, {point}):\n{stderr}")
    as_left = path.with_name("as-left")  # kept for inspection of failures
    shutil.rmtree(as_left, ignore_errors=True)
    as_left.mkdir()
    for place in (path, *path.parent.glob(f"{path.name}-*")):
        if place.exists():
            (shutil.copytree if place.is_dir() else shutil.copy2)(place, as_left / place.name)
    verdict = verify_upgrade(path, contents) if is_upgrade else verify(path, said)
    during = tuple(act for act, count in said.doing.items() if count)
    was_killed = status == -9 and not (point and is_late)
    return Run(point, was_killed, said.count - before, verdict, stderr, during or ("opening",))


def _points(kind: str) -> list[str]:
    """Skip points that do not exist: a folder erases in one step, and only a single file is converted."""
    if kind == "folder":
        return [point for point in POINTS if point not in (*ELSEWHERE, "erase: between steps", _NAMING)]
    return [point for point in POINTS if not is_for_folder(point) and point not in ELSEWHERE]


def is_for_folder(point: str | None) -> bool:
    """Return whether only folder stores pass a point."""
    return point is not None and point.startswith("folder:") and point != _NAMING


def _run_child(path, said, *, seed, point, passes, rounds, dice):
    """The exit status, standard error, and whether it was killed only because of a timeout."""
    is_without_index = path.is_dir() and not (path / "index.db").exists()
    arguments = [str(path), "--seed", str(seed), "--rounds", str(rounds)]
    arguments += ["--point", point, "--passes", str(passes)] if point else []
    errors = path.with_name("errors.txt")
    listening, speaking = FORKED.Pipe(duplex=False)
    child = FORKED.Process(target=workload.heard, args=(speaking, errors, arguments))
    child.start()
    speaking.close()
    late = threading.Event()

    def give_up():
        late.set()
        child.kill()

    timers = [threading.Timer(PATIENCE_S, give_up)]
    timers[0].start()
    left = None
    with open(listening.fileno(), encoding="utf-8", closefd=False) as lines:
        for line in lines:
            heard = parsed(line)
            said.hear(heard)
            if heard.get("opening" if is_without_index else "ready") == 0 and point is None:
                left = dice.randrange(_LINES)
            if left == 0:
                timers.append(threading.Timer(dice.uniform(0.0, _JITTER_S), child.kill))
                timers[-1].start()
            left = None if left is None else left - 1
    listening.close()
    child.join()
    for timer in timers:
        timer.cancel()
    status = child.exitcode
    child.close()
    said_wrong = errors.read_text(encoding="utf-8", errors="replace") if errors.exists() else ""
    return status, said_wrong, late.is_set()


def parsed(line: str) -> dict:
    """A line truncated by the kill does not count."""
    with contextlib.suppress(json.JSONDecodeError):
        return json.loads(line)
    return {}


def _fill(path: Path) -> None:
    async def fill():
        async with Memory.open(path, embedder=None) as memory:
            for number in range(300):
                memory.add_nowait(f"message {number} " + "of some length " * 20)

    asyncio.run(fill())


def _contents(path: Path) -> list[tuple]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("SELECT id, content FROM nodes ORDER BY key").fetchall()
    finally:
        connection.close()


def many(runs: int, *, seed: int, kind: str = "file", note=lambda tally: None) -> Tally:
    """Perform that many kills, with progress on standard error.

    `kind` is "file" or "folder"; `note` is called at times.
    """
    tally, dice, points, started = (Tally(), random.Random(seed), cycle(_points(kind)), time.monotonic())
    while tally.runs < runs:
        folder = Path(tempfile.mkdtemp(prefix="ricordo-kills-"))
        said, wrong_before = Acknowledged(), len(tally.lost) + len(tally.half)
        if kind == "folder":
            (folder / "memories").mkdir()
        for _ in range(KILLS_PER_STORE):
            seed += 1
            point = next(points) if dice.random() < 0.34 else None
            own = point is not None and point.startswith("schema:")  # today's code cannot open an upgraded store
            place = folder / (f"upgrade-{seed}.db" if own else "memories" if kind == "folder" else "memory.db")
            tally.count(kill_once(place, Acknowledged() if own else said, seed=seed, point=point), seed)
        if len(tally.lost) + len(tally.half) > wrong_before:
            sys.stderr.write(f"\nkept: {folder}\n")
        else:
            shutil.rmtree(folder)
        _show(tally, runs, started)
        note(tally)
    sys.stderr.write("\n")
    return tally


def _show(tally: Tally, runs: int, started: float) -> None:
    took = time.monotonic() - started
    sys.stderr.write(
        f"\r{tally.runs}/{runs} kills, {tally.acknowledged:,} acknowledged, "
        f"{len(tally.lost)} lost, {len(tally.half)} half done, {took:.0f} s "
    )
    sys.stderr.flush()


def machine() -> dict[str, object]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def _result(tally: Tally, *, kind: str, seed: int) -> dict[str, object]:
    return {
        "store": kind,
        "kills": tally.runs,
        "acknowledged_writes": tally.acknowledged,
        "lost": tally.lost,
        "half_done": tally.half,
        "ended_before_its_point": tally.not_reached,
        "by_fault_point": dict(sorted(tally.by_point.items())),
        "under_way_when_killed": dict(sorted(tally.during.items())),
        "seed": seed,
        "machine": machine(),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kind", choices=("file", "folder"), default="file", help="which kind of store is killed")
    given = options.parse_args()
    place = RESULT if given.kind == "file" else RESULT.with_name("kills_folder.json")

    def note(tally: Tally) -> None:
        text = json.dumps(_result(tally, kind=given.kind, seed=given.seed), indent=2, ensure_ascii=False)
        place.write_text(text + "\n", encoding="utf-8")

    tally = many(given.runs, seed=given.seed * 1_000_000, kind=given.kind, note=note)
    sys.stdout.write(place.read_text(encoding="utf-8"))
    return 1 if tally.lost or tally.half else 0


if __name__ == "__main__":
    sys.exit(main())
