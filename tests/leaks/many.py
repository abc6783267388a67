"""Ten thousand calls by callers who may not see: `python -m tests.leaks.many --calls 10000 --out FILE`.

Each is made for something forbidden and for something that is not there. No canary may stand in an answer, and where
the call makes nothing of the caller's own, both must answer alike.
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

from ricordo import Memory, Scope, Settings
from ricordo.language import ScriptedModel
from tests.leaks.calls import ABSENT, Call, answer, leaks, pick, table
from tests.leaks.world import World, extracted, group, others, private


class Still:
    """A clock that stands: two answers to one question are then equal."""

    def now(self) -> int:
        return 1_767_261_600_000


@dataclass(slots=True)
class Tally:
    """What came of the calls."""

    calls: int = 0
    by_method: Counter[str] = field(default_factory=Counter)
    canaries: list[str] = field(default_factory=list)
    told_apart: list[str] = field(default_factory=list)


async def try_all(memory: Memory, folder: Path, *, calls: int, seed: int) -> Tally:
    """So many calls, spread evenly over the methods, callers and kinds."""
    random = Random(seed)
    own, team = await private(memory, random), await group(memory, random)
    await others(memory)
    await memory.settle(60)
    callers = {
        "eve": (Scope(owner="eve"), own), "eve in another chat": (Scope(owner="eve", chat="other"), own),
        "a member of the team": (Scope(owner="eve", chat="team"), own), "eve of the team's": (Scope(owner="eve"), team),
        "ann in another chat": (Scope(owner="ann", chat="other"), team),
        "the team": (Scope(owner="", chat="team"), own),
    }  # fmt: skip
    tally, tried = Tally(), table(folder)
    while tally.calls < calls:
        for method, entries in tried.items():
            who, (scope, world) = random.choice(sorted(callers.items()))
            await _try(memory.scoped(scope), world, method, random.choice(entries), who=who, random=random, tally=tally)
    return tally


async def _try(caller: Memory, world: World, method: str, call: Call, *, who: str, random: Random,
               tally: Tally) -> None:  # fmt: skip
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


async def _main(calls: int, seed: int) -> dict[str, object]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(durability="process")
        async with Memory.open(
            Path(folder) / "me.db", embedder="hashing", model=ScriptedModel(extracted), settings=settings, clock=Still()
        ) as memory:
            tally = await try_all(memory, Path(folder), calls=calls, seed=seed)
    for each in (*tally.canaries[:10], *tally.told_apart[:10]):
        sys.stderr.write(f"{each}\n")
    return {
        "calls": tally.calls, "methods": len(tally.by_method), "canaries seen": len(tally.canaries),
        "answers that told the forbidden from the absent": len(tally.told_apart), "seed": seed,
        "seconds": round(time.monotonic() - started, 1), "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()}",
    }  # fmt: skip


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
    return int(bool(result["canaries seen"] or result["answers that told the forbidden from the absent"]))


if __name__ == "__main__":
    sys.exit(main())
