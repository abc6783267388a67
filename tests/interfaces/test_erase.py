"""`ricordo erase`: nothing is erased without confirmation."""

from __future__ import annotations

import os

from ricordo.sync import Memory


def kept(cli, text, *options):
    return cli("remember", text, "--json", *options).json["id"]


def test_nothing_is_erased_without_confirmation(cli):
    one = kept(cli, "the zebra is striped", "--about", "Zoe")
    refused = cli("erase", one)
    assert refused.status == 2
    assert "--yes" in refused.err
    assert cli("erase", one, "--json").json["error"]["code"] == "invalid"
    shown = cli("erase", one, "--dry-run")
    assert "Would be erased" in shown.out
    assert "semantic" in shown.out
    assert cli("show", one).status == 0


def test_erased_data_is_reported_and_gone(cli):
    one = kept(cli, "the zebra is striped", "--about", "Zoe")
    done = cli("erase", one[-8:], "--yes")
    assert done.status == 0
    assert "No byte of it is left" in done.out
    gone = cli("show", one)
    assert gone.status == 3
    assert "was erased on" in gone.err
    assert cli("erase", one, "--yes").status == 3


def test_json_is_the_report(cli):
    kept(cli, "the zebra is striped", "--about", "Zoe", "--session", "zoo")
    dry = cli("erase", "--session", "zoo", "--dry-run", "--json").json
    report = cli("erase", "--session", "zoo", "--yes", "--json").json
    assert dry["erased"] == report["erased"]
    assert report["is_done"] is True
    assert report["dry_run"] is False
    assert {each["kind"]: each["count"] for each in report["erased"]} == {"semantic": 1, "entity": 1, "session": 1}


def test_only_the_owner_can_erase_a_whole_memory(cli):
    kept(cli, "the zebra is striped")
    kept(cli, "the bear is brown", "--owner", "bob")
    assert cli("erase", "--everything", "--yes").status == 0
    assert cli("list", "--json").json["nodes"] == []
    assert len(cli("list", "--owner", "bob", "--json").json["nodes"]) == 1
    assert cli("erase", "--everything", "--entity", "Zoe", "--yes").status == 2


def test_a_short_id_of_a_live_and_an_undone_memory_is_refused(cli):
    with Memory.open(cli.store, embedder="hashing") as memory:
        for part in ("1111", "2222"):
            memory.add(f"box {part} holds books", id=f"aaaaaaaa-0000-7000-8000-{part}0000beef")
        memory.undo(memory.log()[0].seq)
    refused = cli("erase", "beef", "--yes")
    assert refused.status == 2, refused.out
    assert "several ids match beef" in refused.err


def test_an_erasure_names_the_document_and_its_file_that_is_still_there(cli):
    (cli.folder / "vault").mkdir()
    note = cli.folder / "vault" / "Diary.md"
    note.write_text("I secretly dislike the neighbour Balthasar.\n", encoding="utf-8")
    os.utime(note, (1_700_000_000, 1_700_000_000))
    assert cli("watch", str(note.parent), "--once").status == 0
    done = cli("erase", "--document", "vault/Diary.md", "--yes")
    assert done.status == 0, done.err
    assert "the document Diary.md" in done.out
    assert f"{note}" in "".join(done.out.split("\n"))
    again = cli("watch", str(note.parent), "--once")
    assert "erased before, not stored: Diary.md" in again.out
    assert "added" not in again.out
