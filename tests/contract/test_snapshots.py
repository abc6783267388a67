"""Readers see one moment; writers do not get in each other's way, in threads and in processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ricordo.errors import UnavailableError
from ricordo.model import Change, Scope
from ricordo.storage.candidates import CandidateQuery
from ricordo.storage.values import Filter
from tests.contract.backends import SHARED, location, open_backend
from tests.contract.test_commits import ALL, listed, numbers
from tests.storage.making import ME, NOON, WHY, closing, commit, fact, said


def contents(tx):
    return [node.content for node in tx.nodes.page(ME, ALL, now=0, before_key=None, limit=1_000)]


def in_a_thread(work):
    """Run a coroutine in a loop and a thread of its own; return the thread."""
    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    return thread


async def test_a_reader_sees_one_moment_while_others_write(store):
    await commit(store, add=(fact("first"),))

    def ask(tx):
        before = contents(tx)
        in_a_thread(lambda: commit(store, add=(fact("second"),))).join()
        return before, contents(tx), tx.history.next_commit()

    assert await store.look(ask) == (["first"], ["first"], 2)
    assert await listed(store) == ["second", "first"]


async def test_a_written_change_is_seen_by_the_next_reader(store):
    for number in range(20):
        await commit(store, add=(fact(f"fact {number}"),))
        assert (await listed(store))[0] == f"fact {number}"


async def test_no_reader_sees_half_of_a_change(store):
    """Two facts come and go together: a reader that sees one sees the other."""
    pair, seen = (fact("left"), fact("right")), []
    begun, done = threading.Event(), threading.Event()
    await commit(store, add=pair)

    async def watch():
        while not done.is_set():
            seen.append(len(await store.read(contents)))
            begun.set()

    watching = in_a_thread(watch)
    assert await asyncio.to_thread(begun.wait, 20)
    for number in range(30):
        close = [{"closed_at": NOON, "closed_reason": "forgotten"}, {}][number % 2]
        await commit(store, put=tuple(replace(each, **close) for each in pair))
    done.set()
    watching.join()
    assert seen and set(seen) <= {0, 2}


async def test_writers_in_many_threads_lose_nothing(store):
    async def write(name):
        for number in range(10):
            await commit(store, add=(fact(f"{name} {number}"),))

    threads = [in_a_thread(lambda name=name: write(name)) for name in range(4)]
    await write("own")
    await asyncio.to_thread(lambda: [thread.join() for thread in threads])
    assert len(set(await listed(store))) == 50
    assert sorted(await numbers(store)) == list(range(1, 51))


async def test_a_failing_write_does_not_affect_others_beside_it(store):
    def failing(tx):
        raise ZeroDivisionError

    works = [
        store.write(
            failing if number % 3 == 0 else lambda _, number=number: (Change(add=(fact(f"fact {number}"),)), number),
            scope=ME,
            reason=WHY,
            at=NOON,
        )
        for number in range(12)
    ]
    results = await asyncio.gather(*works, return_exceptions=True)
    assert [each for each in results if isinstance(each, int)] == [1, 2, 4, 5, 7, 8, 10, 11]
    assert sum(isinstance(each, ZeroDivisionError) for each in results) == 4
    assert set(await listed(store)) == {f"fact {number}" for number in (1, 2, 4, 5, 7, 8, 10, 11)}
    assert sorted(await numbers(store)) == list(range(1, 9))


async def test_writes_nobody_awaits_are_done_in_order_and_failures_are_counted(store):
    def failing(tx):
        raise ZeroDivisionError

    for number in range(5):
        change = Change(add=(fact(f"fact {number}"),))
        store.write_nowait(lambda _, change=change: (change, None), scope=ME, reason=WHY, at=NOON)
    store.write_nowait(failing, scope=ME, reason=WHY, at=NOON)
    await commit(store, add=(fact("awaited"),))
    assert await listed(store) == ["awaited", *(f"fact {number}" for number in (4, 3, 2, 1, 0))]
    findings = (await store.doctor()).findings
    assert any("1 failed" in finding.detail for finding in findings), findings


async def test_derived_rows_make_no_commit(store):
    await commit(store, add=(fact("first"),))
    await store.derive(lambda tx: tx.mentions.look_again([1]))
    assert await numbers(store) == [1]
    assert await store.read(lambda tx: tx.mentions.spaces_to_link()) == [1]


async def test_a_closed_store_refuses_clearly_and_closing_twice_is_fine(store):
    await commit(store, add=(fact("first"),))
    store.close()
    store.close()
    with pytest.raises(UnavailableError):
        await store.read(contents)
    with pytest.raises(UnavailableError):
        await commit(store, add=(fact("second"),))


async def test_what_is_queued_is_written_before_closing_and_found_on_reopening(where):
    store = open_backend(where)
    for number in range(20):
        change = Change(add=(fact(f"fact {number}"),))
        store.write_nowait(lambda _, change=change: (change, None), scope=ME, reason=WHY, at=NOON)
    await asyncio.to_thread(store.close)
    again = open_backend(where)
    try:
        assert await listed(again) == [f"fact {number}" for number in reversed(range(20))]
        await commit(again, add=(fact("later"),))
        assert (await numbers(again))[0] == 21
    finally:
        await asyncio.to_thread(again.close)


async def test_two_stores_share_nothing(backend, tmp_path):
    stores = [open_backend(location(backend, tmp_path / name)) for name in ("one", "two")]
    try:
        await commit(stores[0], add=(fact("first"),))
        assert await listed(stores[1]) == []
        assert await stores[1].read(lambda tx: tx.lifecycle.scopes()) == []
    finally:
        for store in stores:
            await asyncio.to_thread(store.close)


async def test_a_store_opened_twice_is_one_store(where):
    one, two = open_backend(where), open_backend(where)
    try:
        await commit(one, add=(fact("first"),))
        await commit(two, add=(fact("second"),))
        assert await listed(one) == await listed(two) == ["second", "first"]
        assert await numbers(one) == [2, 1]
    finally:
        for store in (one, two):
            await asyncio.to_thread(store.close)


async def test_callers_see_their_own_space_and_that_of_their_chat(store):
    nobody = Scope(owner="nobody")
    for owner, chat in (("me", ""), ("you", ""), ("", "club"), ("", "other")):
        name = f"{owner}/{chat}"
        await commit(store, Scope(owner=owner, chat=chat or None), add=(fact(name, owner=owner, chat=chat),))
    seen = {
        scope: set(await listed(store, scope))
        for scope in (ME, Scope(owner="me", chat="club"), Scope(owner="", chat="club"), nobody)
    }
    assert list(seen.values()) == [{"me/"}, {"me/", "/club"}, {"/club"}, set()]
    assert await numbers(store, Scope(owner="you", chat="other")) == [4, 2]
    assert len(await store.read(lambda tx: tx.lifecycle.scopes())) == 4


WRITER = """
import asyncio, sys
from tests.contract.backends import open_backend
from tests.storage.making import commit, fact

