"""Conclusions with a misbehaving model server: nothing partial, and the rest continues."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope
from tests.flows.test_concluding import RUNS, causes, reflections, summary
from tests.flows.test_consolidation import fact, proposal
from tests.models.language.serving import Answer, ModelServer, said, status
from tests.models.language.test_faulty_models import echo, hang, opened
from tests.storage.canonical import canonical

GOOD: dict[str, dict[str, Any]] = {
    "extract": proposal(fact("Sarah eats only plants", "e2", about=["Sarah"])) | {"verdicts": []},
    "reflect": reflections(("Sarah trains for a marathon", ("m1", "m2"))),
    "enrich": summary("Sarah runs.", "m1"),
    "infer_causes": causes(("p1", "first")),
}
WORKS = tuple(GOOD)


def many(work: str) -> dict[str, Any]:
    """Return ten thousand items of the requested kind."""
    ((name, (one, *_)),) = [(name, value) for name, value in GOOD[work].items() if value and isinstance(value, list)]
    return {**GOOD[work], name: [one] * 10_000}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


async def prepared(memory: Memory) -> None:
    for number, text in enumerate(RUNS):
        await memory.remember(text, about=["Sarah"], id=f"f{number}")
    await memory.add("The fish shop has closed.", session="s1", id="t1")
    await memory.add("That is why Sarah eats only plants now.", session="s1", id="t2")


FAULTS: dict[str, Answer] = {
    "no json": said("not json"),
    "torn json": said('{"facts": [{"text": "Anna li'),
    "refusal": said("", refusal="No."),
    "filtered": said("", reason="content_filter"),
    "429": status(429),
    "500": status(500),
    "hang": hang,
    "prompt echo": echo,
    "wrong form": said(dict.fromkeys(("facts", "reflections", "summaries", "causes"), "none")),
    "a list": said([]),
    "html": lambda body: (200, {}, "<html>"),
    "no choice": lambda body: (200, {}, json.dumps({"choices": []})),
    "400": status(400),
    "401": status(401),
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
async def test_nothing_is_kept_of_any_failure_and_the_rest_goes_on(tmp_path: Path, server: ModelServer, work: str):
    path = tmp_path / "me.db"
    async with opened(path, server) as memory:
        await prepared(memory)
    before = canonical(path)
    faults = {**FAULTS, "cut": said(GOOD[work], reason="length"), "10,000 items": said(many(work))}
    for name, answer in faults.items():
        server.always, asked = answer, len(server.requests)
        async with opened(path, server) as memory:
            run = await getattr(memory, work)()
            assert run.state == "failed" and run.reason, name
            assert 1 <= len(server.requests) - asked <= 3, f"{name}: at most three tries"
            assert {run.state for run in await memory.runs()} <= {"failed"} and "t1" in (
                await memory.search("fish shop")
            ).ids, name
        assert canonical(path) == before, name
    server.always = said(GOOD[work])
    async with opened(path, server) as memory:
        assert (await getattr(memory, work)()).state == "done"
        assert (await memory.doctor()).ok


INVENTED = {
    "extract": [proposal(fact("Sarah sings", handle)) for handle in ("e9", "b1", "f0", "")],
    "reflect": [reflections(("Sarah trains for a marathon", (handle, "m1"))) for handle in ("m9", "b1", "f0", "")],
    "enrich": [summary("Sarah runs.", handle) for handle in ("m9", "b1", "f0", "")],
    "infer_causes": [causes((handle, "first")) for handle in ("p9", "t1", "b1", "")],
}


@pytest.mark.parametrize("work", WORKS)
async def test_invented_handles_and_ids_of_others_are_refused(tmp_path: Path, server: ModelServer, work: str):
    for number, answer in enumerate(INVENTED[work]):
        server.always = said(answer)
        async with opened(tmp_path / f"{number}.db", server) as memory:
            bob = memory.scoped(Scope(owner="bob"))
            await bob.add("Sarah sings.", session="s1", id="b1")
            await prepared(memory)
            run = await getattr(memory, work)()
            whats = {item.what for item in run.items}
            assert whats == {"failed"} if work == "extract" else run.state == "done" and whats <= {"refused", "looked"}
            assert len((await memory.list(limit=100)).nodes) == 5 and not (await memory.stats()).edges.get("causal")


@pytest.mark.parametrize("work", WORKS)
async def test_adding_and_searching_go_on_while_a_model_thinks(tmp_path: Path, server: ModelServer, work: str):
    server.always = lambda body: (time.sleep(1.5), said(GOOD[work])(body))[1]
    async with opened(tmp_path / "me.db", server, timeout_s=30) as memory:
        await prepared(memory)
        thinking = asyncio.ensure_future(getattr(memory, work)())
        for number in range(3):
            await memory.add(f"Something else, number {number}.", session="s2")
            await memory.search("What does Sarah eat?")
        assert not thinking.done()
        assert (await thinking).state == "done"
