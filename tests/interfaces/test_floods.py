"""A share of `python -m tests.interfaces.floods`, and the limits it rests on."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

import pytest
from tests.interfaces import floods
from tests.interfaces.serving import house, served
from tests.interfaces.test_http import rpc

from ricordo.interfaces.http.guard import Limits

_GENEROUS_S = 5.0


@pytest.mark.slow
def test_slow_and_malformed_clients_keep_nobody_out(tmp_path: Path) -> None:
    with served(tmp_path, "--rate", "1000") as server:
        tally = asyncio.run(floods.flood(server, slow=220, requests=300, seed=3))
        assert tally.failures == []
        assert max(tally.waits_s) < _GENEROUS_S
        assert tally.grown_mb < floods.MOST_MB
        assert tally.malformed == 300 and "500" not in tally.answers and "no answer" not in tally.answers


def test_malformed_requests_leave_no_memory_behind(tmp_path: Path) -> None:
    """The parser's exceptions hold what was sent in reference cycles: 20 kB for each request."""
    with served(tmp_path, "--rate", "100000") as server:
        port, good = int(server.url.rpartition(":")[2]), f"Host: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        bad = f"POST /rpc HTTP/1.1\r\n{good}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode()

        async def many(count: int) -> float:
            for _ in range(count // 20):
                await asyncio.gather(*(floods.send(port, bad, floods.Tally()) for _ in range(20)))
            return floods.memory_mb(server.process.pid)

        before = asyncio.run(many(300))
        assert asyncio.run(many(900)) - before < 6.0


def test_a_connection_that_sends_no_request_is_closed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        port = int(server.url.rpartition(":")[2])
        with server.client() as client:
            client.post("/v1/stats", json={}).raise_for_status()  # it listens
        with socket.create_connection(("127.0.0.1", port), timeout=30) as silent:
            started = time.monotonic()
            assert silent.recv(1) == b""
            assert time.monotonic() - started < 25


async def test_a_batch_counts_as_many_requests(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db", limits=Limits(rate=0.001, burst=60)) as at:
        client = at.client(at.secret("ann"))
        batch = [rpc("memory.stats") for _ in range(50)]
        assert (await client.post("/rpc", json=batch)).status_code == 200
        answer = await client.post("/rpc", json=batch)
        assert (answer.status_code, "too many" in answer.text) == (429, True)
        assert (await client.post("/rpc", json=rpc("memory.stats"))).status_code == 200


async def test_a_deep_document_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        client = at.client(at.secret("ann"))
        nested = ['{"a":' * depth + "1" + "}" * depth for depth in (150, 300, 600, 900, 950, 980, 1_000)]
        for deep in ("[" * 100_000, "[" * 1_000 + "]" * 1_000, *nested, '{"a":' * 50_000):
            given = f'{{"jsonrpc":"2.0","id":1,"method":"memory.search","params":{{"query":{deep}}}}}'
            for path, body in (("/rpc", deep), ("/rpc", given), ("/v1/search", deep), ("/v1/remember", given)):
                answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})
                assert answer.status_code in (400, 422), (path, answer.status_code, answer.text[:200])


async def test_a_body_that_does_not_arrive_ends_at_every_path(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db", limits=Limits(seconds=0.3, rate=1e6, burst=1_000)) as at:
        client = at.client(at.secret("ann"))

        async def crawling():
            yield b"{"
            await asyncio.sleep(60)

        for path in ("/v1/search", "/rpc", "/v1/import"):
            started = time.monotonic()
            answer = await client.post(path, content=crawling(), headers={"Content-Type": "application/json"})
            assert answer.status_code in (400, 408)
            assert time.monotonic() - started < _GENEROUS_S
