"""After an undo the durable data is what it was before, and derived data follows, for every kind of commit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.storage.canonical import Dump, canonical
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import raw, rows
from tests.storage.test_past import SEEDS

from ricordo import ConflictError, Memory, Scope
from ricordo.encoding.mentions import links
from ricordo.storage.database.history import truth_of
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.registry import open_store

STEPS = 40


async def check_derived(memory: Any, path: Any) -> None:
    """`doctor` finds nothing; exactly the right vectors and links exist."""
    await memory.settle(600)
    report = await memory.doctor()
    assert report.ok, [each for each in report.findings if not each.ok]
    assert rows(path, "SELECT count(*) FROM live_nodes WHERE key NOT IN (SELECT node FROM embeddings)") == [(0,)]
    spaces: dict[int, list[int]] = {}
    for key, space in rows(path, "SELECT key, space FROM nodes"):
        spaces.setdefault(space, []).append(key)
    connection = raw(path)
    wanted = {pair for space, keys in spaces.items() for pair in links(DatabaseSnapshot(connection), space, keys)}
    connection.close()
    assert set(rows(path, "SELECT node, entity FROM found_mentions")) == wanted


@pytest.mark.parametrize("seed", SEEDS)
async def test_undo_restores_the_previous_data_and_can_be_undone(tmp_path, seed):
    path, clock = tmp_path / "m.db", HandClock()
    async with Memory.open(path, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, path, seed=1_000 + seed)
        dumps: dict[int, Dump] = {0: canonical(path)}
        for step in range(STEPS):
            before = await history.commit()
            await history.step()
            made = await history.commit()
            dumps[made] = canonical(path)
            if made == before:
                continue
            if step % 3 == 0:
                await memory.settle(600)  # derived data must not block it
            undone = await memory.undo(made)
            dumps[undone.seq] = canonical(path)
            assert dumps[undone.seq] == dumps[before], undone
            if step % 3 == 1:
                await memory.settle(600)  # restored rows get their derived data again
            back = await memory.undo(undone.seq)
            dumps[back.seq] = canonical(path)
            assert dumps[back.seq] == dumps[made], back
        await check_derived(memory, path)


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_old_commit_is_undone_alone_or_with_what_builds_on_it(tmp_path, seed):
    path, clock = tmp_path / "m.db", HandClock()
    async with Memory.open(path, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, path, seed=2_000 + seed)
        for _ in range(STEPS):
            await history.step()
        last = await history.commit()
        for _ in range(8):
            number = history.dice.randrange(1, last + 1)
            before = canonical(path)
            try:
                undone = await memory.undo(number)
            except ConflictError as error:
                assert canonical(path) == before
                assert all(number < later for later in error.commits)
                if "already" in error.message:
                    continue
                undone = await memory.undo(number, with_later=True)
            again = await memory.undo(undone.seq)
            assert canonical(path) == before, (number, again)
        await check_derived(memory, path)


async def test_every_change_can_be_undone_in_reverse_order(tmp_path):
    path, clock = tmp_path / "m.db", HandClock()
    async with Memory.open(path, clock=clock, **OPTIONS) as memory:
        empty = canonical(path)
        history = History(memory, clock, path, seed=3)
        for _ in range(STEPS):
            await history.step()
        for number in range(await history.commit(), 0, -1):
            await memory.undo(number)
        assert canonical(path) == empty
        await check_derived(memory, path)
        assert (await memory.stats()).nodes == {}


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(tmp_path / "m.db", clock=HandClock(), **OPTIONS) as opened:
        yield opened


async def test_restored_memories_are_found_by_meaning_again(tmp_path, memory):
    await memory.remember("I like tea")
    undone = await memory.undo(1)
    await memory.settle(600)
    await memory.remember("I like coffee")
    await memory.settle(600)
    await memory.undo(undone.seq)
    await check_derived(memory, tmp_path / "m.db")


async def test_undo_does_not_restore_erased_data(tmp_path, memory):
    """Remove the row and every before-image of it, as an erasure does."""
    kept = await memory.remember("I like tea")
    gone = await memory.remember("my number is 12345")
    await memory.forget(kept.id)
    await memory.forget(gone.id)
    await memory.settle(600)
    connection = raw(tmp_path / "m.db")
    (key,) = connection.execute("SELECT key FROM nodes WHERE id = ?", (gone.id,)).fetchone()
    for table, column in (("embeddings", "node"), ("nodes", "key")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))
    connection.execute("DELETE FROM history WHERE tbl = 'nodes' AND row = ?", (str(key),))
    connection.close()
    for number in (2, 4):
        with pytest.raises(ConflictError, match="nothing is left"):
            await memory.undo(number)
    await memory.undo(3)
    assert [node.id for node in (await memory.list()).nodes] == [kept.id]


async def test_a_removed_name_links_nothing(tmp_path, memory):
    """Rows of any durable table can be written and undone, even if no method does so yet."""
    from tests.storage.making import NOON, WHY

    from ricordo.model import Change, RowId, RowState
    from ricordo.text.names import same_name_key

    await memory.add_entity("Katharina")
    node = await memory.remember("Kadja is late, Katharina said")
    other = await memory.remember("Kadja is late")
    (space, entity) = rows(tmp_path / "m.db", "SELECT space, key FROM entities")[0]
    alias = {"space": space, "folded": "kadja", "entity": entity, "alias": "Kadja", "sound": same_name_key("Kadja")}
    row = RowId(table="aliases", key=(space, "kadja", entity, "Kadja"))
    change = Change(rows=(RowState(row=row, values=alias),))
    await memory._engine.store.write(lambda _: (change, None), scope=Scope(owner="me"), reason=WHY, at=NOON)
    await memory.settle(600)
    assert {each.id for each in (await memory.list(entity="Katharina")).nodes} == {node.id, other.id}
    made = (await memory.log(1))[0].seq
    await memory.undo(made)
    await check_derived(memory, tmp_path / "m.db")
    assert {each.id for each in (await memory.list(entity="Katharina")).nodes} == {node.id}
    assert {each.id for each in (await memory.list(entity="Kadja", as_of=made)).nodes} == {node.id, other.id}


def test_every_durable_table_keeps_before_images_of_all_columns(tmp_path):
    """A table without them could be neither undone nor seen in the past."""
    open_store(tmp_path / "m.db").close()
    connection = raw(tmp_path / "m.db")
    truth = truth_of(connection)
    triggers = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
    indexes = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'index'"))
    assert truth.tables.keys() >= {"nodes", "edges", "entities", "aliases", "subjects", "sessions"}
    for table in truth.tables.values():
        own = {"key"} if table.key == ("key",) else set()
        for kind in ("update", "delete"):
            trigger = triggers[f"{table.name}_history_{kind}"]
            assert [name for name in table.columns if name not in own and f"'{name}', " not in trigger] == []
        assert f"ON {table.name} (commit_seq)" in "".join(filter(None, indexes.values())), table.name
    connection.close()


async def test_a_memory_that_comes_back_has_its_meaning_at_once(tmp_path):
    async with Memory.open(tmp_path / "me.db", embedder="hashing") as memory:
        rome = await memory.remember("Anna lives in Rome")
        await memory.settle()
        await memory.correct(rome.id, "Anna lives in Milan")
        await memory.settle()
        await memory.search("where does Anna live")
        await memory.undo((await memory.log(1))[0].seq)
        found = await memory.search("where does Anna live")
        assert "meaning" in {share.strategy for share in found[0].why}
