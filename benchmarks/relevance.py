"""Measure when `context` returns something, and how much of it is relevant.

    python benchmarks/relevance.py [LOCOMO.jsonl] [--embedder default|none|...] [--out FILE.json]

`context` gets unrelated prompts (tests/fixtures/relevance/unrelated.jsonl), small talk (small_talk.jsonl) and
answerable questions, on each conversation of LOCOMO, on the demo's and on the fixtures' memories; also the questions of
LOCOMO with the names of the two speakers replaced by "they", and those of other conversations. Precision and recall of
`search(only_relevant=True)` are measured on the fixtures, and of the lines of a context how many matter. An empty list
has a precision of 1 if it should be empty, otherwise 0. A line about an entity matters if an answer is about it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.quality import machine
from benchmarks.search_systems import message

from ricordo import Fact, Memory, Message, Settings
from ricordo.interfaces.demo import TIME_ZONE, DemoClock, conversation, questions

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "relevance"
OTHER_WORDS = ("seventh", "eighth", "ninth", "tenth", "eleventh")
"""Sets whose questions share few words with the facts that answer them."""
SETS = ("first", "second", "third", "fourth", "fifth", "sixth", *OTHER_WORDS)
ACROSS = tuple(f"across/{path.stem}" for path in sorted((FIXTURES / "across").glob("*.jsonl")))
"""Sets whose questions are in other languages than the facts: "ru-en-fr" asks in English and French about Russian."""
_OTHERS_EVERY = 8
SINGLE_HOP = 4
"""The category of LoCoMo's questions that one turn answers."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locomo", type=Path, nargs="?")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    embedder = None if options.embedder == "none" else options.embedder
    report = {"embedder": options.embedder, "machine": machine(), **asyncio.run(run(options.locomo, embedder))}
    print(json.dumps(report, indent=1, ensure_ascii=False))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


async def run(locomo: Path | None, embedder: str | None) -> dict[str, Any]:
    """Measure all stores; the last line of `speaks` covers all questions of LoCoMo."""
    silent = not_about_memories()
    speaks: dict[str, dict[str, float]] = {}
    lists: dict[str, dict[str, float]] = {}
    for name in (*SETS, *ACROSS):
        if (path := FIXTURES / f"{name}.jsonl").exists():
            async with Memory.open(":memory:", embedder=embedder, settings=_settings()) as memory:
                asked = await keep(memory, lines(path))
                lists[name] = await listed(memory, asked)
                answerable = [row["question"] for row in asked if row["relevant"]]
                speaks[name] = await spoken(memory, {**silent, "answerable": answerable})
    async with Memory.open(":memory:", embedder=embedder, settings=_settings(), clock=DemoClock()) as memory:
        with conversation() as path:
            await memory.add_many([_demo_message(row) for row in lines(path)])
        await memory.settle()
        answerable = [question.text for question in questions() if question.expected]
        unanswerable = [question.text for question in questions() if not question.expected]
        asked_of_it = {**silent, "answerable": answerable, "unanswerable": unanswerable}
        speaks["demo"] = await spoken(memory, asked_of_it)
    if locomo is not None:
        speaks |= await conversations(lines(locomo), silent, embedder)
    return {"speaks": speaks, "only_relevant": lists}


def not_about_memories() -> dict[str, list[str]]:
    """Return the prompts that deserve no context: unrelated ones, small talk, and of this the greetings."""
    talk = [row for row in lines(FIXTURES / "small_talk.jsonl") if row["kind"] != "asks"]
    return {
        "unrelated": [row["text"] for row in lines(FIXTURES / "unrelated.jsonl")],
        "small talk": [row["text"] for row in talk],
        "greetings": [row["text"] for row in talk if row["kind"] == "greeting"],
    }


async def conversations(
    rows: list[dict[str, Any]], silent: Mapping[str, list[str]], embedder: str | None
) -> dict[str, dict[str, float]]:
    """Ask each conversation its own questions, those of the others, and unrelated prompts."""
    asked = {
        name: answerable([row for row in rows if row["conv"] == name]) for name in {row["conv"]: 0 for row in rows}
    }
    found: dict[str, dict[str, float]] = {}
    sums: dict[str, list[float]] = {}
    for name, mine in asked.items():
        turns = [row for row in rows if row["conv"] == name and row["kind"] == "turn"]
        speakers = sorted({row["speaker"] for row in turns})
        groups = {
            **silent,
            "answerable": list(mine),
            "answerable, nameless": [nameless(question, speakers) for question in mine],
            "of other conversations": [q for other in asked if other != name for q in asked[other]][::_OTHERS_EVERY],
        }
        async with Memory.open(":memory:", embedder=embedder, settings=_settings()) as memory:
            await memory.add_many([replace(message(row), id=row["id"]) for row in turns])
            await memory.settle()
            found[name] = await spoken(memory, groups) | await reached(memory, mine)
            plain = answerable(
                [row for row in rows if row["conv"] == name and row.get("category") in (None, SINGLE_HOP)]
            )
            found[name]["single_hop_in_context"] = (await reached(memory, plain))["evidence_in_context"]
        for group, texts in groups.items():
            sums.setdefault(group, []).extend([found[name][group]] * len(texts))
        sys.stderr.write(f"{name}: {found[name]}\n")
    found["all conversations"] = {group: round(statistics.fmean(values), 4) for group, values in sums.items()}
    for each in ("evidence_in_context", "single_hop_in_context", "context_tokens"):
        found["all conversations"][each] = round(statistics.fmean(found[name][each] for name in asked), 4)
    return found


