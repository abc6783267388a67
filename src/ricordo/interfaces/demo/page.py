"""The command `demo --page`: the demo's half year of memories in the browser, recorded at their own times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import Any

from ricordo.interfaces.call import StoreConfig
from ricordo.interfaces.demo.script import DemoClock, dinners, scripted_model
from ricordo.memory import Memory
from ricordo.model import Message

_DATA = files("ricordo.interfaces.demo")
_RELATIONS = (
    ("Jonas", "partner", "Vera"),
    ("Jonas", "sister", "Miriam"),
    ("Jonas", "mother", "Ingrid"),
    ("Vera", "aunt", "Tamara"),
    ("Miriam", "son", "Emil"),
    ("Vera", "pet", "Pixel"),
)


class MovingClock(DemoClock):
    """A clock that is set to the time of each message, and stays at the end of the demo."""

    def __init__(self) -> None:
        self._at: int | None = None

    def now(self) -> int:
        return super().now() if self._at is None else self._at

    def set(self, at: str | None) -> None:
        """Set the clock to a time in ISO 8601; None means the end of the demo."""
        self._at = None if at is None else int(datetime.fromisoformat(at).timestamp() * 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoConfig(StoreConfig):
    """A store that is filled with the demo's memories when it is opened, with a scripted model."""

    async def open(self) -> Memory:
        clock = MovingClock()
        memory = await Memory.open(
            self.location, embedder=self.embedder, model=scripted_model(), settings=self.settings, clock=clock
        )
        await fill(memory, clock)
        return memory


async def fill(memory: Memory, clock: MovingClock) -> None:
    """Record the conversation, the facts learnt from it and the two dinners, each at its own time."""
    for at, work in sorted(
        [*_conversations(), *_facts(), *_dinners()], key=lambda each: datetime.fromisoformat(each[0])
    ):
        clock.set(at)
        if isinstance(work, dict):
            await memory.remember(**work)
            continue
        session, messages = work
        await memory.add_many(messages)
        await memory.end_session(session)
        if any(session == each["session"] for each in dinners()["conversations"]):
            await memory.settle()
            await memory.consolidate(session)
    for source, predicate, target in _RELATIONS:
        await memory.relate(target, predicate, source=source)
    await _show_what_can_be_done(memory)
    clock.set(None)
    await memory.settle()


async def _show_what_can_be_done(memory: Memory) -> None:
    """Confirm, demote and forget some memories, so that no page is empty."""
    steps = (("allergic hazelnuts", "semantic", memory.confirm), ("shirt pockets", "opinion", memory.demote))
    for question, kind, done in steps:
        await done((await memory.search(question, type=kind, limit=1)).ids[0])
    old = await memory.list(type="semantic", category="task", limit=1)
    for node in old.nodes:
        await memory.forget(node.id, reason="the appointment is over")


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text(encoding="utf-8").splitlines()]


def _conversations() -> Iterator[tuple[str, Any]]:
    for session, turns in groupby(_lines("conversation.jsonl"), key=itemgetter("session")):
        messages = [
            Message(text=each["text"], role=each["role"], speaker=each["speaker"], session=session, at=each["time"])
            for each in turns
        ]
        yield str(messages[-1].at), (session, messages)


def _facts() -> Iterator[tuple[str, Any]]:
    for each in _lines("facts.jsonl"):
        yield each.pop("at"), each


def _dinners() -> Iterator[tuple[str, Any]]:
    for each in dinners()["conversations"]:
        messages = [Message(session=each["session"], **turn) for turn in each["turns"]]
        yield str(messages[-1].at), (each["session"], messages)
