"""Importing an adapter imports its own library and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

OWN = {
    "mem0": set(),
    "tools": set(),
    "items": set(),
    "langgraph": {"langgraph", "langchain_core"},
    "langchain": {"langchain_core"},
    "openai_agents": {"agents", "openai", "mcp", "starlette"},
    "pydantic_ai": {"pydantic_ai"},
    "anthropic_memory": {"anthropic"},
}
"""The libraries an adapter may import: its own, and their dependencies."""

PLACE = {"tools": "interfaces"}

WATCHED = {"langgraph", "langchain_core", "agents", "openai", "pydantic_ai", "anthropic", "mcp", "starlette", "mem0"}


@pytest.mark.parametrize("adapter", OWN)
def test_an_adapter_loads_no_library_but_its_own(adapter: str) -> None:
    if any(find_spec(name) is None for name in OWN[adapter]):
        pytest.skip(f"the library for {adapter} is not installed: make adapters")
    module = f"ricordo.{PLACE.get(adapter, 'integrations')}.{adapter}"
    program = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert set(json.loads(done.stdout)) & WATCHED <= OWN[adapter]


def test_the_library_itself_loads_none() -> None:
    program = "import sys, json, ricordo; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not set(json.loads(done.stdout)) & WATCHED
