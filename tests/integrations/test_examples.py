"""The programs in examples/ and in the documentation run with their libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import PROGRAMS, is_installed, libraries_of, run_as_documented

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {
    "langgraph_store": "langgraph",
    "pydantic_ai_agent": "pydantic_ai",
    "openai_agent": "agents",
    "langchain_agent": "langchain_core",
    "anthropic_memory_tool": "anthropic",
}
SAID = {
    "langgraph_store": "You said: I'm allergic to peanuts",
    "pydantic_ai_agent": "No peanuts for Ann.",
    "openai_agent": "No peanuts for Ann.",
    "langchain_agent": '"Ann is allergic to peanuts"',
    "anthropic_memory_tool": "Ann is allergic to peanuts and figs",
}


def test_every_example_is_run() -> None:
    assert {each.stem for each in EXAMPLES.glob("*.py")} == {*NEEDED, "mem0_program"}


@pytest.mark.parametrize("name", NEEDED)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    if not is_installed(NEEDED[name]):
        pytest.skip(f"{NEEDED[name]} is not installed: make adapters")
    keyless = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=keyless,
    )
    assert done.returncode == 0, done.stderr
    assert SAID[name] in done.stdout


@pytest.mark.parametrize("program", [each for each in PROGRAMS if libraries_of(each.values[0])])
def test_a_program_in_the_documents_that_needs_a_library_runs(program: str, tmp_path: Path) -> None:
    for library in libraries_of(program):
        if not is_installed(library):
            pytest.skip(f"{library} is not installed: make adapters, or make adapters-more")
    warns_itself = "crewai" in libraries_of(program)
    run_as_documented(program, tmp_path, warnings="default" if warns_itself else "error")
