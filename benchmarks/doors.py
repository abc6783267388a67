"""Load-test the servers: HTTP at a steady rate and through a kill, and MCP over standard streams from its start.

    python benchmarks/doors.py [--nodes 100000] [--seconds 300] [--rate 30] [--out benchmarks/results/doors.json]

The store holds synthetic conversation of English words (see benchmarks/english.py) and is opened with the default
embedder. There are nine searches to one write, sent at fixed times whether or not the previous one was answered. Then,
under the same load, the server is killed (SIGKILL), restarted, and asked for every write it ever acknowledged. All
requests go to this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.english import StandIn, english
from benchmarks.speed import questions, talk

from ricordo import Memory, Message, Settings

RUN = "import sys; from ricordo.interfaces.cli import run; sys.exit(run())"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


async def fill(store: Path, nodes: int) -> float:
    """Add turns in sessions of fifty; return the seconds until all are embedded."""
    begun = time.perf_counter()
    async with Memory.open(store, embedder=StandIn(), settings=Settings(durability="process")) as memory:
        turns = talk(nodes, vocabulary=english())
        number = 0
        while batch := list(islice(turns, 5_000)):
            await memory.add_many(
                [Message(text=text, session=f"s{(number + at) // 50}") for at, text in enumerate(batch)]
            )
            number += len(batch)
        await memory.settle()
    return time.perf_counter() - begun


def spread(seconds: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(1_000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1)

    return {"p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "most_ms": at(1)}


class Watched:
    """Return the resources a process has used so far, from /proc."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu_s(self) -> float:
        parts = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> int:
        """Private memory only: the system can drop cached pages of the store at any time."""
        lines = (self._folder / "status").read_text().splitlines()
        return round(next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024)


