"""A credential that is kept on purpose replaces what was stored without it, in either order."""

from __future__ import annotations

import pytest
from tests.interfaces.conftest import Cli

from ricordo import Fact, Memory, Settings

SAID = "The wifi password of the cabin is hunter2-xkcd-99"
WITHOUT = "The wifi password of the cabin is [redacted: password]"


def _live(cli: Cli) -> list[str]:
    return [each["content"] for each in cli("list", "--json").json["nodes"]]


def test_keeping_a_credential_replaces_the_redacted_fact(cli: Cli) -> None:
    stub = cli("remember", SAID, "--about", "Cabin", "--json").json
    assert stub["content"] == WITHOUT
    kept = cli("remember", SAID, "--about", "Cabin", "--keep-secrets", "--json").json
    assert _live(cli) == [SAID]
    assert cli("show", stub["id"], "--json").json["closed_reason"] == "superseded"
    assert [each["content"] for each in cli("history", kept["id"], "--json").json["versions"]][-1] == SAID
    assert cli("review", "--json").json["reviews"] == []


def test_the_same_words_without_the_option_repeat_the_kept_fact(cli: Cli) -> None:
    kept = cli("remember", SAID, "--keep-secrets", "--json").json
    again = cli("remember", SAID, "--json").json
    assert (again["id"], again["score"] > kept["score"]) == (kept["id"], True)
    assert _live(cli) == [SAID]


@pytest.mark.parametrize("secrets", ["redact", "refuse"])
async def test_both_in_one_call_are_one_fact(secrets: str) -> None:
    async with Memory.open(":memory:", embedder=None, settings=Settings(secrets=secrets)) as memory:
        if secrets == "redact":
            await memory.remember_many([Fact(content=SAID), Fact(content=SAID, keep_secrets=True)])
        else:
            await memory.remember(SAID, keep_secrets=True)
        assert [each.content for each in await memory.list()] == [SAID]


async def test_other_facts_with_replaced_credentials_stay() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.remember("The wifi password of the office is swordfish-1234")
        await memory.remember(SAID, about=["Cabin"])
        await memory.remember("The wifi password of the cabin is sesame-open-42", about=["Cabin"], keep_secrets=True)
        assert len(await memory.list()) == 2
        assert all("[redacted" in each.content for each in await memory.list() if "office" in each.content)
