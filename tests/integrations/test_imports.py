"""Importing an adapter imports its own library and no other."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.docs.test_docs import is_installed

OWN = {
    "mem0": set(),
    "tools": set(),
    "items": set(),
    "langgraph": {"langgraph", "langchain_core"},
    "langchain": {"langchain_core"},
    "langchain_agent": {"langchain", "langchain_core", "langgraph"},
    "openai_agents": {"agents", "openai", "mcp", "starlette"},
    "pydantic_ai": {"pydantic_ai"},
    "anthropic_memory": {"anthropic"},
    "autogen": {"autogen_core"},
    "agent_framework": {"agent_framework"},
    "llama_index": {"llama_index"},
    "google_adk": {"google.adk", "starlette"},
    "crewai": {"crewai", "openai", "mcp", "starlette"},
}
"""The libraries an adapter may import: its own, and their dependencies."""

PLACE = {"tools": "interfaces"}

WATCHED = {"langgraph", "langchain_core", "agents", "openai", "pydantic_ai", "anthropic", "mcp", "starlette", "mem0"}
WATCHED |= {"autogen_core", "agent_framework", "llama_index", "google.adk", "crewai"}


@pytest.mark.slow
@pytest.mark.parametrize("adapter", OWN)
def test_an_adapter_loads_no_library_but_its_own(adapter: str) -> None:
    if not all(map(is_installed, OWN[adapter])):
        pytest.skip(f"the library for {adapter} is not installed: make adapters")
    module = f"ricordo.{PLACE.get(adapter, 'integrations')}.{adapter}"
    program = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert set(json.loads(done.stdout)) & WATCHED <= OWN[adapter]


def test_the_library_itself_loads_none() -> None:
    program = "import sys, json, ricordo; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not set(json.loads(done.stdout)) & WATCHED
