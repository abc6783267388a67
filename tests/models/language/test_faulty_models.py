"""Consolidation with a misbehaving model server: nothing partial, the session waits, the rest continues."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ricordo import InvalidError, Memory, Scope, Settings, UnavailableError
from ricordo.model import Run
from ricordo.models.language import resolve
from tests.flows.test_consolidation import fact, proposal
from tests.models.language.serving import Answer, ModelServer, said, status
from tests.storage.canonical import canonical

GOOD = proposal(fact("Anna lives in Rome", "e1", about=["Anna"]))
MANY = proposal(*[fact(f"Anna lives in Rome, house {n}", "e1") for n in range(10_000)])
HUNDREDS = proposal(*[fact(f"Anna {n}", "e1") for n in range(500)])


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.always = said(GOOD)
        yield server


def hang(body: dict) -> tuple[int, dict[str, str], str]:
    time.sleep(1.0)
    return said(GOOD)(body)


def echo(body: dict) -> tuple[int, dict[str, str], str]:
    return said(body["messages"][-1]["content"])(body)


def opened(path: Path, server: ModelServer, *, timeout_s: float = 0.4) -> Memory:
    model = resolve(f"{server.url}#tiny", timeout_s=timeout_s, first_wait_s=0.01, context_tokens=16_000)
    return Memory.open(path, embedder=None, model=model, settings=Settings(durability="process"))


async def store_of_one(path: Path, server: ModelServer) -> None:
    async with opened(path, server) as memory:
        await memory.add("Anna lives in Rome.", session="s1", id="turn")


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        said("not json"),
        said('{"facts": [{"text": "Anna li'),
        said(GOOD, reason="length"),
        said("", refusal="I will not"),
        said("", reason="content_filter"),
        status(429),
        status(500),
        hang,
        said(MANY),
        said(HUNDREDS),
        echo,
        said({"facts": "none"}),
        said([]),
        lambda body: (200, {}, "<html>"),
        lambda body: (200, {}, json.dumps({"choices": []})),
        status(400),
        status(401),
    ],
    ids=[
        "no json",
        "torn json",
        "cut",
        "refusal",
        "filtered",
        "429",
        "500",
        "hang",
        "10,000 facts",
        "500 facts",
        "prompt echo",
        "wrong form",
        "a list",
        "html",
        "no choice",
        "400",
        "401",
    ],
)
async def test_nothing_is_kept_of_a_failure_and_the_session_waits(tmp_path, server, answer: Answer):
    path = tmp_path / "me.db"
    await store_of_one(path, server)
    before = canonical(path)
    server.always = answer
    async with opened(path, server) as memory:
        run = await memory.consolidate("s1")
        assert run.state == "failed" and run.reason
        assert len(server.requests) <= 3, "at most three tries"
        assert (await memory.stats()).sessions_waiting == 1
        assert [run.state for run in await memory.runs()] == ["failed"]
        assert (await memory.search("Where does Anna live?")).ids == ["turn"]
    assert canonical(path) == before
    server.always = said(GOOD)
    async with opened(path, server) as memory:
        assert (await memory.consolidate("s1")).state == "done"
        assert (await memory.doctor()).ok


async def test_what_was_said_is_in_no_reason_that_is_kept(tmp_path, server):
    server.always = lambda body: status(500, json.dumps(body))(body)
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("My canary is Nightingale.", session="s1")
        run = await memory.consolidate()
    assert run.state == "failed" and "Nightingale" not in repr(run)
    kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert kept.count(b"Nightingale") <= 2, "the message itself, in its row and perhaps the log"


async def test_after_three_failures_a_session_is_left_alone_until_it_is_named(tmp_path, server):
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        server.always = said("nonsense")
        for _ in range(3):
            assert (await memory.consolidate()).state == "failed"
        asked = len(server.requests)
        server.always = said(GOOD)
        assert not (await memory.consolidate()).items and len(server.requests) == asked
        assert (await memory.consolidate("s1")).state == "done"


async def test_one_bad_session_does_not_hold_up_the_others(tmp_path, server):
    def by_content(body: dict) -> tuple[int, dict[str, str], str]:
        return said("nonsense" if "Boris" in body["messages"][1]["content"] else GOOD)(body)

    server.always = by_content
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("Boris lives in Oslo.", session="bad")
        await memory.add("Anna lives in Rome.", session="good")
        run = await memory.consolidate()
        assert run.state == "done" and run.sessions == ("good",)
        assert [(item.what, item.text) for item in run.items if item.what == "failed"] == [("failed", "bad")]


@pytest.mark.parametrize("handle", ["e2", "e0", "E1x", "1", "turn", "theirs", "", "e1, e1", "'; DROP TABLE nodes"])
async def test_of_invented_handles_and_ids_of_others_nothing_comes_and_the_session_waits(tmp_path, server, handle):
    server.always = said(proposal(fact("Anna lives in Rome", handle)))
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.scoped(Scope(owner="other")).add("Anna lives in Rome.", session="s1", id="theirs")
        await memory.add("Anna lives in Rome.", session="s1", id="turn")
        run = await memory.consolidate()
        assert [item.what for item in run.items] == ["failed"] and "the conversation supports nothing" in run.items[
            0
        ].reason
        assert run.tokens_in and run.tokens_out, "it was paid for all the same"
        assert not (await memory.list(type="semantic")).nodes
        assert (await memory.stats()).sessions_waiting == 1 and (await memory.search("Where does Anna live?")).hits


async def test_beside_what_rests_on_the_conversation_what_does_not_is_refused(tmp_path, server):
    server.always = said(proposal(fact("Anna lives in Rome", "e1"), fact("Anna lives in Rome now", "e2")))
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        run = await memory.consolidate()
        assert sorted(item.what for item in run.items) == ["added", "refused"]


async def test_repeated_items_are_kept_once(tmp_path, server):
    server.always = said(proposal(*[fact("Anna lives in Rome", "e1", about=["Anna"])] * 50))
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        await memory.consolidate()
        (node,) = (await memory.list(type="semantic")).nodes
        assert node.score == 0, "saying it twice in one answer is no confirmation"


async def test_instructions_said_back_are_not_learnt(tmp_path, server):
    def parrot(body: dict) -> tuple[int, dict[str, str], str]:
        sentences = body["messages"][0]["content"].replace("\n", " ").split(". ")
        return said(proposal(*[fact(each, "e1") for each in sentences]))(body)

    server.always = parrot
    async with opened(tmp_path / "me.db", server) as memory:
        await memory.add("The weather was fine.", session="s1")
        await memory.consolidate()
        assert not (await memory.list(type="semantic")).nodes


async def test_adding_and_searching_go_on_while_a_model_thinks(tmp_path, server):
    was_asked, may_answer = threading.Event(), threading.Event()
    server.always = lambda body: (was_asked.set(), may_answer.wait(90), said(GOOD)(body))[2]
    async with opened(tmp_path / "me.db", server, timeout_s=120) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        thinking = asyncio.ensure_future(memory.consolidate())
        assert await asyncio.to_thread(was_asked.wait, 30)
        async with asyncio.timeout(60):
            for number in range(3):
                await memory.add(f"Something else, number {number}.", session="s2")
                await memory.search("Where does Anna live?")
        may_answer.set()
        assert (await thinking).state == "done"


async def test_a_model_that_breaks_in_its_own_way_is_a_failure(tmp_path):
    class Broken:
        name = "broken"
        context_tokens = 8_192

        async def complete(self, turns, *, schema, max_tokens):
            raise ZeroDivisionError

    async with Memory.open(tmp_path / "me.db", embedder=None, model=Broken()) as memory:
        await memory.add("Anna lives in Rome.", session="s1")
        run: Run = await memory.consolidate()
        assert run.state == "failed" and "ZeroDivisionError" in run.reason


async def test_the_reason_of_a_failure_is_told_whole():
    from ricordo.consolidation.context import failure_reason

    quoting = UnavailableError("the model's server answered 500: Anna lives in Rome")
    assert failure_reason(quoting) == "the model's server answered 500", "what a server says may quote a conversation"
    whole = InvalidError("model: tiny takes 90 tokens, too few for any conversation")
    assert failure_reason(whole) == whole.message