@contextmanager
def served(store: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.AsyncClient]]:
    command = [sys.executable, "-c", RUN, "serve", "--store", str(store), "--port", "0", "--rate", "10000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        process.stderr.readline()
        token = store.with_name(store.name + ".token").read_text().strip()
        yield process, httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    finally:
        process.terminate()
        process.communicate(timeout=60)


class Load:
    """Send requests at a steady rate and collect the results."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._chance, self._asked = random.Random(3), questions(vocabulary=english())
        self._said = talk(1_000_000, seed=99, vocabulary=english())
        self.acknowledged: list[str] = []
        self.taken: dict[str, list[float]] = {"search": [], "add": []}
        self.errors: list[str] = []

    async def warm(self, client: httpx.AsyncClient) -> None:
        """Send warm-up requests, which load vectors and weights and are not counted."""
        for number in range(20):
            await self._one(client, number)
        self.taken = {"search": [], "add": []}

    async def steadily(self, client: httpx.AsyncClient, *, seconds: float, each_10_s: Callable[[], None]) -> float:
        """Return the seconds until the last answer."""
        begun, running = time.perf_counter(), set()
        for number in range(int(seconds * self._rate)):
            await asyncio.sleep(max(0.0, begun + number / self._rate - time.perf_counter()))
            task = asyncio.ensure_future(self._one(client, number))
            running.add(task)
            task.add_done_callback(running.discard)
            if number % int(self._rate * 10) == 0:
                each_10_s()
        await asyncio.gather(*running)
        return time.perf_counter() - begun

    async def _one(self, client: httpx.AsyncClient, number: int) -> None:
        kind = "add" if number % 10 == 9 else "search"
        body = (
            {"text": self._chance.choice(self._asked)}
            if kind == "search"
            else {"text": next(self._said), "session": "bench"}
        )
        begun = time.perf_counter()
        try:
            answer = await client.post(f"/v1/{kind}", json=body)
            if answer.status_code != 200:
                self.errors.append(f"{answer.status_code} {answer.text[:100]}")
            elif kind == "add":
                self.acknowledged.append(answer.json())
        except httpx.HTTPError as error:
            self.errors.append(repr(error)[:100])
        self.taken[kind].append(time.perf_counter() - begun)


async def load_http(store: Path, load: Load, *, seconds: float) -> dict[str, Any]:
    with served(store) as (process, client):
        async with client:
            await load.warm(client)
            watched = Watched(process.pid)
            memory, cpu = [watched.memory_mb()], watched.cpu_s()
            took = await load.steadily(client, seconds=seconds, each_10_s=lambda: memory.append(watched.memory_mb()))
            memory.append(watched.memory_mb())
            cpu = watched.cpu_s() - cpu
    count = sum(len(each) for each in load.taken.values())
    return {
        "requests": count,
        "seconds": round(took, 1),
        "errors": len(load.errors),
        "first_errors": load.errors[:3],
        "all": spread(load.taken["search"] + load.taken["add"]),
        **{kind: spread(each) for kind, each in load.taken.items()},
        "cpu_ms_per_request": round(1_000 * cpu / count, 1),
        "memory_mb_each_minute": [*memory[:-1:6], memory[-1]],
    }


async def killed(store: Path, load: Load, *, after_s: float) -> dict[str, Any]:
    """Return the number of acknowledged writes, and how many of them the restarted server does not have."""
    before = len(load.acknowledged)
    with served(store) as (process, client):
        async with client:
            await load.warm(client)
            asyncio.get_running_loop().call_later(after_s, process.kill)
            await load.steadily(client, seconds=after_s * 1.2, each_10_s=lambda: None)
    begun = time.perf_counter()
    with served(store) as (_process, client):
        started = time.perf_counter() - begun
        async with client:
            found = [await client.post("/v1/get", json={"id": id}) for id in load.acknowledged]
    return {
        "load_s_before_kill": after_s,
        "acknowledged_in_them": len(load.acknowledged) - before,
        "acknowledged_in_all": len(load.acknowledged),
        "lost": sum(answer.status_code != 200 or not answer.json()["content"] for answer in found),
        "listening_again_s": round(started, 2),
    }


def start_mcp(store: Path, *, calls: int) -> dict[str, Any]:
    """Return the seconds from process start to each answer, and the time of a warm tool call."""
    asked = questions(vocabulary=english())
    command = [sys.executable, "-c", RUN, "mcp", "--store", str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        begun, watched = time.perf_counter(), Watched(process.pid)

        def ask(message: dict[str, Any]) -> float:
            assert process.stdin is not None and process.stdout is not None
            since = time.perf_counter()
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "result" in answer and not answer["result"].get("isError"), answer
            return time.perf_counter() - since

        ask(HELLO)
        times = {"initialize_s": time.perf_counter() - begun, "initialize_cpu_s": watched.cpu_s()}
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        times["tools_s"] = time.perf_counter() - begun
        taken = [
            ask(
                {
                    "jsonrpc": "2.0",
                    "id": number + 2,
                    "method": "tools/call",
                    "params": {"name": "search_memory", "arguments": {"query": asked[number % len(asked)]}},
                }
            )
            for number in range(calls + 5)
        ]
        times["first_answer_s"] = times["tools_s"] + taken[0]
        process.stdin.close()
        process.wait(timeout=60)
    rounded = {name: round(value, 2) for name, value in times.items()}
    return rounded | {"search_memory": spread(taken[5:])}


def starts_of_mcp(store: Path) -> dict[str, Any]:
    """Return the median of five starts, and the calls of the last one."""
    starts = [start_mcp(store, calls=40 if number < 4 else 300) for number in range(5)]
    medians = {
        name: round(statistics.median(each[name] for each in starts), 2) for name in starts[0] if name.endswith("_s")
    }
    return medians | {"search_memory": starts[-1]["search_memory"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/doors.json")
    given = parser.parse_args()
    found: dict[str, Any] = {
        "machine": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_average": os.getloadavg()[0],
        }
    }
    with tempfile.TemporaryDirectory() as folder:
        store, load = Path(folder) / "load.db", Load(given.rate)
        found["store"] = {"turns": given.nodes, "fill_s": round(asyncio.run(fill(store, given.nodes)), 1)}
        found["mcp"] = starts_of_mcp(store)
        found["http"] = {"rate": given.rate} | asyncio.run(load_http(store, load, seconds=given.seconds))
        found["kill"] = asyncio.run(killed(store, load, after_s=15))
    found["machine"]["load_average_after"] = os.getloadavg()[0]
    given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
