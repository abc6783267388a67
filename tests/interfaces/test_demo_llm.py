"""The demo with a language model behind a real server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.models.language.serving import ModelServer, Reply, said

from ricordo.interfaces.demo.script import scripted_answer
from ricordo.ports import Turn

TOOL = Path(__file__).parents[2] / "tools" / "demo_llm.py"


def by_heart(asked: dict[str, Any]) -> Reply:
    """The scripted model over HTTP."""
    turns = [Turn(role=each["role"], text=each["content"]) for each in asked["messages"]]
    return said(scripted_answer(turns, asked["response_format"]["json_schema"]["schema"]))(asked)


def demo(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("RICORDO_")}
    return subprocess.run(
        [sys.executable, str(TOOL), "--json", "--embedder", "none"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env={**env, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), **environment},
        check=False,
    )


@pytest.mark.slow
def test_a_model_server_with_scripted_answers_gives_the_same_knowledge(tmp_path: Path, cli: Any) -> None:
    with ModelServer() as server:
        server.always = by_heart
        told = json.loads(demo(tmp_path, RICORDO_MODEL=f"{server.url}#small").stdout)["learnt"]
        assert len(server.requests) == 5, "two conversations, each checked, and one question about what is alike"
    scripted = cli("demo", "--json", embedder="none").json["learnt"]
    assert [[(item["what"], item["text"]) for item in run["items"]] for run in told["runs"]] == [
        [(item["what"], item["text"]) for item in run["items"]] for run in scripted["runs"]
    ]
    assert {run["model"] for run in told["runs"]} == {"http:small"}


@pytest.mark.slow
def test_a_failing_model_server_leaves_sessions_waiting(tmp_path: Path) -> None:
    with ModelServer() as server:
        server.always = said("I am only a small model")
        runs = json.loads(demo(tmp_path, RICORDO_MODEL=f"{server.url}#small").stdout)["learnt"]["runs"]
    assert [[item["what"] for item in run["items"]] for run in runs] == [["failed"], ["failed"]]


def test_without_a_model_it_says_what_to_do(tmp_path: Path) -> None:
    done = demo(tmp_path, RICORDO_GGUF=str(tmp_path / "missing.gguf"))
    assert (done.returncode, "file not found" in done.stderr) == (1, True)
