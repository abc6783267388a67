"""Agents of five libraries (AutoGen, Agent Framework, LlamaIndex, ADK, CrewAI) that remember, with scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Scope
from ricordo.interfaces.tools import agent_tools

ASKED = "What must Sarah not eat?"
# Some of these libraries use what other libraries no longer recommend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def needed(library: str) -> Any:
    return pytest.importorskip(library, reason=f"{library} is not installed: make adapters, or make adapters-more")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Memory]:
    """The memory that opened the store; Ann's and Ben's are scoped to them."""
    async with Memory.open(tmp_path / "me.db", embedder="hashing", scope=Scope(owner="host")) as opened:
        yield opened


@pytest.fixture
async def ann(store: Memory) -> Memory:
    memory = store.scoped(Scope(owner="ann"))
    await memory.remember("Sarah is allergic to peanuts", about=["Sarah"])
    return memory


@pytest.fixture
def ben(store: Memory) -> Memory:
    return store.scoped(Scope(owner="ben"))


async def facts(memory: Memory) -> list[str]:
    return [node.content for node in (await memory.list(type="semantic")).nodes]


async def said(memory: Memory) -> list[tuple[str | None, str]]:
    return [(node.role, node.content) for node in (await memory.list(type="episodic")).nodes][::-1]


# AutoGen


def autogen_agent(memory: Memory, *script: Any) -> tuple[Any, list[str]]:
    """Return an agent whose model answers with a script, and the prompts that the model was given."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

    from ricordo.integrations.autogen import RicordoMemory, memory_tools

    asked: list[str] = []
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)

    class Scripted(ChatCompletionClient):
        model_info = ModelInfo(
            vision=False, function_calling=True, json_output=False, family="scripted", structured_output=False
        )
        capabilities = model_info

        async def create(self, messages: Any, *, tools: Any = (), **_: Any) -> CreateResult:
            assert len(tools) == len(agent_tools(memory))
            assert all(each["parameters"]["properties"] for each in tools if each["name"] == "search_memory")
            asked.append(json.dumps([str(each.content) for each in messages]))
            step = script[len(asked) - 1]
            if isinstance(step, str):
                return CreateResult(finish_reason="stop", content=step, usage=usage, cached=False)
            name, arguments = step
            calls = [FunctionCall(id="c1", name=name, arguments=json.dumps(arguments))]
            return CreateResult(finish_reason="function_calls", content=calls, usage=usage, cached=False)

        def create_stream(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            pass

        def actual_usage(self) -> RequestUsage:
            return usage

        def total_usage(self) -> RequestUsage:
            return usage

        def count_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        def remaining_tokens(self, *_: Any, **__: Any) -> int:
            return 1_000

    agent = AssistantAgent(
        "helper", Scripted(), memory=[RicordoMemory(memory)], tools=memory_tools(memory), reflect_on_tool_use=False
    )
    return agent, asked


async def test_an_autogen_agent_recalls_and_remembers_for_its_user_alone(ann: Memory, ben: Memory) -> None:
    needed("autogen_agentchat")
    agent, asked = autogen_agent(ann, ("remember_fact", {"content": "Sarah likes figs"}))
    done = await agent.run(task=ASKED)
    assert "peanuts" in asked[0]
    assert "Sarah likes figs" in await facts(ann)
    assert [each.type for each in done.messages][1] == "MemoryQueryEvent"
    other, asked = autogen_agent(ben, "I do not know.")
    await other.run(task=ASKED)
    assert "peanuts" not in asked[0] and "figs" not in asked[0]


async def test_an_autogen_agent_does_not_recall_what_is_forgotten(ann: Memory) -> None:
    needed("autogen_agentchat")
    await ann.forget((await ann.list()).nodes[0].id)
    agent, asked = autogen_agent(ann, "I do not know.")
    await agent.run(task=ASKED)
    assert "peanuts" not in asked[0]


async def test_autogen_memory_adds_replaces_queries_and_clears(ann: Memory, ben: Memory) -> None:
    needed("autogen_core")
    from autogen_core.memory import MemoryContent, MemoryMimeType

    from ricordo.errors import InvalidError
    from ricordo.integrations.autogen import RicordoMemory

    memory = RicordoMemory(ann, limit=1)
    for place in ("Rome", "Lisbon"):
        text = f"Anna lives in {place}"
        await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata={"from": "a test"}))
    (found,) = (await memory.query("where does Anna live?")).results
    assert found.content == "Anna lives in Lisbon" and found.metadata["score"] > 0
    assert (await ann.get(found.metadata["id"])).attributes["from"] == "a test"
    assert "Anna lives in Lisbon" not in str((await RicordoMemory(ben).query("where does Anna live?")).results)
    with pytest.raises(InvalidError, match="text"):
        await memory.add(MemoryContent(content=b"\x00", mime_type=MemoryMimeType.BINARY))
    await memory.clear()
    assert await facts(ann) == ["Sarah is allergic to peanuts"]


