"""Notes of a folder store: Markdown that people edit and the memory writes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ricordo import Memory, Settings
from ricordo.portability.note_text import parse
from tests.flows import note_edits

PROCESS = Settings(durability="process")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "vault/notes").mkdir(parents=True)
    return tmp_path / "vault"


@asynccontextmanager
async def opened(vault: Path) -> AsyncIterator[Memory]:
    async with Memory.open(f"{vault}/", embedder=None, settings=PROCESS) as memory:
        yield memory


async def contents(memory: Memory) -> list[str]:
    return sorted(node.content for node in (await memory.list(limit=1_000)).nodes)


def write(vault: Path, name: str, text: str) -> Path:
    path = vault / "notes" / name
    path.write_text(text, "utf-8")
    return path


def text_of(vault: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted((vault / "notes").rglob("[!.]*.md")))


def files_with(folder: Path, data: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and data in path.read_bytes()]


async def test_what_is_remembered_stands_in_the_note_of_its_subject(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"], tags=["drinks"])
        await memory.remember("Buy milk", category="task")
    anna = (vault / "notes/Anna.md").read_text("utf-8")
    assert "\n- Anna likes tea #drinks ^" in anna
    assert 'about: "Anna"' in anna
    assert "\n- [ ] Buy milk ^" in (vault / "notes/Me.md").read_text("utf-8")
    ignored = (vault / ".gitignore").read_text("utf-8").splitlines()
    assert {"index.db*", "notes/.ricordo.jsonl"} <= {*ignored}
    assert (vault / "notes/.ricordo.jsonl").exists()


async def test_notes_of_a_clone_without_their_state_are_the_same(vault: Path) -> None:
    """Git leaves the state out, because it changes with every look."""
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        await memory.remember("Buy milk", category="task")
    before = {path: path.read_text("utf-8") for path in (vault / "notes").glob("*.md")}
    (vault / "notes/.ricordo.jsonl").unlink()
    async with opened(vault) as memory:
        await memory.settle(600)
        assert len((await memory.list()).nodes) == 2
    assert {path: path.read_text("utf-8") for path in (vault / "notes").glob("*.md")} == before


async def test_a_hand_written_line_is_adopted_in_place_and_never_doubled(vault: Path) -> None:
    path = write(
        vault, "Trip.md", "# Trip\n\nSome prose > that stays\n\n* Bob plays [[Chess|chess]] #games\n- [x] Buy a map\n"
    )
    for _ in range(3):
        async with opened(vault) as memory:
            nodes = {node.content: node for node in (await memory.list()).nodes}
            assert sorted(nodes) == ["Bob plays chess", "Buy a map", "Some prose > that stays"]
            assert "Chess" in nodes["Bob plays chess"].about
            assert nodes["Bob plays chess"].tags == ("games",)
            assert nodes["Buy a map"].category == "task"
            assert nodes["Buy a map"].attributes["done"] is True
    lines = path.read_text("utf-8").split("\n")
    assert lines[0] == "# Trip"
    assert lines[4].startswith("* Bob plays [[Chess|chess]] #games ^")
    assert lines[5].startswith("- [x] Buy a map ^")


async def test_a_link_in_a_line_adds_to_its_subject(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    path = vault / "notes/Anna.md"
    path.write_text(path.read_text("utf-8") + "- Anna plays the [[Cello]]\n- Not for [[Bob]]\n", "utf-8")
    async with opened(vault) as memory:
        about = {node.content: node.about for node in (await memory.list()).nodes}
    assert set(about["Anna plays the Cello"]) == {"Anna", "Cello"}
    assert set(about["Not for Bob"]) == {"Anna", "Bob"}
    assert "\n- Anna plays the [[Cello]] ^" in path.read_text("utf-8")


async def test_a_link_that_is_added_to_a_known_line_files_it_under_its_target(vault: Path) -> None:
    path = write(vault, "Log.md", "# Log\n\n- Lunch with Bob Miller\n- Met the vet\n")
    async with opened(vault) as memory:
        node = next(each for each in (await memory.list()).nodes if "Bob" in each.content)
    text = path.read_text("utf-8").replace("Bob Miller", "[[Bob Miller]]").replace("the vet", "the new [[Vet Clinic]]")
    path.write_text(text, "utf-8")
    async with opened(vault) as memory:
        about = {each.content: each.about for each in (await memory.list()).nodes}
        assert about == {"Lunch with Bob Miller": ("Bob Miller",), "Met the new Vet Clinic": ("Vet Clinic",)}
        assert [each.content for each in (await memory.list(entity="Bob Miller")).nodes] == ["Lunch with Bob Miller"]
        assert (await memory.get(node.id)).is_live
        assert "- Lunch with [[Bob Miller]] ^" in path.read_text("utf-8")
        again = await memory.update(node.id, about=["Anna", "Bob Miller"])
        assert again.about == (await memory.get(node.id)).about == ("Bob Miller", "Anna")


async def test_code_in_a_fact_keeps_its_indentation(vault: Path) -> None:
    code = "Snippet:\n    def h(x):\n        # doubles\n        return 2 * x"
    path = write(vault, "Log.md", "# Log\n\n- Build it:\n  ```\n  def f():\n      return 1\n  ```\n")
    async with opened(vault) as memory:
        await memory.remember(code, category="knowledge")
    path.write_text(path.read_text("utf-8").replace("Build it", "Build it all"), "utf-8")
    me = vault / "notes/Me.md"
    me.write_text(me.read_text("utf-8").replace("2 * x", "3 * x"), "utf-8")
    edited = code.replace("2 * x", "3 * x")
    async with opened(vault) as memory:
        assert await contents(memory) == ["Build it all:\n```\ndef f():\n    return 1\n```", edited]
        await memory.correct((await memory.search("Snippet")).ids[0], edited.replace("def h", "def triple"))
    assert "\n      def triple(x):\n          \\# doubles\n          return 3 * x ^" in me.read_text("utf-8")


async def test_an_edit_is_a_correction_and_can_be_undone(vault: Path) -> None:
    async with opened(vault) as memory:
        node = await memory.remember("Anna likes tea", about=["Anna"])
    path = vault / "notes/Anna.md"
    path.write_text(path.read_text("utf-8").replace("likes tea", "likes cocoa"), "utf-8")
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes cocoa"]
        assert (await memory.get(node.id)).closed_reason == "superseded"
        await memory.undo((await memory.log())[0].seq)
        await memory.settle()
        assert await contents(memory) == ["Anna likes tea"]
        assert path.read_text("utf-8").count("- Anna likes tea ^") == 1
        assert "cocoa" not in path.read_text("utf-8")


async def test_a_deleted_line_is_forgotten_and_comes_back_when_it_is_put_back(vault: Path) -> None:
    async with opened(vault) as memory:
        node = await memory.remember("Anna likes tea", about=["Anna"])
        await memory.remember("Anna plays chess", about=["Anna"])
    path = vault / "notes/Anna.md"
    whole = path.read_text("utf-8")
    path.write_text("\n".join(line for line in whole.split("\n") if "tea" not in line), "utf-8")
    await asyncio.sleep(0.35)
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna plays chess"]
        assert (await memory.get(node.id)).closed_reason == "forgotten"
        path.write_text(whole, "utf-8")
        await memory.settle()
        assert await contents(memory) == ["Anna likes tea", "Anna plays chess"]
        assert (await memory.get(node.id)).is_live


async def test_emptying_a_note_forgets_its_facts(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    async with opened(vault) as memory:
        await memory.remember("Anna plays chess", about=["Anna"])
        await memory.remember("Bob likes tea", about=["Bob"])
        await memory.settle()
        (vault / "notes/Anna.md").write_bytes(b"")
    async with opened(vault) as memory:
        assert await contents(memory) == ["Bob likes tea"]


async def test_an_editor_that_saves_the_moment_a_note_appears_is_heard(vault: Path) -> None:
    """The note is on disk before the memory has recorded that it wrote it."""

    def save(path: Path) -> None:
        until = time.monotonic() + 10
        while not path.exists() and time.monotonic() < until:
            pass
        path.write_bytes(b"")

    async with opened(vault) as memory:
        for number in range(20):
            saved = asyncio.create_task(asyncio.to_thread(save, vault / f"notes/Person{number}.md"))
            await memory.remember(f"Person{number} likes tea", about=[f"Person{number}"])
            await memory.settle()
            await saved
    async with opened(vault) as memory:
        assert await contents(memory) == []


async def test_what_the_memory_changes_is_written_where_the_line_stands(vault: Path) -> None:
    write(vault, "Anna.md", "# Anna\n\n- Anna likes tea\n\nlast words stay here\n")
    async with opened(vault) as memory:
        (tea,) = (node for node in (await memory.list()).nodes if "tea" in node.content)
        cocoa = await memory.correct(tea.id, "Anna likes cocoa")
        await memory.settle()
        lines = (vault / "notes/Anna.md").read_text("utf-8").split("\n")
        assert lines[2].startswith("- Anna likes cocoa ^")
        await memory.forget(cocoa.id)
        await memory.settle()
        assert "cocoa" not in text_of(vault)
        assert "last words stay here" in text_of(vault)


async def test_erased_text_leaves_the_notes(vault: Path) -> None:
    write(vault, "Anna.md", "- Anna hides the zyzzyva key\n- Anna likes tea\n")
    async with opened(vault) as memory:
        (node,) = (node for node in (await memory.list()).nodes if "zyzzyva" in node.content)
        report = await memory.erase(id=node.id)
        assert any("notes" in each for each in report.out_of_reach)
        assert await contents(memory) == ["Anna likes tea"]
    assert files_with(vault, b"zyzzyva") == []


async def test_a_git_conflict_is_shown_and_what_is_kept_counts(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    path = vault / "notes/Anna.md"
    whole = path.read_text("utf-8")
    line = next(each for each in whole.split("\n") if "tea" in each)
    mark = line[line.index(" ^") :]
    theirs = f"<<<<<<< HEAD\n- Anna likes cocoa{mark}\n=======\n- Anna likes coffee{mark}\n>>>>>>> other"
    path.write_text(whole.replace(line, theirs), "utf-8")
    async with opened(vault) as memory:  # another process, which reads the note first
        assert not (await memory.doctor()).ok
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes tea"]
        finding = next(each for each in (await memory.doctor()).findings if each.check == "notes")
        assert not finding.ok
        assert "Anna.md line " in finding.detail
        await memory.remember("Anna has a cat", about=["Anna"])
        await memory.settle()
        assert "<<<<<<< HEAD" in path.read_text("utf-8")
        path.write_text(whole.replace(line, f"- Anna likes coffee{mark}"), "utf-8")
        await asyncio.sleep(0.4)
        await memory.settle()
        assert await contents(memory) == ["Anna has a cat", "Anna likes coffee"]
        assert (await memory.doctor()).ok


async def test_an_outer_heading_gives_the_subject(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.add_entity("Lagos trip", type="project")
    write(vault, "Plans.md", "# Lagos trip\n\n## To pack\n\n- mosquito net\n\n# Other\n\n- new lamp\n")
    async with opened(vault) as memory:
        found = {node.content: node.about for node in (await memory.list(type="semantic")).nodes}
    assert found == {"mosquito net": ("Lagos trip",), "new lamp": ()}


async def test_a_deleted_line_that_is_typed_again_is_restored(vault: Path) -> None:
    async with opened(vault) as memory:
        node = await memory.remember("Pay the mooring", category="task", tags=["boat"])
    path = vault / "notes/Me.md"
    whole = path.read_text("utf-8")
    line = next(each for each in whole.split("\n") if "mooring" in each)
    write(vault, "Me.md", whole.replace(line, ""))
    async with opened(vault) as memory:
        assert await contents(memory) == []
    write(vault, "Me.md", whole.replace(line, "- [ ] Pay  the mooring #boat"))
    async with opened(vault) as memory:
        found = (await memory.list(type="semantic")).nodes
        assert [each.id for each in found] == [node.id]
        assert not (await memory.archive()).nodes
    assert path.read_text("utf-8").count("Pay") == 1


async def test_a_comment_within_a_fact_stays_when_the_fact_changes(vault: Path) -> None:
    path = write(vault, "Anna.md", "- Anna likes tea %% not coffee %% #drinks\n")
    async with opened(vault) as memory:
        (node,) = (await memory.list(type="semantic")).nodes
        assert (node.content, node.tags) == ("Anna likes tea", ("drinks",))
        await memory.correct(node.id, "Anna likes cocoa")
    assert "- Anna likes cocoa #drinks ^" in path.read_text("utf-8")
    assert path.read_text("utf-8").count("%% not coffee %%") == 1
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes cocoa"]


async def test_copies_renames_and_lost_marks_double_nothing(vault: Path) -> None:
    path = write(vault, "Shelf.md", "- The lamp is green\n- The box is heavy\n")
    async with opened(vault) as memory:
        pass
    text = path.read_text("utf-8")
    write(vault, "Copy.md", text.split("\n")[0] + "\n")
    path.rename(path.with_name("Renamed.md"))
    renamed = path.with_name("Renamed.md")
    renamed.write_text(text.replace(text.split(" ^")[-1].strip(), "").replace(" ^\n", "\n"), "utf-8")
    async with opened(vault) as memory:
        assert await contents(memory) == ["The box is heavy", "The lamp is green"]
        copy = vault / "notes/Copy.md"
        copy.write_text(copy.read_text("utf-8").replace("green", "blue"), "utf-8")
        await asyncio.sleep(0.4)
        await memory.settle()
        assert await contents(memory) == [
            "The box is heavy",
            "The lamp is blue",
            "The lamp is green",
        ] or await contents(memory) == ["The box is heavy", "The lamp is blue"]


async def test_notes_that_vanish_all_at_once_are_written_again(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    (vault / "notes/Anna.md").unlink()
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes tea"]
        await memory.settle()
        assert "Anna likes tea" in text_of(vault)


async def test_a_note_that_is_not_text_is_left_alone_and_named(vault: Path) -> None:
    path = vault / "notes/Odd.md"
    path.write_bytes(b"\xff\xfe- broken\n")
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea")
        finding = next(each for each in (await memory.doctor()).findings if each.check == "notes")
        assert "Odd.md: it is not UTF-8" in finding.detail
    assert path.read_bytes() == b"\xff\xfe- broken\n"


async def test_the_index_and_the_state_of_notes_can_be_deleted(vault: Path) -> None:
    write(vault, "Anna.md", "- Anna likes tea\n- Anna has a cat\n")
    async with opened(vault) as memory:
        before = await contents(memory)
    text = text_of(vault)
    for name in ("index.db", "notes/.ricordo.jsonl"):
        (vault / name).unlink()
        async with opened(vault) as memory:
            assert await contents(memory) == before
        assert text_of(vault) == text


async def test_another_owner_does_not_see_the_notes(vault: Path) -> None:
    from ricordo import Scope

    write(vault, "Anna.md", "- Anna likes tea\n")
    async with opened(vault):
        pass
    async with Memory.open(f"{vault}/", embedder=None, scope=Scope(owner="eve")) as memory:
        await memory.remember("Eve likes gin")
        assert await contents(memory) == ["Eve likes gin"]
    assert "gin" not in text_of(vault)


def test_only_lines_that_state_something_are_facts() -> None:
    note = parse(
        "---\ntags: [a, b]\nabout: [[Anna]]\n---\n# Title\n\n> quote\n\n```\ncode\n```\n| a | b |\n---\n%% note %%\n"
        "<div>\n![[picture.png]]\nkey:: value\n1. first\n   goes on\n- [ ] task\nplain line\n^abc\n"
    )
    assert [item.text for item in note.items] == ["first\ngoes on", "task", "plain line"]
    assert note.fields == {"tags": ("a", "b"), "about": ("Anna",)}


async def test_a_share_of_the_random_edits_loses_and_doubles_nothing(tmp_path: Path) -> None:
    found = await note_edits.run(tmp_path, notes=30, edits=25, seed=7)
    for name in ("lost", "doubled", "not once in the notes", "should be gone"):
        assert found[name] == [], found
    assert found["headings lost"] == 0
    assert found["not undone"] == 0


KILLED = """
import asyncio, sys
from ricordo import Memory, Settings
async def main():
    async with Memory.open(sys.argv[1], embedder=None, settings=Settings(durability="process")) as memory:
        number = int(sys.argv[2])
        while True:
            text = f"fact {number} about the shelf at place {number * 13}"
            await memory.remember(text)
            print(text, flush=True)
            number += 1
            await asyncio.sleep(0.02)
