"""Cached turns equal a fresh read of the store, whatever was written in between."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.storage.making import ME, closing, commit, fact, said

from ricordo.model import Scope
from ricordo.storage.database import turns
from ricordo.storage.database.candidates import read_all_turns
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.turns import TurnTable, live_turns
from ricordo.text.analyzer import index_terms

SEEDS = range(6)


def around(snapshot, table, keys, best):
    """Return what a search reads of a table: the candidates' rows and their order."""
    chosen = np.array(sorted(keys), np.int64), np.array(sorted(best), np.int64)
    turns, size = table.around(snapshot, *chosen, reach=2, allowed=None, spaces=snapshot.visible(ME))
    order = turns.keys[turns.nearby].tolist()
    speakers = [turns.names[place] for place in turns.speakers]
    plain = turns.keys.tolist(), turns.sessions.tolist(), turns.event_times.tolist(), turns.lengths.tolist()
    return size, order, speakers, plain, turns.counts(["lake", "boat"]).tolist()


def both(snapshot, keys, best, *, whole):
    with snapshot.turns(snapshot.visible(ME)) as kept:
        if whole:
            kept.read_all(snapshot, live_turns(snapshot, snapshot.visible(ME)))
        found = around(snapshot, kept, keys, best)
    fresh = TurnTable()
    fresh.follow(snapshot, snapshot.visible(ME))
    return found, around(snapshot, fresh, keys, best)


@pytest.mark.parametrize("seed", SEEDS)
async def test_cached_turns_equal_a_fresh_read(store, seed):
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
    """Write a message in one of three sessions, not always in order, or a fact, or close something."""
    what = chance.random()
    if what < 0.7 or not alive:
        session = chance.choice(["a", "b", "c"])
        talk = [
            said(
                chance.choice(["the lake", "a boat", "rain"]),
                minutes=chance.randint(0, 500),
                session=session,
                speaker=chance.choice(["Ann", "Bob", None]),
            )
            for _ in range(chance.randint(1, 5))
        ]
        alive += talk
        await commit(store, add=tuple(talk))
    elif what < 0.8:
        await commit(store, add=(fact("a boat on the lake"),))
    else:
        await commit(store, close=(closing(alive.pop(chance.randrange(len(alive)))),))


