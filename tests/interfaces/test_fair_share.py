"""One caller cannot use up what all callers of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.interfaces.serving import BASE, House, house
from tests.interfaces.test_http import rpc
from tests.waiting import until

from ricordo.interfaces.call import Caller
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.http.shares import overfull
from ricordo.ports import Completion, Turn

MANY = {"rate": 1e6, "burst": 1_000_000}
WANTED = {"Accept": "application/json, text/event-stream"}
WHO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@asynccontextmanager
async def running(store: Path, limits: Limits, **options: Any) -> AsyncIterator[House]:
    """An application whose MCP endpoint runs, too."""
    async with house(store, limits=limits, **options) as at:
        lifespan = at.app.app.router.lifespan_context(at.app.app)  # type: ignore[attr-defined]
        async with lifespan:
            yield at


async def begin(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/mcp", json=rpc("initialize", **WHO), headers=WANTED)


async def tools_of(client: httpx.AsyncClient, session: str) -> int:
    asked = rpc("tools/list")
    return (await client.post("/mcp", json=asked, headers={**WANTED, "Mcp-Session-Id": session})).status_code


async def test_a_callers_oldest_idle_mcp_session_makes_room_for_its_next(tmp_path: Path) -> None:
    async with running(tmp_path / "me.db", Limits(sessions=3, **MANY)) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        bobs = (await begin(bob)).headers["mcp-session-id"]
        first, second, third = [(await begin(ann)).headers["mcp-session-id"] for _ in range(3)]
        assert await tools_of(ann, first) == 200  # now `second` is the oldest
        fourth = (await begin(ann)).headers["mcp-session-id"]
        assert [await tools_of(ann, each) for each in (first, second, third, fourth)] == [200, 404, 200, 200]
        assert await tools_of(bob, bobs) == 200
        for _ in range(20):
            await ann.post("/mcp", json=rpc("tools/list"), headers=WANTED)  # opens no session, so it closes none
        assert [await tools_of(ann, each) for each in (first, third, fourth)] == [200, 200, 200]


async def test_a_caller_whose_mcp_sessions_are_all_in_use_is_told_so(tmp_path: Path) -> None:
    async with running(tmp_path / "me.db", Limits(sessions=2, **MANY)) as at, AsyncExitStack() as stack:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        for each in (1, 2):
            session = (await begin(ann)).headers["mcp-session-id"]
            listening = asyncio.ensure_future(ann.get("/mcp", headers={**WANTED, "Mcp-Session-Id": session}))
            stack.callback(listening.cancel)
            await at.until_answering(2 * each)
        refused = await begin(ann)
        assert refused.status_code == 429
        said = refused.json()["error"]
        assert "2 MCP sessions" in said["message"] and "its own token" in said["hint"]
        assert (await begin(bob)).status_code == 200


async def test_a_callers_open_streams_keep_nobody_out(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db", limits=Limits(concurrent=8, each=4, streams=6, **MANY)) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        streams = []
        for number in range(6):
            streams.append(asyncio.ensure_future(ann.get("/v1/changes")))
            await at.until_answering(number + 1)
        refused = await ann.post("/v1/stats", json={})
        assert refused.status_code == 429 and "6 open streams" in refused.text
        assert (await bob.post("/v1/stats", json={})).status_code == 200
        for each in streams:
            each.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        assert (await ann.post("/v1/stats", json={})).status_code == 200


async def test_the_page_and_the_other_paths_share_a_callers_limits(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db", limits=Limits(streams=4, **MANY)) as at:
        secret = at.secret("ann")
        browsers = [at.client(secret) for _ in range(4)]
        for each in browsers:
            form = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
            assert (await each.post("/page/enter", data={"token": secret}, headers=form)).status_code == 303
        streams = [asyncio.ensure_future(each.get("/page/live")) for each in browsers]
        await at.until_answering(4 + 4)
        assert (await browsers[0].get("/page/timeline")).status_code == 429
        assert (await browsers[0].post("/v1/stats", json={})).status_code == 429
        assert (await at.client(at.secret("bob")).post("/v1/stats", json={})).status_code == 200
        for each in streams:
            each.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


async def test_slow_requests_of_one_caller_keep_nobody_out(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def crawling() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    async with house(tmp_path / "me.db", limits=Limits(concurrent=8, each=4, **MANY)) as at:
        ann, bob, nobody = at.client(at.secret("ann")), at.client(at.secret("bob")), at.client(None)
        for client, path in ((ann, "/rpc"), (ann, "/v1/import"), (nobody, "/page/enter")):
            form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": BASE}
            headers = form if client is nobody else {"Content-Type": "application/json"}
            slow = [asyncio.ensure_future(client.post(path, content=crawling(), headers=headers)) for _ in range(9)]
            await done(slow, 5)
            assert {each.result().status_code for each in slow if each.done()} <= {429, 503}
            assert (await bob.post("/v1/stats", json={})).status_code == 200
            for each in slow:
                each.cancel()
            await asyncio.gather(*slow, return_exceptions=True)


async def done(calls: Sequence[asyncio.Future[Any]], number: int) -> None:
    await until(lambda: sum(each.done() for each in calls) >= number)


class Waiting:
    """A language model that waits until it may answer, and notes how many prompts wait."""

    name, context_tokens = "waiting", 8_000

    def __init__(self) -> None:
        self.prompts, self.may_answer = 0, asyncio.Event()

    async def complete(self, turns: Sequence[Turn], *, schema: Mapping[str, Any], max_tokens: int) -> Completion:
        self.prompts += 1
        await self.may_answer.wait()
        return Completion(text="{}", tokens_in=1, tokens_out=1, ending="done")

    async def asked(self, times: int, *, unless: asyncio.Future[Any] | None = None) -> None:
        await until(lambda: self.prompts >= times or (unless is not None and unless.done()))


async def test_long_calls_count_until_they_are_done_even_if_the_client_has_left(tmp_path: Path) -> None:
    model = Waiting()
    async with house(tmp_path / "me.db", limits=Limits(**MANY), model=model) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        for each in (ann, bob):
            for number in range(9):
                turn = {"text": f"I moved to town number {number}", "session": f"s{number}", "role": "user"}
                assert (await each.post("/v1/add", json=turn)).status_code == 200
        events = {"Accept": "text/event-stream"}
        for number in range(9):
            call = ann.post("/v1/consolidate", json={"session": f"s{number}"}, headers=events)
            leaving = asyncio.ensure_future(call)
            await model.asked(number + 1, unless=leaving)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        assert model.prompts == 4
        refused = await ann.post("/v1/consolidate", json={"session": "s8"})
        assert refused.status_code == 503 and "4 long calls" in refused.text
        assert (await ann.post("/v1/stats", json={})).status_code == 200
        waiting = asyncio.ensure_future(bob.post("/v1/consolidate", json={"session": "s0"}))
        await model.asked(5)
        model.may_answer.set()
        assert (await waiting).status_code != 503

        async def one_may_start() -> bool:
            return (await ann.post("/v1/consolidate", json={"session": "s8"})).status_code != 503

        await until(one_may_start)


async def test_one_caller_imports_one_file_at_a_time(tmp_path: Path) -> None:
    arrived, rest = asyncio.Event(), asyncio.Event()
    file = b'{"role": "user", "text": "I like tea", "time": "2026-01-01T10:00:00Z"}\n'

    async def slowly() -> AsyncIterator[bytes]:
        yield file
        arrived.set()
        await rest.wait()

    async with house(tmp_path / "me.db", limits=Limits(**MANY)) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        first = asyncio.ensure_future(ann.post("/v1/import", content=slowly()))
        await arrived.wait()
        refused = await ann.post("/v1/import", content=file)
        assert refused.status_code == 503 and "another import" in refused.text
        assert (await bob.post("/v1/import", content=file)).json()["added"] == 1
        rest.set()
        assert (await first).json()["added"] == 1
        for status, body in ((413, b" " * 70_000_000), (422, b"nonsense"), (200, file)):  # a failed one leaves no trace
            assert (await ann.post("/v1/import", content=body)).status_code == status


async def test_a_small_import_does_not_wait_for_a_large_one(tmp_path: Path) -> None:
    turn = '{"role": "user", "text": "turn %d", "time": "2026-01-01T10:00:00Z"}\n'
    large, small = "".join(turn % number for number in range(40_000)).encode(), (turn % 0).encode()
    async with house(tmp_path / "me.db", limits=Limits(seconds=60, **MANY)) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        slow = asyncio.ensure_future(ann.post("/v1/import", content=large))
        await asyncio.sleep(0.3)
        assert (await bob.post("/v1/import", content=small)).json()["added"] == 1
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def test_one_caller_cannot_end_the_page_sessions_of_others(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db", limits=Limits(**MANY)) as at:
        assert at.app.page is not None
        link = at.app.page.key(Caller(trust="user"))
        secret, other = at.secret("ann"), at.client(at.secret("bob"))
        bobs = (await other.post("/page/link")).json()["path"]
        ann = at.client(secret)
        for _ in range(1_001):
            await ann.post("/page/link")
        owner = at.client(None)
        assert (await owner.get(link)).status_code == 303
        assert "bob" in (await at.client(None).get(bobs)).text  # asks for confirmation
        stranger, form = at.client(None), {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
        for _ in range(1_001):
            stranger.cookies.clear()
            assert (await stranger.post("/page/enter", data={"token": secret}, headers=form)).status_code == 303
        assert (await owner.get("/page/timeline")).status_code == 200


def test_the_caller_who_holds_most_makes_room() -> None:
    assert overfull([], each=2, most=4) is None
    assert overfull(["ann", "ann", "bob"], each=2, most=4) is None
    assert overfull(["ann", "ann", "ann"], each=2, most=4) == "ann"
    assert overfull(["bob", "ann", "ann", "ann", "carla"], each=5, most=4) == "ann"
