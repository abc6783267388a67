"""Errors, exit statuses, unusual texts and closed pipes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.interfaces.conftest import RUN, Cli, clean_environment

from ricordo import Memory, Node


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("serch", "x"), 2, "invalid"),
        (("search",), 2, "invalid"),
        (("search", "x", "--nonsense"), 2, "invalid"),
        (("search", "x", "--limit", "many"), 2, "invalid"),
        (("search", "x", "--limit", "0"), 2, "invalid"),
        (("search", "x", "--where", "novalue"), 2, "invalid"),
        (("search", "x", "--type", "nonsense"), 2, "invalid"),
        (("search", "x", "--entity", "nobody"), 3, "not_found"),
        (("remember", ""), 2, "invalid"),
        (("search", " "), 2, "invalid"),
        (("ask", ""), 2, "invalid"),
        (("erase", "--yes"), 2, "invalid"),
        (("remember", "x", "--confidence", "2"), 2, "invalid"),
        (("remember", "x", "--type", "episodic"), 2, "invalid"),
        (("remember", "x", "--expires", "gibberish o'clock"), 2, "invalid"),
        (("list", "--cursor", "x"), 2, "invalid"),
        (("list", "--embedder", "nonsense"), 2, "invalid"),
        (("show", "no-such-id"), 3, "not_found"),
        (("history", "12345678"), 3, "not_found"),
        (("import", "/no/such/file"), 2, "invalid"),
        (("remember", "x", "--store", "/dev/null/x.db"), 7, "store"),
        ((), 2, "invalid"),
    ],
)
def test_an_error_is_one_document_and_an_exit_status(
    cli: Cli, arguments: tuple[str, ...], status: int, code: str
) -> None:
    cli("remember", "something")
    failed = cli(*arguments, "--json")
    assert failed.status == status
    assert failed.json["error"]["code"] == code
    assert set(failed.json["error"]) == {"code", "message", "hint"}
    assert "Traceback" not in failed.err


def test_errors_for_people_go_to_standard_error(cli: Cli) -> None:
    cli("remember", "something")
    failed = cli("show", "no-such-id")
    assert (failed.status, failed.out) == (3, "")
    assert failed.err.startswith("ricordo: there is no memory no-such-id")
    misspelt = cli("remembr", "x")
    assert "Did you mean" in misspelt.err and "'remember'" in misspelt.err


def test_an_id_given_twice_for_different_texts_is_a_conflict(cli: Cli) -> None:
    assert cli("remember", "one", "--id", "a").status == 0
    assert cli("remember", "two", "--id", "a", "--json").json["error"]["code"] == "conflict"


@pytest.mark.parametrize(
    "text", ["👩‍👩‍👧 family", "ёлки-палки", "שלום", "日本語", "[bold]not markup[/bold] :smile:", "-- dashes", "a\tb\nc"]
)
def test_any_text_comes_back_as_it_was(cli: Cli, text: str) -> None:
    kept = cli("remember", "--json", "--", text).json
    assert kept["content"] == text
    shown = cli("list").out
    assert " ".join(text.replace("\n", " ↵ ").split())[:12] in shown


def test_control_characters_are_not_printed(cli: Cli) -> None:
    text = "harmless \x1b[2J\x1b]0;owned\x07 \u202e reversed \x9b31m"
    cli("add", text, "--json", "--speaker", "\x1b[31mAnn")
    for arguments in (("search", "harmless"), ("list",), ("context", "harmless reversed"), ("query", "harmless")):
        printed = cli(*arguments).out
        assert "harmless" in printed
        assert not any(char in printed for char in "\x1b\x07\x9b\u202e")
    assert cli("list", "--json").json["nodes"][0]["content"] == text


def test_nul_partial_characters_and_a_megabyte_are_read_from_standard_input(cli: Cli) -> None:
    assert cli.process("add", "-", "--json", stdin=b"nul\0inside").json["content"] == "nul\0inside"
    assert cli.process("add", "-", "--json", stdin=b"half \xff char").json["content"] == "half \ufffd char"
    long = b"word " * 200_000
    taken = cli.process("add", "-", "--json", stdin=long)
    assert len(taken.json["content"]) >= 999_999
    assert cli.process("add", "-", "--json", stdin=b"").json["error"]["code"] == "invalid"
    assert len(cli.process("list").out) < 2_000


def test_arguments_that_are_not_utf_8_never_end_in_a_traceback(cli: Cli) -> None:
    cli("remember", "something")
    for arguments, status in (
        (("search",), 0),
        (("add",), 2),
        (("remember",), 2),
        (("show",), 3),
        (("end-session",), 2),
    ):
        done = cli.process(*arguments, b"odd \xff\xfe", "--json")
        assert done.status == status
        assert isinstance(done.json, dict)
        assert "Traceback" not in done.err
        assert "Traceback" not in cli.process(*arguments, b"odd \xff\xfe").err


def test_a_terminal_without_unicode_gets_marks_and_json_stays_utf_8(cli: Cli) -> None:
    cli("remember", "ёлки")
    assert "????" in cli.process("list", PYTHONIOENCODING="ascii").out
    assert cli.process("list", "--json", PYTHONIOENCODING="ascii").json["nodes"][0]["content"] == "ёлки"


def test_colour_is_for_terminals_only(cli: Cli) -> None:
    cli("remember", "something")
    assert "\x1b" not in cli.process("search", "something").out
    assert "\x1b" in cli.process("search", "something", FORCE_COLOR="1", TERM="xterm").out


def test_a_closed_output_pipe_is_not_an_error(cli: Cli) -> None:
    cli.fill(400)
    for arguments in (["list", "--limit", "400", "--json"], ["list", "--limit", "400"]):
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**clean_environment(), "RICORDO_STORE": str(cli.store), "RICORDO_EMBEDDER": "hashing"},
        )
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() in (0, 1)


def test_a_full_disk_behind_standard_output_gives_a_one_line_error(cli: Cli) -> None:
    cli("remember", "something")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", RUN, "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**clean_environment(), "RICORDO_STORE": str(cli.store), "RICORDO_EMBEDDER": "none"},
        )
    assert done.returncode == 6
    assert done.stderr.startswith(b"ricordo: the output cannot be written")
    assert b"Traceback" not in done.stderr


def test_what_is_not_stored_says_why(cli: Cli) -> None:
    async def told_again() -> Node:
        async with Memory.open(cli.store, embedder="hashing") as memory:
            await memory.erase(id=(await memory.remember("Ben collects stamps")).id)
            return await memory.remember("Ben collects stamps", origin="import")

    cli("off-record")
    told = cli("remember", "Anna collects stamps").out
    assert "off the record" in told and "erased" not in told
    cli("on-record")
    again = asyncio.run(told_again())
    assert (again.id, again.notice) == ("", "forgotten or erased before")
    assert all(name in cli("erase").err for name in ("--document", "--everything"))


def test_progress_is_told_without_a_terminal_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ricordo.interfaces.cli.terminal._PRINTED_S", 0.0)
    notes = cli.folder / "notes"
    notes.mkdir()
    for number in range(3):
        (notes / f"{number}.md").write_text(f"Note {number} is about tea.\n")
    assert "Reading: 2 of 3" in cli("watch", str(notes), "--once").err
    assert "Reading: " in cli("import", str(notes), "--store", str(cli.folder / "other.db")).err


def started(cli: Cli, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**clean_environment(), "RICORDO_STORE": str(cli.store), "RICORDO_EMBEDDER": "hashing"},
        # A shell ignores SIGINT for background jobs, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_watched_folder_is_followed_until_it_is_interrupted(cli: Cli) -> None:
    notes = cli.folder / "notes"
    notes.mkdir()
    (notes / "dogs.md").write_text("Dogs may come on Fridays.\n")
    process = started(cli, "watch", str(notes))
    try:
        assert wait_for_hit(cli, "dogs", "Fridays")
        (notes / "dogs.md").write_text("Dogs may come on Mondays.\n")
        assert wait_for_hit(cli, "dogs", "Mondays")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (0, 130)
    assert b"changed" in err and b"Traceback" not in err
    assert cli("doctor").status == 0


def wait_for_hit(cli: Cli, question: str, text: str) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if cli.store.exists() and text in cli("search", question, "--json").out:
            return True
        time.sleep(0.2)
    return False


@pytest.mark.slow
def test_an_interrupted_import_can_be_resumed(cli: Cli) -> None:
    path = cli.folder / "long.jsonl"
    with path.open("w") as file:
        for number in range(10_000):
            file.write(json.dumps({"text": f"turn {number} " + "word " * 30, "session": f"s{number // 100}"}) + "\n")
    process = started(cli, "import", str(path))
    log = cli.store.with_name("memory.db-wal")  # an empty store is half a megabyte
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and log.stat().st_size > 1_500_000):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"of 10,000 records were stored; run the same command again" in err
    assert b"Traceback" not in err
    doctor = cli("doctor")
    assert doctor.status == 0, doctor.out
    before = sum(cli("stats", "--json").json["nodes"].values())
    assert before > 0
    again = cli("import", str(path), "--json", embedder="none").json
    assert (again["known"], again["known"] + again["added"]) == (before, 10_000)


def test_an_internal_error_is_reported_also_as_json(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("deliberate")

    monkeypatch.setattr("ricordo.memory.Memory.search", broken)
    failed = cli("search", "x", "--json")
    assert (failed.status, failed.json["error"]["code"]) == (1, "error")
    assert "Traceback" in failed.err


def test_the_environment_is_not_changed(cli: Cli) -> None:
    before = dict(os.environ)
    cli("stats")
    assert dict(os.environ) == before
