"""What language models use is recorded call by call: by day and owner, within the budget, each page once."""

from __future__ import annotations

from typing import Any

import pytest

import ricordo
from ricordo import Memory, Scope, Settings, UnavailableError
from ricordo.ports import Completion
from tests.flows.conftest import ConfirmingModel
from tests.flows.test_consolidation import contents, fact, proposal

PAGE = 30


def page(number: int, *, tokens: int = 90) -> Completion:
    import json

    text = f"The user likes tea number {number}"
    return Completion(text=json.dumps(proposal(fact(text, "e1"))), tokens_in=tokens, tokens_out=10)


async def opened(path: Any, answers: list[Any], **settings: Any) -> Any:
    model = ConfirmingModel(answers)
    memory = await Memory.open(
        path, embedder=None, model=model, settings=Settings(durability="process", **settings), scope=Scope(owner="ann")
    )
    memory.model = model
    return memory


async def talk(memory: Any, pages: int) -> None:
    for number in range(pages * PAGE):
        await memory.add(f"I like tea number {number // PAGE + 1}." if number % PAGE == 0 else "Hm.", session="s")


async def test_pages_are_paid_for_once(tmp_path):
    memory = await opened(tmp_path / "me.db", [page(1), page(2), UnavailableError("the server is down")])
    await talk(memory, 3)
    run = await memory.consolidate("s")
    assert run.state == "failed" and run.reason == "the server is down" and not await contents(memory)
    memory.model._answers = [page(3)]
    assert (await memory.consolidate("s")).state == "done"
    assert await contents(memory) == {f"The user likes tea number {number}" for number in (1, 2, 3)}
    (use,) = await memory.spending()
    assert (use.owner, use.calls, use.tokens_in, use.runs) == ("ann", 4 + 0, 270, 2)
    assert [(run.state, run.tokens_in) for run in await memory.runs()] == [("done", 90), ("failed", 180)]
    await memory.close()


async def test_the_budget_is_checked_before_each_call_and_belongs_to_one_owner(tmp_path):
    memory = await opened(tmp_path / "me.db", [page(number) for number in range(1, 9)], daily_tokens=250)
    await talk(memory, 5)
    run = await memory.consolidate("s")
    assert (run.state, run.tokens_in + run.tokens_out) == ("failed", 300), "never exceeded by more than one call"
    assert "tokens is used up" in run.reason
    bob = memory.scoped(Scope(owner="bob"))
    await bob.add("I like tea number 4.", session="s")
    assert (await bob.consolidate("s")).state == "done", "Bob does not pay for Ann"
    assert [use.owner for use in await memory.spending(all_owners=True)] == ["ann", "bob"]
    with pytest.raises(ricordo.DeniedError):
        await bob.spending(all_owners=True)
    await memory.close()


async def test_a_bad_page_is_set_aside_and_the_good_ones_are_kept(tmp_path):
    refusal = Completion(text="", tokens_in=5, ending="refused")
    memory = await opened(tmp_path / "me.db", [page(1), refusal, page(3)])
    await talk(memory, 3)
    run = await memory.consolidate("s")
    assert run.state == "done" and await contents(memory) == {
        "The user likes tea number 1",
        "The user likes tea number 3",
    }
    (failed,) = (item for item in run.items if item.what == "failed")
    assert failed.reason == "page 2 of 3: the model refused to answer" and len(failed.evidence) == PAGE
    assert (await memory.stats()).sessions_waiting == 1
    memory.model._answers = [page(2), {"verdicts": []}]
    await memory.consolidate()
    assert len(await contents(memory)) == 3 and (await memory.stats()).sessions_waiting == 0
    await memory.close()


async def test_json_in_prose_is_read_and_confidences_on_other_scales_are_understood(tmp_path):
    import json

    given = proposal(fact("The user likes tea number 1", "e1", confidence=95))
    memory = await opened(tmp_path / "me.db", [f"Here it is:\n```json\n{json.dumps(given)}\n```\nAnything else?"])
    await talk(memory, 1)
    assert (await memory.consolidate("s")).state == "done"
    assert await contents(memory) == {"The user likes tea number 1"}
    await memory.close()


@pytest.mark.parametrize(("confidence", "closes"), [(9.5, True), (95, True), (0.95, True), (-3, False), (700, False)])
async def test_a_verdict_is_never_dropped_for_its_confidence(tmp_path, confidence, closes):
    rome = proposal(fact("Anna lives in Rome", "e1", about=["Anna"], slot="home"))
    oslo = proposal(fact("Anna lives in Oslo", "e1", about=["Anna"], slot="home"))
    verdict = {"verdicts": [{"pair": "p1", "is": "contradicts", "confidence": confidence}]}
    memory = await opened(tmp_path / "me.db", [rome, oslo, verdict])
    await memory.add("Anna lives in Rome.", session="s1")
    await memory.consolidate("s1")
    await memory.add("Anna lives in Oslo.", session="s2")
    await memory.consolidate("s2")
    found = await contents(memory)
    assert found == ({"Anna lives in Oslo"} if closes else found)
    if not closes:
        assert len(found) == 1 or await memory.review(kind="conflict")
    await memory.close()