# Microsoft's Agent Framework


def framework_agent(memory: Memory, *script: Any) -> tuple[Any, list[str]]:
    """Return an agent whose model answers with a script, and the prompts that the model was given."""
    from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

    from ricordo.integrations.agent_framework import RicordoProvider

    asked: list[str] = []

    class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            assert {each.name for each in options["tools"]} == {each.name for each in agent_tools(memory)}
            texts = [str(item.text or item.result) for each in messages for item in each.contents]
            asked.append(json.dumps([options.get("instructions"), *texts]))
            step = script[len(asked) - 1]

            async def answer() -> ChatResponse:
                if isinstance(step, str):
                    return ChatResponse(messages=[Message(role="assistant", contents=[step])])
                call = Content.from_function_call(call_id="c1", name=step[0], arguments=step[1])
                return ChatResponse(messages=[Message(role="assistant", contents=[call])])

            return answer()

    return Agent(Scripted(), instructions="Be kind.", context_providers=[RicordoProvider(memory)]), asked


async def test_an_agent_of_microsofts_framework_recalls_and_records_for_its_user_alone(
    ann: Memory, ben: Memory
) -> None:
    needed("agent_framework")
    agent, asked = framework_agent(ann, ("remember_fact", {"content": "Sarah likes figs"}), "No peanuts.", "Figs.")
    session = agent.create_session(session_id="s1")
    assert (await agent.run(ASKED, session=session)).text == "No peanuts."
    assert "peanuts" in asked[0] and "Be kind." in asked[0]
    assert "Sarah likes figs" in await facts(ann)
    assert await said(ann) == [("user", ASKED), ("assistant", "No peanuts.")]
    assert {node.session for node in (await ann.list(type="episodic")).nodes} == {"s1"}
    await agent.run("And what does Sarah like?", session=session)
    assert "figs" in asked[2]
    other, asked = framework_agent(ben, "I do not know.")
    await other.run(ASKED, session=other.create_session(session_id="s1"))
    assert "peanuts" not in asked[0] and "figs" not in asked[0]


async def test_an_agent_of_microsofts_framework_does_not_recall_what_is_forgotten(ann: Memory) -> None:
    needed("agent_framework")
    await ann.forget((await ann.list()).nodes[0].id)
    agent, asked = framework_agent(ann, "I do not know.")
    await agent.run(ASKED)
    assert "peanuts" not in asked[0]


async def test_a_provider_that_does_not_record_stores_no_conversation(ann: Memory) -> None:
    needed("agent_framework")
    from agent_framework import AgentSession, Message, SessionContext

    from ricordo.integrations.agent_framework import RicordoProvider

    provider = RicordoProvider(ann, records=False)
    session = AgentSession(session_id="s1")
    context = SessionContext(session_id="s1", input_messages=[Message(role="user", contents=[ASKED])])
    await provider.before_run(agent=None, session=session, context=context, state={})
    await provider.after_run(agent=None, session=session, context=context, state={})
    assert "peanuts" in context.instructions[0] and await said(ann) == []


# LlamaIndex


@pytest.fixture
async def engine() -> AsyncIterator[Any]:
    """The database of LlamaIndex's chat histories, which it does not close itself."""
    needed("llama_index.core")
    from sqlalchemy.ext.asyncio import create_async_engine

    made = create_async_engine("sqlite+aiosqlite:///:memory:")
    yield made
    await made.dispose()


