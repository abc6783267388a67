"""Ricordo in CrewAI: a memory for crews and agents that needs none of CrewAI's models, embedders and databases.

Source: docs.crewai.com, "Memory"; crewai 1.15, `Memory` and `StorageBackend`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
from crewai.memory.unified_memory import Memory as FrameworkMemory
from crewai.memory.utils import join_scope_paths
from pydantic import PrivateAttr

from ricordo.errors import NotFoundError
from ricordo.model import Fact, Json, Node, Scope
from ricordo.sync import Memory

if TYPE_CHECKING:
    from ricordo.ports import Embedder

__all__ = ["RicordoMemory"]

_KIND = "crewai"
_MOST = 1_000
_ROOT = "/"


class RicordoMemory(FrameworkMemory):
    """For `Crew(memory=...)` and `Agent(memory=...)`, from any thread or loop. Close it, or use it in a `with` block.

    Texts are remembered as facts; a fact with a newer value replaces the older one. CrewAI's scopes are paths within
    the memory of one owner. For users who must not see each other's memories, open one memory for each user.
    """

    _memory: Memory = PrivateAttr()

    def __init__(
        self,
        location: str | Path,
        *,
        owner: str = "me",
        embedder: str | Embedder | None = "default",
        root_scope: str | None = None,
        read_only: bool = False,
    ) -> None:
        """Args:
        location: the store's file; it is created if it does not exist.
        owner: the owner of the memories; other owners' memories are not visible.
        embedder: as in `ricordo.Memory.open`.
        root_scope: a path that is put before all scopes.
        read_only: if True, agents can only search.
        """
        memory = Memory.open(location, scope=Scope(owner=owner), embedder=embedder)
        super().__init__(storage=_Records(memory), embedder=_no_vectors, root_scope=root_scope, read_only=read_only)
        self._memory = memory

    def remember(self, content: str, *given: Any, **options: Any) -> MemoryRecord | None:
        """Remember a text; return its record, or None if the memory is read-only."""
        return next(iter(self.remember_many([content], *given, **options)), None)

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Remember texts as one commit; return their records, or [] if the memory is read-only."""
        if self.read_only:
            return []
        path = join_scope_paths(self.root_scope if root_scope is None else root_scope, scope)
        record = MemoryRecord(
            content="",
            scope=path,
            categories=categories or [],
            metadata=metadata or {},
            importance=0.5 if importance is None else importance,
            source=source,
            private=private,
        )
        facts = [Fact(content=each, origin="agent", attributes=_fields(record)) for each in contents]
        return [_record(node) for node in self._memory.remember_many(facts)]

    def extract_memories(self, content: str) -> list[str]:
        """Return the content as one memory. No model is used to split it."""
        return [content] if content.strip() else []

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Search, best first. Without a scope, this also finds what other programs stored for the owner.

        Args:
            depth: ignored. Every search compares words and embeddings, without a language model.
        """
        path = join_scope_paths(self.root_scope, scope)
        hits = self._memory.search(query, limit=_MOST if categories or path != _ROOT else min(_MOST, 2 * limit)).hits
        found = [(_record(self._memory.get(hit.id)), hit.score) for hit in hits]
        return [
            MemoryMatch(record=record, score=score)
            for record, score in found
            if _is_under(record.scope, path)
            and (not categories or set(categories) & set(record.categories))
            and (not record.private or include_private or source == record.source)
        ][:limit]

    def close(self) -> None:
        """Close the store. Closing twice is fine."""
        super().close()
        self._memory.close()

    def __enter__(self) -> RicordoMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Records:
    """The methods of CrewAI's `StorageBackend` that need no vectors, on memories stored through this interface."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def get_record(self, record_id: str) -> MemoryRecord | None:
        try:
            found = self._memory.get(record_id)
        except NotFoundError:
            return None
        return _record(found) if found.is_live else None

    def update(self, record: MemoryRecord) -> None:
        self._memory.update(record.id, content=record.content, attributes=_fields(record))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        chosen = [
            record
            for record in self._all(scope_prefix)
            if (not categories or set(categories) & set(record.categories))
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or record.created_at < _utc(older_than))
            and (metadata_filter or {}).items() <= record.metadata.items()
        ]
        return sum(not self._memory.forget(record.id).notice for record in chosen)  # those proposed only do not count

    def reset(self, scope_prefix: str | None = None) -> None:
        self.delete(scope_prefix)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        return self._all(scope_prefix)[offset : offset + limit]

    def count(self, scope_prefix: str | None = None) -> int:
        return len(self._all(scope_prefix))

    def list_scopes(self, parent: str = _ROOT) -> list[str]:
        start = parent.rstrip("/") + "/"
        below = [each.scope.removeprefix(start) for each in self._all(parent) if each.scope.startswith(start)]
        return sorted({start + path.partition("/")[0] for path in below if path})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(Counter(name for record in self._all(scope_prefix) for name in record.categories))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = self._all(scope)
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted(self.list_categories(scope)),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def _all(self, scope: str | None) -> list[MemoryRecord]:
        """Return the records of a scope, latest first."""
        nodes: list[Node] = []
        page = self._memory.list(where={"kind": _KIND}, limit=_MOST)
        nodes += page.nodes
        while page.cursor is not None:
            page = self._memory.list(where={"kind": _KIND}, limit=_MOST, cursor=page.cursor)
            nodes += page.nodes
        return [record for record in map(_record, nodes) if _is_under(record.scope, scope or _ROOT)]


def _fields(record: MemoryRecord) -> Json:
    names = {"scope", "categories", "metadata", "importance", "source", "private"}
    return {**record.model_dump(include=names), "kind": _KIND}


def _record(node: Node) -> MemoryRecord:
    """Return a memory as a CrewAI record. Memories stored by other programs get the scope "/"."""
    own = node.attributes if node.attributes.get("kind") == _KIND else {}
    fields = {name: value for name, value in own.items() if name != "kind"}
    return MemoryRecord(id=node.id, content=node.content, created_at=_utc(node.created_at), **fields)


def _utc(time: datetime) -> datetime:
    """Return a time as CrewAI stores it: in UTC, as a naive `datetime`."""
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def _is_under(path: str, root: str) -> bool:
    return root == _ROOT or path == root or path.startswith(root.rstrip("/") + "/")


def _no_vectors(texts: Sequence[str]) -> list[list[float]]:
    """Return no vectors in place of CrewAI's embedder: search uses the store's own embedder."""
    return [[] for _ in texts]
