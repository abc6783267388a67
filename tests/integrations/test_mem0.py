"""A program for mem0 runs on Ricordo with only its import changed; both APIs, no key, no mem0."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import ricordo
from ricordo.clock import from_ms
from ricordo.integrations.mem0 import AsyncMemory, Memory
from ricordo.integrations.mem0.shapes import fits
from ricordo.language import ScriptedModel
from tests.flows.conftest import DAY, ConfirmingModel, HandClock
from tests.flows.test_consolidation import fact, proposal

TEN = ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history", "reset", "from_config")


class Blocking:
    """`Memory` behind awaitable methods, so that one story tests both."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(getattr(self.memory, name), *args, **kwargs)

        return call


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["async", "blocking"])
async def m(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> AsyncIterator[Any]:
    place: dict[str, Any] = {"location": tmp_path / "mem0.db", "embedder": "hashing", "clock": clock}
    face: Any = AsyncMemory(**place) if request.param == "async" else Blocking(Memory(**place))
    yield face
    await face.close()


def texts(answer: dict[str, Any]) -> list[str]:
    return [each["memory"] for each in answer["results"]]


async def test_the_story_of_the_readme(m):
    added = await m.add(
        [
            {"role": "system", "content": "You are a helpful AI."},
            {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
            {"role": "assistant", "content": "How about thrillers?"},
            {"role": "user", "content": "I don't like thrillers."},
        ],
        user_id="alice",
        metadata={"category": "movies"},
    )
    assert {each["event"] for each in added["results"]} == {"ADD"}
    kept = await m.get_all(filters={"user_id": "alice"})
    assert sorted(texts(kept)) == sorted(texts(added))
    assert not any("helpful AI" in each for each in texts(kept))
    found = await m.search(query="which films does she dislike? thrillers?", filters={"user_id": "alice"}, top_k=3)
    assert "I don't like thrillers" in texts(found)
    first = found["results"][0]
    assert {"id", "memory", "hash", "metadata", "score", "created_at", "updated_at", "user_id"} <= first.keys()
    assert first["metadata"] == {"category": "movies"}
    assert await m.update(memory_id=first["id"], text="I love thrillers") == {"message": "Memory updated successfully!"}
    one = await m.get(first["id"])
    assert (one["memory"], one["user_id"], one["metadata"]) == ("I love thrillers", "alice", {"category": "movies"})
    assert await m.delete(memory_id=first["id"]) == {"message": "Memory deleted successfully!"}
    assert await m.get(first["id"]) is None
    events = await m.history(memory_id=first["id"])
    assert [each["event"] for each in events] == ["ADD", "UPDATE", "DELETE"]
    assert (events[1]["old_memory"], events[1]["new_memory"]) == (first["memory"], "I love thrillers")
    assert events[2]["is_deleted"]


async def test_users_agents_and_runs_are_kept_apart(m):
    await m.add("I live in Rome", user_id="alice", agent_id="cook", run_id="r1")
    await m.add("I live in Oslo", user_id="bob", agent_id="cook")
    await m.add("The oven runs hot", agent_id="cook", infer=False)
    assert texts(await m.get_all(filters={"user_id": "alice"})) == ["I live in Rome"]
    assert texts(await m.search("where do I live?", filters={"user_id": "bob"})) == ["I live in Oslo"]
    assert texts(await m.get_all(filters={"user_id": "alice", "run_id": "r2"})) == []
    everybody = await m.get_all(filters={"agent_id": "cook"})
    assert sorted(texts(everybody)) == ["I live in Oslo", "I live in Rome", "The oven runs hot"]
    assert "The oven runs hot" in texts(await m.search("oven", filters={"agent_id": "cook"}))
    await m.delete_all(user_id="alice", run_id="r1")
    assert texts(await m.get_all(filters={"user_id": "alice"})) == []
    assert len((await m.get_all(filters={"agent_id": "cook"}))["results"]) == 2


async def test_no_message_is_lost(m):
    said = "I moved to Lisbon. The flat is on the third floor, Tom visits on Friday. Can you help?"
    answer = await m.add(
        [{"role": "user", "content": said}, {"role": "assistant", "content": "Of course."}], user_id="a"
    )
    assert {said, "Of course."} <= set(texts(answer))
    await m.add("I love hiking", user_id="a", run_id="r1")
    await m.add("I love hiking", user_id="a", run_id="r2", metadata={"where": "Alps"})
    for run in ("r1", "r2"):
        assert texts(await m.get_all(filters={"user_id": "a", "run_id": run})) == ["I love hiking"]


async def test_a_new_value_replaces_the_old_one_and_both_are_in_history(m):
    await m.add("I live in Rome", user_id="alice")
    new = await m.add("I live in Milan", user_id="alice")
    assert texts(await m.get_all(filters={"user_id": "alice"})) == ["I live in Milan"]
    events = await m.history(new["results"][0]["id"])
    assert [(each["event"], each["old_memory"]) for each in events] == [("ADD", None), ("UPDATE", "I live in Rome")]


async def test_a_deleted_memory_returns_when_said_again(m):
    first = (await m.add("I live in Rome", user_id="alice"))["results"][0]["id"]
    await m.delete(first)
    assert texts(await m.get_all(filters={"user_id": "alice"})) == []
    await m.add("I live in Rome", user_id="alice")
    assert texts(await m.get_all(filters={"user_id": "alice"})) == ["I live in Rome"]


async def test_raw_messages_keep_role_and_name_and_can_be_altered(m):
    added = await m.add([{"role": "assistant", "name": "chef", "content": "Salt the water."}], user_id="a", infer=False)
    id = added["results"][0]["id"]
    await m.update(id, data="Salt the water well.", metadata={"topic": "pasta", "user_id": "mallory"})
    one = await m.get(id)
    assert (one["memory"], one["role"], one["actor_id"]) == ("Salt the water well.", "assistant", "chef")
    assert (one["metadata"], one["user_id"]) == ({"topic": "pasta"}, "a")
    assert one["updated_at"] >= one["created_at"]


async def test_expired_memories_are_shown_only_on_request(m, clock):
    until = from_ms(clock.ms).date()
    await m.add("The pass is valid", user_id="a", expiration_date=until, infer=False)
    assert len((await m.get_all(filters={"user_id": "a"}))["results"]) == 1
    clock.ms += DAY
    assert (await m.get_all(filters={"user_id": "a"}))["results"] == []
    assert (await m.search("pass", filters={"user_id": "a"}))["results"] == []
    shown = await m.search("pass", filters={"user_id": "a"}, show_expired=True)
    assert shown["results"][0]["expiration_date"] == until.isoformat() == date.isoformat(until)
    await m.update(shown["results"][0]["id"], expiration_date=None)
    assert len((await m.get_all(filters={"user_id": "a"}))["results"]) == 1


async def test_filters_of_metadata(m):
    for number in range(3):
        await m.add(f"Note {number}", user_id="a", metadata={"rank": number, "tags": ["x"]}, infer=False)
    asked = {"user_id": "a", "rank": {"gte": 1}, "tags": {"contains": "x"}}
    assert sorted(texts(await m.search("note", filters=asked))) == ["Note 1", "Note 2"]
    asked = {"user_id": "a", "OR": [{"rank": 0}, {"rank": {"in": [2]}}]}
    assert sorted(texts(await m.get_all(filters=asked))) == ["Note 0", "Note 2"]


async def test_ids_as_arguments_work_as_in_mem0_1(m):
    await m.add("I love tea", user_id="alice")
    assert texts(await m.search("tea", user_id="alice", limit=5)) == ["I love tea"]
    assert texts(await m.get_all(user_id="alice", limit=5)) == ["I love tea"]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": "hello"}),
        ("add", {"messages": 7, "user_id": "a"}),
        ("add", {"messages": "x", "user_id": "a b"}),
        ("add", {"messages": "x", "user_id": "a", "memory_type": "episodic"}),
        ("add", {"messages": "x", "user_id": "a", "expiration_date": "soon"}),
        ("search", {"query": "x"}),
        ("search", {"query": " ", "filters": {"user_id": "a"}}),
        ("search", {"query": "x", "filters": {"user_id": "a"}, "threshold": 2}),
        ("get_all", {}),
        ("get_all", {"filters": {"user_id": "a"}, "top_k": -1}),
        ("update", {"memory_id": "nobody's", "text": "x"}),
        ("update", {"memory_id": "nobody's"}),
        ("delete", {"memory_id": "nobody's"}),
        ("delete_all", {}),
    ],
)
async def test_arguments_refused_by_mem0_raise_value_error(m, method, arguments):
    with pytest.raises(ValueError):
        await getattr(m, method)(**arguments)


