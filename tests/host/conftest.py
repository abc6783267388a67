"""A clock that tests move by hand, and a journal in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ricordo.host.journal import Journal

START = 1_767_261_600_000  # 2026-01-01T10:00Z
MINUTE = 60_000


class HandClock:
    """A clock that tests move by hand."""

    def __init__(self, ms: int = START) -> None:
        self.ms = ms

    def now(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    opened = await Journal.open(tmp_path / "me.db.host", durability="process")
    yield opened
    await opened.close()
