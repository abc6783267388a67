"""Exports can be imported and hold nothing of other owners."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import InvalidError, Memory
from ricordo.portability import EXPORTED
from ricordo.portability.markdown import Item, bullet, entry_of, outline
from tests.portability.conftest import opened

ODD = [
    "plain",
    "two lines\nand an indented\n    third\n\nafter a blank one",
    "- a bullet, # a heading, `code`, **bold**, [link](x) and <!-- a comment -->",
    "2026-01-01: begins with a date",
    "ends with a date (2026-01-01)",
    "[ ] looks like a task",
    "ends with a backslash \\",
    "**Label:** and words",
    "a --> b",
    "  spaces around  ",
    "``` not code",
    "Привет, мир: жена",
    "1. numbered",
]


@pytest.mark.parametrize("text", ODD)
def test_a_fact_as_a_bullet_reads_back_as_it_was(text: str) -> None:
    check(text)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip))
@settings(max_examples=500)
def test_any_text_as_a_bullet_reads_back_as_it_was(text: str) -> None:
    check(text)


def check(text: str) -> None:
    written = bullet(text, day="2026-02-03", said={"id": "x"})
    (item,) = [each for each in outline(f"## Knowledge\n\n{written}\n") if isinstance(each, Item)]
    entry = entry_of(item)
    assert (entry.text, entry.at, entry.said["id"]) == (text, "2026-02-03", "x")


async def filled(memory: Memory) -> None:
    """Facts with every kind of field."""
    await memory.add_entity("Sarah", relation="wife", aliases=["Sally"])
    await memory.add_entity("Lighthouse", type="project")
    await memory.relate("Lighthouse", "project", source="Sarah")
    for number, text in enumerate(ODD):
        await memory.remember(text, tags=["odd", f"n{number}"], valid_from=f"2025-03-{number + 1:02}T10:00:00Z")
    await memory.remember("Sarah likes cacio e pepe", about=["Sarah"], confidence=0.7, attributes={"k": [1, "ü"]})
    await memory.remember("Sarah works on Lighthouse", about=["Sarah", "Lighthouse"], type="opinion")
    sure = await memory.remember("Lighthouse uses DuckDB", about=["Lighthouse"])
    await memory.confirm(sure.id)
    await memory.reinforce(sure.id)
    gone = await memory.remember("This was wrong")
    await memory.forget(gone.id)
    await memory.remember("Anna lives in Rome")
    await memory.remember("Anna lives in Berlin")
    await memory.add("Something somebody said", session="s")


async def facts(memory: Memory) -> list[tuple[Any, ...]]:
    nodes = (await memory.list(limit=500)).nodes
    return sorted(
        (
            node.id,
            node.content,
            node.type,
            node.category or "",
            node.about,
            node.tags,
            node.event_time,
            node.valid_from,
            node.confidence,
            node.decay_rate,
            node.score,
            json.dumps(dict(node.attributes)),
        )
        for node in nodes
        if node.type != "episodic"
    )


@pytest.mark.parametrize("name", ["all.md", "all"])
async def test_markdown_reads_back_as_the_facts_that_hold(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as memory:
        await filled(memory)
        report = await memory.export(tmp_path / name, format="markdown")
        before = await facts(memory)
        again = await memory.import_(tmp_path / name)
        assert (report.facts, again.added, again.known) == (len(before), 0, len(before))
        assert await facts(memory) == before
    async with opened(tmp_path / "b.db") as other:
        read = await other.import_(tmp_path / name)
        assert (read.format, read.refused, read.added) == ("markdown", (), len(before))
        assert await facts(other) == before
        assert (await other.entity("Sally")).relation == "wife"
        assert (await other.entity("Lighthouse")).type == "project"


async def test_markdown_can_be_read(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as memory:
        await filled(memory)
        await memory.export(tmp_path / "all", format="markdown")
        await memory.export(tmp_path / "all.md", format="markdown")
    assert sorted(path.relative_to(tmp_path / "all").as_posix() for path in (tmp_path / "all").rglob("*.md")) == [
        "MEMORY.md",
        "people/Anna.md",
        "people/Sarah.md",
        "things/Lighthouse.md",
    ]
    text = (tmp_path / "all.md").read_text("utf-8")
    assert "### Sarah (wife)" in text
    assert "#### Preferences\n\n- 2026-09-21: Sarah likes cacio e pepe" in text
    assert "This was wrong" not in text
    assert "Anna lives in Rome" not in text
    assert stat.S_IMODE((tmp_path / "all.md").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "all/people").stat().st_mode) == 0o700


async def test_the_mcp_export_can_be_imported(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as memory:
        await filled(memory)
        await memory.export(tmp_path / "memory.json", format="mcp")
        contents = {node.content for node in (await memory.list(limit=500)).nodes if node.type != "episodic"}
    rows = [json.loads(line) for line in (tmp_path / "memory.json").read_text("utf-8").splitlines()]
    assert {"from": "me", "to": "Sarah", "type": "relation", "relationType": "wife"} in rows
    async with opened(tmp_path / "b.db") as other:
        await other.import_(tmp_path / "memory.json")
        assert {node.content for node in (await other.list(limit=500)).nodes} == contents
        assert (await other.entity("my wife")).name == "Sarah"
        assert [each.target_name for each in (await other.entity("Sarah")).relations if each.source] == ["Lighthouse"]


CANARIES = ("zanzibar", "quokka", "xylophone")


async def canaries(memory: Memory, word: str) -> None:
    """Add rows of this owner to every table."""
    await memory.add_entity(f"Person {word}", relation="wife", aliases=[f"alias {word}"])
    kept = await memory.remember(f"Secret {word} fact", about=[f"Person {word}"], tags=[f"tag {word}"])
    await memory.correct(kept.id, f"Secret {word} fact, corrected")
    gone = await memory.remember(f"Forgotten {word}")
    await memory.forget(gone.id, f"because {word}")
    erased = await memory.remember(f"Erased {word}")
    await memory.erase(id=erased.id)
    await memory.add(f"said {word}", session=f"session {word}", speaker=f"speaker {word}")
    await memory.end_session(f"session {word}")
    await memory.remember(f"Tom {word} lives in Rome")
    await memory.remember(f"Tom {word} lives in Berlin", origin="web")
    await memory.off_record(f"quiet {word}")
    await memory.settle()


@pytest.mark.parametrize("format", EXPORTED)
async def test_an_export_holds_only_what_its_owner_may_see(format: str, tmp_path: Path) -> None:
    owners = dict(zip(("ann", "bob"), CANARIES, strict=False))
    for owner, word in owners.items():
        async with opened(tmp_path / "me.db", owner=owner, embedder="hashing") as memory:
            await canaries(memory, word)
    async with opened(tmp_path / "me.db", owner="carl", chat="club", embedder="hashing") as memory:
        await memory.add("said in the club: xylophone", session="xylophone")
        await memory.settle()
    for owner, word in owners.items():
        async with opened(tmp_path / "me.db", owner=owner) as memory:
            await memory.export(tmp_path / f"{owner}.out", format=format)
        files = [tmp_path / f"{owner}.out", *(tmp_path / f"{owner}.out").rglob("*")]
        content = b"".join(path.read_bytes() for path in files if path.is_file()).lower()
        assert word.encode() in content
        for other in set(CANARIES) - {word}:
            assert other.encode() not in content
        for name in {*owners, "carl", "club"} - {owner}:
            assert f'"{name}"'.encode() not in content


@pytest.mark.parametrize("format", EXPORTED)
async def test_exports_overwrite_nothing_and_failures_leave_nothing(format: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("something")
        (tmp_path / "there.md").write_text("mine")
        with pytest.raises(InvalidError, match="exists already"):
            await memory.export(tmp_path / "there.md", format=format)
        assert (tmp_path / "there.md").read_text() == "mine"
        with pytest.raises(InvalidError, match="choose one of"):
            await memory.export(tmp_path / "new", format="papyrus")
    assert beside(tmp_path) == {"me.db", "there.md"}


def beside(folder: Path) -> set[str]:
    """Return the files of a folder, with the parts of a database under one name."""
    return {path.name.split("-")[0] for path in folder.iterdir()}
