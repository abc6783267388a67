"""A killed process loses no acknowledged write and leaves nothing half done. The short version of `kills.py`."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from ricordo.memory import Memory
from tests.crash.embedders import Letters
from tests.crash.forking import run_forked
from tests.crash.kills import ELSEWHERE, kill_once
from tests.crash.points import POINTS
from tests.crash.together import kill_together
from tests.crash.verify import Acknowledged
from tests.storage.making import rows


@pytest.mark.parametrize("point", [point for point in POINTS if point not in ELSEWHERE])
def test_a_kill_at_a_named_point_loses_nothing(tmp_path, point):
    run = kill_once(tmp_path / "m.db", Acknowledged(), seed=2, point=point)  # a seed with early kills
    assert run.was_killed, "the workload did not pass this point"
    assert run.verdict.ok, run.verdict


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_five_random_kills_lose_nothing(tmp_path, kind):
    said = Acknowledged()
    if kind == "folder":
        (tmp_path / "m.db").mkdir()
    for seed in range(5):
        run = kill_once(tmp_path / "m.db", said, seed=seed)
        assert run.was_killed
        assert run.verdict.ok, run.verdict
    assert said.count > 50


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_killing_processes_that_share_a_store_loses_nothing(tmp_path, kind):
    place = tmp_path / "m.db"
    if kind == "folder":
        place.mkdir()
    said = Acknowledged()
    verdict, _ = kill_together(place, said, seed=4)
    assert verdict.ok, verdict
    assert said.count


def test_a_killed_embedder_change_resumes_and_equals_a_fresh_store(tmp_path):
    killed, fresh = tmp_path / "killed.db", tmp_path / "fresh.db"
    texts = [f"{number} Anna likes tea and garden number {number * 7}" for number in range(120)]

    async def fill(path, embedder):
        async with Memory.open(path, embedder=embedder) as memory:
            for text in texts:
                await memory.add(text)
            await memory.settle(600)
            return [[hit.content for hit in (await memory.search(asked)).hits] for asked in ("tea 7", "garden 49")]

    asyncio.run(fill(killed, Letters()))
    for point in ("vectors: before storing", "model: in switch", "model: in dropping"):
        child = run_forked(CHANGE, str(killed), point)
        assert child.returncode == -signal.SIGKILL, child.stderr
    rows(killed, "DELETE FROM leases")

    async def finish():
        async with Memory.open(killed, embedder="hashing") as memory:
            await memory.settle(600)
            return [[hit.content for hit in (await memory.search(asked)).hits] for asked in ("tea 7", "garden 49")]

    assert asyncio.run(finish()) == asyncio.run(fill(fresh, "hashing"))
    vectors = """SELECT n.content, e.space, e.shelf, e.vector FROM embeddings e
                 JOIN nodes n ON n.key = e.node ORDER BY 1"""
    assert rows(killed, vectors) == rows(fresh, vectors)
    assert rows(killed, "SELECT name, state FROM models") == [("hashing-256-v1", "active")]


CHANGE = """
import asyncio, sys
from ricordo.memory import Memory
from ricordo.model import Message
from ricordo.storage.database import embeddings
from tests.crash.workload import die_at
from tests.storage.making import rows

async def main(path, point):
    embeddings._DROP_ROWS = 10
    async with Memory.open(path, embedder="hashing") as memory:
        await memory.settle(600)

rows(sys.argv[1], "DELETE FROM leases")
die_at(sys.argv[2], 1, trouble=False)
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""

HOLDER = """
import asyncio, os, signal, sys
from ricordo.memory import Memory
from ricordo.storage import faults

async def main(path):
    async with Memory.open(path, embedder="hashing") as memory:
        for number in range(50):
            await memory.remember(f"fact {number}", about=["Anna"])
        await memory.settle(600)

faults.install(lambda point: point == "vectors: before storing" and os.kill(os.getpid(), signal.SIGKILL))
asyncio.run(main(sys.argv[1]))
"""


def test_background_work_of_a_killed_process_is_taken_over(tmp_path):
    path = tmp_path / "m.db"
    child = run_forked(HOLDER, str(path))
    assert child.returncode == -signal.SIGKILL
    assert len(rows(path, "SELECT holder FROM leases")) == 1
    assert rows(path, "SELECT count(*) FROM embeddings") == [(0,)]

    async def take_over():
        async with Memory.open(path, embedder="hashing") as memory:
            started = time.monotonic()
            await memory.settle(600)
            return time.monotonic() - started

    assert asyncio.run(take_over()) < 15
    assert rows(path, "SELECT count(*) FROM embeddings") == rows(path, "SELECT count(*) FROM live_nodes")


def test_a_fault_point_costs_one_hook_check():
    from ricordo.storage import faults

    started = time.process_time()
    for _ in range(100_000):
        faults.reached("writer: before begin")
    assert time.process_time() - started < 5
