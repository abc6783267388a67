"""The plain files are the truth: the index can be missing, damaged or stale, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import stat
from base64 import b64encode
from pathlib import Path

import apsw
import numpy as np
import pytest
from tests.crash import prefixes
from tests.crash.embedders import Letters
from tests.storage.folders import everything, lines, without_index
from tests.storage.histories import OPTIONS, HandClock, History
from tests.storage.making import failing, raw

from ricordo import Memory, Scope
from ricordo.storage import faults
from ricordo.storage.database.history import TABLES, truth_of
from ricordo.storage.jsonl.layout import FORMS, KEPT
from ricordo.storage.jsonl.shapes import shapes_of
from ricordo.storage.registry import open_store


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


@pytest.fixture(autouse=True)
def no_hook():
    yield
    faults.install(None)


def opened(folder: Path, clock: HandClock | None = None, **options):
    return Memory.open(f"{folder}/", clock=clock or HandClock(), **{**OPTIONS, **options})


async def texts(folder: Path) -> set[str]:
    async with opened(folder, embedder=None) as memory:
        return {node.content for node in (await memory.list(limit=100)).nodes}


async def lived(folder: Path, *, seed: int, steps: int) -> list[str]:
    clock = HandClock()
    async with opened(folder, clock) as memory:
        history = History(memory, clock, folder, seed=seed)
        done = [await history.step() for _ in range(steps)]
        await memory.settle(600)
    return done


def test_every_table_is_in_the_files_or_rebuilt(tmp_path):
    open_store(tmp_path / "m.db").close()
    connection = raw(tmp_path / "m.db")
    tables = {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if not name.startswith(("sqlite_", "nodes_fts", "archive_fts"))
    }
    truth = set(truth_of(connection).tables)
    assert truth - FORMS.keys() == set(), "a truth table needs a form in storage/database/tables.toml"
    others = tables - truth - KEPT.keys() - {*TABLES["derived"], *TABLES["own_files"]}
    assert others == set(), "say in storage/database/tables.toml what becomes of these"
    assert {*TABLES["unsealed"]} - {"embeddings", "passage_vectors", "word_vectors"} == KEPT.keys(), (
        "what lasts without seals has a sum"
    )
    shapes = shapes_of(connection)
    fields = [(each.form.file, each.form.kind) for each in shapes.rows.values()]
    assert len(set(fields)) == len(fields), "two tables share a file and a kind of line"
    assert all(len({c.field for c in shape.columns}) == len(shape.columns) for shape in shapes.rows.values())
    connection.close()


@pytest.mark.parametrize("seed", range(6))
async def test_a_rebuilt_index_is_equal(folder, seed):
    await lived(folder, seed=seed, steps=40)
    before = everything(folder)
    assert before["vectors"]
    without_index(folder)
    async with opened(folder) as memory:
        made = await memory.doctor()
        await memory.settle(600)
    assert everything(folder) == before
    assert failing(made) == set()


async def test_a_rebuild_computes_no_vectors(folder):
    class Counting:
        name, dimension = "counting", 8
        asked = 0

        async def embed_batch(self, texts, *, kind="passage"):
            Counting.asked += len(texts)
            return [[1.0, *[0.0] * 7] for _ in texts]

        async def embed(self, text, *, kind="passage"):
            return [1.0, *[0.0] * 7]

    async with opened(folder, embedder=Counting()) as memory:
        for number in range(20):
            await memory.add(f"message {number}")
        await memory.settle(600)
    asked = Counting.asked
    assert asked >= 20
    without_index(folder)
    async with opened(folder, embedder=Counting()) as memory:
        await memory.settle(600)
        assert (await memory.stats()).embedded == 20
    assert Counting.asked == asked


async def test_a_rebuild_restores_word_vectors(folder):
    """Word and passage vectors of the embedder come back, and no lines are reported as unusable."""
    async with opened(folder, embedder=Letters()) as memory:
        for text in ("I like green tea", "рыба", "a", "O'Brien's boat!", "The harvest was good this year. " * 60):
            await memory.add(text)
        await memory.settle(600)
    words = "SELECT node, pieces, hex(vectors) FROM word_vectors w JOIN embeddings e ON e.id = w.embedding ORDER BY 1"
    passages = "SELECT node, hex(vectors) FROM passage_vectors p JOIN embeddings e ON e.id = p.embedding"
    before, long = (raw(folder / "index.db").execute(each).fetchall() for each in (words, passages))
    assert before[0][1] == "I like green tea"
    assert "¶" in before[-1][1]
    assert [node for node, _ in long] == [5]
    without_index(folder)
    async with opened(folder, embedder=None) as memory:
        assert [raw(folder / "index.db").execute(each).fetchall() for each in (words, passages)] == [before, long]
        assert [each for each in (await memory.doctor()).findings if not each.ok] == []


async def test_a_rebuild_does_not_restore_removed_vectors(folder):
    """Vectors of forgotten memories are removed with their model or text and not computed again."""
    async with opened(folder, embedder="hashing") as memory:
        said = [await memory.add(f"message {number}") for number in range(20)]
        fact = await memory.remember("Anna likes tea")
        await memory.settle(600)
        changed = await memory.update(fact.id, content="Anna likes coffee")
        await memory.undo((await memory.history(changed.id))[-1].commit.seq)
        for id_ in (*said[:5], fact.id):
            await memory.forget(id_)
    for embedder in (Letters(), "hashing"):
        async with opened(folder, embedder=embedder) as memory:
            await memory.settle(600)
    before = everything(folder)
    assert len(before["vectors"]) == 15
    without_index(folder)
    async with opened(folder, embedder="hashing") as memory:
        await memory.settle(600)
    assert everything(folder) == before


async def test_off_the_record_sessions_survive_a_rebuild(folder):
    async with opened(folder) as memory:
        await memory.off_record(session="private")
    without_index(folder)
    async with opened(folder) as memory:
        await memory.add("between us", session="private")
        assert (await memory.stats()).nodes == {}


async def test_a_damaged_index_is_set_aside_and_rebuilt(folder):
    await lived(folder, seed=1, steps=20)
    before = everything(folder)
    (folder / "index.db").write_bytes(b"garbage" * 1_000)
    async with opened(folder):
        pass
    assert everything(folder) == before
    (aside,) = folder.glob("index.db.damaged-*")
    assert aside.read_bytes().startswith(b"garbage")


@pytest.mark.parametrize("damage", [("[", "{"), (":", ";"), (",", "]"), ('"', "x")])
async def test_an_index_without_a_valid_position_is_rebuilt(folder, damage):
    await lived(folder, seed=1, steps=10)
    before = everything(folder)
    raw(folder / "index.db").execute("UPDATE meta SET value = replace(value, ?, ?) WHERE name = 'folder'", damage)
    async with opened(folder):
        pass
    assert everything(folder) == before
    assert len(list(folder.glob("index.db.damaged-*"))) == 1


async def test_a_prefix_of_the_last_commit_opens(folder, tmp_path):
    """Some prefixes; `tests/crash/prefixes.py` tries all."""
    torn = await prefixes.written(folder)
    line = torn.before_its_line
    lengths = [*range(0, line, 71), *range(line, torn.total + 1, 29), torn.total - 1, torn.total]
    assert await prefixes.all_wrong(torn, lengths, tmp_path / "torn") == (len(lengths), {})


async def test_an_index_that_could_not_be_committed_catches_up(folder):
    failed = []

    def full(point):
        if point == "folder: after commit line" and not failed:
            failed.append(point)
            raise apsw.FullError("as if the disk of the index were full")

    async with opened(folder, embedder=None) as memory:
        await memory.add("first")
        faults.install(full)
        id_ = await memory.add("acknowledged")
        assert failed
        assert [line["content"] for line in lines(folder, "episodes.jsonl")] == ["first", "acknowledged"]
        await memory.add("third")
        assert (await memory.get(id_)).content == "acknowledged"
    assert [line["commit"] for line in lines(folder, "commits.jsonl")] == [1, 2, 3]
    assert await texts(folder) == {"first", "acknowledged", "third"}


async def test_files_that_cannot_be_written_leave_nothing_behind(folder):
    def full(point):
        if point == "folder: before commit line":
            raise OSError(28, "No space left on device")

    async with opened(folder, embedder=None) as memory:
        await memory.add("first")
        before = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
        faults.install(full)
        with pytest.raises(Exception, match="full"):
            await memory.add("second")
        assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == before
        faults.install(None)
        await memory.add("third")
    assert await texts(folder) == {"first", "third"}


@pytest.mark.parametrize("has_index", [True, False], ids=["catching up", "rebuilding"])
async def test_what_is_outside_the_truth_does_not_count_without_the_commit_it_was_written_with(
    folder, tmp_path, has_index
):
    """A process that is killed before the line of its commit leaves the lines that it wrote before."""
    died = tmp_path / "died"

    def die(point):
        if point == "folder: before commit line" and not died.exists():
            shutil.copytree(folder, died, ignore=shutil.ignore_patterns("*-shm"))

    async with opened(folder, embedder=None) as memory:
        said = await memory.add("I love chess.")
        fact = await memory.remember("I love chess")
        faults.install(die)
        await memory.forget(fact.id)
        faults.install(None)
        assert (await memory.search("chess")).hits == ()
    assert any(line.get("commit") == 3 for line in lines(died, "store.jsonl"))
    if not has_index:
        without_index(died)
    async with opened(died, embedder=None) as memory:
        assert set((await memory.search("chess")).ids) == {said, fact.id}
        assert not any(line.get("commit") == 3 for line in lines(died, "store.jsonl"))
        assert not failing(await memory.doctor())
        await memory.forget(fact.id)
        assert (await memory.search("chess")).hits == ()


async def test_lines_written_by_hand_are_adopted(folder):
    async with opened(folder, embedder=None) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    with (folder / "memories.jsonl").open("a") as file:
        file.write('{"content": "Boris plays chess"}\n{"content": "not a line\n')
        file.write('{"id": "mine", "content": "Chiara has a flat", "source_session_id": "s9", "memory_type": "event"}')
    async with opened(folder, embedder=None) as memory:
        found = {node.content: node for node in (await memory.list(limit=10)).nodes}
        assert set(found) == {"Anna likes tea", "Boris plays chess", "Chiara has a flat"}
        assert (found["Chiara has a flat"].id, found["Chiara has a flat"].session) == ("mine", "s9")
        assert (await memory.log(1))[0].actor == "hand"
        assert failing(await memory.doctor()) == {"plain files"}  # the line that is none
        await memory.forget("mine")
    before = everything(folder)
    without_index(folder)
    assert await texts(folder) == {"Anna likes tea", "Boris plays chess"}
    assert everything(folder) == before
    assert b'{"content": "not a line\n' in (folder / "memories.jsonl").read_bytes()


async def test_files_of_version_1_open_as_they_are(folder):
    folder.mkdir()
    vector = b64encode(np.ones(4, "<f4").tobytes()).decode()
    memory_line = {
        "id": "abc-123",
        "version": 1,
        "content": "User prefers dark mode",
        "memory_type": "preference",
        "embedding": vector,
        "created_at": "2026-02-09T10:00:00+00:00",
        "observed_at": None,
        "owner_user_id": "user-1",
        "chat_id": None,
        "subject_person_ids": ["person-456"],
        "source": "user",
        "source_session_id": None,
        "source_message_id": None,
        "extraction_confidence": None,
        "expires_at": None,
        "superseded_at": None,
        "superseded_by_id": None,
        "archived_at": None,
        "archive_reason": None,
        "metadata": None,
    }
    archived = {
        **memory_line,
        "id": "old",
        "content": "User prefers light mode",
        "archived_at": "2026-02-10T10:00:00+00:00",
        "archive_reason": "superseded",
        "superseded_by_id": "abc-123",
    }
    person = {
        "id": "person-456",
        "version": 1,
        "owner_user_id": "user-1",
        "name": "Sarah",
        "relation": "wife",
        "aliases": ["Sally"],
        "created_at": "2026-01-15T10:00:00+00:00",
        "updated_at": None,
        "metadata": None,
    }
    for name, line in (("memories", memory_line), ("archive", archived), ("people", person)):
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    for _ in range(2):
        async with opened(folder, scope=Scope(owner="user-1")) as memory:
            node = await memory.get("abc-123")
            assert (node.content, node.about, node.category) == ("User prefers dark mode", ("Sarah",), "preference")
            assert node.created_at.isoformat() == "2026-02-09T10:00:00+00:00"
            assert (await memory.get("old")).closed_reason == "superseded"
            (sarah,) = await memory.people()
            assert (sarah.name, sarah.relation, set(sarah.aliases)) == ("Sarah", "wife", {"Sally"})
            assert len(await memory.log(10)) == 1
            assert failing(await memory.doctor()) == set()
        without_index(folder)


async def test_the_files_are_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        await lived(folder, seed=2, steps=15)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}, modes
