"""A memory for the attacks of `agent-memory-guard`: a value is written under a key, and a later turn reads the key."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from agent_memory_guard.bench.adapter import MemorySystemAdapter, RememberOutcome

from ricordo import RicordoError, Scope
from ricordo.sync import Memory

_ORIGINS: dict[str, Any] = {"user_input": "user", "external_tool": "tool_result", "agent_authored": "tool_result"}


class Poisoned(MemorySystemAdapter):
    """A key is an attribute of a fact. A later turn reads its live facts."""

    name = "ricordo"
    version = version("ricordo")

    def __init__(self, trust: Any = None) -> None:
        """Args:
        trust: that of the connection, which writes everything in its own name; None: each source says what it is.
        """
        self._trust = trust
        self._memory = Memory.open(":memory:", embedder=None, scope=Scope(owner="me"))
        self._caller = self._memory.scoped(Scope(owner="me", trust=trust or "user"))

    def close(self) -> None:
        self._memory.settle()
        self._memory.close()

    def remember(self, key: str, value: Any, *, source_class: str = "external_tool") -> RememberOutcome:
        try:
            origin = "user" if self._trust else _ORIGINS.get(source_class, "tool_result")
            node = self._caller.remember(str(value), attributes={"key": key}, origin=origin)
        except RicordoError:
            return RememberOutcome.BLOCKED
        return RememberOutcome.STORED if node.is_live else RememberOutcome.QUARANTINED

    def recall(self, key: str) -> Any | None:
        found = [node for node in self._memory.list(limit=100).nodes if node.attributes.get("key") == key]
        return found[0].content if found else None
