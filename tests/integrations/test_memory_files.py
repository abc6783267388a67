"""Claude's files under /memories: the six commands, and no access outside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.integrations.items import MemoryFiles
from tests.flows.conftest import DAY, HandClock


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "me.db", embedder="hashing") as opened:
        yield opened


@pytest.fixture
def files(memory: Memory) -> MemoryFiles:
    return MemoryFiles(memory)


async def test_the_six_commands(files):
    assert "/memories" in await files.view("/memories")
    await files.create("/memories/notes/ann.md", "likes tea\nlives in Rome\n")
    await files.create("/memories/todo.txt", "")
    assert "     2\tlives in Rome" in await files.view("/memories/notes/ann.md")
    shown = await files.view("/memories/notes/ann.md", [2, 2])
    assert "Rome" in shown and "tea" not in shown
    listed = await files.view("/memories/")
    assert "/memories/notes/" in listed and "/memories/notes/ann.md" in listed and "0\t/memories/todo.txt" in listed
    assert "Milan" in await files.replace("/memories/notes/ann.md", "Rome", "Milan")
    await files.insert("/memories/notes/ann.md", 1, "has a cat\n")
    assert (await files.view("/memories/notes/ann.md")).split("\n")[1:] == [
        "     1\tlikes tea",
        "     2\thas a cat",
        "     3\tlives in Milan",
        "     4\t",
    ]
    await files.insert("/memories/todo.txt", 0, "call Tom")
    assert "call Tom" in await files.view("/memories/todo.txt")
    await files.rename("/memories/notes", "/memories/people")
    assert "cat" in await files.view("/memories/people/ann.md")
    with pytest.raises(NotFoundError):
        await files.view("/memories/notes/ann.md")
    await files.delete("/memories/people")
    with pytest.raises(NotFoundError):
        await files.view("/memories/people")
    await files.create("/memories/people/ann.md", "again")
    assert "again" in await files.view("/memories/people/ann.md")
    await files.clear()
    assert "ann" not in await files.view("/memories")


async def test_impossible_commands_explain_why(files):
    await files.create("/memories/a.txt", "x x")
    for work, error in [
        (files.create("/memories/a.txt", "y"), ConflictError),
        (files.create("/memories", "y"), ConflictError),
        (files.replace("/memories/a.txt", "x", "y"), InvalidError),
        (files.replace("/memories/a.txt", "z", "y"), InvalidError),
        (files.replace("/memories/b", "x", "y"), NotFoundError),
        (files.insert("/memories/a.txt", 9, "y"), InvalidError),
        (files.delete("/memories"), InvalidError),
        (files.delete("/memories/b"), NotFoundError),
        (files.rename("/memories/b", "/memories/c"), NotFoundError),
        (files.rename("/memories/a.txt", "/memories/a.txt/b"), InvalidError),
        (files.rename("/memories/a.txt", "/memories/a.txt"), ConflictError),
    ]:
        with pytest.raises(error):
            await work
    assert "x x" in await files.view("/memories/a.txt")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "memories/a",
        "/memoriesa",
        "/memories/../etc/passwd",
        "/memories/a/../../b",
        "/memories/./a",
        "/memories//a",
        "/memories/%2e%2e/etc",
        "/memories/%252e%252e%252fetc",
        "/memories/..\\etc",
        "/memories/..%5cetc",
        "/memories/a\x00b",
        "/memories/a\nb",
        None,
        7,
    ],
)
async def test_no_path_leaves_the_memory_folder(files, path):
    for work in (
        files.view(path),
        files.create(path, "x"),
        files.delete(path),
        files.rename("/memories/a", path),
        files.rename(path, "/memories/a"),
        files.insert(path, 0, "x"),
        files.replace(path, "a", "b"),
    ):
        with pytest.raises(InvalidError):
            await work


async def test_a_file_is_searchable_and_private(memory, files):
    await files.create("/memories/ann.md", "Ann is allergic to peanuts")
    found = await memory.search("peanuts allergy")
    assert found.hits[0].content == "Ann is allergic to peanuts"
    others = MemoryFiles(memory.scoped(Scope(owner="bob")))
    with pytest.raises(NotFoundError):
        await others.view("/memories/ann.md")
    await others.create("/memories/ann.md", "mine")
    assert "peanuts" in await files.view("/memories/ann.md")


async def test_a_credential_is_redacted(files):
    await files.create("/memories/key.txt", "the key is sk-ant-api03-" + "aB3" * 31 + "AA")
    assert "aB3aB3" not in await files.view("/memories/key.txt")


async def test_the_tool_of_anthropics_library(memory):
    pytest.importorskip("anthropic", reason="anthropic is not installed: make adapters")
    from anthropic.lib.tools import ToolError

    from ricordo.integrations.anthropic_memory import RicordoMemoryTool

    tool: Any = RicordoMemoryTool(memory)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    path = "/memories/a.md"
    for command in [
        {"command": "create", "path": path, "file_text": "likes tea"},
        {"command": "str_replace", "path": path, "old_str": "tea", "new_str": "rum"},
        {"command": "insert", "path": path, "insert_line": 1, "insert_text": "and figs"},
        {"command": "rename", "old_path": path, "new_path": "/memories/b.md"},
    ]:
        await tool.call(command)
    assert "rum\n     2\tand figs" in await tool.call({"command": "view", "path": "/memories/b.md"})
    await tool.call({"command": "delete", "path": "/memories/b.md"})
    with pytest.raises(ToolError):
        await tool.call({"command": "view", "path": "/memories/../b.md"})


async def test_a_caller_that_only_proposes_is_not_told_that_a_file_was_changed(memory, files):
    await files.create("/memories/todo.txt", "call Tom")
    proposing = MemoryFiles(memory.scoped(Scope(propose=True)))
    for change in (
        proposing.delete("/memories/todo.txt"),
        proposing.replace("/memories/todo.txt", "Tom", "Ann"),
        proposing.create("/memories/new.txt", "x"),
    ):
        with pytest.raises(DeniedError, match="cannot be proposed"):
            await change
    assert await memory.review() == []


@pytest.mark.parametrize("text", ["Marta is allergic to walnuts and to almonds", "👍"])
async def test_a_file_written_after_an_erasure_is_stored_and_one_of_an_older_export_is_not(tmp_path, text):
    clock = HandClock()
    async with Memory.open(tmp_path / "me.db", embedder="hashing", clock=clock) as memory:
        files = MemoryFiles(memory)
        await files.create("/memories/marta.md", text)
        await memory.export(tmp_path / "old.jsonl")
        clock.ms += DAY
        await memory.erase(where={"kind": "memory file"})
        await memory.import_(tmp_path / "old.jsonl")
        assert "marta" not in await files.view("/memories")
        clock.ms += DAY
        await files.create("/memories/team.md", text)
        assert text in await files.view("/memories/team.md")
        assert [hit.content for hit in (await memory.search(text)).hits] == [text]
        await memory.import_(tmp_path / "old.jsonl")
        assert "marta" not in await files.view("/memories")
        await files.create("/memories/marta.md", text)
        assert text in await files.view("/memories/marta.md")
