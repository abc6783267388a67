"""A store with a key: what opens it, how the key is changed, and what its files show. `make keys` does it at length."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
from tests.crash.forking import run_forked
from tests.storage import canaries
from tests.storage.folders import everything_of

from ricordo import DeniedError, InvalidError, NotFoundError, Settings, StoreError, UnavailableError
from ricordo.host import Host
from ricordo.host.journal import journal_path
from ricordo.storage.database.schema import Migration, migrations
from ricordo.storage.key import Key, has_cipher, is_encrypted
from ricordo.storage.registry import open_store
from ricordo.sync import Memory

pytestmark = pytest.mark.skipif(not has_cipher(), reason="another package brought its own apsw")
ONE, TWO, THREE = "1a" * 32, "2b" * 32, "3c" * 32  # not stretched: a passphrase costs 80 ms a file
KINDS = ("file", "folder")


def place(tmp_path: Path, kind: str, name: str = "me") -> str:
    if kind == "folder":
        pytest.importorskip("cryptography")
    return f"{tmp_path}/{name}/" if kind == "folder" else f"{tmp_path}/{name}.db"


def opened(location: str, key: str | None, **more) -> Memory:
    return Memory.open(location, embedder=None, key=key, **more)


def filled(location: str, key: str | None) -> None:
    with opened(location, key) as memory:
        red = memory.remember("favourite colour is red", about=["Sarah"])
        memory.correct(red.id, "favourite colour is blue")
        memory.add("the walrus sings", session="s")


def held(location: str, key: str | None, tmp_path: Path) -> dict:
    """Return everything in a store, by way of a copy without a key."""
    copy = tmp_path / "held.db"
    copy.unlink(missing_ok=True)
    with opened(location, key) as memory:
        memory.backup(copy)
    (tmp_path / "held.db.manifest.json").unlink()
    if key:
        Memory.rekey(copy, key=key)
    return everything_of(copy)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_right_key_opens_a_store(tmp_path, kind):
    location = place(tmp_path, kind)
    filled(location, "correct horse")
    assert is_encrypted(Path(location))
    with opened(location, "correct horse") as memory:
        assert memory.doctor().ok
        assert [hit.content for hit in memory.search("walrus").hits] == ["the walrus sings"]
    with pytest.raises(DeniedError, match="no key was given") as error, opened(location, None):
        pass
    assert "RICORDO_KEY" in error.value.hint
    with pytest.raises(DeniedError, match="the key is wrong"), opened(location, "correct horse "):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_for_an_open_store_says_so(tmp_path, kind):
    location = place(tmp_path, kind)
    filled(location, None)
    before = held(location, None, tmp_path)
    with pytest.raises(InvalidError, match="is not encrypted") as error, opened(location, "key"):
        pass
    assert "ricordo rekey" in error.value.hint
    assert held(location, None, tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_is_encrypted_gets_another_key_and_is_decrypted(tmp_path, kind):
    location = place(tmp_path, kind)
    filled(location, None)
    before = held(location, None, tmp_path)
    for key, new in ((None, ONE), (ONE, THREE), (THREE, None)):
        done = Memory.rekey(location, key=key, new_key=new)
        assert done.is_encrypted is (new is not None)
        assert held(location, new, tmp_path) == before
        if new is not None:
            with pytest.raises(DeniedError), opened(location, key):
                pass
        assert Memory.rekey(location, key=key, new_key=new) == done, "an interrupted call may be repeated"


def test_a_change_of_the_key_names_the_copies_that_it_leaves(tmp_path):
    location = place(tmp_path, "file")
    filled(location, None)
    old = tmp_path / "me.db.v1.backup"
    old.write_bytes(b"SQLite format 3\0")
    (tmp_path / "me.db.tokens.json").write_text("{}")
    assert Memory.rekey(location, new_key=ONE).left == (str(old),)


def test_a_store_that_is_open_keeps_its_key(tmp_path):
    location = place(tmp_path, "file")
    with opened(location, ONE) as memory:
        memory.remember("the user likes tea")
        with pytest.raises(UnavailableError, match="another program"):
            Memory.rekey(location, key=ONE, new_key=TWO)
    with pytest.raises(NotFoundError):
        Memory.rekey(tmp_path / "nothing.db", new_key=TWO)
    with pytest.raises(InvalidError, match="new_key is empty"):
        Memory.rekey(location, key=ONE, new_key="")
    with pytest.raises(DeniedError, match="wrong"):
        Memory.rekey(location, key=THREE, new_key=TWO)


def test_an_open_folder_notices_that_its_key_was_changed(tmp_path):
    location = place(tmp_path, "folder")
    with opened(location, ONE) as memory:
        memory.remember("the user likes tea")
        Memory.rekey(location, key=ONE, new_key=TWO)
        with pytest.raises(DeniedError, match="was changed"):
            memory.remember("the user likes rain")
    with opened(location, TWO) as memory:
        assert len(memory.search("user likes").hits) == 1


KILLED = """
import os, signal, sys
from ricordo.storage import faults
from ricordo.sync import Memory
def die(point):
    if point == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
