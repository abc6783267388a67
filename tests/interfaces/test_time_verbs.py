"""The commands timeline, explain and undo, and the option --as-of."""

from __future__ import annotations

from tests.interfaces.conftest import Cli


def remembered(cli: Cli, *arguments: str) -> str:
    return str(cli("remember", *arguments, "--json").json["id"])


def test_undo_reverts_a_change_and_shows_how_to_redo_it(cli: Cli) -> None:
    node = remembered(cli, "Anna likes tea", "--about", "Anna")
    cli("forget", node)
    done = cli("undo", "2")
    assert done.status == 0
    assert "Undone: brings back “Anna likes tea”" in done.out
    assert "ricordo undo 3" in done.out
    assert cli("list", "--json").json["nodes"][0]["id"] == node
    refused = cli("undo", "2", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (4, "conflict")
    assert cli("undo", "99", "--json").status == 3


def test_undoing_a_decision_names_it_and_the_memories(cli: Cli) -> None:
    remembered(cli, "Tom works as a waiter")
    remembered(cli, "Tom works as a singer")
    (item,) = cli("review", "--json").json["reviews"]
    cli("resolve", item["id"], "keep both")
    about = "“keep both” about “Tom works as a singer” and “Tom works as a waiter”"
    assert f"Would be undone: takes back {about}" in cli("undo", "3", "--dry-run").out
    assert f"Undone: takes back {about}" in cli("undo", "3").out
    assert f"Undone: decides again {about}" in cli("undo", "4").out


def test_undo_with_what_builds_on_it(cli: Cli) -> None:
    node = remembered(cli, "Anna likes tea", "--about", "Anna")
    cli("correct", node, "Anna likes cake")
    refused = cli("undo", "1")
    assert refused.status == 4
    assert "a later change depends on it:\n  2 correct “Anna likes cake" in refused.err
    assert "takes back 2 correct “Anna likes cake" in cli("undo", "1", "--with-later", "--dry-run").out
    assert "--with-later" in refused.err
    assert cli("undo", "1", "--with-later", "--json").json["reason"] == "undo of 1 and what builds on it"
    assert cli("list", "--json").json["nodes"] == []


def test_what_an_undo_took_back_with_others_is_reported_as_undone(cli: Cli) -> None:
    node = remembered(cli, "My husband is called Tomas")
    cli("update", node, "--content", "My husband is called Thomas")
    cli("forget", node, "--reason", "a rumour")
    cli("undo", "1", "--with-later")
    for number in ("1", "2", "3"):
        refused = cli("undo", number, "--with-later")
        assert (refused.status, f"{number} is already undone, by change 4" in refused.err) == (4, True), refused.err
    assert cli("undo", "4").status == 0
    assert "Undone: brings back" in cli("undo", "3").out


def test_a_change_is_undone_although_a_later_one_needs_the_person_it_made(cli: Cli) -> None:
    remembered(cli, "The user lives in Lisbon with his girlfriend Inês.")
    remembered(cli, "Inês is vegetarian")
    assert "keeps the person “Inês”" in cli("undo", "1").out
    refused = cli("undo", "1")
    assert (refused.status, "1 is already undone, by change 3" in refused.err) == (4, True), refused.err


def test_the_log_shows_the_texts_that_memories_had(cli: Cli) -> None:
    node = remembered(cli, "My husband is called Tomas")
    remembered(cli, "My husband is called Tomas")
    cli("update", node, "--content", "My husband is called Thomas")
    cli("forget", node, "--reason", "a rumour")
    cli("undo", "1", "--with-later")
    remembered(cli, "Tom works as a waiter")
    remembered(cli, "Tom works as a singer")
    (item,) = cli("review", "--json").json["reviews"]
    cli("resolve", item["id"], "keep both")
    commits = cli("log", "--json").json["commits"]
    assert [each["seq"] for each in commits if each["is_repeat"]] == [2]
    lines = [line[29:].strip() for line in cli("log").out.splitlines()[1:]]
    assert lines == [
        "resolve: keep both: Tom works as a singer (before: Tom works as a wai…",
        "remember: Tom works as a singer",
        "remember: Tom works as a waiter",
        "undo of 1 and what builds on it: My husband is called Thomas",
        "forget (a rumour): My husband is called Thomas",
        "update: My husband is called Thomas",
        "remember: already known: My husband is called Tomas",
        "remember: My husband is called Tomas",
    ]


def test_the_past_by_time_and_by_number(cli: Cli) -> None:
    node = remembered(cli, "Anna likes tea", "--about", "Anna")
    cli("forget", node)
    for verb in (
        ("list",),
        ("search", "tea"),
        ("context", "tea"),
        ("timeline",),
        ("show", node),
        ("history", node[-8:]),
    ):
        assert "Anna likes tea" in cli(*verb, "--as-of", "1").out, verb
    assert cli("list", "--as-of", "2", "--json").json["nodes"] == []
    assert cli("list", "--as-of", "#1", "--json").json["nodes"][0]["id"] == node
    assert cli("list", "--as-of", "1999", "--json").json["nodes"] == []
    assert cli("list", "--as-of", "some day", "--json").status == 2


def test_a_time_before_the_first_memory_is_reported(cli: Cli) -> None:
    assert "empty then" not in cli("list", "--as-of", "2026-05-01").err
    remembered(cli, "My boss is Marieke van Dijk", "--at", "2026-02-01")
    for verb in (("list",), ("search", "boss"), ("context", "boss"), ("timeline",)):
        told = cli(*verb, "--as-of", "2020-05-01").err
        assert "The memory was empty then; its first change was recorded on 20" in told, verb
        assert "not available" not in told
    (note,) = cli("search", "boss", "--as-of", "2020-05-01", "--json").json["degraded"]
    assert note.startswith("as_of: the memory was empty then")
    assert "empty then" not in cli("search", "Kia", "--as-of", "1").err


def test_a_timeline_is_grouped_by_day_and_conversation(cli: Cli) -> None:
    cli("add", "We set out", "--at", "2026-02-03T06:00Z", "--session", "hike", "--speaker", "Ann")
    cli("add", "We arrived", "--at", "2026-02-04T18:00Z", "--session", "hike", "--speaker", "Bob")
    remembered(cli, "The hut has no stove", "--about", "the hut")
    lines = [line.rstrip() for line in cli("timeline").out.splitlines()]
    assert lines[0] == "Tuesday, 2026-02-03"
    assert lines[1] == "  conversation hike"
    assert lines[2].startswith("  06:00 ")
    assert lines[2].endswith("Ann: We set out")
    assert lines[3] == "Wednesday, 2026-02-04"
    assert "The hut has no stove (about the hut)" in lines[-1]
    assert [event["content"] for event in cli("timeline", "--limit", "1", "--json").json["events"]] == [
        "The hut has no stove"
    ]
    assert "Nothing is remembered from that time" in cli("timeline", "--after", "2030-01-01").out


def test_explain_shows_where_a_memory_came_from(cli: Cli) -> None:
    node = remembered(cli, "Anna likes tea", "--about", "Anna")
    told = cli("explain", node[-8:]).out
    for part in ("change 1", "remember by me", "Anna", "retention", "then ranks lower"):
        assert part in told
    why = cli("explain", node, "--json").json
    assert (why["made"]["seq"], why["fading"], why["superseded_by"]) == (1, "sinks", [])
    assert cli("explain", "nothing").status == 3


def test_history_shows_each_change_and_its_effect(cli: Cli) -> None:
    node = remembered(cli, "Anna likes tea")
    cli("forget", node, "--reason", "she does not")
    lines = cli("history", node).out.splitlines()
    assert lines[0].split() == ["change", "when", "by", "what", "memory"]
    assert lines[1].startswith("1 ")
    assert "she does not" in lines[2]
    assert "closed: forgotten" in lines[2]
