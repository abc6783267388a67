"""One story through every interface: Python, the command line, MCP, REST and JSON-RPC give the same answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract import server
from tests.crash.forking import run_command
from tests.interfaces.conftest import clean_environment
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

from ricordo import Memory, Scope
from ricordo.errors import NotFoundError
from ricordo.interfaces.serialize import plain_value

Do = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def in_python(store: str) -> AsyncIterator[Do]:
    async with Memory.open(store, embedder="hashing") as memory:

        async def do(method: str, **arguments: Any) -> Any:
            return plain_value(await getattr(memory, method)(**arguments))

        yield do


@asynccontextmanager
async def over_mcp(store: str) -> AsyncIterator[Do]:
    named = {
        "remember": "remember_one",
        "search": "search_memory",
        "explain": "explain_fact",
        "forget": "forget_memory",
        "correct": "correct_fact",
        "restore": "restore_memory",
        "history": "memory_history",
        "erase": "erase_memory",
    }
    async with connected(store, profile="full") as client:

        async def do(method: str, **arguments: Any) -> Any:
            given = {{"text": "query"}.get(name, name): value for name, value in arguments.items()}
            answer = await client.call_tool(named[method], given)
            assert not answer.is_error, answer.content
            content = answer.structured_content
            return content["result"] if set(content) == {"result"} else content

        yield do


@asynccontextmanager
async def over_rest(store: str) -> AsyncIterator[Do]:
    async with house(store) as at:
        client = at.client(at.secret("me"))

        async def do(method: str, **arguments: Any) -> Any:
            answer = await client.post(f"/v1/{method}", json=arguments)
            assert answer.status_code == 200, answer.text
            return answer.json()

        yield do


@asynccontextmanager
async def over_rpc(store: str) -> AsyncIterator[Do]:
    async with house(store) as at:
        client = at.client(at.secret("me"))

        async def do(method: str, **arguments: Any) -> Any:
            if method == "remember":
                method, arguments = "add", {"content": arguments["content"], "subjects": arguments.get("about", [])}
            if method == "search":
                arguments = {"query": arguments["text"]}
            call = {"jsonrpc": "2.0", "id": 1, "method": f"memory.{method}", "params": arguments}
            answer = (await client.post("/rpc", json=call)).json()
            assert "error" not in answer, str(answer)
            return answer["result"]

        yield do


@asynccontextmanager
async def on_the_command_line(store: str) -> AsyncIterator[Do]:
    async def do(method: str, **arguments: Any) -> Any:
        about = [part for name in arguments.get("about", ()) for part in ("--about", name)]
        given = [arguments[name] for name in ("id", "text", "content") if name in arguments]
        given += ["--entity", arguments["entity"]] if "entity" in arguments else []
        sure = ["--yes"] if method == "erase" else []
        command = ["--store", store, "--embedder", "hashing", "--json", method, *given, *about, *sure]
        done = await asyncio.to_thread(run_command, *command, environment=clean_environment())
        assert done.returncode == 0, (done.stderr or done.stdout).decode()
        return json.loads(done.stdout)

    yield do


DOORS = {"python": in_python, "cli": on_the_command_line, "mcp": over_mcp, "rest": over_rest, "rpc": over_rpc}


@pytest.mark.parametrize("place", ["file", *(["postgres"] if server.is_wanted() else [])])
@pytest.mark.parametrize("door", DOORS)
async def test_remember_contradict_search_explain_forget_erase(
    tmp_path: Path, door: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # where the tokens of a store on a server are
    store = server.guarded_location(tmp_path) if place == "postgres" else f"{tmp_path}/me.db"
    async with DOORS[door](store) as do:
        told = await _story(do)
    assert told == {
        "known": ["Anna lives in Rome"],
        "newest": "Anna lives in Lisbon",
        "old is gone": True,
        "replaced": ["Anna lives in Rome"],
        "corrected": "Anna lives in Porto",
        "corrected replaced": ["Anna lives in Lisbon", "Anna lives in Rome"],
        "forgotten": [],
        "restored": ["Anna lives in Porto"],
        "erased": {"semantic": 3, "entity": 1},
        "is done": True,
        "after that": [],
        "cannot be explained": True,
        "about": ["Anna"],
        "category": "identity",
    }


async def _story(do: Do) -> dict[str, Any]:
    """Return the output of each step without ids and times, which differ."""
    asked = "where does Anna live?"

    async def found() -> list[str]:
        return [hit["content"] for hit in (await do("search", text=asked)).get("hits", [])]

    rome = await do("remember", content="Anna lives in Rome", about=["Anna"])
    told: dict[str, Any] = {"known": await found(), "about": list(rome["about"]), "category": rome["category"]}
    lisbon = await do("remember", content="Anna lives in Lisbon", about=["Anna"])
    now = await found()
    told |= {"newest": now[0], "old is gone": "Anna lives in Rome" not in now}
    told["replaced"] = [each["content"] for each in (await do("explain", id=lisbon["id"]))["supersedes"]]
    porto = await do("correct", id=lisbon["id"], content="Anna lives in Porto")
    told["corrected"] = (await found())[0]
    told["corrected replaced"] = [each["content"] for each in (await do("explain", id=porto["id"]))["supersedes"]]
    await do("forget", id=porto["id"])
    told["forgotten"] = await found()
    await do("restore", id=porto["id"])
    told["restored"] = await found()
    report = await do("erase", id=porto["id"])
    told["erased"] = {each["kind"]: each["count"] for each in report["erased"]}
    told |= {"is done": report["is_done"], "after that": await found()}
    try:
        await do("explain", id=porto["id"])
    except (NotFoundError, AssertionError):
        told["cannot be explained"] = True
    return told


@pytest.mark.parametrize("door", DOORS)
async def test_an_unknown_name_that_memories_contain_is_told_with_their_number(tmp_path: Path, door: str) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        for owner, text in (
            ("me", "the kestrel meeting was long"),
            ("me", "the licence of Kestrel ends in May"),
            ("me", "kestrels sing"),
            ("bob", "Kestrel is down"),
        ):
            await memory.scoped(Scope(owner=owner)).remember(text)
    refused = r"known as .{1,3}Kestrel.{1,3}, but 2 memories contain the name(.|\n)*entity-add"
    async with DOORS[door](str(tmp_path / "me.db")) as do:
        with pytest.raises((NotFoundError, AssertionError), match=refused):
            await do("erase", entity="Kestrel")
        with pytest.raises((NotFoundError, AssertionError), match=r"known as .{1,3}Zoe.{1,3}") as unknown:
            await do("erase", entity="Zoe")
        assert "contain" not in str(unknown.value)
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        await memory.add_entity("Kestrel", type="project")
        report = await memory.erase(entity="Kestrel")
        assert {each.kind: each.count for each in report.erased} == {"semantic": 2, "entity": 1}


def test_every_interface_is_covered() -> None:
    assert set(DOORS) == {"python", "cli", "mcp", "rest", "rpc"}


@pytest.mark.parametrize("door", DOORS)
async def test_an_undone_memory_is_erased_by_its_short_and_its_full_id(tmp_path: Path, door: str) -> None:
    store = str(tmp_path / "memory.db")
    async with Memory.open(store, embedder="hashing") as memory:
        told = [await memory.remember(f"I owe {name} 3000 euros") for name in ("Zanzibar", "Balthasar")]
        for commit in await memory.log():
            await memory.undo(commit.seq)
    async with DOORS[door](store) as do:
        for id in (told[0].id[-8:], told[1].id):
            report = await do("erase", id=id)
            assert {each["kind"]: each["count"] for each in report["erased"]}["semantic"] == 1
    assert not [
        word
        for word in (b"anzibar", b"althasar")
        for file in await asyncio.to_thread(lambda: [*tmp_path.iterdir()])
        if word in file.read_bytes()
    ]