async def test_an_unknown_id_returns_nothing(m):
    assert await m.get("nobody's") is None
    assert await m.history("nobody's") == []


async def test_reset_leaves_other_memories_in_the_store(m, tmp_path, clock):
    await m.add("I love tea", user_id="alice")
    await m.add("I love rum", user_id="bob", infer=False)
    await m.close()
    async with await ricordo.Memory.open(
        tmp_path / "mem0.db", embedder="hashing", clock=clock, scope=ricordo.Scope(owner="bob")
    ) as own:
        await own.remember("Kept by Bob himself")
    if isinstance(m, Blocking):
        m.memory = Memory(location=tmp_path / "mem0.db", embedder="hashing", clock=clock)
    await m.reset()
    assert (await m.get_all(filters={"user_id": "alice"}))["results"] == []
    await m.close()
    async with await ricordo.Memory.open(
        tmp_path / "mem0.db", embedder="hashing", clock=clock, scope=ricordo.Scope(owner="bob")
    ) as own:
        assert [node.content for node in (await own.list()).nodes] == ["Kept by Bob himself"]


async def test_with_a_model_messages_become_facts(tmp_path, clock):
    answers = [proposal(fact("The user is allergic to nuts", "e1")), RuntimeError("no answer")]
    async with AsyncMemory(
        location=tmp_path / "m.db", embedder="hashing", model=ConfirmingModel(answers), clock=clock
    ) as memory:
        added = await memory.add("I think that nuts are bad for me, allergy!", user_id="a", metadata={"k": 1})
        assert texts(added) == ["The user is allergic to nuts"]
        kept = (await memory.get_all(filters={"user_id": "a"}))["results"]
        assert [(each["memory"], each["metadata"]["k"]) for each in kept] == [("The user is allergic to nuts", 1)]


