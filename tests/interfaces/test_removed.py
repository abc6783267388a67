"""Every door says what was removed from a text before it was stored, or why it was not stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

from ricordo import InvalidError, Memory, Scope

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LONG = f"The deploy of the shop in Frankfurt runs at night and uses {KEY}"


async def test_a_refusal_says_what_is_left_without_the_credential(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        agent = memory.scoped(Scope(trust="agent"))
        with pytest.raises(InvalidError) as refused:
            await agent.remember("The router is in the hall, its password is Tr0ub4dor&3")
        said = str(refused.value)
        assert "credential (password)" in said and "The router is in the hall" in said and "--keep-secrets" in said
        assert "nothing but" not in said and "Tr0ub4dor" not in said


async def test_a_stored_memory_says_what_was_removed(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        kept = await memory.remember(LONG)
        assert kept.notice.startswith("Removed before it was stored: github token. ")
        assert (await memory.get(kept.id)).notice == ""
        assert (await memory.correct(kept.id, f"{LONG} and more")).notice.startswith("Removed")
        assert (await memory.remember("Ben drinks tea")).notice == ""
        whole = await memory.remember(f"The other key of the shop is {KEY}", keep_secrets=True)
        assert whole.notice == "" and KEY in whole.content


async def test_the_doors_of_a_server_say_what_was_removed(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        user = at.client(at.secret("me"))
        told = (await user.post("/v1/remember", json={"content": LONG})).json()
        assert "github token" in told["notice"] and told["closed_reason"] is None
        call = {"jsonrpc": "2.0", "id": 1, "method": "memory.add", "params": {"content": LONG.replace("night", "noon")}}
        assert "github token" in (await user.post("/rpc", json=call)).json()["result"]["notice"]
    async with connected(tmp_path / "me.db", profile="full") as client:
        told = await client.call_tool("remember_fact", {"content": LONG.replace("night", "dawn")})
        assert "Removed before it was stored: github token" in told.content[0].text


def test_the_command_line_says_what_was_removed(cli: Cli) -> None:
    assert "Removed before it was stored: github token" in cli("remember", LONG).err
    assert "Removed before it was stored: github token" in cli("add", LONG).err
    id = cli("remember", "Ben drinks tea", "--json").json["id"]
    assert "Removed before it was stored: github token" in cli("correct", id, LONG + " too").err
