"""Store-wide caches of readers are valid exactly until the next write."""

from __future__ import annotations

import asyncio

from tests.storage.making import ME, closing, commit, fact

from ricordo.storage.registry import open_store


def told(snapshot):
    """Return the size of each partition and the postings of a word, as a search gets them."""
    shelves = {shelf: snapshot.statistics.size(ME, (shelf,)) for shelf in "kec"}
    return shelves, snapshot.postings(ME, ("k", "e"), ["lake"], archived=False, most=10)[0].tolist()


def afresh(snapshot):
    """Return the same without any cache."""
    snapshot._unchanged = None
    return told(snapshot)


async def test_every_reader_sees_every_write(store, tmp_path):
    other = open_store(tmp_path / "me.db", durability="process")
    try:
        alive = []
        for step in range(12):
            node = fact(f"the lake {step}")
            alive.append(node)
            await commit(other if step % 2 else store, add=(node,))
            if step % 3 == 2:
                await commit(store, close=(closing(alive.pop(0)),))
            for kept in await asyncio.gather(*(store.read(told) for _ in range(4))):
                assert kept == await store.read(afresh)
                assert kept[0]["k"][0] == len(kept[1]) == min(len(alive), 10)
    finally:
        other.close()


async def test_a_snapshot_excludes_later_writes(store):
    await commit(store, add=(fact("the lake"),))
    loop = asyncio.get_running_loop()

    def before_and_after(snapshot):
        asyncio.run_coroutine_threadsafe(commit(store, add=(fact("another lake"),)), loop).result()
        return told(snapshot)

    assert (await store.read(before_and_after))[0]["k"][0] == 1
    for _ in range(4):
        assert (await store.read(told))[0]["k"][0] == 2


async def test_cached_reads_are_reused_until_a_write(store):
    await commit(store, add=(fact("the lake"),))

    def asked(snapshot):
        statements = []
        snapshot.connection.exec_trace = lambda _, sql, __: statements.append(sql) or True
        try:
            told(snapshot)
        finally:
            snapshot.connection.exec_trace = None
        return sum("FROM shelves" in sql for sql in statements)

    first = [await store.read(asked) for _ in range(6)]
    assert sum(first) <= 2, "once for each reader"
    await commit(store, add=(fact("a boat"),))
    assert sum([await store.read(asked) for _ in range(6)]) >= 1
