"""The commands that change knowledge, with text and JSON output."""

from __future__ import annotations

from pathlib import Path

from tests.interfaces.conftest import Cli
from tests.interfaces.test_mcp import connected


def remembered(cli: Cli, *arguments: str) -> str:
    return str(cli("remember", *arguments, "--json").json["id"])


def test_a_correction_replaces_the_old_fact(cli: Cli) -> None:
    old = remembered(cli, "The train leaves at nine", "--tag", "travel")
    said = str(cli("add", "no, at ten", "--json").json["id"])
    new = cli("correct", old[-8:], "The train leaves at ten", "--evidence", said, "--json").json
    assert (new["content"], new["tags"], new["origin"]) == ("The train leaves at ten", ["travel"], "cli")
    found = [hit["id"] for hit in cli("search", "train", "--type", "semantic", "--json").json["hits"]]
    assert found == [new["id"]]
    versions = cli("history", new["id"], "--json").json["versions"]
    assert [version["content"] for version in versions][-1] == "The train leaves at ten"
    assert versions[0]["node"]["id"] == old
    again = cli("correct", old, "The train leaves at noon", "--json")
    assert (again.status, new["id"] in again.json["error"]["hint"]) == (4, True)
    assert "Corrected: The train leaves at noon" in cli("correct", new["id"], "The train leaves at noon").out


def test_an_update_changes_only_the_given_fields(cli: Cli) -> None:
    node = remembered(cli, "The dentist is Dr Alber", "--tag", "health")
    piped = cli.process("update", node, "--content", "-", "--json", stdin=b"The dentist is Dr Albers\n").json
    assert (piped["id"], piped["content"], piped["tags"]) == (node, "The dentist is Dr Albers", ["health"])
    assert cli("update", node, "--tag", "", "--json").json["tags"] == []
    assert cli("update", node, "--attributes", '{"task_id": 7}', "--json").json["attributes"] == {"task_id": 7}
    assert cli("update", node, "--attributes", "{", "--json").status == 2
    assert cli("update", node).status == 2


def test_a_wrong_date_is_corrected(cli: Cli) -> None:
    node = remembered(cli, "Tom moved in", "--at", "2026-11-20")
    assert cli("update", node, "--at", "20-11-2025", "--json").json["event_time"].startswith("2025-11-")
    assert "event time: 2026-11-" in cli("history", node).out
    assert cli("update", node, "--at", "some day").status == 2


def test_confirm_reinforce_and_demote_report_the_result(cli: Cli) -> None:
    node = remembered(cli, "Kim is allergic to peanuts", "--confidence", "0.5")
    sure = cli("confirm", node, "--json").json
    assert (sure["confidence"], sure["decay_rate"]) == (1.0, 0.0)
    assert cli("reinforce", node, "--json").json["score"] == 3.0
    assert cli("demote", node).out.startswith("Score +2: Kim is allergic")
    card = cli("show", node).out
    assert "100%, does not fade" in card
    assert "+2" in card
    (cli.folder / "ricordo.toml").write_text("reinforce_amount = 5\n", encoding="utf-8")
    assert cli("reinforce", node, "--json").json["score"] == 7.0


def test_doubtful_pairs_are_listed_and_decided(cli: Cli) -> None:
    assert cli("review").out.strip() == "Nothing to decide."
    remembered(cli, "Tom works as a waiter")
    remembered(cli, "Tom works as a singer")
    shown = cli("review").out
    assert "may conflict" in shown
    assert shown.index("singer") < shown.index("waiter")
    (item,) = cli("review", "--json").json["reviews"]
    assert (item["kind"], item["older"]["content"]) == ("conflict", "Tom works as a waiter")
    assert cli("resolve", item["id"], "perhaps", "--json").status == 2
    told = cli("resolve", item["id"][-8:], "keep old").out.splitlines()
    assert told == ["Kept: Tom works as a waiter", "Closed: Tom works as a singer", "`ricordo undo 3` reverses this."]
    assert cli("resolve", item["id"], "replace").status == 4
    assert cli("resolve", "nothing", "replace").status == 3
    assert [node["content"] for node in cli("list", "--json").json["nodes"]] == ["Tom works as a waiter"]


def test_a_decision_says_that_a_compound_statement_is_closed_as_a_whole(cli: Cli) -> None:
    old = remembered(cli, "Annelies lives in Groningen and is a vet")
    remembered(cli, "Annelies is moving to Leiden for a job at the zoo")
    (item,) = cli("review", "--json").json["reviews"]
    told = cli("resolve", item["id"], "replace").out
    assert "Closed: Annelies lives in Groningen and is a vet\nIt is closed as a whole" in told
    assert cli("undo", "3").status == 0
    assert cli("show", old, "--json").json["closed_at"] is None
    decided = cli("resolve", item["id"], "replace", "--json").json
    assert (decided["commit"], decided["older"]["closed_reason"]) == (5, "superseded")


def test_remember_reports_what_it_replaces_and_can_be_undone(cli: Cli) -> None:
    old = remembered(cli, "Anna lives in Paris")
    assert "It replaces: Anna lives in Paris" in cli("remember", "Anna lives in Rome").out
    (item,) = cli("review", "--json").json["reviews"]
    assert cli("resolve", item["id"], "keep both", "--json").json["decision"] == "keep both"
    assert cli("show", old, "--json").json["closed_reason"] is None


def test_a_known_fact_is_reported_as_known(cli: Cli) -> None:
    first = remembered(cli, "Anna likes tea")
    again = cli("remember", "anna likes tea!")
    assert "Already known: Anna likes tea" in again.out
    assert "credential" not in again.err
    assert [node["id"] for node in cli("list", "--json").json["nodes"]] == [first]


async def test_an_agent_reads_what_a_decision_closed_and_how_to_undo_it(tmp_path: Path) -> None:
    async with connected(tmp_path / "me.db", profile="full") as client:
        for text in ("Annelies lives in Groningen and is a vet", "Annelies is moving to Leiden for a job"):
            await client.call_tool("remember_one", {"content": text})
        (review,) = (await client.call_tool("list_reviews", {})).structured_content["result"]
        done = await client.call_tool("resolve_review", {"item": review["id"], "decision": "replace"})
        text = done.content[0].text
        assert "replace; to undo it: the tool undo_change of the profile full, or the user's `ricordo undo 3`" in text
        assert "is a vet" in text and "closed (superseded)" in text and "closed as a whole" in text


def test_a_fact_stated_again_with_another_day_names_the_day_it_is_known_with(cli: Cli) -> None:
    id = remembered(cli, "Anna likes tea", "--at", "2025-02-01")
    again = cli("remember", "Anna likes tea", "--at", "2026-01-15")
    assert "Already known" in again.out
    assert (
        f"It is known with the date 2025-02-01, which stays: `ricordo update {id[-8:]} --at` changes it." in again.err
    )
    assert "known with" not in cli("remember", "Anna likes tea").err
    assert "known with" not in cli("remember", "Anna likes tea", "--at", "2025-02-01").err
