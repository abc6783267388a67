"""A proposed merge is shown and decided at every door: command line, MCP, HTTP and page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house
from tests.interfaces.test_mcp import connected

FACTS = (("Sarah rows with Kai Wolf", "Sarah"), ("On Mondays Kai Wolf sees his dentist, Sarah Miller", "Sarah Miller"))


async def tell(memory: Any) -> None:
    for text, name in FACTS:
        await memory.remember(text, about=[name, "Kai Wolf"])
    await memory.settle(600)


def test_the_command_line_shows_why_and_what_would_be_joined(cli: Cli) -> None:
    for text, name in FACTS:
        cli("remember", text, "--about", name, "--about", "Kai Wolf")
    shown = cli("review").out
    assert "Sarah and Sarah Miller are the same person" in shown and "both with: Kai Wolf" in shown
    assert "Sarah rows with Kai Wolf" in shown and "into Sarah Miller (" in shown
    (item,) = cli("review", "--json").json["reviews"]
    assert [each["name"] for each in item["entities"]] == ["Sarah Miller", "Sarah"]
    assert cli("resolve", item["id"], "keep both", "--json").status == 2
    assert cli("resolve", item["id"][-8:], "refuse").out.startswith("Kept apart: Sarah and Sarah Miller.\n`")
    assert cli("review").out == "Nothing to decide.\n"
    cli("undo", str(cli("log", "--json").json["commits"][0]["seq"]))
    assert cli("resolve", item["id"][-8:], "approve").out.startswith("Merged: Sarah is now Sarah Miller.\n`")


async def test_an_agent_reads_the_reasons_and_decides(tmp_path: Path) -> None:
    async with connected(tmp_path / "me.db", profile="full") as client:
        for text, name in FACTS:
            await client.call_tool("remember_one", {"content": text, "about": [name, "Kai Wolf"]})
        found = await client.call_tool("list_reviews", {})
        text = found.content[0].text
        assert "because: one name is part of the other, both with: Kai Wolf" in text
        (review,) = found.structured_content["result"]
        await client.call_tool("resolve_review", {"item": review["id"], "decision": "approve"})
        assert (await client.call_tool("list_reviews", {})).structured_content["result"] == []


async def test_http_lists_and_decides(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        await tell(await at.app.page.dispatcher.opened())
        client = at.client(at.secret("a", owner="me", trust="user"))
        (review,) = (await client.post("/v1/review", json={"kind": "merge"})).json()
        assert [each["name"] for each in review["entities"]] == ["Sarah Miller", "Sarah"]
        decided = await client.post("/v1/resolve", json={"item": review["id"], "decision": "refuse"})
        assert decided.json()["decision"] == "refuse"
        assert (await client.post("/v1/review", json={"kind": "merge"})).json() == []


@pytest.mark.parametrize(("decision", "notice"), [("approve", "They are one now."), ("refuse", "Kept apart.")])
async def test_the_inbox_previews_decides_and_offers_undo(tmp_path: Path, decision: str, notice: str) -> None:
    pytest.importorskip("jinja2", reason="the extra `server` is not installed")
    from tests.page.doors import signed_in

    async with house(tmp_path / "me.db") as at:
        memory = await at.app.page.dispatcher.opened()
        await tell(memory)
        browser = await signed_in(at)
        page = (await browser.open("/page/inbox")).text
        assert "Probably the same" in page and "both named with: Kai Wolf" in page
        keys = re.findall(r'value="(approve|refuse)" data-key="(.)"', page)
        assert keys == [("approve", "a"), ("refuse", "x")]
        keep, other = (await memory.review(kind="merge"))[0].entities
        preview = await browser.open(f"/page/entity/merge?id={keep.id}&other={other.id}")
        assert f"/page/entity/merge?id={keep.id}&amp;other={other.id}" in page and preview.status_code == 200
        (review,) = await memory.review(kind="merge")
        answer = await browser.act("/page/inbox/decide", id=review.id, decision=decision)
        assert notice in answer.text and 'action="/page/undo"' in answer.text
        assert "Probably the same" not in answer.text
