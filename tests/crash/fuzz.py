"""Send random texts through every interface: each comes back unchanged or is refused with a message.

python -m tests.crash.fuzz --texts 20000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ricordo.encoding.validation import TextRules, storable
from ricordo.errors import RicordoError, StoreError
from ricordo.memory import Memory
from ricordo.settings import Settings
from ricordo.text.dates import DATES
from ricordo.text.statement import statement_line
from tests.crash.kills import ROOT, machine
from tests.logic.strange import huge_text, strange_text

RESULT = ROOT / "benchmarks" / "results" / "fuzz.json"
HUGE_EVERY = 4_000
VALUES = (None, True, False, 0, -1, 2**53, 2**63, 2**70, 1.5, -0.0, float("nan"), float("inf"), "x")


@dataclass(slots=True)
class Findings:
    """The results for the texts."""

    calls: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_ms: dict[str, float] = field(default_factory=dict)


class Fuzz:
    """Every method of a memory that takes a text."""

    def __init__(self, memory: Memory, *, seed: int) -> None:
        self.memory = memory
        self.dice = random.Random(seed)
        self.found = Findings()
        self.ids: list[str] = []
        self.labels: list[str] = ["tea"]

    async def run(self, texts: int) -> Findings:
        doors = [
            self.add,
            self.add,
            self.remember,
            self.search,
            self.query,
            self.context,
            self.list,
            self.narrow,
            self.by_id,
        ]
        for number in range(texts):
            await self.one(self.dice.choice(doors), strange_text(self.dice))
            if number % HUGE_EVERY == HUGE_EVERY // 2:
                for door in (self.add, self.remember, self.search, self.query, self.context):
                    await self.one(door, huge_text(self.dice))
            if number % 2_000 == 1_999:
                await self.memory.settle(600)
        await self.memory.settle(600)
        return self.found

    async def one(self, door, text):
        self.found.calls[door.__name__] += 1
        started = time.perf_counter()
        try:
            await door(text)
        except StoreError as error:  # a text may be refused, but never with a StoreError
            self.fail(door, text, error)
        except RicordoError as error:
            self.found.refused[error.code] += 1
            if not error.message.strip():
                self.fail(door, text, error)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            self.fail(door, text, error)
        took = (time.perf_counter() - started) * 1_000
        self.found.slowest_ms[door.__name__] = max(took, self.found.slowest_ms.get(door.__name__, 0.0))

    def fail(self, door, text, error):
        where = traceback.extract_tb(error.__traceback__)[-1]
        self.found.failures.append(
            f"{door.__name__}({text[:80]!a}): {error!r:.300} at {Path(where.filename).name}:{where.lineno}"
        )

    def label(self):
        """Return a strange label, or one stored before."""
        return self.dice.choice(self.labels) if self.dice.random() < 0.3 else strange_text(self.dice)[:600]

    def attributes(self):
        return {self.label(): self.dice.choice((*VALUES, self.label(), [self.label()], {"a": self.label()}))}

    # writing

    async def add(self, text):
        given = {"speaker": self.maybe(), "session": self.maybe(), "id": self.maybe(0.1), "attributes": None}
        if self.dice.random() < 0.2:
            given["attributes"] = self.attributes()
        id_ = await self.memory.add(text, **given)
        node = await self.memory.get(id_)
        self.ids.append(id_)
        self.check(node.content == stored(text), "content", text)
        for name in ("speaker", "session"):
            wanted = given[name].strip() if given[name] is not None else None
            self.check(getattr(node, name) == wanted, name, given[name])
            self.labels += [wanted] if wanted else []
        self.check(dict(node.attributes) == (given["attributes"] or {}), "attributes", given["attributes"])

    async def remember(self, text):
        tags, about = (
            [self.label() for _ in range(self.dice.randrange(3))],
            [self.label()] if self.dice.random() < 0.2 else [],
        )
        attributes = self.attributes() if self.dice.random() < 0.2 else {}
        node = await self.memory.remember(text, tags=tags, about=about, attributes=attributes)
        again = await self.memory.get(node.id)
        self.labels += node.tags
        if node.id in self.ids:  # said before: the existing memory stays and is reinforced
            self.check(statement_line(again.content) == statement_line(stored(text)), "repetition", text)
            self.check(set(again.tags) >= {tag.strip() for tag in tags}, "tags", tags)
            return
        self.ids.append(node.id)
        self.check(again.content == node.content == stored(text), "content", text)
        self.check(set(again.tags) == {tag.strip() for tag in tags}, "tags", tags)
        given = {name: value for name, value in again.attributes.items() if name != DATES}
        self.check(given == attributes, "attributes", attributes)
        if about:  # otherwise its subjects are the known names in the text
            self.check(len(again.about) == len(about), "about", about)

    def maybe(self, share=0.3):
        return self.label() if self.dice.random() < share else None

    def check(self, holds, what, given):
        if not holds:
            self.found.failures.append(f"{what} came back otherwise: {str(given)[:120]!a}")

    # reading

    async def search(self, text):
        await self.memory.search(text, trace=self.dice.random() < 0.2, archived=self.dice.random() < 0.1)

    async def query(self, text):
        await self.memory.query(text)

    async def context(self, text):
        block = await self.memory.context(text, budget=self.dice.choice((1, 50, 2_000)))
        self.check(block is None or block.count("</recalled-memory>") == 1, "context", text)

    async def list(self, text):
        name = self.dice.choice(("tag", "session", "entity", "where", "after", "before", "cursor", "type", "category"))
        value = {text: self.dice.choice((*VALUES, text))} if name == "where" else text
        await self.memory.list(**{name: value})

    async def narrow(self, text):
        name = self.dice.choice(("tag", "session", "entity", "where", "after"))
        value = {self.label(): self.dice.choice((*VALUES, text))} if name == "where" else text
        await self.memory.search(self.label(), **{name: value})

    async def by_id(self, text):
        """Try invalid ids and strange reasons."""
        if self.ids and self.dice.random() < 0.6:
            id_ = self.dice.choice(self.ids)
            await self.memory.forget(id_, reason=text)
            await self.memory.restore(id_)
            await self.memory.history(id_)
            return
        memory = self.memory
        doors = (memory.get, memory.forget, memory.restore, memory.history, memory.end_session, memory.add_entity)
        await self.dice.choice(doors)(text)


async def fuzz(path: Path, *, texts: int, seed: int) -> tuple[Findings, list[str]]:
    """Return the findings, and those of `doctor` afterwards."""
    settings = Settings(durability="process", fresh_wait_ms=0)
    async with Memory.open(path, embedder="hashing", settings=settings) as memory:
        found = await Fuzz(memory, seed=seed).run(texts)
        report = await memory.doctor()
    return found, [f"{each.check}: {each.detail}" for each in report.findings if not each.ok]


def stored(text):
    """Return the stored form of a text: without credentials and recalled text."""
    return storable(text, name="text", rules=TextRules())


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--texts", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ricordo-fuzz-") as folder:
        found, unsound = asyncio.run(fuzz(Path(folder) / "memory.db", texts=given.texts, seed=given.seed))
    result = {
        "texts": given.texts,
        "calls": dict(sorted(found.calls.items())),
        "refused_with_a_sentence": dict(sorted(found.refused.items())),
        "failures": found.failures,
        "doctor": unsound,
        "slowest_ms": {name: round(took, 1) for name, took in sorted(found.slowest_ms.items())},
        "seconds": round(time.monotonic() - started, 1),
        "seed": given.seed,
        "machine": machine(),
    }
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=True) + "\n")
    return 1 if found.failures or unsound else 0


if __name__ == "__main__":
    sys.exit(main())
