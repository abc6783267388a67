"""A short run of `python -m tests.leaks.doors`: no interface shows data of another owner."""

from __future__ import annotations

from pathlib import Path

from ricordo.interfaces.catalog import routes, tools
from ricordo.interfaces.schema import parameters
from tests.leaks import doors


async def test_no_interface_leaks_a_canary(tmp_path: Path) -> None:
    worlds = await doors.fill(tmp_path / "me.db", seed=5)
    tally = await doors.try_doors(tmp_path / "me.db", worlds, calls=100, seed=5, callers=["eve in another chat"])
    assert tally.canaries == []
    assert set(tally.by_door) == {"mcp over stdio", "mcp over http", "rest", "rpc", "rpc over a socket"}


def test_every_parameter_gets_forbidden_data_or_is_excluded() -> None:
    named = {
        each.name
        for capability in (*routes(), *tools("full,keywords,connector"))
        for as_tool in (True, False)
        for each in parameters(capability, as_tool=as_tool)
    }
    known = {*doors._KINDS, *doors._LISTS, *doors._FIXED, *doors.LEFT_OUT, "facts_", "messages"}
    assert named == known & named, named - known
