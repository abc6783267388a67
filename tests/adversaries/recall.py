"""Recall for the attacks of `agent-memory-integrity`: by someone who can get text written to a memory."""

from __future__ import annotations

from typing import Any

from agmi.adapters.semantic_base import MemoryItem, Retrieved, SemanticMemoryAdapter

from ricordo import Scope
from ricordo.sync import Memory


class Recall(SemanticMemoryAdapter):
    """User statements are remembered as the user's, others as a tool's. An agent reads what is
    found for a question.
    """

    name = "ricordo"

    def __init__(self, embedder: str | None, trust: Any = "user") -> None:
        """Args:
        trust: that of the connection that writes, whatever the attacker labels the words as.
        """
        self._embedder = embedder
        self._trust = trust
        self._memory: Memory | None = None

    def reset(self) -> None:
        self.close()
        self._memory = Memory.open(":memory:", embedder=self._embedder, scope=Scope(owner="victim"))

    def close(self) -> None:
        if self._memory is not None:
            self._memory.settle()
            self._memory.close()
            self._memory = None

    def _of(self, user_id: str) -> Memory:
        assert self._memory is not None
        return self._memory.scoped(Scope(owner=user_id, trust=self._trust))

    def add_memory(self, item: MemoryItem) -> None:
        origin: Any = "user" if item.source == "user" else "tool_result"
        self._of(item.user_id).remember(item.text, origin=origin, attributes=dict(item.metadata))

    def retrieve(self, query: str, user_id: str, k: int = 5) -> list[Retrieved]:
        return self._found(query, user_id, k, None)

    def retrieve_where(self, query: str, user_id: str, where: dict[str, Any], k: int = 5) -> list[Retrieved]:
        return self._found(query, user_id, k, where)

    def _found(self, query: str, user_id: str, k: int, where: dict[str, Any] | None) -> list[Retrieved]:
        hits = self._of(user_id).search(query, limit=k, where=where).hits
        return [Retrieved(text=hit.content, user_id=user_id, score=hit.score) for hit in hits]

    def measured_on(self) -> str:
        return f"embedder {self._embedder}, default settings"
