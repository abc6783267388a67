"""Ricordo in Pydantic AI: a toolset, and recall before each run.

Source: ai.pydantic.dev, "Toolsets", "Advanced tool features" (`Tool.from_schema`) and "Instructions".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai import Tool as FrameworkTool

from ricordo.interfaces.tools import Tool, agent_instructions, agent_tools

if TYPE_CHECKING:
    from ricordo.memory import Memory

__all__ = ["memory_instructions", "memory_toolset"]


def memory_toolset(memory: Memory, profile: str = "core") -> Any:
    """Return a toolset for `Agent(toolsets=[...])`."""
    return FunctionToolset[Any](tools=[_tool(each) for each in agent_tools(memory, profile)])


def _tool(tool: Tool) -> Any:
    async def invoke(**arguments: Any) -> str:
        return await tool(arguments)

    return FrameworkTool.from_schema(invoke, name=tool.name, description=tool.description, json_schema=tool.parameters)


def memory_instructions(memory: Memory, profile: str = "core") -> Callable[[RunContext[Any]], Awaitable[str]]:
    """Return a function for `Agent(instructions=...)`: how to use the memory, and what it knows about the prompt."""

    async def known(ctx: RunContext[Any]) -> str:
        prompt = ctx.prompt
        said = prompt if isinstance(prompt, str) else "\n".join(each for each in prompt or () if isinstance(each, str))
        return await agent_instructions(memory, said, profile)

    known.__annotations__["ctx"] = RunContext[Any]
    return known
