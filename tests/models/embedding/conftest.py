"""Models are loaded once for all tests: they are read-only and take 0.3 seconds."""

from __future__ import annotations

import pytest

from ricordo.models.embedding import resolve
from ricordo.ports import Embedder


@pytest.fixture(scope="session")
def default() -> Embedder:
    return _resolved("default")


@pytest.fixture(scope="session")
def minilm() -> Embedder:
    return _resolved("minilm")


@pytest.fixture(scope="session", params=["default", "minilm", "hashing"])
def local(request: pytest.FixtureRequest) -> Embedder:
    """Each embedder of the bare install."""
    return _resolved("hashing") if request.param == "hashing" else request.getfixturevalue(request.param)


def _resolved(spec: str) -> Embedder:
    embedder = resolve(spec)
    assert embedder is not None
    return embedder
