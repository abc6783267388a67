"""One story through each adapter, as far as its framework supports it: remember, contradict, search,
explain, forget, erase. docs/how-to/use-with-frameworks.md lists the rest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")

Use = Callable[..., Awaitable[str]]
NOTHING = "Nothing in the memory answers this."


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "me.db", embedder="hashing", scope=Scope(owner="ann")) as opened:
        yield opened


def with_no_framework(memory: Memory) -> Use:
    from ricordo.interfaces.tools import agent_tools

    tools = {each.name: each for each in agent_tools(memory, "full")}
    return lambda name, **given: tools[name](given)


def in_langchain(memory: Memory) -> Use:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed: make adapters")
    from ricordo.integrations.langchain import memory_tools

    tools = {each.name: each for each in memory_tools(memory, "full")}
    return lambda name, **given: tools[name].ainvoke(given)


def in_openai_agents(memory: Memory) -> Use:
    pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from ricordo.integrations.openai_agents import memory_tools

    tools = {each.name: each for each in memory_tools(memory, "full")}
    return lambda name, **given: tools[name].on_invoke_tool(None, json.dumps(given))


def in_pydantic_ai(memory: Memory) -> Use:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: make adapters")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from ricordo.integrations.pydantic_ai import memory_toolset

    async def use(name: str, **given: Any) -> str:
        def model(messages: list[Any], info: Any) -> ModelResponse:
            if len(messages) == 1:
                return ModelResponse(parts=[ToolCallPart(name, given)])
            return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])

        agent = pydantic_ai.Agent(FunctionModel(model), toolsets=[memory_toolset(memory, "full")])
        return str((await agent.run("go on")).output)

    return use


def in_autogen(memory: Memory) -> Use:
    autogen = pytest.importorskip("autogen_core", reason="autogen-core is not installed: make adapters-more")
    from ricordo.integrations.autogen import memory_tools

    tools = {each.name: each for each in memory_tools(memory, "full")}
    return lambda name, **given: tools[name].run_json(given, autogen.CancellationToken())


def in_agent_framework(memory: Memory) -> Use:
    pytest.importorskip("agent_framework", reason="agent-framework-core is not installed: make adapters-more")
    from ricordo.integrations.agent_framework import memory_tools

    tools = {each.name: each for each in memory_tools(memory, "full")}

    async def use(name: str, **given: Any) -> str:
        return str((await tools[name].invoke(arguments=given))[0].text)

    return use


def in_llama_index(memory: Memory) -> Use:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make adapters-more")
    from ricordo.integrations.llama_index import memory_tools

    tools = {each.metadata.name: each for each in memory_tools(memory, "full")}

    async def use(name: str, **given: Any) -> str:
        return str((await tools[name].acall(**given)).content)

    return use


def in_google_adk(memory: Memory) -> Use:
    pytest.importorskip("google.adk", reason="google-adk is not installed: make adapters-more")
    from types import SimpleNamespace

    from ricordo.integrations.google_adk import RicordoMemoryService, RicordoToolset

    call: Any = SimpleNamespace(session=SimpleNamespace(app_name="app", user_id="ann"))

    async def use(name: str, **given: Any) -> str:
        tools = await RicordoToolset(RicordoMemoryService(memory), "full").get_tools(call)
        tool: Any = next(each for each in tools if each.name == name)
        return str(await tool.run_async(args=given, tool_context=call))

    return use


TOOLS = [with_no_framework, in_langchain, in_openai_agents, in_pydantic_ai]
TOOLS += [in_autogen, in_agent_framework, in_llama_index, in_google_adk]


@pytest.mark.parametrize("adapter", TOOLS)
async def test_the_story_through_tools(memory: Memory, adapter: Callable[[Memory], Use]) -> None:
    use = adapter(memory)

    async def found() -> str:
        return await use("search_memory", query="where does Anna live?")

    async def kept(name: str, **given: Any) -> str:
        return str(re.search(r"\[id:(\w+)\]", await use(name, **given))[1])  # type: ignore[index]

    await use("remember_fact", content="Anna lives in Rome", about=["Anna"])
    assert "Anna lives in Rome" in await found()
    lisbon = await kept("remember_fact", content="Anna lives in Lisbon", about=["Anna"])
    assert "Lisbon" in (now := await found()) and "Rome" not in now
    assert "Anna lives in Rome" in (await use("explain_fact", id=lisbon)).partition("It replaced:")[2]
    porto = await kept("correct_fact", id=lisbon, content="Anna lives in Porto")
    assert "Porto" in (now := await found()) and "Lisbon" not in now
    await use("forget_memory", id=porto)
    assert await found() == NOTHING
    await use("restore_memory", id=porto)
    assert "Porto" in await found()
    assert "No byte of it is left" in await use("erase_memory", id=porto)
    assert await found() == NOTHING
    assert (await use("explain_fact", id=porto)).startswith("Error:")


async def test_the_story_through_mem0(tmp_path: Path) -> None:
    from ricordo.integrations.mem0 import AsyncMemory

    async with AsyncMemory(location=tmp_path / "mem0.db", embedder="hashing") as mem0:

        async def found() -> list[str]:
            answer = await mem0.search("where do I live?", filters={"user_id": "ann"})
            return [each["memory"] for each in answer["results"] if "live" in each["memory"]]

        await mem0.add("I live in Rome", user_id="ann")
        assert "I live in Rome" in await found()
        events = (await mem0.add("I live in Lisbon", user_id="ann"))["results"]
        assert "Lisbon" in (now := await found())[0] and "I live in Rome" not in now
        lisbon = next(each["id"] for each in events if "Lisbon" in each["memory"])
        assert len(await mem0.history(lisbon)) >= 1
        await mem0.update(lisbon, text="I live in Porto")
        assert "Porto" in (await found())[0]
        await mem0.delete(lisbon)
        assert not any("Porto" in each for each in await found())
        await mem0.reset()
        assert await found() == []


def test_the_story_through_langgraph(tmp_path: Path) -> None:
    pytest.importorskip("langgraph.store.base", reason="langgraph is not installed: make adapters")
    from ricordo import sync
    from ricordo.integrations.langgraph import RicordoStore

    with RicordoStore(tmp_path / "g.db", embedder="hashing") as store:
        space = ("users", "ann")
        store.put(space, "home", {"content": "Anna lives in Rome"})
        store.put(space, "home", {"content": "Anna lives in Lisbon"})
        assert [each.value["content"] for each in store.search(space, query="where does Anna live?")] == [
            "Anna lives in Lisbon"
        ]
        store.delete(space, "home")
        assert store.search(space, query="where does Anna live?") == [] and store.get(space, "home") is None
    with sync.Memory.open(tmp_path / "g.db", embedder="hashing") as memory:  # what its contract does not cover
        (gone,) = memory.archive().nodes
        assert [each.content for each in memory.explain(gone.id).versions][-1] == "Anna lives in Lisbon"
        assert memory.erase(id=gone.id).is_done
        assert memory.archive().nodes == ()


async def test_the_story_through_anthropics_memory_tool(memory: Memory) -> None:
    pytest.importorskip("anthropic", reason="anthropic is not installed: make adapters")
    from ricordo.integrations.anthropic_memory import RicordoMemoryTool

    tool: Any = RicordoMemoryTool(memory)
    path = "/memories/anna.md"
    await tool.call({"command": "create", "path": path, "file_text": "Anna lives in Rome"})
    await tool.call({"command": "str_replace", "path": path, "old_str": "Rome", "new_str": "Lisbon"})
    assert "Lisbon" in await tool.call({"command": "view", "path": path})
    (hit,) = (await memory.search("where does Anna live?")).hits
    assert hit.content == "Anna lives in Lisbon"
    await tool.call({"command": "delete", "path": path})
    assert (await memory.search("where does Anna live?")).hits == ()
    assert (await memory.erase(id=hit.id)).is_done
