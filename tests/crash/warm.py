"""Imported by the process from which children are forked: compiles the patterns that most of them use.

Compiling takes a child most of a second. The store is in memory and closed again, so that no thread and no lock is
left.
"""

from __future__ import annotations

import asyncio

from ricordo import Memory, Settings
from tests.contract import backends  # noqa: F401  # registers the store in memory


async def _use() -> None:
    async with Memory.open("reference://warm", embedder=None, settings=Settings(durability="process")) as memory:
        await memory.remember("Anna drinks tea", about=["Anna"])
        await memory.remember("Anna drinks coffee now", about=["Anna"])
        await memory.add("My sister Mia moved to Oslo in May.", speaker="Anna", session="s")
        await memory.settle(600)
        await memory.search("What does Anna drink?")
        await memory.context("Where does Mia live now?")


asyncio.run(_use())
