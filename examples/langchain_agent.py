"""A LangChain agent with a memory: `pip install "ricordo[langchain]"`. A class stands in for the model."""

import asyncio
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from ricordo import Memory
from ricordo.integrations.langchain import memory_tools


class Stub(BaseChatModel):
    """A scripted model: stores statements, searches for questions, and reports what it found."""

    @property
    def _llm_type(self) -> str:
        return "stub"

    def bind_tools(self, tools: Any, **options: Any) -> "Stub":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._said(messages))])

    def _said(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            return AIMessage(f"I know: {last.text}" if messages[0].text.endswith("?") else "I will remember.")
        asks = last.text.endswith("?")
        name, key = ("search_memory", "query") if asks else ("remember_fact", "content")
        return AIMessage("", tool_calls=[{"name": name, "args": {key: last.text}, "id": "c1", "type": "tool_call"}])


async def answer(model: Any, tools: dict[str, Any], said: str) -> str:
    """What an agent does: the model calls tools until it has something to say."""
    messages: list[BaseMessage] = [HumanMessage(said)]
    while True:
        reply = await model.ainvoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return str(reply.text)
        messages += [await tools[call["name"]].ainvoke(call) for call in reply.tool_calls]


async def main() -> None:
    async with Memory.open("agent.db") as memory:
        tools = memory_tools(memory)
        model, named = Stub().bind_tools(tools), {each.name: each for each in tools}
        print(await answer(model, named, "Ann is allergic to peanuts"))
        print(await answer(model, named, "Anything Ann must not eat?"))


asyncio.run(main())