faults.install(die)
Memory.rekey(sys.argv[1], key=sys.argv[3] or None, new_key="2b" * 32)
"""
POINTS = [
    ("file", "rekey: before copy", ONE),
    ("file", "rekey: before naming", None),
    ("file", "rekey: after naming", ONE),
    ("folder", "folder: before the marker", ONE),
    ("folder", "folder: between renames", None),
    ("folder", "folder: before replacing the index", ONE),
]


@pytest.mark.parametrize(("kind", "point", "key"), POINTS)
def test_a_killed_change_of_the_key_leaves_the_old_or_the_new(tmp_path, kind, point, key):
    location = place(tmp_path, kind)
    filled(location, key)
    before = held(location, key, tmp_path)
    assert run_forked(KILLED, location, point, key or "").returncode == -signal.SIGKILL
    keys = []
    for each in (key, TWO):
        try:
            assert held(location, each, tmp_path) == before
            keys.append(each)
        except (DeniedError, InvalidError):
            continue
    assert len(keys) == 1
    Memory.rekey(location, key=key, new_key=TWO)
    assert held(location, TWO, tmp_path) == before
    assert b"walrus" not in b"".join(path.read_bytes() for path in tmp_path.rglob("me*/**/*") if path.is_file())


def test_no_file_of_a_store_with_a_key_shows_what_it_holds(tmp_path, monkeypatch):
    """The long version kills processes, too."""
    monkeypatch.setattr(canaries, "kill", lambda *_: None)
    monkeypatch.setattr(canaries, "kill_rekey", lambda *_: True)
    search = canaries.Search(tmp_path, canaries.words(20))
    canaries.live(place(tmp_path, "file"), search, keys=(ONE, TWO))
    assert not search.found
    assert search.files > 20


def test_no_file_of_a_folder_with_a_key_shows_what_it_holds(tmp_path):
    search = canaries.Search(tmp_path, canaries.words(20))
    location = place(tmp_path, "folder")
    with opened(location, ONE) as memory:
        canaries.fill(memory, iter(search.words))
        search.look("open")
    Memory.rekey(location, key=ONE, new_key=TWO)
    search.look("another key")
    assert not search.found
    assert search.files > 20


def test_the_search_for_words_finds_them_in_an_open_store(tmp_path):
    search = canaries.Search(tmp_path, canaries.words(20))
    with opened(place(tmp_path, "file"), None) as memory:
        canaries.fill(memory, iter(search.words))
        search.look("open")
    assert len(search.met) >= 18  # each place stores its word; questions are kept in receipts only


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_has_the_key_of_its_store(tmp_path, kind):
    location, copy = place(tmp_path, kind), place(tmp_path, kind, "copy")
    filled(location, ONE)
    with opened(location, ONE) as memory:
        memory.backup(copy)
    assert Memory.verify_backup(copy, key=ONE).ok
    for key, message in ((None, "no key"), (TWO, "wrong")):
        with pytest.raises(DeniedError, match=message) as error:
            Memory.verify_backup(copy, key=key)
        assert str(Path(copy)) in error.value.message
    restored = place(tmp_path, kind, "again")
    Memory.restore_backup(copy, restored, key=ONE)
    assert held(restored, ONE, tmp_path) == held(location, ONE, tmp_path)


def test_a_backup_of_another_key_replaces_a_store(tmp_path):
    location, copy = place(tmp_path, "file"), place(tmp_path, "file", "copy")
    filled(location, ONE)
    with opened(location, ONE) as memory:
        memory.backup(copy)
    Memory.rekey(location, key=ONE, new_key=TWO)
    kept = Memory.restore_backup(copy, location, replace=True, key=ONE).kept
    with opened(location, ONE) as memory, opened(kept, TWO) as former:
        assert memory.doctor().ok
        assert former.doctor().ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_another_kind_has_the_same_key(tmp_path, kind):
    location = place(tmp_path, kind)
    other = place(tmp_path, "file" if kind == "folder" else "folder", "other")
    filled(location, ONE)
    with opened(location, ONE) as memory:
        memory.migrate(other)
    assert held(other, ONE, tmp_path).keys() == held(location, ONE, tmp_path).keys()
    with pytest.raises(DeniedError), opened(other, None):
        pass


def test_the_copy_before_an_upgrade_is_encrypted_too(tmp_path):
    location = place(tmp_path, "file")
    filled(location, ONE)
    newest = migrations()[-1].version
    step = Migration(version=newest + 1, name="next", sql="CREATE TABLE later (key INTEGER PRIMARY KEY) STRICT;")
    open_store(location, steps=(*migrations(), step), key=Key(ONE)).close()
    copy = tmp_path / f"me.db.v{newest}.backup"
    assert is_encrypted(copy)
    with opened(str(copy), ONE) as memory:
        assert memory.search("walrus").hits


def test_the_key_comes_from_a_file_a_variable_or_the_keyring(tmp_path, monkeypatch):
    location = place(tmp_path, "file")
    filled(location, ONE)
    (tmp_path / "key.txt").write_text(f"{ONE}\nthis line is a remark\n")
    monkeypatch.setenv("MY_KEY", ONE)
    for key in (f"file:{tmp_path}/key.txt", "env:MY_KEY"):
        with opened(location, key) as memory:
            assert memory.search("walrus").hits
    with opened(location, None, settings=Settings(key="env:MY_KEY")) as memory:
        assert memory.search("walrus").hits
    for key in (f"file:{tmp_path}/nothing", "env:NO_KEY"):
        with pytest.raises(InvalidError, match="key: "), opened(location, key):
            pass


def test_the_keyring_of_the_system_is_asked(tmp_path):
    keyring = pytest.importorskip("keyring")

    class Ring(keyring.backend.KeyringBackend):
        priority = 1
        kept = {("ricordo", "laptop"): ONE}  # noqa: RUF012

        def get_password(self, service, username):
            return self.kept.get((service, username))

        def set_password(self, service, username, password):
            raise NotImplementedError

        def delete_password(self, service, username):
            raise NotImplementedError

    former = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        location = place(tmp_path, "file")
        filled(location, "keyring:laptop")
        with opened(location, ONE) as memory:
            assert memory.search("walrus").hits
        with pytest.raises(InvalidError, match="keyring:other holds no key"), opened(location, "keyring:other"):
            pass
    finally:
        keyring.set_keyring(former)


def test_a_key_is_not_shown(tmp_path):
    assert "hush" not in repr(Settings(key="hush"))
    assert "hush" not in repr(Key("hush"))


async def test_the_journal_of_a_host_has_the_key_of_the_store(tmp_path):
    location = tmp_path / "me.db"
    async with Host(location, [], settings=Settings(key=ONE)) as host:
        await host.bus.publish("said", {"text": "the walrus sings"})
    journal = journal_path(location)
    assert is_encrypted(journal)
    with pytest.raises(DeniedError, match="no key was given"):
        async with Host(location, [], settings=Settings()):
            pass
    await asyncio.to_thread(filled, str(location), ONE)
    await asyncio.to_thread(lambda: Memory.rekey(location, key=ONE, new_key=TWO))
    async with Host(location, [], settings=Settings(key=TWO)):
        pass


async def test_two_first_openers_of_a_store_agree_on_its_salt(tmp_path):
    from ricordo import Memory as AsyncMemory

    async def tell(number: int) -> None:
        async with AsyncMemory.open(tmp_path / "me.db", embedder=None, key=ONE) as memory:
            await memory.add(f"number {number}", session="s")

    await asyncio.gather(*(tell(number) for number in range(6)))
    async with AsyncMemory.open(tmp_path / "me.db", embedder=None, key=ONE) as memory:
        assert (await memory.stats()).nodes == {"episodic": 6}


def test_a_store_in_memory_may_have_a_key():
    with opened(":memory:", ONE) as memory:
        memory.remember("the user likes tea")
        assert memory.search("tea").hits


@pytest.mark.parametrize("key", [None, ONE])
def test_stores_of_one_key_exchange_what_is_new(tmp_path, key):
    location, other = place(tmp_path, "file"), place(tmp_path, "file", "other")
    filled(location, ONE)
    with opened(other, key) as memory:
        memory.remember("the user likes tea")
    with opened(location, ONE) as memory:
        memory.sync(other)
        assert memory.search("tea").hits
    with opened(other, key) as memory:
        assert memory.search("walrus").hits


def test_a_database_on_a_server_has_no_key():
    with pytest.raises(InvalidError, match="stores take no key"):
        open_store("postgresql://localhost/nothing", key=Key(ONE))


# folders


def test_a_line_that_was_not_encrypted_here_is_not_used(tmp_path):
    location = place(tmp_path, "folder")
    filled(location, ONE)
    facts, said = Path(location) / "memories.jsonl", Path(location) / "episodes.jsonl"
    with facts.open("ab") as file:
        file.write(json.dumps({"content": "put in by hand"}).encode() + b"\n")
        file.write(said.read_bytes())
    with opened(location, ONE) as memory:
        assert not memory.search("hand").hits
        places = next(each for each in memory.doctor().findings if each.check == "plain files")
        assert "2 lines not used" in places.detail


def test_a_damaged_or_missing_key_file_says_so(tmp_path):
    location = place(tmp_path, "folder")
    filled(location, ONE)
    file = Path(location) / "key.json"
    content = file.read_bytes()
    file.write_bytes(content[:20])
    with pytest.raises(StoreError, match="is damaged"), opened(location, ONE):
        pass
    file.unlink()
    for key in (ONE, None):
        with pytest.raises(StoreError, match="is missing"), opened(location, key):
            pass
    file.write_bytes(content)
    with opened(location, ONE) as memory:
        assert memory.search("walrus").hits


def test_an_index_that_is_not_encrypted_does_not_stay(tmp_path):
    location = place(tmp_path, "folder")
    filled(location, None)
    index = (Path(location) / "index.db").read_bytes()
    Memory.rekey(location, new_key=ONE)
    (Path(location) / "index.db").write_bytes(index)
    with opened(location, ONE) as memory:
        assert memory.search("walrus").hits
    assert not any(b"walrus" in path.read_bytes() for path in Path(location).iterdir() if path.is_file())


def test_an_encrypted_folder_has_no_notes(tmp_path):
    location = place(tmp_path, "folder")
    filled(location, None)
    (Path(location) / "notes").mkdir()
    with pytest.raises(InvalidError, match="notes"):
        Memory.rekey(location, new_key=ONE)
    (Path(location) / "notes").rmdir()
    Memory.rekey(location, new_key=ONE)
    (Path(location) / "notes").mkdir()
    with pytest.raises(InvalidError, match="notes"), opened(location, ONE):
        pass
