"""Every command: what it does, and that `--json` prints exactly one document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli

from ricordo.storage.database.connection import connect


def remembered(cli: Cli, *arguments: str) -> str:
    return str(cli("remember", *arguments, "--json").json["id"])


def test_remember_keeps_every_field(cli: Cli) -> None:
    node = cli(
        "remember",
        "Anna's birthday is in May",
        "--about",
        "Anna",
        "--about",
        "Bob",
        "--tag",
        "dates",
        "--category",
        "identity",
        "--expires",
        "2030-01-01",
        "--confidence",
        "0.8",
        "--valid-from",
        "2020-01-01",
        "--id",
        "mine",
        "--json",
    ).json
    assert (node["id"], node["about"], node["tags"], node["category"]) == (
        "mine",
        ["Anna", "Bob"],
        ["dates"],
        "identity",
    )
    assert (node["confidence"], node["expires_at"], node["valid_from"]) == (
        0.8,
        "2030-01-01T00:00:00Z",
        "2020-01-01T00:00:00Z",
    )
    assert node["origin"] == "cli"
    assert "key" not in node


def test_add_records_a_message_and_takes_it_from_standard_input(cli: Cli) -> None:
    node = cli(
        "add",
        "hello there",
        "--speaker",
        "Ann",
        "--role",
        "assistant",
        "--session",
        "s1",
        "--at",
        "2026-02-03",
        "--json",
    ).json
    assert (node["speaker"], node["role"], node["session"]) == ("Ann", "assistant", "s1")
    assert node["event_time"] == "2026-02-03T00:00:00Z"
    piped = cli.process("add", "-", "--json", stdin="from a pipe, ёлки\n".encode())
    assert piped.json["content"] == "from a pipe, ёлки"


def test_the_options_of_every_command_stand_before_or_after_the_verb(cli: Cli) -> None:
    cli("--owner", "ann", "remember", "I like tea")
    assert (
        cli("list", "--owner", "ann", "--json").json["nodes"]
        == cli("--json", "--owner", "ann", "list").json["nodes"]
        != []
    )
    assert cli("list", "--json").json["nodes"] == []
    assert cli("--owner", "bob", "list", "--owner", "ann", "--json").json["nodes"] != []


def test_search_accepts_every_filter(cli: Cli) -> None:
    tea = remembered(cli, "Anna drinks tea", "--about", "Anna", "--tag", "drinks", "--category", "preference")
    remembered(cli, "Bob drinks coffee", "--category", "knowledge")
    for condition in (
        ("--entity", "Anna"),
        ("--tag", "drinks"),
        ("--category", "preference"),
        ("--type", "semantic", "--limit", "1"),
        ("--after", "2020-01-01", "--limit", "1"),
        ("--before", "2099-01-01", "--limit", "1"),
    ):
        assert [hit["id"] for hit in cli("search", "Anna tea", *condition, "--json").json["hits"]] == [tea]
    assert cli("search", "tea", "--where", "task=7", "--json").json["hits"] == []
    assert cli("search", "tea", "--where", '{"not": {"task": {"exists": true}}}', "--json").json["hits"] != []
    assert cli("search", "tea", "--archived", "--json").json["hits"] == []
    assert cli("search", "tea", "--session", "s1", "--json").json["hits"] == []
    assert "trace" in cli("search", "tea", "--json").json
    assert cli("search", "tea", "--json").json["trace"] is None


def test_query_uses_full_text_only(cli: Cli) -> None:
    tea = remembered(cli, "Anna drinks tea")
    found = cli("query", "tea", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [tea]
    assert "meaning" not in {share["strategy"] for share in found["hits"][0]["why"]}


def test_context_prints_the_block_or_null(cli: Cli) -> None:
    nothing = {"context": None, "tokens": 0, "budget": 1_000, "complexity": "simple", "sections": [], "receipt": None}
    nothing["left_out"] = 0
    assert cli("context", "what does Anna drink?", "--json").json == nothing
    remembered(cli, "Anna drinks green tea")
    assert (
        "Anna drinks green tea" in cli("context", "what does Anna drink?", "--budget", "200", "--json").json["context"]
    )
    assert cli("context", "what does Anna drink?").out.startswith("<recalled-memory>")


def test_list_continues_from_its_cursor(cli: Cli) -> None:
    cli.fill(5)
    first = cli("list", "--limit", "3", "--json").json
    second = cli("list", "--limit", "3", "--cursor", first["cursor"], "--json").json
    contents = [node["content"] for page in (first, second) for node in page["nodes"]]
    assert [content[:13] for content in contents] == [f"turn number {number}" for number in (4, 3, 2, 1, 0)]
    assert second["cursor"] is None


def test_a_memory_is_shown_by_its_id_or_the_end_of_it(cli: Cli) -> None:
    node_id = remembered(cli, "Anna drinks tea", "--about", "Anna")
    assert cli("show", node_id, "--json").json["content"] == "Anna drinks tea"
    assert cli("show", node_id[-8:], "--json").json["id"] == node_id
    shown = cli("show", node_id).out
    assert node_id in shown
    assert node_id[-8:] in cli("list").out


def test_line_breaks_are_kept_and_shown_on_one_line(cli: Cli) -> None:
    done = cli.process("remember", "-", stdin=b"line one about the garden\nline two: roses\n")
    assert "line one about the garden ↵ line two: roses" in done.out
    for verb in ("list", "log"):
        assert "about the garden ↵ line two: roses" in cli(verb).out, verb
    assert cli("list", "--json").json["nodes"][0]["content"] == "line one about the garden\nline two: roses"


def test_no_line_ends_with_spaces(cli: Cli) -> None:
    for text in ("Tom works as a waiter", "Tom works as a singer", "Anna keeps bees on the roof of her house in Rome"):
        remembered(cli, text)
    for verb in (
        ("list",),
        ("search", "Tom"),
        ("review",),
        ("log",),
        ("stats",),
        ("runs",),
        ("timeline",),
        ("config",),
    ):
        lines = cli(*verb).out.splitlines()
        assert lines and not [line for line in lines if line != line.rstrip()], verb


def test_any_beginning_or_end_of_an_id_names_it_with_or_without_dashes(cli: Cli) -> None:
    remembered(cli, "Tom works as a waiter")
    node_id = remembered(cli, "Tom works as a singer")
    whole = node_id.replace("-", "")
    for part in (node_id[-5:], node_id[-9:], node_id[-17:], whole[-17:], whole[:-4], node_id[:-4].upper()):
        assert cli("show", part, "--json").json["id"] == node_id, part
    (item,) = cli("review", "--json").json["reviews"]
    assert cli("resolve", item["id"][-5:], "keep both", "--json").json["id"] == item["id"]
    for part in (node_id[-3:], "ffffffffffff"):
        refused = cli("show", part)
        assert (refused.status, "unique beginning or end of at least 4" in refused.err) == (3, True)


def test_an_id_is_known_as_answers_show_it(cli: Cli) -> None:
    node = remembered(cli, "Likes oolong")
    for shown in (f"[id:{node[-8:]}]", f"id:{node}", f"[{node[-8:]}]"):
        assert cli("show", shown, "--json").json["content"] == "Likes oolong"
    remembered(cli, "Likes oolong no longer")
    (review,) = cli("review", "--json").json["reviews"]
    assert cli("resolve", f"[review:{review['id'][-8:]}]", "keep both").status == 0


def test_the_beginning_of_a_shown_id_is_enough(cli: Cli) -> None:
    for shown in ("bba6c222", "bba7c222", "d00d1234"):
        cli("remember", f"The boat {shown} is in the harbour", "--id", f"01a0c3f0-9c3a-7000-8123-4567{shown}")
        assert shown in cli("list").out
    for verb in ("show", "history", "explain"):
        assert cli(verb, "bba6", "--json").status == 0
    assert cli("forget", "d00d1", "--json").json["id"].endswith("d00d1234")
    cli("remember", "There is a kayak", "--id", "01a0c3f0-9c3a-7000-8123-4567bba6c999")
    refused = cli("show", "bba6")
    assert refused.status == 2 and "bba6c222" in refused.err and "bba6c999" in refused.err
    assert cli("show", "bba6c9", "--json").json["content"] == "There is a kayak"


def test_an_ambiguous_short_id_is_refused(cli: Cli) -> None:
    for name in ("one-00000000", "two-00000000"):
        remembered(cli, f"called {name}", "--id", name)
    refused = cli("show", "00000000")
    assert refused.status == 2
    assert "one-00000000" in refused.err


def test_forgetting_is_logged_and_can_be_undone(cli: Cli) -> None:
    node_id = remembered(cli, "Anna drinks tea")
    gone = cli("forget", node_id[-8:], "--reason", "she stopped", "--json").json
    assert (gone["id"], gone["closed_reason"]) == (node_id, "forgotten")
    assert cli("search", "tea", "--json").json["hits"] == []
    assert [hit["id"] for hit in cli("search", "tea", "--archived", "--json").json["hits"]] == [node_id]
    assert cli("log", "--json").json["commits"][0]["reason"] == "she stopped"
    assert [version["closed_reason"] for version in cli("history", node_id, "--json").json["versions"]] == [
        None,
        "forgotten",
    ]
    assert cli("restore", node_id[-8:], "--json").json["closed_at"] is None
    assert cli("search", "tea", "--json").json["hits"] != []
    for arguments in (("forget", node_id), ("history", node_id), ("restore", node_id), ("log",)):
        assert cli(*arguments).status == 0


def test_an_entity_is_known_by_its_other_names(cli: Cli) -> None:
    added = cli("entity-add", "Anna Petrova", "--alias", "Anya", "--relation", "sister", "--json").json
    assert (added["name"], added["type"], added["relation"]) == ("Anna Petrova", "person", "sister")
    node_id = remembered(cli, "She likes tea", "--about", "Anya")
    assert cli("show", node_id, "--json").json["about"] == ["Anna Petrova"]
    assert cli("entity-add", "Anna Petrova").status == 4


def test_people_are_listed_shown_related_merged_and_split(cli: Cli) -> None:
    assert "No people are known" in cli("people").out
    cli("entity-add", "Sarah", "--relation", "wife", "--protected")
    cli("entity-add", "Acme", "--type", "organization")
    vet = remembered(cli, "Sally is a vet", "--about", "Sally")
    related = cli("relate", "Acme", "employer", "--source", "Sarah", "--valid-from", "2024-01-01", "--json").json
    assert [(each["predicate"], each["source_name"]) for each in related["relations"]] == [("employer", "Sarah")]
    assert [each["name"] for each in cli("people", "--json").json["people"]] == ["Sally", "Sarah"]
    assert cli("merge", "Sarah", "Sally", "--json").json["aliases"] == ["Sally"]
    card = cli("entity", "моя жена").out
    for told in ("Sarah", "wife", "Sally is a vet", "Acme is the employer of Sarah (2024-01-01–)", "protected", "once"):
        assert told in card
    assert "Sally" in cli("people").out
    parted = cli("split", "Sarah", "Sally", "--json").json
    assert (parted["kept"]["name"], parted["other"]["name"]) == ("Sarah", "Sally")
    assert [fact["id"] for fact in cli("entity", "Sally", "--json").json["facts"]] == [vet]
    assert cli("entity", "Nobody").status == 3
    assert cli("merge", "Sarah", "Sarah").status == 4


def test_off_the_record_messages_are_not_stored_and_reported(cli: Cli) -> None:
    assert cli("off-record", "--json").json == {"chat": None, "session": None, "on_record": False}
    assert cli("remember", "secret", "--json").json == {"id": None, "kept": False}
    assert "Not stored" in cli("add", "secret").out
    cli("--chat", "climbers", "off-record")
    done = cli("on-record", "--json").json
    assert (done["on_record"], [pause["chat"] for pause in done["paused"]]) == (True, ["climbers"])
    assert cli("add", "no secret").status == 0
    assert [node["content"] for node in cli("list", "--json").json["nodes"]] == ["no secret"]


def test_a_session_with_messages_can_be_ended(cli: Cli) -> None:
    assert cli("end-session", "s1").status == 3
    cli("add", "hello", "--session", "s1")
    assert cli("end-session", "s1", "--json").json == {"session": "s1", "ended": True}


def test_a_credential_is_redacted_and_reported(cli: Cli) -> None:
    kept = cli("remember", "my password is: hunter2-Xy77-qq", "--json")
    assert "hunter2" not in kept.out
    assert "credential" in kept.err


def test_stats_count_memories(cli: Cli) -> None:
    cli.fill(12)
    figures = cli("stats", "--json").json
    assert (figures["nodes"], figures["sessions"], figures["embedding_missing"]) == ({"episodic": 12}, 2, 0)
    assert str(cli.store) in "".join(cli("stats").out.split()), "in as many lines as it takes"


def test_importing_twice_adds_nothing(cli: Cli) -> None:
    path = cli.fill(12)
    again = cli("import", str(path), "--json").json
    assert (again["read"], again["added"], again["known"]) == (12, 0, 12)
    assert "0 messages added, 12 already known" in cli("import", str(path)).out


def test_a_dry_run_stores_nothing_and_reports_bad_lines(cli: Cli) -> None:
    path = cli.folder / "some.jsonl"
    path.write_text('{"text": "hello"}\nnot json\n{"role": "alien", "text": "x"}\n')
    report = cli("import", str(path), "--dry-run", "--json").json
    assert (report["read"], report["added"], report["refused_count"], report["dry_run"]) == (1, 1, 2, True)
    assert not cli.store.exists()
    shown = cli("import", str(path), "--dry-run").out
    assert "1 message would be added" in shown
    assert "line 2" in shown
    assert "alien" in shown


def test_a_locomo_file_is_detected(cli: Cli) -> None:
    path = cli.folder / "small.jsonl"
    turn = {
        "kind": "turn",
        "conv": "c1",
        "session": 1,
        "id": "D1:1",
        "date": "1:56 pm on 8 May, 2023",
        "speaker": "Caro",
    }
    rows = [
        {**turn, "text": "I went to a support group"},
        {**turn, "id": "D1:2", "speaker": "Mel", "text": "Look!", "caption": "a lake"},
        {"kind": "query", "conv": "c1", "question": "where?"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli("import", str(path), "--json").json["added"] == 2
    nodes = cli("list", "--json").json["nodes"]
    assert [node["content"] for node in nodes] == ["Look! [shows a picture: a lake]", "I went to a support group"]
    assert nodes[0]["event_time"] == "2023-05-08T13:56:00Z"
    assert cli("import", str(path), "--format", "chat", "--dry-run", "--json").json["refused_count"] > 0


def test_a_backup_is_a_store_and_nothing_is_overwritten(cli: Cli) -> None:
    cli.fill(3)
    copy = cli.folder / "copy.db"
    made = cli("backup", str(copy), "--json").json
    assert (made["path"], made["bytes"]) == (str(copy), copy.stat().st_size)
    assert len(cli("list", "--store", str(copy), "--json").json["nodes"]) == 3
    assert cli("backup", str(copy)).status == 2


def test_a_backup_is_verified_and_restored_by_command(cli: Cli) -> None:
    cli.fill(3)
    copy = cli.folder / "copy.db"
    made = cli("backup", str(copy), "--verify", "--json").json
    assert (made["ok"], made["manifest"]["rows"]["nodes"]) == (True, 3)
    cli("remember", "written since")
    assert cli("restore-backup", str(copy)).status == 2
    done = cli("restore-backup", str(copy), "--replace", "--json").json
    assert Path(done["kept"]).exists()
    assert len(cli("list", "--json").json["nodes"]) == 3
    assert "kept as" in cli("restore-backup", str(copy), "--replace").out
    assert "The backup is intact." in cli("verify-backup", str(copy)).out
    copy.write_bytes(copy.read_bytes()[:-1] + b"x")
    assert cli("verify-backup", str(copy), "--json").status == 7
    assert cli("verify-backup", str(cli.folder / "nothing.db")).status == 3


def test_doctor_passes_a_sound_store_and_fails_a_damaged_one(cli: Cli) -> None:
    cli.fill(3)
    report = cli("doctor", "--json")
    assert (report.status, report.json["ok"]) == (0, True)
    assert "All is well" in cli("doctor").out
    damage(cli.store)
    report = cli("doctor", "--json")
    assert (report.status, report.json["ok"]) == (7, False)
    assert "PROBLEM" in cli("doctor").out


def damage(store: Path) -> None:
    """Change a text directly in the file."""
    connection = connect(store, patience_s=5)
    connection.execute("UPDATE nodes SET content = 'turned' WHERE key = 1")
    connection.close()


@pytest.mark.parametrize("verb", ["doctor", "backup"])
def test_doctor_and_backup_fail_without_a_store(cli: Cli, verb: str) -> None:
    assert cli(verb, *([str(cli.folder / "copy.db")] if verb == "backup" else [])).status == 3
    assert not cli.store.exists()


def test_everything_is_exported_and_imported(cli: Cli) -> None:
    cli.fill(12)
    cli("remember", "Tea is best at four")
    out = cli.folder / "all.jsonl"
    report = cli("export", str(out), "--json").json
    assert (report["format"], report["facts"], report["messages"], report["path"]) == ("jsonl", 1, 12, str(out))
    cli.store = cli.folder / "other.db"
    assert cli("import", str(out), "--json").json["added"] == 13
    assert "0 memories added, 13 already known" in cli("import", str(out)).out
    assert "exists already" in cli("export", str(out)).err
    shown = cli("export", str(cli.folder / "notes.md"), "--format", "markdown").out
    assert "1  fact\n" in shown
    assert "Tea is best at four" in (cli.folder / "notes.md").read_text("utf-8")


def test_an_export_of_nothing_is_refused(cli: Cli) -> None:
    failed = cli("export", str(cli.folder / "all.jsonl"))
    assert failed.status == 3
    assert not (cli.folder / "all.jsonl").exists()


def test_people_are_changed_and_relations_ended(cli: Cli) -> None:
    cli("entity-add", "Sarah")
    cli("entity-add", "Acme")
    changed = cli("entity-update", "Acme", "--type", "organization", "--alias", "Acme Corp", "--json").json
    assert (changed["type"], changed["aliases"]) == ("organization", ["Acme Corp"])
    assert cli("entity-update", "Acme").status == 2
    assert cli("entity-update", "Nobody", "--type", "place").status == 3
    said = cli("add", "Sarah starts at Acme in May", "--json").json["id"]
    cli("relate", "Acme", "employer", "--source", "Sarah", "--valid-from", "2024-05-01", "--evidence", said)
    ended = cli("relate", "Acme", "employer", "--source", "Sarah", "--valid-until", "2025-11-30", "--json").json
    (relation,) = ended["relations"]
    assert (relation["valid_from"][:4], relation["valid_until"][:4], relation["evidence"]) == ("2024", "2025", [said])
    assert cli("relate", "Acme", "employer", "--source", "Sarah", "--valid-until", "2020-01-01").status == 2


def test_the_owner_keeps_a_code_on_purpose(cli: Cli) -> None:
    told = cli("remember", "The door code is 4711")
    assert "4711" not in told.out
    assert "--keep-secrets" in told.out + told.err
    assert "4712" in cli("remember", "The cellar code is 4712", "--keep-secrets").out


def test_without_a_model_no_conversation_is_said_to_wait(cli: Cli) -> None:
    cli("add", "I'm allergic to bee stings.", "--session", "s1")
    assert "bee stings" in cli("consolidate").out
    again = cli("consolidate").out
    assert "Nothing new was learnt: the rules have read 1 conversation." in again
    assert again.count("language model") == 1
    assert "1, 1 not read by a language model" in cli("stats").out
    assert "wait" not in again + cli("stats").out


def test_lists_show_the_subject_of_a_fact_that_its_words_do_not_name(cli: Cli) -> None:
    cli("add", "I'm allergic to bee stings.", "--speaker", "Joanna", "--session", "s1")
    cli("consolidate")
    cli("remember", "Ida likes figs")
    (line,) = [line for line in cli("list", "--type", "semantic").out.splitlines() if "bee stings" in line]
    assert "(about Joanna)" in line
    (other,) = [line for line in cli("list", "--type", "semantic").out.splitlines() if "figs" in line]
    assert "about" not in other
    context = cli("context", "Am I allergic to anything?").out
    assert "- I'm allergic to bee stings (said by Joanna)" in context, "not the owner"


@pytest.mark.parametrize(
    "text",
    ["[bold]bread[/bold]", r"C:\[x] and [/]", "ends with \\", "{content} and {0}", "100 % {aliases: (%)}", ":bread:"],
)
def test_a_template_prints_what_looks_like_markup_or_a_field_as_it_is(cli: Cli, text: str) -> None:
    kept = cli("remember", text, "--json").json["id"]
    assert cli("confirm", kept).out == f"Confirmed: {text}\n"
    added = cli("entity-add", text, "--alias", f"{text}!")
    assert (added.status, added.out) == (0, f"Added: {text}, person (also {text}!)\n")


def test_standing_questions_are_kept_listed_renewed_and_dropped(cli: Cli) -> None:
    fact = remembered(cli, "Anna lives in Rome", "--about", "Anna")
    kept = cli("question-keep", "Where does Anna live?", "--json").json
    assert (kept["answer"]["text"], kept["stale"]) == ("Anna lives in Rome", [])
    cli("correct", fact, "Anna lives in Milan")
    short = kept["id"][-12:]
    assert "stale: superseded" in cli("questions").out
    assert "is superseded (change 2)" in cli("questions", short).out
    assert "Anna lives in Milan" in cli("question-renew").out
    assert cli("questions", "--json").json["questions"][0]["stale"] == []
    assert cli("question-renew", short, "--json").json["questions"][0]["id"] == kept["id"]
    cli("question-drop", short)
    assert cli("questions", "--json").json == {"questions": []}
    assert cli("questions", short).status == 3


def test_an_import_says_who_was_taken_as_the_owner(cli, tmp_path):
    chats = tmp_path / "chats"
    chats.mkdir()
    for name in ("Bob", "Eve"):
        lines = f"31/12/2023, 22:15 - Ann: Hello\n31/12/2023, 22:16 - {name}: Hello\n"
        (chats / f"WhatsApp Chat with {name}.txt").write_text(lines)
    for options in (("--dry-run",), (), ()):
        done = cli("import", str(chats), "--me", "ann", "--me", "Anna", *options)
        assert "Taken as you: Ann (2 messages)." in done.out
        assert "Nobody in it is called Anna" in done.out


def test_the_owners_name_in_a_chat_is_known_once_it_was_imported(cli, tmp_path):
    chat = tmp_path / "WhatsApp Chat with Bob.txt"
    chat.write_text("31/12/2023, 22:15 - Ann Reed: Hello\n31/12/2023, 22:16 - Bob: Ann Reed, are you coming?\n")
    for _ in range(2):
        cli("import", str(chat), "--me", "ann reed")
    assert [each["content"] for each in cli("list", "--type", "semantic", "--json").json["nodes"]] == [
        "The user's name is Ann Reed"
    ]
    assert {each["name"] for each in cli("people", "--json").json["people"]} == {"Bob"}
    assert "The user's name is Ann Reed" in cli("context", "What is my name?").out


def test_a_dry_run_lists_the_speakers_and_a_name_given_too_late_is_not_called_taken(cli, tmp_path):
    chat = tmp_path / "WhatsApp Chat with Bob.txt"
    chat.write_text(
        "31/12/2023, 22:15 - Ann: My sister is Eva\n31/12/2023, 22:16 - Bob: Hi\n31/12/2023, 22:17 - Bob: Yes\n"
    )
    tried = cli("import", str(chat), "--dry-run").out
    assert "Speakers: Bob (2 messages), Ann (1 message)." in tried
    assert "Said 2023-12-31." in tried and "comes first" not in tried
    assert "import with --me NAME" in tried
    cli("import", str(chat))
    again = cli("import", str(chat), "--me", "Ann").out
    assert "Taken as you" not in again
    assert "not changed: Ann (1 message)" in again
    assert "`ricordo undo 1` and this import again" in again
    cli("consolidate")
    cli("undo", "1")
    assert "Taken as you: Ann (1 message)." in cli("import", str(chat), "--me", "Ann").out
    assert {(each["name"], each["relation"]) for each in cli("people", "--json").json["people"]} == {
        ("Bob", None),
        ("Eva", "sister"),
    }


def test_a_list_shows_what_it_sorts_by_and_how_many_there_are(cli):
    for number in range(3):
        cli("add", f"Message {number}", "--at", f"201{9 - number}-05-01")
    listed = cli("list", "--limit", "2")
    assert "recorded" in listed.out and "happened" in listed.out
    assert "2 of 3; more with --cursor" in listed.out + listed.err
    assert "more with" not in cli("list").out + cli("list").err


def test_a_list_that_may_be_cut_says_so(cli):
    for number in range(3):
        cli("add", f"Message {number}", "--session", f"s{number}")
    assert "2 shown. A higher --limit shows more" in cli("sessions", "--limit", "2").out
    assert "--limit" not in cli("sessions").out


def test_the_marks_below_what_was_learnt_are_not_taken_for_a_fact(cli):
    cli("add", "I live in Oslo", "--session", "s")
    cli("end-session", "s")
    assert "Marks: + added" in cli("consolidate").out


def test_a_question_that_nothing_live_answers_is_pointed_to_closed_memories(cli: Cli) -> None:
    id = cli("remember", "We fly to Tbilisi with Anya", "--json").json["id"]
    answered = cli("ask", "when do we fly to Tbilisi?")
    assert "closed memory" not in answered.err and "answer best" not in answered.err  # a tip is for a terminal, once
    cli("forget", id)
    assert "1 closed memory matches" in cli("ask", "when do we fly to Tbilisi?").err


def test_two_own_names_of_an_import_are_one_person_with_their_relations(cli: Cli, tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    said = (
        ("10:01", "Marta Colombo", "Mio figlio Tommaso è celiaco"),
        ("10:02", "Luca Ferri", "Capisco"),
        ("10:05", "Marta", "My boss is Federica Tosi"),
    )
    chat.write_text("\n".join(f"12/03/2024, {at} - {who}: {text}" for at, who, text in said), encoding="utf-8")
    cli("import", str(chat), "--me", "Marta Colombo", "--me", "Marta")
    cli("consolidate")
    page = cli("entity", "Marta").out
    assert "Tommaso (your son); Federica Tosi (your boss)" in page and "your son, boss" not in page
    assert cli("entity", "Tommaso", "--json").json["relation"] == "son"
    assert cli("review", "--json").json == {"reviews": [], "total": 0}


def test_a_cut_list_of_reviews_says_how_many_there_are(cli: Cli) -> None:
    for work in ("singer", "waiter", "cook", "baker"):
        cli("remember", f"Tom works as a {work}")
    assert "2 of 3; a higher --limit shows more." in cli("review", "--limit", "2").out
    assert cli("review", "--limit", "2", "--json").json["total"] == 3
    assert "higher" not in cli("review").out


def test_a_budget_that_holds_nothing_is_not_an_empty_memory(cli: Cli) -> None:
    assert "nothing to brief about" in cli("brief", "--budget", "50").err
    cli("remember", "Tom works as a singer")
    for typed in (("brief",), ("context", "what does Tom work as?")):
        done = cli(*typed, "--budget", "50")
        assert "Nothing fits into 50 tokens; 1 line is left out. Set a larger `--budget`." in done.err, typed
        assert cli(*typed, "--budget", "50", "--json").json["left_out"] == 1
        assert cli(*typed, "--budget", "500", "--json").json["left_out"] == 0
    assert "relevant" in cli("context", "who won the cup?", "--budget", "50").err


@pytest.mark.parametrize(
    "text", ["-5 grad heute nacht", "-5°C ce matin", "-10 градусов", "-3 a la sombra", "- [ ] call Tom"]
)
def test_a_text_that_begins_with_a_minus_is_no_option(cli, text):
    assert text.removeprefix("- [ ] ")[:5] in cli("remember", text).out
    assert cli("search", text).out


def test_an_unknown_short_option_says_how_a_text_may_begin_with_it(cli):
    refused = cli("remember", "-5")
    assert "put `--` before a text" in refused.err
    assert "put `--` before a text" not in cli("remember", "tea", "--limt", "3").err
