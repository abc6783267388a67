"""The help and the reference pages match the golden files."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from tests.interfaces.conftest import Cli

from ricordo import Memory
from ricordo.interfaces.cli.app import program
from ricordo.interfaces.cli.options import FUNCTIONS

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/cli_help.txt"


def test_the_help_is_the_golden_one_and_ricordo_alone_shows_it(cli: Cli) -> None:
    """After an intended change: COLUMNS=80 ricordo --help > tests/golden/cli_help.txt"""
    assert cli.help("--help") == cli.help() == GOLDEN.read_text(encoding="utf-8")


def test_every_verb_explains_itself(cli: Cli) -> None:
    verbs = list(program().list_commands(click.Context(program())))
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


TEXTS = tomllib.loads((files("ricordo.interfaces.cli") / "commands.toml").read_text(encoding="utf-8"))


def test_commands_toml_describes_every_verb_and_nothing_else() -> None:
    verbs = [verb for panel in TEXTS["panels"].values() for verb in panel]
    assert set(TEXTS) == {"panels", "guesses", "common", "shared", *verbs}
    assert list(program().list_commands(click.Context(program()))) == verbs
    assert set(TEXTS["shared"]) <= {name for verb in verbs for name in TEXTS[verb].get("takes", ())}
    described = {
        verb: {name for name, each in TEXTS[verb].items() if isinstance(each, dict) and "help" in each}
        for verb in verbs
    }
    assert {verb: names for verb, names in described.items() if names - set(TEXTS[verb].get("takes", ()))} == {}


def test_a_verb_without_a_function_calls_a_method_with_parameters_that_it_has() -> None:
    methods = {}
    for verb in (verb for panel in TEXTS["panels"].values() for verb in panel if verb not in FUNCTIONS):
        method = getattr(Memory, TEXTS[verb].get("calls", verb.replace("-", "_")))
        words = {
            name: {**_table(TEXTS["shared"], name), **_table(TEXTS[verb], name)}
            for name in TEXTS[verb].get("takes", ())
        }
        given = {each.get("to", name) for name, each in words.items()} | set(TEXTS[verb].get("fixed", ()))
        methods[verb] = given - set(inspect.signature(method).parameters)
    assert len(methods) > 20
    assert {verb: unknown for verb, unknown in methods.items() if unknown} == {}


def _table(verb: dict[str, Any], name: str) -> dict[str, Any]:
    return verb[name] if isinstance(verb.get(name), dict) else {}
