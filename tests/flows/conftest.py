"""Stories run through both APIs, the async `Memory` and the blocking one called from a thread, and on both kinds of
store: a single file, and a folder of plain files.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ricordo
import ricordo.sync
from ricordo import Settings, UnavailableError
from ricordo.language import Script
from ricordo.ports import Turn

START = 1_767_261_600_000  # 2026-01-01T10:00Z
DAY = 86_400_000


class HandClock:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.ms = START

    def now(self) -> int:
        return self.ms


class Blocking:
    """The blocking API behind awaitable methods, so that one story tests both."""

    def __init__(self, memory: ricordo.sync.Memory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._memory, name)
        if name == "add_nowait":
            return method
        if name == "scoped":
            return lambda scope: Blocking(method(scope))

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(method, *args, **kwargs)

        return call


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


class Place(NamedTuple):
    """Return the path of a store that a story opens itself."""

    location: str
    index: Path
    """Return the path of its database."""


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "file":
        return Place(f"{tmp_path}/me.db", tmp_path / "me.db")
    return Place(f"{tmp_path}/memories/", tmp_path / "memories" / "index.db")


@pytest.fixture(params=["async", "blocking", "folder"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> AsyncIterator[Any]:
    """Open a fresh store with a fast embedder."""
    place = f"{tmp_path}/memories/" if request.param == "folder" else tmp_path / "me.db"
    options: dict[str, Any] = {
        "embedder": "hashing",
        "clock": clock,
        "settings": Settings(durability="process", time_zone="Europe/Berlin"),
    }
    if request.param in ("async", "folder"):
        async with ricordo.Memory.open(place, **options) as opened:
            yield opened
    else:
        twin = await asyncio.to_thread(lambda: ricordo.sync.Memory.open(place, **options))
        yield Blocking(twin)
        await asyncio.to_thread(twin.close)


def confirming(answers: Iterable[object]) -> Script:
    """Return a script that gives these answers in order, and confirms every statement that is to be verified."""
    left = list(answers)

    def answer(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if schema["title"] == "Checks":
            return confirmed(turns)
        return left.pop(0) if left else UnavailableError("the scripted model has no answer left")

    return answer


def confirmed(turns: Sequence[Turn]) -> object:
    """Return the answer that confirms all statements of a prompt."""
    handles = re.findall(r"^(c\d+) note: ", turns[1].text, re.MULTILINE)
    return {"checks": [{"claim": each, "is": "stated", "confidence": 0.9} for each in handles]}
