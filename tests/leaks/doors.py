"""Ten thousand calls by unauthorised callers through every interface: `python -m tests.leaks.doors --calls 10000`.

The interfaces are MCP over standard streams and over HTTP, REST, JSON-RPC over TCP and over a Unix socket, and the
command line. In one store, ann's words, names, ids, sessions and labels are canaries. Every capability is called with
them by eve, by eve from another chat, by a member of ann's team who may see only the team's data, and by ann from
another chat. No canary that the caller did not pass in may be in an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import uvicorn
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from ricordo import Memory, Settings
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import Capability, routes, tools
from ricordo.interfaces.cli.app import main as command_line
from ricordo.interfaces.http.app import build
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.http.server import Address, listening
from ricordo.interfaces.http.tokens import Tokens, tokens_file
from ricordo.interfaces.schema import parameters
from ricordo.language import ScriptedModel
from tests.interfaces.conftest import RUN, clean_environment
from tests.interfaces.test_owners import CALLERS as OPTIONS
from tests.interfaces.test_owners import LINES
from tests.leaks.calls import ABSENT, leaks
from tests.leaks.world import World, extracted, group, others, private

Call = Callable[[Capability, dict[str, Any]], Awaitable[str]]
"""An interface: returns answers and errors as text."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "id": ("ids",),
    "owner": ("owners",),
    "writer": ("owners",),
    "item": ("reviews", "ids"),
    "ids": ("reviews", "ids"),
    "run": ("runs",),
    "commit_or_run": ("commits", "runs"),
    "why_not": ("ids",),
    "session": ("sessions",),
    "document": ("sessions",),
    "title": ("texts",),
    "entity": ("names", "entities"),
    "name": ("names", "entities"),
    "space": ("names",),
    "source": ("names", "entities"),
    "target": ("names",),
    "keep": ("names", "entities"),
    "speaker": ("names",),
    "other": ("names", "entities"),
    "text": ("texts",),
    "prompt": ("texts",),
    "question": ("texts",),
    "query": ("texts",),
    "keywords": ("texts",),
    "content": ("texts",),
    "tag": ("tags",),
    "as_of": ("commits",),
    "cursor": ("ids",),
}
"""The forbidden items for each parameter."""

_LISTS: Mapping[str, str] = {
    **dict.fromkeys(("names", "members", "aliases", "about"), "names"),
    "tags": "tags",
    "evidence": "ids",
}

_FIXED: Mapping[str, Any] = {
    "limit": 100,
    "days": 30,
    "predicate": "friend",
    "decision": "keep both",
    "dry_run": True,
    "archived": True,
    "trace": True,
    "only_relevant": True,
    "rerank": False,
    "receipt": True,
    "judge": True,
    "of_trust": "agent",
    "with_later": True,
    "member": "eve",
    "role": "reader",
    "shared": True,
    "fresh": True,
    "budget": 50_000,
    "after": "last_year",
    "since": "last_year",
    "valid_from": "yesterday",
    "relation": "wife",
    "version": "2",
    "format": "text",
}

LEFT_OUT = frozenset(
    (
        "at",
        "attributes",
        "before",
        "category",
        "confidence",
        "done",
        "expires",
        "fix",
        "items",
        "kind",
        "protected",
        "reason",
        "role",
        "type",
        "valid_until",
        "where",
        "keep_secrets",
        "everything",
        "expect",
        "add_tags",
        "remove_tags",
        "set_attributes",
        "remove_attributes",
    )
)
"""Parameters that refer to no owner's data; `where` takes a label's value, which `tag` covers."""

_STORING = frozenset(("add_document", "relate", "off_record", "on_record", "add_entity", "update_entity"))
"""Further methods that store their arguments for the caller, who may then see them."""


