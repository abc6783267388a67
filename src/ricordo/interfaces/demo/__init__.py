"""A conversation of half a year, and questions to it whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from ricordo.model import Hit, Results

if TYPE_CHECKING:
    from ricordo.memory import Memory

TIME_ZONE = "Europe/Berlin"
FIRST = 5
"""An answer counts when it is among so many hits."""

_MORNING_AFTER = 1_782_716_400_000  # 2026-06-29 09:00 in Berlin; the conversation ends the evening before


class MorningAfter:
    """A clock that stands still shortly after the conversation's end, so that "last March" is its March."""

    def now(self) -> int:
        return _MORNING_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question. A right answer holds one of the texts `expected`; there are none when nothing was said."""

    text: str
    expected: tuple[str, ...]
    note: str

    def is_answered_by(self, hit: Hit) -> bool:
        return any(part in hit.content for part in self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a question. `place` is that of the first right answer, from 1, or None."""

    question: Question
    results: Results
    place: int | None
    context: str | None

    @property
    def is_answered(self) -> bool:
        return self.place is not None and self.place <= FIRST


@contextmanager
def conversation() -> Iterator[Path]:
    """The file of the conversation, 251 turns of two people and an assistant, English and Russian."""
    with as_file(files("ricordo.interfaces.demo") / "conversation.jsonl") as path:
        yield path


def questions() -> list[Question]:
    """All questions, in order."""
    lines = (files("ricordo.interfaces.demo") / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Question(text=row["question"], expected=tuple(row["expected"]), note=row["note"]) for row in rows]


async def ask(memory: Memory, question: Question) -> Asked:
    """Ask one question as an agent would."""
    results = await memory.search(question.text, trace=True)
    context = await memory.context(question.text, budget=300)
    return Asked(question=question, results=results, place=place(question, results.hits), context=context)


def place(question: Question, hits: Sequence[Hit]) -> int | None:
    """Where the first right answer stands, from 1. Pure: compares texts."""
    return next((number for number, hit in enumerate(hits, start=1) if question.is_answered_by(hit)), None)


__all__ = ["FIRST", "TIME_ZONE", "Asked", "MorningAfter", "Question", "ask", "conversation", "place", "questions"]
