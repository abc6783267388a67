"""A Pydantic AI agent with a memory: `pip install "ricordo[pydantic-ai]"`. A function stands in for the model."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ricordo import Memory
from ricordo.integrations.pydantic_ai import memory_instructions, memory_toolset


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A scripted model: store the first message, then report what it knows."""
    known = messages[-1].instructions or ""
    if len(messages) == 1 and "peanuts" not in known:
        return ModelResponse(parts=[ToolCallPart("remember_fact", {"content": "Ann is allergic to peanuts"})])
    return ModelResponse(parts=[TextPart("No peanuts for Ann." if "peanuts" in known else "I will remember.")])


async def main() -> None:
    async with Memory.open("agent.db") as memory:
        agent = Agent(FunctionModel(model), toolsets=[memory_toolset(memory)], instructions=memory_instructions(memory))
        print((await agent.run("Ann cannot eat nuts")).output)
        print((await agent.run("What is Ann allergic to?")).output)


asyncio.run(main())
