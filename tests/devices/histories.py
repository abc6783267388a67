"""Random histories on several devices that exchange their commits: afterwards all hold the same.

    python -m tests.devices.histories --runs 500

Each device has a store, a clock that is wrong by up to weeks, and a life of its own: messages, facts, corrections,
decisions, merges, erasures, undoing, in the owner's memory and in two projects. It is offline for long. The devices
exchange through a folder, every second one encrypted, or directly, in any order. In the end, after a few exchanges
without further changes, every row is the same on all of them. With RICORDO_TEST_POSTGRES, every fifth store is in a
database.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ricordo import Memory, RicordoError, Scope, Settings
from ricordo.model import SyncReport
from ricordo.storage.exchange import Exchange
from tests.contract import server
from tests.crash.kills import ROOT, machine
from tests.storage.histories import HOUR, THINGS, HandClock, History
from tests.storage.lives import ALL, maintain
from tests.storage.making import failing

RESULT = ROOT / "benchmarks" / "results" / "devices.json"
SETTINGS = Settings(durability="process", max_entries=60, max_size=20_000)
WRONG_BY = 40 * 24 * HOUR
ROUNDS = 12
ACTS = tuple((condition, act) for condition, act in ALL if act is not maintain)
TABLES = ("sessions", "nodes", "entities", "aliases", "relations", "subjects", "edges", "reviews", "members")
KEY = "a passphrase of several words"
PROJECTS = ("github.com/someone/shop", "github.com/someone/site")


@dataclass(slots=True)
class Told:
    """The result of a history."""

    acts: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    commits: int = 0
    reviews: int = 0
    erased: int = 0
    differences: list[str] = field(default_factory=list)


class Device:
    """A store with a clock of its own and what is done on it."""

    def __init__(self, place: Path, *, seed: int, dice: random.Random, key: str | None = None) -> None:
        self.location = f"{place}/" if seed % 2 else str(place.with_suffix(".db"))
        if seed % 5 == 0 and server.is_wanted():
            self.location = server.location(place)
        self.key = key
        self.clock = HandClock()
        self.clock.ms += dice.randrange(-WRONG_BY, WRONG_BY)
        self.history = History(None, self.clock, place, seed=seed, acts=ACTS)  # type: ignore[arg-type]
        self.memory: Memory

    async def open(self) -> None:
        options: dict[str, Any] = {"embedder": None, "clock": self.clock, "settings": SETTINGS}
        self.memory = self.history.memory = await Memory.open(self.location, **options)

    async def live(self, steps: int, told: Told) -> None:
        """Do random things."""
        for _ in range(steps):
            chat = self.history.dice.choice((None, None, *PROJECTS))
            shares = chat is not None and self.history.dice.random() < 0.7
            self.history.memory = self.memory.scoped(Scope(chat=chat, shares=shares))
            told.acts[(await self.history.step()).partition(":")[0]] += 1

    async def sync(self, other: str | Path, *, dry_run: bool = False) -> SyncReport:
        """Exchange everything with a folder or another device."""
        return await self.memory.sync(other, key=self.key, dry_run=dry_run)

    async def rows(self) -> dict[str, str]:
        """Return every row that devices exchange, by its public name."""

        def read(tx: Any) -> dict[str, str]:
            here = Exchange(tx, self.memory.scope)
            spaces = {key: owner or chat for key, owner, chat in tx.rows("spaces_named")}
            found: dict[str, str] = {}
            for name in TABLES:
                for image in here.table(name).images(tx.connection, CONDITIONS.get(name, "TRUE")):
                    named, space = here.public(name, image) or {}, spaces.get(image.get("space"), "")
                    found[f"{name} {space} {_name(name, named)}"] = json.dumps(_plain(named), ensure_ascii=False)
            return found

        return await self.memory._opened.store.derive(read)

    async def exchanged(self) -> set[tuple[str, str, int]]:
        """Return the commits that this device knows, by space, device and number."""

        def read(tx: Any) -> set[tuple[str, str, int]]:
            return {
                (owner or chat, device, number)
                for key, owner, chat in tx.rows("spaces_named")
                for device, number, _ in tx.rows("exchanged_commits", {"space": key})
            }

        return await self.memory._opened.store.derive(read)


def _name(table: str, named: dict[str, Any]) -> str:
    keys = {
        "sessions": ("session_id",),
        "edges": ("source", "relation_type", "target"),
        "subjects": ("node", "entity"),
        "aliases": ("folded", "entity", "alias"),
        "members": ("member",),
    }
    return " ".join(str(named[key]) for key in keys.get(table, ("id",)))


def _plain(named: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(named.items()) if name not in LEFT_OUT}


LEFT_OUT = frozenset(("first_seen_at",))
"""When a session was first seen is a matter of each store."""
CONDITIONS = {"sessions": "EXISTS (SELECT 1 FROM nodes n WHERE n.session = sessions.key)"}
"""A session whose messages are gone may be left."""


async def _sync(device: Device, others: list[Device], folder: Path, dice: random.Random, told: Told) -> int:
    """Let a device exchange through the folder, or with another directly; return how many commits moved."""
    told.exchanges += 1
    if others and dice.random() < 0.3:
        other = dice.choice(others)
        await other.memory.close()
        try:
            report = await device.sync(other.location)
        finally:
            await other.open()
    else:
        report = await device.sync(folder)
    told.differences += [f"left out: {each}" for each in report.left_out if "are missing" not in each]
    told.reviews += report.to_review
    told.erased += report.erased
    if dice.random() < 0.1:
        await device.sync(folder, dry_run=True)
    return report.sent + report.received + report.erased


async def live(place: Path, *, seed: int, devices: int, steps: int) -> Told:
    """Run one history on several devices."""
    dice, told = random.Random(seed), Told()
    folder = place / "exchange"
    folder.mkdir()
    key = KEY if seed % 2 else None
    there = [
        Device(place / f"device{number}", seed=seed * 10 + number, dice=dice, key=key) for number in range(devices)
    ]
    async with contextlib.AsyncExitStack() as stack:
        for device in there:
            await device.open()
            stack.push_async_callback(_closed, device)
        done = 0
        while done < steps:
            device = dice.choice(there)
            offline = dice.choice((1, 2, 5, 12))
            done += offline
            await device.live(offline, told)
            if dice.random() < 0.4:
                syncing = dice.choice(there)
                await _sync(syncing, [each for each in there if each is not syncing], folder, dice, told)
                _share(there)
        await _settle(there, folder, dice, told)
        await _compare(there, folder, told)
    return told


async def _closed(device: Device) -> None:
    await device.memory.close()


def _share(there: list[Device]) -> None:
    """Let every device act on the memories of the others, which it may have by now."""
    ids = list(dict.fromkeys(each for device in there for each in device.history.ids))
    for device in there:
        device.history.ids = list(ids)


async def _settle(there: list[Device], folder: Path, dice: random.Random, told: Told) -> None:
    for _ in range(ROUNDS):
        moved = 0
        for device in dice.sample(there, len(there)):
            moved += await _sync(device, [], folder, dice, told)
        if not moved:
            return
    told.differences.append(f"after {ROUNDS} rounds there is still something to exchange")


async def _compare(there: list[Device], folder: Path, told: Told) -> None:
    first, *others = there
    rows, commits = await first.rows(), await first.exchanged()
    told.commits = len(commits)
    for number, other in enumerate(others, start=2):
        theirs, known = await other.rows(), await other.exchanged()
        if known != commits:
            told.differences.append(f"device {number} knows other commits: {sorted(known ^ commits)[:3]}")
        for name in sorted(rows.keys() | theirs.keys()):
            if rows.get(name) != theirs.get(name):
                told.differences.append(f"device {number}, {name}:\n  {rows.get(name)}\n  {theirs.get(name)}")
    for device in there:
        told.differences += [f"doctor: {each}" for each in failing(await device.memory.doctor())]
    told.differences += [f"doubled: {each}" for each in await _doubled(first)]
    told.differences += [f"left behind: {each}" for each in _hidden(folder)]
    if first.key is not None:
        told.differences += [f"readable: {each}" for each in _readable(folder)]


def _hidden(folder: Path) -> list[str]:
    return [file.name for file in folder.rglob(".*") if file.is_file()]


def _readable(folder: Path) -> list[str]:
    words = [each.encode() for each in (*THINGS, *PROJECTS, '"deltas"', '"nodes"') if len(each) > len("peanut")]
    return [file.name for file in folder.rglob("*") if file.is_file() and any(w in file.read_bytes() for w in words)]


async def _doubled(device: Device) -> list[str]:
    """Return facts that two devices told and that are live twice."""

    def read(tx: Any) -> list[str]:
        here = Exchange(tx, device.memory.scope)
        found: dict[Any, set[str]] = {}
        images = here.table("nodes").images(tx.connection, "closed_at IS NULL AND type != 'episodic'")
        for image in images:
            named = here.table("subjects").images(tx.connection, "node = ?", (image["key"],))
            about = tuple(sorted(each["name"] for each in named))
            said = (image["space"], image["type"], " ".join(image["content"].casefold().split()), about)
            found.setdefault(said, set()).add(here.maker("nodes", image["id"]))
        return [str(said) for said, makers in found.items() if len(makers) > 1]

    return await device.memory._opened.store.derive(read)


def lived(place: Path, *, seed: int, steps: int) -> Told:
    """Run one history in a folder: every third with three devices."""
    return asyncio.run(live(place, seed=seed, devices=3 if seed % 3 == 0 else 2, steps=steps))


def many(runs: int, *, seed: int, steps: int, within_s: float) -> dict[str, Any]:
    """Run histories within a time limit, with progress on standard error."""
    whole, wrong, done, started = Told(), [], 0, time.monotonic()
    for number in range(seed, seed + runs):
        if time.monotonic() - started > within_s:
            break
        with tempfile.TemporaryDirectory(prefix="ricordo-devices-") as place:
            try:
                told = lived(Path(place), seed=number, steps=steps)
            except RicordoError as error:
                told = Told(differences=[f"{type(error).__name__}: {error}"])
        done += 1
        for each in told.differences:
            sys.stderr.write(f"\nseed {number}: {each}\n")
        for name in ("acts", "exchanges", "commits", "reviews", "erased"):
            setattr(whole, name, getattr(whole, name) + getattr(told, name))
        wrong += [f"seed {number}: {each}" for each in told.differences]
        sys.stderr.write(f"\r{done}/{runs} histories, {whole.exchanges} exchanges, {len(wrong)} differences ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    found = asdict(whole) | {"acts": dict(sorted(whole.acts.items())), "differences": wrong}
    took = round(time.monotonic() - started)
    return {"histories": done, "steps_each": steps, **found, "seed": seed, "seconds": took, "machine": machine()}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--within", type=float, default=3_600, help="seconds")
    options.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = options.parse_args()
    found = many(given.runs, seed=given.seed, steps=given.steps, within_s=given.within)
    sys.stdout.write(
        json.dumps({**found, "differences": found["differences"][:10]}, indent=1, ensure_ascii=False) + "\n"
    )
    if given.write:
        RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(bool(found["differences"]))


if __name__ == "__main__":
    sys.exit(main())
