"""Damage from outside while a store is open, and what other processes leave behind: noticed, named, never served."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, RicordoError, Scope, Settings, StoreError, UnavailableError

KINDS = ("memory.db", "memory/")
SETTINGS = Settings(patience_s=5.0)


def opened(location: Path | str, **options) -> Memory:
    return Memory.open(location, embedder=None, settings=SETTINGS, **options)


def place(folder: Path, kind: str) -> str:
    return f"{folder}/{kind}"


def beside(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python in another process, and wait until it has said that it is ready."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline().strip() == "ready"
    return process


async def texts(location: Path | str, **options) -> set[str]:
    async with opened(location, **options) as memory:
        return {node.content for node in (await memory.list(limit=1_000)).nodes}


# files that disappear or change under an open store


@pytest.mark.parametrize("what", ["deleted", "replaced", "moved"])
async def test_a_file_that_is_gone_under_an_open_store_gets_no_more_writes(tmp_path: Path, what: str) -> None:
    path = tmp_path / "memory.db"
    async with opened(path) as memory:
        await memory.remember("Bob plays the cello")
        if what == "deleted":
            path.unlink()
        elif what == "moved":
            path.rename(tmp_path / "elsewhere.db")
        else:
            async with opened(tmp_path / "other.db") as other:
                await other.remember("Something else")
            (tmp_path / "other.db").replace(path)
        for number in range(3):
            with pytest.raises(StoreError, match="no longer at"):
                await memory.remember(f"Lost {number}")
        with pytest.raises(StoreError, match="no longer at"):  # what is there may be another store
            await memory.list()
    (rescued,) = beside(tmp_path, "memory.db.rescued-*")
    assert await texts(rescued) == {"Bob plays the cello"}


async def test_a_log_deleted_under_an_open_store_is_noticed(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await memory.remember("Bob plays the cello")
        (tmp_path / "memory.db-wal").unlink()
        with pytest.raises(StoreError, match="no longer at"):
            await memory.remember("Lost")
    (rescued,) = beside(tmp_path, "memory.db.rescued-*")
    assert await texts(rescued) == {"Bob plays the cello"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commits.jsonl", "history.jsonl", "store.jsonl"])
@pytest.mark.parametrize("how", ["cut", "emptied", "deleted"])
@pytest.mark.parametrize("is_open", [True, False])
async def test_a_file_of_a_folder_that_is_cut_is_written_again(
    tmp_path: Path, name: str, how: str, is_open: bool
) -> None:
    folder = tmp_path / "memory"

    def damage() -> None:
        file = folder / name
        if how == "deleted":
            file.unlink()
            return
        data = file.read_bytes()
        keep = data[: len(data) // 2].rfind(b"\n") + 1 if how == "cut" else 0
        os.truncate(file, keep)  # in one step: written again it would be empty for a moment

    said = [f"Person number {number} plays the cello" for number in range(12)]
    memory = await opened(f"{folder}/")
    for text in said[:10]:
        await memory.remember(text)
    changed = await memory.remember("The code is 1")
    await memory.update(changed.id, content="The code is 2")
    await memory.off_record("s9")
    if is_open:
        damage()
        for text in said[10:]:
            await memory.remember(text)
        await memory.close()
    else:
        for text in said[10:]:
            await memory.remember(text)
        await memory.close()
        damage()
    async with opened(f"{folder}/") as memory:
        assert {node.content for node in (await memory.list(limit=100)).nodes} == {*said, "The code is 2"}
        assert [each.node.content for each in await memory.history(changed.id)] == ["The code is 1", "The code is 2"]
        report = await memory.doctor()
        assert report.ok, report
        if how == "cut" and name != "history.jsonl":
            aside = next(each.detail for each in report.findings if each.check == "set aside")
            assert name.removesuffix(".jsonl") in aside


async def test_a_folder_that_was_deleted_and_made_again_gets_no_more_writes(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    memory = await opened(f"{folder}/")
    await memory.remember("Bob plays the cello")
    shutil.rmtree(folder)
    assert await texts(f"{folder}/") == set()
    with pytest.raises(StoreError, match="replaced"):
        await memory.remember("Lost")
    await memory.close()
    assert await texts(f"{folder}/") == set()


@pytest.mark.parametrize("damage", [b"", b"rubbish" * 2_000])
async def test_an_index_that_is_overwritten_while_open_is_rebuilt(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "memory"
    async with opened(f"{folder}/") as memory:
        await memory.remember("Bob plays the cello")
        (folder / "index.db").write_bytes(damage)
        assert [hit.content for hit in (await memory.search("cello")).hits] == ["Bob plays the cello"]
        await memory.remember("Ann plays the flute")
        assert len((await memory.list()).nodes) == 2
        assert (await memory.doctor()).ok
    assert await texts(f"{folder}/") == {"Bob plays the cello", "Ann plays the flute"}


async def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    async with opened(f"{folder}/") as memory:
        await memory.remember("Bob plays the cello")
        (folder / "episodes.jsonl").unlink(missing_ok=True)
        (folder / "episodes.jsonl").mkdir()
        for _ in range(3):  # after the first, each opens the index again
            with pytest.raises(StoreError, match=r"episodes\.jsonl is a folder") as caught:
                await memory.add("hello")
            assert "doctor --fix" in caught.value.hint


# rewrites that a killed process left


@pytest.mark.parametrize("then", ["rebuild", "no index", "both"])
async def test_a_rewrite_that_was_cut_off_is_finished_before_a_rebuild(tmp_path: Path, then: str) -> None:
    folder = tmp_path / "memory"
    async with opened(f"{folder}/") as memory:
        for number in range(4):
            await memory.remember(f"Person number {number} plays the cello")
        gone = await memory.remember("The secret word is zyzzyva")
    code = """
        import asyncio, os, sys
        from ricordo import Memory
        from ricordo.storage import faults
        async def main():
            async with Memory.open(sys.argv[1], embedder=None) as memory:
                print("ready", flush=True)
                faults.install(lambda point: point == "folder: between renames" and os._exit(9))
                await memory.erase(id=sys.argv[2])
        asyncio.run(main())
    """
    async with opened(f"{folder}/") as other:
        await other.list()
        process = child(code, f"{folder}/", gone.id)
        assert process.wait(30) != 0
        if then != "rebuild":
            for path in folder.glob("index.db*"):
                path.unlink()
        if then != "no index":
            await other.rebuild_index()
        await other.remember("Ann plays the flute")
        found = {node.content for node in (await other.list()).nodes}
        assert found == {*(f"Person number {n} plays the cello" for n in range(4)), "Ann plays the flute"}
        report = await other.doctor()
        assert report.ok, report
        assert "nothing" in next(each.detail for each in report.findings if each.check == "set aside")


def test_a_forked_child_keeps_no_lock_of_its_dead_parent(tmp_path: Path) -> None:
    code = """
        import asyncio, os, signal, sys, time
        from ricordo import Memory
        async def main():
            memory = await Memory.open(sys.argv[1], embedder=None)
            await memory.remember("Bob plays the cello")
            with memory._engine.store.index.journal.locked():
                if os.fork() == 0:
                    os.close(1)
                    time.sleep(20)
                    os._exit(0)
                print("ready", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        asyncio.run(main())
    """
    child(code, f"{tmp_path}/memory/").wait(10)
    assert asyncio.run(texts(f"{tmp_path}/memory/")) == {"Bob plays the cello"}


# erasing


@pytest.mark.parametrize("kind", KINDS)
async def test_an_erasure_that_cannot_be_finished_does_not_keep_the_store_shut(tmp_path: Path, kind: str) -> None:
    location = place(tmp_path, kind)
    async with opened(location) as memory:
        await memory.remember("Bob plays the cello")
        gone = await memory.remember("The secret word is zyzzyva")
    code = """
        import sys, apsw, time
        connection = apsw.Connection(sys.argv[1])
        connection.execute("BEGIN").fetchall()
        connection.execute("SELECT count(*) FROM nodes").fetchall()
        print("ready", flush=True)
        time.sleep(60)
    """
    file = f"{location}index.db" if kind.endswith("/") else location
    async with Memory.open(location, embedder=None, settings=Settings(patience_s=0.5)) as memory:
        reader = child(code, file)
        report = await memory.erase(id=gone.id)
        assert any("next opening" in each for each in report.out_of_reach)
    try:
        async with Memory.open(location, embedder=None, settings=Settings(patience_s=0.5)) as memory:
            assert [node.content for node in (await memory.list()).nodes] == ["Bob plays the cello"]
            await memory.remember("Ann plays the flute")
            erasures = next(each for each in (await memory.doctor()).findings if each.check == "erasures")
            assert "next opening" in erasures.detail
    finally:
        reader.kill()
        reader.wait()
    async with opened(location) as memory:
        erasures = next(each for each in (await memory.doctor()).findings if each.check == "erasures")
        assert "next opening" not in erasures.detail


@pytest.mark.parametrize("kind", KINDS)
async def test_an_erasure_leaves_what_is_measured_of_others(tmp_path: Path, kind: str) -> None:
    async with Memory.open(place(tmp_path, kind), embedder="hashing") as memory:
        ann, bob = memory.scoped(Scope(owner="ann")), memory.scoped(Scope(owner="bob"))
        for who in (ann, bob):
            for number in range(30):
                await who.remember(f"Person number {number} plays instrument {number * 7}")
        await memory.settle(600)
        questions = ("Who plays the cello?", "instrument 49", "Person number 3")
        for who in (ann, bob):
            await who.search("cello", only_relevant=True)
        before = [await ann.context(each) for each in questions]
        floors = await memory._engine.store.read(lambda tx: tx.connection.execute("SELECT * FROM floors").fetchall())
        await bob.erase(owner="bob")
        left = await memory._engine.store.read(lambda tx: tx.connection.execute("SELECT * FROM floors").fetchall())
        assert len(floors) == 2 and len(left) == 1 and left[0] in floors
        assert [await ann.context(each) for each in questions] == before


@pytest.mark.parametrize("column", ["spaces", "model", "count", "middle", "spread", "chance"])
async def test_a_damaged_calibration_is_measured_again(tmp_path: Path, column: str) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        for number in range(30):
            await memory.remember(f"Person number {number} plays instrument {number * 7}")
        await memory.settle(600)
        engine: Any = memory._engine

        async def floors() -> Any:
            return await engine.store.read(lambda tx: tx.connection.execute("SELECT * FROM floors").fetchall())

        before = await memory.context("instrument 49")
        ((spaces, model, *rest),) = await floors()
        other = {"spaces": "'[9]'", "model": "77", "middle": "replace(middle, '1', '7')", "spread": "spread || ' '"}
        change = f"UPDATE floors SET {column} = {other.get(column, f'{column} + 1')}"
        await engine.store.derive(lambda tx: tx.connection.execute(change))
        assert await memory.context("instrument 49") == before
        assert (spaces, model, *rest) in await floors()


async def test_what_a_killed_trial_of_a_backup_leaves_is_named_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    async with opened(tmp_path / "memory.db") as memory:
        gone = await memory.remember("The secret word is zyzzyva")
        await memory.backup(tmp_path / "backup.db")
        code = """
            import asyncio, os, signal, sys
            from ricordo import Memory
            from ricordo.storage import backup
            def stop(*given, **more):
                print("ready", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            backup._examine_file = stop
            asyncio.run(Memory.verify_backup(sys.argv[1]))
        """
        child(code, tmp_path / "backup.db").wait(30)
        assert any(b"zyzzyva" in path.read_bytes() for path in temporary.rglob("*") if path.is_file())
        report = await memory.erase(id=gone.id)
        assert not any(b"zyzzyva" in path.read_bytes() for path in temporary.rglob("*") if path.is_file()) or any(
            str(temporary) in each for each in report.out_of_reach
        )
    assert (await Memory.verify_backup(tmp_path / "backup.db")).ok
    assert not list(temporary.iterdir())


# one answer for each write


@pytest.mark.parametrize("kind", KINDS)
async def test_a_write_that_races_with_closing_has_one_answer(tmp_path: Path, kind: str) -> None:
    location, told = place(tmp_path, kind), {}
    for turn in range(6):
        memory = await opened(location)

        async def one(text: str, memory: Memory = memory) -> None:
            try:
                if text.endswith(("0", "1", "2")):
                    await memory.remember(text)
                else:
                    await memory.add(text)
                told[text] = True
            except UnavailableError:
                told[text] = False

        tasks = [asyncio.ensure_future(one(f"Turn {turn} says word{turn}x{number}")) for number in range(40)]
        for _ in range(turn):
            await asyncio.sleep(0)
        await memory.close()
        await asyncio.gather(*tasks)
    async with opened(location) as memory:
        kept = {node.content for node in (await memory.list(type="any", limit=1_000)).nodes}
    assert kept == {text for text, was_kept in told.items() if was_kept}
    assert len(told) == 240


# whose change it is


async def test_a_change_by_hand_belongs_to_the_owner_of_the_row(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    ann = Scope(owner="ann")
    async with opened(f"{folder}/", scope=ann) as memory:
        node = await memory.remember("Lena plays the cello", about=["Lena"])
        await memory.scoped(Scope(owner="bob")).remember("Nora sings", about=["Nora"])
    for name in ("edges.jsonl", "memories.jsonl"):
        file = folder / name
        if name == "edges.jsonl":
            rows = [line for line in file.read_text("utf-8").splitlines() if '"subject' in line or "subjects" in line]
            assert rows, file.read_text("utf-8")
            theirs = [line for line in file.read_text("utf-8").splitlines() if line != rows[0]]
            file.write_text("".join(f"{line}\n" for line in theirs), "utf-8")
        else:
            file.write_text(file.read_text("utf-8").replace("plays the cello", "plays the flute"), "utf-8")
        async with opened(f"{folder}/", scope=ann) as memory:
            (latest, *_) = await memory.log()
            assert "by hand" in latest.reason
            assert all("by hand" not in each.reason for each in await memory.scoped(Scope(owner="me")).log())
            assert all("by hand" not in each.reason for each in await memory.scoped(Scope(owner="bob")).log())
            await memory.undo(latest.seq)
            assert (await memory.get(node.id)).content == "Lena plays the cello"
            assert list((await memory.get(node.id)).about) == ["Lena"]


async def test_doctor_names_what_was_changed_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    async with opened(f"{folder}/") as memory:
        await memory.remember("Bob plays the cello")
        found = next(each for each in (await memory.doctor()).findings if each.check == "changes by hand")
        assert found.detail == "none"
    file = folder / "memories.jsonl"
    file.write_text(file.read_text("utf-8").replace("cello", "flute"), "utf-8")
    async with opened(f"{folder}/") as memory:
        report = await memory.doctor()
        found = next(each for each in report.findings if each.check == "changes by hand")
        assert report.ok and "1 commit" in found.detail


# files that come in


_BAD = {
    "a date out of range": json.dumps({"role": "user", "text": "hello", "time": 10**30}),
    "a negative date": json.dumps({"role": "user", "text": "hello", "time": -(10**18)}),
    "half a character": '{"role": "user", "text": "\\ud800 hello"}',
    "an infinite number": '{"role": "user", "text": "hello", "time": 1e999}',
    "a deep nest": '{"role": "user", "text": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a number of a million digits": '{"role": "user", "text": "hello", "time": ' + "9" * 1_000_000 + "}",
    "a null": '{"role": "user", "text": "a\\u0000b", "session": "\\u0000"}',
}


@pytest.mark.parametrize("format", ["chat", None, "mem0", "langgraph", "chatgpt", "claude", "memories-jsonl", "mcp"])
@pytest.mark.parametrize("what", _BAD)
async def test_a_hostile_file_is_refused_or_read_and_raises_nothing_else(
    tmp_path: Path, what: str, format: str | None
) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(_BAD[what] + "\n", "utf-8")
    async with opened(tmp_path / "memory.db") as memory:
        try:
            await memory.import_(file, format=format)
        except RicordoError as error:
            assert str(error)
        assert (await memory.doctor()).ok


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".zip", ".db", ".md"])
async def test_bytes_that_are_nothing_are_refused(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"file{ending}"
    rubbish = b"\xff\xfe\x00\x80" * 50, b"PK\x03\x04" + b"\x00" * 100, b"SQLite format 3\x00" + b"\xff" * 4_000
    for data in (b"", *rubbish):
        file.write_bytes(data)
        async with opened(":memory:") as memory:
            try:
                await memory.import_(file)
            except RicordoError as error:
                assert str(error)
