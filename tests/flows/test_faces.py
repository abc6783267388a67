"""The blocking API in a script, and in a notebook with a running event loop."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ricordo.sync
from ricordo import Scope, UnavailableError
from tests.flows.conftest import Place


async def test_the_blocking_api_works_inside_a_running_loop(place: Place) -> None:
    with ricordo.sync.Memory.open(place.location, embedder="hashing") as memory:
        memory.remember("The spare key is under the third pot")
        assert memory.search("spare key").hits[0].content == "The spare key is under the third pot"


def test_a_scope_shares_the_store_and_closing_it_closes_nothing(place: Place) -> None:
    memory = ricordo.sync.Memory.open(place.location, embedder=None)
    with memory.scoped(Scope(owner="ann")) as ann:
        ann.add("hello")
    assert len(memory.scoped(Scope(owner="ann")).list().nodes) == 1
    memory.close()
    memory.close()
    with pytest.raises(UnavailableError):
        memory.add("too late")


def test_messages_added_without_waiting_are_stored_by_close(place: Place) -> None:
    with ricordo.sync.Memory.open(place.location, embedder=None) as memory:
        ids = [memory.add_nowait(f"message {n}", session="s") for n in range(500)]
    with ricordo.sync.Memory.open(place.location, embedder=None) as memory:
        assert [memory.get(each).content for each in ids] == [f"message {n}" for n in range(500)]


def test_help_shows_the_signature_and_the_docstring_of_the_asynchronous_method() -> None:
    blocking, asynchronous = ricordo.sync.Memory.search, ricordo.Memory.search
    assert inspect.signature(blocking) == inspect.signature(asynchronous)
    assert inspect.getdoc(blocking) == inspect.getdoc(asynchronous)
    assert "why_not: the id of a memory you expected" in (blocking.__doc__ or "")
    assert not inspect.iscoroutinefunction(blocking)
    assert (blocking.__module__, blocking.__qualname__) == ("ricordo.sync", "Memory.search")


def test_the_stub_declares_exactly_the_methods_that_exist() -> None:
    stub = ast.parse(Path(ricordo.sync.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    declared = next(each for each in stub.body if isinstance(each, ast.ClassDef))
    names = {each.name for each in declared.body if isinstance(each, ast.FunctionDef)}
    assert {each for each in names if not each.startswith("_")} == {
        each for each in vars(ricordo.sync.Memory) if not each.startswith("_")
    }


_SCRIPT = """
from ricordo.sync import Memory

with Memory.open("me.db", embedder=None) as memory:
    reveal_type(memory.search("spare key").hits[0].score)
    memory.search(42)
    memory.search("spare key", limits=3)
    memory.find("spare key")
"""


def test_mypy_checks_a_script_that_uses_the_blocking_api(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    found = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert found[0] == 'note: Revealed type is "float"'
    assert found[1].startswith('error: Argument 1 to "search" of "Memory" has incompatible type "int"')
    assert found[2].startswith('error: Unexpected keyword argument "limits" for "search" of "Memory"')
    assert 'error: "Memory" has no attribute "find"  [attr-defined]' in found[3:]
