"""Notes in two clones of a git repository: a deleted line is forgotten, and a line that never arrived is not."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ricordo import Memory, Settings

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault/notes").mkdir(parents=True)
    return tmp_path / "vault"


@asynccontextmanager
async def opened(vault: Path) -> AsyncIterator[Memory]:
    for path in (vault / "notes").glob("*.md"):  # as if a moment had passed since it was written
        at = path.stat().st_mtime_ns - 10**9
        os.utime(path, ns=(at, at))
    async with Memory.open(f"{vault}/", embedder=None, settings=Settings(durability="process")) as memory:
        yield memory


async def contents(memory: Memory) -> list[str]:
    return sorted(node.content for node in (await memory.list(limit=1_000)).nodes)


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def committed(vault: Path, *names: str) -> None:
    if not (vault / ".git").exists():
        git(vault, "init", "-q")
    git(vault, "add", "-A", *names)
    git(vault, "commit", "-qm", "more")


def cloned(vault: Path) -> Path:
    other = vault.with_name("other")
    git(vault.parent, "clone", "-q", str(vault), str(other))
    return other


def without(path: Path, word: str) -> None:
    lines = path.read_text("utf-8").split("\n")
    path.write_text("\n".join(line for line in lines if word not in line), "utf-8")


async def filled(vault: Path, *more: str) -> None:
    async with opened(vault) as memory:
        for text in ("Anna likes tea", "Anna plays chess", *more):
            await memory.remember(text, about=[text.split()[0]])


@pytest.mark.parametrize("word", ["tea", "chess"])
async def test_a_line_deleted_in_a_clone_before_its_first_opening_is_forgotten(vault: Path, word: str) -> None:
    await filled(vault, "Boris has a boat")
    committed(vault)
    other = cloned(vault)
    without(other / "notes/Anna.md", word)
    async with opened(other) as memory:
        kept = "Anna plays chess" if word == "tea" else "Anna likes tea"
        assert await contents(memory) == [kept, "Boris has a boat"]
        (node,) = (await memory.archive()).nodes
        assert word in node.content
        await memory.restore(node.id)
        await memory.settle()
        assert word in (other / "notes/Anna.md").read_text("utf-8")


async def test_the_only_line_of_a_note_can_be_deleted(vault: Path) -> None:
    await filled(vault, "Boris has a boat")
    committed(vault)
    other = cloned(vault)
    without(other / "notes/Boris.md", "boat ^")
    async with opened(other) as memory:
        assert await contents(memory) == ["Anna likes tea", "Anna plays chess"]


async def test_a_clone_that_nobody_edited_stays_as_it_is(vault: Path) -> None:
    await filled(vault, "Boris has a boat")
    committed(vault)
    other = cloned(vault)
    async with opened(other) as memory:
        assert len(await contents(memory)) == 3
    assert git(other, "status", "--porcelain") == ""


async def test_a_line_moved_to_another_note_of_a_clone_stays(vault: Path) -> None:
    await filled(vault, "Boris has a boat")
    committed(vault)
    other = cloned(vault)
    line = next(each for each in (other / "notes/Anna.md").read_text("utf-8").split("\n") if "chess" in each)
    without(other / "notes/Anna.md", "chess")
    with (other / "notes/Boris.md").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    async with opened(other) as memory:
        assert len(await contents(memory)) == 3
        assert not (await memory.archive()).nodes


@pytest.mark.parametrize("what", ["the note", "all notes", "its text", "its content", "the record", "git"])
async def test_without_evidence_nothing_is_forgotten(vault: Path, what: str) -> None:
    await filled(vault, "Boris has a boat")
    committed(vault)
    other = cloned(vault)
    notes = other / "notes"
    if what == "the note":  # git has not brought it, for example because it is not tracked
        (notes / "Anna.md").unlink()
    elif what == "all notes":
        shutil.rmtree(notes)
        notes.mkdir()
    elif what == "its text":
        (notes / "Anna.md").write_text("", "utf-8")
    elif what == "its content":
        (notes / "Anna.md").write_text("version https://git-lfs.github.com/spec/v1\nsize 12\n", "utf-8")
    elif what == "the record":
        (notes / ".ricordo.lines").unlink()
        without(notes / "Anna.md", "chess")
    else:  # another program copies the files one by one, and the note is still an older one
        shutil.rmtree(other / ".git")
        without(notes / "Anna.md", "chess")
    async with opened(other) as memory:
        assert {"Anna likes tea", "Anna plays chess", "Boris has a boat"} <= {*await contents(memory)}
        assert not (await memory.archive()).nodes
    assert "chess" in (notes / "Anna.md").read_text("utf-8")


async def test_notes_that_were_not_committed_are_written_again(vault: Path) -> None:
    """The lines of the other clone are known from its JSON lines alone, and its note is older."""
    await filled(vault)
    committed(vault)
    other = cloned(vault)
    await filled(vault, "Anna has a cat")
    committed(vault, "*.jsonl")
    git(other, "pull", "-q", "--ff-only")
    async with opened(other) as memory:
        assert "Anna has a cat" in await contents(memory)
        assert not (await memory.archive()).nodes
    assert "cat" in (other / "notes/Anna.md").read_text("utf-8")


@pytest.mark.parametrize("dropped", ["cat", "dog"])
@pytest.mark.parametrize("has_attributes", [True, False])
async def test_a_conflict_resolved_before_the_opening_counts(vault: Path, dropped: str, has_attributes: bool) -> None:
    await filled(vault)
    if not has_attributes:
        (vault / "notes/.gitattributes").write_text("", "utf-8")
    committed(vault)
    other = cloned(vault)
    async with opened(other) as memory:
        await memory.remember("Anna has a dog", about=["Anna"])
        await memory.remember("Boris has a boat", about=["Boris"])
    async with opened(vault) as memory:
        await memory.remember("Anna has a cat", about=["Anna"])
    for each in (vault, other):
        committed(each)
    with contextlib.suppress(subprocess.CalledProcessError):
        git(vault, "pull", "-q", "--no-rebase", str(other), "HEAD")
    note = vault / "notes/Anna.md"
    assert "<<<<<<<" in note.read_text("utf-8")
    lines = note.read_text("utf-8").split("\n")
    marks = ("<<<<<<<", "=======", ">>>>>>>")
    note.write_text("\n".join(each for each in lines if not each.startswith(marks) and dropped not in each), "utf-8")
    kept = "Anna has a dog" if dropped == "cat" else "Anna has a cat"
    for _ in range(2):
        async with opened(vault) as memory:
            assert await contents(memory) == [kept, "Anna likes tea", "Anna plays chess", "Boris has a boat"]
            (node,) = (await memory.archive()).nodes
            assert dropped in node.content
    assert dropped not in note.read_text("utf-8")
    assert "<<<<<<<" not in (vault / "notes/.ricordo.lines").read_text("utf-8")


async def test_a_note_without_a_change_proves_no_deletion(vault: Path) -> None:
    """The record and the JSON lines of a newer commit are there, but the note is as this clone has last seen it."""
    await filled(vault)
    committed(vault)
    other = cloned(vault)
    async with opened(other):
        pass
    before = (other / "notes/Anna.md").read_bytes()
    await filled(vault, "Anna has a cat")
    committed(vault, "*.jsonl", "notes/.ricordo.lines")
    git(other, "pull", "-q", "--ff-only")
    assert (other / "notes/Anna.md").read_bytes() == before
    async with Memory.open(f"{other}/", embedder=None, settings=Settings(durability="process")) as memory:
        assert "Anna has a cat" in await contents(memory)
        assert not (await memory.archive()).nodes
