"""Consolidation killed at each step and run again three times leaves what an undisturbed run leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.crash.forking import run_forked
from tests.storage.canonical import canonical
from tests.storage.making import rows

CHILD = """
import asyncio, os, sys
from ricordo import Memory, Settings
from ricordo.language import ScriptedModel
from ricordo.storage import faults

path, where = sys.argv[1], sys.argv[2]
NOW = 1_767_261_600_000

class Clock:
    def now(self): return NOW

def fact(text, *evidence, **fields):
    return {"text": text, "kind": "fact", "category": "knowledge", "about": ["Sarah"], "slot": "diet",
            "evidence": list(evidence), "said": True, "confidence": 0.9, **fields}

calls = []
def model(turns, schema):
    calls.append(schema["title"])
    if where == f"call {len(calls)}":
        os._exit(9)
    if schema["title"] == "Verdicts":
        return {"verdicts": [{"pair": "p1", "is": "contradicts", "confidence": 0.9}]}
    text = turns[1].text
    if "plants" in text:
        return {"facts": [fact("Sarah eats only plants", "e1")], "entities": [], "relations": [],
                "causes": [{"cause": "e2", "effect": "e1"}], "summary": "Plants."}
    return {"facts": [fact("Sarah eats fish", "e1"), fact("Sarah likes tea", "e2", slot="", kind="preference")],
            "entities": [{"name": "Sarah", "type": "person", "aliases": [], "relation": "wife", "evidence": ["e1"]}],
            "relations": [], "causes": [], "summary": "Fish."}

async def main():
    memory = await Memory.open(path, embedder=None, model=ScriptedModel(model), clock=Clock(),
                               settings=Settings(durability="process"))
    if where == "prepare":
        await memory.add("My wife is Sarah, and Sarah eats fish.", session="s1", id="t1")
        await memory.add("Sarah likes tea.", session="s1", id="t2")
        await memory.add("Sarah eats only plants these days.", session="s2", id="t3")
        await memory.add("That is because the fish shop closed.", session="s2", id="t4")
        await memory.close()
        return
    passed = []
    def hook(point):
        passed.append(point)
        if where == f"{point} {passed.count(point)}":
            os._exit(9)
    faults.install(hook)
    run = await memory.consolidate()
    assert run.state == "done" or not run.items, run
    faults.install(None)
    await memory.close()

asyncio.run(main())
"""

POINTS = [
    "call 1",
    "call 2",
    "call 3",
    "apply: after commit row 1",
    "writer: before commit 1",
    "writer: after commit 1",
    "writer: before commit 2",
    "writer: after commit 2",
    "apply: after nodes 2",
    "writer: after commit 3",
]
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def child(path: Path, where: str) -> int:
    done = run_forked(CHILD, str(path), where)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


def dump(path: Path) -> list[str]:
    """Return the data with readable ids and runs as one: which of two runs a session fell into is chance."""
    names = {node: f"<{content}>" for node, content in rows(path, "SELECT id, content FROM nodes")}
    names |= {entity: f"<{name}>" for entity, name in rows(path, "SELECT id, canonical_name FROM entities")}
    truth = canonical(path)
    kept = [item for row in truth.pop("runs") for item in json.loads(row[-1])]
    lines = [f"{table} {row!r}" for table, found in truth.items() for row in found]
    lines += [f"run item {item!r}" for item in kept]
    return sorted(_ID.sub(lambda found: names.get(found[0], "<id>"), line) for line in lines)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("undisturbed") / "me.db"
    child(path, "prepare")
    assert child(path, "nowhere") == 0
    return dump(path)


@pytest.mark.parametrize("where", POINTS)
def test_after_a_kill_and_three_reruns_the_result_is_the_same(tmp_path: Path, undisturbed: list[str], where: str):
    path = tmp_path / "me.db"
    child(path, "prepare")
    assert child(path, where) == 9, f"{where} was never reached"
    for _ in range(3):
        assert child(path, "nowhere") == 0
    assert dump(path) == undisturbed
