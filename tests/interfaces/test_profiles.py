"""A profile says how many facts there are, at every door, and a greater limit shows the rest."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interfaces.conftest import Cli

from ricordo import Memory
from ricordo.interfaces.serialize import as_text

THINGS = ("tea", "coffee", "chess", "rowing", "Rome", "opera", "cats", "maps", "rice", "jazz", "snow", "clay", "figs")


async def test_a_profile_says_how_many_facts_it_leaves_out(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        for thing in THINGS:
            await memory.remember(f"Anna Keller talked about {thing}", about=["Anna Keller"])
        found = await memory.entity("Anna Keller")
        assert (len(found.facts), found.fact_count) == (10, 13)
        assert "Facts, 10 of 13 (a greater limit shows more):" in as_text(found)
        whole = await memory.entity("Anna Keller", limit=13)
        assert (len(whole.facts), whole.fact_count) == (13, 13)
        assert "\nFacts:\n" in as_text(whole)


def test_the_command_line_says_how_many_facts_it_leaves_out(cli: Cli) -> None:
    for thing in THINGS[:3]:
        cli("remember", f"Anna Keller talked about {thing}", "--about", "Anna Keller")
    assert "Known about it: 2 of 3, with --limit N more" in cli("entity", "Anna Keller", "--limit", "2").out
    assert json.loads(cli("--json", "entity", "Anna Keller", "--limit", "2").out)["fact_count"] == 3
