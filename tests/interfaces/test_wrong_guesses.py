"""What a newcomer types wrongly, and what the program then says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crash.forking import run_command
from tests.interfaces.conftest import Outcome


def ricordo(*words: str, cwd: Path) -> Outcome:
    environment = {**os.environ, "RICORDO_EMBEDDER": "none", "XDG_DATA_HOME": str(cwd / "data")}
    done = run_command(*words, environment=environment, cwd=cwd)
    return Outcome(status=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("delete", "forget"),
        ("rm", "erase"),
        ("find", "search"),
        ("get", "show"),
        ("edit", "correct"),
        ("info", "stats"),
        ("why", "explain"),
        ("answer", "ask"),
        ("new", "remember"),
        ("decide", "resolve"),
    ],
)
def test_a_command_of_another_program_names_the_one_to_use(tmp_path: Path, typed: str, meant: str) -> None:
    done = ricordo(typed, "x", cwd=tmp_path)
    assert done.status == 2
    assert f"`{meant}`" in done.err


def test_every_guess_names_a_command_that_exists_and_is_none_itself() -> None:
    from ricordo.interfaces.cli.options import _VERBS, _panels

    verbs = set(_panels())
    for guess, meant in _VERBS["guesses"].items():
        assert guess not in verbs
        named = {word.split()[0] for word in meant.split("`")[1::2]}
        assert named <= verbs | {"--version"}, guess


def test_an_unknown_option_is_not_taken_for_one_that_is_like_it_only_in_its_dashes(tmp_path: Path) -> None:
    assert "--after" not in ricordo("search", "--speaker", "Ann", "bike", cwd=tmp_path).err
    assert "--limit" in ricordo("search", "--limt", "3", "bike", cwd=tmp_path).err


def test_words_without_quotes_are_told_to_be_quoted(tmp_path: Path) -> None:
    done = ricordo("remember", "I", "like", "trains", cwd=tmp_path)
    assert done.status == 2
    assert "quotes" in done.err


@pytest.mark.parametrize("typed", ["list", "list --json", "search tea", "--help", "search --help"])
def test_a_reader_that_is_gone_is_no_error(tmp_path: Path, typed: str) -> None:
    assert ricordo("remember", "Anna likes tea", cwd=tmp_path).status == 0
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "RICORDO_EMBEDDER": "none", "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [sys.executable, "-m", "ricordo", *typed.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_question_needs_no_quotes(tmp_path: Path) -> None:
    assert ricordo("remember", "My rent is 900", cwd=tmp_path).status == 0
    for typed in ("search", "query", "ask", "context"):
        done = ricordo(typed, "what", "is", "my rent", cwd=tmp_path)
        assert (done.status, "My rent is 900" in done.out) == (0, True), done
    assert ricordo("search", "what", "is", "--limit", "3", "my", "rent", cwd=tmp_path).status == 0
    assert ricordo("search", cwd=tmp_path).status == 2


def test_a_decision_of_two_words_needs_no_quotes(tmp_path: Path) -> None:
    for told in ("Tom works as a waiter", "Tom works as a singer"):
        assert ricordo("remember", told, cwd=tmp_path).status == 0
    item = json.loads(ricordo("review", "--json", cwd=tmp_path).out)["reviews"][0]["id"]
    assert ricordo("resolve", item, "keep", "neither", cwd=tmp_path).status == 2
    assert ricordo("resolve", item, "keep", "both", cwd=tmp_path).status == 0
    listed = ricordo("list", cwd=tmp_path).out
    assert "waiter" in listed and "singer" in listed


@pytest.mark.parametrize("verb", ["review", "receipts", "sessions", "documents", "runs", "log", "list", "search tea"])
def test_a_limit_of_nothing_is_refused_in_the_same_words_everywhere(tmp_path: Path, verb: str) -> None:
    done = ricordo(*verb.split(), "--limit", "0", cwd=tmp_path)
    assert done.status == 2
    assert "limit: 0 is not a whole number from 1 to 1,000" in done.err


def test_a_task_may_be_typed_as_in_notes(tmp_path: Path) -> None:
    for boxed, ending in (("[ ]", "open"), ("[x]", "done"), ("[-]", "cancelled")):
        done = ricordo("remember", f"- {boxed} pay the {ending} bill", "--tag", "home", cwd=tmp_path)
        assert (done.status, "task" in done.out) == (0, True), done
    listed = ricordo("list", cwd=tmp_path).out
    assert "[" not in listed
    for ending in ("open", "done", "cancelled"):
        assert f"task, {ending}" in listed and f"pay the {ending} bill" in listed


def test_the_present_folder_can_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    assert ricordo("--store", ".", "remember", "Anna likes tea", cwd=tmp_path / "memories").status == 0
    assert "Anna likes tea" in ricordo("--store", "memories", "list", cwd=tmp_path).out


def test_the_root_of_the_file_system_is_refused_without_a_traceback(tmp_path: Path) -> None:
    done = ricordo("--store", "/", "list", cwd=tmp_path)
    assert done.status == 2
    assert "cannot be a store" in done.err
    assert "Traceback" not in done.err


def test_a_dash_for_standard_input_or_output_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    assert ricordo("remember", "Anna likes tea", cwd=tmp_path).status == 0
    before = sorted(tmp_path.iterdir())
    verbs = ("export", "backup", "migrate", "import", "document-add", "watch", "sync", "restore-backup")
    for typed in [*((verb, "-") for verb in verbs), ("--store", "-", "remember", "Bob likes tea")]:
        done = ricordo(*typed, cwd=tmp_path)
        assert (done.status, "standard input or output" in done.err) == (2, True), typed
    assert sorted(tmp_path.iterdir()) == before
    assert ricordo("export", "./-", cwd=tmp_path).status == 0
