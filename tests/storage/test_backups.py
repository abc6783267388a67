"""A backup has a manifest, is verified on a copy, and is restored whole or not at all; nothing is overwritten."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import stat
from pathlib import Path

import pytest
from tests.crash.forking import run_forked
from tests.storage.folders import everything, everything_of
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing, raw, rows

from ricordo import InvalidError, Memory, NotFoundError, Scope, StoreError, UnavailableError
from ricordo.storage.database.schema import migrations
from ricordo.sync import Memory as BlockingMemory

KINDS = ("file", "folder")


def place(tmp_path: Path, kind: str, name: str = "me") -> str:
    return f"{tmp_path}/{name}/" if kind == "folder" else f"{tmp_path}/{name}.db"


def held(location: str) -> dict:
    """Return everything in a store of either kind."""
    path = Path(location)
    return everything(path) if path.is_dir() else everything_of(path)


async def lived(location: str, *, steps: int = 25, seed: int = 3) -> None:
    clock = HandClock()
    async with Memory.open(location, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, Path(location), seed=seed)
        for _ in range(steps):
            await history.step()
        await memory.settle(600)


async def backed_up(tmp_path: Path, kind: str, **lives) -> tuple[str, str]:
    """A store with some history, and its backup."""
    store, copy = place(tmp_path, kind), place(tmp_path / "copies", kind, "copy")
    await lived(store, **lives)
    async with Memory.open(store, **OPTIONS) as memory:
        await memory.backup(copy)
    return store, copy


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backup_has_a_manifest_verifies_and_restores_equal(tmp_path, kind):
    store, copy = place(tmp_path, kind), place(tmp_path / "copies", kind, "copy")
    await lived(store)
    async with Memory.open(store, **OPTIONS) as memory:
        made = await memory.backup(copy)
        last = (await memory.log(1))[0].seq
    before = held(store)
    assert (made.kind, made.schema, made.commits) == (kind, migrations()[-1].version, last)
    assert made.rows["nodes"] == len(before["nodes"])
    assert (await Memory.verify_backup(copy)).ok
    again = place(tmp_path, kind, "again")
    done = await Memory.restore_backup(copy, again)
    assert (done.location.rstrip("/"), done.kept) == (again.rstrip("/"), None)
    assert held(again) == before
    async with Memory.open(again, **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
        await memory.add("life goes on")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.name for path in (tmp_path / "copies").iterdir()} <= {"copy", "copy.db", "copy.db.manifest.json"}


async def test_a_backup_to_a_folder_brings_back_notes_byte_for_byte(tmp_path):
    store, copy = place(tmp_path, "folder"), place(tmp_path, "folder", "copy")
    notes = Path(store) / "notes"
    notes.mkdir(parents=True)
    async with Memory.open(store, **OPTIONS) as memory:
        await memory.remember("Jonas keeps bees", about=["Jonas"])
    with (notes / "Jonas.md").open("a", encoding="utf-8") as file:
        file.write('\n> "Honig ist Geduld"\n\n| Stock | Volk |\n|---|---|\n| 1 | stark |\n\n%% ask him %%\n')
    (notes / "Pläne").mkdir()
    (notes / "Pläne/Hof.md").write_bytes(b"# Hof\r\n\r\n> Tor links\r\n")
    async with Memory.open(store, **OPTIONS) as memory:
        made = await memory.backup(copy)
    written = {name: (notes / name).read_bytes() for name in ("Jonas.md", "Pläne/Hof.md")}
    assert {"notes/Jonas.md", "notes/Pläne/Hof.md"} <= made.files.keys()
    (notes / "Jonas.md").write_text("# Jonas\n", encoding="utf-8")
    for location, replace in ((place(tmp_path, "folder", "again"), False), (store, True)):
        await Memory.restore_backup(copy, location, replace=replace)
        async with Memory.open(location, **OPTIONS) as memory:
            assert [node.content for node in (await memory.list(type="semantic")).nodes] == ["Jonas keeps bees"]
        assert {name: (Path(location) / "notes" / name).read_bytes() for name in written} == written
    kept = next(tmp_path.glob("me.replaced-*"))
    assert (kept / "notes/Jonas.md").read_text("utf-8") == "# Jonas\n"
    (Path(copy) / "notes/Jonas.md").write_bytes(b"# Jonas\n")
    assert not (await Memory.verify_backup(copy)).ok


def manifest_of(copy: str) -> Path:
    return Path(copy) / "manifest.json" if copy.endswith("/") else Path(f"{copy}.manifest.json")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_backup_under_load_is_one_snapshot(tmp_path, kind):
    """Each message carries its number, so a snapshot is a sequence of numbers without a gap."""
    store = place(tmp_path, kind)
    async with Memory.open(store, embedder=None, settings=OPTIONS["settings"]) as memory:
        written = 0

        async def write():
            nonlocal written
            while True:
                await memory.add(f"{written + 1}")
                written += 1
                await asyncio.sleep(0.005)

        writing = [asyncio.create_task(write())]
        await asyncio.sleep(0.1)
        for number in range(3):
            acknowledged = written
            copy = place(tmp_path, kind, f"copy{number}")
            made = await memory.backup(copy)
            assert (await Memory.verify_backup(copy)).ok
            again = place(tmp_path, kind, f"again{number}")
            await Memory.restore_backup(copy, again)
            index = Path(again) / "index.db" if kind == "folder" else Path(again)
            found = sorted(int(text) for (text,) in rows(index, "SELECT content FROM nodes"))
            assert found == list(range(1, len(found) + 1))
            assert len(found) == made.rows["nodes"] >= acknowledged
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
        assert failing(await memory.doctor()) == set()


def flip(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    place = dice.randrange(len(content))
    content[place] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_backup_is_not_sound_and_replaces_nothing(tmp_path, kind):
    store, copy = await backed_up(tmp_path, kind, steps=8)
    before, dice = held(store), random.Random(1)
    damaged = Path(copy) / "commits.jsonl" if kind == "folder" else Path(copy)
    whole = damaged.read_bytes()
    for _ in range(12):
        flip(damaged, dice)
        if kind == "file" and dice.random() < 0.3:
            damaged.write_bytes(damaged.read_bytes()[:-4096])
        with contextlib.suppress(StoreError):
            assert not (await Memory.verify_backup(copy)).ok
        with pytest.raises(StoreError) as refusal:
            await Memory.restore_backup(copy, store, replace=True)
        assert refusal.value.hint
        damaged.write_bytes(whole)
    assert (await Memory.verify_backup(copy)).ok
    assert held(store) == before


async def test_a_backup_of_another_store_under_the_same_manifest_is_noticed(tmp_path):
    _, copy = await backed_up(tmp_path, "file", steps=8)
    await lived(f"{tmp_path}/other.db", steps=5, seed=9)
    async with Memory.open(f"{tmp_path}/other.db", **OPTIONS) as memory:
        await memory.backup(tmp_path / "other-copy.db")
    (tmp_path / "other-copy.db").replace(copy)
    report = await Memory.verify_backup(copy)
    assert failing(report) == {"manifest", "counts"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_missing_file_is_an_error_and_a_missing_manifest_a_note(tmp_path, kind):
    _, copy = await backed_up(tmp_path, kind, steps=8)
    manifest_of(copy).unlink()
    report = await Memory.verify_backup(copy)
    assert report.ok
    assert any(each.check == "manifest" and "none" in each.detail for each in report.findings)
    manifest_of(copy).write_text("{")
    with pytest.raises(StoreError, match="manifest"):
        await Memory.verify_backup(copy)
    with pytest.raises(NotFoundError):
        await Memory.verify_backup(tmp_path / "nothing.db")


async def test_a_folder_that_lacks_a_file_is_noticed(tmp_path):
    _, copy = await backed_up(tmp_path, "folder", steps=8)
    (Path(copy) / "history.jsonl").unlink()
    assert "manifest" in failing(await Memory.verify_backup(copy))


@pytest.mark.parametrize("kind", KINDS)
async def test_restore_refuses_to_overwrite_and_keeps_what_it_replaces(tmp_path, kind):
    store, copy = await backed_up(tmp_path, kind)
    saved = held(store)
    async with Memory.open(store, **OPTIONS) as memory:
        await memory.remember("Zoe sells honey")
        await memory.settle(600)
    later = held(store)
    with pytest.raises(InvalidError, match="already exists") as refusal:
        await Memory.restore_backup(copy, store)
    assert refusal.value.hint
    assert held(store) == later
    done = await Memory.restore_backup(copy, store, replace=True)
    assert held(store) == saved
    assert held(done.kept) == later
    async with Memory.open(store, **OPTIONS) as memory:
        assert failing(await memory.doctor()) == set()
    with pytest.raises(InvalidError, match="exists already"):
        async with Memory.open(store, **OPTIONS) as memory:
            await memory.backup(copy)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_replaced_store_leaves_nothing_but_itself(tmp_path, kind):
    store, copy = await backed_up(tmp_path, kind, steps=8)
    before = {each.name for each in tmp_path.iterdir()}
    done = await Memory.restore_backup(copy, store, replace=True)
    assert {each.name for each in tmp_path.iterdir()} == before | {Path(done.kept).name}


async def test_a_damaged_store_is_replaced_and_kept_as_it_was(tmp_path):
    store, copy = await backed_up(tmp_path, "file", steps=8)
    saved = held(store)
    damaged = b"garbage" * 1_000
    (tmp_path / "me.db").write_bytes(damaged)
    (tmp_path / "me.db-wal").write_bytes(b"a log of another file")
    done = await Memory.restore_backup(copy, store, replace=True)
    (kept,) = tmp_path.glob("me.db.replaced-*[0-9]")
    assert done.kept == str(kept)
    assert kept.read_bytes() == damaged
    assert held(store) == saved


async def test_an_open_file_is_not_replaced_but_an_open_folder_may_be(tmp_path):
    store, copy = await backed_up(tmp_path, "file", steps=8)
    async with Memory.open(store, **OPTIONS) as memory:
        await memory.add("written since")
        with pytest.raises(UnavailableError, match="open"):
            await Memory.restore_backup(copy, store, replace=True)
        await memory.add("and goes on")
    folder, copy = await backed_up(tmp_path, "folder", steps=8)
    saved = held(folder)
    async with Memory.open(folder, **OPTIONS) as memory:
        await memory.remember("Zoe sells honey")
        await Memory.restore_backup(copy, folder, replace=True)
        assert (await memory.query("honey")).hits == ()
        assert everything(Path(folder))["nodes"] == saved["nodes"]
        await memory.remember("Zoe has a hat")
        assert [hit.content for hit in (await memory.query("hat")).hits] == ["Zoe has a hat"]
        await memory.settle(600)
        assert failing(await memory.doctor()) == set()


async def test_a_file_backup_can_become_a_folder_but_not_the_reverse(tmp_path):
    store, copy = await backed_up(tmp_path, "file")
    await Memory.restore_backup(copy, f"{tmp_path}/folder/")
    assert held(f"{tmp_path}/folder/") == held(store)
    _, copy = await backed_up(tmp_path / "b", "folder", steps=3)
    with pytest.raises(InvalidError, match="folder"):
        await Memory.restore_backup(copy, tmp_path / "x.db")
    async with Memory.open(store, **OPTIONS) as memory:
        with pytest.raises(InvalidError, match="single file"):
            await memory.backup(f"{tmp_path}/y/")


async def test_the_backup_itself_is_only_read(tmp_path):
    for kind in KINDS:
        _, copy = await backed_up(tmp_path, kind, steps=5)
    before = {path: path.read_bytes() for path in (tmp_path / "copies").rglob("*") if path.is_file()}
    for kind in KINDS:
        copy = place(tmp_path / "copies", kind, "copy")
        await Memory.verify_backup(copy)
        await Memory.restore_backup(copy, place(tmp_path, kind, "again"))
    assert {path: path.read_bytes() for path in (tmp_path / "copies").rglob("*") if path.is_file()} == before


def test_the_blocking_api_backs_up_too(tmp_path):
    with BlockingMemory.open(tmp_path / "me.db", **OPTIONS) as memory:
        memory.add("hello")
        memory.backup(tmp_path / "copy.db")
    assert BlockingMemory.verify_backup(tmp_path / "copy.db").ok
    BlockingMemory.restore_backup(tmp_path / "copy.db", tmp_path / "again.db")
    assert rows(tmp_path / "again.db", "SELECT content FROM nodes") == [("hello",)]


KILLED = """
import asyncio, os, signal, sys
from ricordo import Memory
from ricordo.storage import faults

