"""A vault of notes as people keep it, through the CLI: `import` with `notes`, and `watch`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.conftest import Cli

from ricordo.interfaces.cli.app import main

NOTES = {
    "Home.md": "# Home\n\n- [[Aurora]]\n- [[Tasks/Inbox]]\n\n```dataview\nTABLE status FROM #project\n```\n",
    "Projects/Aurora.md": (
        "---\nstatus: active\ndeadline: 2026-12-18\nowner: '[[Priya Raman]]'\ncssclass: wide\nid: 7\nnote:\n"
        "tags: [project\n---\n# Aurora\n\nReplaces the old billing, says [[Priya Raman]].\n\n![[chart.png]]\n\n"
        "## Decisions\n- 2026-10-06: We use Postgres\n\n## Tasks\n- [x] Write the script\n"
        "- [ ] Plan the rollback #todo\n\n```sql\nselect 1\n```\n"
    ),
    "Recipes/Käsespätzle.md": "400 g Mehl, 5 Eier.\n\n![[Käsespätzle.jpg]]\n",
    "People/Dr. Weiss-Hahn.md": (
        "---\nbirthday: 1979-07-21\naliases: [Doc]\n---\n- Dentist in Kiel\n\n## Story\n\nHow we met:\n"
    ),
    "Daily/2026-11-03.md": (
        "---\nmood: 4\n---\n# Tuesday, 03 November 2026\n\n## Log\n- Lost the blue suitcase\n\n"
        "[[2026-11-02]] | [[2026-11-04]]\n"
    ),
    "Tasks/Inbox.md": (
        "# Inbox\n\n- [ ] Buy a present for [[Lotte]]\n"
        "\t- [ ] ask [[Dr. Weiss-Hahn|Doc]]\n- [-] Learn Haskell\n- [ ] \n"
    ),
    "Vorlagen/Person.md": "# Name\n\n- Birthday: unknown\n",
    "Meeting.md": "# {{title}}\n\n- Agenda: none\n",
    "empty.md": "# Nothing\n",
    "Router.md": "The wifi password: hunter2-Sesame-99\n",
    ".obsidian/templates.json": '{"folder": "Vorlagen"}',
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "Vault"
    for name, text in NOTES.items():
        _write(folder / name, text.encode())
    _write(folder / "alt.md", "# Alt\n\nDer Schlüssel hängt hinter der Tür.\n".encode("cp1252"))
    return folder


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - 60,) * 2)


def _listed(cli: Cli, *more: str) -> dict[str, dict[str, Any]]:
    """Return memories by their text."""
    return {each["content"]: each for each in cli("list", "--limit", "100", *more, "--json").json["nodes"]}


def _people(cli: Cli) -> set[str]:
    return {each["name"] for each in cli("people", "--json").json["people"]}


def _found(cli: Cli, question: str) -> list[dict[str, Any]]:
    """Return the hits for a question, best first."""
    hits: list[dict[str, Any]] = cli("search", question, "--json").json["hits"]
    return hits


def test_an_import_names_the_note_of_a_line_and_leaves_out_what_is_no_fact(cli: Cli, vault: Path) -> None:
    assert cli("import", str(vault)).status == 0
    assert set(_listed(cli)) == {
        "Aurora: Replaces the old billing, says Priya Raman.",
        "Aurora: We use Postgres",
        "Aurora: Write the script",
        "Aurora: Plan the rollback",
        "Aurora:\n```sql\nselect 1\n```",
        "Aurora: status active",
        "Aurora: deadline 2026-12-18",
        "Aurora: owner Priya Raman",
        "Käsespätzle: 400 g Mehl, 5 Eier.",
        "birthday 1979-07-21",
        "Dentist in Kiel",
        "2026-11-03: mood 4",
        "Lost the blue suitcase",
        "Inbox: Buy a present for Lotte",
        "Inbox: Buy a present for Lotte: ask Dr. Weiss-Hahn",
        "Router: The wifi password: [redacted: password]",
    }
    listed = _listed(cli)
    assert listed["birthday 1979-07-21"]["about"] == ["Dr. Weiss-Hahn"]
    assert listed["Aurora: Plan the rollback"]["category"] == "task"
    assert listed["Aurora: deadline 2026-12-18"]["category"] == "knowledge"
    assert _found(cli, "Käsespätzle Rezept")[0]["content"] == "Käsespätzle: 400 g Mehl, 5 Eier."
    people = _people(cli)
    assert people == {"Priya Raman", "Dr. Weiss-Hahn", "Lotte"}
    assert cli("entity", "Aurora", "--json").json["type"] == "concept"
    assert cli("entity", "Inbox", "--json").json["type"] == "concept"


def test_what_was_imported_names_its_note_and_line(cli: Cli, vault: Path) -> None:
    question, place = "Who is a dentist in Kiel?", "People/Dr. Weiss-Hahn.md, line 5"
    cli("import", str(vault))
    hit = _found(cli, question)[0]
    assert (hit["content"], hit["place"]) == ("Dentist in Kiel", place)
    assert cli("show", hit["id"], "--json").json["attributes"]["line"] == 5
    for verb in (("show", hit["id"]), ("search", question), ("context", question)):
        assert place in " ".join(cli(*verb).out.split()), verb
    cli("export", str(cli.folder / "all.jsonl"))
    cli("export", str(cli.folder / "notes"), "--format", "markdown")
    for name in ("all.jsonl", "notes"):
        other = ("--store", str(cli.folder / f"{name}.db"))
        cli("import", str(cli.folder / name), *other)
        assert place in " ".join(cli("search", question, *other).out.split())
    corrected = cli("correct", hit["id"], "Dentist in Bonn", "--json").json
    assert place not in cli("search", "Who is a dentist in Bonn?").out, corrected  # it is what the user says now


def test_an_import_refuses_one_note_by_name_and_takes_the_rest(cli: Cli, vault: Path) -> None:
    done = cli("import", str(vault), "--json")
    assert (done.status, done.json["refused_count"]) == (0, 2)
    list_, bytes_ = sorted(done.json["refused"])
    assert "alt.md line 3: byte 0xfc is not UTF-8" in bytes_ and "iconv" in bytes_
    assert list_ == "Projects/Aurora.md line 8: `tags` is a list without a closing bracket"
    assert done.json["skipped"] == ["2 templates: Meeting.md, Vorlagen/Person.md"]


def test_front_matter_that_does_not_end_is_read_as_text_and_named(cli: Cli, tmp_path: Path) -> None:
    note = tmp_path / "Notes" / "Bike.md"
    note.parent.mkdir()
    note.write_text("---\ntags: [daily]\ndate: 2026-01-13\n\nThe bike lock is 4711.\n", encoding="utf-8")
    why = "line 1: the front matter is not closed by `---`, and is read as text"
    assert f"Bike.md {why}" in cli("import", str(note.parent), "--json").json["refused"]
    cli("import", str(note.parent))
    other = ("--store", str(cli.folder / "watched.db"))
    (step,) = cli("watch", str(note.parent), "--once", "--json", *other).json["steps"]
    assert step["added"] == ["Bike.md"] and step["left_out"] == {"Bike.md": f"front matter {why}"}
    note.write_text("---\n\nThe bike lock is 4712.\n", encoding="utf-8")  # a rule
    assert not cli("import", str(note.parent), "--json").json["refused"]


@pytest.mark.parametrize(
    "copy",
    [
        "Ida.sync-conflict-20261130-101010-ABCDEFG.md",
        "Ida_conflict-20261130-101010.md",
        "Ida (conflicted copy 2026-11-30 101010).md",
        "Ida (Anna's conflicted copy 2026-11-30).md",
        "Ida (Conflicted copy laptop 202611301010).md",
        "Ida (Annas in Konflikt stehende Kopie 2026-11-30).md",
        "Ida (Copie en conflit de Anna 2026-11-30).md",
        "Ida (Copia en conflicto de Anna 2026-11-30).md",
        "Ida (copia in conflitto di Anna 2026-11-30).md",
        "Ida (Cópia em conflito de Anna 2026-11-30).md",
        "Ida (конфликтующая копия с laptop 2026-11-30).md",
    ],
)
def test_conflict_copies_of_a_file_syncer_are_left_out_by_name(cli: Cli, tmp_path: Path, copy: str) -> None:
    folder, other = tmp_path / "Notes", ("--store", str(cli.folder / "watched.db"))
    folder.mkdir()
    kept = ("Ida.md", "Ida 2.md", "Ida (on the conflict 2026-11-30).md")
    for number, name in enumerate((*kept, copy)):
        (folder / name).write_text(f"- Ida is allergic to nut {number}.\n", encoding="utf-8")
    done = cli("import", str(folder), "--json").json
    assert (done["added"], done["refused"]) == (3, [f"{copy}: left out, as it is a conflict copy"])
    (step,) = cli("watch", str(folder), "--once", "--json", *other).json["steps"]
    assert (sorted(step["added"]), step["skipped_files"]) == (sorted(kept), {"conflict copies": [copy]})


def test_watched_notes_are_not_imported_as_well(cli: Cli, vault: Path) -> None:
    cli("watch", str(vault), "--once")
    before = cli("list", "--json").json
    note = cli("documents", "--json").json["documents"][0]["title"]
    for path in (vault, vault / note):
        refused = cli("import", str(path))
        assert refused.status != 0
        assert "watch" in refused.err and "documents" in refused.err
    assert cli("list", "--json").json == before


def test_a_watch_names_what_it_leaves_out_and_reports_credentials(cli: Cli, vault: Path) -> None:
    said = cli("watch", str(vault), "--once", "--json").json["steps"]
    refused, skipped = ({k: v for step in said for k, v in step[name].items()} for name in ("refused", "skipped_files"))
    assert list(refused) == ["alt.md"] and "0xfc is not UTF-8 (iconv" in refused["alt.md"]
    assert skipped == {"templates": ["Meeting.md", "Vorlagen/Person.md"], "empty": ["empty.md"]}
    assert [step["redacted"] for step in said if step["added"]] == [1]
    assert any("closing bracket" in step["left_out"].get("Projects/Aurora.md", "") for step in said)
    _write(vault / "Router.md", b"The wifi password: hunter2-Sesame-98, since May\n")
    shown = cli("watch", str(vault), "--once").out
    assert "1 credential redacted" in shown and "empty: empty.md" in shown
    assert "templates: Meeting.md, Vorlagen/Person.md" in shown


def test_watched_notes_are_found_by_name_property_and_open_tasks(cli: Cli, vault: Path) -> None:
    assert cli("watch", str(vault), "--once").status == 0
    assert _found(cli, "Käsespätzle Rezept")[0]["content"] == "Käsespätzle\n400 g Mehl, 5 Eier."
    birthday = _found(cli, "When is the birthday of Dr. Weiss-Hahn?")[0]
    assert birthday["content"].startswith("Dr. Weiss-Hahn\nbirthday 1979-07-21")
    hits = _found(cli, "What happened to Aurora?")
    assert not [hit for hit in hits if hit["content"] == "Projects/Aurora.md\nAurora"]
    for question in ("What are my open tasks?", "Welche offenen Aufgaben habe ich?"):
        assert all("[ ]" in hit["content"] for hit in _found(cli, question)[:2])
    tasks = _listed(cli, "--type", "episodic", "--tag", "open-task")
    assert {each["attributes"]["title"] for each in tasks.values()} == {"Projects/Aurora.md", "Tasks/Inbox.md"}
    texts = "\n".join(_listed(cli, "--type", "episodic"))
    assert "suitcase" in texts and "2026-11-02" not in texts and "dataview" not in texts and ".png" not in texts
    assert _people(cli) == {"Priya Raman", "Dr. Weiss-Hahn", "Lotte"}


def test_notes_file_an_imported_line_under_its_note(cli: Cli, vault: Path) -> None:
    store = f"{vault.parent}/memories/"
    for command in (["import", str(vault)], ["notes"]):
        assert main(["--store", store, "--embedder", "none", *command]) == 0
    notes = {path.name: path.read_text("utf-8") for path in (vault.parent / "memories/notes").glob("*.md")}
    assert "- Aurora: Replaces the old billing, says [[Priya Raman]]." in notes["Aurora.md"]
    assert "- Käsespätzle: 400 g Mehl, 5 Eier." in notes["Käsespätzle.md"]
    assert "- [ ] Inbox: Buy a present for [[Lotte]]" in notes["Inbox.md"]
    assert "2026-11-02" not in "".join(notes) and "suitcase" in notes["Me.md"]


def test_a_second_import_of_edited_notes_says_that_the_old_lines_stay(cli: Cli, tmp_path: Path) -> None:
    note, hint = tmp_path / "Notes" / "2025-06-01.md", "Lines that changed since stand beside the old ones"
    note.parent.mkdir()
    note.write_text("- My dentist is Dr. Walsh.\n- The gate is green.\n", encoding="utf-8")
    assert hint not in cli("import", str(note.parent)).out
    assert hint not in cli("import", str(note.parent)).out, "nothing changed"
    note.write_text("- My dentist is Dra. Sousa.\n- The gate is green.\n", encoding="utf-8")
    out = " ".join(cli("import", str(note.parent)).out.split())
    assert hint in out and "`watch` the folder" in out
