"""Extraction and conclusions, killed at each step and run again three times, leave
what an undisturbed run leaves.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.forking import run_forked
from tests.crash.test_consolidation_kills import dump

CHILD = """
import asyncio, os, sys
from ricordo import Memory, Settings
from ricordo.language import ScriptedModel
from ricordo.storage import faults

path, where = sys.argv[1], sys.argv[2]
NOW = 1_767_261_600_000

class Clock:
    def now(self): return NOW

ANSWERS = {
    "Proposal": {"facts": [{"text": "Sarah likes tea", "kind": "preference", "category": "preference", "slot": "",
                            "about": ["Sarah"], "evidence": ["e3"], "said": True, "confidence": 0.9}]},
    "Verdicts": {"verdicts": []},
    "Reflections": {"reflections": [{"text": "Sarah trains for a marathon", "about": ["Sarah"],
                                     "evidence": ["m1", "m2"], "confidence": 0.9}]},
    "Summaries": {"summaries": [{"entity": "p1", "text": "Sarah runs.", "evidence": ["m1", "m2"]}]},
    "Causes": {"causes": [{"pair": "p1", "cause": "first", "confidence": 0.9}]},
}
calls = []
def model(turns, schema):
    calls.append(schema["title"])
    if where == f"call {schema['title']}":
        os._exit(9)
    return ANSWERS[schema["title"]]

async def main():
    memory = await Memory.open(path, embedder=None, model=ScriptedModel(model), clock=Clock(),
                               settings=Settings(durability="process"))
    if where == "prepare":
        for number, text in enumerate(("Sarah ran five miles", "Sarah ran ten miles", "Sarah signed up for a race")):
            await memory.remember(text, about=["Sarah"], id=f"f{number}")
        await memory.add("The fish shop has closed.", session="s1", id="t1")
        await memory.add("That is why Sarah eats only plants.", session="s1", id="t2")
        await memory.add("Sarah likes tea.", session="s1", id="t3")
        await memory.close()
        return
    passed = []
    def hook(point):
        passed.append(point)
        if where == f"{point} {passed.count(point)}":
            os._exit(9)
    faults.install(hook)
    for _ in range(3 if where == "nowhere" else 1):
        for run in (await memory.extract(), await memory.enrich(), await memory.infer_causes(), await memory.reflect()):
            assert run.state == "done", run
    faults.install(None)
    await memory.close()

asyncio.run(main())
"""

POINTS = [
    *(f"call {name}" for name in ("Proposal", "Reflections", "Summaries", "Causes")),
    *(f"apply: after commit row {number}" for number in range(1, 5)),
    *(f"writer: before commit {number}" for number in (1, 2, 6, 10, 14)),
    *(f"writer: after commit {number}" for number in range(1, 17)),
]


def child(path: Path, where: str) -> int:
    done = run_forked(CHILD, str(path), where)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared") / "me.db"
    child(path, "prepare")
    return path


@pytest.fixture(scope="module")
def undisturbed(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("undisturbed") / "me.db"
    shutil.copy(prepared, path)
    assert child(path, "nowhere") == 0
    return dump(path)


@pytest.mark.parametrize("where", POINTS)
def test_after_a_kill_and_three_reruns_the_result_is_the_same(
    tmp_path: Path, prepared: Path, undisturbed: list[str], where: str
):
    path = tmp_path / "me.db"
    shutil.copy(prepared, path)
    assert child(path, where) == 9, f"{where} was never reached"
    assert child(path, "nowhere") == 0
    assert dump(path) == undisturbed
