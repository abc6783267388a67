"""The process to kill: it writes to a store from a seed and prints each write after its await returned.

Lines are JSON. `try` announces a write, `did` reports that it was acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import apsw

from ricordo.errors import RicordoError, UnavailableError
from ricordo.forgetting import erase
from ricordo.memory import Memory
from ricordo.model import Message
from ricordo.settings import Settings
from ricordo.storage import faults
from ricordo.storage.database import embeddings
from ricordo.storage.database.schema import Migration, migrations
from ricordo.storage.registry import open_store
from tests.crash.embedders import Letters
from tests.crash.points import POINTS

CALLERS = 4
WORDS = ("tea", "coffee", "Anna", "Berta", "garden", "Lisbon", "likes", "never", "every", "morning", "train", "blue")
PEOPLE = ("Anna", "Berta", "Carl Schmidt", "Dora")

UPGRADED = (
    *migrations(),
    Migration(version=migrations()[-1].version + 1, name="one", sql="CREATE TABLE upgraded (a INTEGER) STRICT"),
    Migration(version=migrations()[-1].version + 2, name="two", sql="INSERT INTO upgraded VALUES (1), (2)"),
)


def say(**what):
    """Print one line and flush it, because unflushed output is lost in a kill."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def die_at(point, passes, *, trouble):
    """Kill this process at a pass of a fault point. In `trouble`, batches sometimes fail as on a full disk."""
    left = {point: passes}
    dice = random.Random(passes)

    def hook(reached):
        if reached in left:
            left[reached] -= 1
            if left[reached] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        if trouble and reached == "writer: before commit" and dice.random() < 0.3:
            raise apsw.FullError("as if the disk were full")

    faults.install(hook)


class Workload:
    """Run several callers of one memory, which is sometimes closed and opened again."""

    def __init__(self, path, seed, *, together=False):
        """`together`: other processes do the same to this store, so none changes its embedder; and some consolidate."""
        self.path = Path(path)
        self.together = together
        self.seed = seed
        self.dice = random.Random(seed)
        self.number = 0
        self.memory = None
        self.facts = set()
        self.versions = set()  # erasing one of them may erase related ones

    def text(self):
        """Return unique texts, sometimes long, so that the log outgrows its checkpoints."""
        self.number += 1
        words = self.dice.choices(WORDS, k=self.dice.choice((3, 6, 12, 12, 400)))
        return f"mark{self.seed}x{self.number} {' '.join(words)} \0 ü {self.dice.random()}"

    async def run(self, rounds):
        for turn in range(rounds):
            embedder = "hashing" if self.together else self.dice.choice(("hashing", "hashing", Letters()))
            settings = Settings(durability=self.dice.choice(("disk", "process")))
            say(opening=turn)
            self.memory = await self.opened(embedder, settings)
            say(ready=turn)
            await asyncio.gather(
                *(self.caller(random.Random(self.seed * 1_000 + turn * 10 + n)) for n in range(CALLERS))
            )
            await self.leave()

    async def opened(self, embedder, settings):
        return await Memory.open(self.path, embedder=embedder, settings=settings)

    async def leave(self):
        """Often unawaited writes are in the queue; once `close` has returned they count as written."""
        unseen = []
        for _ in range(self.dice.choice((0, 0, 5, 50))):
            text = self.text()
            unseen.append([self.memory.add_nowait(text), text])
        if self.dice.random() < 0.5:
            await self.memory.settle(600)
        await self.memory.close()
        for id_, text in unseen:
            say(did="add", id=id_, text=text)

    async def caller(self, dice):
        mine, gone = [], []
        for _ in range(dice.randrange(5, 40)):
            name = dice.choice(
                (
                    "add",
                    "add",
                    "add_many",
                    "remember",
                    "remember",
                    "forget",
                    "restore",
                    "undo",
                    "erase",
                    "search",
                    "backup",
                    "meet",
                    "correct",
                    "correct",
                    "tidy",
                    "migrate",
                    *(("tidy", "rebuild") if self.path.is_dir() else ()),
                    *(("consolidate", "prune") if self.together else ()),
                )
            )
            say(begins=name)
            await getattr(self, name)(dice, mine, gone)
            say(ends=name)

    async def add(self, dice, mine, gone):
        text = self.text()
        id_ = await self.memory.add(text, session=dice.choice(("monday", "tuesday", None)), speaker=dice.choice(PEOPLE))
        say(did="add", id=id_, text=text)
        mine.append(id_)

    async def add_many(self, dice, mine, gone):
        """The messages carry their number, so that a partial batch is recognised."""
        texts = [self.text() for _ in range(dice.randrange(2, 9))]
        marks = {"batch": f"{self.seed}-{self.number}", "of": len(texts)}
        ids = await self.memory.add_many([Message(text=text, session="many", attributes=marks) for text in texts])
        for id_, text in zip(ids, texts, strict=True):
            say(did="add", id=id_, text=text)

    async def remember(self, dice, mine, gone):
        about = dice.sample((*PEOPLE, f"Person {self.number}"), dice.randrange(3))
        node = await self.memory.remember(self.text(), about=about, tags=["t"], attributes={"subjects": len(about)})
        say(did="add", id=node.id, text=node.content, about=list(node.about))
        mine.append(node.id)
        self.facts.add(node.id)

    async def correct(self, dice, mine, gone):
        """The old version ends and the new one begins, or neither."""
        known = [id_ for id_ in mine if id_ in self.facts]
        if known:
            id_ = dice.choice(known)
            say(**{"try": "forget", "id": id_})
            node = await self.memory.correct(id_, self.text())
            say(did="forget", id=id_)
            say(did="add", id=node.id, text=node.content, about=list(node.about))
            mine.remove(id_)
            mine.append(node.id)
            self.facts.add(node.id)
            self.versions |= {id_, node.id}

    async def forget(self, dice, mine, gone):
        if mine:
            id_ = mine.pop(dice.randrange(len(mine)))
            say(**{"try": "forget", "id": id_})
            await self.memory.forget(id_)
            say(did="forget", id=id_)
            gone.append(id_)

    async def restore(self, dice, mine, gone):
        if gone:
            id_ = gone.pop(dice.randrange(len(gone)))
            say(**{"try": "restore", "id": id_})
            await self.memory.restore(id_)
            say(did="restore", id=id_)
            mine.append(id_)

    async def undo(self, dice, mine, gone):
        """Undoing a forgetting is a restore."""
        if gone:
            id_ = gone.pop()
            number = (await self.memory.history(id_))[-1].commit.seq
            say(**{"try": "restore", "id": id_})
            await self.memory.undo(number)
            say(did="restore", id=id_)
            mine.append(id_)

    async def erase(self, dice, mine, gone):
        """Rare: the file is rewritten each time."""
        known = [id_ for id_ in mine if id_ not in self.versions]
        if known and dice.random() < 0.3:
            id_ = dice.choice(known)
            mine.remove(id_)
            say(**{"try": "erase", "id": id_})
            await self.memory.erase(id=id_)
            say(did="erase", id=id_)

    async def search(self, dice, mine, gone):
        await self.memory.search(" ".join(dice.choices(WORDS, k=2)))

    async def meet(self, dice, mine, gone):
        entity = await self.memory.add_entity(f"Friend {self.text().split()[0]}", aliases=["pal"])
        say(did="meet", id=entity.id)

    async def tidy(self, dice, mine, gone):
        """Rewrite the files of a folder, if it has outdated lines."""
        await self.memory.gc()

    async def consolidate(self, dice, mine, gone):
        """By rules: what it learns has no text of its own to be lost. Two processes wait for one lease."""
        with contextlib.suppress(UnavailableError):
            await self.memory.consolidate()

    async def prune(self, dice, mine, gone):
        await self.memory.maintain()

    async def rebuild(self, dice, mine, gone):
        """Rebuild the index while others write."""
        if dice.random() < 0.5:
            await self.memory.rebuild_index()

    async def migrate(self, dice, mine, gone):
        """Migrate to the other kind of store while others write; every file with its name is complete."""
        if dice.random() < 0.3:
            target = self.path.with_name(f"migrated-{self.text().split()[0]}{'.db' if self.path.is_dir() else ''}")
            await self.memory.migrate(str(target) if self.path.is_dir() else f"{target}/")
            say(did="copy", path=str(target))

    async def backup(self, dice, mine, gone):
        """Rare: a copy takes as long as everything else."""
        if dice.random() < 0.3:
            target = self.path.with_name(f"backup-{self.text().split()[0]}.db")
            await self.memory.backup(target)
            say(did="copy", path=str(target))


