"""First commands of a new user, each a separate process, with the built-in embedder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli


def test_the_first_memory_is_found_by_its_meaning_by_the_very_next_process(cli: Cli) -> None:
    store = cli.folder / "not" / "there" / "yet.db"
    kept = cli.process("--store", str(store), "remember", "I'm allergic to peanuts", embedder=None)
    assert (kept.status, kept.err) == (0, "")
    assert "I'm allergic to peanuts" in kept.out
    found = cli.process("search", "what should I avoid eating?", "--store", str(store), embedder=None)
    assert (found.status, found.err) == (0, "")
    assert "I'm allergic to peanuts" in found.out
    assert "just now" in found.out
    assert "100% sure" in found.out
    assert "by meaning" in found.out


def test_a_command_waits_until_its_memory_is_embedded(cli: Cli) -> None:
    cli("remember", "tea at five")
    cli("add", "and biscuits")
    cli.fill(200)
    figures = cli("stats", "--json", embedder="none").json  # without an embedder, nothing more is embedded here
    assert (figures["embedded"], figures["embedding_missing"]) == (202, 0)


def test_a_question_is_not_remembered_as_a_fact(cli: Cli) -> None:
    refused = cli("remember", "Where did I park?")
    assert refused.status == 2
    assert "content: a question states no fact" in refused.err
    assert "search" in refused.err
    assert cli("remember", "I asked where I parked").status == 0


def test_a_wish_to_forget_is_not_remembered_as_a_fact(cli: Cli) -> None:
    refused = cli("remember", "forget what I told you about the cat")
    assert (refused.status, "content: it asks to forget something" in refused.err) == (2, True)
    assert cli("list", "--json").json["nodes"] == []


def test_the_default_store_is_created_on_first_use(cli: Cli) -> None:
    there = {"RICORDO_STORE": "", "XDG_DATA_HOME": str(cli.folder / "data"), "HOME": str(cli.folder)}
    assert cli.process("remember", "tea at five", **there).status == 0
    assert "tea at five" in cli.process("list", **there).out
    assert any((cli.folder).rglob("memory.db"))


def test_a_trailing_slash_means_a_folder_everywhere(cli: Cli) -> None:
    assert cli.process("remember", "tea at five", RICORDO_STORE=f"{cli.folder}/notes/").status == 0
    assert "tea at five" in (cli.folder / "notes" / "memories.jsonl").read_text("utf-8")
    plan = cli("--store", f"{cli.folder}/more/", "mcp", "install", "--client", "cursor", "--dry-run", "--json").json
    assert f"{cli.folder}/more/" in plan["entry"]


def test_help_and_version_do_not_import_numpy(cli: Cli) -> None:
    code = (
        "import sys; sys.argv = ['ricordo', sys.argv[1]]; from ricordo.interfaces.cli import run; status = run();"
        "sys.stderr.write(' '.join(sys.modules)); sys.exit(status)"
    )
    for option in ("--help", "--version"):
        done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
        assert "ricordo.interfaces.cli.app" in done.stderr
        assert "numpy" not in done.stderr.split()
        assert "ricordo" in done.stdout


def test_an_empty_result_has_a_clear_message(cli: Cli) -> None:
    cli("remember", "the sky is blue", embedder="none")
    nothing = cli("search", "zebra crossing", embedder="none")
    assert nothing.status == 0
    assert nothing.out.strip() == "Nothing in the memory answers “zebra crossing”."


def test_reading_a_missing_store_creates_none(cli: Cli) -> None:
    for arguments in (("search", "x"), ("list",), ("stats",), ("log",), ("context", "x"), ("query", "x")):
        looked = cli(*arguments, "--json")
        assert looked.status == 0
        assert isinstance(looked.json, dict)
        assert "There is no memory at" in looked.err
    assert not cli.store.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "nowhere.jsonl"),
        ("import", "nowhere", "--format", "claude-code"),
        ("document-add", "nowhere.pdf"),
        ("watch", "nowhere"),
    ],
    ids=" ".join,
)
def test_a_misspelt_path_creates_no_store(cli: Cli, arguments: tuple[str, ...]) -> None:
    refused = cli(*arguments)
    assert (refused.status, "nowhere" in refused.err) == (2, True)
    assert "No such file" in refused.err
    assert not cli.store.exists()


def test_a_list_of_tasks_shows_which_are_done(cli: Cli) -> None:
    cli("remember", "Pay the mooring", "--category", "task", embedder="none")
    done = cli("remember", "Buy paint", "--category", "task", "--json", embedder="none").json
    cli("update", done["id"], "--attributes", '{"done": true}', embedder="none")
    lines = cli("list", "--category", "task", embedder="none").out.splitlines()
    assert [line.split("  ")[2].strip() for line in lines[1:]] == ["task, done", "task, open"]
    still = cli("list", "--category", "task", "--where", '{"not": {"done": true}}', embedder="none").out
    assert "mooring" in still and "paint" not in still


def test_a_vault_that_was_imported_and_is_watched_is_reported_in_a_line(cli: Cli, tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    for number in range(5):
        (vault / f"{number}.md").write_text(f"- Note {number} is about boats\n", encoding="utf-8")
    cli("import", str(vault), embedder="none")
    watched = cli("watch", str(vault), "--once", embedder="none")
    assert (watched.status, watched.out.count("refused")) == (0, 1)
    assert "5 files: not stored twice" in watched.out and "still being written" not in watched.out


def test_a_trace_adds_up_and_says_what_was_looked_up(cli: Cli) -> None:
    cli("remember", "Anna drinks green tea")
    cli("remember", "Bob drinks coffee")
    traced = cli("search", "what does Anna drink?", "--trace", "--json").json
    assert traced["trace"]["terms"] == ["anna", "drink"]
    assert set(traced["trace"]["timings_ms"]) >= {"embedding", "words", "meaning", "ranking"}
    for hit in traced["hits"]:
        assert abs(sum(share["share"] for share in hit["why"]) - hit["score"]) < 1e-6
    shown = cli("search", "what does Anna drink?", "--trace").out
    for part in ("words looked up  anna, drink", "words ignored    what", "candidates", "took", "score"):
        assert part in shown
    assert "by the words “Anna”, “drinks”" in shown


def test_a_trace_shows_a_sum_for_each_hit_and_says_what_its_parts_are(cli: Cli) -> None:
    cli("remember", "Anna drinks green tea", "--confidence", "0.5")
    lines = cli("search", "what does Anna drink?", "--trace").out.splitlines()
    begins = next(n for n, line in enumerate(lines) if line.split()[:1] == ["1"] and "0." in line)
    score = float(lines[begins].split()[1])
    parts = [line.split() for line in lines[begins + 2 :] if re.match(r" *[+-]\d\.\d{3} ", line)]
    assert abs(sum(float(part[0]) for part in parts) - score) <= 0.0005 * (len(parts) + 1)
    assert parts[-1][1:] == ["confidence", "x", "0.500"]
    explained = {line.split("  ")[0] for line in lines if re.match(r"[a-z]", line)}
    assert {"words in context", "keywords", "confidence"} <= explained


def test_why_not_compares_with_the_last_hit_or_names_the_step(cli: Cli) -> None:
    tea, garden = (cli("remember", text, "--json").json["id"] for text in ("Anna drinks green tea", "A garden"))
    beside = cli("search", "what does Anna drink?", "--limit", "1", "--why-not", garden).out
    why_not = beside.split("Why not")[1]
    assert "Ranked below: 2 of 2 candidates" in why_not
    assert re.search(r"this one +hit 1 +signal +what it measures", why_not)
    assert re.search(r"words +how well it alone matches them", why_not)
    assert "It was found: 1 of" in cli("search", "what does Anna drink?", "--why-not", tea).out
    cli("forget", tea)
    closed = cli("search", "what does Anna drink?", "--why-not", tea).out
    assert "Left out: it is closed (forgotten); --archived searches closed memories" in closed


def test_the_demo_counts_honestly(cli: Cli) -> None:
    told = cli("demo", "--json", embedder="none").json
    assert (told["turns"], told["asked"], len(told["questions"])) == (251, 11, 12)
    right = 0
    for question in told["questions"]:
        within = [any(part in hit["content"] for part in question["expected"]) for hit in question["hits"]]
        first = within.index(True) + 1 if any(within) else None
        assert question["place"] == first if first else (question["place"] or 4) > 3
        right += any(within)
    assert told["answered"] == right


def test_the_demo_shows_what_it_counts_and_fails_when_little_is_found(cli: Cli) -> None:
    shown = cli("demo", embedder="none")
    assert shown.status == (0 if "✓" in shown.out and int(shown.out.split(" of 11")[0].split()[-1]) >= 9 else 1)
    assert "Which football club do we support?" in shown.out
    assert "nothing was ever said about this" in shown.out


def test_settings_come_from_a_file_beside_the_store(cli: Cli) -> None:
    (cli.folder / "ricordo.toml").write_text('time_zone = "Asia/Tokyo"\n')
    cli("add", "hello", "--at", "2026-01-01T20:00:00Z")
    assert "2026-01-02 05:00" in cli("list").out
    assert json.loads(cli("list", "--json").out)["nodes"][0]["event_time"] == "2026-01-01T20:00:00Z"
    (cli.folder / "other.toml").write_text("time_zone = 'Mars/Olympus'\n")
    wrong = cli("list", "--config", str(cli.folder / "other.toml"))
    assert (wrong.status, "Mars/Olympus" in wrong.err) == (2, True)
    assert cli("list", "--config", str(cli.folder / "missing.toml")).status == 2


def test_a_document_is_removed_and_not_forgotten(cli: Cli) -> None:
    path = cli.store.with_name("house rules.md")
    path.write_text("# Pets\n\nDogs may come on Fridays.\n", encoding="utf-8")
    cli("document-add", str(path))
    assert "document-remove" in cli("forget", path.name).err
    assert cli("document-remove", path.name).status == 0
    assert "no memory" in cli("forget", path.name).err
