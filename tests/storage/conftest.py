"""Shared fixtures of the storage tests."""

from __future__ import annotations

import pytest

from ricordo.storage.registry import open_store


@pytest.fixture
def store(tmp_path):
    """An open, empty single-file store."""
    opened = open_store(tmp_path / "me.db", durability="process", reader_threads=2)
    yield opened
    opened.close()