@dataclass(slots=True)
class Tally:
    """The results of the calls."""

    by_door: Counter[str] = field(default_factory=Counter)
    capabilities: set[str] = field(default_factory=set)
    canaries: list[str] = field(default_factory=list)

    def note(self, door: str, name: str, asked: str, said: str, world: World, *, who: str) -> None:
        self.by_door[door] += 1
        self.capabilities.add(f"{door} {name}")
        seen = [each for each in leaks(said, world) if each not in asked.lower()]
        if seen:
            self.canaries.append(f"{door}: {who}: {name} {asked[:200]}: {seen[:3]} in {said[:300]}")


def filled(capability: Capability, world: World, random: Random, *, as_tool: bool) -> dict[str, Any]:
    """Return arguments with forbidden items: all required ones, and some of the others."""
    chosen = [
        each
        for each in parameters(capability, as_tool=as_tool)
        if (each.is_required or random.random() < 0.3) and each.name not in LEFT_OUT
    ]
    stores = capability.effect == "adds" or capability.method in _STORING
    stores = stores or any(each.name == "receipt" for each in chosen)  # a receipt keeps the question
    given = {each.shown: _value(each.name, capability, world, random, stores=stores) for each in chosen}
    if capability.method == "erase":
        one = random.choice(("id", "session", "entity", "writer", "owner"))
        given = {one: _value(one, capability, world, random, stores=False)}
    return given


def _value(name: str, capability: Capability, world: World, random: Random, *, stores: bool) -> Any:
    def one(kind: str) -> Any:
        there = getattr(world, kind) or [ABSENT[kind]]
        if stores or name == "names":
            there = there[:2]
        elif kind in ("texts", "sessions", "names"):
            there = there[2:]
        return random.choice(there)

    if name in ("id", "run") and capability.method == "run":
        return one("runs")
    of_receipts = ("receipt", "receipts", "replay_receipt", "question", "renew_questions", "drop_question")
    if name in ("id", "before") and capability.method in of_receipts:
        return one("receipts")
    if name == "content" and capability.effect == "changes":
        return "it is not so"
    if name == "id" and stores:
        return f"mine-{random.random()}"
    if name == "facts_":
        return [{"content": one("texts"), "about": [one("names")]}]
    if name == "messages":
        return [{"text": one("texts"), "session": one("sessions")}]
    if stores and name in ("tags", "tag"):
        return ["mine"]
    if name in _LISTS:
        return [one(_LISTS[name])]
    return _FIXED[name] if name in _FIXED else one(random.choice(_KINDS[name]))


async def fill(store: Path, seed: int) -> tuple[World, World]:
    """Return Ann's memory, and that of her team."""
    settings = Settings(durability="process")
    async with Memory.open(store, embedder="hashing", model=ScriptedModel(extracted), settings=settings) as memory:
        random = Random(seed)
        worlds = await private(memory, random), await group(memory, random)
        await others(memory)
        await memory.settle(600)
        return worlds


WHO = {
    "eve": ("eve", None),
    "eve in another chat": ("eve", "other"),
    "a member of the team": ("eve", "team"),
    "ann in another chat": ("ann", "other"),
}


