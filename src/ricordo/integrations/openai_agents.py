"""Ricordo in OpenAI's Agents SDK: tools, recall before each model call, and stored sessions.

Source: openai.github.io/openai-agents-python, "Tools", "Running agents" (`call_model_input_filter`) and "Sessions".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agents import FunctionTool
from agents.run import CallModelData, ModelInputData

from ricordo.integrations.items import listed, text_of
from ricordo.interfaces.tools import Tool, agent_instructions, agent_tools, write_tools
from ricordo.model import Message, Node, Role

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory.session_settings import SessionSettings
    from agents.tool_context import ToolContext

    from ricordo.memory import Memory

__all__ = ["RicordoSession", "memory_filter", "memory_tools", "write_path_tools"]

_KIND = "agents session"


def memory_tools(memory: Memory, profile: str = "core") -> list[Any]:
    """Return tools for `Agent(tools=...)`: search, store, correct, confirm, look up people and times."""
    return [_function(each) for each in agent_tools(memory, profile)]


def _function(tool: Tool) -> FunctionTool:
    async def invoke(_: ToolContext[Any], arguments: str) -> str:
        return await tool(arguments)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def write_path_tools(memory: Memory, *, name: str = "agent") -> list[Any]:
    """Return the nine operations of the write path, for a background agent that turns conversations into knowledge.

    Use the prompt `ricordo.interfaces.tools.WRITE_INSTRUCTIONS`. Do not give the tools to an agent that talks to users.

    Args:
        name: the name of the agent's model, to record with the run.
    """
    return [_function(each) for each in write_tools(memory, name=name)]


def memory_filter(
    memory: Memory, profile: str = "core", *, session: RicordoSession | None = None
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return a filter for `RunConfig(call_model_input_filter=...)`. It adds the context for the user's latest message
    to the model's instructions.

    Args:
        session: the session of the run, if it is stored in this memory. Its messages, including the present question,
            are not recalled.
    """
    present = None if session is None else session.session_id

    async def known(data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        said = next((text_of(each).strip() for each in reversed(given.input) if _role(each) == "user"), "")
        parts = [given.instructions, await agent_instructions(memory, said, profile, session=present)]
        return ModelInputData(input=given.input, instructions="\n\n".join(part for part in parts if part))

    return known


class RicordoSession:
    """A stored conversation, for `Runner.run(..., session=...)`. Searches in other conversations find its messages.
    `clear_session` removes the messages from all answers; `Memory.restore` brings them back.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, session_id: str, memory: Memory) -> None:
        self.session_id = session_id
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the messages in order; with `limit`, only the latest."""
        nodes = await self._nodes(limit)
        return [node.attributes["item"] for node in nodes]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Record messages as one commit."""
        await self._memory.add_many(
            [
                Message(
                    text=text_of(each).strip() or _named(each),
                    role=_role(each),
                    session=self.session_id,
                    attributes={"kind": _KIND, "item": each},
                )
                for each in items
            ]
        )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest message and return it."""
        nodes = await self._nodes(1)
        if not nodes:
            return None
        await self._memory.forget(nodes[0].id)
        item: TResponseInputItem = nodes[0].attributes["item"]
        return item

    async def clear_session(self) -> None:
        """Remove all messages."""
        for node in await self._nodes(None):
            await self._memory.forget(node.id)

    async def _nodes(self, limit: int | None) -> list[Node]:
        found: list[Node] = []
        where = {"kind": _KIND}
        async for node in listed(self._memory, type="episodic", session=self.session_id, where=where):
            if len(found) == limit:
                break
            found.append(node)
        return await self._memory.store_view.shown(found[::-1])


def _named(item: Any) -> str:
    """Return the text to store for an item without text: its type and name instead of its raw JSON."""
    parts = (item.get("type"), item.get("name")) if isinstance(item, dict) else ()
    return f"({': '.join(str(part) for part in parts if part) or 'an item without text'})"


def _role(item: Any) -> Role:
    role = item.get("role") if isinstance(item, dict) else None
    return role if role in ("user", "assistant") else "system" if role in ("system", "developer") else "tool"
