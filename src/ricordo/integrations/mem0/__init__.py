"""`Memory` and `AsyncMemory` with the names, arguments and answers of mem0's, kept in Ricordo.

    from ricordo.integrations.mem0 import Memory  # in place of: from mem0 import Memory

Nothing of mem0's is needed, and no key. What stands in docs/how-to/use-with-frameworks.md differs.

Source: docs.mem0.ai, "Python quickstart" and "API reference"; the interface is that of mem0ai 2.2, and where 1.x took
ids beside the question (`search(..., user_id=)`), that is taken, too.
"""

from __future__ import annotations

import atexit
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ricordo.integrations.mem0.backend import Keeping, Unset, place_of
from ricordo.integrations.mem0.filters import Mem0Error
from ricordo.integrations.mem0.shapes import Item
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

    Users are owners: what is one's is in no list another's search reads. Agents and runs are conditions.
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
        config: mem0's; of it only where a vector store lies is heeded, and an entry `ricordo` with the arguments
            below.
        location: the store's file; by default `mem0.db` in Ricordo's folder.
        embedder, model, clock: as in `ricordo.Memory.open`. With a model, what is added becomes facts at once.
        """
        self._keeping = Keeping(place_of(config, location=location, embedder=embedder, model=model, clock=clock))

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> AsyncMemory:
        """A memory from mem0's configuration; providers and keys in it are not needed and not used."""
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
        """Keep what was said: `{"results": [{"id", "memory", "event"}]}`.

        Args:
            infer: without a model, messages are kept word for word, and what the user says plainly ("I live in
                Rome") as facts, of which a new value replaces the old one; if False, messages alone.
            expiration_date: the last day on which `search` and `get_all` show it.

        Raises:
            Mem0Error: no id is given, or an argument does not fit.
        """
        if timestamp is not None:
            raise Mem0Error("timestamp is an argument of mem0's platform, not of its library")
        ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        kept = await self._keeping.add(
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
        """What matters for a question, best first: `{"results": [...]}`.

        Args:
            filters: at least one of user_id, agent_id and run_id; conditions on metadata with mem0's operators.
            threshold: the least score, from 0 to 1; every hit when None. Scores are Ricordo's.
            rerank: taken and not needed.
            explain: give `score_details`, the share of each signal.

        Raises:
            Mem0Error: no id is given, or an argument does not fit.
        """
        if reference_date is not None:
            raise Mem0Error("reference_date is an argument of mem0's platform, not of its library")
        found = await self._keeping.search(
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
        """One memory, or None."""
        return await self._keeping.get(memory_id)

    async def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        limit: int | None = None,
        **ids: Any,
    ) -> Answer:
        """Memories, the latest first: `{"results": [...]}`. Raises as `search` does."""
        found = await self._keeping.get_all(
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
        """Alter a memory in place; `history` keeps what it was.

        Raises:
            Mem0Error: there is none of that id, or nothing is given.
        """
        await self._keeping.update(memory_id, data if text is None else text, metadata, expiration_date)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> Answer:
        """Take a memory out of every answer; `history` still tells of it.

        Raises:
            Mem0Error: there is none of that id.
        """
        await self._keeping.delete(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(self, user_id: object = None, agent_id: object = None, run_id: object = None) -> Answer:
        """Take all memories of a user, agent or run out of every answer.

        Raises:
            Mem0Error: none of them is given.
        """
        await self._keeping.delete_all({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[Item]:
        """What became of a memory, the first first; nothing where there is none of that id."""
        return await self._keeping.history(memory_id)

    async def reset(self) -> None:
        """Erase for good all that was kept through this interface, everybody's."""
        await self._keeping.reset()

    async def close(self) -> None:
        """Let go of the store; the next call opens it again."""
        await self._keeping.close()

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
        import ricordo.memory  # noqa: F401  # whatever it does when the interpreter ends comes after what is said here

        self._memory = AsyncMemory(config, **place)
        self._portal = Portal()
        atexit.register(self._portal.close)  # a program that closes nothing ends without background work

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Memory:
        """A memory from mem0's configuration; providers and keys in it are not needed and not used."""
        return cls(config_dict)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.call(work)

    def add(self, messages: str | Mapping[str, Any] | list[Any], **given: Any) -> Answer:
        """Keep what was said, as `AsyncMemory.add`."""
        return self._run(self._memory.add(messages, **given))

    def search(self, query: str, **given: Any) -> Answer:
        """What matters for a question, as `AsyncMemory.search`."""
        return self._run(self._memory.search(query, **given))

    def get(self, memory_id: str) -> Item | None:
        """One memory, or None."""
        return self._run(self._memory.get(memory_id))

    def get_all(self, **given: Any) -> Answer:
        """Memories, as `AsyncMemory.get_all`."""
        return self._run(self._memory.get_all(**given))

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET,
        data: str | None = None,
    ) -> Answer:
        """Alter a memory in place, as `AsyncMemory.update`."""
        return self._run(self._memory.update(memory_id, text, metadata, expiration_date, data))

    def delete(self, memory_id: str) -> Answer:
        """Take a memory out of every answer, as `AsyncMemory.delete`."""
        return self._run(self._memory.delete(memory_id))

    def delete_all(self, user_id: object = None, agent_id: object = None, run_id: object = None) -> Answer:
        """Take all of a user, agent or run out of every answer, as `AsyncMemory.delete_all`."""
        return self._run(self._memory.delete_all(user_id, agent_id, run_id))

    def history(self, memory_id: str) -> list[Item]:
        """What became of a memory, as `AsyncMemory.history`."""
        return self._run(self._memory.history(memory_id))

    def reset(self) -> None:
        """Erase for good all that was kept through this interface, everybody's."""
        self._run(self._memory.reset())

    def close(self) -> None:
        """Let go of the store. Closing twice is fine; what was answered is on the disk without it."""
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
