"""`Memory` and `AsyncMemory` with the names, arguments and answers of mem0's, kept in Ricordo.

    from ricordo.integrations.mem0 import Memory  # in place of: from mem0 import Memory

Neither mem0 nor an API key is needed. docs/how-to/use-with-frameworks.md lists the differences.

Source: docs.mem0.ai, "Python quickstart" and "API reference"; the interface is that of mem0ai 2.2, and the
ids as arguments of 1.x (`search(..., user_id=)`) are accepted, too.
"""

from __future__ import annotations

import atexit
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ricordo.integrations.mem0.backend import Backend, Unset, options_of
from ricordo.integrations.mem0.shapes import Item, Mem0Error
from ricordo.loop_thread import Portal

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from ricordo.ports import Clock, Embedder, LanguageModel

__all__ = ["AsyncMemory", "Mem0Error", "Memory"]

T = TypeVar("T")
Answer = dict[str, Any]

_UNSET = Unset()


class AsyncMemory:
    """mem0's `AsyncMemory`. The store is opened at the first call.

    Users are owners: a search of one user never reads another's memories. Agents and runs are filters.
    """

    def __init__(
        self,
        config: object = None,
        *,
        location: str | Path | None = None,
        embedder: str | Embedder | None = "default",
        model: str | LanguageModel | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Args:
        config: mem0's; only the path of its vector store is used, and an entry `ricordo` with the arguments
            below.
        location: the store's file; by default `mem0.db` in Ricordo's folder.
        embedder, model, clock: as in `ricordo.Memory.open`. With a model, messages become facts at once.
        """
        self._backend = Backend(options_of(config, location=location, embedder=embedder, model=model, clock=clock))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> AsyncMemory:
        """A memory from mem0's configuration; its providers and keys are ignored."""
        return cls(config_dict)

    async def add(
        self,
        messages: str | Mapping[str, Any] | list[Any],
        *,
        user_id: object = None,
        agent_id: object = None,
        run_id: object = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: object = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Answer:
        """Record messages: `{"results": [{"id", "memory", "event"}]}`.

        Args:
            infer: without a model, messages are kept word for word, and what the user says plainly ("I live in
                Rome") as facts, of which a new value replaces the old one; if False, messages alone.
            expiration_date: the last day on which `search` and `get_all` show it.

        Raises:
            Mem0Error: no id is given, or an argument is invalid.
        """
        if timestamp is not None:
            raise Mem0Error("timestamp is accepted only by mem0's hosted platform; leave it out")
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        kept = await self._backend.add(
            messages, ids=ids, metadata=metadata, until=expiration_date, infer=infer, kind=memory_type
        )
        return {"results": kept}

    async def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: object = None,
        show_expired: bool = False,
        limit: int | None = None,
        **ids: Any,
    ) -> Answer:
        """Return the memories that answer a question, best first: `{"results": [...]}`.

        Args:
            filters: at least one of user_id, agent_id and run_id; conditions on metadata with mem0's operators.
            threshold: the minimum score, from 0 to 1; every hit when None. Scores are Ricordo's.
            rerank: accepted and ignored.
            explain: add `score_details`, the share of each signal.

        Raises:
            Mem0Error: no id is given, or an argument is invalid.
        """
        if reference_date is not None:
            raise Mem0Error("reference_date is accepted only by mem0's hosted platform; leave it out")
        found = await self._backend.search(
            query,
            filters=filters,
            ids=ids,
            top_k=top_k if limit is None else limit,
            threshold=threshold,
            explain=explain,
            show_expired=show_expired,
        )
        return {"results": found}

    async def get(self, memory_id: str) -> Item | None:
        """Return a memory, or None."""
        return await self._backend.get(memory_id)

    async def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        limit: int | None = None,
        **ids: Any,
    ) -> Answer:
        """Return memories, latest first: `{"results": [...]}`. Raises as `search` does."""
        found = await self._backend.get_all(
            filters=filters, ids=ids, top_k=top_k if limit is None else limit, show_expired=show_expired
        )
        return {"results": found}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET,
        data: str | None = None,
    ) -> Answer:
        """Change a memory in place; `history` keeps the old version.

        Raises:
            Mem0Error: no memory has this id, or nothing is given.
        """
        await self._backend.update(memory_id, data if text is None else text, metadata, expiration_date)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> Answer:
        """Delete a memory; `history` still lists it.

        Raises:
            Mem0Error: no memory has this id.
        """
        await self._backend.delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(self, user_id: object = None, agent_id: object = None, run_id: object = None) -> Answer:
        """Delete all memories of a user, agent or run.

        Raises:
            Mem0Error: none of them is given.
        """
        await self._backend.delete_all({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[Item]:
        """Return the events of a memory, oldest first; empty if no memory has this id."""
        return await self._backend.history(memory_id)

    async def reset(self) -> None:
        """Erase everything stored through this interface, of all users."""
        await self._backend.reset()

    async def close(self) -> None:
        """Close the store; the next call opens it again."""
        await self._backend.close()

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Memory:
    """mem0's `Memory`: `AsyncMemory` without `await`, in scripts, notebooks and threads. Arguments, answers and errors
    are the same.
    """

    def __init__(self, config: object = None, **place: Any) -> None:
        """Args:
        config: as for `AsyncMemory`, and so are location, embedder, model and clock.
        """
        import ricordo.memory  # noqa: F401  # its exit handlers must run after ours

        self._memory = AsyncMemory(config, **place)
        self._portal = Portal()
        atexit.register(self._portal.close)  # a program that does not close the memory still ends

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Memory:
        """A memory from mem0's configuration; its providers and keys are ignored."""
        return cls(config_dict)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.call(work)

    def add(self, messages: str | Mapping[str, Any] | list[Any], **given: Any) -> Answer:
        """Record messages, as `AsyncMemory.add` does."""
        return self._run(self._memory.add(messages, **given))

    def search(self, query: str, **given: Any) -> Answer:
        """Search memories, as `AsyncMemory.search` does."""
        return self._run(self._memory.search(query, **given))

    def get(self, memory_id: str) -> Item | None:
        """Return a memory, or None."""
        return self._run(self._memory.get(memory_id))

    def get_all(self, **given: Any) -> Answer:
        """List memories, as `AsyncMemory.get_all` does."""
        return self._run(self._memory.get_all(**given))

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET,
        data: str | None = None,
    ) -> Answer:
        """Change a memory in place, as `AsyncMemory.update` does."""
        return self._run(self._memory.update(memory_id, text, metadata, expiration_date, data))

    def delete(self, memory_id: str) -> Answer:
        """Delete a memory, as `AsyncMemory.delete` does."""
        return self._run(self._memory.delete(memory_id))

    def delete_all(self, user_id: object = None, agent_id: object = None, run_id: object = None) -> Answer:
        """Delete the memories of a user, agent or run, as `AsyncMemory.delete_all` does."""
        return self._run(self._memory.delete_all(user_id, agent_id, run_id))

    def history(self, memory_id: str) -> list[Item]:
        """Return the events of a memory, as `AsyncMemory.history` does."""
        return self._run(self._memory.history(memory_id))

    def reset(self) -> None:
        """Erase everything stored through this interface, of all users."""
        self._run(self._memory.reset())

    def close(self) -> None:
        """Close the store. Closing twice is fine; answered calls are durable without it."""
        if self._portal.is_open:
            self._portal.call(self._memory.close())
            self._portal.close()
            atexit.unregister(self._portal.close)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
