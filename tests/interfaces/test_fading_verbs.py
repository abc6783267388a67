"""The commands for fading and upkeep, with text and JSON output."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from tests.interfaces.conftest import Cli


def remembered(cli: Cli, *arguments: str) -> str:
    return str(cli("remember", *arguments, "--json").json["id"])


def expired(cli: Cli, text: str) -> str:
    """Store a fact that has just expired; give a busy machine more time to store it before."""
    for seconds in (2, 10, 60):
        soon = datetime.now(UTC) + timedelta(seconds=seconds)
        stored = cli("remember", text, "--expires", soon.isoformat(), "--json")
        if stored.status == 0:
            break
    time.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.01)
    return str(stored.json["id"])


def test_the_weak_list_shows_how_much_is_left_and_why_it_is_weak(cli: Cli) -> None:
    assert "Nothing is weak" in cli("weak").out
    node = remembered(cli, "Kim may move to Riga", "--confidence", "0.3")
    remembered(cli, "Kim likes tea")
    told = cli("weak").out
    assert "███░░░░░░░  30%  Kim may move to Riga" in told
    assert "only 30% sure, ranks lower" in told
    (weak,) = cli("weak", "--json").json["weak"]
    assert (weak["node"]["id"], weak["fading"], weak["leaves_at"]) == (node, "sinks", None)
    cli("confirm", node)
    assert cli("weak", "--json").json["weak"] == []
    assert cli("weak", "--limit", "0").status == 2


def test_expired_memories_are_archived_and_restored(cli: Cli) -> None:
    node = expired(cli, "The permit is in the glove box")
    remembered(cli, "Kim likes tea")
    dry = cli("gc", "--dry-run")
    assert "1 expired: would be archived. 1 memory remains." in dry.out
    assert cli("show", node, "--json").json["closed_at"] is None
    done = cli("gc", "--json").json
    assert (done["archived"], done["live"], len(done["runs"])) == ({"expired": 1}, 1, 1)
    assert done["items"][0]["why"].startswith("it was to be kept until 20")
    assert "Nothing to archive" in cli("gc").out
    listed = cli("archive").out
    assert "expired" in listed
    assert "In all: 1 expired" in listed
    assert [each["id"] for each in cli("archive", "glove box", "--json").json["nodes"]] == [node]
    assert cli("archive", "--reason", "forgotten", "--json").json == {"nodes": [], "counts": {"expired": 1}}
    assert cli("archive", "--reason", "lost").status == 2
    assert "Restored" in cli("restore", node).out
    assert "Nothing in the archive matches" in cli("archive", "glove box").out
    assert cli("undo", done["runs"][0]).status == 4  # restoring built on it


def test_maintain_reports_each_step(cli: Cli) -> None:
    expired(cli, "The permit is in the glove box")
    (cli.folder / "ricordo.toml").write_text("max_size = 40\n", encoding="utf-8")
    remembered(cli, "Kim likes tea")
    kept = remembered(cli, "Kim likes strong coffee in the morning")
    cli("reinforce", kept)
    assert "would do: 1 expired" in cli("maintain", "--dry-run").out
    told = cli("maintain").out.splitlines()
    assert told[0].split()[:3] == ["ok", "sessions", "nothing"]
    assert told[1].split() == ["ok", "gc", "1", "expired;", "2", "live"]
    assert told[2].split() == ["ok", "prune", "1", "pruned;", "1", "live"]
    again = cli("maintain", "--json").json
    assert (again["ok"], [step["detail"] for step in again["steps"][1:]]) == (True, ["nothing to do"] * 7)
    assert [node["id"] for node in cli("list", "--json").json["nodes"]] == [kept]
    assert "2020" not in cli("prune", "--all-owners").out


def test_upkeep_of_a_missing_store_fails(cli: Cli) -> None:
    assert [cli(verb).status for verb in ("gc", "prune", "maintain")] == [3, 3, 3]
    assert [cli(verb).status for verb in ("weak", "archive")] == [0, 0]


def test_the_expiry_is_shown_when_a_memory_is_made_and_shown(cli: Cli) -> None:
    told = cli("remember", "I'm waiting for the plumber").out
    because = "temporary by its text, kept for 30 days; `--expires never` keeps it"
    assert re.search(rf"^Expires [\d :-]+ \({because}\)\.$", told, re.M)
    told = cli("remember", "Dentist on 3 December at 14:00", "--at", "2090-11-20").out
    assert "Expires 2091-01-03 00:00 (kept for 30 days after 2090-12-03, which its text names; " in told
    assert "Expires" not in cli("remember", "Call the plumber", "--category", "task").out
    assert "(expires 20" in cli("list").out
    node = cli("list", "--json").json["nodes"][-1]["id"]
    assert cli("update", node, "--expires", "never", "--json").json["expires_at"] is None
    assert cli("update", node, "--expires", "2020-01-01").status == 2
    assert "Expires" not in cli("remember", "Kim likes tea").out
    assert "Expires 20" in cli("remember", "The lift is broken", "--expires", "for 2 weeks").out
    assert re.search(r"^Expires [\d :-]+\.$", cli("remember", "Запомни до пятницы: ключ у Ани").out, re.M)
    assert cli("remember", "The lift works", "--expires", "last week").status == 2
    stated = cli("remember", "The ticket is in the drawer", "--expires", "2090-01-01")
    node = cli("list", "--limit", "1", "--json").json["nodes"][0]["id"]
    assert "Expires 2090-01-01 00:00." in stated.out
    card = cli("show", node).out
    assert "retention   100%" in card
    assert "expires     2090-01-01 00:00" in card
    assert "retention" not in cli("show", cli("add", "hello", "--json").json["id"]).out
