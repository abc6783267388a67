"""A single file opened as a folder is converted completely; the file is kept and its place logged."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import pytest
from tests.crash.forking import run_forked
from tests.storage.folders import everything, everything_of, without_index
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing

from ricordo import InvalidError, Memory, UnavailableError
from ricordo.storage.registry import open_store


async def lived(place, *, steps=25, seed=3):
    clock = HandClock()
    async with Memory.open(place, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, place, seed=seed)
        for _ in range(steps):
            await history.step()
        await memory.settle(600)


async def is_well(folder: Path) -> set[str]:
    """Return the dump of a rebuilt index after another change."""
    without_index(folder)
    async with Memory.open(f"{folder}/", **OPTIONS) as memory:
        await memory.settle(600)
        await memory.add("life goes on")
        return failing(await memory.doctor())


async def test_a_path_with_a_slash_converts_a_file_and_keeps_it(tmp_path, caplog):
    file = tmp_path / "me.db"
    await lived(file)
    before = everything_of(file)
    with caplog.at_level(logging.WARNING, "ricordo.storage"):
        async with Memory.open(f"{file}/", **OPTIONS) as memory:
            assert failing(await memory.doctor()) == set()
    assert "me.db.single-file" in caplog.text
    assert file.is_dir()
    assert (file / "commits.jsonl").exists()
    assert everything(file) == everything_of(tmp_path / "me.db.single-file") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["me.db", "me.db.single-file"]
    assert await is_well(file) == set()
    caplog.clear()
    async with Memory.open(file, **OPTIONS):
        pass
    assert "single file" not in caplog.text, "once is enough"


@pytest.mark.parametrize("name", ["memory.db", "index.db"])
async def test_a_folder_with_only_a_single_file_is_filled_from_it(tmp_path, caplog, name):
    folder = tmp_path / "memories"
    folder.mkdir()
    await lived(folder / name)
    before = everything_of(folder / name)
    kept = folder / ("index.db.single-file" if name == "index.db" else name)
    async with Memory.open(folder, **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    assert str(kept) in caplog.text
    assert everything(folder) == everything_of(kept) == before
    assert await is_well(folder) == set()


async def test_two_single_files_are_refused(tmp_path):
    for name in ("a.db", "b.db"):
        await lived(tmp_path / "both" / name, steps=3)
    with pytest.raises(InvalidError, match="2 stores") as refusal:
        open_store(tmp_path / "both")
    assert refusal.value.hint
    assert not list((tmp_path / "both").glob("*.jsonl"))


async def test_an_open_file_is_not_converted(tmp_path):
    file = tmp_path / "me.db"
    await lived(file, steps=3)
    before = everything_of(file)
    async with Memory.open(file, **OPTIONS) as memory:
        with pytest.raises(UnavailableError, match="open"):
            await asyncio.to_thread(open_store, f"{file}/", patience_s=0.2)
        await memory.add("still a file")
    assert file.is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["me.db"]
    assert len(everything_of(file)["nodes"]) == len(before["nodes"]) + 1


async def test_a_file_that_is_not_a_store_is_not_changed(tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("milk, bread")
    with pytest.raises(Exception, match="notes"):
        open_store(f"{notes}/")
    assert notes.read_text() == "milk, bread"
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


async def test_a_store_can_be_converted_back_and_forth(tmp_path):
    """The second file was the index of a folder and still has its state."""
    await lived(tmp_path / "me.db", steps=10)
    for source, target in (("me.db", "one/"), ("one", "two.db"), ("two.db", "three/")):
        async with Memory.open(tmp_path / source, **OPTIONS) as memory:
            await memory.migrate(f"{tmp_path}/{target}")
    async with Memory.open(tmp_path / "three", **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    assert everything(tmp_path / "three") == everything_of(tmp_path / "me.db")


KILLED = """
import os, signal, sys
from ricordo.storage import faults
from ricordo.storage.registry import open_store

def hook(reached):
    if reached == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

faults.install(hook)
open_store(sys.argv[1]).close()
"""


def open_and_die(place: Path, point: str) -> None:
    assert run_forked(KILLED, f"{place}/", point).returncode == -signal.SIGKILL


INSIDE = ("backup: in copy", "folder: before the marker", "folder: after the marker", "folder: between renames")


@pytest.mark.parametrize("point", [*INSIDE, "folder: before naming"])
async def test_after_a_kill_the_next_opening_finishes_the_conversion(tmp_path, point):
    file = tmp_path / "me.db"
    await lived(file, steps=10)
    before = everything_of(file)
    open_and_die(file, point)
    async with Memory.open(f"{file}/", **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    assert everything(file) == everything_of(tmp_path / "me.db.single-file") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["me.db", "me.db.single-file"]


@pytest.mark.parametrize("point", [*INSIDE, "folder: before replacing the index"])
@pytest.mark.parametrize("name", ["memory.db", "index.db"])
async def test_after_a_kill_the_next_opening_finishes_filling_the_folder(tmp_path, point, name):
    folder = tmp_path / "memories"
    folder.mkdir()
    await lived(folder / name, steps=10)
    before = everything_of(folder / name)
    open_and_die(folder, point)
    async with Memory.open(folder, **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    kept = folder / ("index.db.single-file" if name == "index.db" else name)
    assert everything(folder) == everything_of(kept) == before
