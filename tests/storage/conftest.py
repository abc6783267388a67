"""Shared fixtures of the storage tests."""

from __future__ import annotations

import pytest

from ricordo.storage import Store


@pytest.fixture
def store(tmp_path):
    """An open, empty single-file store."""
    opened = Store.open(tmp_path / "me.db", durability="process", reader_threads=2)
    yield opened
    opened.close()