asyncio.run(main())
"""


def killed(vault: Path, turn: int) -> set[str]:
    """Let a process remember facts, kill it, and return what it had acknowledged."""
    command = [sys.executable, "-c", KILLED, f"{vault}/", str(turn * 1_000)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        time.sleep(0.3 + 0.25 * turn)
        os.kill(process.pid, signal.SIGKILL)
        return {first, *(line.strip() for line in process.stdout if line.endswith("\n"))}


@pytest.mark.slow
async def test_kills_lose_and_double_nothing(vault: Path) -> None:
    wanted: set[str] = set()
    for turn in range(6):
        hand = f"written by hand in turn {turn}, and stays {turn * 17}"
        path = vault / "notes/Hand.md"
        path.write_text((path.read_text("utf-8") if path.exists() else "") + f"- {hand}\n", "utf-8")
        wanted.add(hand)
        wanted |= killed(vault, turn)
    async with opened(vault) as memory:
        known = await contents(memory)
        await memory.settle()
        assert wanted <= set(known)
        assert len(known) == len(set(known))
        said = [note_edits.Editor.said(line) for line in text_of(vault).split("\n")]
        assert [text for text in known if said.count(text) != 1] == []
        assert (await memory.doctor()).ok


HEADINGS = ["Oscar (brother)", "Oscar, my brother", "Oscar (Bruder)", "Oscar (mein Bruder)", "Оскар (брат)"]


@pytest.mark.parametrize("heading", HEADINGS)
async def test_a_heading_with_a_relation_makes_its_person_known(vault: Path, heading: str) -> None:
    write(
        vault, "Me.md", f"# Me\n\n- I play chess\n\n## {heading}\n\n- has a boat\n\n## Garden\n\n- water on Mondays\n"
    )
    name = heading.split(" (")[0].split(",")[0]
    async with opened(vault) as memory:
        found = {node.content: node.about for node in (await memory.list(type="semantic")).nodes}
        brother = await memory.entity("my brother")
    assert found == {"I play chess": (), "has a boat": (name,), "water on Mondays": ()}
    assert brother.name == name


async def test_a_new_fact_goes_into_the_renamed_note_of_its_subject(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Frau Winter vermietet die Garage", about=["Frau Winter"])
    (vault / "notes/Häuser").mkdir()
    (vault / "notes/Frau Winter.md").rename(vault / "notes/Häuser/Vermieterin.md")
    async with opened(vault) as memory:
        await memory.remember("Frau Winter räumt im Mai den Hof", about=["Frau Winter"])
    assert not (vault / "notes/Frau Winter.md").exists()
    text = (vault / "notes/Häuser/Vermieterin.md").read_text("utf-8")
    assert "vermietet die Garage" in text and "räumt im Mai" in text


async def test_a_note_whose_folder_or_tag_says_person_makes_its_person_known(vault: Path) -> None:
    write(vault, "Nuria Sol.md", "---\ntags: [person]\n---\n# Nuria Sol\n\n- Guarda mi bici\n")
    write(vault, "Piet.md", "---\ntags: [Kontakt]\n---\n\n- Holt die Pakete ab\n")
    (vault / "notes/People").mkdir()
    write(vault, "People/Edda.md", "- Owns the blue van\n")
    write(vault, "Tarte.md", "---\ntags: [recipe]\n---\n- 200 g of butter\n")
    async with opened(vault) as memory:
        found = {node.content: node.about for node in (await memory.list(type="semantic")).nodes}
        people = {each.name for each in await memory.people()}
    assert found.pop("200 g of butter") == ()
    assert found == {"Guarda mi bici": ("Nuria Sol",), "Holt die Pakete ab": ("Piet",), "Owns the blue van": ("Edda",)}
    assert people == {"Nuria Sol", "Piet", "Edda"}


async def test_the_tags_of_a_note_stay_in_its_front_matter(vault: Path) -> None:
    head = "---\ntags: [person, Boat Shed]\n---\n# Edda\n\n"
    path = write(vault, "Edda.md", f"{head}- Owns the blue van\n- Guarda mi bici #urgent #person\n\n- Wohnt in Kiel\n")
    async with opened(vault) as memory:
        await memory.settle(30)
        nodes = {node.content: node for node in (await memory.list(type="semantic")).nodes}
        assert nodes["Wohnt in Kiel"].tags == ("person", "Boat Shed")
        await memory.correct(nodes["Wohnt in Kiel"].id, "Wohnt in Bonn")
        await memory.update(nodes["Owns the blue van"].id, tags=["person", "Boat Shed", "cars"])
        await memory.remember("Edda sings", about=["Edda"], tags=["boat shed", "music"])
    text = path.read_text("utf-8")
    assert text.startswith(head)
    lines = {line.partition(" ^")[0] for line in text.removeprefix(head).splitlines() if line}
    assert lines >= {"- Owns the blue van #cars", "- Guarda mi bici #urgent #person", "- Wohnt in Bonn"}
    assert "- [[Edda]] sings #music" in lines or "- Edda sings #music" in lines
    path.write_text(text.replace("in Bonn", "in Ulm"), "utf-8")
    async with opened(vault) as memory:
        await memory.settle(30)
        nodes = {node.content: node for node in (await memory.list(type="semantic")).nodes}
    assert set(nodes["Wohnt in Ulm"].tags) == {"person", "Boat Shed"}
    assert path.read_text("utf-8").startswith(head) and "#Boat" not in path.read_text("utf-8")


async def test_a_companion_in_a_line_does_not_take_its_subject(vault: Path) -> None:
    theirs = [
        "Moved to Leith with her husband Tom",
        "Walks the dog with Priya",
        "Habite à Nantes avec son copain Marc",
        "Wohnt in Kiel mit seiner Freundin Lena",
    ]
    linked = ["Studia inglese con [[Giulia]]", "Il sabato dorme da [[Giulia]]", "Plays the [[Cello]]"]
    theirs += linked
    others = ["My brother Rowan repairs the boat", "The birthday of [[Giulia]] is on 3 May"]
    write(
        vault, "Me.md", "\n".join(["# Me", "", "## Mira (cousin)", "", *(f"- {line}" for line in (*theirs, *others))])
    )
    async with opened(vault) as memory:
        found = {node.content: node.about for node in (await memory.list(type="semantic")).nodes}
    assert {line: found[line.replace("[", "").replace("]", "")][0] for line in theirs} == dict.fromkeys(theirs, "Mira")
    assert found["Studia inglese con Giulia"] == ("Mira", "Giulia")
    assert not any("Mira" in found[line.replace("[", "").replace("]", "")] for line in others)


async def test_a_note_that_is_made_private_takes_its_facts_along(vault: Path) -> None:
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        await memory.remember("Bob likes tea", about=["Bob"])
    note = vault / "notes/Anna.md"
    whole = note.read_text("utf-8")
    private = whole.replace("---\n", "---\nricordo: false\n", 1)
    note.write_text(private, "utf-8")
    await asyncio.sleep(0.35)
    async with opened(vault) as memory:
        assert await contents(memory) == ["Bob likes tea"]
        await memory.remember("Anna plays chess", about=["Anna"])
        await memory.settle()
        assert note.read_text("utf-8") == private
        assert "chess" in (vault / "notes/Anna 2.md").read_text("utf-8")
        note.write_text(whole, "utf-8")
        await memory.settle()
        assert await contents(memory) == ["Anna likes tea", "Anna plays chess", "Bob likes tea"]
    assert note.read_text("utf-8") == whole


async def test_the_side_of_a_git_conflict_that_is_dropped_is_forgotten(vault: Path) -> None:
    """Both clones have remembered something; after the merge, the memory knows it all, and the note has a conflict."""
    async with opened(vault) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        await memory.remember("Anna plays chess", about=["Anna"])
        await memory.remember("Anna plays go", about=["Anna"])
    note = vault / "notes/Anna.md"
    whole = note.read_text("utf-8")
    chess, go = (next(line for line in whole.split("\n") if each in line) for each in ("chess", "go ^"))
    note.write_text(whole.replace(f"{chess}\n{go}", f"<<<<<<< HEAD\n{chess}\n=======\n{go}\n>>>>>>> other"), "utf-8")
    (vault / "notes/.ricordo.jsonl").unlink()  # what the other clone remembered is in no state of this one
    async with opened(vault) as memory:
        await memory.remember("Anna has a cat", about=["Anna"])
        await memory.settle()
        assert "cat" not in text_of(vault)
    assert [path.name for path in (vault / "notes").glob("*.md")] == ["Anna.md"]
    note.write_text(whole.replace(f"{go}\n", ""), "utf-8")
    await asyncio.sleep(0.35)
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna has a cat", "Anna likes tea", "Anna plays chess"]
    assert "cat" in note.read_text("utf-8")


async def test_a_credential_in_a_note_stays_there_and_is_not_stored(vault: Path) -> None:
    note = write(vault, "Me.md", "- wifi password: hunter2swordfish\n- Anna likes tea\n")
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes tea"]
        assert "line 1: it has a credential" in next(
            each.detail for each in (await memory.doctor()).findings if each.check == "notes"
        )
    assert "- wifi password: hunter2swordfish\n" in note.read_text("utf-8")
    async with opened(vault) as memory:  # another process says it, too
        assert "line 1: it has a credential" in str((await memory.doctor()).findings)
    write(vault, "Me.md", note.read_text("utf-8").replace("Anna likes tea", "Anna's wifi password: violet2tractor"))
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes tea"]
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes tea"]
    assert "violet2tractor" in note.read_text("utf-8")
    assert text_of(vault).count("Anna") == 1
    async with opened(vault) as memory:
        (tea,) = (await memory.list()).nodes
        await memory.correct(tea.id, "Anna likes green tea")
    assert "violet2tractor" in note.read_text("utf-8")
    write(vault, "Me.md", note.read_text("utf-8").replace("Anna's wifi password: violet2tractor", "Anna likes milk"))
    async with opened(vault) as memory:
        assert await contents(memory) == ["Anna likes milk"]


async def test_of_two_edited_copies_of_a_line_the_first_is_the_correction(vault: Path) -> None:
    note = write(vault, "Me.md", "- the hut is red\n")
    async with opened(vault) as memory:
        assert await contents(memory) == ["the hut is red"]
    (line,) = note.read_text("utf-8").splitlines()
    write(vault, "Me.md", "\n".join(line.replace("red", colour) for colour in ("blue", "green")) + "\n")
    async with opened(vault) as memory:
        assert await contents(memory) == ["the hut is blue", "the hut is green"]
    assert "red" not in text_of(vault)


async def test_boxes_block_ids_code_and_formulas_stay_as_obsidian_knows_them(vault: Path) -> None:
    text = """## Tasks
