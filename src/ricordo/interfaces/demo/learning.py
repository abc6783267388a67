"""What a language model adds, shown with one that says its lines: two conversations become knowledge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ricordo.model import Message, Run
from ricordo.ports import Turn

if TYPE_CHECKING:
    from ricordo.language import ScriptedModel
    from ricordo.memory import Memory

_PAIR = re.compile(r"^(p\d+) new: (.*)\n\1 old: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What an agent got for a question while the conversations were messages, after each became knowledge, and the runs
    that made them so.
    """

    question: str
    contexts: tuple[str | None, ...]
    runs: tuple[Run, ...]


def script() -> Mapping[str, Any]:
    """The conversations, and what the model says of each."""
    found: Mapping[str, Any] = json.loads(
        (files("ricordo.interfaces.demo") / "dinner.json").read_text(encoding="utf-8")
    )
    return found


def model() -> ScriptedModel:
    """A model that knows these conversations by heart."""
    from ricordo.language import ScriptedModel

    return ScriptedModel(answer, name="scripted")


def answer(prompt: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    """What that model says of what it is shown."""
    shown = prompt[-1].text
    if schema["title"] == "Verdicts":
        diets = ("eats plants", "eats fish")
        pairs = [handle for handle, new, old in _PAIR.findall(shown) if diets[0] in new and diets[1] in old]
        return {"verdicts": [{"pair": handle, "is": "contradicts", "confidence": 0.95} for handle in pairs]}
    conversations = script()["conversations"]
    return next(each["proposal"] for each in conversations if each["turns"][0]["text"] in shown)


async def learn(memory: Memory) -> Learnt:
    """Have the conversations, and let the model of `model()` read each once it is over."""
    told = script()
    question = told["question"]
    contexts: list[str | None] = []
    runs: list[Run] = []
    for conversation in told["conversations"]:
        session = conversation["session"]
        await memory.add_many([Message(session=session, **turn) for turn in conversation["turns"]])
        await memory.settle()
        if not contexts:
            contexts.append(await memory.context(question, budget=300))
        runs.append(await memory.consolidate(session))
        await memory.settle()
        contexts.append(await memory.context(question, budget=300))
    return Learnt(question=question, contexts=tuple(contexts), runs=tuple(runs))
