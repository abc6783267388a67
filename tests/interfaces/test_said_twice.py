"""A fact that is remembered twice counts as one: when the first is restored, and when it is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

from ricordo import Memory

CAT, OTHER = "My cat is called Biscotte", "My cat is called Paprika"


async def _forgotten_and_told_again(memory: Memory) -> tuple[str, str]:
    first = await memory.remember(CAT, tags=["pet"])
    await memory.forget(first.id)
    return first.id, (await memory.remember("The user's cat is called Biscotte")).id


async def _texts(memory: Memory) -> list[str]:
    return [each.content for each in await memory.list()]


async def test_restoring_what_was_told_again_keeps_one_of_both() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        first, again = await _forgotten_and_told_again(memory)
        kept = await memory.restore(first)
        assert (kept.id, kept.tags, kept.score) == (again, ("pet",), 1.0)
        assert len(await _texts(memory)) == 1
        await memory.undo((await memory.log())[0].seq)
        assert (await memory.get(again)).tags == ()


@pytest.mark.parametrize("decision", ["replace", "keep old"])
async def test_a_decision_closes_both_copies_that_an_undo_has_left(decision: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await _forgotten_and_told_again(memory)
        await memory.undo(2)
        assert len(await _texts(memory)) == 2
        texts = await _texts(memory)
        if decision == "replace":
            await memory.remember(OTHER)
        else:
            await memory.remember(OTHER, at="2020-01-01")
        (asked, *_) = await memory.review()
        decided = await memory.resolve(asked, decision=decision)  # type: ignore[arg-type]
        assert await _texts(memory) == [OTHER]
        assert await memory.review() == []
        assert decided.commit is not None
        await memory.undo(decided.commit)
        assert sorted(await _texts(memory)) == sorted([*texts, OTHER])


async def test_a_rule_closes_both_copies_and_forgetting_one_names_the_other() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        for id in ("one", "two"):
            await memory.remember("I commute by Vespa now", id=id)
        sold = await memory.remember("Sold the Vespa to some college kid")
        assert await _texts(memory) == [sold.content]
        await memory.undo((await memory.log())[0].seq)
        assert "The same is still remembered" in (await memory.forget("one")).notice


def test_the_command_names_the_one_that_is_kept(cli: Cli) -> None:
    first = cli("--json", "remember", CAT).json["id"]
    cli("forget", first)
    cli("remember", CAT)
    assert "The same is remembered already" in cli("restore", first).err
    assert cli("list").out.count("Biscotte") == 1


async def test_http_and_mcp_keep_one_too(tmp_path: Path) -> None:
    store = tmp_path / "me.db"
    async with Memory.open(store, embedder="hashing") as memory:
        first, again = await _forgotten_and_told_again(memory)
    async with connected(store, profile="full") as client:
        answer = await client.call_tool("restore_memory", {"id": first})
        assert "The same is remembered already" in answer.content[0].text
    async with house(store) as at:
        user = at.client(at.secret("a", owner="me", trust="user"))
        assert (await user.post("/v1/restore", json={"id": first})).json()["id"] == again
