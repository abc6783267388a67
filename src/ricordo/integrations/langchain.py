"""Ricordo's tools for LangChain and LangGraph agents. `ricordo.integrations.langgraph` has the store for graphs.

Source: python.langchain.com, reference of `langchain_core.tools.StructuredTool`: `args_schema` may be a JSON schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool

from ricordo.errors import InvalidError
from ricordo.interfaces.tools import Tool, agent_tools

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["memory_tools"]


def memory_tools(memory: Memory, profile: str = "core") -> list[Any]:
    """Return tools for an agent. Run the agent or the whole graph with `ainvoke`, in the event loop of `memory`.

    Raises:
        InvalidError: there is no such profile, or `memory` is a blocking `ricordo.sync.Memory`.
    """
    return [_tool(each) for each in agent_tools(memory, profile)]


def _tool(tool: Tool) -> Any:
    async def invoke(**arguments: Any) -> str:
        return await tool(arguments)

    def refuse(**arguments: Any) -> str:
        raise InvalidError(f"{tool.name} is asynchronous", hint="run the agent or graph with `await ... .ainvoke(...)`")

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=tool.parameters, func=refuse, coroutine=invoke
    )
