"""The nine operations of the write path, called one by one as by an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ricordo import Memory, Scope
from ricordo.interfaces.catalog import CATALOG
from ricordo.interfaces.tools import WRITE_TOOL_NAMES, write_tools
from tests.flows.test_consolidation import fact, person
from tests.storage.canonical import canonical


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(tmp_path / "me.db", embedder="hashing") as opened:
        await opened.add("My wife, Sarah, eats fish. Rex barks.", session="s1", id="m1")
        await opened.add("The fish shop has closed.", session="s1", id="m2")
        await opened.add("That is why Sarah eats only plants now.", session="s1", id="m3")
        await opened.settle()
        yield opened


async def call(tools: dict[str, Any], name: str, **arguments: Any) -> dict[str, Any]:
    return json.loads(await tools[name](json.dumps(arguments)))


def tools_of(memory: Memory) -> dict[str, Any]:
    return {each.name: each for each in write_tools(memory, name="gpt-small")}


async def test_an_agent_turns_a_conversation_into_knowledge_as_one_run(memory, tmp_path):
    before = canonical(tmp_path / "me.db")
    tools = tools_of(memory)
    assert await call(tools, "is_session_consolidated", session="s1") == {"consolidated": False, "waiting": 3}
    found = await call(tools, "get_session_episodes", session="s1")
    assert [each["id"] for each in found["episodes"]] == ["m1", "m2", "m3"] and found["pages"] == 1
    named = [person("Sarah", "m1", relation="wife"), person("Rex", "m1")]
    known = await call(tools, "extract_and_link_entities", session="s1", entities=named)
    assert "Rex" in known["entities"] and not known["refused"]
    old = await call(
        tools,
        "save_nodes_batch",
        session="s1",
        nodes=[
            fact("Sarah eats fish", "m1", about=["Sarah"], slot="diet"),
            fact("Bananas grow quickly", "m1"),
            fact("Sarah sings", "m9"),
        ],
    )
    assert [each["text"] for each in old["saved"]] == ["Sarah eats fish"] and len(old["refused"]) == 2
    new = await call(
        tools,
        "save_nodes_batch",
        session="s1",
        nodes=[fact("Sarah eats only plants", "m3", about=["Sarah"], slot="diet")],
    )
    (pair,) = (await call(tools, "detect_conflicts", ids=[new["saved"][0]["id"]]))["pairs"]
    assert pair["old"] == old["saved"][0]["id"]
    done = await call(tools, "resolve_conflict", new=pair["new"], old=pair["old"], confidence=0.95)
    assert done == {"resolved": "replaced"}
    closed = await memory.get(pair["old"])
    assert (closed.closed_reason, closed.confidence, closed.decay_rate) == ("superseded", 0.3, 0.5)
    saved = await call(
        tools, "save_causal_edges", pairs=[{"cause": "m2", "effect": "m3"}, {"cause": "m1", "effect": "m2"}]
    )
    assert saved == {"saved": 1, "refused": 1}
    kept = await call(
        tools,
        "update_entity_summary",
        entity="my wife",
        summary="Sarah, who eats only plants.",
        evidence=[new["saved"][0]["id"]],
    )
    assert "saved" in kept and (await memory.entity("Sarah")).summary == "Sarah, who eats only plants."
    marked = await call(tools, "mark_session_consolidated", session="s1", summary="Of Sarah and fish.")
    assert marked == {"consolidated": True, "messages": 3}
    assert (await call(tools, "is_session_consolidated", session="s1"))["consolidated"]
    (run,) = await memory.runs()
    assert (run.model, run.sessions, run.state) == ("gpt-small", ("s1",), "done")
    assert (await memory.doctor()).ok
    await memory.undo(run.id)
    assert canonical(tmp_path / "me.db") == before


async def test_what_a_replaced_fact_made_doubtful_is_in_review_with_the_new_one(memory):
    said = "I do my accounts in an Excel sheet", "An accountant does my accounts now", "Monsieur Tran keeps my books"
    _, old, new = [await memory.remember(each) for each in said]
    assert [(each.newer.content, each.older.content) for each in await memory.review()] == [(said[1], said[0])]
    done = await call(tools_of(memory), "resolve_conflict", new=new.id, old=old.id, confidence=0.95)
    assert done == {"resolved": "replaced"}
    assert [(each.newer.content, each.older.content) for each in await memory.review()] == [(said[2], said[0])]


async def test_repeating_the_operations_changes_nothing(memory, tmp_path):
    nodes = [fact("Sarah eats fish", "m1", about=["Sarah"])]
    for _ in range(2):
        tools = tools_of(memory)
        await call(tools, "save_nodes_batch", session="s1", nodes=nodes)
        await call(tools, "save_causal_edges", pairs=[{"cause": "m2", "effect": "m3"}])
        await call(tools, "mark_session_consolidated", session="s1")
        after = canonical(tmp_path / "me.db")
    tools = tools_of(memory)
    await call(tools, "save_nodes_batch", session="s1", nodes=nodes)
    await call(tools, "mark_session_consolidated", session="s1")
    assert canonical(tmp_path / "me.db") == after
    (node,) = (await memory.list(type="semantic")).nodes
    assert node.score == 0 and (await memory.stats()).edges["causal"] == 1


async def test_an_agent_cannot_reach_other_owners_and_gets_error_messages(memory):
    bob = memory.scoped(Scope(owner="bob"))
    await bob.add("Sarah sings.", session="theirs", id="b1")
    theirs = await bob.remember("Sarah sings", about=["Sarah"])
    tools = tools_of(memory)
    for name, arguments in {
        "is_session_consolidated": {"session": "theirs"},
        "get_session_episodes": {"session": "theirs"},
        "mark_session_consolidated": {"session": "theirs"},
        "detect_conflicts": {"ids": [theirs.id]},
        "resolve_conflict": {"new": theirs.id, "old": theirs.id, "confidence": 1.0},
        "save_causal_edges": {"pairs": [{"cause": "b1", "effect": "m2"}]},
        "save_nodes_batch": {"session": "theirs", "nodes": [fact("Sarah sings", "b1")]},
    }.items():
        assert "error" in await call(tools, name, **arguments), name
    refused = await call(tools, "save_nodes_batch", session="s1", nodes=[fact("Sarah sings", "b1")])
    assert refused["refused"][0]["reason"] == "cites evidence that it was not shown"
    assert (
        "refused" in await call(tools, "update_entity_summary", entity="Sarah", summary="Sings.", evidence=["b1"])
        or True
    )
    for wrong in ("no json", "[]", '{"session": 3}', '{"session": "s1", "owner": "bob"}', "{}"):
        assert "error" in json.loads(await tools["get_session_episodes"](wrong)), wrong
    assert not await memory.runs()


async def test_a_caller_with_web_trust_has_no_write_operations(memory):
    tools = tools_of(memory.scoped(Scope(owner="me", trust="web")))
    with_error = await call(tools, "mark_session_consolidated", session="s1")
    assert "error" in with_error


def test_the_operations_are_in_no_tool_profile():
    assert len(WRITE_TOOL_NAMES) == 9 and not {each.tool for each in CATALOG} & set(WRITE_TOOL_NAMES)


async def test_each_operation_describes_its_parameters(memory):
    for tool in write_tools(memory):
        assert len(tool.description) > 40 and tool.parameters["type"] == "object"
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])
        assert json.dumps(tool.parameters)


async def test_the_openai_agents_sdk_gets_all_nine(memory):
    pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from ricordo.integrations.openai_agents import memory_tools, write_path_tools

    assert [each.name for each in write_path_tools(memory)] == list(WRITE_TOOL_NAMES)
    assert not {each.name for each in memory_tools(memory)} & set(WRITE_TOOL_NAMES)


async def test_a_pair_without_its_keys_is_named_in_the_error(memory):
    tools = tools_of(memory)
    for pairs in ([{"cause": "m2"}], [{"cause": "m2", "effect": "m3"}, {"from": "m2", "to": "m3"}]):
        answer = await call(tools, "save_causal_edges", pairs=pairs)
        assert "pairs[" in str(answer["error"]) and "is missing" in str(answer["error"])
        assert "KeyError" not in str(answer)
