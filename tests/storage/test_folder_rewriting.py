"""Rewriting the files of a folder: without replaced and erased rows, all files or none."""

from __future__ import annotations

import apsw
import pytest
from tests.storage.folders import everything, lines, without_index
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing

from ricordo import Memory
from ricordo.errors import StoreError
from ricordo.storage import faults


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


@pytest.fixture(autouse=True)
def no_hook():
    yield
    faults.install(None)


def opened(folder, **options):
    return Memory.open(f"{folder}/", **{**OPTIONS, **options})


async def changed(folder):
    """A folder with a corrected, a forgotten and an unchanged fact."""
    async with opened(folder) as memory:
        red = await memory.remember("My favourite colour is red")
        await memory.correct(red.id, "My favourite colour is blue")
        gone = await memory.remember("Boris sold the bicycle", about=["Boris"])
        await memory.forget(gone.id)
        await memory.add("hello", session="s")
        await memory.settle(600)


async def test_gc_leaves_one_line_for_each_memory(folder):
    await changed(folder)
    assert len(lines(folder, "memories.jsonl")) == 3
    before = everything(folder)
    async with opened(folder) as memory:
        await memory.gc()
        assert failing(await memory.doctor()) == set()
        written = (folder / "memories.jsonl").stat()
        await memory.gc()
        assert (folder / "memories.jsonl").stat() == written, "there was nothing to do"
        assert len(await memory.log(20)) == len(before["commits"])
        await memory.add("and life goes on")
        await memory.settle(600)
    assert [line["content"] for line in lines(folder, "memories.jsonl")] == ["My favourite colour is blue"]
    assert {line["content"] for line in lines(folder, "archive.jsonl")} == {
        "My favourite colour is red",
        "Boris sold the bicycle",
    }
    after = everything(folder)
    assert after["history"] == before["history"]
    without_index(folder)
    async with opened(folder) as memory:
        await memory.settle(600)
    assert everything(folder) == after


async def test_unreadable_lines_survive_gc(folder):
    await changed(folder)
    with (folder / "memories.jsonl").open("a") as file:
        file.write("my own notes, no JSON\n")
    async with opened(folder) as memory:
        await memory.gc()
    (aside,) = folder.glob("set-aside-memories-*")
    assert aside.read_text() == "my own notes, no JSON\n"
    assert b"my own notes" not in (folder / "memories.jsonl").read_bytes()


