"""The HTTP server: authentication, refusals, and no access to other owners on any path."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.interfaces.serving import BASE, House, house

from ricordo import DeniedError, InvalidError, StoreError
from ricordo.interfaces.catalog import Capability, routes
from ricordo.interfaces.http.app import Rpc
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.http.server import Address, listening
from ricordo.interfaces.http.tokens import Tokens, checked_access, tokens_file
from ricordo.interfaces.schema import input_schema, path_of
from ricordo.language import ScriptedModel

CANARY = "zyzzyva-4711"
JSON = {"Content-Type": "application/json"}
OTHERS = [("GET", "/health"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("POST", "/rpc"), ("POST", "/v1/import")]
PATHS = [
    *(("POST", path_of(each)) for each in routes()),
    *OTHERS,
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
]
UNKNOWN = ("GET", "/nonsense")


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path / "me.db") as built:
        yield built


async def call(client: httpx.AsyncClient, method: str, **arguments: Any) -> Any:
    answer = await client.post(f"/v1/{method}", json=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def filled(capability: Capability, text: str) -> dict[str, Any]:
    """Valid arguments that refer to data of another owner."""
    given: dict[str, Any] = {}
    schema = input_schema(capability, as_tool=False)
    for name in schema.get("required", ()):
        kinds = [schema["properties"][name], *schema["properties"][name].get("anyOf", ())]
        kind = next(each for each in kinds if "type" in each or "enum" in each)
        if "enum" in kind:
            given[name] = kind["enum"][0]
        elif kind["type"] == "array":
            given[name] = [] if "$ref" in kind["items"] else [text]
        else:
            given[name] = text if kind["type"] == "string" else 1
    return given


async def test_requests_without_token_or_from_other_origins_are_refused(at: House) -> None:
    secret = at.secret("ann")
    for expected, client in (
        (401, at.client(None)),
        (401, at.client("ric_wrong")),
        (401, at.client(None, Authorization=f"Basic {secret}")),
        (401, at.client(None, Authorization=secret)),
        (403, at.client(secret, Host="evil.example")),
        (403, at.client(secret, Host="127.0.0.1.evil.example:7411")),
        (403, at.client(secret, Host="")),
        (403, at.client(secret, Origin="https://evil.example")),
        (403, at.client(secret, Origin="null")),
        (403, at.client(secret, Origin="http://localhost.evil.example")),
    ):
        for method, path in (*PATHS, UNKNOWN):
            answer = await client.request(method, path, content=b"{}", headers=JSON)
            assert answer.status_code == expected, (method, path, client.headers)
            assert set(answer.json()["error"]) == {"code", "message", "hint"}
    for each in routes():
        assert (await at.client(None).post("/rpc", json=rpc(f"memory.{each.method}"))).status_code == 401
    for good in ({}, {"Host": "localhost:7411"}, {"Host": "[::1]:7411"}, {"Origin": "http://127.0.0.1:7411"}):
        assert (await at.client(secret, **good).get("/health")).json() == {"status": "ok"}


async def test_a_socket_is_shown_by_its_path(at: House) -> None:
    assert (await at.client(None, base="http://127.0.0.1").get("/health")).status_code == 401


async def test_callers_erase_their_own_memory_and_nobody_elses(at: House) -> None:
    for owner in ("ann", "ben"):
        client = at.client(at.secret(f"{owner}-write", owner=owner, access=["read", "write"]))
        assert (await client.post("/v1/remember", json={"content": f"{owner} keeps bees"})).status_code == 200
    for name, access, owner, expected in (
        ("a", ["read", "write"], "ann", 403),
        ("b", ["admin", "erase"], "ben", 403),
        ("c", ["erase"], "ann", 200),
    ):
        client = at.client(at.secret(name, owner="ann", access=access))
        answer = await client.post("/v1/erase", json={"owner": owner})
        assert answer.status_code == expected, answer.text
    for owner, kept in (("ann", 0), ("ben", 1)):
        client = at.client(at.secret(f"{owner}-read", owner=owner, access=["read"]))
        assert len((await client.post("/v1/list", json={})).json()["nodes"]) == kept


async def test_a_token_is_limited_to_its_permissions(at: House) -> None:
    clients = {
        access: at.client(at.secret(access, owner="ann", access=[access])) for access in ("read", "write", "admin")
    }
    for capability in routes():
        given = filled(capability, "nothing")
        method = f"memory.{capability.method.rstrip('_')}"
        for access, client in clients.items():
            plain = await client.post(path_of(capability), json=given)
            called = await client.post("/rpc", json=rpc(method, **given))
            allowed = access == capability.right.access
            assert (plain.status_code == 403) == (not allowed), (capability.method, access, plain.text)
            if method not in ("memory.add", "memory.search", "memory.list"):
                assert (called.status_code == 403) == (not allowed), (capability.method, access, called.text)
    assert (await clients["read"].get("/metrics")).status_code == 403
    assert (await clients["read"].post("/v1/import", content=b"x")).status_code == 403
    assert (await clients["read"].post("/rpc", json=rpc("memory.add", content="x"))).status_code == 403
    assert (await clients["read"].post("/rpc", json=rpc("memory.delete", memory_id="x"))).status_code == 403
    assert (await clients["write"].post("/rpc", json=rpc("memory.search", query="x"))).status_code == 403


async def test_other_owners_look_absent_on_every_route_and_rpc_method(at: House) -> None:
    ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
    node = await call(ann, "remember", content=f"Zenobia's locker is {CANARY}", about=["Zenobia"])
    await call(ann, "add", text=f"I told you, {CANARY}", session="s1")
    seen = []
    for capability in routes():
        for text in (node["id"], node["id"][-8:], "Zenobia", "s1"):
            given = filled(capability, text)
            answers = [
                await bob.post(path_of(capability), json=given),
                await bob.post("/rpc", json=rpc(f"memory.{capability.method.rstrip('_')}", **given)),
            ]
            if "id" in given:
                assert [each.status_code for each in answers] == [404, 404], (capability.method, answers[0].text)
            seen += [each.text for each in answers]
    for method, params in (
        ("memory.search", {"query": CANARY}),
        ("memory.list", {"include_expired": True}),
        ("memory.add", {"content": "Zenobia sings", "subjects": ["Zenobia"]}),
    ):
        seen.append((await bob.post("/rpc", json=rpc(method, **params))).text)
    assert (await bob.post("/rpc", json=rpc("memory.delete", memory_id=node["id"]))).status_code == 404
    assert [text for text in seen if CANARY in text] == []
    assert (await call(ann, "get", id=node["id"]))["closed_at"] is None


@pytest.mark.parametrize("param", ["owner", "chat", "scope", "user_id", "origin", "trust", "all_owners", "progress"])
async def test_no_route_accepts_an_identity(at: House, param: str) -> None:
    bob = at.client(at.secret("bob"))
    for capability in routes():
        answer = await bob.post(path_of(capability), json={**filled(capability, "x"), param: "ann"})
        only_own = (capability.method, param) == ("erase", "owner")
        assert answer.status_code == (403 if only_own else 422), (capability.method, answer.text)
        assert param in answer.json()["error"]["message"]


async def test_what_is_stored_names_the_facts_it_may_make_out_of_date(at: House) -> None:
    ann = at.client(at.secret("ann"))
    old = await call(ann, "remember", content="I work as a waiter")
    new = await call(ann, "remember", content="I work as a singer")
    (older,) = new["outdates"]
    assert (older["id"], older["content"], older["is_closed"]) == (old["id"], "I work as a waiter", False)
    assert old["outdates"] == [] and older["review"] == (await call(ann, "review"))[0]["id"]


async def test_spending_is_told_to_its_owner_only(tmp_path: Path) -> None:
    fact = {"text": "The user likes tea", "kind": "preference", "category": "preference", "about": [], "slot": ""}
    fact |= {"evidence": ["e1"], "said": True, "confidence": 0.9}
    model = ScriptedModel([{"facts": [fact]}])
    async with house(tmp_path / "me.db", model=model) as built:
        ann, bob = (built.client(built.secret(name)) for name in ("ann", "bob"))
        await call(ann, "add", text="I like tea.", session="s1")
        run = await call(ann, "consolidate", session="s1")
        (use,) = await call(ann, "spending")
        assert (use["model"], use["runs"], use["owner"]) == ("scripted", 1, "ann")
        assert use["tokens_in"] == run["tokens_in"] > 0 and use["tokens_out"] == run["tokens_out"] > 0
        assert await call(bob, "spending") == []


async def test_a_run_is_named_by_its_id_only(at: House) -> None:
    client = at.client(at.secret("ann"))
    whole = {"id": "x", "kind": "replay", "state": "proposed", "prompt": "", "started_at": "x", "ended_at": "x"}
    assert (await client.post("/v1/accept", json={"run": whole})).status_code == 422
    assert (await client.post("/v1/accept", json={"run": "x"})).status_code == 404


async def test_rpc_user_and_chat_must_match_the_caller(at: House) -> None:
    ann = at.client(at.secret("ann", chat="team"))
    for method, params in (
        ("memory.search", {"query": "x"}),
        ("memory.add", {"content": "Tea is at five"}),
        ("memory.list", {}),
        ("memory.stats", {}),
    ):
        good = await ann.post("/rpc", json=rpc(method, user_id="ann", chat_id="team", **params))
        assert good.status_code == 200, good.text
        for wrong in ({"user_id": "bob"}, {"chat_id": "other"}, {"user_id": ""}):
            refused = await ann.post("/rpc", json=rpc(method, **wrong, **params))
            assert (refused.status_code, refused.json()["error"]["data"]["code"]) == (403, "denied")


async def test_in_a_teams_chat_each_door_says_who_said_it(at: House) -> None:
    ann, ben = (at.client(at.secret(name, chat="team")) for name in ("ann", "ben"))
    await ann.post("/v1/add", json={"text": "I am allergic to walnuts."})
    await ann.post("/v1/add_many", json={"messages": [{"text": "I have a dog called Rex."}]})
    await ann.post("/rpc", json=rpc("memory.remember", content="I work from Lisbon", shared=True))
    for client, who in ((ben, "ann"), (ann, None)):
        for asked in ("what am I allergic to?", "what is my dog called?", "where do I work from?"):
            (best, *_) = (await client.post("/v1/search", json={"text": asked})).json()["hits"]
            assert best["speaker"] == who, best
        told = (await client.post("/rpc", json=rpc("memory.context", prompt="Am I allergic to walnuts?"))).json()
        assert f"{who or 'user'} (" in told["result"]


async def test_the_main_text_may_be_called_text_everywhere(at: House) -> None:
    ann = at.client(at.secret("ann"))
    for route in ("add", "remember", "search", "context", "ask"):
        done = await ann.post(f"/v1/{route}", json={"text": "The boat is red"})
        assert done.status_code == 200, (route, done.text)
    assert (await ann.post("/v1/add", json={"content": "hello", "session": "s"})).status_code == 200
    assert (await ann.post("/v1/session", json={"session": "s"})).status_code == 200


async def test_the_calls_of_a_sandbox(at: House) -> None:
    ann = at.client(at.secret("ann"))

    async def result(method: str, **params: Any) -> Any:
        return (await ann.post("/rpc", json=rpc(method, **params))).json()["result"]

    node = await result("memory.add", content="Sarah likes tea", subjects=["Sarah"], expires_days=14, source="rpc")
    assert (node["origin"], node["about"], node["expires_at"][:4]) == ("rpc", ["Sarah"], node["created_at"][:4])
    assert (await result("memory.search", query="tea", limit=3))["hits"][0]["id"] == node["id"]
    assert [each["id"] for each in (await result("memory.list", limit=5))["nodes"]] == [node["id"]]
    assert await result("memory.delete", memory_id=node["id"]) == {"memory_id": node["id"], "deleted": True}
    assert (await result("memory.list", include_expired=True))["nodes"] == []
    assert (await result("memory.explain", id=node["id"]))["node"]["closed_reason"] == "forgotten"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b"1", 400, -32600),
        (b'{"jsonrpc": "1.0"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "memory.stats"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory.nonsense"}', 404, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory.stats", "params": []}', 422, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory.search", "params": {"query": 5}}', 422, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory.search", "params": {"query": " "}}', 422, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory.get", "params": {"id": "nope"}}', 404, -32004),
    ],
)
async def test_rpc_reports_errors(at: House, body: bytes, status: int, code: int) -> None:
    answer = await at.client(at.secret("ann")).post("/rpc", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_rpc_takes_batches_and_notifications(at: House) -> None:
    ann = at.client(at.secret("ann"))
    batch = [rpc("memory.add", content="Tea is at five"), {**rpc("memory.stats"), "id": "b"}, rpc("memory.nonsense")]
    told = (await ann.post("/rpc", json=batch)).json()
    assert [("error" in each, each["id"]) for each in told] == [(False, 1), (False, "b"), (True, 1)]
    silent = {name: value for name, value in rpc("memory.add", content="Cake is at six").items() if name != "id"}
    quiet = await ann.post("/rpc", json=silent)
    assert (quiet.status_code, quiet.content) == (204, b"")
    assert (await call(ann, "stats"))["nodes"]["semantic"] == 2
    assert (await ann.post("/rpc", json=[rpc("memory.stats")] * 51)).status_code == 400
    assert set(Rpc(None).methods) >= {"memory.delete", *(f"memory.{each.method.rstrip('_')}" for each in routes())}  # type: ignore[arg-type]


async def test_a_question_is_no_fact(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        ann = at.client(at.secret("ann"))
        told = {"content": "Where did I park?"}
        calls = ("/v1/remember", told), ("/rpc", rpc("memory.remember", **told)), ("/rpc", rpc("memory.add", **told))
        for path, given in calls:
            refused = (await ann.post(path, json=given)).json()["error"]
            assert "content: a question states no fact" in refused["message"], path
        assert await call(ann, "remember", content="I asked where I parked")


async def test_limits_on_size_kind_time_and_rate(tmp_path: Path) -> None:
    async with house(tmp_path / "a.db", limits=Limits(body_bytes=1_000, upload_bytes=2_000, rate=1, burst=1_000)) as at:
        ann = at.client(at.secret("ann"))
        for path, size in (("/v1/remember", 1_001), ("/rpc", 1_001), ("/v1/import", 2_001), ("/mcp", 1_001)):
            if path != "/mcp":
                assert (await ann.post(path, content=b" " * size, headers=JSON)).status_code == 413
                assert (await ann.post(path, content=_pieces(size), headers=JSON)).status_code == 413
        wrong = await ann.post("/v1/remember", content=b"x", headers={"Content-Type": "text/plain"})
        assert (wrong.status_code, "Content-Type: application/json" in wrong.json()["error"]["hint"]) == (415, True)
        assert (await ann.post("/v1/remember", content=b"\xff", headers=JSON)).status_code == 422
        assert (await ann.get("/v1/remember")).status_code == 405
        assert (await ann.get("/nonsense")).json()["error"]["code"] == "not_found"
    async with house(tmp_path / "b.db", limits=Limits(rate=0.001, burst=3)) as at:
        ann, bob = at.client(at.secret("ann")), at.client(at.secret("bob"))
        assert [(await ann.get("/health")).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
        assert (await bob.get("/health")).status_code == 200  # each caller has its own
        assert [(await at.client("ric_guess").get("/health")).status_code for _ in range(4)] == [401, 401, 401, 429]
    async with house(tmp_path / "c.db", limits=Limits(seconds=0.0001)) as at:
        late = await at.client(at.secret("ann")).post("/v1/stats")
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")


async def _pieces(size: int) -> AsyncIterator[bytes]:
    """A body without a Content-Length."""
    for _ in range(size):
        yield b" "


async def test_an_upload_reports_progress_and_a_result(at: House) -> None:
    ann = at.client(at.secret("ann"))
    turns = [{"role": "user", "text": f"turn {number}", "time": "2026-01-01T10:00:00Z"} for number in range(1_500)]
    file = "".join(json.dumps(turn) + "\n" for turn in turns).encode()
    events = (await ann.post("/v1/import", content=file, headers={"Accept": "text/event-stream"})).text
    told = [block.split("\n") for block in events.strip().split("\n\n") if block.startswith("event")]
    assert told[0][0] == "event: progress", events[:500]
    assert json.loads(told[-1][1].removeprefix("data: "))["added"] == 1_500
    again = await ann.post("/v1/import?format=chat&dry_run=false", content=file)
    assert (again.status_code, again.json()["known"]) == (200, 1_500)
    for bad in ("?format=nonsense", "?dry_run=perhaps", "?path=/etc/passwd"):
        assert (await ann.post(f"/v1/import{bad}", content=file)).status_code == 422
    refused = (await ann.post("/v1/import?format=chat", content=b"nonsense")).json()["error"]["message"]
    assert refused.startswith("upload ")  # and not a path of the server
    failed = (await ann.post("/v1/get", json={"id": "nope"}, headers={"Accept": "text/event-stream"})).text
    assert failed.startswith("event: error") and "not_found" in failed


async def test_an_upload_is_private_unless_it_is_shared_and_says_so(at: House) -> None:
    ben, dora = (at.client(at.secret(who, owner=who, chat="team")) for who in ("ben", "dora"))
    nils = b"[01.02.24, 15:04:00] Nils: The boat is called Seeschwalbe\n[01.02.24, 15:05:00] Ben: Fine\n"
    mum = b"[01.02.24, 15:04:00] Mum: Your test was positive\n[01.02.24, 15:05:00] Ben: Fine\n"
    tried = (await ben.post("/v1/import?me=Ben&dry_run=true", content=mum)).json()
    private = (await ben.post("/v1/import?me=Ben&name=WhatsApp%20Chat%20with%20Mum.txt", content=mum)).json()
    shared = (await ben.post("/v1/import?me=Ben&shared=true", content=nils)).json()
    assert [(each["added"], each["chat"]) for each in (tried, private, shared)] == [(3, ""), (3, ""), (2, "team")]
    assert sorted(each["title"] for each in (await call(ben, "sessions"))) == ["Ben, Nils", "Mum"]
    assert [each["id"] for each in (await call(dora, "sessions"))] == ["whatsapp/Ben, Nils"]


async def test_uploaded_documents_are_told_apart_by_name(at: House) -> None:
    ann = at.client(at.secret("ann"))
    for name, text in (("a.html", b"<p>The gate is blue</p>"), ("b.html", b"<p>The boat is red</p>")):
        assert (await ann.post(f"/v1/import?name=..%2F{name}", content=text)).json()["passages"] == 1
    assert sorted(each["id"] for each in (await call(ann, "documents"))) == ["a.html", "b.html"]
    for bad in ("?format=document", "?name=..", "?name=a%00b", "?shared=perhaps"):
        assert (await ann.post(f"/v1/import{bad}", content=b"The boat is red")).status_code == 422


async def test_metrics_count_routes_and_contain_no_content(at: House) -> None:
    ann = at.client(at.secret("ann"))
    await call(ann, "remember", content=CANARY)
    await ann.get(f"/{CANARY}")
    text = (await ann.get("/metrics")).text
    assert 'ricordo_requests_total{route="/v1/remember",status="200"} 1' in text
    assert 'ricordo_requests_total{route="other",status="404"} 1' in text
    assert 'ricordo_request_seconds_bucket{route="/v1/remember",le="+Inf"} 1' in text
    assert CANARY not in text


async def test_an_internal_error_is_a_500_without_details(at: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from ricordo import Memory

    async def broken(self: Memory) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(Memory, "stats", broken)
    from ricordo.interfaces import schema as arguments

    for cached in (arguments.parameters, arguments.argument_model):
        cached.cache_clear()
    ann = at.client(at.secret("ann"))
    for answer in (await ann.post("/v1/stats"), await ann.post("/rpc", json=rpc("memory.stats"))):
        assert answer.status_code == 500
        assert CANARY not in answer.text


async def test_a_revoked_token_stops_working_and_no_secret_is_stored(at: House) -> None:
    secret = at.secret("ann")
    ann = at.client(secret)
    assert (await ann.get("/health")).status_code == 200
    text = at.tokens.file.read_text("utf-8")
    assert secret not in text
    assert stat.S_IMODE(at.tokens.file.stat().st_mode) == 0o600
    Tokens(at.tokens.file).revoke("ann")  # as another process does
    assert (await ann.get("/health")).status_code == 401
    at.tokens.file.write_text("{", encoding="utf-8")
    assert (await ann.get("/health")).status_code == 500
    with pytest.raises(StoreError, match="cannot be read"):
        at.tokens.all()


def test_meaningless_token_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError):
        checked_access(["everything"])
    with pytest.raises(InvalidError):
        checked_access([])
    with pytest.raises(InvalidError):
        tokens_file(":memory:")
    tokens = Tokens(tmp_path / "tokens.json")
    with pytest.raises(InvalidError):
        tokens.add("x", owner="ann", chat=None, trust="nobody", access=["read"])  # type: ignore[arg-type]


async def test_writes_of_low_trust_tokens_are_marked(at: House) -> None:
    web = at.client(at.secret("crawler", owner="ann", trust="web"))
    mine = at.client(at.secret("ann"))
    assert (await call(web, "remember", content="The earth is flat"))["origin"] == "web"
    assert [each["origin"] for each in await call(web, "remember_many", facts=[{"content": "Cats bark"}])] == ["web"]
    forged = await web.post("/rpc", json=rpc("memory.add", content="Dogs meow", source="user"))
    assert forged.json()["result"]["origin"] == "web"
    assert (await call(mine, "remember", content="Tea is at five"))["origin"] == "user"


async def test_concurrent_callers_see_only_their_own_data(at: House) -> None:
    names = [f"user{number}" for number in range(8)]
    clients = {name: at.client(at.secret(name)) for name in names}

    async def live(name: str) -> None:
        for number in range(6):
            await call(clients[name], "remember", content=f"The code of {name} is {name}-{number}")
        found = await call(clients[name], "search", text="code", limit=50)
        assert {hit["content"].split()[3] for hit in found["hits"]} == {name}

    await asyncio.gather(*(live(name) for name in names))


def test_permissions_are_distinguished() -> None:
    from ricordo.interfaces.call import Caller

    with pytest.raises(DeniedError, match="erase"):
        Caller(access=frozenset({"read", "write"})).require("erase")
    assert BASE.endswith("7411")


async def test_the_first_page_and_the_reference_need_no_token_and_no_network(at: House) -> None:
    async with at.client(None) as client:
        welcome = await client.get("/")
        assert welcome.status_code == 200
        assert 'href="/docs"' in welcome.text
        page = await client.get("/docs")
        assert page.status_code == 200
        assert "<script" not in page.text
        assert "http://" not in page.text
        assert "https://" not in page.text
        for each in routes():
            assert f"POST {path_of(each)}<" in page.text
        assert (await client.get("/", headers={"Host": "evil.example"})).status_code == 403
        assert (await client.post("/docs")).status_code == 401


async def test_a_parameter_is_known_under_its_names_at_other_doors(at: House) -> None:
    async with at.client(at.secret("ann")) as client:
        await call(client, "remember", text="Ann likes tea", tags="a, b")
        for name in ("text", "query", "question"):
            assert (await call(client, "search", **{name: "tea"}))["hits"]
        wrong = await client.post("/v1/search", json={"words": "tea"})
        assert wrong.status_code == 422
        assert "/v1/search takes text, " in wrong.json()["error"]["hint"]


def test_a_client_that_comes_as_soon_as_the_address_is_known_is_not_refused() -> None:
    with listening(Address(port=0)) as (sockets, _):
        socket.create_connection(sockets[0].getsockname(), timeout=60).close()
