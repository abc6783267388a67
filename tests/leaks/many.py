"""Ten thousand calls by unauthorised callers: `python -m tests.leaks.many --calls 10000 --out FILE`.

Each call is made for a forbidden and for a missing item. No canary may be in an answer, and unless the call stores its
arguments, both answers must be equal. Then ten thousand memories of another owner are added: no answer, order, score,
floor, count, id or error of the first owner may change, and no median time by more than a tenth. The times are those of
the processor, of the same calls in a store with and in one without the other owner, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest

from ricordo import Fact, Memory, Message, RicordoError, Scope, Settings
from ricordo.interfaces.serialize import json_text
from ricordo.language import ScriptedModel
from tests.contract import server
from tests.leaks.calls import ABSENT, Call, answer, leaks, pick, table
from tests.leaks.world import World, extracted, group, others, private

_ANOTHERS = 10_000
answer_in_full = answer


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


async def try_all(
    memory: Memory, folder: Path, *, calls: int, seed: int, filled: Callable[[], object] = lambda: None
) -> Tally:
    """Make a number of calls, spread evenly over methods, callers and kinds.

    Args:
        filled: called between filling the store and the calls.
    """
    random = Random(seed)
    own, team = await private(memory, random), await group(memory, random)
    await others(memory)
    await memory.settle(600)
    filled()
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


class Cutting:
    """Takes the owner conditions out of all statements of the PostgreSQL backend when it is called."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.names: list[str] = []

    def __call__(self) -> None:
        from tests.postgres.cut import cut

        self.names = cut(self._patch)
        self._patch.setattr(sys.modules[__name__], "answer", _whatever_comes)


