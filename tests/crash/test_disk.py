"""A full disk and a read-only one: clear errors, working reads, no partial writes, no restart needed."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import subprocess
import sys

import pytest

from ricordo.errors import StoreError
from ricordo.memory import Memory
from ricordo.model import Message
from tests.crash.kills import ROOT
from tests.crash.verify import HALF_DONE
from tests.storage.making import failing, rows

LONG = "a long message about tea " * 200  # 5 kB


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, or None if mounting is not allowed: then a size limit is used."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2400k", "tmpfs", str(folder)], check=False).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


class SmallDisk:
    """Filled by a file of zeros, freed by deleting it."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self):
        with contextlib.suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1_000))

    def free(self):
        (self.folder / "filler").unlink()


class SizeLimit:
    """Forbid files to grow, like a quota. For a child process: it applies to all its files."""

    def __init__(self, folder):
        self.folder = folder
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(self):
        largest = max(path.stat().st_size for path in self.folder.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

    def free(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def write_until_refused(memory, kept):
    """Several concurrent callers, so that batches fail in the middle."""
    refusals = []

    async def caller(name):
        for number in range(400):
            text = f"{name} {number} {LONG}"
            try:
                kept[await memory.add(text)] = text
            except StoreError as error:
                refusals.append(error)
                return

    async def in_batches():
        for number in range(400):
            messages = [
                Message(text=f"b{number} {part} {LONG}", attributes={"batch": number, "of": 3}) for part in range(3)
            ]
            try:
                ids = await memory.add_many(messages)
            except StoreError as error:
                refusals.append(error)
                return
            kept.update(zip(ids, [message.text for message in messages], strict=True))

    await asyncio.gather(*(caller(f"c{number}") for number in range(3)), in_batches())
    return refusals


async def a_day_on(disk, path, *, close_while_full):
    """Write, fill the disk, write until refused, read, free it, write again, with one open memory."""
    kept = {}
    async with Memory.open(path, embedder="hashing") as memory:
        for number in range(5):
            text = f"before {number}"
            kept[await memory.add(text)] = text
        await memory.settle(600)
        disk.fill()
        refusals = await write_until_refused(memory, kept)
        assert len(refusals) == 4
        for error in refusals:
            assert "disk is full" in str(error) or "input/output" in str(error), error
            assert error.hint
        assert len((await memory.search("before")).hits) >= 5
        assert (await memory.list(limit=1)).nodes
        for id_, text in kept.items():
            assert (await memory.get(id_)).content == text
        memory.add_nowait(LONG * 100)  # only `doctor` reports it
        if close_while_full:
            return kept
        with contextlib.suppress(StoreError):
            await memory.forget(next(iter(kept)))
            await memory.restore(next(iter(kept)))
        assert failing(await memory.doctor()) <= {"background writes"}
        disk.free()
        for number in range(5):
            text = f"after {number}"
            kept[await memory.add(text)] = text
        await memory.settle(600)
        assert failing(await memory.doctor()) == {"background writes"}
    return kept


def check_afterwards(path, kept):
    assert dict(rows(path, "SELECT id, content FROM nodes")) == kept
    assert {
        name: rows(path, text) for name, text in HALF_DONE.items() if "vector" not in name and rows(path, text)
    } == {}

    async def look():
        async with Memory.open(path, embedder="hashing") as memory:
            await memory.settle(600)
            return await memory.doctor()

    report = asyncio.run(look())
    assert report.ok, report


def in_a_child(folder, *, close_while_full):
    """With a file size limit instead of a small disk."""
    script = (
        "import asyncio; from pathlib import Path; from tests.crash import test_disk as t;"
        f"folder = Path({str(folder)!r}); path = folder / 'm.db'; disk = t.SizeLimit(folder);"
        f"kept = asyncio.run(t.a_day_on(disk, path, close_while_full={close_while_full}));"
        "disk.free(); t.check_afterwards(path, kept)"
    )
    child = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr


@pytest.mark.parametrize("close_while_full", [False, True])
def test_a_full_disk_refuses_writes_until_there_is_space(tmp_path, small_disk, close_while_full):
    if small_disk is None:
        in_a_child(tmp_path, close_while_full=close_while_full)
        return
    path, disk = small_disk / "m.db", SmallDisk(small_disk)
    kept = asyncio.run(a_day_on(disk, path, close_while_full=close_while_full))
    if close_while_full:
        disk.free()
    check_afterwards(path, kept)


@pytest.mark.slow
def test_a_file_size_limit_behaves_like_a_full_disk(tmp_path):
    """Another errno, another of SQLite's errors: a quota rather than a full disk."""
    in_a_child(tmp_path, close_while_full=False)


def test_a_backup_onto_a_full_disk_says_so_and_leaves_nothing(tmp_path, small_disk):
    if small_disk is None:
        pytest.fail("this machine cannot mount: run the tests as root, or in a container that may")

    async def main():
        async with Memory.open(tmp_path / "m.db", embedder=None) as memory:
            await memory.add(LONG * 400)
            with pytest.raises(StoreError, match="disk is full"):
                await memory.backup(small_disk / "copy.db")

    asyncio.run(main())
    assert list(small_disk.iterdir()) == []


def test_creating_a_store_on_a_full_disk_gives_a_clear_error(small_disk):
    if small_disk is None:
        pytest.fail("this machine cannot mount: run the tests as root, or in a container that may")
    SmallDisk(small_disk).fill()

    async def main():
        async with Memory.open(small_disk / "m.db", embedder=None):
            pass

    with pytest.raises(StoreError) as refusal:
        asyncio.run(main())
    assert refusal.value.hint


@pytest.mark.parametrize("name", ["m.db", "folder/"])
def test_a_store_on_a_read_only_disk_answers_and_refuses_writes(small_disk, tmp_path, name):
    if small_disk is None:
        pytest.fail("this machine cannot mount: run the tests as root, or in a container that may")
    path = f"{small_disk}/{name}"

    async def main():
        async with Memory.open(path, embedder="hashing") as memory:
            await memory.remember("tea before")
            await memory.settle(600)

    asyncio.run(main())
    before = {each: each.read_bytes() for each in small_disk.rglob("*") if each.is_file()}
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    async def on_read_only():
        async with Memory.open(path, embedder="hashing") as memory:
            assert [hit.content for hit in await memory.search("tea")] == ["tea before"]
            assert "tea before" in (await memory.context("tea?") or "")
            assert len(await memory.list()) == 1
            assert (await memory.doctor()).ok
            await memory.export(tmp_path / "out.jsonl")
            writes = (
                memory.remember("x"),
                memory.add("y"),
                memory.erase(owner="me"),
                memory.off_record(),
                memory.undo(1),
            )
            for write in writes:
                with pytest.raises(StoreError, match="is read-only") as refusal:
                    await write
                assert refusal.value.hint

    asyncio.run(on_read_only())
    assert {each: each.read_bytes() for each in small_disk.rglob("*") if each.is_file()} == before
