"""What many tests of the store begin with."""

from __future__ import annotations

import pytest

from ricordo.storage import Store


@pytest.fixture
def store(tmp_path):
    """An open store in one file, with nothing in it."""
    opened = Store.open(tmp_path / "me.db", durability="process", reader_threads=2)
    yield opened
    opened.close()