async def _whatever_comes(call: Call, caller: Memory, given: object) -> str:
    """Return an answer, or any error: statements without conditions find more rows than they expect, and stop the
    background work that some calls wait for.
    """
    try:
        return await asyncio.wait_for(answer_in_full(call, caller, given), 2)
    except Exception as error:  # noqa: BLE001 - what it says is searched for canaries, too
        return f"{type(error).__name__}: {error}"


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
    await memory.settle(600)
    before = await _got(me)
    for start in range(0, count, 1_000):
        said = [
            Message(text=f"tea, ships, rope and Paris {n}", session=f"s{start}", id=_THEIRS if n == 0 else None)
            for n in range(start, start + 1_000)
        ]
        await another.add_many(said)
    if count:
        await another.remember_many(
            [Fact(content=f"Bob likes tea number {n}", about=["Bob"]) for n in range(count // 50)]
        )
    await memory.settle(600)
    return before, await _got(me)


async def _got(me: Memory) -> list[object]:
    got: list[object] = [await _told(each(me)) for each in _ASKED.values()]
    for question in ("Who likes tea?", "ships in Oslo", "rope", "When does the ship leave?", "Bob", "painting"):
        for only_relevant in (False, True):
            found = await me.search(question, only_relevant=only_relevant)
            got.append([(hit.id, hit.score) for hit in found.hits])
        got.append(await me.context(question))
    return got


async def _told(asked: Awaitable[object]) -> str:
    """Return an answer or an error as text, without how long it took."""
    try:
        return _TIMINGS.sub("", json_text(await asked))
    except RicordoError as error:
        return f"{type(error).__name__}: {error}"


_ASKED: Mapping[str, Callable[[Memory], Awaitable[object]]] = {
    "search": lambda me: me.search("Who likes tea in Paris?"),
    "search, relevant only": lambda me: me.search("When does the ship leave?", only_relevant=True, trace=True),
    "search for nothing": lambda me: me.search("zqabsent7 zqabsent8", only_relevant=True),
    "query": lambda me: me.query("ships rope"),
    "context": lambda me: me.context("What do you know about Bob?"),
    "list": lambda me: me.list(limit=5),
    "people": lambda me: me.people(),
    "stats": lambda me: me.stats(),
    "an entity that is not there": lambda me: me.entity("Zqabsentname7"),
    "an id that is not there": lambda me: me.get("zqabsentid7"),
    "an id of another": lambda me: me.get(_THEIRS),
    "a session of another": lambda me: me.session("s0"),
    "history of an id of another": lambda me: me.history(_THEIRS),
}
"""What the first owner asks beside the other one."""
_THEIRS = "another-owners-id"
_TIMINGS = re.compile(r'"timings_ms": \{[^}]*\}')


async def times_beside_another(folder: Path, *, count: int, rounds: int) -> dict[str, float]:
    """Return by call how its median time changes with another owner's memories: 1.0 is not at all."""
    settings = Settings(durability="process")
    async with (
        Memory.open(folder / "alone.db", embedder="hashing", settings=settings, clock=Still()) as alone,
        Memory.open(folder / "beside.db", embedder="hashing", settings=settings, clock=Still()) as beside,
    ):
        await beside_another(alone, count=0)
        await beside_another(beside, count=count)
        callers = {"alone": alone.scoped(Scope(owner="me")), "beside": beside.scoped(Scope(owner="me"))}
        took: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds):
            for name, asked in _ASKED.items():
                for who in sorted(callers, reverse=bool(number % 2)):
                    started = time.process_time()
                    await _told(asked(callers[who]))
                    took.setdefault((name, who), []).append(time.process_time() - started)
        return {name: median(took[name, "beside"]) / median(took[name, "alone"]) for name in _ASKED}


async def _without_conditions(calls: int, seed: int) -> dict[str, object]:
    """Make calls whose statements name no owner: the server alone keeps owners apart, by its roles."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        settings, cutting = Settings(durability="process"), Cutting(patch)
        place = server.guarded_location(Path(folder) / "me")
        async with Memory.open(
            place, embedder="hashing", model=ScriptedModel(extracted), settings=settings, clock=Still()
        ) as memory:
            tally = await try_all(memory, Path(folder), calls=calls, seed=seed, filled=cutting)
    return {
        "calls": tally.calls,
        "methods": len(tally.by_method),
        "statements without their owner conditions": len(cutting.names),
        "canaries seen": len(tally.canaries),
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
    }


async def _main(calls: int, seed: int, *, on_server: bool) -> dict[str, object]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(durability="process")

        def place(name: str) -> str:
            return server.guarded_location(Path(folder) / name) if on_server else f"{folder}/{name}.db"

        async with Memory.open(
            place("me"), embedder="hashing", model=ScriptedModel(extracted), settings=settings, clock=Still()
        ) as memory:
            tally = await try_all(memory, Path(folder), calls=calls, seed=seed)
        async with Memory.open(place("two"), embedder="hashing", settings=settings, clock=Still()) as memory:
            before, after = await beside_another(memory, count=_ANOTHERS)
        times = await times_beside_another(Path(folder), count=_ANOTHERS, rounds=300)
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
        "median processor time beside the other, against alone": {name: round(each, 3) for name, each in times.items()},
        "median times changed by more than a tenth": sum(abs(each - 1) > 0.1 for each in times.values()),
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
    parser.add_argument("--postgres", action="store_true", help="on a server, with roles that own nothing")
    given = parser.parse_args()
    result = asyncio.run(_main(given.calls, given.seed, on_server=given.postgres))
    if given.postgres:
        result["with every owner condition cut"] = asyncio.run(_without_conditions(given.calls, given.seed))
    text = json.dumps(result, indent=2)
    sys.stdout.write(f"{text}\n")
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    wrong = ("canaries seen", "answers that told the forbidden from the absent", "answers they moved")
    wrong += ("median times changed by more than a tenth",)
    cut: Any = result.get("with every owner condition cut", {})
    return int(any(result[name] for name in wrong) or bool(cut.get("canaries seen")))


if __name__ == "__main__":
    sys.exit(main())