NOT_USED = {
    "written by hand, out of range": ("memories.jsonl", '{"content":"too sure","confidence":7}'),
    "written by hand, of a person not there": ("memories.jsonl", '{"content":"hers","subject_person_ids":["nobody"]}'),
    "no such line": ("edges.jsonl", '{"kind":"wish","from":"Anna"}'),
    "a person without a name": ("people.jsonl", '{"id":"p2","aliases":["nobody"]}'),
    "a person nobody can read": ("people.jsonl", "Anna, my sister"),
    "a setting that was altered": ("store.jsonl", '{"kind":"model","name":"x","sum":"0123456789abcdef"}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("what", NOT_USED)
async def test_lines_that_cannot_be_used_are_named_until_gc_sets_them_aside(folder, what, with_index):
    await changed(folder)
    name, line = NOT_USED[what]
    with (folder / name).open("a") as file:
        file.write(line + "\n")
    if not with_index:
        without_index(folder)
    for _ in range(2):
        async with opened(folder) as memory:
            said = {each.check: each.detail for each in (await memory.doctor()).findings}
            number = (folder / name).read_text("utf-8").splitlines().index(line) + 1
            assert f"1 line not used: {name} line {number}" in said["plain files"]
    without_index(folder)
    async with opened(folder) as memory:
        await memory.gc()
        said = {each.check: each.detail for each in (await memory.doctor()).findings}
        assert "not used" not in said["plain files"]
    (aside,) = folder.glob("set-aside-*")
    assert aside.read_text() == line + "\n"
    assert line.encode() not in b"".join(path.read_bytes() for path in folder.glob("*.jsonl"))


@pytest.mark.parametrize("with_index", [True, False])
async def test_an_unusable_line_is_tracked_when_earlier_lines_are_removed(folder, with_index):
    """Lines without a commit are set aside at once."""
    await changed(folder)
    nobody, wrong = '{"content":"never","row":"99","commit":9999}', '{"content":"too sure","confidence":7}'
    with (folder / "memories.jsonl").open("a") as file:
        file.write(f"{nobody}\n{wrong}\n")
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert [path.read_text() for path in folder.glob("set-aside-*")] == [f"{nobody}\n"]
        await memory.gc()
    assert [path.read_text() for path in folder.glob("set-aside-*")] == [f"{nobody}\n{wrong}\n"]


@pytest.mark.parametrize("point", ["folder: before the marker", "folder: after the marker", "folder: between renames"])
@pytest.mark.parametrize("with_index", [True, False])
async def test_an_interrupted_rewrite_is_finished_or_discarded(folder, point, with_index):
    await changed(folder)
    before = everything(folder)

    class Ended(Exception):
        pass

    def end(reached):
        if reached == point:
            raise Ended("as if the process had ended")

    async with opened(folder) as memory:
        faults.install(end)
        with pytest.raises(Exception, match=r"as if"):
            await memory.gc()
        faults.install(None)
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert failing(await memory.doctor()) == set()
        await memory.settle(600)
    assert not list(folder.glob("*.new")) and not (folder / ".rewriting").exists()
    after = everything(folder)
    assert after["nodes"] == before["nodes"]
    assert after["history"] == before["history"]
    assert len(lines(folder, "memories.jsonl")) == (3 if point == "folder: before the marker" else 1)


async def test_erased_text_is_in_no_byte_of_the_folder(folder):
    clock = HandClock()
    async with opened(folder, clock=clock) as memory:
        history = History(memory, clock, folder, seed=5)
        for _ in range(15):
            await history.step()
        told = await memory.remember("Canary-lemur-77 was seen", about=["Canary-person-78"], session="canary-s")
        new = await memory.correct(told.id, "Canary-lemur-77 was seen twice")
        said = await memory.add("Canary-lemur-77 again", session="canary-s")
        await memory.settle(600)
        report = await memory.erase(id=new.id)
        assert report.is_done
        await memory.erase(id=said)
        await memory.settle(600)
        assert failing(await memory.doctor()) == set()
    for _ in range(2):
        for path in folder.rglob("*"):
            assert b"lemur-77" not in path.read_bytes(), path
            assert b"person-78" not in path.read_bytes().lower(), path
        before = everything(folder)
        without_index(folder)
        async with opened(folder) as memory:
            await memory.settle(600)
            assert failing(await memory.doctor()) == set()
        assert everything(folder) == before


@pytest.mark.parametrize("kind", ["folder", "file"])
@pytest.mark.parametrize("above", [0, 1, 2])
async def test_an_erasure_names_the_git_history_that_the_store_may_be_in(tmp_path, kind, above):
    """In the folder of the store, its parent, or higher: a single file has no folder of its own."""
    folder = tmp_path / "project" / "data"
    folder.mkdir(parents=True)
    repository = [folder / "memories", *(folder / "memories").parents][above] / ".git"
    place = f"{folder}/memories/" if kind == "folder" else folder / "memories" / "me.db"
    repository.mkdir(parents=True)
    if kind == "folder" and above == 0:
        (folder / "memories" / "memories.jsonl").touch()
    async with Memory.open(place, embedder=None) as memory:
        node = await memory.remember("Anna likes tea")
        report = await memory.erase(id=node.id)
    assert [said for said in report.out_of_reach if ".git" in said] == [
        f"{repository}, if the store is committed there"
    ]


async def test_keys_of_erased_rows_are_not_reused_after_a_rebuild(folder):
    """Withheld sentences and runs refer to keys."""
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea")
        secret = await memory.remember("Boris hides the key")
        await memory.erase(id=secret.id)
        assert [line["last"] for line in lines(folder, "store.jsonl") if line.get("table") == "nodes"] == [2]
    without_index(folder)
    async with opened(folder) as memory:
        await memory.remember("Chiara plays chess")
    assert [line["row"] for line in lines(folder, "memories.jsonl")] == ["1", "3"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_files_left_by_a_killed_process_contain_no_erased_text(folder, is_open):
    async with opened(folder) as memory:
        secret = await memory.remember("Canary-lemur-77 was seen")
    left = (".index.building", ".index.building-wal", ".memories.jsonl.partial")

    def leave():
        for name in left:
            (folder / name).write_bytes((folder / "memories.jsonl").read_bytes())

    if not is_open:
        leave()
    async with opened(folder) as memory:
        if is_open:
            leave()
        await memory.erase(id=secret.id)
        assert not [path for path in folder.iterdir() if b"lemur-77" in path.read_bytes()]


async def test_a_torn_rewrite_marker_is_ignored(folder):
    """Without sync, a power loss may leave it empty."""
    await changed(folder)
    before = everything(folder)
    (folder / ".rewriting").touch()
    (folder / "memories.jsonl.new").write_text("half a li")
    async with opened(folder) as memory:
        assert failing(await memory.doctor()) == set()
    assert everything(folder) == before
    assert not list(folder.glob("*.new"))


@pytest.mark.parametrize("kind", ["folder", "file"])
async def test_erased_bytes_kept_by_a_full_disk_are_removed_at_the_next_opening(tmp_path, kind):
    def full(point):
        if point == "erase: before rewriting":
            raise apsw.FullError("as if the disk were full")

    place = f"{tmp_path}/m/" if kind == "folder" else tmp_path / "m" / "me.db"
    async with Memory.open(place, embedder=None) as memory:
        secret = await memory.remember("Canary-lemur-77 was seen")
        await memory.remember("Anna likes tea")
        faults.install(full)
        with pytest.raises(StoreError, match="erased, but traces remain"):
            await memory.erase(id=secret.id)
        faults.install(None)
        assert [node.content for node in (await memory.list()).nodes] == ["Anna likes tea"]
    async with Memory.open(place, embedder=None) as memory:
        await memory.settle(600)
    assert not [path for path in (tmp_path / "m").iterdir() if b"lemur-77" in path.read_bytes()]