def llama_agent(memory: Memory, engine: Any, *script: Any) -> tuple[Any, Any, list[str]]:
    """Return an agent whose model answers with a script, its memory, and the prompts that the model was given."""
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
    from llama_index.core.llms import MockLLM
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.llms.llm import ToolSelection
    from llama_index.core.memory import Memory as ChatMemory

    from ricordo.integrations.llama_index import RicordoMemoryBlock, memory_tools

    asked: list[str] = []

    class Scripted(MockLLM, FunctionCallingLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True)

        async def achat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> ChatResponse:
            assert {each.metadata.name for each in tools} == {each.name for each in agent_tools(memory)}
            asked.append(json.dumps([each.content for each in chat_history]))
            step = script[len(asked) - 1]
            return ChatResponse(
                message=ChatMessage(role="assistant", content=step if isinstance(step, str) else ""), raw={"step": step}
            )

        def get_tool_calls_from_response(self, response: Any, *_: Any, **__: Any) -> list[ToolSelection]:
            step = response.raw["step"]
            return (
                [] if isinstance(step, str) else [ToolSelection(tool_id="c1", tool_name=step[0], tool_kwargs=step[1])]
            )

        def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> dict[str, Any]:
            return {}

    history = ChatMemory.from_defaults(
        session_id="s1",
        token_limit=120,
        token_flush_size=10,
        memory_blocks=[RicordoMemoryBlock(memory=memory)],
        async_engine=engine,
        table_name=f"history_of_{memory.scope.owner}",
    )
    return FunctionAgent(tools=memory_tools(memory), llm=Scripted(), streaming=False), history, asked


async def test_an_agent_of_llama_index_recalls_and_remembers_for_its_user_alone(
    ann: Memory, ben: Memory, engine: Any
) -> None:
    agent, history, asked = llama_agent(ann, engine, ("remember_fact", {"content": "Sarah likes figs"}), "No peanuts.")
    assert str(await agent.run(ASKED, memory=history)) == "No peanuts."
    assert "peanuts" in asked[0] and "Sarah likes figs" in await facts(ann)
    other, history, asked = llama_agent(ben, engine, "I do not know.")
    await other.run(ASKED, memory=history)
    assert "peanuts" not in asked[0] and "figs" not in asked[0]


async def test_llama_index_hands_over_what_leaves_the_history_and_recalls_nothing_forgotten(
    ann: Memory, engine: Any
) -> None:
    agent, history, _ = llama_agent(ann, engine, *["A long answer about cooking. " * 8] * 3, "I do not know.")
    for number in range(3):
        await agent.run(f"Question {number}: how do I cook the purple aubergine of my aunt Olga?", memory=history)
    kept = await said(ann)
    assert kept[0] == ("user", "Question 0: how do I cook the purple aubergine of my aunt Olga?")
    assert kept[1][0] == "assistant"
    assert {node.session for node in (await ann.list(type="episodic")).nodes} == {"s1"}
    for node in (await ann.list()).nodes:
        await ann.forget(node.id)
    block = history.memory_blocks[0]
    from llama_index.core.base.llms.types import ChatMessage

    assert await block.aget([ChatMessage(role="user", content=ASKED)]) == ""
    assert await block.aget([]) == ""


# Google's ADK


def adk_runner(service: Any, *script: Any) -> tuple[Any, list[str]]:
    """Return a runner whose model answers with a script, and the prompts that the model was given."""
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools.preload_memory_tool import preload_memory_tool
    from google.genai import types

    from ricordo.integrations.google_adk import RicordoToolset

    asked: list[str] = []

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
            declared = {each.name for tool in llm_request.config.tools for each in tool.function_declarations}
            assert {"search_memory", "remember_fact"} <= declared
            asked.append(llm_request.model_dump_json(exclude_none=True, include={"contents"}))
            step = script[len(asked) - 1]
            if isinstance(step, str):
                part = types.Part(text=step)
            else:
                part = types.Part(function_call=types.FunctionCall(name=step[0], args=step[1]))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    agent = LlmAgent(
        name="helper", model=Scripted(model="scripted"), tools=[preload_memory_tool, RicordoToolset(service)]
    )
    sessions = InMemorySessionService()
    return Runner(app_name="app", agent=agent, session_service=sessions, memory_service=service), asked


