"""The doors under load: the HTTP door at a steady rate, and MCP over standard streams from its start on.

    python benchmarks/doors.py [--nodes 100000] [--seconds 300] [--rate 30] [--out benchmarks/results/doors.json]

The store is filled with made-up chat and embedded by `--embedder` (`hashing` by default, so that filling takes minutes
and not an hour). Nine searches to one write, at fixed moments whether or not the one before has been answered. Requests
go to this machine only.
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
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.speed import questions, talk

from ricordo import Memory, Message, Settings

RUN = "import sys; from ricordo.doors.cli import run; sys.exit(run())"
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}  # fmt: skip


async def fill(store: Path, nodes: int, embedder: str) -> float:
    """Turns in sessions of fifty; returns the seconds until all have their vector."""
    begun = time.perf_counter()
    async with Memory.open(store, embedder=embedder, settings=Settings(durability="process")) as memory:
        turns = talk(nodes)
        number = 0
        while batch := list(islice(turns, 5_000)):
            await memory.add_many(
                [Message(text=text, session=f"s{(number + at) // 50}") for at, text in enumerate(batch)]
            )
            number += len(batch)
        await memory.settle()
    return time.perf_counter() - begun


def spread(seconds: list[float]) -> dict[str, float]:
    """In milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(1_000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1)

    return {"p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "most_ms": at(1)}


class Watched:
    """What a process has used so far, from /proc."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu_s(self) -> float:
        parts = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        return int((self._folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def load_http(store: Path, *, seconds: float, rate: float, embedder: str) -> dict[str, Any]:
    command = [sys.executable, "-c", RUN, "serve", "--store", str(store), "--embedder", embedder, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220  # before anything runs
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        process.stderr.readline()
        token = store.with_name(store.name + ".token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client:
            return await _steadily(client, Watched(process.pid), seconds=seconds, rate=rate)
    finally:
        process.terminate()
        process.communicate(timeout=60)


async def _steadily(client: httpx.AsyncClient, watched: Watched, *, seconds: float, rate: float) -> dict[str, Any]:
    chance, asked = random.Random(3), questions()
    said = talk(1_000_000, seed=99)
    taken: dict[str, list[float]] = {"search": [], "add": []}
    errors: list[str] = []

    async def one(kind: str, body: dict[str, Any]) -> None:
        begun = time.perf_counter()
        try:
            answer = await client.post(f"/v1/{kind}", json=body)
            if answer.status_code != 200:
                errors.append(f"{answer.status_code} {answer.text[:100]}")
        except httpx.HTTPError as error:
            errors.append(repr(error)[:100])
        taken[kind].append(time.perf_counter() - begun)

    def next_request(number: int) -> Any:
        if number % 10 == 9:
            return one("add", {"text": next(said), "session": "bench"})
        return one("search", {"text": chance.choice(asked)})

    for number in range(20):  # vectors and weights are read
        await next_request(number)
    for each in taken.values():
        each.clear()
    memory, cpu = [watched.resident_mb()], watched.cpu_s()
    begun, running = time.perf_counter(), set()
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        task = asyncio.ensure_future(next_request(number))
        running.add(task)
        task.add_done_callback(running.discard)
        if number % int(rate * 10) == 0:
            memory.append(watched.resident_mb())
    await asyncio.gather(*running)
    count = len(taken["search"]) + len(taken["add"])
    return {
        "requests": count, "seconds": round(time.perf_counter() - begun, 1), "errors": len(errors),
        "first_errors": errors[:3], "all": spread(taken["search"] + taken["add"]), "search": spread(taken["search"]),
        "add": spread(taken["add"]), "cpu_ms_per_request": round(1_000 * (watched.cpu_s() - cpu) / count, 1),
        "resident_mb": {"first": round(memory[0]), "middle": round(memory[len(memory) // 2]),
                        "last": round(watched.resident_mb())},
    }  # fmt: skip


def start_mcp(store: Path, embedder: str, *, calls: int) -> dict[str, Any]:
    """Seconds from the start of the process to each answer, and how long a warm tool call takes."""
    asked = questions()
    command = [sys.executable, "-c", RUN, "mcp", "--store", str(store), "--embedder", embedder]
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
            ask({"jsonrpc": "2.0", "id": number + 2, "method": "tools/call",
                 "params": {"name": "search_memory", "arguments": {"query": asked[number % len(asked)]}}})
            for number in range(calls + 5)
        ]  # fmt: skip
        cpu = watched.cpu_s()
        times["first_answer_s"] = times["tools_s"] + taken[0]
        process.stdin.close()
        process.wait(timeout=60)
    rounded = {name: round(value, 2) for name, value in times.items()}
    return rounded | {"search_memory": spread(taken[5:]), "cpu_s": round(cpu, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--embedder", default="hashing")
    parser.add_argument("--mcp-embedder", help="also start MCP over a store of this embedder; of --mcp-nodes turns")
    parser.add_argument("--mcp-nodes", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/doors.json")
    given = parser.parse_args()
    found: dict[str, Any] = {
        "machine": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                    "python": platform.python_version(), "load_average": os.getloadavg()[0]},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "load.db"
        found["store"] = {"turns": given.nodes, "embedder": given.embedder,
                          "fill_s": round(asyncio.run(fill(store, given.nodes, given.embedder)), 1)}  # fmt: skip
        found["mcp"] = _mcp(store, given.embedder)
        found["http"] = {"rate": given.rate} | asyncio.run(
            load_http(store, seconds=given.seconds, rate=given.rate, embedder=given.embedder)
        )
        if given.mcp_embedder:
            other = Path(folder) / "other.db"
            filled = asyncio.run(fill(other, given.mcp_nodes, given.mcp_embedder))
            about = {"turns": given.mcp_nodes, "embedder": given.mcp_embedder, "fill_s": round(filled, 1)}
            found["mcp_other"] = about | _mcp(other, given.mcp_embedder)
    found["machine"]["load_average_after"] = os.getloadavg()[0]
    given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


def _mcp(store: Path, embedder: str) -> dict[str, Any]:
    """The median of five starts, and the calls of the last."""
    starts = [start_mcp(store, embedder, calls=40 if number < 4 else 300) for number in range(5)]
    medians = {name: round(statistics.median(each[name] for each in starts), 2)
               for name in starts[0] if name.endswith("_s") and name != "cpu_s"}  # fmt: skip
    return medians | {"search_memory": starts[-1]["search_memory"]}


if __name__ == "__main__":
    main()
