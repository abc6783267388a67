"""Opening: what is accepted and refused, upgrades, and file permissions."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import apsw
import pytest
from tests.storage.making import ME, commit, fact, opened, raw, rows

from ricordo import Memory, sync
from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.database.connection import connect
from ricordo.storage.database.schema import Migration, _migrate, migrations, prepare
from ricordo.storage.key import has_cipher
from ricordo.storage.registry import open_store

NEWEST = migrations()[-1].version
NEXT = Migration(
    version=NEWEST + 1, name="more", sql="CREATE TABLE more (a INTEGER) STRICT; INSERT INTO more VALUES (1)"
)
BROKEN = Migration(
    version=NEWEST + 2, name="broken", sql="CREATE TABLE most (a INTEGER) STRICT; INSERT INTO nowhere VALUES (1)"
)


@pytest.fixture
def fault():
    yield faults.install
    faults.install(None)


def filled(path, content="likes tea"):
    async def fill(store):
        await commit(store, add=(fact(content),))

    opened(path, fill)
    return path


# refused locations


def test_a_newer_store_is_refused_and_not_changed(tmp_path):
    path = filled(tmp_path / "m.db")
    open_store(path, steps=(*migrations(), NEXT)).close()
    with pytest.raises(StoreError, match="upgrade") as refusal:
        open_store(path)
    assert str(NEXT.version) in refusal.value.message
    assert rows(path, "SELECT content FROM nodes") == [("likes tea",)]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_not_touched(tmp_path, journal):
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.pragma("journal_mode", journal)
    other.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("other.db-*"))


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be looked at " * 40, b"xy", b"SQLite format 3\0"]
)
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError):
        open_store(path)
    assert path.read_bytes() == content


def test_invalid_locations_are_refused_with_a_hint(tmp_path):
    (tmp_path / "file").write_text("x")
    for location, kind in (
        (tmp_path, InvalidError),
        ("mysql://host/db", InvalidError),
        (tmp_path / "file" / "m.db", StoreError),
        ("/proc/nowhere/m.db", StoreError),
    ):
        with pytest.raises(kind) as refusal:
            open_store(location)
        assert refusal.value.hint


def test_an_empty_file_and_a_half_made_store_become_a_store(tmp_path):
    path = tmp_path / "m.db"
    path.touch()
    filled(path)
    other = tmp_path / "wal.db"
    connection = apsw.Connection(str(other))  # another process was killed just after switching on the write-ahead log
    connection.pragma("journal_mode", "wal")
    connection.close()
    filled(other)


# upgrades


def test_an_migrate_makes_a_backup_first_and_keeps_everything(tmp_path):
    path = filled(tmp_path / "m.db")
    open_store(path, steps=(*migrations(), NEXT)).close()
    assert rows(path, "SELECT a FROM more") == [(1,)]
    assert rows(path, "PRAGMA user_version") == [(NEXT.version,)]
    backup = tmp_path / f"m.db.v{NEWEST}.backup"
    assert rows(backup, "PRAGMA user_version") == [(NEWEST,)]
    assert rows(backup, "SELECT content FROM nodes") == rows(path, "SELECT content FROM nodes") == [("likes tea",)]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_an_migrate_that_fails_leaves_the_store_as_it_was(tmp_path):
    path = filled(tmp_path / "m.db")
    with pytest.raises(StoreError):
        open_store(path, steps=(*migrations(), NEXT, BROKEN))
    assert rows(path, "PRAGMA user_version") == [(NEWEST,)]
    assert rows(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('more', 'most')") == [(0,)]
    filled(path, "and goes on")
    assert rows(path, "SELECT count(*) FROM nodes") == [(2,)]


def test_nothing_can_be_written_between_the_backup_and_the_migrate(tmp_path, fault):
    path = filled(tmp_path / "m.db")
    refused = []

    def write_as_another_process(point):
        if point == "backup: before naming":
            other = raw(path)
            try:
                other.execute("INSERT INTO meta VALUES ('late', '')")
            except apsw.BusyError as error:
                refused.append(error)
            other.close()

    fault(write_as_another_process)
    open_store(path, steps=(*migrations(), NEXT)).close()
    assert len(refused) == 1


def test_of_two_upgrading_processes_the_second_keeps_the_backup(tmp_path, fault):
    """It would be a copy of the upgraded store, and downgrading would be impossible."""
    path = filled(tmp_path / "m.db")
    steps = (*migrations(), NEXT)
    open_store(path, steps=steps).close()
    backup = tmp_path / f"m.db.v{NEWEST}.backup"
    first = backup.read_bytes()
    # The second process read the version before the first finished; it notices under the lock.
    connection = connect(path, patience_s=1)
    _migrate(connection, path, steps)
    connection.close()
    assert backup.read_bytes() == first


def test_a_current_store_makes_no_migrate_backup(tmp_path):
    path = filled(tmp_path / "m.db")
    filled(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.db"]


# backups


def test_a_backup_holds_everything_and_never_overwrites(tmp_path):
    path, copy = tmp_path / "m.db", tmp_path / "copies" / "one.db"

    async def work(store):
        await commit(store, add=(fact("likes tea"),))
        size = await asyncio.to_thread(store.copy_to, copy)
        with pytest.raises(InvalidError, match="exists already"):
            await asyncio.to_thread(store.copy_to, copy)
        return size

    assert opened(path, work) == copy.stat().st_size
    assert [each.name for each in copy.parent.iterdir()] == ["one.db"]

    async def look(store):
        return (await store.doctor()).ok, len(await store.read(lambda tx: tx.nodes.by_key(ME, [1])))

    assert opened(copy, look) == (True, 1)


def test_a_backup_that_fails_leaves_nothing_behind_and_can_be_made_again(tmp_path, fault):
    copy = tmp_path / "copy.db"

    def fail(point):
        if point == "backup: in copy":
            raise apsw.FullError("full")

    async def work(store):
        await commit(store, add=(fact("likes tea"),))
        fault(fail)
        with pytest.raises(StoreError, match="disk is full"):
            await asyncio.to_thread(store.copy_to, copy)
        left = [each.name for each in tmp_path.iterdir() if each.name.startswith("copy")]
        fault(None)
        await asyncio.to_thread(store.copy_to, copy)
        return left

    assert opened(tmp_path / "m.db", work) == []
    assert rows(copy, "SELECT content FROM nodes") == [("likes tea",)]


def test_a_backup_where_nothing_can_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("x")

    async def work(store):
        with pytest.raises(StoreError, match="cannot back up"):
            await asyncio.to_thread(store.copy_to, tmp_path / "file" / "copy.db")

    opened(tmp_path / "m.db", work)


# permissions


def test_all_files_are_private_under_any_umask(tmp_path):
    folder = tmp_path / "a" / "b"
    path = folder / "m.db"
    before = os.umask(0)
    try:

        async def work(store):
            await commit(store, add=(fact("likes tea"),))
            await asyncio.to_thread(store.copy_to, folder / "backups" / "copy.db")
            return {each: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "a").rglob("*")}

        modes = opened(path, work)
        open_store(path, steps=(*migrations(), NEXT)).close()
    finally:
        os.umask(before)
    modes |= {each: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "a", *(tmp_path / "a").rglob("*"))}
    names = {each.name for each in modes}
    assert {"m.db", "m.db-wal", "m.db-shm", "copy.db", f"m.db.v{NEWEST}.backup"} <= names
    wrong = {
        str(each): oct(mode)
        for each, mode in modes.items()
        if mode != (0o700 if each.name in ("a", "b", "backups") else 0o600)
    }
    assert wrong == {}


def test_an_in_memory_store_is_deleted_on_close(tmp_path):
    store = open_store(":memory:")
    folder = store.path.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store.close()
    assert not folder.exists()


# concurrent openings


def test_a_store_being_created_elsewhere_is_recognised(tmp_path):
    """Version and application id are two queries; between them the tables appeared."""
    path = tmp_path / "m.db"
    first = apsw.Connection(str(path))
    first.pragma("journal_mode", "wal")
    first.close()
    connection = connect(path, patience_s=1)

    def make_it_meanwhile(cursor, text, values):
        if "sqlite_schema" in text:
            connection.exec_trace = None
            open_store(path).close()
        return True

    connection.exec_trace = make_it_meanwhile
    prepare(connection, path, migrations())
    assert connection.exec_trace is None
    connection.close()


RACE = """
import asyncio, sys, time
from pathlib import Path
from ricordo.memory import Memory