async def adk_turn(runner: Any, user: str, text: str) -> Any:
    """Say something in a new session, and return the session."""
    from google.genai import types

    session = await runner.session_service.create_session(app_name="app", user_id=user)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    async for event in runner.run_async(user_id=user, session_id=session.id, new_message=message):
        assert event.error_code is None
    return await runner.session_service.get_session(app_name="app", user_id=user, session_id=session.id)


async def test_an_agent_of_googles_adk_recalls_and_remembers_for_each_user(store: Memory) -> None:
    needed("google.adk")
    from ricordo.integrations.google_adk import RicordoMemoryService

    service = RicordoMemoryService(store)
    runner, asked = adk_runner(
        service, ("remember_fact", {"content": "Sarah likes figs"}), "Noted.", "Figs, no peanuts.", "I do not know."
    )
    session = await adk_turn(runner, "ann", "Sarah is allergic to peanuts")
    await service.add_session_to_memory(session)
    await service.add_session_to_memory(session)
    ann, ben = service.memory_of("app", "ann"), service.memory_of("app", "ben")
    assert await facts(ann) == ["Sarah likes figs"]
    assert await said(ann) == [("user", "Sarah is allergic to peanuts"), ("assistant", "Noted.")]
    await adk_turn(runner, "ann", ASKED)
    assert "peanuts" in asked[2] and "figs" in asked[2]
    await adk_turn(runner, "ben", ASKED)
    assert "peanuts" not in asked[3] and "figs" not in asked[3]
    assert await facts(ben) == [] and await said(ben) == []


async def test_an_adk_memory_is_searched_and_deleted_and_does_not_come_back(store: Memory) -> None:
    needed("google.adk")
    from google.adk.events import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types

    from ricordo.errors import NotFoundError
    from ricordo.integrations.google_adk import RicordoMemoryService

    def content(text: str) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text=text)])

    service = RicordoMemoryService(store)
    ann, ben = {"app_name": "app", "user_id": "ann"}, {"app_name": "app", "user_id": "ben"}
    events = [
        Event(id="e1", author="user", content=content("My boat is called Marlin"), timestamp=1_700_000_000),
        Event(id="e2", author="helper", content=content("A fine name.")),
        Event(id="e3", author="helper", content=content("A fi"), partial=True),
        Event(id="e4", author="helper"),
    ]
    session = Session(id="s1", events=events, **ann)
    await service.add_session_to_memory(session)
    await service.add_events_to_memory(events=events, session_id="s1", **ben)  # the same ids, another user's
    found = (await service.search_memory(query="what is my boat called?", **ann)).memories[0]
    assert found.content.parts[0].text == "My boat is called Marlin"
    assert (found.author, found.timestamp[:10]) == ("user", "2023-11-14")
    with pytest.raises(NotFoundError):
        await service.delete_memory(memory_id=found.id, **ben)
    await service.delete_memory(memory_id=found.id, **ann)
    await service.delete_memory(**ann)
    await service.add_session_to_memory(session)
    assert "Marlin" not in str(await service.search_memory(query="what is my boat called?", **ann))
    assert "Marlin" in str(await service.search_memory(query="what is my boat called?", **ben))
    for place in ("Rome", "Lisbon"):
        await service.add_memory(memories=[MemoryEntry(content=content(f"Anna lives in {place}"))], **ann)
    assert await facts(service.memory_of("app", "ann")) == ["Anna lives in Lisbon"]
    other_app = (await service.search_memory(app_name="app/ann", user_id="x", query="Anna")).memories
    assert other_app == [] and service.memory_of("a/b", "c").scope != service.memory_of("a", "b/c").scope


# CrewAI


