"""Broken, hostile and foreign files: a clear error with the position, and nothing half done."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import zipfile
from pathlib import Path

import pytest

from ricordo import InvalidError, Memory
from ricordo.portability import note_text, sources
from tests.portability.conftest import FILES, opened

BOM = b"\xef\xbb\xbf"


async def refused(memory: Memory, path: Path, *, format: str | None = None) -> InvalidError:
    """Return the error of an import that leaves nothing behind."""
    with pytest.raises(InvalidError) as caught:
        await memory.import_(path, format=format)
    assert (await memory.list(type="any")).nodes == ()
    assert await memory.log() == []
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("- Käse\n".encode("utf-16"), "UTF-16"),
        (b"- fine\n- K\xe4se\n", "line 2: byte 0xe4 is not UTF-8"),
        (b"- fine\n\x00\x01\x02", "line 2: the content is not text"),
        (b"plain words and nothing else", "is not recognized"),
        (b"[" * 100_000, "nested too deeply"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
    ],
)
async def test_an_unknown_format_is_refused(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(content)
    async with opened(tmp_path / "me.db") as memory:
        assert told in str(await refused(memory, path))


async def test_an_empty_folder_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    async with opened(tmp_path / "me.db") as memory:
        assert "holds no files" in str(await refused(memory, tmp_path / "export"))


async def test_a_byte_order_mark_before_utf8_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(BOM + b'{"text": "hello"}\n')
    async with opened(tmp_path / "me.db") as memory:
        assert (await memory.import_(path)).added == 1


async def test_a_bad_line_is_reported_and_the_others_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1_000)
    path = tmp_path / "chat.jsonl"
    lines = ['{"text": "one"}', "not json", '{"text": "' + "x" * 2_000 + '"}', '{"text": "two", "n": ' + "[" * 50_000]
    path.write_text("\n".join([*lines, '{"text": "three", "time": 1e300}', '{"text": "\\ud800"}', '{"text": "four"}']))
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(path)
        assert (report.added, report.refused_count) == (2, 5)
        told = " ".join(report.refused)
        for part in ("line 2: not JSON", "line 3: longer", "line 4: ", "line 5: ", "line 6: "):
            assert part in told


async def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("- the canary sings at dawn\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/more.md").write_text("- the second canary\n")
    (folder / "MEMORY.md").write_text("- an ordinary fact\n")
    (folder / "leak.md").symlink_to(tmp_path / "secret.md")
    (folder / "deep").symlink_to(tmp_path / "elsewhere")
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(folder)
        assert [node.content for node in (await memory.list()).nodes] == ["an ordinary fact"]
        assert {each.split(":")[0] for each in report.refused} == {"leak.md", "deep"}


def packed(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


async def test_a_zip_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.zip", **{"conversations.json": b"[" + b" " * 60_000_000 + b"]"})
    async with opened(tmp_path / "me.db") as memory:
        assert "unpacks to too much data" in str(await refused(memory, path))


async def test_what_all_members_of_a_zip_unpack_to_is_limited(tmp_path: Path) -> None:
    """Each member is within its own limit; together they are 76 MB from 80 kB."""
    path = packed(
        tmp_path / "bomb.zip", **{f"{n}/conversations.json": b"[" + b" " * 19_000_000 + b"]" for n in range(4)}
    )
    assert path.stat().st_size < 100_000
    async with opened(tmp_path / "me.db") as memory:
        assert "unpacks to too much data" in str(await refused(memory, path))
    forged = path.read_bytes().replace((19_000_002).to_bytes(4, "little"), (2).to_bytes(4, "little"))
    path.write_bytes(forged)  # the sizes in its headers lie
    async with opened(tmp_path / "me.db") as memory:
        await refused(memory, path)


@pytest.mark.parametrize("tiny", ["[],", '{"a":1},'])
async def test_json_that_would_fill_the_memory_is_refused(tiny: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text("[" + tiny * 1_500_000 + "1]")
    async with opened(tmp_path / "me.db") as memory:
        assert "too many tiny" in str(await refused(memory, tmp_path / "tiny.json"))


async def test_zip_entries_outside_the_archive_are_not_read(tmp_path: Path) -> None:
    chats = (FILES / "claude/conversations.json").read_bytes()
    names = ("../conversations.json", "/conversations.json", "c:\\conversations.json")
    path = packed(tmp_path / "a.zip", **dict.fromkeys(names, chats))
    async with opened(tmp_path / "me.db") as memory:
        await refused(memory, path)
    both = packed(tmp_path / "b.zip", **{"../conversations.json": b"[]", "in/conversations.json": chats})
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(both)
        assert (report.added, len(report.refused)) == (3, 1)  # with the text of an attachment
        assert "leads out of the archive" in report.refused[0]


async def test_a_broken_zip_and_a_damaged_database_are_reported(tmp_path: Path) -> None:
    whole = packed(tmp_path / "a.zip", **{"conversations.json": (FILES / "claude/conversations.json").read_bytes()})
    content = bytearray(whole.read_bytes())
    content[60:80] = b"\xff" * 20
    (tmp_path / "torn.zip").write_bytes(bytes(content))
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"\x10\x00\x01\x01\x00\x40\x20\x20" + b"\x07" * 4_000)
    async with opened(tmp_path / "me.db") as memory:
        assert "unpacked" in str(await refused(memory, tmp_path / "torn.zip"))
        await refused(memory, tmp_path / "torn.db")


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS id, 'a' || n AS content"


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE VIEW v AS {ENDLESS}, 'fact' AS kind FROM r;"
        "CREATE VIRTUAL TABLE memories USING fts5(id, content, kind, content='v', content_rowid='id')",
        f"CREATE VIEW memories AS {ENDLESS}, 'fact' AS kind FROM r",
    ],
    ids=["virtual table", "view"],
)
async def test_a_database_runs_no_query_of_its_own(sql: str, tmp_path: Path) -> None:
    """A virtual table over an endless view kept a core busy for good, and every other import waiting."""
    path = made(tmp_path / "memories.db", sql)
    async with opened(tmp_path / "me.db") as memory:
        for format in (None, "memories-sqlite", "langgraph", "mem0"):
            with pytest.raises(InvalidError):
                await memory.import_(path, format=format)
        assert (await memory.list(type="any")).nodes == ()


async def test_what_a_database_would_compute_is_not_read(tmp_path: Path) -> None:
    table = "CREATE TABLE memories (id, content, kind); INSERT INTO memories VALUES (1, 'Anna likes tea', 'fact')"
    overflow = "ALTER TABLE memories ADD COLUMN much GENERATED ALWAYS AS (abs(id - 9223372036854775807 - 2))"
    path = made(tmp_path / "memories.db", f"{table}; {overflow}")
    with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT * FROM memories").fetchall()
    async with opened(tmp_path / "me.db") as memory:
        assert (await memory.import_(path)).added == 1


def made(path: Path, sql: str) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql + ";")
    return path


async def test_a_database_whose_pages_hold_each_other_ends(tmp_path: Path) -> None:
    """Each inner page names one child in all of its places: 40 kB hold 20,000 rows, and more levels any number."""
    path = tmp_path / "memories.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA page_size = 512; CREATE TABLE memories (id, content, kind)")
        rows = [(f"a{number}", "green tea", "fact") for number in range(20_000)]
        connection.executemany("INSERT INTO memories VALUES (?, ?, ?)", rows)
        connection.commit()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema").fetchone()
    data = bytearray(path.read_bytes())
    while (page - 1) * 512 < len(data) and data[(start := (page - 1) * 512)] == 5:  # an inner page of a table
        cells = int.from_bytes(data[start + 3 : start + 5], "big")
        pointers = [int.from_bytes(data[start + 12 + 2 * n : start + 14 + 2 * n], "big") for n in range(cells)]
        places = [start + 8, *(start + pointer for pointer in pointers)]  # its last child, and those of its cells
        page = min(int.from_bytes(data[place : place + 4], "big") for place in places)
        for place in places:
            data[place : place + 4] = page.to_bytes(4, "big")
    pages = 80
    data[28:32] = pages.to_bytes(4, "big")  # of the file, in its header
    path.write_bytes(bytes(data[: pages * 512]))
    async with opened(tmp_path / "me.db") as memory:
        assert "more than the file can contain" in str(await refused(memory, path))


async def test_missing_files_and_the_store_itself_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with opened(tmp_path / "me.db") as memory:
        assert "neither a file nor a folder" in str(await refused(memory, tmp_path / "pipe"))
        assert "own store" in str(await refused(memory, tmp_path / "me.db"))
        assert "part of a database" in str(await refused(memory, tmp_path / "me.db-wal"))
        assert "cannot be read" in str(await refused(memory, tmp_path / "nowhere"))
        assert "choose one of" in str(await refused(memory, FILES / "chat.jsonl", format="telepathy"))


async def test_a_ricordo_store_is_recognised_with_a_hint(tmp_path: Path) -> None:
    async with opened(tmp_path / "other.db") as other, opened(tmp_path / "me.db") as memory:
        await other.remember("something")
        error = await refused(memory, tmp_path / "other.db")
        assert "is a Ricordo store" in str(error)
        assert "export" in error.hint
        await other.remember("locks are as they were")


async def test_a_cycle_of_parents_ends(tmp_path: Path) -> None:
    said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hello"]}, "create_time": 1.7e9}
    ring = {
        name: {"id": name, "parent": other, "children": [other], "message": {**said, "id": name}}
        for name, other in (("a", "b"), ("b", "a"))
    }
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": "c", "mapping": ring, "current_node": "a"}]))
    async with opened(tmp_path / "me.db") as memory:
        assert (await memory.import_(path)).added == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"in":"sessions"', '"in":"sessions","session_id":{"a":[{}]}'),
        ('{"in":"memories"', '{"kind":"\\ud800","in":"memories"'),
        ('"source":"user"', '"source":"a bird"'),
        ('"commit":1', '"commit":[1]'),
        ('"row":"1"', '"row":"99999999999999999999"'),
    ],
)
async def test_an_impossible_export_line_is_refused_or_skipped(old: str, new: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        await memory.add("hello", session="s")
        await memory.export(tmp_path / "all.jsonl")
    whole = (tmp_path / "all.jsonl").read_text()
    assert old in whole
    (tmp_path / "all.jsonl").write_text(whole.replace(old, new))
    async with opened(tmp_path / "other.db") as other:
        with contextlib.suppress(InvalidError):
            await other.import_(tmp_path / "all.jsonl")
        await other.remember("Boris plays chess")
        assert "Boris plays chess" in {hit.content for hit in (await other.search("chess tea hello")).hits}


@pytest.mark.parametrize(
    "content",
    [
        '[{"mapping": {"a": "not a message"}, "current_node": "a"}, "not a conversation"]',
        '[{"mapping": {"a": {"message": {"create_time": 1e400}}}, "current_node": ["a"]}]',
        '[{"chat_messages": [{"text": [[]], "created_at": {"a": 1}}], "uuid": []}, 7]',
    ],
)
@pytest.mark.parametrize("format", ["chatgpt", "claude", None])
async def test_a_chat_export_of_other_shapes_raises_no_error_of_python(
    content: str, format: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content, encoding="utf-8")
    async with opened(tmp_path / "me.db") as memory:
        with contextlib.suppress(InvalidError):
            await memory.import_(path, format=format)
        assert (await memory.doctor()).ok


@pytest.mark.parametrize(
    "text",
    [
        f"# a{' ' * 60_000}x",
        f"# a {'#' * 60_000}x",
        f"- a{' #tag' * 20_000} end",
        f"- a{' ' * 60_000}x",
        f"- a <{'a' * 60_000}",
        f"# People\n## a{' -' * 30_000}(",
        "---\ntags:\n" + "- a\n" * 20_000 + "---\nA note",
        f"- a (2026-01-05{' ' * 60_000}x",
    ],
    ids=["blanks", "signs", "tags", "text", "element", "people", "list", "date"],
)
async def test_a_hostile_note_is_imported_in_linear_time(text: str, tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text(f"{text}\n\n- Bob plays the cello\n", "utf-8")
    async with opened(tmp_path / "me.db") as memory:
        started = time.process_time()
        assert (await memory.import_(path, dry_run=True)).read > 0
        assert (await memory.add_document(path)).id
        assert note_text.parse(path.read_text("utf-8")).items
        assert time.process_time() - started < 5
