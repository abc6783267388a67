"""A process is stopped while it holds the lock of a folder: others can read, and their writes fail with a reason."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time

import apsw
import pytest

from ricordo.errors import DeniedError, UnavailableError
from ricordo.memory import Memory
from ricordo.settings import Settings
from ricordo.storage import faults
from ricordo.storage.key import has_cipher
from ricordo.storage.registry import open_store
from tests.crash.kills import ROOT

PATIENCE_S = 1.5
SETTINGS = Settings(patience_s=PATIENCE_S)
READING_S = 5.0  # the goal is two seconds; the machine may be busy

STOPPING = """
import asyncio, os, signal, sys, time
from ricordo.memory import Memory
from ricordo.storage import faults
from ricordo.storage.key import Key
from ricordo.storage.rekey import rekey

def stop_once_at(point):
    def hook(name):
        if name == point:
            faults.install(None)
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.2)  # other threads may stop first
    faults.install(hook)

async def main(path, point, verb, key):
    async with Memory.open(path, embedder=None, key=key or None) as memory:
        first = await memory.remember("Anna likes green tea")
        for number in range(5):
            await memory.remember(f"Anna has {number + 10} cups")
        stop_once_at(point)
        match verb:
            case "erase":
                await memory.erase(id=first.id)
            case "remember":
                await memory.remember("Anna moved to Oslo")
    if verb == "rekey":
        rekey(path, key=Key(key), new=Key("2b" * 32))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def no_fault():
    yield
    faults.install(None)


@contextlib.contextmanager
def stopped(folder, point, verb="remember", key=""):
    """Run a process until it stops itself at a named point; provide that process."""
    command = [sys.executable, "-c", STOPPING, str(folder), point, verb, key]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), child.stderr.read()
        yield child
    finally:
        child.kill()
        child.wait(20)
        child.stderr.close()


def go_on(child):
    """Let a stopped process finish."""
    child.send_signal(signal.SIGCONT)
    assert child.wait(20) == 0, child.stderr.read()


def end(child):
    """Kill a stopped process. The lock is free then, and nothing of its batch is kept."""
    child.kill()
    child.wait(20)


def edit(folder):
    with (folder / "memories.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"content": "Anna rides a red bicycle"}\n')


def opened(folder, **options):
    return Memory.open(folder, embedder=None, settings=SETTINGS, **options)


async def texts(memory):
    return {node.content for node in (await memory.list(limit=100)).nodes}


POINTS = {
    "folder: between files": "remember",
    "folder: before commit line": "remember",
    "folder: after commit line": "remember",
    "writer: before commit": "remember",
    "folder: before the marker": "erase",
    "folder: after the marker": "erase",
    "folder: between renames": "erase",
}


@pytest.mark.slow
@pytest.mark.parametrize(("point", "verb"), POINTS.items())
async def test_a_folder_of_a_stopped_writer_can_be_read(tmp_path, point, verb):
    folder = tmp_path / "memory"
    folder.mkdir()
    with stopped(folder, point, verb) as child:
        async with opened(folder) as memory:
            hits = (await memory.search("green tea")).hits
            before = await texts(memory)
            assert "Anna likes green tea" in {hit.content for hit in hits} & before
            assert len(before) == 6

            writing = time.monotonic()
            with pytest.raises(UnavailableError, match="another process holds") as refused:
                await memory.remember("Anna plays the cello")
            assert PATIENCE_S <= time.monotonic() - writing < PATIENCE_S + READING_S
            assert "end it" in refused.value.hint

            await asyncio.to_thread(go_on, child)
            after = before | {"Anna moved to Oslo"} if verb == "remember" else before - {"Anna likes green tea"}
            assert await texts(memory) == after
            await memory.remember("Anna plays the cello")
        async with opened(folder) as memory:
            assert await texts(memory) == after | {"Anna plays the cello"}
            assert (await memory.doctor()).ok


async def test_reading_and_closing_do_not_wait_as_long_as_a_write(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    with stopped(folder, "folder: between files"):
        started = time.monotonic()
        async with Memory.open(folder, embedder=None) as memory:  # a write waits for 30 seconds
            assert (await memory.search("green tea")).hits
            assert await texts(memory)
            assert "green tea" in await memory.context("What does Anna drink?")
        assert time.monotonic() - started < 2 * READING_S


async def test_an_edit_of_the_files_is_read_once_the_lock_is_free(tmp_path):
    def read(snapshot):
        return {content for (content,) in snapshot.connection.execute("SELECT content FROM nodes")}

    folder = tmp_path / "memory"
    folder.mkdir()
    with stopped(folder, "writer: after begin") as child:
        edit(folder)
        with contextlib.closing(open_store(folder, patience_s=PATIENCE_S)) as store:
            assert len(await store.read(read)) == 6
            await asyncio.to_thread(end, child)
            assert "Anna rides a red bicycle" in await store.read(read)


async def test_a_failed_catch_up_is_repeated_by_the_next_write(tmp_path):
    def fill_disk(point):
        if point == "folder: before commit line":
            faults.install(None)
            raise apsw.FullError("no space left")

    folder = tmp_path / "memory"
    folder.mkdir()
    with stopped(folder, "writer: after begin") as child:
        edit(folder)
        async with opened(folder) as memory:
            faults.install(fill_disk)
            await asyncio.to_thread(end, child)
            assert "Anna has 10 cups" in await texts(memory)
            await memory.remember("Anna plays the cello")
            assert {"Anna rides a red bicycle", "Anna plays the cello"} < await texts(memory)


@pytest.mark.skipif(not has_cipher(), reason="another package brought its own apsw")
@pytest.mark.parametrize("point", ["folder: before the marker", "folder: between renames"])
async def test_a_key_that_a_stopped_process_is_changing_opens_the_old_state(tmp_path, point):
    pytest.importorskip("cryptography")
    folder, old, new = tmp_path / "memory", "1a" * 32, "2b" * 32
    folder.mkdir()
    with stopped(folder, point, "rekey", old) as child:
        async with opened(folder, key=old) as memory:
            assert len(await texts(memory)) == 6
            await asyncio.to_thread(go_on, child)
            with pytest.raises(DeniedError, match="key"):
                await memory.remember("Anna plays the cello")
        async with opened(folder, key=new) as memory:
            assert len(await texts(memory)) == 6
            assert (await memory.doctor()).ok


async def test_a_folder_without_its_index_waits_for_the_stopped_writer(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    with stopped(folder, "writer: after begin"):
        (folder / "index.db").unlink()
        with pytest.raises(UnavailableError, match="another process holds"):
            async with opened(folder):
                pass
