"""Owners in several stores, as the guide shows it."""

from __future__ import annotations

import re

from ricordo import Memory
from tests.contract import server
from tests.storage.histories import OPTIONS


async def test_each_owner_is_in_one_of_several_stores_and_found_there_again(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", server.HOW_TO.read_text("utf-8"), re.DOTALL)
    names: dict[str, type] = {}
    exec(compile(code, str(server.HOW_TO), "exec"), names)
    stores = [Memory.open(server.location(tmp_path / name), **OPTIONS) for name in ("one", "two")]
    async with stores[0] as one, stores[1] as two:
        table: dict[str, str] = {}
        shards = names["Shards"]({"one": one, "two": two}, table)
        for owner in ("anna", "bob", "cleo", "dora"):
            await shards.of(owner).remember(f"{owner} likes tea")
        assert sorted(table.values()) == ["one", "one", "two", "two"]
        again = names["Shards"]({"one": one, "two": two}, table)
        for owner in table:
            assert [hit.content for hit in (await again.of(owner).search("tea")).hits] == [f"{owner} likes tea"]
