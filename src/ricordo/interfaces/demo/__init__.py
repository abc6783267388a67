"""The data of the demo: half a year of conversation with questions whose answers are known, and two dinners to learn.

The two dinners show what a language model adds; a scripted model stands in for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ricordo.model import Hit, Message, Results, Run
from ricordo.ports import Turn

if TYPE_CHECKING:
    from ricordo.language import ScriptedModel
    from ricordo.memory import Memory

TIME_ZONE = "Europe/Berlin"
FIRST = 5
"""An answer counts if it is among this many hits."""

_NOW_MS = 1_782_716_400_000  # 2026-06-29 09:00 in Berlin; the conversation ends the evening before
_CONTEXT_TOKENS = 300
_DATA = files("ricordo.interfaces.demo")
_PAIR = re.compile(r"^(p\d+) new: (.*)\n\1 old: (.*)$", re.MULTILINE)


class DemoClock:
    """A clock that stands still shortly after the conversation's end, so that "last March" is its March."""

    def now(self) -> int:
        return _NOW_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question. A right answer contains one of the texts `expected`; it is empty if nothing was said about it."""

    text: str
    expected: tuple[str, ...]
    note: str

    def is_answered_by(self, hit: Hit) -> bool:
        return any(part in hit.content for part in self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of a question. `place` is that of the first right hit, from 1, or None."""

    question: Question
    results: Results
    place: int | None
    context: str | None

    @property
    def is_right(self) -> bool:
        return self.place is not None and self.place <= FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """The contexts an agent got for a question, before and after each conversation became knowledge, and the runs."""

    question: str
    contexts: tuple[str | None, ...]
    runs: tuple[Run, ...]


@contextmanager
def conversation() -> Iterator[Path]:
    """Provide the file of the conversation: 251 turns of two people and an assistant, in English and Russian."""
    with as_file(_DATA / "conversation.jsonl") as path:
        yield path


def questions() -> list[Question]:
    """Return all questions, in order."""
    lines = (_DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Question(text=row["question"], expected=tuple(row["expected"]), note=row["note"]) for row in rows]


async def ask(memory: Memory, question: Question) -> Answer:
    """Ask one question as an agent would."""
    results = await memory.search(question.text, trace=True)
    context = await memory.context(question.text, budget=_CONTEXT_TOKENS)
    return Answer(question=question, results=results, place=place(question, results.hits), context=context)


def place(question: Question, hits: Sequence[Hit]) -> int | None:
    """Return the place of the first right hit, from 1. Pure: compares texts."""
    return next((number for number, hit in enumerate(hits, start=1) if question.is_answered_by(hit)), None)


# what a language model adds


def dinners() -> Mapping[str, Any]:
    """Return the question, and the two conversations with what the scripted model says of each."""
    found: Mapping[str, Any] = json.loads((_DATA / "dinner.json").read_text(encoding="utf-8"))
    return found


def scripted_model() -> ScriptedModel:
    """Return a model that knows the two conversations by heart."""
    from ricordo.language import ScriptedModel

    return ScriptedModel(scripted_answer, name="scripted")


def scripted_answer(prompt: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    """Return what the scripted model answers to a prompt."""
    shown = prompt[-1].text
    if schema["title"] == "Verdicts":
        diets = ("eats plants", "eats fish")
        pairs = [handle for handle, new, old in _PAIR.findall(shown) if diets[0] in new and diets[1] in old]
        return {"verdicts": [{"pair": handle, "is": "contradicts", "confidence": 0.95} for handle in pairs]}
    conversations = dinners()["conversations"]
    return next(each["proposal"] for each in conversations if each["turns"][0]["text"] in shown)


async def learn(memory: Memory) -> Learnt:
    """Have the two conversations, and let the memory's model read each once it is over."""
    script = dinners()
    question = script["question"]
    contexts: list[str | None] = []
    runs: list[Run] = []
    for dinner in script["conversations"]:
        session = dinner["session"]
        await memory.add_many([Message(session=session, **turn) for turn in dinner["turns"]])
        await memory.settle()
        if not contexts:
            contexts.append(await memory.context(question, budget=_CONTEXT_TOKENS))
        runs.append(await memory.consolidate(session))
        await memory.settle()
        contexts.append(await memory.context(question, budget=_CONTEXT_TOKENS))
    return Learnt(question=question, contexts=tuple(contexts), runs=tuple(runs))
