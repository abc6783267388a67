"""A store knows the analyzer that made its index, and has the index made again when that changes."""

import pytest

from ricordo import Memory
from ricordo.storage.database.connection import connect


async def found(path, question):
    async with Memory.open(path, embedder=None) as memory:
        return [hit.content for hit in (await memory.search(question)).hits]


@pytest.mark.parametrize("name", ["me.db", "memories/"])
async def test_an_index_of_another_analyzer_is_made_again_when_the_store_is_opened(tmp_path, name):
    path = tmp_path / name
    async with Memory.open(path, embedder=None) as memory:
        await memory.remember("Anna keeps three bees")
        closed = await memory.remember("Anna keeps two goats")
        await memory.forget(closed.id)
    with_index = path if path.is_file() else path / "index.db"
    connection = connect(with_index, durability="disk", patience_s=1)
    connection.execute("INSERT INTO nodes_fts (nodes_fts) VALUES ('delete-all')")
    connection.execute("UPDATE meta SET value = '0' WHERE name = 'analyzer'")
    connection.close()

    assert await found(path, "bees") == ["Anna keeps three bees"]
    async with Memory.open(path, embedder=None) as memory:
        report = await memory.doctor()
    assert [finding for finding in report.findings if not finding.ok] == []