@pytest.fixture
def crewai(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """CrewAI without its telemetry, with a home of its own."""
    for name in ("OTEL_SDK_DISABLED", "CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    return needed("crewai")


def crew(crewai: Any, memory: Any, *script: str) -> tuple[Any, list[str]]:
    """Return a crew whose model answers with a script, and the prompts that the model was given."""
    asked: list[str] = []

    class Scripted(crewai.BaseLLM):  # type: ignore[misc]
        def call(self, messages: Any, *_: Any, **__: Any) -> str:
            asked.append(json.dumps(messages))
            return script[len(asked) - 1]

    cook = crewai.Agent(role="cook", goal="to cook", backstory="a cook", llm=Scripted(model="scripted"))
    task = crewai.Task(description=ASKED, expected_output="one line", agent=cook)
    return crewai.Crew(agents=[cook], tasks=[task], memory=memory), asked


def test_a_crew_recalls_and_remembers_for_its_user_alone(crewai: Any, tmp_path: Path) -> None:
    from ricordo.integrations.crewai import RicordoMemory

    saving = (
        'Thought: I keep this.\nAction: save_to_memory\nAction Input: {"contents": ["Sarah likes figs"]}\nObservation:'
    )
    with RicordoMemory(tmp_path / "crew.db", owner="ann", embedder="hashing") as memory:
        memory.remember("Sarah is allergic to peanuts")
        cooks, asked = crew(crewai, memory, saving, "Thought: I know.\nFinal Answer: No peanuts.")
        assert cooks.kickoff().raw == "No peanuts."
        assert "allergic to peanuts" in asked[0] and "Saved to memory" in asked[1]
        assert "Sarah likes figs" in [each.content for each in memory.list_records()]
        assert any("Final Answer: No peanuts" in each.content for each in memory.list_records())
    with RicordoMemory(tmp_path / "crew.db", owner="ben", embedder="hashing") as memory:
        cooks, asked = crew(crewai, memory, "Thought: I know.\nFinal Answer: I do not know.")
        cooks.kickoff()
        assert "peanuts" not in asked[0] and "figs" not in asked[0]


def test_a_crew_memory_replaces_scopes_updates_and_forgets(crewai: Any, tmp_path: Path) -> None:
    from ricordo.integrations.crewai import RicordoMemory

    with RicordoMemory(tmp_path / "crew.db", owner="ann", embedder="hashing") as memory:

        def found(query: str, **conditions: Any) -> list[str]:
            return [each.record.content for each in memory.recall(query, **conditions)]

        memory.remember("Anna lives in Rome", scope="/people/anna", categories=["home"])
        anna = memory.remember("Anna lives in Lisbon", scope="/people/anna", categories=["home"], metadata={"n": 1})
        memory.scope("/tools").remember("The blue kayak is in the shed")
        memory.remember("Sarah secretly plans a party in May", source="ann-phone", private=True)
        assert found("where does Anna live?", scope="/people") == ["Anna lives in Lisbon"]
        assert found("where does Anna live?", categories=["home"]) == ["Anna lives in Lisbon"]
        assert found("Anna kayak", scope="/tools") == ["The blue kayak is in the shed"]
        assert not any("party" in each for each in found("plans of Sarah"))
        assert any("party" in each for each in found("plans of Sarah", source="ann-phone"))
        assert memory.list_scopes() == ["/people", "/tools"] and memory.list_scopes("/people") == ["/people/anna"]
        assert memory.list_categories() == {"home": 1} and memory.info("/people").record_count == 1
        assert memory.update(anna.id, content="Anna lives in Porto", importance=0.9).importance == 0.9
        assert found("where does Anna live?", scope="/people") == ["Anna lives in Porto"]
        with pytest.raises(ValueError, match="not found"):
            memory.update("no-such-id", content="x")
        assert memory.forget(scope="/people", metadata_filter={"n": 2}) == 0
        assert memory.forget(scope="/people", metadata_filter={"n": 1}) == 1
        assert not any("Porto" in each for each in found("where does Anna live?"))
        memory.reset("/tools")
        assert [each.scope for each in memory.list_records()] == ["/"]
        assert asyncio.run(memory.arecall("plans of Sarah", include_private=True))
        memory.reset()
        assert memory.list_records() == []


def test_a_read_only_crew_memory_stores_nothing(crewai: Any, tmp_path: Path) -> None:
    from ricordo.integrations.crewai import RicordoMemory

    with RicordoMemory(tmp_path / "crew.db", embedder="hashing", read_only=True) as memory:
        assert memory.remember("Anna lives in Rome") is None and memory.remember_many(["x"]) == []
        assert memory.list_records() == []
