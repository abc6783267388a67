"""Conversion between file and folder, and checks and repairs of a folder."""

from __future__ import annotations

import pytest
from tests.storage.folders import everything, without_index
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing, raw

from ricordo import InvalidError, Memory


async def lived(place, *, steps=30, seed=3):
    clock = HandClock()
    async with Memory.open(place, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, place, seed=seed)
        for _ in range(steps):
            await history.step()
        await memory.settle(600)


async def test_migrate_converts_both_ways_completely(tmp_path):
    file, folder, back = tmp_path / "me.db", tmp_path / "memories", tmp_path / "back.db"
    await lived(file)
    async with Memory.open(file, **OPTIONS) as memory:
        await memory.migrate(f"{folder}/")
    async with Memory.open(file, **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    whole = everything(folder)
    without_index(folder)
    async with Memory.open(f"{folder}/", **OPTIONS) as memory:
        await memory.settle(600)
        assert failing(await memory.doctor()) == set()
        await memory.migrate(back)
        await memory.add("life goes on in the folder")
    (folder.parent / "b").mkdir()
    back.rename(tmp_path / "b" / "index.db")
    assert everything(tmp_path / "b") == whole
    async with Memory.open(tmp_path / "b" / "index.db", **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
        await memory.add("and in the file")


async def test_nothing_is_overwritten(tmp_path):
    await lived(tmp_path / "me.db", steps=3)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    async with Memory.open(tmp_path / "me.db", **OPTIONS) as memory:
        with pytest.raises(InvalidError):
            await memory.migrate(f"{tmp_path}/full/")
        with pytest.raises(InvalidError):
            await memory.migrate(tmp_path / "me.db")
        with pytest.raises(InvalidError, match="single file"):
            await memory.rebuild_index()


async def test_an_index_can_be_rebuilt_while_the_memory_is_open(tmp_path):
    folder = tmp_path / "memories"
    await lived(f"{folder}/")
    before = everything(folder)
    told = []
    async with Memory.open(f"{folder}/", **OPTIONS) as memory, Memory.open(f"{folder}/", **OPTIONS) as other:
        await memory.remember("Zoe keeps bees")
        assert await memory.rebuild_index(progress=lambda done, total: told.append((done, total))) > 10
        for each in (memory, other):
            assert (await each.query("bees")).hits[0].content == "Zoe keeps bees"
        await other.remember("Zoe sells honey")
        await memory.remember("Zoe has a hat")
        assert len((await memory.query("Zoe")).hits) == 3
        assert failing(await memory.doctor()) == set()
    assert told[-1][0] == told[-1][1] > 0
    assert len(everything(folder)["nodes"]) == len(before["nodes"]) + 3


async def test_doctor_makes_safe_repairs(tmp_path):
    folder = tmp_path / "memories"
    await lived(f"{folder}/")
    connection = raw(folder / "index.db")
    connection.execute("DELETE FROM slots")
    connection.execute("UPDATE shelves SET nodes = nodes + 1")
    connection.close()
    async with Memory.open(f"{folder}/", **OPTIONS) as memory:
        (folder / "memories.jsonl").chmod(0o644)
        assert failing(await memory.doctor()) == {"who can read", "slots", "counts"}
        assert (await memory.doctor(fix=True)).ok
        with (folder / "memories.jsonl").open("a") as file:
            file.write('{"content": "x"}\n')
        assert failing(await memory.doctor()) <= {"plain files"}, "background work may have followed it already"
        await memory.add("a write follows the files first")
        assert failing(await memory.doctor()) == set()


async def test_missing_vectors_are_computed_after_a_rebuild(tmp_path):
    """A new index restarts its removal count; readers with a higher old count missed removals."""
    folder = tmp_path / "memories"
    async with Memory.open(f"{folder}/", **OPTIONS) as memory:
        nodes = [await memory.remember(f"fact {number}") for number in range(8)]
        await memory.settle(600)
        for node in nodes[:6]:
            await memory.update(node.id, content=f"{node.content}, altered")
            await memory.settle(600)
        await memory.rebuild_index()
        await memory.update(nodes[0].id, content="fact 0, altered again")
        await memory.settle(600)
        stats = await memory.stats()
        assert (stats.embedded, stats.embedding_missing) == (8, 0)


async def test_a_snapshot_knows_which_index_it_reads_while_another_one_replaces_it(tmp_path):
    """Work that went on from a snapshot of the old index took its counts for those of the new one."""
    async with Memory.open(f"{tmp_path}/memories/", **OPTIONS) as memory:
        await memory.remember("a fact")
        store = memory._engine.store

        def during_a_rebuild(snapshot):
            before = snapshot.generation
            store.index.rebuild()
            return before, snapshot.generation

        before, meanwhile = await store.read(during_a_rebuild)
        after = await store.read(lambda snapshot: snapshot.generation)
        assert before == meanwhile != after
        assert await store.derive(lambda snapshot: snapshot.generation) == after
