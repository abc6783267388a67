"""Items that a graph stored, at the command line: their names, their owners, and erasing a namespace."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.interfaces.conftest import Cli

from ricordo import Memory, Message, Scope


async def _store(path: Path) -> None:
    async with Memory.open(path, embedder="hashing", scope=Scope(owner="leon")) as memory:
        items = [("aiko", "cat", "Miso"), ("leon", "van", "Ford")]
        await memory.add_many(
            [
                Message(
                    text=text,
                    role="assistant",
                    attributes={"kind": "langgraph", "namespace": ["memories", user], "name": key, "label 1": user},
                )
                for user, key, text in items
            ]
        )


def test_items_of_a_graph_have_names_and_are_erased_by_namespace(cli: Cli) -> None:
    asyncio.run(_store(cli.store))
    for verb in (["list"], ["stats"], ["search", "cat"], ["context", "the cat"], ["brief"]):
        assert "There are some of leon: choose with --owner NAME." in cli(*verb).err
        assert "There are some" not in cli("--owner", "leon", *verb).err
    listed = cli("--owner", "leon", "list", "--type", "any").out
    assert "memories/aiko/cat: Miso" in listed and "memories/leon/van: Ford" in listed
    assert cli("--owner", "leon", "erase", "--where", "label 1=nobody", "--yes").status == 3
    assert cli("--owner", "leon", "erase", "--where", "label 1=aiko", "--yes").status == 0
    listed = cli("--owner", "leon", "list", "--type", "any").out
    assert "Miso" not in listed and "Ford" in listed


def test_a_list_leaves_room_for_what_items_with_long_keys_say(cli: Cli) -> None:
    key = "f1576ada-65f6-4b7f-9679-fd0e8f6a1b2c"
    assert cli("add", f"memories/lucia/{key}: The budget of Sueca street is 48,000 euros").status == 0
    assert "memories/lucia/f1576ada…: The budget" in cli("list", "--type", "any").out
    assert key in cli("list", "--type", "any", "--json").out
