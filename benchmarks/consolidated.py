"""Measure whether search still finds the evidence after consolidation.

    python benchmarks/consolidated.py FILE.jsonl [--embedder default|none|...] [--out FILE] [--most N]

FILE is as for benchmarks/quality.py. A scripted model makes one plain fact of each turn that a question needs, so that
every session is consolidated. A hit counts as its source messages (`Hit.evidence`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ricordo import Memory, Settings
from ricordo.language import ScriptedModel
from ricordo.ports import Turn
from search_systems import message

_LINE = re.compile(r"^(e\d+) ([^:]+): (.*)$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--most", type=int, default=100, help="number of conversations")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = asyncio.run(run(options.file, None if options.embedder == "none" else options.embedder, options.most))
    print(json.dumps(report, indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


async def run(file: Path, embedder: str | None, most: int) -> dict[str, Any]:
    """Measure recall of the evidence before and after, over all questions with evidence."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    totals: list[list[float]] = [[], [], [], []]
    for conversation in list(dict.fromkeys(row["conv"] for row in rows))[:most]:
        found = await compare([row for row in rows if row["conv"] == conversation], embedder)
        for total, part in zip(totals, found, strict=True):
            total += part
        before, after = mean(totals[0]), mean(totals[1])
        sys.stderr.write(f"{conversation}: {len(totals[0])} questions, {before:.4f} before, {after:.4f} after\n")
    names = ("recall@10 before", "recall@10 after", "in the context before", "in the context after")
    figures = {name: round(mean(total), 4) for name, total in zip(names, totals, strict=True)}
    return {"file": file.name, "embedder": embedder, "questions": len(totals[0]), **figures}


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


async def compare(rows: list[dict[str, Any]], embedder: str | None) -> tuple[list[float], ...]:
    """Return for each question: recall@10 before and after, and the share of its evidence in the context before and
    after.
    """
    turns = {row["id"]: row for row in rows if row["kind"] == "turn"}
    queries = [row for row in rows if row["kind"] == "query" and row["category"] != 5]
    asked = [(row, evidence) for row in queries if (evidence := set(row.get("evidence") or ()) & turns.keys())]
    needed = {" / ".join(message(turns[each]).text.split("\n")) for _, evidence in asked for each in evidence}
    model = ScriptedModel(lambda prompt, schema: answer(prompt, schema, needed), context_tokens=32_000)
    settings = Settings(durability="process")
    async with Memory.open(":memory:", embedder=embedder, model=model, settings=settings) as memory:
        ids = await memory.add_many([message(row) for row in turns.values()])
        names = dict(zip(ids, turns, strict=True))
        await memory.settle()
        before = [await recall(memory, row, evidence, names) for row, evidence in asked]
        told_before = [await in_context(memory, row, evidence, turns) for row, evidence in asked]
        consolidated = await memory.consolidate()
        assert not [item for item in consolidated.items if item.what == "failed"], consolidated.reason
        await memory.settle()
        after = [await recall(memory, row, evidence, names) for row, evidence in asked]
        told_after = [await in_context(memory, row, evidence, turns) for row, evidence in asked]
    return before, after, told_before, told_after


def answer(prompt: Sequence[Turn], schema: Mapping[str, Any], needed: set[str]) -> dict[str, Any]:
    """Return one plain fact for each needed line, and call no similar facts the same."""
    if schema["title"] == "Verdicts":
        return {"verdicts": []}
    facts = [
        {
            "text": f"{speaker} said: {said}"[:1_000],
            "kind": "fact",
            "category": "knowledge",
            "about": [speaker],
            "slot": "",
            "evidence": [handle],
            "said": True,
            "confidence": 0.9,
        }
        for handle, speaker, said in _LINE.findall(prompt[-1].text)
        if said in needed
    ]
    return {"facts": facts, "entities": [], "relations": [], "causes": [], "summary": ""}


async def recall(memory: Memory, row: Mapping[str, Any], evidence: set[str], names: Mapping[str, str]) -> float:
    hits = (await memory.search(row["question"], limit=10)).hits
    found = {names[each] for hit in hits for each in (hit.id, *hit.evidence) if each in names}
    return len(evidence & found) / len(evidence)


async def in_context(memory: Memory, row: Mapping[str, Any], evidence: set[str], turns: Mapping[str, Any]) -> float:
    block = " ".join((await memory.context(row["question"]) or "").split())
    found = [each for each in evidence if " ".join(message(turns[each]).text.split())[:60] in block]
    return len(found) / len(evidence)


if __name__ == "__main__":
    main()
