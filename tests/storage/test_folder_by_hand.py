"""Edits of a folder's files with an editor or git, and crashes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess

import apsw
import pytest
from tests.storage.folders import everything, lines, without_index
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing

from ricordo import Memory
from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.folder import index as opening
from ricordo.storage.folder.files import FolderLock


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


@pytest.fixture(autouse=True)
def no_hook():
    yield
    faults.install(None)


def opened(folder, **options):
    return Memory.open(f"{folder}/", **{**OPTIONS, "embedder": None, **options})


async def facts(memory):
    return {node.content for node in (await memory.list(limit=100)).nodes}


def caught(memory):
    return memory._opened.store.index


def rewritten(folder, name, change):
    """Edit the lines of a file, as an editor does."""
    path = folder / name
    before = path.read_text().splitlines(keepends=True)
    path.with_name("draft").write_text("".join(change(before)))
    path.with_name("draft").replace(path)


def edited(old, new):
    return lambda found: [line.replace(old, new) for line in found]


def without(word):
    return lambda found: [line for line in found if word not in line]


async def filled(folder):
    async with opened(folder) as memory:
        for text, who in (
            ("Anna likes tea", "Anna"),
            ("Boris sold the bicycle", "Boris"),
            ("Chiara plays chess", "Chiara"),
        ):
            await memory.remember(text, about=[who])
        await memory.add("hello there", session="s")


@pytest.mark.parametrize("with_index", [True, False])
async def test_an_edited_line_changes_the_memory(folder, with_index):
    await filled(folder)
    rewritten(folder, "memories.jsonl", edited("likes tea", "likes coffee"))
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert await facts(memory) >= {"Anna likes coffee", "Boris sold the bicycle", "Chiara plays chess"}
        assert "Anna likes tea" not in await facts(memory)
        assert caught(memory).found.changed_by_hand == 1
        assert caught(memory).was_rebuilt is not with_index
        (commit,) = await memory.log(1)
        assert commit.actor == "hand"
        (node,) = [each for each in (await memory.list(limit=9)).nodes if each.content == "Anna likes coffee"]
        assert node.about == ("Anna",)
        assert (await memory.query("coffee")).ids == [node.id]
        if with_index:
            assert [version.content for version in await memory.history(node.id)] == [
                "Anna likes tea",
                "Anna likes coffee",
            ]
            await memory.undo(commit.seq)
            assert "Anna likes tea" in await facts(memory)
        assert failing(await memory.doctor()) == set()
    before = everything(folder)
    for _ in range(2):
        async with opened(folder) as memory:
            assert caught(memory).found.changed_by_hand == 0
        assert everything(folder) == before
        without_index(folder)


async def test_a_deleted_line_forgets_its_memory(folder):
    await filled(folder)
    rewritten(folder, "memories.jsonl", without("bicycle"))
    async with opened(folder) as memory:
        assert not caught(memory).was_rebuilt
        assert "Boris sold the bicycle" not in await facts(memory)
        assert [line["content"] for line in lines(folder, "archive.jsonl")] == ["Boris sold the bicycle"]
        assert (await memory.log(1))[0].actor == "hand"
        await memory.undo((await memory.log(1))[0].seq)
        assert "Boris sold the bicycle" in await facts(memory)
        assert failing(await memory.doctor()) == set()
    before = everything(folder)
    without_index(folder)
    async with opened(folder) as memory:
        pass
    assert everything(folder) == before


@pytest.mark.parametrize("mended", ["by hand", "doctor"])
async def test_a_slip_in_a_line_forgets_nothing(folder, mended):
    async with opened(folder) as memory:
        await memory.remember("The boiler is blue")
        await memory.remember("Anna likes tea")
    both = {"The boiler is blue", "Anna likes tea"}
    rewritten(folder, "memories.jsonl", edited('"The boiler', "The boiler"))
    async with opened(folder) as memory:
        assert await facts(memory) == both
        assert not (report := await memory.doctor()).ok
        assert "memories.jsonl line 1" in str(report)
        await memory.remember("Tom likes coffee")
    if mended == "doctor":
        async with opened(folder) as memory:
            await memory.doctor(fix=True)
    else:
        rewritten(folder, "memories.jsonl", edited(":The boiler", ':"The boiler'))
    async with opened(folder) as memory:
        assert await facts(memory) == both | {"Tom likes coffee"}
        assert (await memory.doctor()).ok
        assert len(await memory.log()) == 3
    without_index(folder)
    async with opened(folder) as memory:
        assert await facts(memory) == both | {"Tom likes coffee"}


async def test_a_deleted_line_that_others_need_is_written_back(folder):
    await filled(folder)
    (folder / "sessions.jsonl").write_text("")
    async with opened(folder) as memory:
        assert failing(await memory.doctor()) == set()
    assert [line["session_id"] for line in lines(folder, "sessions.jsonl")] == ["s"]


async def test_a_deleted_link_is_gone(folder):
    await filled(folder)
    rewritten(folder, "edges.jsonl", without('"kind":"subject"'))
    async with opened(folder) as memory:
        assert all(node.about == () for node in (await memory.list(limit=9)).nodes)
        assert failing(await memory.doctor()) == set()


def git(folder, *words):
    done = subprocess.run(
        ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
@pytest.mark.parametrize("with_index", [True, False])
async def test_a_folder_can_live_in_git(folder, with_index):
    await filled(folder)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("index.db*\n.lock\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    rewritten(folder, "memories.jsonl", edited("likes tea", "likes coffee"))
    rewritten(folder, "memories.jsonl", without("bicycle"))
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert await facts(memory) == {"Anna likes coffee", "Chiara plays chess", "hello there"}
        await memory.remember("Dan has a boat", about=["Dan"])
        # Without an index, the content of the deleted line is unknown: `doctor` keeps reporting it.
        assert failing(await memory.doctor()) == (set() if with_index else {"commit rows", "plain files"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "second")
    if not with_index:
        without_index(folder)
    git(folder, "checkout", "-q", "HEAD~1")
    async with opened(folder) as memory:
        assert await facts(memory) == {"Anna likes tea", "Boris sold the bicycle", "Chiara plays chess", "hello there"}
        assert caught(memory).was_rebuilt
        assert failing(await memory.doctor()) == set()
    git(folder, "checkout", "-q", "-")
    async with opened(folder) as memory:
        assert await facts(memory) == {"Anna likes coffee", "Chiara plays chess", "hello there", "Dan has a boat"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
@pytest.mark.parametrize("is_resolved", [True, False])
@pytest.mark.parametrize("writes", [1, 4])
async def test_clones_that_git_merged_keep_the_memories_of_both(folder, tmp_path, writes, is_resolved):
    await filled(folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(folder), str(other))
    async with opened(folder) as memory:
        await memory.remember("We bought a kayak")
        for number in range(writes):
            await memory.add(f"Paddled {number} miles", session="river")
        (chess,) = [each for each in (await memory.list(limit=9)).nodes if "chess" in each.content]
        await memory.forget(chess.id)
    async with opened(other) as memory:
        for number in range(writes):
            await memory.remember(f"My brother Dan has boat number {number}")
        (tea,) = [each for each in (await memory.list(limit=9)).nodes if "tea" in each.content]
        await memory.correct(tea.id, "Anna likes cocoa")
        theirs = await facts(memory)
    for each in (folder, other):
        git(each, "add", "-A")
        git(each, "commit", "-qm", "more")
    with contextlib.suppress(subprocess.CalledProcessError):  # conflicts
        git(folder, "pull", "-q", "--no-rebase", str(other), "HEAD")
    if is_resolved:  # both sides are kept
        for path in folder.glob("*.jsonl"):
            kept = [line for line in path.read_bytes().splitlines() if not line.startswith((b"<<<", b"===", b">>>"))]
            path.write_bytes(b"".join(line + b"\n" for line in kept))
    async with opened(folder) as memory:
        both = theirs | {"We bought a kayak"} | {f"Paddled {number} miles" for number in range(writes)}
        assert await facts(memory) == both - {"Chiara plays chess"}
        assert {each.name for each in await memory.people()} >= {"Anna", "Dan"}
        assert failing(await memory.doctor()) == set()
        commits = len(await memory.log(100))
    # What lives on stands in no file beside, where erasing would not reach it.
    assert not any("boat" in path.read_text() for path in folder.glob("set-aside-*"))
    assert not any("<<<" in line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines())
    async with opened(folder) as memory:
        assert len(await memory.log(100)) == commits
        await memory.remember("Life goes on")
        assert failing(await memory.doctor()) == set()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")
async def test_one_file_from_an_older_commit_restores_its_rows(folder):
    await filled(folder)
    git(folder, "init", "-q")
    git(folder, "add", "*.jsonl")
    git(folder, "commit", "-qm", "first")
    async with opened(folder) as memory:
        (node,) = [each for each in (await memory.list(limit=9)).nodes if "tea" in each.content]
        await memory.update(node.id, content="Anna likes coffee")
        await memory.remember("Dan has a boat")
    git(folder, "checkout", "-q", "HEAD", "--", "memories.jsonl")
    async with opened(folder) as memory:
        assert await facts(memory) == {"Anna likes tea", "Boris sold the bicycle", "Chiara plays chess", "hello there"}
        assert not caught(memory).was_rebuilt
        assert (await memory.log(1))[0].actor == "hand"
        assert failing(await memory.doctor()) == set()


@pytest.mark.parametrize("seed", range(4))
async def test_a_stale_index_catches_up_exactly(folder, tmp_path, seed):
    clock = HandClock()
    async with opened(folder, clock=clock, embedder="hashing") as memory:
        history = History(memory, clock, folder, seed=seed)
        for _ in range(15):
            await history.step()
        await memory.settle(600)
    behind = tmp_path / "behind.db"
    shutil.copy(folder / "index.db", behind)
    async with opened(folder, clock=clock, embedder="hashing") as memory:
        history.memory = memory
        for _ in range(25):
            await history.step()
        await memory.settle(600)
    before = everything(folder)
    without_index(folder)
    shutil.copy(behind, folder / "index.db")
    async with opened(folder, clock=clock, embedder="hashing") as memory:
        assert not caught(memory).was_rebuilt
        assert caught(memory).found.commits > 0
        assert failing(await memory.doctor()) == set()
        await memory.settle(600)
    assert everything(folder) == before


async def test_a_stale_index_learns_lifted_sentences(folder, tmp_path):
    async with opened(folder) as memory:
        tea = await memory.remember("Anna likes tea")
    shutil.copy(folder / "index.db", tmp_path / "behind.db")
    async with opened(folder) as memory:
        await memory.forget(tea.id)
        await memory.remember("Anna likes tea")  # said again
    before = everything(folder)
    assert before["withheld"]
    without_index(folder)
    shutil.copy(tmp_path / "behind.db", folder / "index.db")
    async with opened(folder):
        pass
    assert everything(folder)["withheld"] == before["withheld"]
    assert everything(folder) == before


async def test_an_index_on_a_full_disk_follows_later(folder):
    await filled(folder)
    refused = []

    def full(point):
        if point == "writer: before commit" and len(refused) < 3:
            refused.append(point)
            raise apsw.FullError("as if the disk of the index were full")

    async with opened(folder) as memory:
        faults.install(full)
        told = [await memory.add(f"acknowledged {number}") for number in range(5)]
        faults.install(None)
        assert len(refused) == 3
        assert {(await memory.get(id_)).content for id_ in told} == {f"acknowledged {n}" for n in range(5)}
        assert not caught(memory).was_rebuilt
    assert [line["content"] for line in lines(folder, "episodes.jsonl")][-5:] == [f"acknowledged {n}" for n in range(5)]
    before = everything(folder)
    without_index(folder)
    async with opened(folder):
        pass
    assert everything(folder) == before


async def test_a_bad_line_does_not_block_others(folder):
    await filled(folder)
    with (folder / "memories.jsonl").open("a") as file:
        file.write(json.dumps({"content": "Dora swims"}) + "\n")
        file.write(json.dumps({"content": "too sure", "confidence": 7}) + "\n")
        file.write(json.dumps({"content": ["no", "text"]}) + "\n")
    async with opened(folder) as memory:
        assert "Dora swims" in await facts(memory)
        assert "too sure" not in await facts(memory)
        assert len(caught(memory).found.unused.places) == 2
    assert b"too sure" in (folder / "memories.jsonl").read_bytes()


WRONG_VALUES = {
    "a value out of range": ("memories.jsonl", edited('"confidence":1.0', '"confidence":5.0')),
    "half a closing": ("memories.jsonl", edited('"confidence"', '"archived_at":"2026-01-01T00:00:00","confidence"')),
    "a value of another sort": ("memories.jsonl", edited('"type":"semantic"', '"type":"semantic","speaker":{"a":1}')),
    "no time": ("memories.jsonl", edited('"created_at":"2', '"created_at":"two')),
    "an id twice": ("memories.jsonl", lambda found: [*found, found[0].replace('"row":"1"', '"row":"77"')]),
    "a commit twice": ("commits.jsonl", lambda found: [*found, found[0]]),
    "a commit of nobody": ("commits.jsonl", lambda found: [found[0].replace('"actor":"me"', '"actor":null'), *found]),
}


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("what", WRONG_VALUES)
async def test_a_bad_value_does_not_block_the_folder(folder, what, with_index):
    await filled(folder)
    name, change = WRONG_VALUES[what]
    rewritten(folder, name, lambda found: change(found[:1]) + found[1:])
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert {"Boris sold the bicycle", "Chiara plays chess", "hello there"} <= await facts(memory)
        assert caught(memory).found.unused.places
        await memory.remember("and life goes on")


async def test_hand_edits_wait_if_they_cannot_be_imported(folder):
    """The disk is full when hand-written lines become a commit after a rebuild: the next opening does it."""
    await filled(folder)
    with (folder / "memories.jsonl").open("a") as file:
        file.write(json.dumps({"content": "Dora swims"}) + "\n")
    without_index(folder)

    def full(point):
        if point == "folder: before commit line":
            raise apsw.FullError("as if the disk were full")

    faults.install(full)
    with pytest.raises(StoreError, match="full"):
        async with opened(folder):
            pass
    faults.install(None)
    async with opened(folder) as memory:
        assert "Dora swims" in await facts(memory)
        assert caught(memory).found.changed_by_hand == 1


async def test_a_deleted_lock_file_is_replaced(folder):
    """`git clean` and `git stash -u` do this."""
    await filled(folder)
    one, other = FolderLock(folder, patience_s=0.05), FolderLock(folder, patience_s=0.05)
    (folder / ".lock").unlink()
    with one.held(), pytest.raises(UnavailableError), other.held():
        pass
    (folder / ".lock").unlink()
    later = FolderLock(folder, patience_s=0.05)
    with later.held(), pytest.raises(UnavailableError), one.held():
        pass
    for lock in (one, other, later):
        with lock.held():
            pass
        lock.close()


async def test_a_folder_removed_while_open_gives_a_clear_error(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea")
        folder.rename(folder.with_name("elsewhere"))
        with pytest.raises(StoreError, match="does not exist"):
            await memory.remember("Boris plays chess")
        folder.with_name("elsewhere").rename(folder)
        await memory.remember("Boris plays chess")
        assert await facts(memory) == {"Anna likes tea", "Boris plays chess"}


async def test_a_linked_folder_is_opened_and_a_linked_file_refused(folder):
    """Rewriting would replace the link, and erased text would stay in its target."""
    await filled(folder)
    link = folder.with_name("link")
    link.symlink_to(folder)
    async with opened(link) as memory:
        assert "Anna likes tea" in await facts(memory)
    place = (folder / "memories.jsonl").rename(folder.with_name("elsewhere.jsonl"))
    (folder / "memories.jsonl").symlink_to(place)
    with pytest.raises(InvalidError, match=r"memories\.jsonl is a link"):
        async with opened(folder):
            pass


@pytest.mark.parametrize("gone", ["index.db*", "index.db"])
async def test_an_index_deleted_while_open_is_rebuilt_at_the_next_write(folder, gone):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea")
        for path in folder.glob(gone):
            path.unlink()
        assert await facts(memory) == {"Anna likes tea"}
        await memory.remember("Boris plays chess")
        assert await facts(memory) == {"Anna likes tea", "Boris plays chess"}
        assert failing(await memory.doctor()) == set()


async def test_a_reader_rebuilds_a_deleted_index(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea")
        (folder / "index.db").unlink()
        # More concurrent reads than reader threads so far: new ones find no index.
        assert await asyncio.gather(*(facts(memory) for _ in range(8))) == [{"Anna likes tea"}] * 8
        assert failing(await memory.doctor()) == set()


async def test_a_checkout_on_a_full_disk_is_followed_later(folder, monkeypatch):
    """An older state is checked out while the folder is open, and there is no space to rebuild the index."""

    def full(*_, **__):
        raise apsw.FullError("as if the disk were full")

    async with opened(folder) as memory:
        await memory.remember("Anna likes tea")
        before = {path: path.read_bytes() for path in folder.glob("*.jsonl")}
        await memory.remember("taken back by the checkout")
        for path, data in before.items():
            path.write_bytes(data)
        with monkeypatch.context() as at_once:
            at_once.setattr(opening, "build", full)
            with pytest.raises(StoreError, match="full"):
                await memory.remember("refused")
        await memory.remember("Boris plays chess")
        assert await facts(memory) == {"Anna likes tea", "Boris plays chess"}


async def test_writes_are_found_at_once_even_if_the_index_failed(folder):
    """An undo reads and returns its commit."""

    def full(point):
        if point == "writer: before commit":
            raise apsw.FullError("as if the disk of the index were full")

    async with opened(folder) as memory:
        node = await memory.remember("Anna likes tea")
        await memory.forget(node.id)
        faults.install(full)
        assert (await memory.undo((await memory.log(1))[0].seq)).origin == "undo"
        assert (await memory.get((await memory.remember("Boris plays chess")).id)).is_live
        faults.install(None)
        assert await facts(memory) == {"Anna likes tea", "Boris plays chess"}


NEVER_A_ROW = {
    "a session named by a list": ("sessions.jsonl", '{"row":"9","commit":1,"seal":"00","session_id":[{}]}'),
    "unpaired surrogate": ("memories.jsonl", r'{"content":"\ud800"}'),
    "a number for a text": ("entities.jsonl", '{"name":"Dora","type":0}'),
    "a number for an id": ("memories.jsonl", '{"id":7,"content":"x"}'),
    "a row of no number": ("memories.jsonl", '{"row":"1>2","commit":1,"seal":"00","content":"x"}'),
    "a row beyond all numbers": ("memories.jsonl", f'{{"row":"{9**30}","commit":1,"seal":"00","content":"x"}}'),
    "a commit that is a list": ("edges.jsonl", '{"row":"1>1","commit":[1],"seal":"00"}'),
    "a commit beyond all numbers": ("edges.jsonl", f'{{"row":"1>1","commit":{9**30},"seal":"00"}}'),
    "a link to a list": ("edges.jsonl", '{"kind":"subject","memory":[1],"entity":{}}'),
    "a link to a number": ("edges.jsonl", f'{{"kind":"subject","memory":{9**30},"entity":-1}}'),
    "a before-image of nothing": ("history.jsonl", '{"commit":1,"table":["nodes"],"row":1e308,"before":7}'),
    "a commit by a thing": ("commits.jsonl", '{"commit":99,"at":"2026-01-01","actor":{},"origin":1,"reason":[]}'),
    "a setting for no table": ("store.jsonl", '{"kind":"withheld_print","withheld":-1,"print":"AA=="}'),
    "a setting beyond all numbers": ("store.jsonl", f'{{"kind":"model","row":"{9**30}","name":"x","dimension":4}}'),
    "a removal of nothing": ("store.jsonl", '{"kind":"off_record","removed":true,"row":{"a":1}}'),
    "a vector by a list": ("vectors.jsonl", '{"memory":"x","model":["a"],"dimension":{}}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("what", NEVER_A_ROW)
async def test_an_impossible_line_does_not_block_the_folder(folder, what, with_index):
    await filled(folder)
    async with opened(folder) as memory:
        known = await facts(memory)
    name, line = NEVER_A_ROW[what]
    with (folder / name).open("a") as file:
        file.write(line + "\n")
    if not with_index:
        without_index(folder)
    for number in range(2):
        async with opened(folder) as memory:
            said = {each.check: each.detail for each in (await memory.doctor()).findings}
            assert failing(await memory.doctor()) == {"plain files"}  # a line that is not used is named, not hidden
            assert f"not used: {name} line " in said["plain files"]
            assert await facts(memory) >= known
            await memory.remember(f"and life goes on {number}")


def with_conflict(found):
    return ["<<<<<<< ours\n", *found, "=======\n", *found, ">>>>>>> theirs\n"]


WHOLE_FILES = {
    "lines that end as on another system": lambda found: [line.replace("\n", "\r\n") for line in found],
    "a mark of the order of bytes": lambda found: ["\ufeff", *found],
    "empty lines": lambda found: ["\n", *(line + "\n" for line in found), "  \n"],
    "a conflict of git": with_conflict,
    "NUL in between": lambda found: [*found, "\0\0\0\n"],
    "no end of the last line": lambda found: [*found[:-1], found[-1].rstrip("\n")],
    "every line twice": lambda found: [line * 2 for line in found],
    "another order": lambda found: found[::-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("what", WHOLE_FILES)
async def test_editor_rewrites_lose_nothing(folder, what, with_index):
    await filled(folder)
    async with opened(folder) as memory:
        known = await facts(memory)
    for path in sorted(folder.glob("*.jsonl")):
        rewritten(folder, path.name, WHOLE_FILES[what])
    (folder / "draft").unlink(missing_ok=True)
    if not with_index:
        without_index(folder)
    for number in range(2):
        async with opened(folder) as memory:
            assert await facts(memory) - {"and life goes on 0"} == known
            # Lines that are not used, such as the marks of a conflict, are shown until they are moved aside.
            assert failing(await memory.doctor()) <= {"plain files"}
            await memory.gc()
            await memory.remember(f"and life goes on {number}")
            assert (await memory.doctor(fix=True)).ok


@pytest.mark.parametrize("with_index", [True, False])
async def test_an_unknown_origin_gets_the_lowest_trust(folder, with_index):
    await filled(folder)
    rewritten(
        folder, "memories.jsonl", lambda found: [found[0].replace('"source":"user"', '"source":"a bird"'), *found[1:]]
    )
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        (hit,) = [hit for hit in (await memory.search("tea")).hits if "tea" in hit.content]
        assert hit.trust == "web"


@pytest.mark.parametrize("with_index", [True, False])
async def test_a_hand_written_erasure_does_not_block_the_folder(folder, with_index):
    """It causes a rewrite of the files during a rebuild of the index."""
    await filled(folder)
    line = {"kind": "erasure", "owner_user_id": "me", "what": "memory", "at": "2026-01-01", "rows": 0, "digest": ""}
    with (folder / "runs.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert "Anna likes tea" in await facts(memory)
    assert not list(folder.glob(".index.building*"))


async def test_a_line_by_hand_stands_in_its_file_once_and_is_edited_like_any_other(folder):
    async with opened(folder) as memory:
        await memory.remember("Ben sails")
    rewritten(folder, "memories.jsonl", lambda found: ['{"broken\n', '{"content": "Anna likes tea"}\n', *found])
    async with opened(folder) as memory:
        assert await facts(memory) == {"Ben sails", "Anna likes tea"}
        assert list(caught(memory).found.unused) == [("memories.jsonl", 0)]
    texts = [line["content"] for line in map(json.loads, (folder / "memories.jsonl").read_text().splitlines()[1:])]
    assert texts == ["Ben sails", "Anna likes tea"]
    rewritten(folder, "memories.jsonl", edited("likes tea", "likes coffee"))
    async with opened(folder) as memory:
        assert await facts(memory) == {"Ben sails", "Anna likes coffee"}
    rewritten(folder, "memories.jsonl", without("coffee"))
    async with opened(folder) as memory:
        assert await facts(memory) == {"Ben sails"}


@pytest.mark.parametrize("with_index", [True, False])
async def test_a_line_by_hand_counts_once_after_a_crash(folder, with_index):
    async with opened(folder) as memory:
        await memory.remember("Ben sails")
    path = folder / "memories.jsonl"
    path.write_text(path.read_text() + '{"content": "Anna likes tea"}\n')

    def full(point):
        if point == "folder: after commit line":
            raise apsw.FullError("as if the disk of the index were full")

    faults.install(full)
    with contextlib.suppress(OSError, StoreError, UnavailableError):
        async with opened(folder):
            pass
    faults.install(None)
    if not with_index:
        without_index(folder)
    async with opened(folder) as memory:
        assert sorted(node.content for node in (await memory.list()).nodes) == ["Anna likes tea", "Ben sails"]


async def test_a_memory_whose_line_was_deleted_is_not_told_from_its_message(folder):
    async with opened(folder) as memory:
        await memory.add("Boris hates celery.", session="lunch")
        await memory.remember("Boris hates celery.", about=["Boris"])
    rewritten(folder, "memories.jsonl", without("celery"))
    async with opened(folder) as memory:
        assert not (await memory.search("Who hates celery?")).hits
        await memory.undo((await memory.log(1))[0].seq)
        assert {hit.content for hit in (await memory.search("Who hates celery?")).hits} == {"Boris hates celery."}
        assert failing(await memory.doctor()) == set()
