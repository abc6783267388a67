"""Proposals are in nobody's answers: `python -m tests.leaks.staged --calls 5000 --out FILE`.

The same reading calls are made before and after a caller that only proposes has proposed facts, corrections, updates
and removals whose every word is a canary. No answer, order, score, count, statistic or error may differ. `review` shows
proposals, the log that something was proposed, and statistics how many wait: these are compared without that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ricordo import Memory, Scope
from ricordo.language import ScriptedModel
from tests.leaks.calls import Call, answer, canaries_in, table
from tests.leaks.many import Still
from tests.leaks.world import World, extracted, private

READS = (
    "search",
    "query",
    "context",
    "context_parts",
    "ask",
    "brief",
    "brief_parts",
    "list",
    "entity",
    "people",
    "timeline",
    "get",
    "history",
    "explain",
    "weak",
    "archive",
    "sessions",
    "session",
    "run",
    "stats",
    "export",
    "store_view",
)
CALLERS = {
    "the user": Scope(owner="ann"),
    "an agent": Scope(owner="ann", trust="agent"),
    "who proposes": Scope(owner="ann", trust="agent", propose=True),
}
_COUNTING = ("stats", "export", "store_view", "brief", "brief_parts")
_OF_THE_STORE = re.compile(r'"(?:commits|size_mb|quarantined|seq|last_commit)": (?:[\d.]+|GIVEN)')


@dataclass(slots=True)
class Tally:
    """The results of the calls."""

    calls: int = 0
    proposed: int = 0
    by_method: Counter[str] = field(default_factory=Counter)
    canaries: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


async def try_all(memory: Memory, folder: Path, *, calls: int, seed: int) -> Tally:
    """Make calls before and after two hundred proposals."""
    random, tally = Random(seed), Tally()
    world = await private(memory, random)
    await memory.settle(600)
    named = list(dict.fromkeys(world.canaries))
    asked = _asked(world, named, folder, calls // 2, random)
    before = [await _said(memory, *each) for each in asked]
    staged = await propose(memory.scoped(CALLERS["who proposes"]), world, random)
    await memory.settle(600)
    tally.proposed = len(await memory.scoped(CALLERS["the user"]).review(1_000, kind="quarantine")) - 1
    for (method, caller, call, given), earlier in zip(asked, before, strict=True):
        said = await _said(memory, method, caller, call, given)
        tally.calls += 2
        tally.by_method[method] += 1
        if shown := staged.intersection(canaries_in(said)):
            tally.canaries.append(f"{method} by {caller}: {sorted(shown)[0]}")
        if said != earlier:
            tally.changed.append(f"{method} by {caller} of {given!r}: {_difference(earlier, said)}")
    return tally


def _asked(
    world: World, named: list[str], folder: Path, count: int, random: Random
) -> list[tuple[str, str, Call, object]]:
    known = table(folder)
    # A complete export, the first of its calls, holds what waits, and only the user makes one.
    pairs = [(method, each) for method in READS for each in known[method][method == "export" :]]
    found = []
    for number in range(count):
        method, call = pairs[number % len(pairs)]
        items = getattr(world, call.kind) or named
        given = random.choice(items if call.kind != "texts" else [*items, f"where is {random.choice(named)}?"])
        found.append((method, random.choice(list(CALLERS)), call, given))
    return found


async def _said(memory: Memory, method: str, caller: str, call: Call, given: object) -> str:
    said = await answer(call, memory.scoped(CALLERS[caller]), given)
    return _OF_THE_STORE.sub("", said) if method in _COUNTING else said


async def propose(memory: Memory, world: World, random: Random) -> set[str]:
    """Propose facts like those that are known, and changes of them; return the canaries in them."""
    staged = World()
    new = lambda: staged.token(random)  # noqa: E731
    for number in range(120):
        name = random.choice(world.names[:7])
        text = (f"{name} lives in {new().capitalize()}", f"{name} is {new()}", f"I met {new()} at the {new()}")[
            number % 3
        ]
        about = [name, new()] if number % 2 else [new()]
        await memory.remember(text, about=about, tags=[new()], attributes={"note": new()}, session=new())
    live = [node.id for node in (await memory.list(limit=1_000)).nodes if node.type != "episodic"]
    for id in live:
        await memory.correct(id, f"it is {new()}")
        await memory.update(id, tags=[new()])
        await memory.update(id, content=f"it became {new()}", attributes={"note": new()}, expires="in 3 days")
        await memory.forget(id, f"because of {new()}")
    return set(staged.canaries)


def _difference(one: str, other: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"...{one[max(0, at - 60) : at + 60]} | {other[max(0, at - 60) : at + 60]}"


async def run(calls: int, seed: int) -> Tally:
    """Run in a store of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = ScriptedModel(extracted)
        async with Memory.open(folder / "me.db", embedder="hashing", model=model, clock=Still()) as memory:
            return await try_all(memory, folder, calls=calls, seed=seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    tally = asyncio.run(run(options.calls, options.seed))
    report = {
        "calls": tally.calls,
        "proposals": tally.proposed,
        "by method": dict(tally.by_method),
        "canaries": len(tally.canaries),
        "changed answers": len(tally.changed),
    }
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    for each in (*tally.canaries, *tally.changed):
        sys.stderr.write(each + "\n")
    return 1 if tally.canaries or tally.changed else 0


if __name__ == "__main__":
    sys.exit(main())
