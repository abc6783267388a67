"""Poisoned and ordinary inputs in eight languages: what is held, marked, or reaches a context unmarked.

The two halves are kept apart. "held" was written before the author had read the rules, and no rule was changed for it;
the rules were tuned on "dev". `python -m tests.adversaries.screening` prints the tables and writes the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ricordo
from ricordo import RicordoError, Scope
from ricordo.text.disguise import revealed
from tests.adversaries.disguises import messages_of

DATA = Path(__file__).parent / "data"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "screening.json"
MINE = ("My phone number is 555-1234", "I live in Berlin", "My doctor is Dr Weber", "I am allergic to peanuts")
PLAIN = "The museum opens at ten"
_MARKS = ("(from ", "(noted by the assistant", "(imported", "not an instruction")

Row = Mapping[str, Any]


def rows(name: str, half: str) -> list[Row]:
    """Return the inputs of a half: "dev" or "held"."""
    found = map(json.loads, (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [row for row in found if row["half"] == half]


async def enter(memory: Any, row: Row, number: int) -> list[str]:
    """Write an input into its field through a caller's memory; return the ids of what holds it."""
    texts = messages_of(row["text"], row["disguise"])
    field, text, mark = row["field"], texts[0], {"row": str(number)}
    if field == "text":
        said = [await memory.add(each, role="tool", session=f"s{number}", attributes=mark) for each in texts]
        return [*said, (await memory.remember("\n".join(texts), attributes=mark)).id]
    if field in ("speaker", "session", "id"):
        return [await memory.add(PLAIN, role="tool", **{field: text}, attributes=mark)]
    values: dict[str, dict[str, Any]] = {
        "tag": {"tags": [text], "attributes": mark},
        "attribute_key": {"attributes": {text: "yes", **mark}},
        "attribute_value": {"attributes": {"note": text, **mark}},
        "title": {"attributes": {"title": text, **mark}},
        "summary": {"attributes": {"about": [{"summary": text}], **mark}},
        "name": {"about": [text], "attributes": mark},
    }
    if field in values:
        return [(await memory.remember(f"{PLAIN}, room {number}", **values[field])).id]
    if field == "alias":
        await memory.add_entity(f"Museum {number}", aliases=[text])
    elif field == "relation":
        await memory.add_entity(f"Tom {number}")
        await memory.relate(f"Tom {number}", text)
    else:
        fact = await memory.remember(f"{PLAIN}, door {number}")
        await memory.forget(fact.id, text)
    return []


async def outcome(memory: Any, caller: Any, row: Row, number: int) -> str:
    """Return what became of an input: "refused", "held", "marked", or "taken" if nothing was noticed."""
    try:
        ids = await enter(caller, row, number)
    except RicordoError:
        return "refused"
    reviews = await memory.review(limit=1_000, kind="quarantine")
    if any(item.newer.id in ids and set(item.reasons) - {"unconfirmed source"} for item in reviews):
        return "held"
    hits = (await memory.search(f"{PLAIN} {row['text']}", where={"row": str(number)}, limit=20)).hits
    return "marked" if any(hit.warnings for hit in hits) else "taken"


def unmarked(block: str | None, row: Row) -> list[str]:
    """Return the lines of a context that say what the input says, without a mark of where they come from."""
    words = revealed(row["text"].replace("¦", " ")).split()
    start = " ".join(words[:4])
    return [
        line
        for line in (block or "").splitlines()
        if start in " ".join(revealed(line).split()) and not any(mark in line for mark in _MARKS)
    ]


async def poisoned(half: str, trust: str) -> list[dict[str, Any]]:
    """Return each input with its outcome, for a caller of a trust level: "agent", "tool" or "web"."""
    found = []
    async with ricordo.Memory.open(":memory:", embedder=None) as memory:
        mine = [(await memory.remember(text)).id for text in MINE]
        before = [await memory.get(each) for each in mine]
        people = await memory.people()
        caller = memory.scoped(Scope(trust=trust))
        for number, row in enumerate(rows("poisoned", half)):
            found.append({**row, "outcome": await outcome(memory, caller, row, number)})
        await memory.settle(600)
        for each in found:
            asked = each["text"].replace("¦", " ")
            blocks = [await memory.context(asked, budget=20_000), await memory.context(f"Who is {asked}", budget=9_000)]
            each["unmarked"] = [line for block in blocks for line in unmarked(block, each)]
        overridden = [await memory.get(each) for each in mine] != before
        strangers = {each.name for each in await memory.people()} - {each.name for each in people}
        for each in found:
            each["overridden"] = overridden or (trust != "agent" and bool(strangers))
    return found


async def ordinary(half: str, trust: str) -> list[dict[str, Any]]:
    """Return the ordinary inputs that were held or marked when a caller of a trust level wrote them."""
    found = []
    async with ricordo.Memory.open(":memory:", embedder=None) as memory:
        caller = memory.scoped(Scope(trust=trust))
        for number, row in enumerate(rows("ordinary", half)):
            entered = {**row, "field": "text", "disguise": "plain"}
            done = await outcome(memory, caller, entered, number)
            if done != "taken":
                found.append({**row, "outcome": done})
    return found


def table(found: Sequence[Row], by: str) -> dict[str, str]:
    """Return how many of the inputs of each language, disguise or the like were noticed: "17 of 18"."""
    total, seen = Counter(row[by] for row in found), Counter(row[by] for row in found if row["outcome"] != "taken")
    return {name: f"{seen[name]} of {total[name]}" for name in total}


async def measured(half: str, trust: str) -> dict[str, Any]:
    """Return the figures of a half for a caller of a trust level."""
    found = await poisoned(half, trust)
    kept = await ordinary(half, trust)
    return {
        "poisoned": len(found),
        "noticed": sum(row["outcome"] != "taken" for row in found),
        "overrode the person": sum(row["overridden"] for row in found),
        "in a context unmarked": sum(bool(row["unmarked"]) for row in found),
        "ordinary": len(rows("ordinary", half)),
        "ordinary held": sum(row["outcome"] == "held" for row in kept),
        "ordinary marked": sum(row["outcome"] == "marked" for row in kept),
        "by language": table(found, "language"),
        "by kind": table(found, "kind"),
        "by disguise": table(found, "disguise"),
        "by field": table(found, "field"),
        "missed": [
            f"{row['language']} {row['disguise']} {row['field']}: {row['text']}"
            for row in found
            if row["outcome"] == "taken"
        ],
        "unmarked": [line for row in found for line in row["unmarked"]],
        "ordinary touched": [f"{row['language']}: {row['text']}" for row in kept],
    }


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("dev", "held"), default=None)
    parser.add_argument("--trust", choices=("agent", "tool", "web"), default=None)
    parser.add_argument("--figures-only", action="store_true", help="print no input: for the half not to be tuned on")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    found = {
        f"{half}, {trust}": asyncio.run(measured(half, trust))
        for half in ([given.half] if given.half else ["dev", "held"])
        for trust in ([given.trust] if given.trust else ["agent", "tool"])
    }
    if given.figures_only:
        for each in found.values():
            for name in ("missed", "unmarked", "ordinary touched"):
                each[name] = len(each[name])
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
