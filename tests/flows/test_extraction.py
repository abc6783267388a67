"""Extraction from open sessions, without duplicates after consolidation."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Settings
from ricordo.ports import Turn
from tests.flows.conftest import ConfirmingModel
from tests.flows.test_consolidation import contents, fact, opened, proposal, refusals, verdict  # noqa: F401  # a fixture
from tests.storage.canonical import canonical
from tests.waiting import until

ROME = proposal(fact("Anna lives in Rome", "e1", about=["Anna"]))
TEA = proposal(fact("Anna prefers tea", "e1", about=["Anna"], kind="preference"))
NOTHING = proposal()


def told(run: Any) -> list[tuple[str, str]]:
    return [(item.what, item.text) for item in run.items if item.what != "entity"]


async def kinds(memory: Memory) -> list[str]:
    return [run.kind for run in await memory.runs()]


async def test_each_message_is_read_once_and_the_session_keeps_waiting(opened, tmp_path):  # noqa: F811
    memory = await opened(ROME, TEA, {"verdicts": []})
    await memory.add("Anna lives in Rome.", session="s1", id="m1")
    first = await memory.extract("s1")
    assert told(first) == [("added", "Anna lives in Rome"), ("looked", "")]
    assert (first.kind, first.state, first.sessions) == ("extraction", "done", ("s1",))
    assert (await memory.stats()).sessions_waiting == 1, "it goes on"
    before = canonical(tmp_path / "me.db")
    assert not (await memory.extract("s1")).items and len(memory.model.prompts) == 1
    assert canonical(tmp_path / "me.db") == before
    await memory.add("She prefers tea.", session="s1", id="m2")
    second = await memory.extract()
    assert second.id == first.id and told(second) == [("added", "Anna prefers tea"), ("looked", "")]
    shown = memory.model.prompts[1][1].text
    assert (
        "(said before, for understanding only)\nthe user: Anna lives in Rome.\n(from here on)\ne1 the user: She"
        in shown
    )
    assert await contents(memory) == {"Anna lives in Rome", "Anna prefers tea"}
    (run,) = await memory.runs()
    assert (run.tokens_in, run.kind) == (second.tokens_in, "extraction") and second.tokens_in > first.tokens_in
    node = next(node for node in (await memory.list(type="semantic")).nodes if "Rome" in node.content)
    assert [each.id for each in (await memory.explain(node.id)).sources] == ["m1"] and node.origin == "extraction"
    await memory.undo(run.id)
    assert not await contents(memory), "all that was taken from a conversation is one run"
    memory.model._answers.append(ROME)
    assert (await memory.extract("s1")).items, "and its messages are read again"
    assert (await memory.doctor()).ok


async def test_extracted_facts_are_not_repeated_by_consolidation(opened):  # noqa: F811
    whole = proposal(
        fact("Anna lives in Rome", "e1", about=["Anna"]),
        fact("Anna likes tea best", "e2", about=["Anna"], kind="preference"),
        fact("Anna plays chess", "e3", about=["Anna"]),
        summary="About Anna.",
    )

    def answer(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
        if schema["title"] == "Verdicts":
            pairs = re.findall(r"^(p\d+) new: Anna likes tea best\n\1 old: Anna prefers tea$", turns[1].text, re.M)
            return {"verdicts": [{"pair": pair, "is": "same", "confidence": 0.9} for pair in pairs]}
        return answers.pop(0)

    answers = [ROME, TEA, whole]
    memory = await opened(answer)
    await memory.add("Anna lives in Rome.", session="s1")
    await memory.extract("s1")
    await memory.add("She prefers tea.", session="s1")
    await memory.extract("s1")
    await memory.add("She plays chess.", session="s1")
    run = await memory.consolidate("s1")
    assert await contents(memory) == {"Anna lives in Rome", "Anna prefers tea", "Anna plays chess"}
    assert {item.what for item in run.items if item.text.startswith("Anna l")} == {"repeated"}
    assert {node.score for node in (await memory.list(type="semantic")).nodes} == {0.0}, "it was said once"
    assert (await memory.stats()).sessions_waiting == 0 and await kinds(memory) == ["consolidation", "extraction"]
    assert not (await memory.extract("s1")).items and not (await memory.consolidate()).items
    await memory.undo(run.id)
    assert await contents(memory) == {"Anna lives in Rome", "Anna prefers tea"}


async def test_a_fact_corrected_meanwhile_does_not_come_back(opened):  # noqa: F811
    memory = await opened(ROME, ROME, {"verdicts": []})
    await memory.add("Anna lives in Rome.", session="s1")
    run = await memory.extract("s1")
    await memory.correct(next(item.id for item in run.items if item.what == "added"), "Anna lives in Oslo")
    done = await memory.consolidate("s1")
    assert await contents(memory) == {"Anna lives in Oslo"}
    assert refusals(done) == {"Anna lives in Rome": "was learnt before, and has ended since"}


async def test_assistant_actions_temporary_facts_and_credentials_are_left_out(opened):  # noqa: F811
    memory = await opened(
        proposal(
            fact("The flight was booked for Anna", "e1"),
            fact("Anna is tired", "e2", category="observation"),
            fact("Anna is working on the report", "e2", category="context"),
            fact("Anna's password is hunter2-Xk9!qLm", "e2"),
            fact("Anna lives in Rome", "e2", about=["Anna"]),
        )
    )
    await memory.add("I have booked the flight for Anna.", session="s1", role="assistant")
    await memory.add("Anna is tired, works on the report and lives in Rome.", session="s1")
    run = await memory.extract("s1")
    assert await contents(memory) == {"Anna lives in Rome"}
    assert set(refusals(run).values()) == {
        "rests on the assistant's own words",
        "holds only for the moment",
        "holds a credential",
    }


async def test_sessions_with_only_assistant_messages_are_not_read(opened):  # noqa: F811
    memory = await opened(ROME)
    await memory.add("Anna lives in Rome, I believe.", session="s1", role="assistant")
    assert not (await memory.extract("s1")).items and not memory.model.prompts
    await memory.add("Yes, Anna lives in Rome.", session="s1")
    memory.model._answers[0] = proposal(fact("Anna lives in Rome", "e2", about=["Anna"]))
    assert told(await memory.extract("s1")) == [("added", "Anna lives in Rome"), ("looked", "")]


async def test_rules_extract_plain_statements_once(memory: Any) -> None:
    await memory.add("I'm allergic to peanuts. Right now I work in the garden.", session="s1")
    run = await memory.extract("s1")
    assert [(item.what, item.text) for item in run.items] == [("added", "I'm allergic to peanuts")]
    log = await memory.log(limit=100)
    assert not (await memory.extract()).items and await memory.log(limit=100) == log
    await memory.add("I love hiking.", session="s1")
    assert (await memory.extract("s1")).id == run.id
    assert not (await memory.consolidate()).items or True
    found = sorted(node.content for node in (await memory.list(type="semantic", limit=50)).nodes)
    assert found.count("I'm allergic to peanuts") == 1 and found.count("I love hiking") == 1
    assert {node.score for node in (await memory.list(type="semantic")).nodes} == {0.0}


async def test_a_dry_run_and_a_failure_change_nothing(opened, tmp_path):  # noqa: F811
    memory = await opened(ROME, "nonsense", "nonsense", ROME)
    await memory.add("Anna lives in Rome.", session="s1")
    before = canonical(tmp_path / "me.db")
    assert (await memory.extract(dry_run=True)).state == "dry"
    failed = await memory.extract()
    assert (failed.state, [item.what for item in failed.items]) == ("failed", ["failed"])
    assert canonical(tmp_path / "me.db") == before and not await memory.review(), "that is for consolidation to say"
    assert (await memory.extract()).state == "done"


async def test_one_report_covers_several_sessions(opened):  # noqa: F811
    memory = await opened(ROME, {"verdicts": []}, proposal(fact("Boris sings", "e1")), {"verdicts": []})
    await memory.add("Anna lives in Rome.", session="s1")
    await memory.add("Boris sings.", session="s2")
    run = await memory.extract()
    assert run.sessions == ("s1", "s2") and {"Anna lives in Rome", "Boris sings"} <= {item.text for item in run.items}
    assert len(await memory.runs()) == 2, "each conversation has its own"


# in the background


class Slow:
    """A model that waits until it is released."""

    name = "slow"
    context_tokens = 8_192

    def __init__(self, answer: object) -> None:
        self.scripted = ConfirmingModel(lambda *_: answer)
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def complete(self, turns: Sequence[Turn], **how: Any) -> Any:
        self.asked.set()
        await self.go_on.wait()
        return await self.scripted.complete(turns, **how)


def background(path: Path, model: Any, *, wait_s: float = 0.05, **settings: Any) -> Memory:
    given = Settings(durability="process", extraction_enabled=True, extraction_wait_s=wait_s, **settings)
    return Memory.open(path, embedder=None, model=model, settings=given)


async def test_extraction_is_off_by_default(tmp_path):
    model = ConfirmingModel([ROME])
    async with Memory.open(tmp_path / "me.db", embedder=None, model=model) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        await memory.settle()
        assert not model.prompts


async def test_a_session_is_read_when_it_pauses(tmp_path):
    async with background(tmp_path / "me.db", ConfirmingModel(lambda *_: ROME)) as memory:
        await memory.add("Anna lives in Rome.", session="s1")

        async def is_known() -> bool:
            return await contents(memory) == {"Anna lives in Rome"}

        await until(is_known)


async def test_settle_reads_an_exchange_once_without_waiting_for_the_pause(tmp_path):
    model = ConfirmingModel(lambda *_: ROME)
    async with background(tmp_path / "me.db", model, wait_s=3_600) as memory:
        memory.add_nowait("Anna lives in Rome.", session="s1")
        await memory.add("How nice!", session="s1", role="assistant")
        await memory.add("Yes.", session="s1")
        assert not model.prompts, "it waits for a pause"
        await memory.settle()
        assert len(model.prompts) == 1 and await contents(memory) == {"Anna lives in Rome"}
        await memory.settle()
        assert len(model.prompts) == 1


async def test_closing_does_not_wait_for_extraction(tmp_path):
    model = Slow(ROME)
    async with background(tmp_path / "me.db", model, wait_s=0) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        await asyncio.wait_for(model.asked.wait(), 20)
        await memory.add("Another thing.", session="s2")
        assert (await memory.search("Where does Anna live?")).hits
        with pytest.raises(Exception, match="still being read"):
            await memory.settle(timeout=0.05)
        began = time.monotonic()
    assert time.monotonic() - began < 10, "closing does not wait for a model"
    another = ConfirmingModel(lambda turns, _: ROME if "Rome" in turns[1].text else NOTHING)
    async with background(tmp_path / "me.db", another, wait_s=3_600) as memory:
        assert not await contents(memory)
        assert [(run.state, run.sessions) for run in await memory.runs()] == [("failed", ("s1",))]
        await memory.settle()
        assert await contents(memory) == {"Anna lives in Rome"}, "nothing of it is lost"
        assert len(another.prompts) == 2, "both conversations, once"
    third = ConfirmingModel(lambda *_: ROME)
    async with background(tmp_path / "me.db", third, wait_s=0) as memory:
        await memory.settle()
        assert not third.prompts, "what was read is not read again"


async def test_consolidation_takes_over_a_running_extraction(tmp_path):
    model = Slow(ROME)
    async with background(tmp_path / "me.db", model, wait_s=0) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        await asyncio.wait_for(model.asked.wait(), 20)
        model.go_on.set()
        run = await memory.consolidate("s1")
        assert "left" not in {item.what for item in run.items}
        await memory.settle()
        assert await contents(memory) == {"Anna lives in Rome"}
        assert {node.score for node in (await memory.list(type="semantic")).nodes} == {0.0}


async def test_a_failing_model_is_not_called_forever(tmp_path):
    asked: list[float] = []

    def broken(*_: object) -> object:
        asked.append(time.monotonic())
        return "nonsense"

    async with background(tmp_path / "me.db", ConfirmingModel(broken), wait_s=0) as memory:
        for number in range(6):
            await memory.add(f"Anna lives in Rome, {number}.", session="s1")
            await memory.settle()
        assert len(asked) == 3 * 2, "three tries, each with one repair"
        assert {run.state for run in await memory.runs()} == {"failed"} and (await memory.stats()).sessions_waiting == 1
