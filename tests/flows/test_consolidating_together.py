"""Several processes consolidate one store: each session is consolidated and paid for once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ricordo import Memory, Settings
from ricordo.consolidation import context
from ricordo.language import ScriptedModel
from tests.crash.embedders import Letters
from tests.crash.forking import run_forked
from tests.flows.conftest import ConfirmingModel, HandClock, Place
from tests.flows.test_consolidation import fact, proposal


class Slow(ScriptedModel):
    """A model that waits until it is released."""

    def __init__(self, *answers: object) -> None:
        super().__init__(answers)
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def complete(self, turns: Any, *, schema: Any, max_tokens: int) -> Any:
        self.asked.set()
        await self.let_go.wait()
        return await super().complete(turns, schema=schema, max_tokens=max_tokens)


@pytest.fixture
async def another(place: Place, clock: HandClock) -> AsyncIterator[Callable[..., Any]]:
    """Open the store of a test again, with a model."""
    memories: list[Memory] = []

    async def open_(model: ScriptedModel) -> Memory:
        memories.append(
            await Memory.open(
                place.location, embedder=None, model=model, clock=clock, settings=Settings(durability="process")
            )
        )
        return memories[-1]

    yield open_
    for each in memories:
        await each.close()


def leases(place: Place) -> list[Any]:
    return place.asked("SELECT name FROM leases WHERE name != 'backlog'")


def ends_of_leases(place: Place) -> list[Any]:
    return place.asked("SELECT name, until FROM leases WHERE name != 'backlog'")


def whats(run: Any) -> list[str]:
    return [item.what for item in run.items]


async def test_two_processes_pay_for_a_session_once(another, place):
    slow, quick = (
        Slow(proposal(fact("Anna lives in Rome", "e1"))),
        ConfirmingModel([proposal(fact("Boris likes tea", "e1"))]),
    )
    first, second = await another(slow), await another(quick)
    await first.add("Anna lives in Rome.", session="s1")
    await first.add("Boris likes tea.", session="s2")
    going = asyncio.create_task(first.consolidate())
    await slow.asked.wait()
    meanwhile = await second.consolidate()
    assert whats(meanwhile) == ["left", "added"] and meanwhile.sessions == ("s2",)
    (left,) = [item for item in meanwhile.items if item.what == "left"]
    assert left.text == "s1" and "another process" in left.reason
    assert whats(await second.consolidate("s1")) == ["left"]
    slow.let_go.set()
    done = await going
    assert whats(done) == ["added"] and done.sessions == ("s1",)
    assert (len(slow.prompts), len(quick.prompts)) == (1, 1)
    assert not await first.review() and not (await second.consolidate()).items
    assert leases(place) == []


async def test_a_lease_is_prolonged_while_a_model_thinks(another, place, monkeypatch):
    monkeypatch.setattr(context, "LEASE_MS", 3_000)
    slow = Slow(proposal(fact("Anna lives in Rome", "e1")))
    first, second = await another(slow), await another(ConfirmingModel([]))
    await first.add("Anna lives in Rome.", session="s1")
    going = asyncio.create_task(first.consolidate())
    await slow.asked.wait()
    first_end = ends_of_leases(place)
    for _ in range(300):
        await asyncio.sleep(0.1)
        if ends_of_leases(place) != first_end:
            break
    assert ends_of_leases(place) != first_end
    assert whats(await second.consolidate()) == ["left"]
    slow.let_go.set()
    assert whats(await going) == ["added"]


async def test_a_failure_or_cancellation_frees_the_session(another, place):
    slow = Slow(proposal(fact("Anna lives in Rome", "e1")))
    first, second = await another(slow), await another(ConfirmingModel(["nonsense", "nonsense"]))
    await first.add("Anna lives in Rome.", session="s1")
    assert (await second.consolidate()).state == "failed"
    assert leases(place) == []
    going = asyncio.create_task(first.consolidate())
    await slow.asked.wait()
    assert len(leases(place)) == 1
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert leases(place) == []
    slow.let_go.set()
    assert whats(await first.consolidate()) == ["added"]


DYING = """
import asyncio, os, sys
from ricordo import Memory
from ricordo.language import ScriptedModel

async def main():
    memory = await Memory.open(sys.argv[1], embedder=None, model=ScriptedModel(lambda turns, schema: os._exit(9)))
    await memory.add("Anna lives in Rome.", session="s1")
    await memory.consolidate()

asyncio.run(main())
"""


async def test_the_lease_of_a_dead_process_ends(another, place):
    died = await asyncio.to_thread(run_forked, DYING, place.location)
    assert died.returncode == 9, died.stderr
    assert len(leases(place)) == 1
    memory = await another(ConfirmingModel([proposal(fact("Anna lives in Rome", "e1"))]))
    assert whats(await memory.consolidate()) == ["added"]
    assert leases(place) == []


async def test_a_lease_of_another_machine_ends_by_time(another, place):
    memory = await another(ConfirmingModel([proposal(fact("Anna lives in Rome", "e1"))]))
    await memory.add("Anna lives in Rome.", session="s1")
    ((space, session),) = place.asked("SELECT space, key FROM sessions")
    until = time.time_ns() // 1_000_000 + 20_000
    place.asked(f"INSERT INTO leases VALUES ('conversation {space}/{session}', 'elsewhere/1/x', {until})")
    assert whats(await memory.consolidate()) == ["left"]
    dry = await memory.consolidate(dry_run=True)
    assert whats(dry) == ["added"]
    place.asked(f"UPDATE leases SET until = {until - 40_000} WHERE name != 'backlog'")
    assert (await memory.consolidate()).state == "failed", "the one answer went to the dry run"


DYING_IN_BACKGROUND = """
import asyncio, os, sys
from ricordo import Memory
from tests.crash.embedders import Letters

class Dying(Letters):
    async def embed_words(self, texts):
        os._exit(9)

async def main():
    memory = await Memory.open(sys.argv[1], embedder=Dying())
    await memory.add("Anna lives in Rome.")
    await memory.settle()

asyncio.run(main())
"""


async def test_background_work_goes_on_at_once_after_its_process_died(place):
    died = await asyncio.to_thread(run_forked, DYING_IN_BACKGROUND, place.location)
    assert died.returncode == 9, died.stderr
    assert place.asked("SELECT name FROM leases") == [("backlog",)]
    async with await Memory.open(place.location, embedder=Letters()) as memory:
        await memory.settle(timeout=5)  # half of what the lease still has to run
    assert place.asked("SELECT count(*) FROM embeddings") == [(1,)]
