"""Kill processes that publish and handle events, again and again; then check that each had its effect once.

    python -m tests.crash.bus_kills --runs 100

A journal and a memory are used for several kills in a row, in three of ten runs by two processes at once. Half of the
kills come at a random moment, the others at the worst: before an effect, between the effect and its record,
or after publishing. Three handlers listen: one adds a message to a memory under the event's key, one writes the
key to a file and publishes a follow-up event, one records the follow-up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from ricordo.clock import SystemClock
from ricordo.errors import RicordoError
from ricordo.host.bus import Bus, Event, Outgoing, Patience
from ricordo.host.journal import Journal
from ricordo.memory import Memory
from ricordo.settings import Settings
from tests.crash.kills import ROOT, machine

RESULT = ROOT / "benchmarks" / "results" / "bus_kills.json"
KILLS_PER_JOURNAL = 5
POINTS = ("before the effect", "after the effect", "after publishing")
PATIENCE_S = 60


class Worker:
    """One process: three handlers, and events published as fast as possible."""

    def __init__(self, folder: Path, *, point: str | None, passes: int) -> None:
        self.folder = folder
        self._point = point
        self._left = passes
        self._effects = apsw.Connection(str(folder / "effects.db"))
        self._effects.set_busy_timeout(20_000)
        self._effects.execute("CREATE TABLE IF NOT EXISTS effects (key TEXT PRIMARY KEY, of TEXT NOT NULL)")
        self._effects.execute("CREATE TABLE IF NOT EXISTS told (key TEXT NOT NULL)")

    def reached(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def run(self, *, publishes: int) -> None:
        settings = Settings(durability="process")
        journal = await Journal.open(self.folder / "me.db.host", durability="process")
        async with Memory.open(self.folder / "me.db", embedder=None, settings=settings) as memory:
            bus = Bus(journal, SystemClock(), Patience(poll_s=0.02, first_wait_ms=50))
            await bus.subscribe("memory", "work", lambda event: self._into(memory, event))
            await bus.subscribe("ledger", "work", self._ledger)
            await bus.subscribe("echo", "echo", self._echo)
            await bus.start()
            say({"ready": os.getpid()})
            for number in range(publishes):
                if number % 30 == 29:  # a backlog of thousands would only delay the end
                    await bus.drain(PATIENCE_S)
                say({"published": await bus.publish("work", {"by": os.getpid()})})
                self.reached("after publishing")
            await bus.drain(PATIENCE_S)
            await bus.drain(PATIENCE_S)  # follow-up events
            say({"dead": len(await bus.dead_letters()), "waiting": (await bus.waiting())[0]})
            await bus.stop()
        await journal.close()

    async def _into(self, memory: Memory, event: Event) -> None:
        self._told(event)
        await memory.add(f"event {event.id}", id=event.key)
        self.reached("after the effect")

    async def _ledger(self, event: Event) -> list[Outgoing]:
        self._told(event)
        self._write(event.key, event.id)
        self.reached("after the effect")
        return [Outgoing(topic="echo", payload={"of": event.id})]

    async def _echo(self, event: Event) -> None:
        self._told(event)
        self._write(event.key, f"echo of {event.payload['of']}")
        self.reached("after the effect")

    def _told(self, event: Event) -> None:
        self._effects.execute("INSERT INTO told VALUES (?)", (event.key,))
        self.reached("before the effect")

    def _write(self, key: str, of: str) -> None:
        self._effects.execute("INSERT INTO effects VALUES (?, ?) ON CONFLICT DO NOTHING", (key, of))


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


@dataclass(slots=True)
class Tally:
    """The results of all kills so far."""

    kills: int = 0
    published: int = 0
    told_again: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    dead: int = 0
    by_point: Counter[str] = field(default_factory=Counter)


def one_journal(tally: Tally, *, seed: int, kills: int = KILLS_PER_JOURNAL) -> None:
    """Kill a number of times on one journal, let a last process finish, and check the result."""
    dice, published = random.Random(seed), set()
    folder = Path(tempfile.mkdtemp(prefix="ricordo-bus-"))
    try:
        for _ in range(kills):
            point = dice.choice(POINTS) if dice.random() < 0.5 else None
            many = 2 if dice.random() < 0.3 else 1
            for killed, heard in _together(folder, many, point=point, dice=dice):
                published |= heard
                tally.kills += killed
                tally.by_point[point or "at random"] += killed
        ended, heard = _heard(_begin(folder, point=None, passes=1, publishes=3), None)
        if ended != 0:
            raise RuntimeError(f"the last process failed (seed {seed})")
        _look(tally, folder, published | heard, seed)
    finally:
        shutil.rmtree(folder)


def _together(folder: Path, many: int, *, point: str | None, dice: random.Random) -> list[tuple[bool, set[str]]]:
    children = [_begin(folder, point=point, passes=dice.randrange(1, 25), publishes=5_000) for _ in range(many)]
    waits = [None if point else dice.uniform(0.0, 1.2) for _ in children]
    found: list[tuple[int, set[str]]] = []
    threads = [
        threading.Thread(target=lambda c=child, w=wait: found.append(_heard(c, w)))
        for child, wait in zip(children, waits, strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for status, _ in found:
        if status not in (0, -9):
            raise RuntimeError("a process failed by itself")
    return [(status == -9, heard) for status, heard in found]


def _begin(folder: Path, *, point: str | None, passes: int, publishes: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "tests.crash.bus_kills",
        "--work",
        str(folder),
        "--passes",
        str(passes),
        "--publishes",
        str(publishes),
    ]
    command += ["--point", point] if point else []
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _heard(child: subprocess.Popen[str], wait_s: float | None) -> tuple[int, set[str]]:
    """Read from a process until it ends; optionally kill it a number of seconds after it is ready."""
    deadline = threading.Timer(PATIENCE_S * 2, child.kill)
    deadline.start()
    published = set()
    assert child.stdout is not None
    for line in child.stdout:
        try:
            said = json.loads(line)
        except ValueError:
            continue  # truncated by the kill
        if "ready" in said and wait_s is not None:
            threading.Timer(wait_s, child.kill).start()
        if "published" in said:
            published.add(said["published"])
        if said.get("dead") or said.get("waiting"):
            raise RuntimeError(f"something is left: {said}")
    status = child.wait()
    deadline.cancel()
    child.stdout.close()
    return status, published


def _look(tally: Tally, folder: Path, published: set[str], seed: int) -> None:
    effects = apsw.Connection(str(folder / "effects.db"))
    written = Counter(of for (of,) in effects.execute("SELECT of FROM effects"))
    told = effects.execute("SELECT count(*), count(DISTINCT key) FROM told").fetchall()[0]
    effects.close()
    store = apsw.Connection(str(folder / "me.db"))
    added = Counter(text for (text,) in store.execute("SELECT content FROM nodes"))
    store.close()
    tally.published += len(published)
    tally.told_again += told[0] - told[1]
    for event in published:
        for name, count in (
            ("memory", added[f"event {event}"]),
            ("ledger", written[event]),
            ("echo", written[f"echo of {event}"]),
        ):
            if count == 0:
                tally.lost.append(f"seed {seed}: {event} for {name}")
    for of, count in (written + added).items():  # including those whose publication was not acknowledged
        if count > 1:
            tally.twice.append(f"seed {seed}: {of}")


def many(runs: int, *, seed: int) -> Tally:
    """Perform at least that many kills, with progress on standard error."""
    tally, started = Tally(), time.monotonic()
    while tally.kills < runs:
        seed += 1
        one_journal(tally, seed=seed)
        took = time.monotonic() - started
        sys.stderr.write(
            f"\r{tally.kills}/{runs} kills, {tally.published:,} events, {len(tally.lost)} lost, "
            f"{len(tally.twice)} twice, {took:.0f} s "
        )
        sys.stderr.flush()
    sys.stderr.write("\n")
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--work", type=Path)
    options.add_argument("--point")
    options.add_argument("--passes", type=int, default=1)
    options.add_argument("--publishes", type=int, default=1_000)
    given = options.parse_args()
    if given.work is not None:
        worker = Worker(given.work, point=given.point, passes=given.passes)
        try:
            asyncio.run(worker.run(publishes=given.publishes))
        except RicordoError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    tally = many(given.runs, seed=given.seed * 1_000)
    result = {
        "kills": tally.kills,
        "events": tally.published,
        "effects": 3 * tally.published,
        "lost": tally.lost,
        "twice": tally.twice,
        "told_again": tally.told_again,
        "by_point": dict(sorted(tally.by_point.items())),
        "seed": given.seed,
        "machine": machine(),
    }
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return 1 if tally.lost or tally.twice else 0


if __name__ == "__main__":
    sys.exit(main())
