"""Ten thousand calls by unauthorised callers: `python -m tests.leaks.many --calls 10000 --out FILE`.

Each call is made for a forbidden and for a missing item. No canary may be in an answer, and unless the call stores its
arguments, both answers must be equal. Then ten thousand memories of another owner are added: no answer and no score of
the first owner may change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ricordo import Fact, Memory, Message, Scope, Settings
from ricordo.language import ScriptedModel
from tests.leaks.calls import ABSENT, Call, answer, leaks, pick, table
from tests.leaks.world import World, extracted, group, others, private

_ANOTHERS = 10_000


class Still:
    """A fixed clock, so that two answers to one question are equal."""

    def now(self) -> int:
        return 1_767_261_600_000


@dataclass(slots=True)
class Tally:
    """The results of the calls."""

    calls: int = 0
    by_method: Counter[str] = field(default_factory=Counter)
    canaries: list[str] = field(default_factory=list)
    told_apart: list[str] = field(default_factory=list)


async def try_all(memory: Memory, folder: Path, *, calls: int, seed: int) -> Tally:
    """Make a number of calls, spread evenly over methods, callers and kinds."""
    random = Random(seed)
    own, team = await private(memory, random), await group(memory, random)
    await others(memory)
    await memory.settle(60)
    callers = {
        "eve": (Scope(owner="eve"), own),
        "eve in another chat": (Scope(owner="eve", chat="other"), own),
        "a member of the team": (Scope(owner="eve", chat="team"), own),
        "eve of the team's": (Scope(owner="eve"), team),
        "ann in another chat": (Scope(owner="ann", chat="other"), team),
        "the team": (Scope(owner="", chat="team"), own),
    }
    tally, tried = Tally(), table(folder)
    while tally.calls < calls:
        for method, entries in tried.items():
            who, (scope, world) = random.choice(sorted(callers.items()))
            await _try(memory.scoped(scope), world, method, random.choice(entries), who=who, random=random, tally=tally)
    return tally


async def _try(
    caller: Memory, world: World, method: str, call: Call, *, who: str, random: Random, tally: Tally
) -> None:
    given = pick(world, call, random)
    said = await answer(call, caller, given)
    tally.calls += 1
    tally.by_method[method] += 1
    if found := leaks(said, world):
        tally.canaries.append(f"{who}: {method}({given!r}): {found[:3]} in {said[:300]}")
    if call.stores or not call.compared:
        return
    absent = await answer(call, caller, ABSENT[call.kind])
    tally.calls += 1
    if absent != said:
        tally.told_apart.append(f"{who}: {method}({given!r}): {said[:300]} | {absent[:300]}")


async def beside_another(memory: Memory, *, count: int) -> tuple[list[object], list[object]]:
    """Return one caller's hits and scores before and after another one stores `count` messages on the same topics."""
    me, another = memory.scoped(Scope(owner="me")), memory.scoped(Scope(owner="eve"))
    texts = [
        f"I spoke with Bob about {what} in {where}"
        for what in ("tea", "ships", "rope", "the alps", "painting")
        for where in ("Paris", "the garden", "spring", "Oslo")
    ]
    await me.add_many([Message(text=text, session=f"s{n % 4}") for n, text in enumerate(texts)])
    await me.remember_many([Fact(content=text) for text in ("Bob likes green tea", "The ship leaves at nine")])
    await memory.settle(60)
    before = await _got(me)
    for start in range(0, count, 1_000):
        said = [
            Message(text=f"tea, ships, rope and Paris {n}", session=f"s{start}") for n in range(start, start + 1_000)
        ]
        await another.add_many(said)
    await another.remember_many([Fact(content=f"Bob likes tea number {n}", about=["Bob"]) for n in range(count // 50)])
    await memory.settle(600)
    return before, await _got(me)


async def _got(me: Memory) -> list[object]:
    got: list[object] = []
    for question in ("Who likes tea?", "ships in Oslo", "rope", "When does the ship leave?", "Bob", "painting"):
        for only_relevant in (False, True):
            found = await me.search(question, only_relevant=only_relevant)
            got.append([(hit.id, hit.score) for hit in found.hits])
        got.append(await me.context(question))
    return got


async def _main(calls: int, seed: int) -> dict[str, object]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(durability="process")
        async with Memory.open(
            Path(folder) / "me.db", embedder="hashing", model=ScriptedModel(extracted), settings=settings, clock=Still()
        ) as memory:
            tally = await try_all(memory, Path(folder), calls=calls, seed=seed)
        async with Memory.open(Path(folder) / "two.db", embedder="hashing", settings=settings, clock=Still()) as memory:
            before, after = await beside_another(memory, count=_ANOTHERS)
    for each in (*tally.canaries[:10], *tally.told_apart[:10]):
        sys.stderr.write(f"{each}\n")
    return {
        "calls": tally.calls,
        "methods": len(tally.by_method),
        "canaries seen": len(tally.canaries),
        "answers that told the forbidden from the absent": len(tally.told_apart),
        "memories of another owner": _ANOTHERS,
        "answers": len(before),
        "answers they moved": sum(one != other for one, other in zip(before, after, strict=True)),
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()}",
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    result = asyncio.run(_main(given.calls, given.seed))
    text = json.dumps(result, indent=2)
    sys.stdout.write(f"{text}\n")
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    wrong = ("canaries seen", "answers that told the forbidden from the absent", "answers they moved")
    return int(any(result[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
