"""A correction says since when the new value is true: in Python, at the command line, over HTTP and over MCP."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

from ricordo import InvalidError, Memory, Scope

SINCE = "2026-10-01T00:00:00+00:00"


async def _oslo(store: Path) -> str:
    async with Memory.open(store, embedder="hashing") as memory:
        return (await memory.remember("I live in Oslo", at="2024-03-01T00:00:00Z")).id


async def _holds(store: Path, old: str) -> list[Any]:
    """Return since when the new fact is true, its date, and until when the old one was."""
    async with Memory.open(store, embedder="hashing") as memory:
        (new,) = await memory.list()
        assert new.content == "I live in Rome"
        before = await memory.get(old)
        times = (new.valid_from, new.event_time, before.valid_until)
        return [each and each.isoformat() for each in times]


async def test_a_correction_in_python(tmp_path: Path) -> None:
    old = await _oslo(store := tmp_path / "me.db")
    async with Memory.open(store, embedder="hashing") as memory:
        await memory.correct(old, "I live in Rome", at=SINCE)
        assert "2026-10-01" in str(await memory.context("Where do I live?"))
    assert await _holds(store, old) == [SINCE] * 3


async def test_a_correction_over_http(tmp_path: Path) -> None:
    old = await _oslo(store := tmp_path / "me.db")
    async with house(store) as at:
        user = at.client(at.secret("a", owner="me", trust="user"))
        answer = await user.post("/v1/correct", json={"id": old, "content": "I live in Rome", "at": SINCE})
        assert answer.status_code == 200, answer.text
    assert await _holds(store, old) == [SINCE] * 3


async def test_a_correction_over_mcp(tmp_path: Path) -> None:
    old = await _oslo(store := tmp_path / "me.db")
    async with connected(store) as client:
        await client.call_tool("correct_fact", {"id": old, "content": "I live in Rome", "at": SINCE})
    assert await _holds(store, old) == [SINCE] * 3


async def test_a_correction_that_is_approved_later(tmp_path: Path) -> None:
    old = await _oslo(store := tmp_path / "me.db")
    async with Memory.open(store, embedder="hashing", scope=Scope(propose=True)) as agent:
        await agent.correct(old, "I live in Rome", at=SINCE)
    async with Memory.open(store, embedder="hashing") as memory:
        (asked,) = await memory.staged()
        assert {each.field for each in asked.changes} == {"content", "event_time"}
        await memory.approve(asked)
    assert await _holds(store, old) == [SINCE] * 3


def test_a_correction_at_the_command_line(cli: Cli) -> None:
    old = str(cli("remember", "I live in Oslo", "--at", "2024-03-01", "--json").json["id"])
    new = cli("correct", old, "I live in Rome", "--at", "2026-10-01", "--json").json
    assert new["valid_from"] == new["event_time"] == cli("show", old, "--json").json["valid_until"]
    assert new["valid_from"].startswith("2026-")


def test_the_day_of_a_fact_will_do_at_the_command_line(cli: Cli) -> None:
    old = str(cli("remember", "I live in Oslo", "--json").json["id"])
    new = cli("correct", old, "I live in Rome", "--at", "today", "--json").json
    assert new["valid_from"] == cli("show", old, "--json").json["valid_until"]


@pytest.mark.parametrize("at", ["2024-03-01", "2024-03-01T12:00:01Z"], ids=["the day", "a later time"])
async def test_a_fact_can_change_on_the_day_it_became_true(at: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember("I live in Oslo", at="2024-03-01T12:00:00Z")
        new = await memory.correct(old.id, "I live in Rome", at=at)
        assert old.valid_from < new.valid_from == (await memory.get(old.id)).valid_until


async def test_a_change_before_the_fact_was_told_moves_its_beginning() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember("I live in Oslo")
        since = old.valid_from - timedelta(days=9)
        new = await memory.correct(old.id, "I live in Rome", at=since)
        before = await memory.get(old.id)
        assert before.valid_from < before.valid_until == new.valid_from == since
        assert (await memory.search("Where do I live?")).ids == [new.id]
        await memory.undo((await memory.log())[0].seq)
        assert (await memory.get(old.id)).valid_from == old.valid_from


async def test_a_refused_time_says_which_would_do() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember("I live in Oslo", at="2024-03-01T12:00:00Z")
        with pytest.raises(InvalidError, match="only since 2024-03-01") as refused:
            await memory.correct(old.id, "I live in Rome", at="2024-02-29")
        assert "give 2024-03-01 or a later time" in (refused.value.hint or "")


async def test_without_a_time_the_new_version_keeps_the_date_of_the_old_one() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember("The accident was in Rome", at="2019-05-02")
        new = await memory.correct(old.id, "The accident was in Milan")
        assert new.event_time == old.event_time
        assert (await memory.get(old.id)).valid_until is None


@pytest.mark.parametrize(
    "at", ["2035-01-01", "2024-01-01", "some day"], ids=["coming", "before the old one", "no time"]
)
async def test_a_time_that_cannot_be_is_refused(at: str) -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        old = await memory.remember("I live in Oslo", at="2024-03-01")
        with pytest.raises(InvalidError, match=r"^at: "):
            await memory.correct(old.id, "I live in Rome", at=at)


async def test_the_time_of_a_message_cannot_be_changed() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        said = await memory.add("I live in Oslo")
        with pytest.raises(InvalidError, match=r"^at: "):
            await memory.correct(said, "I live in Rome", at="now")


async def _corrected(store: Path) -> str:
    old = await _oslo(store)
    async with Memory.open(store, embedder="hashing") as memory:
        await memory.correct(old, "I live in Rome", at=SINCE)
    return old


def test_a_replaced_version_is_forgotten_at_the_command_line(cli: Cli) -> None:
    old = cli("--json", "remember", "I live in Oslo", "--at", "2024-03-01").json["id"]
    cli("correct", old, "I live in Rome", "--at", SINCE)
    assert "Oslo" in cli("context", "Where do I live?").out
    cli("forget", old)
    assert "Oslo" not in cli("context", "Where do I live?").out
    cli("undo", str(cli("--json", "log").json["commits"][0]["seq"]))
    assert "Oslo" in cli("context", "Where do I live?").out
    cli("forget", old)
    assert "A newer version has replaced it" in cli("restore", old).err.replace("\n", " ")
    assert "Oslo" in cli("context", "Where do I live?").out


async def test_a_replaced_version_is_forgotten_over_http_and_mcp(tmp_path: Path) -> None:
    store = tmp_path / "me.db"
    old = await _corrected(store)
    async with connected(store, profile="full") as client:
        for verb, context in (("forget_memory", False), ("restore_memory", True)):
            await client.call_tool(verb, {"id": old})
            told = await client.call_tool("get_context", {"prompt": "Where do I live?"})
            assert ("Oslo" in told.content[0].text) is context
    async with house(store) as at:
        user = at.client(at.secret("a", owner="me", trust="user"))
        await user.post("/v1/forget", json={"id": old})
        assert "Oslo" not in (await user.post("/v1/context", json={"prompt": "Where do I live?"})).text