def hook(reached):
    if reached == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

faults.install(hook)
asyncio.run(Memory.restore_backup(sys.argv[1], sys.argv[2], replace=True))
"""


def restore_and_die(copy: str, store: str, point: str) -> None:
    assert run_forked(KILLED, copy, store, point).returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("file", "restore: before naming"),
        *(
            ("folder", f"{point}")
            for point in (
                "restore: before naming",
                "folder: before the marker",
                "folder: between renames",
                "folder: before replacing the index",
            )
        ),
    ],
)
async def test_after_a_kill_a_restore_is_complete_or_absent(tmp_path, kind, point):
    store, copy = await backed_up(tmp_path, kind, steps=10)
    saved = held(store)
    async with Memory.open(store, **OPTIONS) as memory:
        await memory.remember("Zoe sells honey")
        await memory.settle(600)
    later = held(store)
    restore_and_die(copy, store, point)
    async with Memory.open(store, **OPTIONS) as memory:
        assert failing(await memory.doctor()) <= {"set aside"}
    assert held(store) in (saved, later)
    await Memory.restore_backup(copy, store, replace=True)
    assert held(store) == saved


async def test_the_manifest_contains_no_memory_text(tmp_path):
    async with Memory.open(tmp_path / "me.db", **OPTIONS) as memory:
        await memory.remember("zebra-41 is Anna's", about=["Quentin-42"])
        await memory.backup(tmp_path / "copy.db")
    text = (tmp_path / "copy.db.manifest.json").read_text()
    assert "zebra" not in text
    assert "Quentin" not in text
    assert json.loads(text)["rows"]["nodes"] == 1


async def test_older_backups_are_upgraded_and_newer_ones_refused(tmp_path):
    _, copy = await backed_up(tmp_path, "file", steps=5)
    connection = raw(Path(copy))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="schema 99") as refusal:
        await Memory.verify_backup(copy)
    assert "upgrade" in refusal.value.hint


@pytest.mark.parametrize("kind", KINDS)
async def test_a_restore_names_the_erased_memories_that_it_brings_back(tmp_path, kind):
    store, copy = place(tmp_path, kind), place(tmp_path / "copies", kind, "copy")
    async with Memory.open(store, **OPTIONS) as memory:
        kept = await memory.remember("I like tea")
        gone = await memory.remember("The code of the door is on the fridge")
        await memory.backup(copy)
        await memory.erase(id=gone.id)
    done = await Memory.restore_backup(copy, store, replace=True)
    assert done.returned == (gone.id,)
    async with Memory.open(store, **OPTIONS) as memory:
        assert {node.id for node in (await memory.list()).nodes} == {kept.id, gone.id}
        for each in done.returned:
            await memory.erase(id=each)
        assert [node.id for node in (await memory.list()).nodes] == [kept.id]
    assert (await Memory.restore_backup(copy, place(tmp_path, kind, "new"))).returned == ()


async def test_a_restore_says_as_whom_each_memory_can_be_erased_again(tmp_path):
    store, copy = place(tmp_path, "file"), place(tmp_path / "copies", "file", "copy")
    async with Memory.open(store, **OPTIONS) as memory:
        team, bob = (memory.scoped(each) for each in (Scope(owner="katya", chat="team"), Scope(owner="bob")))
        await team.create_space("team")
        shared, own = await team.remember("The printer is broken", shared=True), await bob.remember("I like tea")
        await memory.backup(copy)
        await team.erase(id=shared.id)
        await bob.erase(id=own.id)
    done = await Memory.restore_backup(copy, store, replace=True)
    async with Memory.open(store, **OPTIONS) as memory:
        for each in done.returned:
            await memory.scoped(done.scopes[each]).erase(id=each)
        assert (await memory.scoped(Scope(owner="katya", chat="team")).list()).nodes == ()


async def test_a_restore_to_a_server_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidError, match=r"location: .* is not a path"):
        await Memory.restore_backup(tmp_path / "copy.db", "postgresql://app@localhost/memories")
    assert list(tmp_path.iterdir()) == []