async def main(go, path, name):
    while not Path(go).exists():
        time.sleep(0.0005)
    async with Memory.open(path, embedder=None) as memory:
        await memory.add(name)

for turn in sys.stdin:
    go, path, name = turn.split()
    try:
        asyncio.run(main(go, path, name))
        print("ok", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


def test_two_processes_may_create_the_same_store_at_once(tmp_path):
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for turn in range(20):
            go, path = tmp_path / f"go{turn}", tmp_path / f"m{turn}.db"
            for number, racer in enumerate(racers):
                racer.stdin.write(f"{go} {path} racer{number}\n")
                racer.stdin.flush()
            go.touch()
            assert [racer.stdout.readline().strip() for racer in racers] == ["ok", "ok"]
            assert sorted(rows(path, "SELECT content FROM nodes")) == [("racer0",), ("racer1",)]
    finally:
        for racer in racers:
            racer.stdin.close()
            racer.wait(10)
            racer.stdout.close()


def test_a_memory_is_closed_in_another_event_loop(tmp_path):
    async def begin():
        memory = await Memory.open(tmp_path / "me.db", embedder=None)
        await memory.remember("Anna likes tea")
        return memory

    async def go_on(memory):
        with pytest.raises(UnavailableError, match="the event loop in which this memory was opened has ended"):
            await memory.search("tea")
        await memory.close()
        await memory.close()

    asyncio.run(go_on(asyncio.run(begin())))
    with sync.Memory.open(tmp_path / "me.db", embedder=None) as again:
        assert [node.content for node in again.list().nodes] == ["Anna likes tea"]


async def test_a_memory_is_closed_from_the_loop_of_another_thread(tmp_path):
    memory = await Memory.open(f"{tmp_path}/memories/", embedder=None)
    await memory.remember("Anna likes tea")
    await asyncio.to_thread(asyncio.run, memory.close())
    async with Memory.open(f"{tmp_path}/memories/", embedder=None) as again:
        assert len((await again.list()).nodes) == 1


def test_a_forked_child_is_told_to_open_the_memory_again(tmp_path):
    program = f"""
import os, sys
from ricordo.errors import UnavailableError
from ricordo.sync import Memory

with Memory.open({str(tmp_path / "me.db")!r}, embedder=None) as memory:
    memory.remember("Anna likes tea")
    if (child := os.fork()) == 0:
        try:
            memory.search("tea")
        except UnavailableError as error:
            print(error, flush=True)
        memory.close()
        os._exit(0)
    os.waitpid(child, 0)
    print(len(memory.search("tea")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "this memory was opened before a fork (open it again in the child process)",
        "1",
    ]


@pytest.mark.parametrize("location", [None, 5, object()])
def test_a_location_that_is_no_path_is_refused_by_name(location):
    with pytest.raises(InvalidError, match=r"location: an? .* is not a path"):
        sync.Memory.open(location)


def test_the_installed_sqlite_can_encrypt_where_we_brought_it():
    installed = {each.name for each in importlib.metadata.distributions()}
    assert has_cipher() or "apsw" in installed or "apsw-sqlite3mc" not in installed


def test_too_many_open_files_are_named_with_the_remedy(tmp_path: Path) -> None:
    code = """
        import asyncio, resource, sys
        from ricordo import Memory
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        async def main():
            kept = []
            try:
                for number in range(40):
                    kept.append(await Memory.open(f"{sys.argv[1]}/{number}.db", embedder=None))
            except Exception as error:
                print(error)
            for each in kept:
                await each.close()
        asyncio.run(main())
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    assert "this process has too many open files (raise the limit" in said
