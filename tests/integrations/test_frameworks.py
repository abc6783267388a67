"""Ricordo in the agent frameworks, with scripted models: no key, no network."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import InvalidError, Memory, Scope
from ricordo.interfaces.tools import agent_tools

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "me.db", embedder="hashing", scope=Scope(owner="ann")) as opened:
        await opened.remember("Sarah is allergic to peanuts", about=["Sarah"])
        yield opened


async def test_tools_answer_in_text_and_report_errors(memory):
    tools = {each.name: each for each in agent_tools(memory)}
    assert len(tools) == 10
    assert "peanuts" in await tools["search_memory"]('{"query": "Sarah"}')
    kept = await tools["remember_fact"]({"content": "Sarah lives in Rome"})
    handle = kept.split("]")[0].removeprefix("[id:")
    assert "Milan" in await tools["correct_fact"]({"id": handle, "content": "Sarah lives in Milan"})
    node = (await memory.list(limit=1)).nodes[0]
    assert (node.content, node.origin, node.owner) == ("Sarah lives in Milan", "agent", "ann")
    for wrong in ("no json", "[]", '{"query": "x", "owner": "bob"}', "{}"):
        assert (await tools["search_memory"](wrong)).startswith("Error:")


async def test_openai_agents_tools_context_and_session(memory):
    agents = pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from agents.items import ModelResponse
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from ricordo.integrations.openai_agents import RicordoSession, memory_filter, memory_tools

    asked: list[tuple[str | None, Any]] = []

    def says(text: str) -> Any:
        part = ResponseOutputText(text=text, type="output_text", annotations=[])
        return ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")

    def calls(name: str, **arguments: Any) -> Any:
        return ResponseFunctionToolCall(
            call_id="c1", name=name, arguments=json.dumps(arguments), type="function_call", id="f1"
        )

    script = [
        calls("search_memory", query="what must Sarah not eat?"),
        says("No peanuts."),
        calls("remember_fact", content="Sarah likes figs"),
        says("Noted."),
    ]

    class Scripted(agents.Model):
        async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
            asked.append((system_instructions, input))
            return ModelResponse(output=[script[len(asked) - 1]], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = agents.Agent(name="helper", instructions="Be kind.", model=Scripted(), tools=memory_tools(memory))
    config = agents.RunConfig(call_model_input_filter=memory_filter(memory), tracing_disabled=True)
    session = RicordoSession("s1", memory)
    first = await agents.Runner.run(agent, "What must Sarah not eat?", session=session, run_config=config)
    assert first.final_output == "No peanuts."
    assert asked[0][0].startswith("Be kind.") and "peanuts" in asked[0][0]
    assert "peanuts" in json.dumps(asked[1][1])
    await agents.Runner.run(agent, "She likes figs", session=session, run_config=config)
    assert "Sarah likes figs" in [node.content for node in (await memory.list(type="semantic")).nodes]

    again = RicordoSession("s1", memory)
    items = await again.get_items()
    assert [each.get("content") for each in items if each.get("role") == "user"] == [
        "What must Sarah not eat?",
        "She likes figs",
    ]
    assert [each["type"] for each in items[1:3]] == ["function_call", "function_call_output"]
    assert await again.get_items(limit=2) == items[-2:]
    assert await again.pop_item() == items[-1]
    assert await again.get_items() == items[:-1]
    assert await RicordoSession("s2", memory).get_items() == []
    await again.clear_session()
    assert await again.get_items() == [] and await again.pop_item() is None


async def test_openai_filter_recalls_neither_the_present_question_nor_raw_calls(memory):
    pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from agents.run import CallModelData, ModelInputData

    from ricordo.integrations.openai_agents import RicordoSession, memory_filter

    asked = "Where did Sarah leave the blue kayak?"
    call = {"type": "function_call", "name": "find", "arguments": '{"kayak": "blue Sarah"}', "call_id": "c"}
    session = RicordoSession("s1", memory)
    await session.add_items([{"role": "user", "content": asked}, call])
    await RicordoSession("s0", memory).add_items([call, {"role": "user", "content": "Sarah left the kayak in Perm"}])
    data = CallModelData(
        model_data=ModelInputData(input=[{"role": "user", "content": asked}], instructions="Be kind."),
        agent=None,
        context=None,
    )
    told = (await memory_filter(memory, session=session)(data)).instructions
    assert "Perm" in told and asked not in told and "arguments" not in told
    assert (await session.get_items())[1]["arguments"] == call["arguments"]


async def test_openai_sessions_show_and_keep_nothing_forgotten_erased_or_secret(memory, tmp_path):
    pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from ricordo.integrations.openai_agents import RicordoSession

    secret = "fw_" + "A1b2C3d4E5f6G7h8I9j0K1l2"
    said = "My sister Olga lives in Perm. The weather is nice."
    session = RicordoSession("s1", memory)
    fact = await memory.remember("My sister Olga lives in Perm")
    parts = [{"type": "input_text", "text": said}, {"type": "input_text", "text": f"the key: {secret}"}]
    await session.add_items([{"role": "user", "content": said}, {"role": "user", "content": parts}])
    await memory.forget(fact.id)
    shown = json.dumps(await session.get_items())
    assert "Perm" not in shown and "weather is nice" in shown and secret not in shown
    await memory.restore(fact.id)
    await memory.erase(id=fact.id)
    again = RicordoSession("s2", memory)
    await again.add_items([{"role": "assistant", "content": said}])
    assert "Perm" not in json.dumps(await again.get_items())


async def test_pydantic_ai_toolset_and_instructions(memory):
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: make adapters")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from ricordo.integrations.pydantic_ai import memory_instructions, memory_toolset

    asked: list[Any] = []

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        asked.append((messages, info))
        if len(asked) == 1:
            return ModelResponse(parts=[ToolCallPart("search_memory", {"query": "Sarah peanuts"})])
        return ModelResponse(parts=[TextPart("No peanuts.")])

    agent = pydantic_ai.Agent(
        FunctionModel(answer), toolsets=[memory_toolset(memory)], instructions=memory_instructions(memory)
    )
    result = await agent.run("What must Sarah not eat?")
    assert result.output == "No peanuts."
    assert {each.name for each in asked[0][1].function_tools} == {each.name for each in agent_tools(memory)}
    assert "peanuts" in asked[0][0][-1].instructions
    assert "peanuts" in asked[1][0][-1].parts[0].content


async def test_langchain_tools(memory):
    pytest.importorskip("langchain_core", reason="langchain-core is not installed: make adapters")
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from ricordo.integrations.langchain import memory_tools

    tools = {each.name: each for each in memory_tools(memory)}
    assert set(tools) == {each.name for each in agent_tools(memory)}
    assert "peanuts" in await tools["search_memory"].ainvoke({"query": "Sarah"})
    shown = convert_to_openai_tool(tools["search_memory"])["function"]
    assert "query" in shown["parameters"]["properties"]
    called = {"type": "tool_call", "id": "c1", "name": "remember_fact", "args": {"content": "Sarah likes figs"}}
    assert (await tools["remember_fact"].ainvoke(called)).tool_call_id == "c1"


async def test_one_langchain_agent_recalls_for_many_users(memory):
    pytest.importorskip("langchain", reason="langchain is not installed: make adapters")
    from langchain.agents import create_agent
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, SystemMessage

    from ricordo.integrations.langchain_agent import RicordoMiddleware

    heard: list[list[Any]] = []

    class Scripted(GenericFakeChatModel):
        def _generate(self, messages: Any, *args: Any, **given: Any) -> Any:
            heard.append(messages)
            return super()._generate(messages, *args, **given)

    await memory.scoped(Scope(owner="ben")).remember("Sarah is allergic to figs", about=["Sarah"])
    model = Scripted(messages=iter([AIMessage("ok")] * 4))
    agent = create_agent(
        model, system_prompt="Be brief.", middleware=[RicordoMiddleware(memory, owner="user")], context_schema=dict
    )
    said = {"messages": [("user", "What is Sarah allergic to?")]}
    for user in ("ann", "ben", "eve"):
        await agent.ainvoke(said, context={"user": user})
    first = [messages[0].text for messages in heard]
    assert all(each.startswith("Be brief.") for each in first)
    assert [("peanuts" in each, "figs" in each) for each in first] == [(True, False), (False, True), (False, False)]
    with pytest.raises(InvalidError, match="does not name its owner") as refused:
        await agent.ainvoke(said)
    assert "pass `context=`" in refused.value.hint
    with pytest.raises(InvalidError, match="does not name its owner") as refused:
        await agent.ainvoke(said, context={"user": ""})
    assert "''" in refused.value.hint and "pass" not in refused.value.hint
    with pytest.raises(InvalidError, match="asynchronous"):
        agent.invoke(said, context={"user": "ann"})
    part = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    alone = create_agent(model, system_prompt=SystemMessage([part]), middleware=[RicordoMiddleware(memory)])
    await alone.ainvoke(said)
    assert heard[-1][0].content[0] == part and "peanuts" in heard[-1][0].text
