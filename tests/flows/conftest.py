"""Stories run through both APIs and on both kinds of store: the async `Memory` on a single file, and the blocking one,
called from a thread, on a folder of plain files; with a server (`make postgres`), on PostgreSQL, too.

An API does not know its store, so the other two pairs would only find the same faults again.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ricordo
import ricordo.sync
from ricordo import Settings
from ricordo.language import ScriptedModel
from ricordo.ports import Completion, Turn
from ricordo.storage.registry import open_store
from tests.contract import server
from tests.storage.making import rows

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


@dataclass(frozen=True)
class Place:
    """Where a store is that a story opens itself."""

    location: str
    file: Path | None
    """Its database; None on a server."""

    @property
    def index(self) -> Path:
        """The path of its database, or of a copy of it as it is now."""
        if self.file is not None:
            return self.file
        target = Path(tempfile.mkdtemp(prefix="ricordo-copy-")) / "copy.db"
        store = open_store(self.location)
        try:
            store.copy_to(target)
        finally:
            store.close()
        return target

    def asked(self, sql: str) -> list[Any]:
        """Return the rows of a statement about the store as it is now."""
        if self.file is not None:
            return rows(self.file, sql)
        store = open_store(self.location)
        try:
            answer: list[Any] = store.writer.submit(lambda tx: tx.connection.execute(sql)).result()
            return answer
        finally:
            store.close()


_HERE = Path(__file__).parent
ON_A_SERVER = ["postgres"] if server.is_wanted() else []


@pytest.fixture(params=["file", "folder", *ON_A_SERVER])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return Place(server.guarded_location(tmp_path), None)
    if request.param == "file":
        return Place(f"{tmp_path}/me.db", tmp_path / "me.db")
    return Place(f"{tmp_path}/memories/", tmp_path / "memories" / "index.db")


@pytest.fixture(params=["async", "blocking", *ON_A_SERVER])
async def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> AsyncIterator[Any]:
    """Open a fresh store with a fast embedder."""
    places = {"blocking": lambda: f"{tmp_path}/memories/", "postgres": lambda: server.guarded_location(tmp_path)}
    place = places.get(request.param, lambda: ":memory:")()
    options: dict[str, Any] = {
        "embedder": "hashing",
        "clock": clock,
        "settings": Settings(durability="process", time_zone="Europe/Berlin"),
    }
    if request.param != "blocking":
        async with ricordo.Memory.open(place, **options) as opened:
            yield opened
    else:
        twin = await asyncio.to_thread(lambda: ricordo.sync.Memory.open(place, **options))
        yield Blocking(twin)
        await asyncio.to_thread(twin.close)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a test of many sentences with each of them in a file, and with the first one by the blocking calls."""
    seen, kept, left = set[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        given = getattr(item, "callspec", None)
        is_twin = given is not None and given.params.get("memory") == "blocking" and _HERE in item.path.parents
        function = item.nodeid.partition("[")[0]
        (left if is_twin and function in seen else kept).append(item)
        if is_twin:
            seen.add(function)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


class ConfirmingModel(ScriptedModel):
    """A scripted model that confirms what is to be verified, by itself; `prompts` are only the other prompts."""

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        if schema.get("title") != "Checks":
            return await super().complete(turns, schema=schema, max_tokens=max_tokens)
        return Completion(text=json.dumps(confirmed(turns)))


def confirmed(turns: Sequence[Turn]) -> object:
    """Return the answer that confirms the statements of a prompt that share a longer word with their lines."""
    checks = []
    for part in re.split(r"^(?=c\d+ note: )", turns[1].text, flags=re.MULTILINE)[1:]:
        note, _, lines = part.partition("\n")
        handle, _, claim = note.partition(" note: ")
        is_said = any(word[:5] in lines for word in re.findall(r"\w{4,}", claim))
        checks.append({"claim": handle, "is": "stated" if is_said else "more", "confidence": 0.9})
    return {"checks": checks}