- [-] buy paint
- [/] mend the roof
- The hut is at Nynäshamn
- The budget is 1200 euro ^budget
- the wall is `#fff` in the plan #colours

$$
- x = 1
$$
"""
    note = write(vault, "Me.md", text)
    async with opened(vault) as memory:
        nodes = {each.content: each for each in (await memory.list(limit=100)).nodes}
        assert nodes.keys() == {
            "buy paint",
            "mend the roof",
            "The hut is at Nynäshamn",
            "The budget is 1200 euro",
            "the wall is `#fff` in the plan",
        }
        tasks = {text: bool(each.attributes.get("done")) for text, each in nodes.items() if each.category == "task"}
        assert tasks == {"buy paint": True, "mend the roof": False}
        assert nodes["the wall is `#fff` in the plan"].tags == ("colours",)
        await memory.correct(nodes["The budget is 1200 euro"].id, "The budget is 1300 euro")
        await memory.update(nodes["the wall is `#fff` in the plan"].id, tags=["plan"])
    lines = note.read_text("utf-8").splitlines()
    starts = [line.partition(" ^")[0] for line in lines]
    assert starts[1:3] == ["- [-] buy paint", "- [/] mend the roof"]
    assert starts[4] == "- The budget is 1300 euro"
    assert lines[4].endswith(" ^budget")
    assert starts[5] == "- the wall is `#fff` in the plan #plan"
    assert lines[6:] == ["", "$$", "- x = 1", "$$"]


async def test_a_cancelled_task_is_neither_open_nor_done_and_an_embedded_file_is_no_fact(vault: Path) -> None:
    note = write(vault, "Me.md", "- [-] paint the shed\n- ![[scan.png]]\n![[plan.pdf]]\n- [ ] mend the roof\n")
    async with opened(vault) as memory:
        assert await contents(memory) == ["mend the roof", "paint the shed"]
        (shed,) = [each for each in (await memory.list()).nodes if "shed" in each.content]
        assert shed.attributes["cancelled"] is True
        assert "paint the shed (cancelled)" in [hit.excerpt for hit in await memory.search("paint the shed")]
        open_ends = (await memory.brief()).partition("## Open ends")[2]
        assert "roof" in open_ends and "shed" not in open_ends
    write(vault, "Me.md", note.read_text("utf-8").replace("[-]", "[x]"))
    async with opened(vault) as memory:
        assert "paint the shed (done)" in [hit.excerpt for hit in await memory.search("paint the shed")]
    write(vault, "Me.md", note.read_text("utf-8").replace("[x]", "[-]"))
    async with opened(vault) as memory:
        assert (await memory.get(shed.id)).attributes["cancelled"] is True
        await memory.update(shed.id, done=False)
    assert note.read_text("utf-8").startswith("- [ ] paint the shed ^")


async def test_a_fact_goes_into_the_note_of_its_subject_in_another_folder(vault: Path) -> None:
    (vault / "notes/People").mkdir()
    write(vault, "People/Rita.md", "- likes boats\n")
    async with opened(vault) as memory:
        await memory.remember("Rita moved to Ghent")
    assert "Rita moved to Ghent" in (vault / "notes/People/Rita.md").read_text("utf-8")
    assert not (vault / "notes/Rita.md").exists()
