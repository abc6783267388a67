"""Write a complete export that later versions must be able to import.

    python tools/make_fixture_export.py

Run it once for each released version of the export format or the schema. The files of earlier versions stay unchanged.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from ricordo import Memory
from ricordo.portability.exporters import VERSION
from ricordo.storage.database.schema import migrations

TARGET = Path(__file__).parents[1] / "tests/fixtures/stores"
_START = 1_767_261_600_000  # 2026-01-01T10:00Z


class Clock:
    """A clock that advances one minute per reading."""

    def __init__(self) -> None:
        self.ms = _START

    def now(self) -> int:
        self.ms += 60_000
        return self.ms


async def live(memory: Memory) -> None:
    """Use a bit of every feature."""
    await memory.add("Rex hates the vacuum cleaner", session="monday", speaker="Ann")
    await memory.add("Noted.", role="assistant", session="monday")
    await memory.add_entity("Sarah", relation="wife", aliases=["Sally"])
    tea = await memory.remember("Sarah likes oolong", about=["Sarah"], tags=["drinks"], attributes={"n": 1})
    await memory.correct(tea.id, "Sarah likes sencha")
    await memory.remember("Anna lives in Rome")
    await memory.remember("Anna lives in Berlin")
    gone = await memory.remember("This was wrong")
    await memory.forget(gone.id)
    await memory.end_session("monday")
    await memory.settle()


async def write(path: Path) -> None:
    """Export a small store."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "a.db", embedder="hashing", clock=Clock()) as memory:
            await live(memory)
            await memory.export(path)


if __name__ == "__main__":
    TARGET.mkdir(parents=True, exist_ok=True)
    target = TARGET / f"export_v{VERSION}_schema_{migrations()[-1].version}.jsonl"
    target.unlink(missing_ok=True)
    asyncio.run(write(target))
    print(f"wrote {target}")
