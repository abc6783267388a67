"""`ricordo serve` as a process: shutdown, kill, socket, MCP over HTTP, and the thin client."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from tests.interfaces.conftest import RUN, Cli, clean_environment
from tests.interfaces.serving import Served, served
from tests.interfaces.test_mcp import read_everything, use_every_tool

from ricordo import sync
from ricordo.interfaces.catalog import tools
from ricordo.interfaces.http.tokens import FIRST_ACCESS, Tokens, tokens_file

THIN = "import sys; from ricordo.interfaces.sandbox_client import main; sys.exit(main())"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), "--profile", "full") as started:
        yield started


@asynccontextmanager
async def connected(server: Served, token: str, **headers: str) -> Any:
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}", **headers}) as web,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=web)) as client,
    ):
        yield client


def add_token(server: Served, name: str, *options: str) -> str:
    command = [sys.executable, "-c", RUN, "token", "add", name, "--store", str(server.store), *options]
    return subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=True).stdout.strip()


def test_created_files_are_private(server: Served) -> None:
    for path in (server.store, server.socket, *server.store.parent.glob("*token*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_the_sdks_client_uses_every_kind_of_thing_over_http(server: Served) -> None:
    async with connected(server, server.token) as client:
        listed = [each.name for each in (await client.list_tools()).tools]
        assert listed == [each.tool for each in tools("full") if each.right.access != "erase"]  # no permission
        kept = await client.call_tool("remember_fact", {"content": "Bob plays the cello", "about": ["Bob"]})
        found = await client.call_tool("search_memory", {"query": "who plays the cello?"})
        assert found.structured_content["hits"][0]["id"] == kept.structured_content["result"][0]["id"]
        assert found.structured_content["hits"][0]["origin"] == "agent"  # behind MCP is a model
        assert "cello" in (await client.read_resource("ricordo://entity/Bob")).contents[0].text
        assert "cello" in (await client.get_prompt("recall", {"topic": "Bob's cello"})).messages[0].content.text


@pytest.mark.slow
async def test_the_sdks_client_uses_every_tool_resource_and_prompt_over_http(tmp_path: Path) -> None:
    with served(tmp_path, "--profile", "full") as server:
        token = add_token(server, "all", "--trust", "agent", "--access", "read,write,admin,erase")
        async with connected(server, token) as client:
            listed = {each.name for each in (await client.list_tools()).tools}
            assert listed == {each.tool for each in tools("full")}
            await use_every_tool(client, listed)
            await read_everything(client)


async def test_a_token_binds_mcp_permissions_and_owner(server: Served) -> None:
    reader = add_token(server, "reader", "--owner", "bob", "--access", "read")
    async with connected(server, server.token) as mine:
        await mine.call_tool("remember_fact", {"content": "The locker code is 4711"})
        async with connected(server, reader) as client:
            offered = {each.name for each in (await client.list_tools()).tools}
            assert offered == {each.tool for each in tools("full") if each.right.access == "read"}
            found = await client.call_tool("search_memory", {"query": "locker code"})
            assert found.structured_content.get("hits", []) == []
            refused = await client.call_tool("remember_fact", {"content": "x"})
            assert refused.structured_content["error"]["code"] == "denied"


async def test_changes_are_streamed_and_a_client_comes_back(server: Served) -> None:
    token = add_token(server, "follower", "--owner", "carla", "--access", "read,write")
    async with httpx.AsyncClient(
        base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=20
    ) as client:

        async def follow(**headers: str) -> tuple[str, str]:
            async with client.stream("GET", "/v1/changes", params={"after": "0"}, headers=headers) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                lines = aiter(answer.aiter_lines())
                return await anext(lines), [await anext(lines) for _ in range(2)][-1]

        for text in ("Anna likes tea", "Ben likes milk"):
            assert (await client.post("/v1/remember", json={"content": text})).status_code == 200
        number, first = await follow()
        assert "Anna likes tea" in first
        _, second = await follow(**{"Last-Event-ID": number.removeprefix("id: ")})
        assert "Ben likes milk" in second
        assert (await client.get("/v1/changes?after=x")).status_code == 422


async def test_revoking_a_token_ends_its_open_streams(server: Served) -> None:
    token = add_token(server, "lost-phone", "--owner", "dora")
    async with httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=20) as lost:
        wanted = {"Accept": "application/json, text/event-stream"}
        who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who}
        session = (await lost.post("/mcp", json=hello, headers=wanted)).headers["mcp-session-id"]
        changes = asyncio.ensure_future(lost.get("/v1/changes?after=0"))
        listening = asyncio.ensure_future(lost.get("/mcp", headers={**wanted, "Mcp-Session-Id": session}))
        assert (await lost.post("/v1/remember", json={"content": "Said before"})).status_code == 200
        await asyncio.sleep(1.5)
        assert not changes.done() and not listening.done()
        Tokens(tokens_file(server.store)).revoke("lost-phone")
        other = add_token(server, "new-phone", "--owner", "dora")
        async with httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {other}"}) as kept:
            assert (await kept.post("/v1/remember", json={"content": "Said after"})).status_code == 200
        ended = await asyncio.wait_for(asyncio.gather(changes, listening), 5)
        assert [each.status_code for each in ended] == [200, 200]
        assert "Said before" in ended[0].text and "Said after" not in ended[0].text
        assert (await lost.post("/mcp", json=hello, headers=wanted)).status_code == 401


def test_an_mcp_session_belongs_to_its_token(server: Served) -> None:
    thief = add_token(server, "thief", "--owner", "thief")
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who}
    wanted = {"Accept": "application/json, text/event-stream"}
    with server.client() as mine:
        session = mine.post("/mcp", json=hello, headers=wanted).headers["mcp-session-id"]
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        held = {**wanted, "Mcp-Session-Id": session}
        assert mine.post("/mcp", json=ask, headers=held).status_code == 200
        stolen = {**held, "Authorization": f"Bearer {thief}"}
        for method in ("POST", "GET", "DELETE"):
            content = {"json": ask} if method == "POST" else {}
            assert mine.request(method, "/mcp", headers=stolen, **content).status_code == 404
        assert mine.post("/mcp", json=ask, headers=held).status_code == 200
    with httpx.Client(base_url=server.url) as nobody:
        assert nobody.post("/mcp", json=hello, headers=wanted).status_code == 401
        assert nobody.post("/mcp", json=hello, headers={**server.headers, "Host": "evil.example"}).status_code == 403


def _thin(server: Served, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**clean_environment(), **(environment or {"RICORDO_SOCKET": str(server.socket)})}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", THIN, *arguments], env=known, capture_output=True, text=True, timeout=60
    )


def test_the_thin_client_shows_few_memories_that_are_not_relevant(server: Served) -> None:
    facts = [
        f"The {colour} boat is in harbour {number}" for number, colour in enumerate(("red", "blue", "green", "old"))
    ]
    with server.client() as client:
        for fact in facts:
            assert client.post("/v1/remember", json={"content": fact}).status_code == 200
        found = client.post("/v1/search", json={"text": "who won the hockey championship?"}).json()["hits"]
    shown = _thin(server, "memory", "search", "who won the hockey championship?").stdout.splitlines()
    relevant = [place for place, hit in enumerate(found) if hit["is_relevant"] is not False]
    kept = min(len(found), (relevant[-1] + 1 if relevant else 0) + 3)
    assert len(found) > kept == len(shown) - 1
    assert shown[-1] == f"{len(found) - kept} more, probably not relevant: --limit {len(found)} shows all."
    assert (
        len(_thin(server, "memory", "search", "who won the hockey championship?", "--limit", "4").stdout.splitlines())
        == 4
    )


def test_parts_have_routes_and_an_unknown_method_a_hint(server: Served) -> None:
    with server.client() as client:
        assert client.post("/v1/context_parts", json={"prompt": "Where is the boat?"}).json().keys() >= {
            "sections",
            "tokens",
        }
        assert client.post("/v1/brief_parts", json={}).json().keys() >= {"sections", "tokens"}
        error = client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "search"}).json()["error"]
    assert error["code"] == -32601
    assert error["data"]["hint"] == "did you mean memory.search? methods are called memory.NAME"


def test_the_thin_client_over_a_socket_and_over_http(server: Served) -> None:
    token_file = str(server.store) + ".token"
    ways: tuple[dict[str, str], ...] = (
        {"RICORDO_SOCKET": str(server.socket), "RICORDO_USER_ID": "me"},
        {"RICORDO_URL": server.url, "RICORDO_TOKEN": server.token},
        {"RICORDO_URL": server.url, "RICORDO_TOKEN_FILE": token_file},
    )
    for number, way in enumerate(ways):
        fact = f"Carla's boat number {number} is red"
        added = _thin(server, "memory", "add", fact, "--subject", "Carla", "--expires-days", "9", **way)
        assert added.returncode == 0, added.stderr
        id, text = added.stdout.strip().split("  ", 1)
        assert text == f"{fact} (about Carla)"
        assert id in _thin(server, "memory", "search", f"boat number {number}", **way).stdout
        assert id in _thin(server, "memory", "list", "--limit", "50", "--json", **way).stdout
        assert _thin(server, "memory", "delete", id, **way).stdout == f"deleted {id}\n"
        assert id not in _thin(server, "memory", "list", **way).stdout
    socket = {"RICORDO_SOCKET": str(server.socket)}
    assert _thin(server, "memory", "delete", "nope").returncode == 3
    for wrong in ({"RICORDO_USER_ID": "ann"}, {"RICORDO_CHAT_ID": "team"}, {"RICORDO_TOKEN": "ric_wrong"}):
        assert _thin(server, "memory", "list", **socket, **wrong).returncode == 5
    assert _thin(server, "memory", "list", RICORDO_SOCKET="/nonexistent/s.sock").returncode == 6
    assert _thin(server, "memory", "list", RICORDO_URL="ftp://x").returncode == 2


def test_the_thin_client_shares_with_the_chat_and_shows_who_said_what(server: Served) -> None:
    ann, ben = (
        {"RICORDO_URL": server.url, "RICORDO_TOKEN": add_token(server, name, "--owner", name, "--chat", "thin")}
        for name in ("ann", "ben")
    )
    assert _thin(server, "memory", "add", "--shared", "I am away on Monday", **ann).returncode == 0
    assert _thin(server, "memory", "add", "Ann is sad", **ann).returncode == 0
    (line,) = _thin(server, "memory", "search", "who is away on Monday?", **ben).stdout.splitlines()
    assert line.partition("  ")[2] == "I am away on Monday (about ann) [ann, just now, in thin]"
    lines = _thin(server, "memory", "search", "what is the capital of Peru?", **ben).stdout.splitlines()
    assert all("probably not relevant]" in each for each in lines)


def test_the_thin_client_imports_no_heavy_modules() -> None:
    code = "import sys, ricordo.interfaces.sandbox_client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) & {"numpy", "apsw", "pydantic", "click", "rich", "mcp", "starlette", "ricordo.memory"} == set()


def test_shutdown_finishes_running_requests_and_cleans_up(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with served(tmp_path) as server:
        stop = threading.Event()

        def write(worker: int) -> None:
            with server.client() as client:
                number = 0
                while not stop.is_set():
                    try:
                        answer = client.post("/v1/add", json={"text": f"worker {worker} said {number}"})
                    except httpx.HTTPError:
                        return
                    if answer.status_code != 200:
                        return
                    acknowledged.append(answer.json())
                    number += 1

        workers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for each in workers:
            each.start()
        while len(acknowledged) < 50:
            assert server.process.poll() is None
        os.kill(server.process.pid, signal.SIGTERM)
        assert server.process.wait(timeout=120) == 0
        stop.set()
        for each in workers:
            each.join()
        assert not server.socket.exists()
        with pytest.raises(httpx.ConnectError), server.client() as client:
            client.get("/health")
    with sync.Memory.open(tmp_path / "me.db", embedder=None) as memory:
        assert [id for id in acknowledged if memory.get(id) is None] == []
        assert memory.doctor().ok


def test_shutdown_ends_streams_of_changes(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        with server.client() as client, client.stream("GET", "/v1/changes?after=0") as answer:
            assert answer.status_code == 200
            os.kill(server.process.pid, signal.SIGTERM)
            assert list(answer.iter_lines()) == []
        assert server.process.wait(timeout=120) == 0


@pytest.mark.slow
def test_a_kill_loses_no_acknowledged_write_on_any_interface(tmp_path: Path) -> None:
    for most in (5, 12, 30):
        acknowledged: list[str] = []
        with served(tmp_path) as server:
            asyncio.run(_write_until_killed(server, acknowledged, most=most))
            assert server.process.wait(timeout=120) == -signal.SIGKILL
        with sync.Memory.open(tmp_path / "me.db", embedder=None) as memory:
            assert len(acknowledged) >= most
            assert all(memory.get(id).id == id for id in acknowledged)
            assert memory.doctor().ok


async def _write_until_killed(server: Served, acknowledged: list[str], *, most: int) -> None:
    """Write and search concurrently; kill the server after a number of acknowledged writes."""

    async def asks(client: httpx.AsyncClient) -> None:
        await client.post("/v1/search", json={"text": "what was said?"})

    async def rest(client: httpx.AsyncClient) -> str:
        return str((await client.post("/v1/add", json={"text": "said over REST"})).json())

    async def rpc(client: httpx.AsyncClient) -> str:
        call = {"jsonrpc": "2.0", "id": 1, "method": "memory.add", "params": {"content": f"Fact {os.urandom(8).hex()}"}}
        return str((await client.post("/rpc", json=call)).json()["result"]["id"])

    async def work(way: Any) -> None:
        async with httpx.AsyncClient(base_url=server.url, headers=server.headers, timeout=120) as client:
            while True:
                try:
                    if (id := await way(client)) is not None:
                        acknowledged.append(id)
                except httpx.HTTPError:
                    return

    workers = [asyncio.ensure_future(work(way)) for way in (rest, rpc, asks, rest, rpc, asks)]
    while len(acknowledged) < most:
        await asyncio.sleep(0.003)
        assert not any(each.done() for each in workers)
    os.kill(server.process.pid, signal.SIGKILL)
    await asyncio.gather(*workers)


def test_an_address_that_other_machines_reach_is_told_to_be_unencrypted(cli: Cli) -> None:
    command = [sys.executable, "-c", RUN, "serve", "--store", str(cli.store), "--embedder", "none", "--port", "0"]
    for host, is_told in (("0.0.0.0", True), ("127.0.0.1", False)):
        with subprocess.Popen(
            [*command, "--host", host], env=clean_environment(), stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            port = said.strip().rpartition(":")[2]
            assert httpx.get(f"http://127.0.0.1:{port}/", timeout=120).status_code in (200, 403), "it is ready"
            process.terminate()
            said += process.stderr.read()
        assert ("no TLS" in said) == is_told, said


def test_an_unavailable_address_is_reported(cli: Cli, tmp_path: Path, server: Served) -> None:
    port = server.url.rpartition(":")[2]
    taken = cli.process("serve", "--port", port)
    assert taken.status == 6
    assert "is already in use" in taken.err
    busy = cli.process("serve", "--port", "-1", "--socket", str(server.socket))
    assert busy.status == 4
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert cli.process("serve", "--port", "-1", "--socket", str(tmp_path / "file")).status == 4
    assert cli.process("serve", "--port", "-1").status == 2
    assert cli.process("serve", "--port", "70000").status == 2
    assert cli.process("serve", "--store", ":memory:", "--port", "0").status == 2


def test_tokens_are_added_listed_and_revoked_on_the_command_line(cli: Cli) -> None:
    made = cli("token", "add", "phone", "--owner", "ann", "--access", "read", "--json").json
    assert made["token"].startswith("ric_")
    assert {name: made[name] for name in ("name", "owner", "access", "trust")} == {
        "name": "phone",
        "owner": "ann",
        "access": ["read"],
        "trust": "user",
    }
    listed = cli("token", "list", "--json").json
    assert [each["name"] for each in listed] == ["phone"]
    assert "token" not in listed[0] and "digest" not in listed[0]
    assert cli("token", "add", "phone").status == 4
    assert cli("token", "add", "x", "--access", "everything").status == 2
    assert cli("token", "revoke", "phone").status == 0
    assert cli("token", "revoke", "phone").status == 3
    assert cli("token", "add").status == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_token_that_root_adds_leaves_the_tokens_to_the_user_of_the_server(tmp_path: Path) -> None:
    tokens = Tokens(tokens_file(tmp_path / "m.db"))
    (tmp_path / "m.db").touch()
    os.chown(tmp_path / "m.db", 65534, 65534)
    for name in ("ann", "ben"):
        tokens.add(name, owner=name, chat=None, trust="user", access=FIRST_ACCESS)
        assert tokens.file.stat().st_uid == 65534
