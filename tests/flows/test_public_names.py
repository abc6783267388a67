"""Programs that use Ricordo call these names. Each line here is a promise: it may gain parameters, and stays."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import AsyncIterator
from pathlib import Path

import click
import pytest

import ricordo
from ricordo import Memory, Scope
from ricordo.interfaces.cli.app import program
from ricordo.interfaces.serialize import json_text


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "me.db", embedder=None) as opened:
        await opened.remember("Anna lives in Rome", about=["Anna"])
        yield opened


async def test_results_are_a_sequence_of_hits_that_say_why(memory: Memory) -> None:
    results = await memory.search("Where does Anna live?")
    assert (len(results), results[0], [*results]) == (1, results.hits[0], [*results.hits])
    (hit,) = results
    start, end = hit.passage
    assert hit.why and hit.excerpt and hit.content[start:end]


async def test_a_node_says_when_it_ends(memory: Memory) -> None:
    assert (await memory.remember("I drink water", expires="2099-01-01")).expires_at is not None


async def test_a_fact_lists_what_it_may_contradict(memory: Memory) -> None:
    await memory.remember("My favourite colour is red")
    assert (await memory.remember("Anna reads books")).reviews == ()


@pytest.mark.parametrize("place", ["file", "folder"])
async def test_every_answer_has_a_receipt_with_an_id(tmp_path: Path, place: str) -> None:
    async with Memory.open(tmp_path / ("a.db" if place == "file" else "a/"), embedder=None) as memory:
        await memory.remember("Anna lives in Rome")
        receipt = (await memory.search("Anna", receipt=True)).receipt
        others = [(await memory.ask("Anna?", receipt=True)).receipt, (await memory.query("Anna", receipt=True)).receipt]
        others += [(await memory.context_parts("Anna", receipt=True)).receipt]
        assert receipt is not None and None not in others
        again = await memory.replay_receipt(receipt.id)
        assert again.then == again.receipt.given and again.differs_from_receipt == ()
        kept = [each.id for each in await memory.receipts(limit=50)]
        assert sorted(kept) == sorted(each.id for each in (receipt, *others) if each is not None)
        assert type(receipt.id) is str and receipt == receipt.id
        assert (await memory.search("Anna")).receipt is None


async def test_a_receipt_is_its_id_in_json(memory: Memory) -> None:
    results = await memory.search("Anna", receipt=True)
    assert results.receipt is not None
    assert json.loads(json_text(results))["receipt"] == results.receipt.id


async def test_an_answer_a_briefing_and_changes(memory: Memory) -> None:
    answer = await memory.ask("Where does Anna live?")
    assert answer.known and answer.text and all(each.text and each.ids for each in answer.sentences)
    assert isinstance(await memory.brief(budget=800), str)
    seq = (await memory.log(limit=1))[0].seq
    async for change in memory.changes(after=seq - 1):
        assert change.seq == seq
        break


async def test_a_document_is_added_by_its_path_and_forgotten_by_its_id(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "handbook.md"
    path.write_text("# Pump\n\nThe pump needs oil every year.\n", encoding="utf-8")
    doc = await memory.add_document(path, id=None, version=None)
    assert [each.id for each in await memory.documents()] == [doc.id]
    await memory.forget(doc.id)
    assert await memory.documents() == []


async def test_what_is_staged_is_approved_or_refused_as_one_commit(memory: Memory) -> None:
    agent = memory.scoped(Scope("me", propose=True))
    kept = (await memory.list()).nodes[0]
    await agent.remember("Anna plays the cello")
    await agent.correct(kept.id, "Anna lives in Milan")
    await agent.remember("Anna is a pilot")
    await memory.remember("The museum opens at ten", origin="web")  # quarantined, but nobody proposed it
    pilot, milan, cello = await memory.staged()
    assert (milan.older, milan.newer.content) == (kept, "Anna lives in Milan")
    before = (await memory.log(1))[0].seq
    assert [each.decision for each in await memory.approve([cello.id, milan.id])] == ["approve"] * 2
    assert [each.decision for each in await memory.refuse(pilot.id)] == ["refuse"]
    assert (await memory.staged(), (await memory.log(1))[0].seq) == ([], before + 2)
    assert {"Anna plays the cello", "Anna lives in Milan"} == {each.content for each in (await memory.list()).nodes}
    with pytest.raises(ricordo.ConflictError):
        await memory.approve(pilot)


async def test_only_the_user_approves_what_is_staged(memory: Memory) -> None:
    await memory.scoped(Scope("me", propose=True)).remember("Anna is a pilot")
    (staged,) = await memory.staged()
    for scope in (Scope("me", trust="agent"), Scope("me", propose=True)):
        caller = memory.scoped(scope)
        for decide in (caller.approve, caller.refuse):
            with pytest.raises(ricordo.DeniedError):
                await decide(staged.id)
    stranger = memory.scoped(Scope("eve"))
    assert await stranger.staged() == []
    with pytest.raises(ricordo.NotFoundError):
        await stranger.approve(staged.id)


def test_the_adapters_have_these_modules() -> None:
    for name in ("langgraph", "langchain", "openai_agents", "pydantic_ai", "anthropic_memory", "mem0"):
        assert importlib.util.find_spec(f"ricordo.integrations.{name}") is not None


def test_the_command_line_has_these_verbs() -> None:
    verbs = set(program().list_commands(click.Context(program())))
    assert {"page", "test", "install", "sync", "ask", "brief", "config"} <= verbs