async def test_if_the_model_fails_the_messages_are_kept(tmp_path, clock, caplog):
    async with AsyncMemory(
        location=tmp_path / "m.db", embedder="hashing", model=ScriptedModel([]), clock=clock
    ) as memory:
        added = await memory.add("Nuts are bad for me", user_id="a")
        assert texts(added) == ["Nuts are bad for me"]
        assert texts(await memory.get_all(filters={"user_id": "a"})) == ["Nuts are bad for me"]
    assert "stored as they are" in caplog.text


def test_the_ten_methods_have_the_same_names_in_both_apis():
    for face in (Memory, AsyncMemory):
        assert all(callable(getattr(face, name)) for name in TEN)
    assert inspect.signature(Memory.update) == inspect.signature(AsyncMemory.update).replace(
        parameters=list(inspect.signature(Memory.update).parameters.values())
    )


def test_a_mem0_configuration_sets_the_location_and_needs_no_key(tmp_path):
    config = {
        "vector_store": {"provider": "qdrant", "config": {"collection_name": "notes", "path": str(tmp_path / "q")}},
        "llm": {"provider": "openai", "config": {"model": "gpt-5-mini"}},
        "ricordo": {"embedder": "hashing"},
    }
    with Memory.from_config(config) as memory:
        memory.add("I love tea", user_id="alice")
    assert (tmp_path / "q" / "notes.db").exists()
    with Memory.from_config(config) as memory:
        assert texts(memory.get_all(filters={"user_id": "alice"})) == ["I love tea"]


def test_operators():
    kept = {"rank": 2, "name": "Vera", "tags": ["a", "b"]}
    for condition, met in [
        ({"rank": 2}, True),
        ({"rank": {"ne": 2}}, False),
        ({"missing": {"ne": 2}}, True),
        ({"rank": {"gt": 1}}, True),
        ({"rank": {"lt": "x"}}, False),
        ({"name": {"icontains": "VER"}}, True),
        ({"name": {"contains": "VER"}}, False),
        ({"tags": "a"}, True),
        ({"tags": {"nin": ["a"]}}, False),
        ({"name": "*"}, True),
        ({"missing": "*"}, False),
        ({"NOT": [{"rank": 3}]}, True),
        ({"AND": [{"rank": 2}, {"name": "Olga"}]}, False),
    ]:
        assert fits(kept, condition) is met, condition
    for wrong in ({"rank": {"near": 2}}, {"OR": "x"}):
        with pytest.raises(ValueError):
            fits(kept, wrong)


def test_a_program_without_close_exits_cleanly_without_mem0(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "mem0_program.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "PATH": "",
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path),
            "PYTHONPATH": str(Path(ricordo.__file__).parents[1]),
        },
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "destroyed" not in done.stderr
    assert "thrillers" in done.stdout