async def try_doors(
    store: Path, worlds: tuple[World, World], *, calls: int, seed: int, callers: Sequence[str] = tuple(WHO)
) -> Tally:
    """Make a number of calls, spread evenly over interfaces, callers and capabilities."""
    tally, random = Tally(), Random(seed)
    each = max(1, calls // (5 * len(callers)))
    async with contextlib.AsyncExitStack() as stack:
        url, secrets = await stack.enter_async_context(_serving(store))
        for who in callers:
            owner, chat = WHO[who]
            world = worlds[1] if who.startswith("ann") else worlds[0]
            async with contextlib.AsyncExitStack() as doors:
                enter = doors.enter_async_context
                opened = {
                    "mcp over http": await enter(_mcp_over_http(url, secrets[who])),
                    "rest": await enter(_rest(url, secrets[who])),
                    "rpc": await enter(_rpc(url, secrets[who])),
                    "rpc over a socket": await enter(_rpc_over_a_socket(store, owner, chat)),
                    "mcp over stdio": await enter(_mcp_over_stdio(store, owner, chat)),
                }
                for door, call in opened.items():
                    await _try(door, call, world, tally, random, who=who, calls=each)
    return tally


async def _try(door: str, call: Call, world: World, tally: Tally, random: Random, *, who: str, calls: int) -> None:
    as_tool = door.startswith("mcp")
    offered = tools("full,keywords,connector") if as_tool else routes()
    for number in range(calls):
        capability = offered[number % len(offered)] if number < len(offered) else random.choice(offered)
        given = filled(capability, world, random, as_tool=as_tool)
        said = await call(capability, given)
        tally.note(door, capability.tool, json.dumps(given), said, world, who=who)


# the interfaces


@contextlib.asynccontextmanager
async def _serving(store: Path) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """Serve HTTP with a token for each unauthorised caller; yield the address and the tokens."""
    tokens = Tokens(tokens_file(store))
    secrets = {
        who: tokens.add(who, owner=owner, chat=chat, trust="user", access=("read", "write", "admin", "erase"))[1]
        for who, (owner, chat) in WHO.items()
    }
    async with _app(store, tokens, Caller(), Address(port=0)) as (urls, _):
        yield urls[0], secrets


@contextlib.asynccontextmanager
async def _app(
    store: Path, tokens: Tokens, socket_caller: Caller, address: Address
) -> AsyncIterator[tuple[list[str], Path | None]]:
    settings = Settings(durability="process")

    async def opened() -> Memory:
        return await Memory.open(store, embedder="hashing", model=ScriptedModel(extracted), settings=settings)

    calls = Dispatcher(opened())
    limits = Limits(rate=1e6, burst=1_000_000, seconds=300)
    app = build(calls, tokens, limits=limits, socket_caller=socket_caller, profile="full,keywords,connector")
    with listening(address) as (sockets, urls):
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
        running = asyncio.ensure_future(server.serve(sockets=sockets))
        while not server.started:  # noqa: ASYNC110  # uvicorn tells it in no other way
            await asyncio.sleep(0.01)
        try:
            yield urls, address.socket_path
        finally:
            server.should_exit = True
            await running


@contextlib.asynccontextmanager
async def _rest(url: str, secret: str) -> AsyncIterator[Call]:
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=300) as client:

        async def call(capability: Capability, given: dict[str, Any]) -> str:
            return (await client.post(f"/v1/{capability.method.rstrip('_')}", json=given)).text

        yield call


def _rpc_call(client: httpx.AsyncClient) -> Call:
    async def call(capability: Capability, given: dict[str, Any]) -> str:
        method = f"memory.{capability.method.rstrip('_')}"
        if method == "memory.search":
            given = {"query": given["text"], "limit": 100}
        elif method == "memory.add":
            given = {"content": given["text"]}
        elif method == "memory.list":
            given = {"limit": 1_000, "include_expired": True}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        return (await client.post("/rpc", json=message)).text

    return call


@contextlib.asynccontextmanager
async def _rpc(url: str, secret: str) -> AsyncIterator[Call]:
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=300) as client:
        yield _rpc_call(client)


@contextlib.asynccontextmanager
async def _rpc_over_a_socket(store: Path, owner: str, chat: str | None) -> AsyncIterator[Call]:
    """Serve the same store on a socket for this caller."""
    with tempfile.TemporaryDirectory() as folder:
        address = Address(port=None, socket_path=Path(folder) / "s")
        caller = Caller(owner=owner, chat=chat, trust="user")
        async with _app(store, Tokens(tokens_file(store)), caller, address):
            transport = httpx.AsyncHTTPTransport(uds=str(address.socket_path))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as client:
                yield _rpc_call(client)


