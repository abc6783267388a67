"""Time calls in a table of 1.11 million messages: an owner of 100,000, one of 10,000, and a thousand of 1,000.

    python benchmarks/postgres_scale.py ADDRESS --fill FILE.jsonl ...
    python benchmarks/postgres_scale.py ADDRESS FILE.jsonl ... [--rounds 100] [--out RESULT.json]

ADDRESS is a server on this machine. The messages are the turns of the FILEs (the form of `quality.py`), the questions
theirs. The owner of 10,000 is filled by the public API, with the hashing embedder; the others are copies of it in SQL
with keys, ids and index terms of their own, but without seals: `doctor` would complain. The store keeps owners apart by
roles. For each kind of call: its time, without that of the question's vector, and the processor time of this process
and of the server meanwhile, which includes the vector and work that the call before left to the background.
Milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ricordo import Memory, Message, Results, Scope, Settings

TEN, HUNDRED, SMALL = "ten thousand", "hundred thousand", 1_000
SESSIONS = 500
_TABLES = {
    "sessions": ("key", {"key": "key + {sessions}", "space": "{space}", "session_id": "'{n}-' || session_id"}),
    "nodes": (
        "key",
        {"key": "key + {nodes}", "id": "'{n}-' || id", "space": "{space}", "session": "session + {sessions}"},
    ),
    "traits": ("node", {"node": "node + {nodes}", "space": "{space}", "session": "session + {sessions}"}),
    "words": (
        "node",
        {
            "node": "node + {nodes}",
            "space": "{space}",
            "terms": "(SELECT array_agg(split_part(t, '·', 1) || '·{space}' || shelf) FROM unnest(terms) t)",
        },
    ),
    "embeddings": ("node", {"id": "id + {embeddings}", "node": "node + {nodes}", "space": "{space}"}),
}


def read(files: Sequence[Path]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the turns of some files as (speaker, text), and their questions."""
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    turns = [(row["speaker"], row["text"]) for row in rows if row["kind"] == "turn" and row.get("text")]
    return turns, [row["question"] for row in rows if row["kind"] == "query"]


async def fill_one(place: str, turns: Sequence[tuple[str, str]]) -> None:
    """Store the owner of 10,000."""
    dice = random.Random(3)
    async with Memory.open(place, embedder="hashing", settings=Settings(durability="process", auto_gc=False)) as memory:
        me = memory.scoped(Scope(owner=TEN))
        for session in range(SESSIONS):
            said = [(who, f"{text} {dice.randrange(1_000)}") for who, text in dice.choices(turns, k=20)]
            await me.add_many([Message(text=text, speaker=who, session=f"s{session}") for who, text in said])
        await memory.settle(3_600)


