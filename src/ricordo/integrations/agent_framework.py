"""Ricordo in Microsoft's Agent Framework: recall before each run, tools, and recording of conversations.

Source: learn.microsoft.com/agent-framework, "Context providers"; agent-framework-core 1.23, `ContextProvider` and
`FunctionTool`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent_framework import ContextProvider, FunctionTool

from ricordo.interfaces.tools import Tool, agent_instructions, agent_tools
from ricordo.model import Message, Role

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext

    from ricordo.memory import Memory

__all__ = ["RicordoProvider", "memory_tools"]


def memory_tools(memory: Memory, profile: str = "core") -> list[Any]:
    """Return tools for `Agent(tools=...)`. `RicordoProvider` already adds them."""
    return [_function(each) for each in agent_tools(memory, profile)]


def _function(tool: Tool) -> Any:
    async def invoke(**arguments: Any) -> str:
        return await tool(arguments)

    return FunctionTool(name=tool.name, description=tool.description, func=invoke, input_model=tool.parameters)


class RicordoProvider(ContextProvider):
    """A provider for `Agent(context_providers=[...])`. Use it in the event loop in which `memory` was opened.

    Before a run, the agent gets the tools, and instructions with the context for the user's message. Messages of the
    same session are left out, because the model already has them. After the run, the user's and the agent's messages
    are recorded.
    """

    def __init__(
        self, memory: Memory, profile: str = "core", *, source_id: str = "ricordo", records: bool = True
    ) -> None:
        """Args:
        profile: the set of tools for the agent.
        source_id: the name of this provider in the agent.
        records: whether to record conversations.
        """
        super().__init__(source_id)
        self._memory = memory
        self._profile = profile
        self._records = records
        self._tools = memory_tools(memory, profile)

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add instructions and tools."""
        asked = next((each.text for each in reversed(context.input_messages) if each.role == "user"), "")
        known = await agent_instructions(self._memory, asked, self._profile, session=context.session_id)
        context.extend_instructions(self.source_id, known)
        context.extend_tools(self.source_id, self._tools)

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Record the messages of the run."""
        if not self._records:
            return
        answered = context.response.messages if context.response is not None else []
        await self._memory.add_many([*_messages([*context.input_messages, *answered], context.session_id)])


def _messages(said: Iterable[Any], session: str | None) -> Iterable[Message]:
    """Yield the messages of the user and the agent, except tool calls, which have no text."""
    for each in said:
        role: Role | None = each.role if each.role in ("user", "assistant") else None
        if role is not None and each.text.strip():
            yield Message(text=each.text, role=role, session=session)
