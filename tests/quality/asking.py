"""Conversations with known evidence: store them, ask their questions, and measure recall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from ricordo import Memory, Message, Settings
from ricordo.clock import to_ms
from ricordo.interfaces.demo import TIME_ZONE, DemoClock, conversation
from ricordo.model import Trace
from ricordo.ports import Clock

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    kind: str
    language: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`found` are the names of the turns, best first."""

    question: Question
    found: tuple[str, ...]
    trace: Trace

    def recall(self, depth: int) -> float:
        return len(self.question.evidence & set(self.found[:depth])) / len(self.question.evidence)

    def reciprocal_rank(self) -> float:
        return next((1 / rank for rank, name in enumerate(self.found, start=1) if name in self.question.evidence), 0.0)


@dataclass(frozen=True, slots=True)
class StandingClock:
    ms: int

    def now(self) -> int:
        return self.ms


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def demo() -> tuple[dict[str, Message], list[Question]]:
    """Return the demo's turns by number, from 1, and its questions."""
    with conversation() as path:
        rows = lines(path)
    turns = {str(number): _message(row) for number, row in enumerate(rows, start=1)}
    return turns, _questions(HERE / "demo_questions.jsonl")


def assistant() -> tuple[dict[str, Message], list[Question]]:
    """Return conversations of a person with an assistant that answers at length, in three languages, and questions."""
    turns = {row["id"]: _message(row) for row in lines(HERE / "assistant.jsonl")}
    return turns, _questions(HERE / "assistant_questions.jsonl")


def _questions(path: Path) -> list[Question]:
    return [
        Question(
            kind=row["kind"],
            language=row["language"],
            text=row["question"],
            evidence=frozenset(map(str, row["evidence"])),
        )
        for row in lines(path)
    ]


def _message(row: Mapping[str, Any]) -> Message:
    return Message(
        text=row["text"],
        role=row["role"],
        speaker=row.get("speaker"),
        session=row["session"],
        at=datetime.fromisoformat(row["time"]),
    )


def twin(language: str) -> tuple[dict[str, Message], list[Question]]:
    """Return the conversation of Marina and Timur in one of its languages, "ru" or "en", and its questions."""
    turns = {
        row["id"]: Message(
            text=row["text"][language],
            speaker=row["speaker"][language],
            session=row["session"],
            at=datetime.fromisoformat(row["time"]),
        )
        for row in lines(HERE / "twins.jsonl")
    }
    asked = [
        Question(
            kind=row["kind"], language=language, text=row["question"][language], evidence=frozenset(row["evidence"])
        )
        for row in lines(HERE / "twin_questions.jsonl")
    ]
    return turns, asked


async def ask_all(
    turns: Mapping[str, Message],
    questions: Iterable[Question],
    *,
    embedder: str | None,
    clock: Clock | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Asked]:
    """Store the turns and ask the questions, shortly after the last turn unless a clock is given."""
    last = max(turn.at for turn in turns.values() if isinstance(turn.at, datetime))
    options = Settings(durability="process", time_zone=TIME_ZONE, **(settings or {}))
    clock = clock or StandingClock(to_ms(last) + 3_600_000)
    async with Memory.open(":memory:", embedder=embedder, clock=clock, settings=options) as memory:
        ids = await memory.add_many(list(turns.values()))
        await memory.settle(600)
        name_of = dict(zip(ids, turns, strict=True))
        asked = []
        for question in questions:
            results = await memory.search(question.text, limit=10, trace=True)
            assert results.trace is not None and not results.degraded, question
            found = tuple(name_of[hit.id] for hit in results.hits)
            asked.append(Asked(question=question, found=found, trace=results.trace))
    return asked


def mean_recall(asked: Iterable[Asked], depth: int) -> float:
    return fmean(each.recall(depth) for each in asked)


__all__ = ["Asked", "DemoClock", "Question", "StandingClock", "ask_all", "assistant", "demo", "mean_recall", "twin"]