def copy_owners(address: str, schema: str) -> None:
    """Copy the owner of 10,000: ten times into one owner, and a tenth of it into each of a thousand."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        run: Any = connection.execute
        run(f'SET search_path = "{schema}"; SET session_replication_role = replica; SET synchronous_commit = off')

        def value(statement: str) -> Any:
            return run(statement).fetchone()[0]

        source = value(f"SELECT key FROM spaces WHERE owner = '{TEN}'")
        keys = [key for (key,) in run(f"SELECT key FROM nodes WHERE space = {source} ORDER BY key")]
        steps = {
            "nodes": value("SELECT max(key) FROM nodes"),
            "sessions": value("SELECT max(key) FROM sessions"),
            "embeddings": value("SELECT max(id) FROM embeddings"),
        }
        made = "INSERT INTO spaces (owner, chat) VALUES ('{}', '') RETURNING key"
        copies = [(value(made.format(HUNDRED)), 0, len(keys))] * 10
        for number in range(SMALL):
            first = number % 10 * (len(keys) // 10)
            copies.append((value(made.format(f"owner {number}")), first, first + len(keys) // 10))
        for number, (space, first, after) in enumerate(copies, 1):
            given = {"n": number, "space": space, **{name: number * step for name, step in steps.items()}}
            with connection.transaction():
                _copy(run, source, (keys[first], keys[after - 1]), given)
        others = f"space != {source}"
        sums = "space, shelf, count(*), sum(length(content))"
        run(f"INSERT INTO shelves SELECT {sums} FROM nodes WHERE {others} GROUP BY 1, 2")
        run(
            "INSERT INTO centres SELECT model, s.key, shelf, count, vector FROM centres, spaces s"
            f" WHERE space = {source} AND s.key != {source}"
        )
        for table in ("nodes", "sessions"):
            run(f"UPDATE counters SET last = (SELECT max(key) FROM {table}) WHERE tbl = '{table}'")
        run("SELECT setval(pg_get_serial_sequence('embeddings', 'id'), (SELECT max(id) FROM embeddings))")
        run("VACUUM ANALYZE")


def _copy(run: Any, source: int, span: tuple[int, int], given: dict[str, int]) -> None:
    columns = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND table_name = %s ORDER BY ordinal_position"
    )
    for table, (key, changed) in _TABLES.items():
        values = [changed.get(name, name).format(**given) for (name,) in run(columns, (table,))]
        among = f"{key} BETWEEN {span[0]} AND {span[1]}"
        if table == "sessions":
            among = f"key IN (SELECT session FROM nodes WHERE {among})"
        run(f"INSERT INTO {table} SELECT {', '.join(values)} FROM {table} WHERE space = {source} AND {among}")


def _server_ms() -> float:
    """Return the processor time that the server has used for the role of callers, in milliseconds."""
    used = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"ricordo_app" in (process / "cmdline").read_bytes():
                used += int((process / "schedstat").read_text().split()[0]) / 1e6
        except OSError:
            continue
    return used


async def timed(calls: Sequence[Callable[[], Awaitable[object]]]) -> dict[str, Any]:
    """Make some calls after five others; return the median and the 95th of a hundred of each measure."""
    taken: list[tuple[float, float, float]] = []
    for call in calls:
        server, client, began = _server_ms(), time.process_time(), time.perf_counter()
        answer = await call()
        ms = (time.perf_counter() - began) * 1e3
        if isinstance(answer, Results) and answer.trace is not None:
            ms -= answer.trace.timings_ms["embedding"]
        taken.append((ms, (time.process_time() - client) * 1e3, _server_ms() - server))
        await asyncio.sleep(0.1)
    found: dict[str, Any] = {"n": len(taken) - 5}
    for name, each in zip(("wall", "client", "server"), zip(*taken[5:], strict=True), strict=True):
        ordered = sorted(each)
        places = {"p10": 0.1, "p50": 0.5, "p95": 0.95}
        found[name] = {place: round(ordered[int(len(ordered) * share)], 2) for place, share in places.items()}
    return found


async def measured(place: str, questions: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return the times of searches by each kind of owner, and of an awaited `add`."""
    dice = random.Random(5)
    async with Memory.open(place, embedder="hashing", settings=Settings(durability="disk", auto_gc=False)) as memory:
        await memory.settle(3_600)  # an earlier run may have left messages without vectors

        def searches(owners: Sequence[str]) -> list[Callable[[], Awaitable[object]]]:
            asked = [
                (memory.scoped(Scope(owner=dice.choice(owners))), dice.choice(questions)) for _ in range(rounds + 5)
            ]
            return [lambda me=me, text=text: me.search(text, type="any", trace=True) for me, text in asked]  # type: ignore[misc]

        found = {}
        for name, owners in {
            "an owner of 1,000": ["owner 7"],
            "any of 1,000 owners of 1,000": [f"owner {number}" for number in range(SMALL)],
            "an owner of 10,000": [TEN],
            "an owner of 100,000": [HUNDRED],
        }.items():
            found[f"search, {name}"] = await timed(searches(owners))
        me = memory.scoped(Scope(owner="owner 500"))
        adds = [lambda n=n: me.add(f"The garden is green, {n}", session="new") for n in range(rounds + 5)]
        found["add, awaited"] = await timed(adds)
        texts = [Message(text=dice.choice(questions), session="many") for _ in range(5_000)]
        began = time.perf_counter()
        server, client = _server_ms(), time.process_time()
        await me.add_many(texts)
        seconds = time.perf_counter() - began
        found["add_many of 5,000"] = {
            "messages a second": round(5_000 / seconds),
            "client, microseconds a message": round((time.process_time() - client) * 200),
            "server, microseconds a message": round((_server_ms() - server) / 5),
        }
        return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("address")
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--fill", action="store_true")
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    os.environ["RICORDO_TEST_POSTGRES"] = given.address
    from tests.contract.server import guarded_location

    from ricordo.storage.postgres.location import Location

    place = guarded_location(Path("/scale"))
    turns, questions = read(given.files)
    if given.fill:
        asyncio.run(fill_one(place, turns))
        copy_owners(given.address, Location.of(place).schema)
    result = {"load": os.getloadavg(), **asyncio.run(measured(place, questions, given.rounds))}
    report(result, given.out)


def report(result: dict[str, Any], out: Path | None) -> None:
    """Print a result as JSON, and write it to a file if one is given."""
    text = json.dumps(result, indent=2) + "\n"
    if out:
        out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
