"""Events reach every handler, in this process and the next; failed ones are listed with their reason."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from functools import partial
from pathlib import Path

import apsw
import pytest

import ricordo.host
from ricordo.errors import InvalidError, NotFoundError, StoreError, UnavailableError
from ricordo.host import bus as bus_module
from ricordo.host import journal as journal_
from ricordo.host import journal as journal_module
from ricordo.host.bus import Bus, Event, Outgoing, Patience
from ricordo.host.journal import Journal, journal_path
from ricordo.storage.sql import named_statements
from tests.host.conftest import HandClock
from tests.storage.making import rows

HASTY = Patience(poll_s=0.02)


def told(into: list[Event]):
    async def handle(event: Event) -> None:
        into.append(event)

    return handle


async def _running(journal: Journal, clock: HandClock, patience: Patience = HASTY, **handlers) -> Bus:
    bus = Bus(journal, clock, patience)
    for name, handle in handlers.items():
        await bus.subscribe(name, "greeting", handle)
    await bus.start()
    return bus


async def test_each_handler_of_a_topic_gets_an_event_once(journal: Journal, clock: HandClock) -> None:
    first, second, other = [], [], []
    bus = await _running(journal, clock, first=told(first), second=told(second))
    await bus.subscribe("other", "farewell", told(other))
    id_ = await bus.publish("greeting", {"name": "Anna"})
    await bus.drain(5)
    assert [each.payload for each in first] == [each.payload for each in second] == [{"name": "Anna"}]
    assert (first[0].id, first[0].key, second[0].key) == (id_, f"{id_}/first", f"{id_}/second")
    assert other == []
    await bus.stop()


async def test_events_published_while_nothing_runs_are_delivered_in_order(tmp_path: Path, clock) -> None:
    path, heard = tmp_path / "me.db.host", []
    journal = await Journal.open(path, durability="process")
    bus = Bus(journal, clock)
    await bus.subscribe("late", "greeting", told([]))
    for number in range(20):
        await bus.publish("greeting", {"number": number})
    await journal.close()

    journal = await Journal.open(path, durability="process")
    bus = await _running(journal, clock, late=told(heard))
    await bus.drain(5)
    assert [each.payload["number"] for each in heard] == list(range(20))
    await bus.stop()
    await journal.close()


async def test_an_event_with_a_name_of_its_own_is_published_once(journal: Journal, clock: HandClock) -> None:
    heard = []
    bus = await _running(journal, clock, one=told(heard))
    ids = {await bus.publish("greeting", {"n": n}, once="the first") for n in range(3)}
    await bus.drain(5)
    assert len(ids) == 1 and [each.payload for each in heard] == [{"n": 0}]
    await bus.stop()


async def test_a_failing_handler_is_retried_with_back_off_then_dead_lettered(journal, clock) -> None:
    heard, kept = [], []

    async def fails(event: Event) -> None:
        heard.append(event)
        raise UnavailableError("the model does not answer: 'secret words of a server'")

    patience = Patience(poll_s=0.02, first_wait_ms=1_000, most_tries=3)
    bus = await _running(journal, clock, patience, failing=fails, working=told(kept))
    id_ = await bus.publish("greeting", {"name": "Anna"})
    await bus.drain(5)
    assert (len(heard), len(kept)) == (1, 1)  # it does not block other handlers
    for waits, times in ((999, 1), (1, 2), (3_999, 2), (1, 3)):
        clock.ms += waits
        bus.wake()
        await bus.drain(5)
        assert len(heard) == times
    assert {each.key for each in heard} == {f"{id_}/failing"} and [each.tries for each in heard] == [1, 2, 3]
    (dead,) = await bus.dead_letters()
    assert (dead.event, dead.handler, dead.tries, dead.payload) == (id_, "failing", 3, {"name": "Anna"})
    assert dead.reason == "UnavailableError: the model does not answer"
    clock.ms += 10**9
    await bus.drain(5)
    assert len(heard) == 3
    await bus.retry(id_, "failing")
    await bus.drain(5)
    assert len(heard) == 4
    with pytest.raises(NotFoundError):
        await bus.retry(id_, "working")
    await bus.stop()


async def test_events_returned_by_a_handler_are_published_atomically(journal, clock) -> None:
    heard = []

    async def answer(event: Event):
        return [Outgoing(topic="answer", payload={"to": event.id})]

    bus = await _running(journal, clock, answering=answer)
    await bus.subscribe("hearing", "answer", told(heard))
    id_ = await bus.publish("greeting")
    await bus.drain(5)
    assert [each.payload for each in heard] == [{"to": id_}]
    await bus.stop()


async def test_one_of_two_processes_handles_an_event_and_dead_ones_are_replaced(tmp_path: Path, clock) -> None:
    path, heard = tmp_path / "me.db.host", []
    journals = [await Journal.open(path, durability="process") for _ in range(2)]
    one = await _running(journals[0], clock, shared=told(heard))
    two = await _running(journals[1], clock, shared=told(heard))
    for number in range(30):
        await one.publish("greeting", {"number": number})
    await asyncio.gather(one.drain(20), two.drain(20))
    assert sorted(each.payload["number"] for each in heard) == list(range(30))
    await one.stop()
    await two.stop()

    await one.publish("greeting", {"number": 30})
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")  # takes it and dies
    await child.wait()
    holder = re.sub(r"/\d+/", f"/{child.pid}/", two._holder)
    row = await journals[0].change(
        lambda rows: journal_.take_delivery(
            rows, "shared", holder=holder, now=clock.now(), wall=0, until=2**60, most_tries=9, is_gone=lambda _: False
        )
    )
    assert row is not None
    await two.start()
    await two.drain(5)
    assert heard[-1].payload == {"number": 30} and heard[-1].tries == 2
    await two.stop()
    for journal in journals:
        await journal.close()


async def test_a_bus_that_is_stopped_while_it_takes_an_event_lets_it_go(tmp_path: Path, clock) -> None:
    path, heard, taking = tmp_path / "me.db.host", [], threading.Event()
    journal = await Journal.open(path, durability="process")
    bus = await _running(journal, clock, shared=told(heard))
    await bus.stop()
    await bus.publish("greeting")
    busy = asyncio.create_task(journal.change(lambda rows: taking.wait(20)))
    await asyncio.sleep(0.05)
    await bus.start()
    await asyncio.sleep(0.05)  # its attempt to take the event waits for the one before
    stopping = asyncio.create_task(bus.stop())
    await asyncio.sleep(0.05)
    taking.set()
    await asyncio.gather(busy, stopping)
    await journal.change(lambda rows: None)  # after all that was queued
    assert [held for (held,) in rows(path, "SELECT held_until FROM deliveries") if held] == []
    assert heard == []
    await journal.close()


async def test_a_live_process_keeps_its_delivery(tmp_path: Path, clock) -> None:
    path, begun, ends, may_end = tmp_path / "me.db.host", [], [], asyncio.Event()

    async def slow(event: Event) -> None:
        begun.append(event)
        await may_end.wait()

    journals = [await Journal.open(path, durability="process") for _ in range(2)]
    patience = Patience(poll_s=0.02, lease_ms=9_000)
    one = await _running(journals[0], clock, patience, slow=slow)
    await one.publish("greeting")
    two = await _running(journals[1], clock, patience, slow=slow)
    async with asyncio.timeout(60):
        while len(set(ends)) < 2:  # until the end is moved
            ends += [end for (end,) in rows(path, "SELECT held_until FROM deliveries") if end]
            await asyncio.sleep(0.05)
    assert len(begun) == 1
    may_end.set()
    await one.drain(5)
    assert len(begun) == 1
    for bus, journal in zip((one, two), journals, strict=True):
        await bus.stop()
        await journal.close()


async def test_stopping_returns_running_deliveries_as_untried(journal, clock) -> None:
    begun, has_begun, forever = [], asyncio.Event(), asyncio.Event()

    async def endless(event: Event) -> None:
        begun.append(event.tries)
        has_begun.set()
        await forever.wait()

    for _ in range(3):
        bus = await _running(journal, clock, endless=endless)
        if not begun:
            await bus.publish("greeting")
        await has_begun.wait()
        has_begun.clear()
        await bus.stop()
    assert begun == [1, 1, 1]


async def test_a_handler_that_kills_its_process_is_not_retried_forever(journal, clock) -> None:
    bus = Bus(journal, clock, HASTY)
    await bus.subscribe("deadly", "greeting", told([]))
    await bus.publish("greeting")
    take = {"now": clock.now(), "wall": 10, "until": 5, "most_tries": 3, "is_gone": lambda _: False}
    taken = [
        await journal.change(lambda rows: journal_.take_delivery(rows, "deadly", holder="h", **take)) for _ in range(4)
    ]
    assert [row and row.tries for row in taken] == [1, 2, 3, None]
    assert (await bus.dead_letters())[0].reason == "the process ended during every attempt"


async def test_the_journal_stays_small_and_drops_finished_payloads(tmp_path: Path, clock, monkeypatch) -> None:
    monkeypatch.setattr(journal_module, "KEPT_EVENTS", 50)
    path, heard = tmp_path / "me.db.host", []
    journal = await Journal.open(path, durability="process")
    bus = await _running(journal, clock, one=told(heard))
    for number in range(200):
        await bus.publish("greeting", {"session": f"canary-{number}"}, once=f"canary {number}")
    await bus.drain(30)
    assert len(heard) == 200
    await journal.change(lambda rows: journal_.remove_old(rows, now=clock.now()))
    await bus.stop()
    await journal.close()
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM events").get == 50
    connection.close()
    assert b"canary" not in path.read_bytes()
    assert path.stat().st_size < 200_000 and path.stat().st_mode & 0o777 == 0o600


async def test_old_events_and_stale_subscriptions_are_removed(journal, clock) -> None:
    bus = await _running(journal, clock)
    await bus.subscribe("gone", "greeting", told([]))
    await bus.stop()
    await bus.publish("greeting")
    clock.ms += journal_.DEAD_MS + 1
    await journal.change(lambda rows: journal_.remove_old(rows, now=clock.now()))
    assert await bus.dead_letters() == ()  # listed, and now too old to be kept
    await bus.publish("greeting")
    assert await bus.waiting() == (0, 0)


async def test_oversized_and_invalid_events_are_refused(journal, clock, monkeypatch) -> None:
    monkeypatch.setattr(journal_module, "MOST_WAITING", 3)
    bus = Bus(journal, clock)
    await bus.subscribe("slow", "greeting", told([]))
    for _ in range(3):
        await bus.publish("greeting")
    with pytest.raises(UnavailableError, match="3 events are already waiting"):
        await bus.publish("greeting")
    for payload in ({"x": object()}, {"x": float("nan")}, {"x": "y" * 70_000}, {"x": "\ud800"}):
        with pytest.raises(InvalidError, match="payload"):
            await bus.publish("other", payload)
    with pytest.raises(InvalidError, match="topic"):
        await bus.publish(" ")
    with pytest.raises(InvalidError, match="already subscribed"):
        await bus.subscribe("slow", "greeting", told([]))


async def test_a_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "me.db.host"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreError, match="not a Ricordo journal"):
        await Journal.open(path)
    assert journal_path(":memory:") is None


def _planned(query, values, rows):
    return rows._connection.execute(query, values).fetchall()


async def test_every_statement_compiles_and_is_used(journal: Journal) -> None:
    package = "ricordo.host.journal"
    source = "\n".join(path.read_text("utf-8") for path in Path(ricordo.host.__file__).parent.rglob("*.py"))
    for name, text in named_statements(package).items():
        assert re.search(rf'"{name}"', source), name
        values = dict.fromkeys(re.findall(r":(\w+)", text))
        query = f"EXPLAIN QUERY PLAN {text}"
        plan = await journal.change(partial(_planned, query, values))
        if name in ("delivery_next", "delivery_holders", "deliveries_put", "delivery_done", "conversation_get"):
            assert not [row for row in plan if row[3].startswith(("SCAN d", "SCAN e", "SCAN s"))], (name, plan)


def test_the_lease_of_a_bus_names_its_process() -> None:
    assert json.dumps(bus_module.new_holder()).count(f"/{os.getpid()}/") == 1
