"""Turns kept between searches are the turns a fresh look at the store finds, whatever was written in between."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.store.making import ME, closing, commit, fact, said

from ricordo.store import Store
from ricordo.store.sqlite.turns import TurnTable, live_turns

SEEDS = range(6)


@pytest.fixture
def store(tmp_path):
    opened = Store.open(tmp_path / "me.db", durability="process", reader_threads=2)
    yield opened
    opened.close()


def around(snapshot, table, keys, best):
    """What a search takes of a table: the candidates' rows and their order."""
    chosen = np.array(sorted(keys), np.int64), np.array(sorted(best), np.int64)
    turns, size = table.around(snapshot, *chosen, reach=2, allowed=None, spaces=snapshot.visible(ME))
    order = turns.keys[turns.nearby].tolist()
    speakers = [turns.names[place] for place in turns.speakers]
    plain = turns.keys.tolist(), turns.sessions.tolist(), turns.event_times.tolist(), turns.lengths.tolist()
    return size, order, speakers, plain, turns.counts(["lake", "boat"]).tolist()


def both(snapshot, keys, best, *, whole):
    with snapshot.turns() as kept:
        if whole:
            kept.read_all(snapshot, live_turns(snapshot, snapshot.visible(ME)))
        found = around(snapshot, kept, keys, best)
    fresh = TurnTable()
    fresh.follow(snapshot)
    return found, around(snapshot, fresh, keys, best)


@pytest.mark.parametrize("seed", SEEDS)
async def test_kept_turns_are_those_of_a_fresh_look(store, seed):
    chance = random.Random(seed)
    alive = []
    for step in range(40):
        await _something(store, chance, alive)
        keys = await store.read(lambda tx: [row[0] for row in tx.connection.execute("SELECT key FROM live_nodes")])
        wanted = chance.sample(keys, min(len(keys), chance.randint(1, 6)))
        whole = step == 20
        best = chance.sample(wanted, chance.randint(0, len(wanted)))
        kept, fresh = await store.read(lambda tx, a=wanted, b=best, c=whole: both(tx, a, b, whole=c))
        assert kept == fresh, (seed, step)


async def _something(store, chance, alive):
    """Talk in one of three sessions, not always in order, a fact, or the end of something."""
    what = chance.random()
    if what < 0.7 or not alive:
        session = chance.choice(["a", "b", "c"])
        talk = [said(chance.choice(["the lake", "a boat", "rain"]), minutes=chance.randint(0, 500), session=session,
                     speaker=chance.choice(["Ann", "Bob", None])) for _ in range(chance.randint(1, 5))]  # fmt: skip
        alive += talk
        await commit(store, add=tuple(talk))
    elif what < 0.8:
        await commit(store, add=(fact("a boat on the lake"),))
    else:
        await commit(store, close=(closing(alive.pop(chance.randrange(len(alive)))),))


async def test_more_new_turns_than_are_kept_are_not_overlooked(store):
    await commit(store, add=tuple(said("the lake", minutes=n, session=f"s{n % 3}") for n in range(9)))
    table = TurnTable(most=12)

    def seen(tx):
        keys = [row[0] for row in tx.connection.execute("SELECT key FROM live_nodes WHERE key < 10")]
        fresh = TurnTable()
        assert fresh.follow(tx) and table.follow(tx)
        return around(tx, table, keys, keys), around(tx, fresh, keys, keys)

    first, same = await store.read(seen)
    assert first == same
    await commit(store, add=tuple(said("a boat", minutes=n, session=f"s{n // 10 - 4}") for n in range(40, 70)))
    kept, fresh = await store.read(seen)
    assert kept == fresh


async def test_an_older_snapshot_gets_a_table_of_its_own(store):
    await commit(store, add=tuple(said("the lake", minutes=n, session="a") for n in range(5)))
    first = await store.read(lambda tx: tx._kept)
    assert first is await store.read(lambda tx: tx._kept), "readers share what they keep"

    def ahead(tx):
        with tx.turns() as table:
            table._last += 1
        with tx.turns() as other:
            return other is table

    assert not await store.read(ahead)
