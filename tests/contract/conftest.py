"""Every test of the suite runs once for each backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Settings
from tests.contract.backends import BACKENDS, location, open_backend
from tests.contract.reference import forget_all
from tests.storage.histories import HandClock


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a backend."""
    yield request.param
    forget_all()


@pytest.fixture
def where(backend: str, tmp_path: Path) -> str:
    """The location of the one store of a test."""
    return location(backend, tmp_path / "memory")


@pytest.fixture
def store(where: str) -> Iterator[Any]:
    """An open store with nothing in it."""
    opened = open_backend(where)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_memory(where: str, clock: HandClock) -> Callable[..., Memory]:
    """Open the one memory of a test; may be called again after it was closed."""

    def open_(**options: Any) -> Memory:
        settings = Settings(durability="process")
        return Memory.open(where, **{"embedder": None, "clock": clock, "settings": settings, **options})

    return open_


@pytest.fixture
async def memory(open_memory: Callable[..., Memory]) -> AsyncIterator[Memory]:
    """An open memory with nothing in it."""
    async with open_memory() as opened:
        yield opened