async def main(where, name):
    store = open_backend(where)
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(25):
        await commit(store, add=(fact(f"{name} {number}"),))
    store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("shared", SHARED)
async def test_two_processes_write_at_once_and_lose_nothing(shared, tmp_path):
    where = location(shared, tmp_path / "memory")
    open_backend(where).close()
    root = str(Path(__file__).parents[2])
    writers = [
        subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-c", WRITER, where, name],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout.readline() == "open\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    store = open_backend(where)
    try:
        found = await listed(store)
        for name in ("left", "right"):
            mine = [content for content in reversed(found) if content.startswith(name)]
            assert mine == [f"{name} {number}" for number in range(25)]
        assert sorted(await numbers(store)) == list(range(1, 51))
        assert (await store.doctor()).ok
    finally:
        await asyncio.to_thread(store.close)


async def test_live_turns_stand_around_an_archived_one_and_no_other_archived_one(store):
    turns = [said(f"peanuts {number}", minutes=number, session="s") for number in range(8)]
    await commit(store, add=tuple(turns))
    await commit(store, close=(closing(turns[2]), closing(turns[4]), closing(turns[5])))
    asked = CandidateQuery(
        scope=ME, filter=Filter(archived=True, shelves=("e",)), terms=("peanut",), until=time.monotonic() + 60
    )
    found = (await store.read(lambda tx: tx.candidates(asked))).rows
    keys = found.turns.keys
    assert keys[: found.size].tolist() == [3, 5, 6]
    before, after = np.split(keys[found.turns.nearby], 2)
    assert before.T.tolist() == [[2, 1], [4, 2], [4, 2]]
    assert after.T.tolist() == [[4, 7], [7, 8], [7, 8]]


async def test_a_long_turn_is_read_passage_by_passage(store):
    paragraphs = [f"{'The peanut harvest was good. ' * 20}Paragraph {number}." for number in range(3)]
    turns = [said("peanuts first", minutes=0, session="s"), said("\n".join(paragraphs), minutes=1, session="s")]
    turns += [said(f"lemons {number}", minutes=2 + number, session="s") for number in range(3)]
    await commit(store, add=tuple(turns))
    asked = CandidateQuery(
        scope=ME, filter=Filter(shelves=("e",)), terms=("peanut", "paragraph"), until=time.monotonic() + 60
    )
    rows = (await store.read(lambda tx: tx.candidates(asked))).rows
    found = list(zip(rows.turns.keys.tolist(), rows.turns.passages.tolist(), strict=True))
    assert found == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (4, 0), (5, 0), (0, 0)]
    assert rows.turns.several.tolist() == [False, True, True, True, False, False, False, False]
    assert rows.counts[:, 1:4].sum(axis=1).tolist() == [60, 3]
    before_one, before_two, after_one, after_two = rows.turns.nearby[:, :4].tolist()
    assert (before_one, before_two) == ([7, 0, 1, 2], [7, 7, 0, 1])
    assert (after_one, after_two) == ([1, 2, 3, 4], [2, 3, 4, 5])
