"""Ricordo in LlamaIndex: a memory block for agents, and tools.

Source: developers.llamaindex.ai, "Memory"; llama-index-core 0.14, `llama_index.core.memory.BaseMemoryBlock` and
`llama_index.core.tools.FunctionTool`.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.tools import FunctionTool, ToolMetadata

from ricordo.interfaces.tools import Tool, agent_tools, arguments_model
from ricordo.memory import Memory
from ricordo.model import Message, Role

__all__ = ["RicordoMemoryBlock", "memory_tools"]

_SESSION = "session_id"
"""The key under which LlamaIndex passes the id of the conversation."""


def memory_tools(memory: Memory, profile: str = "core") -> list[Any]:
    """Return tools for `FunctionAgent(tools=...)`. Run the agent in the event loop in which `memory` was opened."""
    return [_function(each) for each in agent_tools(memory, profile)]


def _function(tool: Tool) -> Any:
    async def invoke(**arguments: Any) -> str:
        return await tool(arguments)

    shown = ToolMetadata(name=tool.name, description=tool.description, fn_schema=arguments_model(tool))
    return FunctionTool(async_fn=invoke, metadata=shown)


class RicordoMemoryBlock(BaseMemoryBlock[str]):
    """A block for `Memory.from_defaults(memory_blocks=[...])`. Use it in the event loop in which `memory` was opened.

    LlamaIndex reads the block before each answer, and stores messages in it when they leave the chat history. Until
    then, messages of the present conversation are not recalled.
    """

    name: str = "ricordo"
    description: str | None = "What is remembered from earlier conversations."
    memory: Memory = Field(exclude=True)
    budget: int = Field(default=800, description="The most tokens that the block adds.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return the context for the user's latest message; "" if there is none."""
        asked = next((each.content or "" for each in reversed(messages or ()) if _role(each) == "user"), "")
        known = await self.memory.context(asked, budget=self.budget) if asked.strip() else None
        return known or ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Record messages as one commit, except tool calls, which have no text."""
        said = [
            Message(text=each.content, role=role, session=each.additional_kwargs.get(_SESSION))
            for each in messages
            if (role := _role(each)) and each.content and each.content.strip()
        ]
        await self.memory.add_many(said)


def _role(message: ChatMessage) -> Role | None:
    role = message.role.value
    return role if role in ("user", "assistant") else None
