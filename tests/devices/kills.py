"""Kill a device in the middle of an exchange, again and again: nothing is lost or half done, and the next completes.

    python -m tests.devices.kills --runs 200

Two devices live for a while, then one of them syncs in a process of its own, which is killed at a random moment or at a
pass of a fault point. Beside it, the same exchange runs on copies without a kill: both must end with the same rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ricordo.storage import faults
from tests.crash.forking import FORKED
from tests.crash.kills import ROOT, machine
from tests.devices.histories import KEY, Device, Told, _settle
from tests.storage.making import failing

RESULT = ROOT / "benchmarks" / "results" / "devices_killed.json"
POINTS = (
    "sync: between parts",
    "sync: between files",
    "sync: within a file",
    "sync: before naming",
    "sync: file written",
    "sync: erased",
    "apply: after commit row",
    "apply: after nodes",
    "undo: after removing",
    "writer: after begin",
    "writer: before commit",
    "writer: after commit",
    "folder: before commit line",
    "folder: after commit line",
    "erase: begun",
    "erase: before its commit",
    "erase: rows gone",
)
LATEST_S = 0.5
KILLS_PER_PLACE = 4


@dataclass(slots=True)
class Tally:
    """The results so far."""

    kills: int = 0
    not_reached: int = 0
    by_point: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def _sync(location: str, ms: int, other: str, point: str | None, passes: int, key: str | None) -> None:
    """Exchange in this process, which ends at a pass of a point."""
    left = {point: passes}

    def hook(reached: str) -> None:
        if reached in left:
            left[reached] -= 1
            if left[reached] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    faults.install(hook)
    device = _device(location, ms, key)

    async def run() -> None:
        await device.open()
        try:
            await device.sync(other)
        finally:
            await device.memory.close()

    asyncio.run(run())


def _device(location: str, ms: int, key: str | None) -> Device:
    device = Device(Path(location), seed=2, dice=random.Random(0), key=key)
    device.location = location
    device.clock.ms = ms
    return device


def _killed(device: Device, other: str, *, point: str | None, dice: random.Random) -> bool:
    """Sync in another process and kill it; return whether it was killed before it was done."""
    passes = dice.randrange(1, 5) if point and not point.startswith(("sync", "erase")) else 1
    child = FORKED.Process(target=_sync, args=(device.location, device.clock.ms, other, point, passes, device.key))
    child.start()
    after = dice.uniform(0.02, LATEST_S) if point is None else 60.0
    timer = threading.Timer(after, child.kill)
    timer.start()
    child.join()
    timer.cancel()
    status = child.exitcode
    child.close()
    if status not in (0, -9):
        raise RuntimeError(f"the exchange failed by itself at {point}: {status}")
    return status == -9


class Place:
    """Two devices and a folder, and copies of them."""

    def __init__(self, place: Path, *, seed: int, dice: random.Random) -> None:
        self.place, self.dice = place, dice
        (place / "exchange").mkdir(parents=True)
        key = KEY if seed % 2 else None
        self.devices = [
            Device(place / f"device{number}", seed=seed * 10 + number + 1, dice=dice, key=key) for number in range(2)
        ]

    async def live(self, steps: int) -> None:
        """Do random things on both, without exchanging."""
        ids = list(dict.fromkeys(each for device in self.devices for each in device.history.ids))
        for device in self.devices:
            device.history.ids = list(ids)
            await device.open()
            try:
                await device.live(steps, Told())
            finally:
                await device.memory.close()

    async def finish(self, place: Path) -> tuple[list[dict[str, str]], list[str]]:
        """Exchange until nothing moves; return the rows of both devices, and what is wrong."""
        told = Told()
        there = [_device(_moved(each, self.place, place), each.clock.ms, each.key) for each in self.devices]
        found = []
        try:
            for device in there:
                await device.open()
                told.differences += [f"after the kill: {each}" for each in failing(await device.memory.doctor())]
            await _settle(there, place / "exchange", random.Random(1), told)
            found = [await device.rows() for device in there]
            for device in there:
                told.differences += [f"doctor: {each}" for each in failing(await device.memory.doctor())]
        finally:
            for device in there:
                if hasattr(device, "memory"):
                    await device.memory.close()
        return found, told.differences


def _moved(device: Device, place: Path, other: Path) -> str:
    return device.location.replace(str(place), str(other))


def kill_once(at: Place, *, point: str | None, tally: Tally) -> None:
    """Let the devices live, kill one while it syncs, and compare with an exchange without a kill."""
    asyncio.run(at.live(at.dice.choice((4, 8, 15))))
    copy = at.place.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(at.place, copy)
    device, other = at.dice.sample(at.devices, 2)
    target = other.location if at.dice.random() < 0.25 else str(at.place / "exchange")
    if not _killed(device, target, point=point, dice=at.dice):
        tally.not_reached += 1
    else:
        tally.kills += 1
        tally.by_point[point or "at random"] += 1
    before = len(tally.problems)
    rows, wrong = asyncio.run(at.finish(at.place))
    wanted, _ = asyncio.run(at.finish(copy))
    tally.problems += [f"{point}: {each}" for each in wrong]
    if rows[0] != rows[1]:
        tally.problems.append(f"{point}: the devices differ: {sorted(rows[0].items() ^ rows[1].items())[:2]}")
    if rows[0].keys() != wanted[0].keys():
        tally.problems.append(
            f"{point}: other rows than without a kill: {sorted(rows[0].keys() ^ wanted[0].keys())[:3]}"
        )
    for each in tally.problems[before:]:
        sys.stderr.write(f"\n{each}\n")


def many(runs: int, *, seed: int, within_s: float) -> dict[str, Any]:
    """Kill so many times, within a time limit, with progress on standard error."""
    tally, dice, started, number = Tally(), random.Random(seed), time.monotonic(), 0
    while tally.kills < runs and time.monotonic() - started < within_s:
        with tempfile.TemporaryDirectory(prefix="ricordo-devices-") as folder:
            at = Place(Path(folder) / "place", seed=seed * 1_000 + number, dice=dice)
            for _ in range(KILLS_PER_PLACE):
                number += 1
                point = dice.choice((None, *POINTS)) if number % 3 else None
                kill_once(at, point=point, tally=tally)
                sys.stderr.write(f"\r{tally.kills}/{runs} kills, {len(tally.problems)} problems ")
                sys.stderr.flush()
    sys.stderr.write("\n")
    return {
        "kills": tally.kills,
        "exchanges_that_ended_before": tally.not_reached,
        "by_point": dict(sorted(tally.by_point.items())),
        "problems": tally.problems,
        "seed": seed,
        "seconds": round(time.monotonic() - started),
        "machine": machine(),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--within", type=float, default=3_600, help="seconds")
    options.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = options.parse_args()
    found = many(given.runs, seed=given.seed, within_s=given.within)
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if given.write:
        RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(bool(found["problems"]))


if __name__ == "__main__":
    sys.exit(main())