def _tool_call(client: Client) -> Call:
    async def call(capability: Capability, given: dict[str, Any]) -> str:
        try:
            said = await client.call_tool(capability.tool, given)
        except MCPError as error:
            return str(error)
        if capability.method in ("get", "entity", "context"):  # resources use the same code paths
            return said.model_dump_json() + await _resource(client, next(iter(given.values())))
        return said.model_dump_json()

    return call


async def _resource(client: Client, given: object) -> str:
    told = ""
    for name in ("memory", "entity", "context"):
        try:
            told += (await client.read_resource(f"ricordo://{name}/{given}")).model_dump_json()
        except MCPError as error:
            told += str(error)
    return told


@contextlib.asynccontextmanager
async def _mcp_over_http(url: str, secret: str) -> AsyncIterator[Call]:
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {secret}"}) as web,
        Client(streamable_http_client(f"{url}/mcp", http_client=web)) as client,
    ):
        yield _tool_call(client)


@contextlib.asynccontextmanager
async def _mcp_over_stdio(store: Path, owner: str, chat: str | None) -> AsyncIterator[Call]:
    whose = ["--owner", owner, *(["--chat", chat] if chat else [])]
    options = ["--store", str(store), "--embedder", "hashing", "--profile", "full,keywords,connector"]
    program = StdioServerParameters(
        command=sys.executable, args=["-c", RUN, "mcp", *options, *whose], env=clean_environment()
    )
    async with Client(stdio_client(program)) as client:
        yield _tool_call(client)


# the command line, in this process


def try_command_line(store: Path, worlds: tuple[World, World], tally: Tally, *, calls: int, seed: int) -> None:
    """Run a number of command lines, spread evenly over callers and verbs."""
    lines = [(name, line) for name, tried in LINES.items() for line in tried]
    random, paused = Random(seed), {"ann": "", "eve": ""}
    for number in range(calls):
        who, options = sorted(OPTIONS.items())[number % len(OPTIONS)]
        is_ann = who.startswith("ann")
        world = worlds[1] if is_ann else worlds[0]
        name, line = lines[number] if number < len(lines) else random.choice(lines)
        words = line(world, random.randrange(1_000))
        with _said() as said:
            command_line(["--store", str(store), "--embedder", "hashing", "--json", *options, *words])
        asked, whose = " ".join(words), "ann" if is_ann else "eve"
        if name == "off-record":  # the list of pauses, in every chat, names the sessions that the caller gave
            paused[whose] += f" {asked.lower()}"
        known = paused[whose] if name in ("off-record", "on-record") else ""
        tally.note("command line", name, f"{asked}{known}", said(), world, who=who)


@contextlib.contextmanager
def _said() -> Iterator[Callable[[], str]]:
    """Capture what is written to both streams."""
    kept = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(kept), contextlib.redirect_stderr(kept):
        yield lambda: re.sub(r"\x1b\[[0-9;]*m", "", kept.buffer.getvalue().decode())  # type: ignore[attr-defined]


def try_all(folder: Path, *, calls: int, seed: int) -> Tally:
    """Make a number of calls, a sixth of them on the command line."""
    store = folder / "me.db"
    worlds = asyncio.run(fill(store, seed))
    on_command_line = calls // 6
    tally = asyncio.run(try_doors(store, worlds, calls=calls - on_command_line, seed=seed))
    try_command_line(store, worlds, tally, calls=on_command_line, seed=seed)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = try_all(Path(folder), calls=given.calls, seed=given.seed)
    for each in tally.canaries[:10]:
        sys.stderr.write(f"{each}\n")
    result = {
        "calls": tally.by_door.total(),
        "by door": dict(sorted(tally.by_door.items())),
        "tools, routes and verbs": len(tally.capabilities),
        "canaries seen": len(tally.canaries),
        "seed": given.seed,
        "seconds": round(time.monotonic() - started, 1),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()}",
    }
    text = json.dumps(result, indent=2)
    sys.stdout.write(f"{text}\n")
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    return int(bool(tally.canaries))


if __name__ == "__main__":
    sys.exit(main())