@pytest.mark.parametrize("close", [4, 0])
async def test_turns_read_in_bulk_equal_those_read_one_by_one(store, monkeypatch, close):
    monkeypatch.setattr(turns, "_CLOSE", close)
    who, what = ("Ann", "Боб", None), ("a boat", "the lake, the lake", "a boat on the lake")
    talk = [said(what[n % 3], minutes=n, session=f"s{n % 2}", speaker=who[n // 4]) for n in range(12)]
    await commit(store, add=tuple(talk))
    await commit(store, Scope(owner="somebody else"), add=(said("the lake", owner="somebody else"),))
    await commit(store, close=(closing(talk[4]), closing(talk[7])))

    def seen(tx):
        keys = live_turns(tx, tx.visible(ME))
        read_all_turns(tx, tx.visible(ME))
        fresh = TurnTable()
        fresh.follow(tx, tx.visible(ME))
        with tx.turns(tx.visible(ME)) as table:
            kept = len(table.words_of(np.arange(1, 14)).keys)
            return keys.tolist(), kept, around(tx, table, keys, keys), around(tx, fresh, keys, keys)

    keys, kept, together, apart = await store.read(seen)
    assert keys == [1, 2, 3, 4, 6, 7, 9, 10, 11, 12] and kept == len(keys)
    assert together == apart


async def test_more_new_turns_than_the_cache_holds_are_not_missed(store):
    await commit(store, add=tuple(said("the lake", minutes=n, session=f"s{n % 3}") for n in range(9)))
    table = TurnTable(most=12)

    def seen(tx):
        keys = [row[0] for row in tx.connection.execute("SELECT key FROM live_nodes WHERE key < 10")]
        fresh = TurnTable()
        mine = tx.visible(ME)
        assert fresh.follow(tx, mine) and table.follow(tx, mine)
        return around(tx, table, keys, keys), around(tx, fresh, keys, keys)

    first, same = await store.read(seen)
    assert first == same
    await commit(store, add=tuple(said("a boat", minutes=n, session=f"s{n // 10 - 4}") for n in range(40, 70)))
    kept, fresh = await store.read(seen)
    assert kept == fresh


async def test_an_older_snapshot_gets_its_own_table(store):
    await commit(store, add=tuple(said("the lake", minutes=n, session="a") for n in range(5)))
    first = await store.read(lambda tx: tx._cache)
    assert first is await store.read(lambda tx: tx._cache), "readers share what they keep"

    def ahead(tx):
        with tx.turns(tx.visible(ME)) as table:
            table._last += 1
        with tx.turns(tx.visible(ME)) as other:
            return other is table

    assert not await store.read(ahead)


TEXTS = (
    "the lake",
    "a boat on the lake, O'Brien's boat",
    "Привет, мир! Мира ёлка",
    "日本語のテキスト",
    "café İstanbul",
    "foo_bar 1,234.5 a.b-c",
    "🙂 straße ſo",
    "x" * 300,
    'lake·1e lake" OR boat*',
    "",
)
TERMS = (*dict.fromkeys(term for text in TEXTS for term in index_terms(text)), "unsaid")


def postings(snapshot, *, most=1_000, shelves=("k", "e")):
    return [keys.tolist() for keys in snapshot.postings(ME, shelves, TERMS, archived=False, most=most)]


def in_memory(snapshot):
    """Return whether the postings of all turns are cached."""
    with snapshot.turns(snapshot.visible(ME)) as table:
        return table.holding(TERMS, snapshot.visible(ME)) is not None


def told_alike(snapshot):
    """Cached postings equal those of a fresh full-text query."""
    fresh = DatabaseSnapshot(snapshot.connection)
    for most in (1_000, 2):
        for shelves in (("k", "e"), ("k",), ("k", "e", "c")):
            told = {"most": most, "shelves": shelves}
            assert postings(snapshot, **told) == postings(fresh, **told), told
    return in_memory(snapshot)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_postings_in_memory_equal_the_full_text_index(store, seed):
    chance = random.Random(seed)
    alive, other, used = [], Scope(owner="somebody else"), 0
    for step in range(60):
        what = chance.random()
        if what < 0.6 or not alive:
            talk = [
                said(
                    chance.choice(TEXTS),
                    minutes=step,
                    session=chance.choice(["a", None]),
                    speaker="Ann Lake",
                    tags=("boat",),
                )
                for _ in range(chance.randint(1, 4))
            ]
            alive += talk
            await commit(store, add=tuple(talk))
        elif what < 0.7:
            await commit(store, other, add=(said("the lake", owner=other.owner),))
        elif what < 0.8:
            await commit(store, add=(fact(chance.choice(TEXTS[:-1])),))
        elif what < 0.85:
            await commit(store, close=(closing(alive.pop(chance.randrange(len(alive)))),))
        else:
            await store.read(lambda tx: tx.load_turns(ME))
            assert await store.read(in_memory)
        used += await store.read(told_alike)
    assert used > 10


async def test_consolidated_turns_use_the_full_text_index(store):
    talk = [said("the lake", minutes=n) for n in range(4)]
    await commit(store, add=tuple(talk))
    await store.read(lambda tx: tx.load_turns(ME))
    assert await store.read(told_alike)
    await commit(store, consolidated=(talk[1].id,))
    lake = TERMS.index("lake")
    assert await store.read(lambda tx: postings(tx)[lake]) == [1, 3, 4]
    assert await store.read(lambda tx: postings(tx, shelves=("k", "e", "c"))[lake]) == [1, 2, 3, 4]


async def test_many_new_turns_use_the_full_text_index(store, monkeypatch):
    monkeypatch.setattr(turns, "_LATER_MOST", 5)
    await commit(store, add=tuple(said("the lake", minutes=n) for n in range(3)))
    await store.read(lambda tx: tx.load_turns(ME))
    for expected in (True, False, False):
        await commit(store, add=tuple(said("a boat", minutes=n) for n in range(4)))
        assert await store.read(told_alike) is expected
