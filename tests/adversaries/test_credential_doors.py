"""The 120 credentials through every interface: what is stored in the end.

Each run takes a fifth of them; `make adversaries` takes all (`RICORDO_TEST_CREDENTIALS=1`).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory
from ricordo.integrations.items import MemoryFiles
from ricordo.integrations.mem0 import AsyncMemory
from tests.adversaries import credentials
from tests.interfaces.conftest import RUN, clean_environment
from tests.interfaces.test_same_story import in_python, over_mcp, over_rest, over_rpc

KNOWN = {"htpasswd", "rails", "shadow"}
"""The forms that no rule recognises; `benchmarks/results/credentials.json` names them."""
SHARE = int(os.environ.get("RICORDO_TEST_CREDENTIALS", "5"))
_BY_COMMAND = 2
"""Each command starts a process of its own."""
Texts = list[str]


async def _by_method(opened: Callable[[str], Any], store: str, texts: Texts) -> None:
    async with opened(store) as do:
        for number, text in enumerate(texts):
            rest = {"content": f"the bell number {number} rings"} if number % 3 == 0 else {"content": text}
            more = {} if opened is over_rpc else {"attributes": {"note": text}}
            await do("remember", **({"content": text} if not more else rest | more))


async def _by_commands(store: str, texts: Texts) -> None:
    start = [sys.executable, "-c", RUN, "--store", store, "--embedder", "none"]
    for text in texts[:_BY_COMMAND]:
        await asyncio.to_thread(_run, [*start, "remember", "--", text])
    lines = [json.dumps({"role": "user", "text": text, "session": "s"}) for text in texts[_BY_COMMAND:]]
    chat = Path(store).with_suffix(".jsonl")
    chat.write_text("\n".join(lines) + "\n", encoding="utf-8")
    await asyncio.to_thread(_run, [*start, "import", str(chat)])


def _run(command: list[str]) -> None:
    subprocess.run(command, env=clean_environment(), capture_output=True, check=True)


async def _by_import(store: str, texts: Texts) -> None:
    """As statements of the MCP reference server, as names of entities, and as a complete export."""
    entity = {"type": "entity", "name": "Ben", "entityType": "person", "observations": texts[::2]}
    graph = Path(store).with_suffix(".json")
    graph.write_text(json.dumps(entity) + "\n", encoding="utf-8")
    async with Memory.open(f"{store}.other", embedder=None, settings=_keeping()) as other:
        for number, text in enumerate(texts[1::2]):
            await other.remember(f"the bell number {number} rings", attributes={"note": text})
        await other.export(f"{store}.all.jsonl")
    async with Memory.open(store, embedder=None) as memory:
        await memory.import_(graph)
        await memory.import_(f"{store}.all.jsonl", own=len(texts) % 2 == 0)


def _keeping() -> Any:
    from ricordo import Settings

    return Settings(secrets="keep", durability="process")


async def _by_mem0(store: str, texts: Texts) -> None:
    memory: Any = AsyncMemory(location=store, embedder="hashing")
    for number, text in enumerate(texts):
        said = text if number % 2 else "a note"
        await memory.add(said, user_id="me", infer=False, metadata={"note": text})
    await memory.close()


async def _by_files(store: str, texts: Texts) -> None:
    async with Memory.open(store, embedder=None) as memory:
        files = MemoryFiles(memory)
        for number, text in enumerate(texts):
            await files.create(f"/memories/{number}.md", f"{text}\n")


async def _by_agents(store: str, texts: Texts) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed: make adapters")
    from ricordo.integrations.openai_agents import RicordoSession

    async with Memory.open(store, embedder=None) as memory:
        said = [{"role": "user", "content": text} for text in texts[::2]]
        calls = [{"type": "function_call", "name": "f", "arguments": json.dumps({"x": text})} for text in texts[1::2]]
        await RicordoSession("s", memory).add_items([*said, *calls])  # type: ignore[list-item]


def _methods(opened: Callable[[str], Any]) -> Callable[[str, Texts], Awaitable[None]]:
    return lambda store, texts: _by_method(opened, store, texts)


DOORS: dict[str, Callable[[str, Texts], Awaitable[None]]] = {
    "python": _methods(in_python),
    "mcp": _methods(over_mcp),
    "rest": _methods(over_rest),
    "rpc": _methods(over_rpc),
    "cli": _by_commands,
    "import": _by_import,
    "mem0": _by_mem0,
    "memory files": _by_files,
    "openai-agents": _by_agents,
}


@pytest.mark.parametrize("door", DOORS)
async def test_at_most_three_of_120_credentials_are_stored_through_any_door(door: str, tmp_path: Path) -> None:
    given = credentials.credentials("held")[::SHARE]
    assert len(given) == credentials.HELD // SHARE
    store = str(tmp_path / "me.db")
    await DOORS[door](store, [credentials.FORMS["sentence"](each) for each in given])
    stored = await asyncio.to_thread(Path(store).read_bytes)
    assert b"bell" in stored or b"noted this" in stored or b"a note" in stored
    text = stored.decode("utf-8", "replace")
    kept = {each.name for each in given if credentials.is_kept(each, text)}
    assert kept <= KNOWN, kept
