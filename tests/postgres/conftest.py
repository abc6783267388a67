"""Tests of the PostgreSQL backend alone. They need a server: see `tests/contract/server.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ricordo.storage.registry import open_store
from tests.contract import server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with a word where no server is wanted; name the backend, so that `-k postgres` finds these tests."""
    for item in items:
        if Path(item.path).parent == Path(__file__).parent and not server.is_wanted():
            item.add_marker(pytest.mark.skip(reason="no PostgreSQL: `make postgres` installs and starts one"))


@pytest.fixture
def where(tmp_path: Path) -> str:
    """The location of an empty store."""
    return server.location(tmp_path / "memory")


@pytest.fixture
def store(where: str) -> Iterator[Any]:
    opened = open_store(where, durability="process", patience_s=120)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One store for tests that do not change it."""
    opened = open_store(server.location(tmp_path_factory.mktemp("shared")), durability="process", patience_s=120)
    yield opened
    opened.close()
