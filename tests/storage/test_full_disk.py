"""A full disk is called full, and what is stored can be read from it."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from ricordo import Memory, StoreError
from ricordo.storage import sql

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the disk as full, as a mount of a few megabytes would be; mounting needs rights that tests lack."""
    monkeypatch.setattr(sql.shutil, "disk_usage", lambda path: Usage(1_000_000, 1_000_000, 0))


@pytest.mark.parametrize("name", ["m.db", "m/"])
async def test_a_store_on_a_full_disk_can_be_read(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    location = f"{tmp_path}/{name}"
    async with Memory.open(location, embedder=None) as memory:
        await memory.remember("Anna likes tea")
    request.getfixturevalue("full")
    async with Memory.open(location, embedder=None) as memory:
        assert [hit.content for hit in await memory.search("tea")] == ["Anna likes tea"]
        with pytest.raises(StoreError, match="disk is full") as refused:
            await memory.remember("Ben likes coffee")
    assert "free some space" in refused.value.hint


async def test_a_copy_that_does_not_fit_says_that_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=None) as memory:
        await memory.remember("Anna likes tea")
    request.getfixturevalue("full")

    def no_space(*paths: object, **given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", no_space)
    with pytest.raises(StoreError, match="the disk is full"):
        async with Memory.open(tmp_path / "m.db", embedder=None):
            pass
