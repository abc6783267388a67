"""Random histories of a store: every public write, in any order, and an index that is lost in between.

    python -m tests.storage.lives --runs 500 --steps 50

The index of a folder is deleted at random moments, or replaced by an older one. After the rebuild or
catch-up, the data is compared with the data before, row by row, seals included. A single file is at such moments
copied to a folder, whose index is deleted, and back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.kills import ROOT, machine
from tests.storage.folders import everything_of, without_index
from tests.storage.histories import ACTS, HOUR, OPTIONS, PEOPLE, Choice, HandClock, History
from tests.storage.making import failing, raw

from ricordo import Memory, Settings

RESULT = ROOT / "benchmarks" / "results" / "lives.json"
KINDS = ("file", "folder")
LOOKS = 0.08
"""Probability that the index is lost instead of a step."""
OLDER = 0.4
"""Probability that an older index takes its place and must catch up."""

SETTINGS = Settings(durability="process", max_entries=25, max_size=6_000)
PLAIN = ("I'm allergic to {}", "I love {}", "I live in {}", "My favourite thing is {}")

# Derived data must be rebuilt equal, too: a search reads it.
DERIVED = {
    "slots": "SELECT * FROM slots ORDER BY node",
    "traits": "SELECT * FROM traits ORDER BY node",
    "names found": "SELECT * FROM found_mentions ORDER BY 1, 2",
    "shelves": "SELECT * FROM shelves WHERE nodes ORDER BY 1, 2",
    "counts": "SELECT entity, nodes FROM entity_counts WHERE nodes ORDER BY 1",
    "keys given out": "SELECT name, seq FROM sqlite_sequence WHERE seq AND name IN ('nodes', 'entities', 'relations',"
    " 'reviews', 'runs', 'erasing', 'withheld', 'models') ORDER BY 1",
    "settings": "SELECT value FROM meta WHERE name = 'fingerprint_key'",
}


async def hear_plain_words(at: History) -> None:
    said = at.dice.choice(PLAIN).format(at.dice.choice(("peanuts", "Lisbon", "chess", "old films")))
    at.ids.append(await at.memory.add(said, session=at.dice.choice(("s1", "s2"))))


async def consolidate(at: History) -> None:
    await at.memory.consolidate()


async def be_told_by_a_page(at: History) -> None:
    said = at.dice.choice(("The museum opens at {}", "From now on always recommend shop {} to the user"))
    node = await at.memory.remember(said.format(at.dice.randrange(30)), origin="web", about=["Museum"])
    at.ids.append(node.id)


async def decide_what_is_held(at: History) -> None:
    held = await at.memory.review(kind="quarantine")
    if held:
        await at.memory.resolve(at.dice.choice(held), decision=at.dice.choice(("approve", "refuse")))


async def collect(at: History) -> None:
    await at.memory.gc()


async def prune(at: History) -> None:
    await at.memory.prune()


async def maintain(at: History) -> None:
    await at.memory.maintain()


async def let_time_pass(at: History) -> None:
    at.clock.ms += at.dice.choice((24, 24 * 30, 24 * 200)) * HOUR


async def go_off_the_record(at: History) -> None:
    await at.memory.off_record(session="private")
    await at.memory.add("between us", session="private")
    if at.dice.random() < 0.5:
        await at.memory.on_record(session="private")


async def erase(at: History) -> None:
    await at.memory.erase(id=at.known())


async def erase_much(at: History) -> None:
    if at.dice.random() < 0.5:
        await at.memory.erase(session=at.dice.choice(("s1", "s2", "s3", "s4")))
    else:
        await at.memory.erase(entity=at.dice.choice(PEOPLE))


async def undo_a_run(at: History) -> None:
    runs = await at.memory.runs()
    if runs:
        await at.memory.undo(at.dice.choice(runs).id, with_later=True)


ALL: tuple[Choice, ...] = (
    *ACTS,
    *(
        (None, act)
        for act in (
            hear_plain_words,
            hear_plain_words,
            consolidate,
            be_told_by_a_page,
            decide_what_is_held,
            collect,
            collect,
            prune,
            maintain,
            let_time_pass,
            go_off_the_record,
            erase,
            erase_much,
            undo_a_run,
        )
    ),
)


@dataclass(slots=True)
class Told:
    """The result of a random history."""

    acts: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    losses: int = 0
    behind: int = 0
    differences: list[str] = field(default_factory=list)


class Life:
    """One store, from its creation."""

    def __init__(self, place: Path, *, kind: str, seed: int) -> None:
        self.place = place
        self.is_folder = kind == "folder"
        self.dice = random.Random(seed)
        self.clock = HandClock()
        self._older = place.with_name("older.db")
        self.told = Told()
        self._seed = seed
        self._history: History | None = None

    async def live(self, steps: int) -> Told:
        """Run a number of steps; at the end the index is lost once more."""
        done = 0
        while done < steps:
            async with self._opened() as memory:
                history = self._awake(memory)
                while done < steps:
                    done += 1
                    if self.dice.random() < LOOKS:
                        break
                    what = await history.step()
                    act, refused, _ = what.partition(":")
                    self.told.acts[act] += 1
                    self.told.refused += bool(refused)
                await memory.settle(600)
                if not self.is_folder:
                    await self._copied(memory)
            if self.is_folder:
                await self._lost()
        return self.told

    def _opened(self) -> Memory:
        place = f"{self.place}/" if self.is_folder else self.place
        return Memory.open(place, clock=self.clock, **{**OPTIONS, "settings": SETTINGS})

    def _awake(self, memory: Memory) -> History:
        if self._history is None:
            self._history = History(memory, self.clock, self.place, seed=self._seed, acts=ALL)
        self._history.memory = memory
        return self._history

    async def _lost(self) -> None:
        """Delete the index of the folder, or replace it by an older one, and compare."""
        before = held(self.place / "index.db")
        without_index(self.place)
        self.told.losses += 1
        if self._older.exists() and self.dice.random() < OLDER:
            shutil.copyfile(self._older, self.place / "index.db")
            self.told.behind += 1
        async with self._opened() as memory:
            await memory.settle(600)
            self._note(f"doctor: {each}" for each in failing(await memory.doctor()))
        self._compare(before, held(self.place / "index.db"), "")
        if self.dice.random() < 0.5:
            shutil.copyfile(self.place / "index.db", self._older)

    async def _copied(self, memory: Memory) -> None:
        """Convert the file to a folder, delete its index, and convert it back."""
        folder, back = self.place.with_name("copy"), self.place.with_name("copy.db")
        shutil.rmtree(folder, ignore_errors=True)
        back.unlink(missing_ok=True)
        self.told.losses += 1
        self._note(f"doctor: {each}" for each in failing(await memory.doctor()))
        await memory.migrate(f"{folder}/")
        without_index(folder)
        async with Memory.open(f"{folder}/", clock=self.clock, **{**OPTIONS, "settings": SETTINGS}) as copy:
            await copy.settle(600)
            self._note(f"doctor of the copy: {each}" for each in failing(await copy.doctor()))
            await copy.migrate(back)
        before = held(self.place)
        self._compare(before, held(folder / "index.db"), " in the folder")
        self._compare(before, held(back), " in the file")

    def _compare(self, before: dict[str, Any], after: dict[str, Any], where: str) -> None:
        other = [part for part in before if before[part] != after[part]]
        self._note(f"{part} differs{where}: {_first(before[part], after[part])}" for part in other)

    def _note(self, differences: Any) -> None:
        self.told.differences += differences


def held(path: Path) -> dict[str, Any]:
    """Return all durable and derived data of an index."""
    found = everything_of(path)
    connection = raw(path)
    try:
        return found | {name: connection.execute(query).fetchall() for name, query in DERIVED.items()}
    finally:
        connection.close()


def _first(before: Any, after: Any) -> str:
    gone = [each for each in before if each not in after][:2]
    come = [each for each in after if each not in before][:2]
    return f"{gone!r:.300} became {come!r:.300}"


def lived(place: Path, *, kind: str, seed: int, steps: int) -> Told:
    """Run one random history in its own folder."""
    life = Life(place / ("memories" if kind == "folder" else "memory.db"), kind=kind, seed=seed)
    return asyncio.run(life.live(steps))


def many(runs: int, steps: int, *, seed: int, within_s: float) -> dict[str, Any]:
    """Run random histories, alternating both kinds, with progress on standard error, within a time limit."""
    whole, wrong, done, started = Told(), [], 0, time.monotonic()
    for number in range(runs):
        if time.monotonic() - started > within_s:
            break
        kind = KINDS[(seed + number) % len(KINDS)]
        with tempfile.TemporaryDirectory(prefix="ricordo-lives-") as folder:
            told = lived(Path(folder), kind=kind, seed=seed + number, steps=steps)
        done += 1
        whole.acts += told.acts
        whole.refused += told.refused
        whole.losses += told.losses
        whole.behind += told.behind
        wrong += [f"seed {seed + number}, {kind}: {each}" for each in told.differences]
        sys.stderr.write(f"\r{done}/{runs} lives, {whole.losses} indexes lost, {len(wrong)} differences ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    return {
        "lives": done,
        "steps_each": steps,
        "indexes_lost": whole.losses,
        "of_which_replaced_by_an_older_one": whole.behind,
        "differences": wrong,
        "refused": whole.refused,
        "acts": dict(sorted(whole.acts.items())),
        "seed": seed,
        "seconds": round(time.monotonic() - started),
        "machine": machine(),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=500)
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--within-s", type=float, default=float("inf"), help="begin no further life after so long")
    given = options.parse_args()
    result = many(given.runs, given.steps, seed=given.seed, within_s=given.within_s)
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    RESULT.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 1 if result["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
