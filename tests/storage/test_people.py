"""Entities: counts, before-images, one commit per change, and speed with a hundred thousand facts."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope, Settings
from ricordo.retrieval.inspection import profile
from ricordo.storage.database.connection import connect
from ricordo.storage.database.snapshot import DatabaseSnapshot

FACTS = 100_000


def opened(path: Path) -> Memory:
    return Memory.open(path, embedder=None, settings=Settings(durability="process"))


def rows(path: Path, query: str) -> list[Any]:
    connection = connect(path, read_only=True, patience_s=1)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def famous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred thousand facts about one person, made by copying a row, which is faster than `remember`."""
    path = tmp_path_factory.mktemp("people") / "m.db"

    async def begin() -> None:
        async with opened(path) as memory:
            await memory.add("My wife is Sarah")
            await memory.remember("Sarah and Tom bake bread", about=["Sarah", "Tom"])
            await memory.settle(600)

    asyncio.run(begin())
    connection = connect(path, patience_s=5)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(nodes)")]
    taken = ", ".join("'n' || s.value" if name == "id" else name for name in columns if name != "key")
    kept = ", ".join(name for name in columns if name != "key")
    connection.execute(f"""
        BEGIN;
        INSERT INTO nodes ({kept})
          WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < {FACTS})
          SELECT {taken} FROM (SELECT * FROM nodes WHERE type = 'semantic') CROSS JOIN s;
        INSERT INTO subjects SELECT n.key, e.key, 'sarah', 1, x'00' FROM nodes n CROSS JOIN entities e
          WHERE n.id LIKE 'n%' AND e.canonical_name = 'Sarah';
        INSERT INTO found_mentions SELECT node, entity FROM subjects WHERE true ON CONFLICT DO NOTHING;
        COMMIT;
        ANALYZE""")
    connection.close()
    return path


@pytest.mark.parametrize("name", ["Sarah", "my wife", "Сарой"])
def test_a_profile_of_a_hundred_thousand_facts_does_not_read_them_all(famous: Path, name: str) -> None:
    connection = connect(famous, read_only=True, patience_s=1)
    snapshot, took = DatabaseSnapshot(connection), []
    for _ in range(10):
        started = time.thread_time()
        found = profile(snapshot, Scope(owner="me"), name, own_names=(), now=1 << 45, limit=10)
        took.append((time.thread_time() - started) * 1_000)
    connection.close()
    assert found.mention_count >= FACTS
    assert len(found.facts) == 10
    assert min(took) < 200, took  # benchmarks/people.py measures it; reading all takes seconds


async def test_a_wrong_count_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as memory:
        await memory.remember("Sarah bakes", about=["Sarah"])
    connection = connect(path, patience_s=1)
    connection.execute("UPDATE entity_counts SET nodes = 7")
    connection.close()
    async with opened(path) as memory:
        report = await memory.doctor()
    assert [finding.check for finding in report.findings if not finding.ok] == ["counts"]


async def test_every_change_to_people_is_one_commit_with_before_images(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with opened(path) as memory:
        await memory.remember("Sarah bakes", about=["Sarah"])
        await memory.remember("Sal runs", about=["Sal"])
        await memory.add_entity("Alexander", aliases=["Alex"])
        await memory.remember("Alex rows", about=["Alex"])
        await memory.add("My wife is Sarah")
        seen = {}
        for name, call in (
            ("merge", lambda: memory.merge("Sarah", "Sal")),
            ("split", lambda: memory.split("Alexander", ["Alex"])),
            ("wife", lambda: memory.relate("Alexander", "wife")),
        ):
            before = (await memory.log(1))[0].seq
            await call()
            after = (await memory.log(1))[0].seq
            assert after == before + 1
            seen[name] = after
        assert (await memory.doctor()).ok
    held = "SELECT tbl, before FROM history WHERE seq = {}"
    images = {
        name: [(tbl, json.loads(before)) for tbl, before in rows(path, held.format(seq))] for name, seq in seen.items()
    }
    assert sorted(tbl for tbl, _ in images["merge"]) == ["entities", "entities"]
    assert {image["merged_into"] for _, image in images["merge"]} == {None}
    assert sorted(tbl for tbl, _ in images["split"]) == ["aliases", "subjects"]
    assert {image.get("alias", image.get("name")) for _, image in images["split"]} == {"Alex", "alex"}
    assert [(tbl, image["valid_until"]) for tbl, image in images["wife"]] == [("relations", None)]