def answerable(rows: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the questions of a conversation with their evidence, without adversarial ones."""
    turns = {row["id"] for row in rows if row["kind"] == "turn"}
    asked = {
        row["question"]: turns.intersection(row.get("evidence") or ())
        for row in rows
        if row["kind"] == "query" and row["category"] != 5
    }
    return {question: evidence for question, evidence in asked.items() if evidence}


async def reached(memory: Memory, asked: Mapping[str, set[str]]) -> dict[str, float]:
    """Return the mean share of evidence in the context, and the mean number of its tokens."""
    parts = {question: await memory.context_parts(question) for question in asked}
    shares = [len(wanted.intersection(parts[question].ids)) / len(wanted) for question, wanted in asked.items()]
    tokens = [each.tokens for each in parts.values()]
    return {"evidence_in_context": round(statistics.fmean(shares), 4), "context_tokens": statistics.fmean(tokens)}


def nameless(question: str, names: Sequence[str]) -> str:
    """Return the question with names replaced by "they" and possessives by "their"."""
    for name in names:
        question = re.sub(rf"\b{re.escape(name)}['’]s\b", "their", question)
        question = re.sub(rf"\b{re.escape(name)}\b", "they", question)
    return question


async def spoken(memory: Memory, groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return for each group of prompts the share for which `context` returns something, and the time of a call."""
    await memory.context("Is anybody there?")  # calibrates the floor once
    found: dict[str, float] = {}
    took: list[float] = []
    for group, prompts in groups.items():
        said = 0
        for prompt in prompts:
            started = time.perf_counter()
            said += await memory.context(prompt) is not None
            took.append((time.perf_counter() - started) * 1_000)
        found[group] = round(said / len(prompts), 4) if prompts else 0.0
    return found | {"context_ms_median": round(statistics.median(took), 1)}


async def keep(memory: Memory, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Fill a memory with the people and facts of a fixture; return its questions."""
    for row in rows:
        if row["kind"] == "entity":
            name, aliases = row["name"], row["aliases"]
            await memory.add_entity(name, type=row["type"], aliases=aliases, relation=row["relation"])
    facts = [row for row in rows if row["kind"] == "fact"]
    await memory.remember_many(
        [Fact(content=row["text"], about=row["about"], tags=row["tags"], id=row["id"]) for row in facts]
    )
    await memory.settle()
    return [row for row in rows if row["kind"] == "question"]


async def listed(memory: Memory, asked: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean precision over all questions and the mean recall over those with an answer, of a search and of a
    context, and the share of a context's lines that matter.
    """
    precisions, recalls, counts, told, matter = [], [], [], [], []
    for row in asked:
        wanted = set(row["relevant"])
        found = set((await memory.search(row["question"], only_relevant=True)).ids)
        parts = await memory.context_parts(row["question"])
        right = len(found & wanted)
        precisions.append(right / len(found) if found else float(not wanted))
        counts.append(len(found))
        shown = [line.id for section in parts.sections for line in section.lines]
        if shown:
            worth = wanted | await entities_of(memory, wanted)
            matter.append(sum(id in worth for id in shown) / len(shown))
        if wanted:
            recalls.append(right / len(wanted))
            told.append(len(wanted.intersection(shown)) / len(wanted))
    return {
        "questions": len(asked),
        "precision": round(statistics.fmean(precisions), 4),
        "recall": round(statistics.fmean(recalls), 4),
        "hits": round(statistics.fmean(counts), 2),
        "recall_of_context": round(statistics.fmean(told), 4),
        "lines_that_matter": round(statistics.fmean(matter), 4),
    }


async def entities_of(memory: Memory, facts: set[str]) -> set[str]:
    """Return the ids of the entities that some facts are about."""
    names = {name for id in facts for name in (await memory.get(id)).about}
    return {(await memory.entity(name)).id for name in names}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _settings() -> Settings:
    return Settings(durability="process", time_zone=TIME_ZONE)


def _demo_message(row: Mapping[str, Any]) -> Message:
    return Message(text=row["text"], role=row["role"], speaker=row["speaker"], session=row["session"], at=row["time"])


if __name__ == "__main__":
    main()
