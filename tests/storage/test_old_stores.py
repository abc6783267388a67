"""Stores of every schema version open, keep their data, and work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.storage.canonical import canonical
from tests.storage.folders import everything
from tests.storage.making import failing, rows

from ricordo import Memory, StoreError
from ricordo.storage.database.schema import Migration, migrations
from ricordo.storage.registry import open_store

STORES = Path(__file__).parents[1] / "fixtures" / "stores"
NEWEST = migrations()[-1].version
VERSIONS = range(1, NEWEST + 1)
NEXT = Migration(
    version=NEWEST + 1,
    name="moods",
    sql="ALTER TABLE sessions ADD COLUMN mood TEXT; CREATE INDEX sessions_by_mood ON sessions (mood);",
)
"""An invented migration: a durable table gets a column."""


def held(version: int) -> dict:
    """The original content of the store of a version, table by table. A table that came later is empty."""
    return {"members": [], **json.loads((STORES / f"schema_{version}.json").read_text("utf-8"))}


def now(index: Path) -> dict:
    return json.loads(json.dumps(canonical(index)))


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_older_file_opens_and_works(tmp_path, version):
    path = tmp_path / "me.db"
    shutil.copyfile(STORES / f"schema_{version}.db", path)
    path.chmod(0o600)
    async with Memory.open(path, embedder="hashing") as memory:
        assert failing(await memory.doctor()) == set()
    assert now(path) == held(version)
    async with Memory.open(path, embedder="hashing") as memory:
        assert [hit.content for hit in (await memory.query("sencha")).hits] == ["Sarah likes sencha"]
        await memory.remember("life goes on")
        assert failing(await memory.doctor()) == set()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_older_folder_opens_and_works(tmp_path, version):
    folder = tmp_path / "me"
    shutil.copytree(STORES / f"schema_{version}", folder)
    async with Memory.open(folder, embedder="hashing") as memory:
        await memory.settle(600)
        assert failing(await memory.doctor()) == set()
    assert now(folder / "index.db") == held(version)
    async with Memory.open(folder, embedder="hashing") as memory:
        await memory.remember("life goes on")
        assert failing(await memory.doctor()) == set()


def test_an_upgrade_is_one_transaction_after_a_backup_and_keeps_everything(tmp_path):
    path = tmp_path / "me.db"
    shutil.copyfile(STORES / f"schema_{NEWEST}.db", path)
    open_store(path, steps=(*migrations(), NEXT)).close()
    assert rows(path, "PRAGMA user_version") == [(NEXT.version,)]
    assert rows(path, "SELECT DISTINCT mood FROM sessions") == [(None,)]
    backup = tmp_path / f"me.db.v{NEWEST}.backup"
    assert rows(backup, "PRAGMA user_version") == [(NEWEST,)]
    assert now(backup) == held(NEWEST)
    upgraded = now(path)
    assert {name: found for name, found in upgraded.items() if name != "sessions"} == {
        name: found for name, found in held(NEWEST).items() if name != "sessions"
    }
    assert len(upgraded["sessions"]) == len(held(NEWEST)["sessions"])
    with pytest.raises(StoreError, match=f"schema {NEXT.version}") as refusal:
        open_store(path)
    assert "upgrade" in refusal.value.hint
    assert rows(path, "PRAGMA user_version") == [(NEXT.version,)]


def test_the_index_of_a_folder_is_upgraded_too(tmp_path):
    folder = tmp_path / "me"
    shutil.copytree(STORES / f"schema_{NEWEST}", folder)
    open_store(folder).close()
    before = everything(folder)
    open_store(folder, steps=(*migrations(), NEXT)).close()
    assert rows(folder / "index.db", "PRAGMA user_version") == [(NEXT.version,)]
    assert rows(folder / "index.db", "SELECT count(*) FROM nodes") == [(len(before["nodes"]),)]
    with pytest.raises(StoreError, match="upgrade"):
        open_store(folder)
