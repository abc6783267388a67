"""Random histories on every backend: the same operations must leave the same memory.

    python -m tests.contract.histories --runs 300

Clock, ids and the answers of the language model are the same for each backend, so that dumps compare as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ricordo import Memory, RicordoError, Scope, Settings
from ricordo import clock as clock_
from ricordo.language import ScriptedModel
from ricordo.ports import Turn
from tests.contract.backends import BACKENDS, location
from tests.contract.canonical import Dump, canonical, differences, searched
from tests.contract.reference import forget_all
from tests.crash.kills import ROOT, machine
from tests.flows.conftest import confirmed
from tests.storage import lives
from tests.storage.histories import NICKNAMES, PEOPLE, HandClock, History
from tests.storage.lives import ALL

RESULT = ROOT / "benchmarks" / "results" / "histories.json"
SETTINGS = Settings(durability="process", max_entries=25, max_size=6_000)
STEPS = 40
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
REOPENED = 0.06
SCOPES = (Scope(owner="me"), Scope(owner="me"), Scope(owner="me", chat="family"), Scope(owner="you", chat="family"))


def answer(turns: Sequence[Turn], schema: Mapping[str, Any]) -> Any:
    """What the scripted model says: a fact of every second message, by what the prompt shows."""
    if schema["title"] == "Checks":
        return confirmed(turns)
    said = re.findall(r"\b(e\d+)\b[^\n]*?: ([^\n]+)", turns[-1].text)
    facts = [
        {
            "text": f"{text[:60]} indeed",
            "evidence": [handle],
            "kind": "fact",
            "category": "knowledge",
            "about": [name for name in PEOPLE if name in text],
            "slot": "",
            "said": True,
            "confidence": 0.9,
        }
        for handle, text in said[::2]
    ]
    if "facts" in json.dumps(schema):
        return {"facts": facts, "entities": [], "relations": [], "causes": [], "summary": "They talked."}
    return {"verdicts": []}


@contextmanager
def counted_ids() -> Iterator[None]:
    """Give out ids that count upwards from the beginning."""

    class Counted:
        count = 0

        def urandom(self, length: int) -> bytes:
            self.count += 1
            return self.count.to_bytes(length)

    before, clock_.os, clock_._last = clock_.os, Counted(), 0  # type: ignore[assignment]
    try:
        yield
    finally:
        clock_.os = before


@dataclass(slots=True)
class Lived:
    """What came of one history on one backend."""

    acts: list[str] = field(default_factory=list)
    dump: Dump = field(default_factory=dict)


async def live(backend: str, place: Path, *, seed: int, steps: int) -> Lived:
    """Run one history on one backend."""
    clock, dice, lived = HandClock(), random.Random(seed), Lived()
    where = location(backend, place)
    history: History | None = None
    done = 0
    while done < steps:
        model = ScriptedModel(answer)
        options: dict[str, Any] = {"embedder": None, "clock": clock, "model": model, "settings": SETTINGS}
        async with Memory.open(where, **options) as memory:
            if history is None:
                history = History(memory, clock, place, seed=seed, acts=ACTS)
            while done < steps:
                done += 1
                history.memory = memory.scoped(dice.choice(SCOPES))
                lived.acts.append(await _step(history))
                await memory.settle(600)
                if dice.random() < REOPENED:
                    break
            if done == steps:
                lived.dump = await _dumped(memory, history)
    return lived


async def maintain(at: History) -> None:
    """Maintain when all names are linked: enrichment counts them, and the machine decides how soon they are linked."""
    scope = at.memory.scope
    for each in dict.fromkeys((Scope(owner=scope.owner), scope)):
        await at.memory.scoped(each).consolidate()
    await at.memory.settle(600)
    await at.memory.maintain()


ACTS = tuple((condition, maintain if act is lives.maintain else act) for condition, act in ALL)


async def _step(history: History) -> str:
    try:
        return await history.step()
    except RicordoError as error:
        return f"{type(error).__name__}: {error}"


async def _dumped(memory: Memory, history: History) -> Dump:
    last = await history.commit()
    points = sorted({1, last // 3, 2 * last // 3} - {0})
    names = (*PEOPLE, *NICKNAMES, "Museum")
    found = {}
    for scope in dict.fromkeys(SCOPES):
        dump = await canonical(memory.scoped(scope), ids=history.ids, names=names, points=points)
        found[f"{scope.owner}/{scope.chat}"] = dump
    for scope in dict.fromkeys(SCOPES):
        found[f"{scope.owner}/{scope.chat}"] |= await searched(memory.scoped(scope), points=points)
    events = await memory._opened.store.read(lambda tx: tx.history.events(after=0, most=last + 1))
    found["events"] = [asdict(event) | {"kinds": sorted(event.kinds)} for event in events]
    return found


def _numbered(value: Any, names: dict[str, str]) -> Any:
    """Replace each id by the number of its first appearance: background work takes ids too, but not always."""
    if isinstance(value, str):
        return _ID.sub(lambda found: names.setdefault(found.group(), f"<{len(names) + 1}>"), value)
    if isinstance(value, dict):
        return {_numbered(name, names): _numbered(each, names) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_numbered(each, names) for each in value]
    return value


def compared(
    place: Path, *, seed: int, steps: int = STEPS, backends: Sequence[str] = BACKENDS
) -> tuple[list[str], list[str]]:
    """Run one history on every backend. Return what was done, and the differences from the first backend."""
    lived = {}
    for backend in backends:
        with counted_ids():
            lived[backend] = asyncio.run(live(backend, place / f"{backend}-{seed}", seed=seed, steps=steps))
    forget_all()
    for each in lived.values():
        names: dict[str, str] = {}
        each.acts, each.dump = _numbered(each.acts, names), _numbered(each.dump, names)
    first, *others = backends
    lines = []
    for other in others:
        for number, (one, two) in enumerate(zip(lived[first].acts, lived[other].acts, strict=True)):
            if one != two:
                lines.append(f"{other}, step {number}: {one} | {two}")
        lines += [f"{other}: {each}" for each in differences(lived[first].dump, lived[other].dump)]
    return lived[first].acts, lines


def many(runs: int, *, seed: int, steps: int, within_s: float, backends: Sequence[str] = BACKENDS) -> dict[str, Any]:
    """Run so many histories, with progress on standard error; fewer if time is over before."""
    acts: Counter[str] = Counter()
    wrong: dict[int, list[str]] = {}
    done, refused, started = 0, 0, time.monotonic()
    for number in range(seed, seed + runs):
        if time.monotonic() - started > within_s:
            break
        with tempfile.TemporaryDirectory(prefix="ricordo-histories-") as folder:
            taken, lines = compared(Path(folder), seed=number, steps=steps, backends=backends)
        done += 1
        acts.update(act.partition(":")[0] for act in taken)
        refused += sum(":" in act for act in taken)
        if lines:
            wrong[number] = lines[:5]
            sys.stderr.write("\n  ".join((f"\rseed {number}:", *lines[:20])) + "\n")
        sys.stderr.write(f"\r{done}/{runs} histories, {len(wrong)} with differences ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    return {
        "histories": done,
        "steps_each": steps,
        "backends": list(backends),
        "with_differences": len(wrong),
        "differences": wrong,
        "refused": refused,
        "acts": dict(sorted(acts.items())),
        "seed": seed,
        "seconds": round(time.monotonic() - started),
        "machine": machine(),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=300)
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--within-s", type=float, default=float("inf"), help="begin no further history after so long")
    options.add_argument("--backends", nargs="+", default=BACKENDS)
    options.add_argument("--out", type=Path, default=RESULT)
    options.add_argument("--no-result", action="store_true", help="write no file of results")
    given = options.parse_args()
    result = many(given.runs, seed=given.seed, steps=given.steps, within_s=given.within_s, backends=given.backends)
    if not given.no_result:
        given.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for seed, lines in result["differences"].items():
        sys.stdout.write("\n  ".join((f"seed {seed}:", *lines)) + "\n")
    sys.stdout.write(
        f"{result['histories']} histories of {result['steps_each']} steps on {', '.join(given.backends)}:"
        f" {result['with_differences']} with differences, {result['seconds']} s\n"
    )
    return 1 if result["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