def until_it_does(open_memory):
    """Opening also writes if the store is new or its embedder changed, and is retried."""

    async def attempts(*args):
        while True:
            try:
                return await open_memory(*args)
            except RicordoError:
                say(refused=True)

    return attempts


async def in_trouble(workload, rounds):
    """The same with failing batches: refused writes are ignored, and only returned ones count as acknowledged."""

    def stubborn(act):
        async def attempt(*args):
            try:
                await act(*args)
            except RicordoError:
                say(refused=True)

        return attempt

    for name in (
        "add",
        "add_many",
        "remember",
        "correct",
        "forget",
        "restore",
        "erase",
        "backup",
        "meet",
        "migrate",
        "tidy",
        "rebuild",
    ):
        setattr(workload, name, stubborn(getattr(workload, name)))
    workload.leave = stubborn(workload.leave)
    workload.opened = until_it_does(workload.opened)
    await workload.run(rounds)


def heard(out, errors, arguments):
    """Like `main`, in a forked process: output goes to a pipe, errors to a file."""
    os.dup2(out.fileno(), 1)
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    main(arguments)


def main(arguments=None):
    options = argparse.ArgumentParser()
    options.add_argument("path")
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--rounds", type=int, default=1_000)
    options.add_argument("--point", choices=POINTS)
    options.add_argument("--passes", type=int, default=1)
    options.add_argument("--together", action="store_true", help="other processes write to the same store")
    given = options.parse_args(arguments)
    embeddings.PACK_ROWS = 16  # to cover the behaviour at 16,384 vectors and 2,000 removals
    embeddings._DROP_ROWS = 10
    erase.AT_ONCE_ROWS = 0
    trouble = given.point == "writer: replay"
    if given.point:
        die_at(given.point, given.passes, trouble=trouble)
    if given.point and given.point.startswith("schema:"):
        say(ready=0)
        open_store(given.path, steps=UPGRADED).close()
        return
    workload = Workload(given.path, given.seed, together=given.together)
    asyncio.run(in_trouble(workload, given.rounds) if trouble else workload.run(given.rounds))


if __name__ == "__main__":
    main()
