"""What is only proposed is called so at every door, with who proposed it, and is decided at every door."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.interfaces.conftest import RUN, clean_environment
from tests.interfaces.serving import Served, house, served
from tests.interfaces.test_mcp import connected

from ricordo import Memory
from ricordo.interfaces.call import PROPOSING

THIN = "import sys; from ricordo.interfaces.sandbox_client import main; sys.exit(main())"
PROPOSES = ("read", "propose")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served")) as running:
        yield running


def run(code: str, server: Served, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**clean_environment(), "RICORDO_STORE": str(server.store), "RICORDO_URL": server.url, **environment}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, env=known, capture_output=True, text=True, timeout=60)


def token(server: Served, name: str, *options: str) -> str:
    added = run(RUN, server, "token", "add", name, "--owner", "me", *options)
    assert added.returncode == 0, added.stderr
    return added.stdout.strip()


@pytest.fixture(scope="module")
def agent(server: Served) -> str:
    return token(server, "agent", "--trust", "agent", "--access", "read,propose")


def test_the_client_command_says_what_waits_and_where_it_is_decided(server: Served, agent: str) -> None:
    with server.client() as client:
        kept = client.post("/v1/remember", json={"content": "Ben drinks tea"}).json()
    gone = run(THIN, server, "memory", "delete", kept["id"], RICORDO_TOKEN=agent).stdout
    assert gone.startswith(f"not deleted {kept['id']}: proposal ") and "waits for approval" in gone
    assert "`ricordo quarantine`" in gone
    added = run(THIN, server, "memory", "add", "Anna is a nurse", RICORDO_TOKEN=agent).stdout
    assert added.startswith("not stored yet: ") and "waits for approval" in added
    assert "tea" in run(THIN, server, "memory", "list", RICORDO_TOKEN=agent).stdout
    mine = run(THIN, server, "memory", "delete", kept["id"], RICORDO_TOKEN=server.token).stdout
    assert mine == f"deleted {kept['id']}\n"


def test_the_client_command_says_that_nothing_is_stored_off_the_record(server: Served) -> None:
    with server.client() as client:
        client.post("/v1/off_record", json={})
        said = run(THIN, server, "memory", "add", "Anna has a secret", RICORDO_TOKEN=server.token).stdout
        client.post("/v1/on_record", json={})
    assert said.startswith("not stored: Anna has a secret (off the record")


def test_an_outbox_says_what_was_delivered_and_waits(server: Served, agent: str, tmp_path: Path) -> None:
    away = {"RICORDO_OUTBOX": str(tmp_path / "box"), "RICORDO_TOKEN": agent, "RICORDO_URL": server.url}
    kept = run(THIN, server, "memory", "add", "Cem rows", **{**away, "RICORDO_SOCKET": str(tmp_path / "no.sock")})
    assert "Kept for later" in kept.stderr
    (file,) = (tmp_path / "box").glob("*.json")
    file.write_text(file.read_text().replace(str(tmp_path / "no.sock"), server.url))
    sent = run(THIN, server, "outbox", "send", **away)
    assert sent.stdout == "1 delivered (1 not stored yet: approval is needed), 0 waiting.\n"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("remember", {"content": "Anna is a vet"}),
        ("remember_many", {"facts": [{"content": "Anna is a pilot"}]}),
        ("correct", {"content": "Ben drinks coffee"}),
        ("update", {"tags": ["drinks"]}),
        ("forget", {"reason": "he does not"}),
    ],
)
async def test_every_answer_about_a_proposal_says_that_it_waits(
    tmp_path: Path, name: str, given: dict[str, object]
) -> None:
    async with house(tmp_path / "me.db") as at:
        bot = at.client(at.secret("bot", owner="me", trust="agent", access=PROPOSES))
        user = at.client(at.secret("me"))
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        assert kept["notice"] == ""
        about = {} if name.startswith("remember") else {"id": kept["id"]}
        told = (await bot.post(f"/v1/{name}", json={**about, **given})).json()
        told = told[0] if isinstance(told, list) else told
        assert "waits for approval" in told["notice"] and told["closed_reason"] == "quarantined"
        assert (await user.post("/v1/get", json={"id": kept["id"]})).json()["content"] == "Ben drinks tea"


async def test_what_was_refused_before_does_not_wait_again(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        held = await memory.remember("The museum opens at ten", origin="web")
        assert "waits for approval" in held.notice
        assert "waits for approval" in (await memory.remember("The museum opens at ten", origin="web")).notice
        await memory.refuse((await memory.review())[0])
        assert "was refused before" in (await memory.remember("The museum opens at ten", origin="web")).notice


async def test_the_page_does_not_say_that_a_proposal_is_done(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        user = at.client(at.secret("me"))
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        secret = at.secret("bot", owner="me", access=PROPOSES)
        visitor = at.client(None)
        await visitor.post("/page/enter", headers={"Authorization": f"Bearer {secret}"})
        shown = (await visitor.get("/page/memory", params={"id": kept["id"]})).text
        csrf = shown.split('name="csrf" value="')[1].split('"')[0]
        given = {"csrf": csrf, "id": kept["id"]}
        done = await visitor.post("/page/memory/forget", data=given, headers={"Origin": "http://127.0.0.1:7411"})
        page = (await visitor.get(done.headers["location"])).text
        assert "Nothing changes until it is approved" in page and "no answer contains it" not in page
