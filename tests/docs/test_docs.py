"""The documentation is correct: its code runs, its commands exist, and everything public is documented."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ricordo import Memory, errors
from ricordo.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
VERBS = set(re.findall(r"^## (?:ricordo )?`?([a-z-]+)", (ROOT / "docs/reference/cli.md").read_text("utf-8"), re.M))


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


LIBRARIES = {
    "langgraph": "langgraph",
    "langchain": "langchain_core",
    "langchain_agent": "langchain",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "anthropic_memory": "anthropic",
    "autogen": "autogen_core",
    "agent_framework": "agent_framework",
    "llama_index": "llama_index",
    "google_adk": "google.adk",
    "crewai": "crewai",
}
"""The libraries of adapters, installed only by `make adapters` and `make adapters-more`."""


def is_installed(library: str) -> bool:
    """Return whether a module can be imported, also one in a package of several distributions (`google.adk`)."""
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


PATIENT = {"RICORDO_FRESH_WAIT_MS": "60000", "RICORDO_SEARCH_DEADLINE_MS": "600000"}
"""Longer deadlines, because the default embedder may load slowly."""


def libraries_of(program: str) -> set[str]:
    return {LIBRARIES[name] for name in re.findall(r"ricordo\.integrations\.(\w+)", program) if name in LIBRARIES}


PROGRAMS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(_blocks(page, "python"))
    if "import" in block and page.name != "python.md"  # test_examples.py runs those
]


@pytest.mark.parametrize("program", [each for each in PROGRAMS if not libraries_of(each.values[0])])
def test_a_program_in_the_documents_runs(program: str, tmp_path: Path) -> None:
    run_as_documented(program, tmp_path)


def run_as_documented(program: str, folder: Path, *, warnings: str = "error") -> None:
    done = subprocess.run(
        [sys.executable, "-W", warnings, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **PATIENT},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)ricordo ([a-z][a-z-]+)", page.read_text("utf-8"), re.M))
    assert named <= VERBS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_is_named_exists(page: Path) -> None:
    text = page.read_text("utf-8").replace("`ricordo.doors`", "").replace("ricordo.toml", "")
    named = set(re.findall(r"`ricordo\.([a-z_0-9.]+)", text))
    assert {name for name in named if not _module_exists(name)} == set()


def _module_exists(name: str) -> bool:
    """Return whether a dotted name is a module of the package, or something in one."""
    *parents, last = name.rstrip(".").split(".")
    folder = (ROOT / "src/ricordo").joinpath(*parents)
    module = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    is_module = (folder / f"{last}.py").exists() or (folder / last).is_dir()
    return is_module or (module.exists() and re.search(rf"\b{last}\b", module.read_text("utf-8")) is not None)


def test_the_index_of_the_documentation_links_every_page() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", index.read_text("utf-8"))}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"} - {index}
    assert {str(page) for page in pages - linked} == set()


def test_the_readme_shows_what_the_demo_and_the_first_commands_print(tmp_path: Path) -> None:
    store = {"RICORDO_STORE": str(tmp_path / "me.db"), **PATIENT, "COLUMNS": "100"}

    def printed(*command: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "ricordo", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **store, "PYTHONIOENCODING": "utf-8"},
        )
        assert done.returncode == 0, done.stderr
        return [_without_what_differs(line) for line in done.stdout.splitlines()]

    demo, found = _blocks(ROOT / "README.md", "text")[:2]
    (first,) = (block for block in _blocks(ROOT / "README.md", "sh") if "ricordo remember" in block)
    *_, told = [printed(*shlex.split(line)[1:]) for line in first.splitlines() if line.startswith("ricordo")]
    for shown, said in ((demo, printed("demo")), (found, told)):
        lines = [_without_what_differs(line) for line in shown.splitlines() if line != "..."]
        assert [line for line in lines if line not in said] == []


def _without_what_differs(line: str) -> str:
    """Return a line without ids and times."""
    return re.sub(r"  [0-9a-f]{8}$|\(\d{4}-\d\d-\d\d \d\d:\d\d\)", "*", line).rstrip()


def test_every_method_setting_and_error_is_in_the_reference() -> None:
    python = (ROOT / "docs/reference/python.md").read_text("utf-8")
    methods = [name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")]
    assert [name for name in methods if f"## {name}\n" not in python] == []
    settings = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    assert [name for name in Settings.__dataclass_fields__ if f"`{name}`" not in settings] == []
    codes = [each.code for each in vars(errors).values() if inspect.isclass(each)]
    reference = (ROOT / "docs/reference/errors.md").read_text("utf-8")
    assert [code for code in codes if code not in reference] == []
