"""Run the command line in tests: in this process if possible, otherwise in a separate one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.crash.forking import run_command

from ricordo.interfaces.cli.app import main

RUN = "import sys; from ricordo.interfaces.cli import run; sys.exit(run())"
"""The console script as an argument of `python -c`."""


ROUTED_BY_OTHER_VERBS = {
    "context_parts": "context",
    "brief_parts": "brief",
    "drop_question": "question-drop",
    "keep_question": "question-keep",
    "question": "questions",
    "renew_questions": "question-renew",
    "create_space": "space-create",
    "set_member": "space-member",
    "remove_member": "space-leave",
    "add_many": "import",
    "remember_many": "remember",
    "add_document": "document-add",
    "remove_document": "document-remove",
    "add_entity": "entity-add",
    "update_entity": "entity-update",
    "get": "show",
    "accept": "run",
    "resolve_many": "quarantine",
    "staged": "quarantine",
    "approve": "quarantine",
    "refuse": "quarantine",
    "receipt": "receipts",
    "replay_receipt": "receipts",
}
"""Methods without a verb of the same name, and the verb for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a command: its exit status and both streams."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the only document on standard output; any other output fails."""
        return json.loads(self.out)


class Cli:
    """The command line with its own store."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.store = folder / "memory.db"
        self.folder = folder
        self._capture = capture

    def __call__(self, *arguments: str, embedder: str = "hashing") -> Outcome:
        """Run in this process."""
        self._capture.readouterr()
        status = main(["--store", str(self.store), "--embedder", embedder, *arguments])
        out, err = self._capture.readouterr()
        return Outcome(status=status, out=out, err=err)

    def process(
        self, *arguments: str | bytes, stdin: bytes = b"", embedder: str | None = "hashing", **environment: str
    ) -> Outcome:
        """Run in a separate process, with warnings as errors."""
        known = {
            "RICORDO_STORE": str(self.store),
            **({"RICORDO_EMBEDDER": embedder} if embedder else {}),
            **environment,
        }
        done = run_command(*arguments, stdin=stdin, environment={**clean_environment(), **known})
        return Outcome(status=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    def help(self, *options: str) -> str:
        """Return the help of `ricordo`, 80 columns wide."""
        environment = {**clean_environment(), "COLUMNS": "80"}
        command = [sys.executable, "-c", RUN, *options]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    def fill(self, count: int) -> Path:
        """Import an invented conversation with a number of turns; return its file."""
        path = self.folder / "chat.jsonl"
        turns = [
            {
                "speaker": ("Ann", "Bob")[number % 2],
                "text": f"turn number {number} about topic{number % 7}",
                "time": f"2026-01-{1 + number % 28:02}T10:00:00Z",
                "session": f"s{number // 10}",
            }
            for number in range(count)
        ]
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns), encoding="utf-8")
        assert self("import", str(path)).status == 0
        return path


def clean_environment() -> dict[str, str]:
    """Return our environment without variables that affect the command line."""
    unwanted = ("RICORDO_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "COLUMNS": "100"}


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in [name for name in os.environ if name not in clean_environment()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    return Cli(tmp_path, capsys)
