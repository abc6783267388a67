"""Random histories with receipts: `python -m tests.flows.receipt_histories --histories 1000`.

In each, facts and messages are recorded, corrected, forgotten, undone and erased, and questions leave receipts. Some
receipts are then replayed: as of its commit each gives the same memories with the same shares, and if today's answer
differs, changes after the receipt are named. Each memory has a mark of its own, which some questions ask for. Of what
was erased, neither the id nor the mark is in any byte of the store's files, and no question holds a whole sentence.
Some questions stand: each sentence of a fresh answer is in a live memory, and a renewed answer is fresh.
Every other history is lived in a folder of plain text. `--postgres` lives them in PostgreSQL and searches all rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from ricordo import ConflictError, Memory, Settings

_PEOPLE = ("Anna", "Bob", "Carla", "Dora")
_PLACES = ("Rome", "Milan", "Oslo", "Lima", "Kyoto")
_THINGS = ("tea", "jazz", "chess", "pears", "the cello")
_QUESTIONS = ("where does {} live", "what does {} like", "who met {}", "what about {} and tea", "does {} live in Rome")
_MARK = re.compile(r"zq\d+x\d+z")
_REPLAYED = 3


class History:
    """One random history: what was said and erased in it."""

    def __init__(self, seed: int) -> None:
        self.random, self.seed = Random(seed), seed
        self.told = Counter[str]()
        self.texts: dict[str, str] = {}
        self.erased: dict[str, str] = {}

    async def live(self, memory: Memory, *, steps: int) -> None:
        """Live it, and check its receipts. Raises AssertionError."""
        for number in range(steps):
            await self._step(memory, number)
            if self.random.random() < 0.35:
                await memory.settle()
                await (self._keep(memory) if self.random.random() < 0.3 else self._ask(memory))
        await memory.settle()
        await self._check_standing(memory)
        receipts = await memory.receipts(100)
        self.told["receipts"] += len(receipts)
        self.told["questions erased"] += sum(each.question is None for each in receipts)
        for receipt in self.random.sample(receipts, min(_REPLAYED, len(receipts))):
            await self._replay(memory, receipt)

    async def _step(self, memory: Memory, number: int) -> None:
        random, texts = self.random, self.texts
        who, where, what = random.choice(_PEOPLE), random.choice(_PLACES), random.choice(_THINGS)
        live = [each.id for each in (await memory.list(limit=50)).nodes if each.type != "episodic"]
        kind = random.choice(("fact", "fact", "fact", "said", "said", "correct", "forget", "undo", "erase"))
        mark = f"zq{self.seed}x{number}z"
        try:
            if kind == "fact" or not live:
                text = random.choice((f"{who} lives in {where}", f"{who} likes {what}"))
                text += random.choice(("", f", says {mark}"))
                node = await memory.remember(text, about=[who])
                texts.setdefault(node.id, text)
            elif kind == "said":
                text = f"I met {who} in {where}, number {number}, and {mark}"
                texts[await memory.add(text, session=f"s{number % 3}")] = text
            elif kind == "correct":
                text = f"{who} lives in {where} since {mark}"
                texts[(await memory.correct(random.choice(live), text)).id] = text
            elif kind == "forget":
                await memory.forget(random.choice(live))
            elif kind == "undo":
                await memory.undo((await memory.log(1))[0].seq)
            elif random.random() < 0.4:
                report = await memory.erase(id=random.choice(live))
                ids = (id_ for each in report.erased for id_ in each.ids if each.kind != "session")
                gone = {id_: texts.pop(id_, "") for id_ in ids}
                self.erased |= gone
                self._check_erased(gone, await memory.receipts(100))
                standing = await memory.questions()
                assert all(each.answer is None for each in standing), (self.seed, "an answer outlived an erasure")
                said = [text for text in gone.values() if text and any(text in each.question for each in standing)]
                assert not said, (self.seed, said, "an erased sentence is in a standing question")
        except ConflictError:
            pass  # undone already, or replaced

    async def _ask(self, memory: Memory) -> None:
        random = self.random
        question = random.choice(_QUESTIONS).format(random.choice(_PEOPLE))
        if self.texts and random.random() < 0.3:
            text = random.choice([*self.texts.values()])
            question = random.choice((text, f"{question} {' '.join(_MARK.findall(text))}"))
        if random.random() < 0.3:
            await memory.context_parts(question, receipt=True)
        else:
            await memory.search(question, limit=random.choice((2, 5, 10)), receipt=True)

    async def _keep(self, memory: Memory) -> None:
        """Keep a question, or renew the stale answers, or do neither."""
        random = self.random
        question = random.choice(_QUESTIONS).format(random.choice(_PEOPLE))
        if random.random() < 0.6:
            await memory.keep_question(question)
        elif random.random() < 0.5:
            self.told["answers renewed"] += len(await memory.renew_questions())

    async def _check_standing(self, memory: Memory) -> None:
        """Check that what a fresh answer says is still remembered, and that renewing makes each answer fresh."""
        for each in await memory.questions():
            self.told["standing questions"] += 1
            self.told["stale"] += not each.is_fresh
            for sentence in each.answer.sentences if each.is_fresh else ():
                (id_,) = sentence.ids
                node = await memory.get(id_)
                assert node.is_live and sentence.text in node.content, (self.seed, each.id, sentence)
        await memory.renew_questions()
        assert all(each.is_fresh for each in await memory.questions()), (self.seed, "a renewed answer is stale")

    def _check_erased(self, gone: dict[str, str], receipts: list) -> None:
        """Check that no receipt names or says what was just erased."""
        self.told["erasures"] += 1
        ids = {each.id for one in receipts for each in (*one.given, *one.left_out)}
        assert ids.isdisjoint(gone), (self.seed, "an erased id is in a receipt")
        asked = [each.question for each in receipts if each.question is not None]
        said = [text for text in gone.values() if text and any(text in each for each in asked)]
        assert not said, (self.seed, said, "an erased sentence is in a question")

    async def _replay(self, memory: Memory, receipt: object) -> None:
        told, seed = self.told, self.seed
        told["looked at"] += 1
        if receipt.question is None:
            told["without a question"] += 1
            return
        found = await memory.replay_receipt(receipt.id)
        told["same as then"] += not found.differs_from_receipt
        told["different from then, with a reason"] += bool(found.differs_from_receipt and found.reasons)
        told["different today"] += bool(found.differs_today)
        assert not found.differs_from_receipt or found.commits or found.reasons, (seed, receipt.id)
        assert not found.differs_today or found.commits, (seed, receipt.id, "no change is named")
        assert all(each.seq > receipt.commit for each in found.commits), (seed, receipt.id)

    def check_bytes(self, written: bytes) -> None:
        """Check that no byte of what was erased is in what a store wrote. Raises AssertionError."""
        marks = {mark for text in self.erased.values() for mark in _MARK.findall(text)}
        self.told["marks searched"] += len(marks)
        left = [each for each in {*self.erased, *marks} if each.encode() in written]
        assert not left, (self.seed, left, "erased and still in the files")


async def history(seed: int, place: Path | str, *, steps: int, dump: Callable[[], bytes] | None = None) -> Counter[str]:
    """Live one history at a location and check it; return what was counted. Raises AssertionError."""
    lived = History(seed)
    async with Memory.open(place, embedder="hashing", settings=Settings(durability="process")) as memory:
        await lived.live(memory, steps=steps)
    lived.check_bytes(_written(Path(place)) if dump is None else dump())
    return lived.told


def _written(place: Path) -> bytes:
    """Return all bytes of a store: a file with its companions, or a folder."""
    files = place.rglob("*") if place.is_dir() else place.parent.glob(f"{place.name}*")
    return b"\n".join(each.read_bytes() for each in sorted(files) if each.is_file())


async def run(histories: int, *, first: int = 0, steps: int = 20) -> Counter[str]:
    """Live some histories, in files and folders in turn; return what was counted."""
    told = Counter[str](histories=histories)
    for seed in range(first, first + histories):
        with tempfile.TemporaryDirectory() as place:
            told += await history(seed, f"{place}/me/" if seed % 2 else f"{place}/me.db", steps=steps)
    return told


async def run_in_postgres(histories: int, *, first: int, steps: int = 20) -> Counter[str]:
    """Live some histories in PostgreSQL; every row of every table is searched as text. Return what was counted."""
    from tests.contract import server

    told = Counter[str](histories=histories)
    for seed in range(first, first + histories):
        where = server.location(Path(f"receipts-{seed}"))
        told += await history(seed, where, steps=steps, dump=partial(_rows, where))
    return told


def _rows(where: str) -> bytes:
    """Return every row of every table of a store as text."""
    import psycopg

    address, _, schema = where.rpartition("schema=")
    with psycopg.connect(address.rstrip("?&")) as database:
        names = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        asked = (f'SELECT t::text FROM "{schema}"."{name}" AS t' for (name,) in names)
        rows = [text or "" for each in asked for (text,) in database.execute(each).fetchall()]
    assert len(names) > 20 and rows
    return "\n".join(rows).encode()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="on the server that tests/contract/server.py starts")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lives = run_in_postgres if given.postgres else run  # the former with RICORDO_TEST_POSTGRES=1
    told = dict(asyncio.run(lives(given.histories, first=given.first)))
    sys.stdout.write(f"{told}\n")
    if given.out is not None:
        given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
