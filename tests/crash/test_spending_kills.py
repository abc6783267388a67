"""The record of model calls adds up, however often the process is killed.

python -m tests.crash.test_spending_kills 100
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from random import Random

from ricordo import Memory
from tests.crash.forking import run_forked

CHILD = """
import asyncio, os, sys
from ricordo import Memory, Settings
from ricordo.language import ScriptedModel
from ricordo.storage import faults

path, paid, where = sys.argv[1], sys.argv[2], sys.argv[3]
calls, passed = 0, 0

def model(turns, schema):
    global calls
    calls += 1
    if where == f"before {calls}":
        os._exit(9)
    with open(paid, "a") as file:
        file.write(f"{sum(len(turn.text) for turn in turns)}\\n")
        file.flush()
        os.fsync(file.fileno())
    if where == f"after {calls}":
        os._exit(9)
    return {"facts": [], "entities": [], "relations": [], "causes": [], "summary": ""}

def hook(point):
    global passed
    passed += 1
    if where == f"point {passed}":
        os._exit(9)

async def main():
    memory = await Memory.open(path, embedder=None, model=ScriptedModel(model), settings=Settings(durability="process"))
    if not (await memory.stats()).sessions_waiting:
        for number in range(90):
            await memory.add(f"Tea number {number} is fine.", session=f"s{os.getpid()}")
    faults.install(hook)
    await memory.consolidate()
    faults.install(None)
    await memory.close()

asyncio.run(main())
"""


def kill(folder: Path, times: int, *, seed: int = 1) -> tuple[int, int, int]:
    """Kill a consolidating process; return (kills, calls the model answered, calls on record)."""
    path, paid, dice, kills = folder / "me.db", folder / "paid", Random(seed), 0
    paid.touch()
    for _ in range(times):
        where = f"{dice.choice(('before', 'after', 'point'))} {dice.randint(1, 4)}"
        done = run_forked(CHILD, str(path), str(paid), where)
        assert done.returncode in (0, 9), done.stderr
        kills += done.returncode == 9
    return kills, len(paid.read_text().split()), asyncio.run(_recorded(path))


async def _recorded(path: Path) -> int:
    async with Memory.open(path, embedder=None) as memory:
        uses = await memory.spending()
        listed = sum(run.tokens_in + run.tokens_out for run in await memory.runs(1_000))
        assert listed == sum(use.tokens_in + use.tokens_out for use in uses), "runs and days add up to the same"
        assert (await memory.doctor()).ok
        return sum(use.calls for use in uses)


def test_no_call_is_lost_by_a_kill(tmp_path):
    kills, answered, recorded = kill(tmp_path, 8)
    assert kills >= 3 and answered <= recorded <= answered + kills


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = dict(zip(("kills", "answered", "recorded"), kill(Path(name), int(sys.argv[1])), strict=True))
        sys.stdout.write(json.dumps(found) + "\n")
