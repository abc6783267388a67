"""A single-file backup of a database is restored by moving it to an empty store."""

from __future__ import annotations

from pathlib import Path

from ricordo import Memory, Settings
from tests.contract import server

OPTIONS = {"embedder": None, "settings": Settings(durability="process")}


async def test_a_backup_of_a_database_is_restored_by_moving_it_to_an_empty_one(where: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with Memory.open(where, **OPTIONS) as memory:
        kept = await memory.remember("I like tea")
        await memory.backup(copy)
        await memory.remember("I like coffee")
    again = server.location(tmp_path / "again")
    async with Memory.open(copy, **OPTIONS) as memory:
        await memory.migrate(again)
    async with Memory.open(again, **OPTIONS) as memory:
        assert [node.id for node in (await memory.list()).nodes] == [kept.id]
        assert (await memory.doctor()).ok
