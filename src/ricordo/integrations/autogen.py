"""Ricordo in AutoGen: a memory that is recalled before each answer, and tools.

Source: microsoft.github.io/autogen, "Memory and RAG"; autogen-core 0.7, `autogen_core.memory.Memory` and
`autogen_core.tools.BaseTool`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autogen_core import CancellationToken
from autogen_core.memory import Memory as FrameworkMemory
from autogen_core.memory import MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.models import SystemMessage, UserMessage
from autogen_core.tools import BaseTool

from ricordo.errors import InvalidError
from ricordo.interfaces.tools import Arguments, Tool, agent_tools, arguments_model

if TYPE_CHECKING:
    from autogen_core.model_context import ChatCompletionContext

    from ricordo.memory import Memory

__all__ = ["RicordoMemory", "memory_tools"]

_KIND = "autogen"


def memory_tools(memory: Memory, profile: str = "core") -> list[Any]:
    """Return tools for `AssistantAgent(tools=...)`."""
    return [_Tool(each) for each in agent_tools(memory, profile)]


class _Tool(BaseTool[Arguments, str]):
    def __init__(self, tool: Tool) -> None:
        super().__init__(arguments_model(tool), str, tool.name, tool.description)
        self._tool = tool

    async def run(self, args: Arguments, cancellation_token: CancellationToken) -> str:
        return await self._tool(args.model_dump())


class RicordoMemory(FrameworkMemory):
    """A memory for `AssistantAgent(memory=[...])`. Use it in the event loop in which `memory` was opened.

    Before each answer, memories about the user's latest message are added to the model's context.
    """

    def __init__(self, memory: Memory, *, limit: int = 10) -> None:
        """Args:
        limit: the maximum number of memories that a query returns.
        """
        self._memory = memory
        self._limit = limit

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add the context for the user's latest message as a system message; return the memories in it."""
        messages = await model_context.get_messages()
        asked = next((_text(each.content) for each in reversed(messages) if isinstance(each, UserMessage)), "")
        parts = await self._memory.context_parts(asked) if asked.strip() else None
        if parts is None or not parts.text:
            return UpdateContextResult(memories=MemoryQueryResult(results=[]))
        await model_context.add_message(SystemMessage(content=parts.text))
        return UpdateContextResult(memories=MemoryQueryResult(results=[_content(parts.text)]))

    async def query(
        self, query: str | MemoryContent, cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Search; return the best memories first. Their metadata holds `id` and `score`."""
        asked = query if isinstance(query, str) else _text(query.content)
        hits = (await self._memory.search(asked, limit=self._limit)).hits
        return MemoryQueryResult(results=[_content(hit.content, id=hit.id, score=hit.score) for hit in hits])

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Remember a text as a fact. A fact with a newer value replaces the older one.

        Raises:
            InvalidError: the content is not a text.
        """
        if not isinstance(content.content, str):
            raise InvalidError("`content` is not a text", hint="convert it to text before adding it")
        fields = {**(content.metadata or {}), "kind": _KIND}
        await self._memory.remember(content.content, origin="agent", attributes=fields)

    async def clear(self) -> None:
        """Forget the memories that were stored with `add`. Other memories of the owner stay."""
        await self._memory.forget_where(where={"kind": _KIND})

    async def close(self) -> None:
        """Do nothing: the program that opened `memory` closes it."""


def _content(text: str, **fields: Any) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=fields)


def _text(content: Any) -> str:
    """Return a content's text, or its text parts."""
    parts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    return "\n".join(each for each in parts if isinstance(each, str))
