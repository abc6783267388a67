"""The script of the demo: its clock, its two conversations about dinners, and a model with prepared answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ricordo.ports import Turn

if TYPE_CHECKING:
    from ricordo.language import ScriptedModel

_NOW_MS = 1_782_716_400_000  # 2026-06-29 09:00 in Berlin; the conversation ends the evening before
_DATA = files("ricordo.interfaces.demo")
_PAIR = re.compile(r"^(p\d+) new: (.*)\n\1 old: (.*)$", re.MULTILINE)


class DemoClock:
    """A clock fixed shortly after the end of the conversation, so that "last March" means the March in it."""

    def now(self) -> int:
        return _NOW_MS


def dinners() -> Mapping[str, Any]:
    """Return the question, and the two conversations with the scripted model's answer to each."""
    found: Mapping[str, Any] = json.loads((_DATA / "dinner.json").read_text(encoding="utf-8"))
    return found


def scripted_model() -> ScriptedModel:
    """Return a model with prepared answers about the two conversations."""
    from ricordo.language import ScriptedModel

    return ScriptedModel(scripted_answer, name="scripted")


def scripted_answer(prompt: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    """Return the scripted model's answer to a prompt."""
    shown = prompt[-1].text
    if schema["title"] == "Checks":
        handles = re.findall(r"^(c\d+) note: ", shown, re.MULTILINE)
        return {"checks": [{"claim": each, "is": "stated", "confidence": 0.9} for each in handles]}
    if schema["title"] == "Verdicts":
        diets = ("eats plants", "eats fish")
        pairs = [handle for handle, new, old in _PAIR.findall(shown) if diets[0] in new and diets[1] in old]
        return {"verdicts": [{"pair": handle, "is": "contradicts", "confidence": 0.95} for handle in pairs]}
    conversations = dinners()["conversations"]
    return next(each["proposal"] for each in conversations if each["turns"][0]["text"] in shown)
