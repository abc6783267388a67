"""Slow connections and malformed requests against a running server: `python -m tests.interfaces.floods`.

While a thousand connections send the head of a request byte by byte and ten thousand malformed requests arrive, an
honest caller searches ten times a second. The server must not end, its memory must not grow by more than 50 MB (after
each kind of request came once, since that loads code), and the honest caller must be answered within a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
from tests.crash.kills import ROOT, machine
from tests.interfaces.serving import Served, served

RESULT = ROOT / "benchmarks" / "results" / "floods.json"
MOST_MB, MOST_S = 50.0, 1.0


@dataclass(slots=True)
class Tally:
    """What happened."""

    slow: int = 0
    malformed: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    waits_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    grown_mb: float = 0.0


def memory_mb(process: int) -> float:
    """Return the private memory of a process in MB: its resident pages without those of files."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1024


def malformed(random: Random, token: str) -> bytes:
    """Return the bytes of a request that no server should accept, or should at least survive."""
    good = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n".encode()
    deep = b"[" * 20_000 + b"]" * 20_000
    bodies = (
        b"{",
        b"\xff\xfe\x00",
        deep,
        b"null",
        b"[]",
        b"1e999",
        b'{"text": 1}',
        b'{"jsonrpc":"2.0"}',
        b'"' + b"a" * 5_000,
        b'{"text":"' + b"\\ud800" * 50 + b'"}',
        b'{"jsonrpc":"2.0","id":1,"method":"memory.search","params":' + deep + b"}",
    )
    body = random.choice(bodies)
    path = random.choice(
        (b"/rpc", b"/v1/search", b"/v1/remember", b"/v1/add_many", b"/v1/import", b"/mcp", b"/", b"/..%2f")
    )
    length = str(len(body)).encode()
    kinds = (
        lambda: random.randbytes(random.randrange(1, 400)),
        lambda: b"GET " + b"/" * random.randrange(1, 9_000) + b" HTTP/1.1\r\n" + good + b"\r\n",
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"Content-Length: -5\r\n\r\n" + body,
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\n" + body,
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body,
        lambda: b"POST " + path + b" HTTP/9.9\r\n" + good + b"\r\n",
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"X: " + b"a" * 70_000 + b"\r\n\r\n",
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"\x00: b\r\n\r\n",
        lambda: b"BREW " + path + b" HTTP/1.1\r\n" + good + b"\r\n",
        lambda: (
            b"POST "
            + path
            + b" HTTP/1.1\r\n"
            + good
            + b"Content-Type: application/json\r\nContent-Length: "
            + length
            + b"\r\n\r\n"
            + body
        ),
        lambda: b"POST " + path + b" HTTP/1.1\r\n" + good + b"Content-Length: 99999999999\r\n\r\n" + body,
        lambda: b"POST " + path + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    )
    return random.choice(kinds)()


async def send(port: int, data: bytes, tally: Tally) -> None:
    """Send the bytes of one request and note what came back."""
    writer = None
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 20)
        writer.write(data)
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(64), 20)
        status = said.split(b" ")[1].decode("ascii", "replace") if said.startswith(b"HTTP/") else "closed"
    except TimeoutError:
        status = "no answer"
    except OSError:
        status = "closed"
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    tally.malformed += 1
    tally.answers[status] = tally.answers.get(status, 0) + 1


async def _slow(port: int, tally: Tally, done: asyncio.Event) -> None:
    """Send the head of a request byte by byte; connect again when the server has had enough."""
    head = b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 10_000
    while not done.is_set():
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            tally.slow += 1
            try:
                for at in range(len(head)):
                    writer.write(head[at : at + 1])
                    with contextlib.suppress(TimeoutError):
                        if not await asyncio.wait_for(reader.read(1), 1.0):
                            break
                    if done.is_set():
                        break
            finally:
                writer.close()
                await writer.wait_closed()
        await asyncio.sleep(0.5)


async def _honest(server: Served, tally: Tally, done: asyncio.Event) -> None:
    async with httpx.AsyncClient(base_url=server.url, headers=server.headers, timeout=30) as client:
        while not done.is_set():
            started = time.perf_counter()
            try:
                answer = await client.post("/v1/search", json={"text": "cello"})
                if answer.status_code != 200:
                    tally.failures.append(f"{answer.status_code}: {answer.text[:100]}")
            except httpx.HTTPError as error:
                tally.failures.append(repr(error)[:100])
            tally.waits_s.append(time.perf_counter() - started)
            await asyncio.sleep(0.1)


async def flood(server: Served, *, slow: int, requests: int, seed: int) -> Tally:
    """Run all three kinds of clients at once."""
    tally, done, random = Tally(), asyncio.Event(), Random(seed)
    port, token = int(server.url.rpartition(":")[2]), server.token
    with server.client() as client:
        client.post("/v1/remember", json={"content": "Bob plays the cello"}).raise_for_status()
        for _ in range(50):
            client.post("/v1/search", json={"text": "cello"}).raise_for_status()
    for _ in range(300):  # load what is imported at first use
        await send(port, malformed(random, token), Tally())
    before = memory_mb(server.process.pid)
    crawling = [asyncio.ensure_future(_slow(port, tally, done)) for _ in range(slow)]
    honest = asyncio.ensure_future(_honest(server, tally, done))
    room = asyncio.Semaphore(20)

    async def one() -> None:
        async with room:
            await send(port, malformed(random, token), tally)

    await asyncio.gather(*(one() for _ in range(requests)))
    await asyncio.sleep(1)
    tally.grown_mb = memory_mb(server.process.pid) - before
    done.set()
    await honest
    await asyncio.gather(*crawling, return_exceptions=True)
    if server.process.poll() is not None:
        tally.failures.append(f"the server ended with {server.process.returncode}")
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--slow", type=int, default=1_000)
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, default=RESULT)
    given = options.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), "--rate", "1000") as server:
        tally = asyncio.run(flood(server, slow=given.slow, requests=given.requests, seed=given.seed))
    waits = sorted(tally.waits_s)
    result = {
        "slow connections at a time": given.slow,
        "slow connections in all": tally.slow,
        "malformed requests": tally.malformed,
        "answers": dict(sorted(tally.answers.items())),
        "honest requests": len(waits),
        "honest failures": tally.failures[:10],
        "honest wait p50 s": round(waits[len(waits) // 2], 3),
        "honest wait p99 s": round(waits[int(len(waits) * 0.99)], 3),
        "honest wait longest s": round(waits[-1], 3),
        "memory grown MB": round(tally.grown_mb, 1),
        "seed": given.seed,
        "seconds": round(time.monotonic() - started, 1),
        "machine": machine(),
    }
    text = json.dumps(result, indent=2)
    sys.stdout.write(text + "\n")
    given.out.write_text(text + "\n", encoding="utf-8")
    return int(bool(tally.failures) or waits[-1] > MOST_S or tally.grown_mb > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
