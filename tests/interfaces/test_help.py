"""The help and the reference pages match the golden files."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

from tests.interfaces.conftest import Cli
from typer.main import get_command

from ricordo.interfaces.cli.app import app

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/cli_help.txt"


def test_the_help_is_the_golden_one_and_ricordo_alone_shows_it(cli: Cli) -> None:
    """After an intended change: COLUMNS=80 ricordo --help > tests/golden/cli_help.txt"""
    assert cli.help("--help") == cli.help() == GOLDEN.read_text(encoding="utf-8")


def test_every_verb_explains_itself(cli: Cli) -> None:
    verbs = list(get_command(app).commands)  # type: ignore[attr-defined]
    assert {"remember", "search", "import", "demo"} < set(verbs)
    for verb in verbs:
        shown = cli(verb, "--help").out
        assert f"Usage: ricordo {verb}" in shown
        assert "--json" in shown


def test_the_reference_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/generate_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_commands_toml_describes_exactly_the_verbs_and_parameters_that_exist() -> None:
    texts = tomllib.loads((files("ricordo.interfaces.cli") / "commands.toml").read_text(encoding="utf-8"))
    verbs = {name: {each.name for each in verb.params} for name, verb in get_command(app).commands.items()}  # type: ignore[attr-defined]
    assert {verb for panel in texts.pop("panels").values() for verb in panel} == set(verbs)
    assert set(texts.pop("common")) <= set.intersection(*verbs.values())
    shared = texts.pop("shared")
    assert set(shared) <= set.union(*verbs.values())
    assert {verb: set(own) - verbs[verb] for verb, own in texts.items() if set(own) - verbs[verb]} == {}
