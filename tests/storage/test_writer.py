"""The writer: waiting changes are committed together, and every caller gets its own result."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import warnings

import apsw
import pytest
from tests.storage.making import ME, NOON, WHY, commit, fact, opened, raw, rows

from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.registry import open_store


@pytest.fixture
def fault():
    """Install a hook for the duration of a test."""
    yield faults.install
    faults.install(None)


async def holding(store):
    """Let the writer begin some work that does not end before the returned event is set."""
    has_begun, gate = threading.Event(), threading.Event()
    held = asyncio.ensure_future(store.derive(lambda _: (has_begun.set(), gate.wait(60))))
    assert await asyncio.to_thread(has_begun.wait, 30)
    return gate, held


async def in_one_batch(store, works):
    """Block the writer until all writes are queued, so that they share a transaction."""
    gate, held = await holding(store)
    waiting = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0.05)
    gate.set()
    await held
    return await asyncio.gather(*waiting, return_exceptions=True)


def adding(store, *contents):
    return commit(store, add=tuple(fact(content) for content in contents))


def failing(store, error):
    """A write that adds something and then fails."""

    def decide(tx):
        tx.rows("space_insert", {"owner": "half done", "chat": ""})
        raise error

    return store.write(decide, scope=ME, reason=WHY, at=NOON)


def contents(path):
    return [content for (content,) in rows(path, "SELECT content FROM nodes ORDER BY key")]


def test_a_failing_write_does_not_affect_others_in_the_batch(tmp_path):
    async def work(store):
        return await in_one_batch(
            store, [adding(store, "one"), failing(store, InvalidError("no")), adding(store, "two")]
        )

    first, second, third = opened(tmp_path / "m.db", work)
    assert (first, third) == (None, None)
    assert isinstance(second, InvalidError)
    assert contents(tmp_path / "m.db") == ["one", "two"]
    assert rows(tmp_path / "m.db", "SELECT count(*) FROM spaces WHERE owner = 'half done'") == [(0,)]
    assert rows(tmp_path / "m.db", "SELECT seq FROM commits") == [(1,), (2,)]


@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError(), KeyboardInterrupt(), SystemExit()])
def test_an_exception_reaches_its_caller_and_not_the_thread(tmp_path, error):
    async def work(store):
        with pytest.raises(type(error)):
            await store.derive(lambda _: (_ for _ in ()).throw(error))
        await adding(store, "afterwards")

    if isinstance(error, Exception):
        opened(tmp_path / "m.db", work)
        assert contents(tmp_path / "m.db") == ["afterwards"]
    else:  # asyncio itself stops at these two, so they are tested without it
        store = open_store(tmp_path / "m.db")
        future = store.writer.submit(lambda _: (_ for _ in ()).throw(error))
        assert isinstance(future.exception(10), type(error))
        assert store.writer.submit(lambda _: 42).result(10) == 42
        store.close()


def test_waiting_writes_are_committed_together(tmp_path, fault):
    passed = []

    async def work(store):
        fault(passed.append)
        await in_one_batch(store, [adding(store, f"n{number}") for number in range(40)])

    opened(tmp_path / "m.db", work)
    assert passed.count("apply: after commit row") == 40
    assert passed.count("writer: before commit") <= 3
    assert len(contents(tmp_path / "m.db")) == 40


@pytest.mark.parametrize("error", [apsw.FullError("full"), apsw.IOError("broken"), apsw.SQLError("rolled back")])
def test_after_a_sqlite_error_the_batch_is_replayed_one_by_one(tmp_path, fault, error):
    left = [error]

    def fail_once(point):
        if point == "writer: before commit" and left:
            raise left.pop()

    async def work(store):
        fault(fail_once)
        return await in_one_batch(
            store, [adding(store, "one"), failing(store, InvalidError("no")), adding(store, "two")]
        )

    first, second, third = opened(tmp_path / "m.db", work)
    assert (first, type(second), third) == (None, InvalidError, None)
    assert contents(tmp_path / "m.db") == ["one", "two"]


def test_an_error_in_the_middle_of_a_write_leaves_nothing_behind(tmp_path, fault):
    def fail(point):
        if point == "apply: after nodes":
            raise apsw.FullError("full")

    async def work(store):
        fault(fail)
        with pytest.raises(StoreError, match="disk is full"):
            await adding(store, "half")
        fault(None)
        await adding(store, "whole")
        return (await store.doctor()).ok

    assert opened(tmp_path / "m.db", work)
    assert contents(tmp_path / "m.db") == ["whole"]


def test_a_busy_store_refuses_a_whole_batch_after_one_timeout(tmp_path):
    path = tmp_path / "m.db"

    async def work(store):
        other = raw(path)
        other.execute("BEGIN IMMEDIATE")
        started = asyncio.get_running_loop().time()
        outcomes = await asyncio.gather(*(adding(store, str(n)) for n in range(10)), return_exceptions=True)
        took = asyncio.get_running_loop().time() - started
        other.execute("ROLLBACK")
        other.close()
        await adding(store, "afterwards")
        return outcomes, took

    outcomes, took = opened(path, work, patience_s=0.3)
    assert {type(outcome) for outcome in outcomes} == {UnavailableError}
    assert "locked" not in str(outcomes[0])
    assert took < 1.5
    assert contents(path) == ["afterwards"]


def test_closing_writes_what_is_queued(tmp_path):
    async def work(store):
        for number in range(2_000):
            store.write_nowait(lambda tx, n=number: _adds(n), scope=ME, reason=WHY, at=NOON)

    opened(tmp_path / "m.db", work)
    assert contents(tmp_path / "m.db") == [f"n{number}" for number in range(2_000)]


def _adds(number):
    from ricordo.model import Change

    return Change(add=(fact(f"n{number}"),)), None


def test_a_closed_store_refuses_clearly_and_closing_twice_is_fine(tmp_path):
    async def work(store):
        await asyncio.to_thread(store.close)
        with pytest.raises(UnavailableError, match="closed"):
            await adding(store, "late")
        with pytest.raises(UnavailableError, match="closed"):
            await store.read(lambda tx: tx)

    opened(tmp_path / "m.db", work)


def test_a_full_queue_refuses_clearly(tmp_path):
    async def work(store):
        gate, held = await holding(store)
        for number in range(5):
            store.write_nowait(lambda tx, n=number: _adds(n), scope=ME, reason=WHY, at=NOON)
        with pytest.raises(UnavailableError, match="waiting"):
            store.write_nowait(lambda tx: _adds(9), scope=ME, reason=WHY, at=NOON)
        gate.set()
        await held

    opened(tmp_path / "m.db", work, queue_limit=5)
    assert len(contents(tmp_path / "m.db")) == 5


def test_a_failed_background_write_is_logged_and_shown_by_doctor(tmp_path, caplog):
    def decide(tx):
        raise InvalidError("not today")

    async def work(store):
        store.write_nowait(decide, scope=ME, reason=WHY, at=NOON)
        await store.derive(lambda _: None)
        return await store.doctor()

    with caplog.at_level(logging.ERROR):
        report = opened(tmp_path / "m.db", work)
    assert [finding.check for finding in report.findings if not finding.ok] == ["background writes"]
    assert "not today" in caplog.text


def test_a_forked_child_is_refused_clearly_and_does_no_harm(tmp_path):
    async def work(store):
        await adding(store, "before")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork among threads is the point here
            child = os.fork()
        if child == 0:
            os._exit(_fork_says(store))
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1]) == 0
        await adding(store, "after")
        return (await store.doctor()).ok

    assert opened(tmp_path / "m.db", work)
    assert contents(tmp_path / "m.db") == ["before", "after"]


def _fork_says(store):
    """Return 0 if every use is refused with a message about forks."""
    uses = (
        lambda: store.write(lambda _: None, scope=ME, reason=WHY, at=NOON).send(None),
        lambda: store.read(lambda _: None).send(None),
        lambda: store.copy_to(store.path.with_name("b.db")),
    )
    for use in uses:
        try:
            use()
        except UnavailableError as error:
            if "fork" not in str(error):
                return 1
        else:
            return 2
    store.close()
    return 0


SCRIPT = """
import asyncio, gc, sys
from ricordo.memory import Memory

async def main():
    memory = await Memory.open(sys.argv[1], embedder=None)
    for number in range(3_000):
        memory.add_nowait(f"message {number}")

asyncio.run(main())
gc.collect()
"""


def test_an_interpreter_that_ends_without_closing_still_writes_what_was_queued(tmp_path):
    path = tmp_path / "m.db"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(path) == [f"message {number}" for number in range(3_000)]
