"""Commits: chained, hashed, atomic, and with before-images."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.storage.making import NOON, closing, commit, fact, opened, rows, said

from ricordo.errors import NotFoundError, StoreError
from ricordo.model import Edge, Entity
from ricordo.storage.database.hashes import bare, chain, digest, former_hash, is_sealed

ANNA = Entity(id="anna", type="person", name="Anna", first_seen=NOON, last_updated=NOON, owner="me")

SEALED = ("nodes", "sessions", "entities", "aliases", "subjects", "edges")


def filled(path):
    """A store with one change of each kind, and its nodes."""
    tea, coffee, hello = fact("likes tea"), fact("likes coffee"), said("hello", session="s")

    async def fill(store):
        await commit(store, add=(tea, hello), entities=(ANNA,), subjects=((tea.id, "anna"),))
        await commit(store, add=(coffee,), link=(Edge(source=coffee.id, target=tea.id, type="supersedes"),))
        await commit(store, close=(closing(tea),))
        await commit(store, put=(replace(coffee, content="likes strong coffee"),))

    opened(path, fill)
    return tea, coffee, hello


def test_each_commit_continues_the_chain_of_the_one_before(tmp_path):
    filled(tmp_path / "m.db")
    head = b""
    listed = rows(
        tmp_path / "m.db",
        "SELECT seq, space, at, origin, run_id, substr(seal, -16), digest, hash FROM commits ORDER BY seq",
    )
    for row in listed:
        assert chain(head, row[:-1]) == row[-1]
        head = row[-1]
    assert [row[0] for row in listed] == [1, 2, 3, 4]


@pytest.mark.parametrize("table", SEALED)
def test_the_row_hash_covers_all_columns_of_durable_tables(tmp_path, table):
    filled(tmp_path / "m.db")
    found = rows(tmp_path / "m.db", f"SELECT * FROM {table}")
    assert found
    assert all(is_sealed(row[:-1], row[-1]) for row in found)


def test_a_commit_digest_covers_its_rows_and_replaced_versions(tmp_path):
    tea, _, _ = filled(tmp_path / "m.db")
    replaced = rows(tmp_path / "m.db", "SELECT tbl, row, before FROM history WHERE seq = 4")
    assert len(replaced) == 1
    (seal,) = rows(tmp_path / "m.db", "SELECT seal FROM nodes WHERE commit_seq = 4")[0]
    assert rows(tmp_path / "m.db", "SELECT digest FROM commits WHERE seq = 4") == [
        (digest([bare(seal), former_hash(*replaced[0])]),)
    ]
    assert rows(tmp_path / "m.db", "SELECT commit_seq FROM nodes WHERE id = ?", (tea.id,)) == [(3,)]


def test_equal_rows_have_different_hashes(tmp_path):
    """Otherwise the hash of an erased short secret could be guessed."""

    async def fill(store):
        await commit(store, add=(fact("4711"), fact("4711")))

    opened(tmp_path / "m.db", fill)
    seals = rows(tmp_path / "m.db", "SELECT seal FROM nodes")
    assert seals[0] != seals[1]


def test_closing_twice_changes_nothing_the_second_time(tmp_path):
    node = fact("likes tea")

    async def change(store):
        await commit(store, add=(node,))
        await commit(store, close=(closing(node),))
        await commit(store, close=(closing(node),))
        return (await store.doctor()).ok

    assert opened(tmp_path / "m.db", change)
    assert rows(tmp_path / "m.db", "SELECT count(*) FROM history") == [(1,)]


def test_a_change_of_missing_rows_writes_nothing(tmp_path):
    node = fact("likes tea")

    async def change(store):
        with pytest.raises(NotFoundError):
            await commit(store, add=(node,), link=(Edge(source=node.id, target="no such id", type="causal"),))
        with pytest.raises(NotFoundError):
            await commit(store, add=(node,), subjects=((node.id, "nobody"),))

    opened(tmp_path / "m.db", change)
    for table in ("nodes", "commits", "shelves", "spaces", "nodes_fts_docsize"):
        assert rows(tmp_path / "m.db", f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_change_the_schema_refuses_writes_nothing(tmp_path):
    node = fact("likes tea")

    async def change(store):
        await commit(store, add=(node,))
        with pytest.raises(StoreError, match="refused"):
            await commit(store, add=(fact("neighbour"), replace(node, content="same id")))

    opened(tmp_path / "m.db", change)
    assert rows(tmp_path / "m.db", "SELECT count(*) FROM nodes") == [(1,)]
    assert rows(tmp_path / "m.db", "SELECT count(*) FROM commits") == [(1,)]


def test_keys_are_never_reused(tmp_path):
    """Indexes in other processes refer to them."""
    path = tmp_path / "m.db"

    async def fill(store):
        await commit(store, add=(fact("one"), fact("two")), entities=(ANNA,))

    async def refill(store):
        await commit(store, add=(fact("three"),), entities=(replace(ANNA, id="berta", name="Berta"),))

    opened(path, fill)
    for table in ("aliases", "entities", "nodes"):
        rows(path, f"DELETE FROM {table}")
    opened(path, refill)
    assert rows(path, "SELECT key FROM nodes") == [(3,)]
    assert rows(path, "SELECT key FROM entities") == [(2,)]


def test_history_is_plain_json(tmp_path):
    filled(tmp_path / "m.db")
    for (before,) in rows(tmp_path / "m.db", "SELECT before FROM history"):
        assert json.loads(before)["commit_seq"] > 0
