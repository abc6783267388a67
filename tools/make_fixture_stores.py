"""Write small stores, a file and a folder, that later versions must be able to open.

    python tools/make_fixture_stores.py

Run it once for each released version of the schema. The stores of earlier versions stay unchanged. A JSON file beside
them records their content: a test opens a copy of each and compares.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


from make_fixture_export import Clock, live  # noqa: E402
from ricordo import Memory  # noqa: E402
from ricordo.storage.database.schema import migrations  # noqa: E402

TARGET = ROOT / "tests/fixtures/stores"


async def make(file: Path, folder: Path) -> None:
    """Make the same changes in both."""
    async with Memory.open(file, embedder="hashing", clock=Clock()) as memory:
        await live(memory)
        await memory.migrate(f"{folder}/")


def main() -> None:
    name = f"schema_{migrations()[-1].version}"
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        file, folder = Path(place) / "me.db", Path(place) / "me"
        asyncio.run(make(file, folder))
        shutil.copyfile(file, TARGET / f"{name}.db")
        shutil.rmtree(TARGET / name, ignore_errors=True)
        shutil.copytree(folder, TARGET / name, ignore=shutil.ignore_patterns("index.db*", ".lock"))
        dump = importlib.import_module("tests.storage.canonical").canonical(file)
        held = {table: [list(row) for row in rows] for table, rows in dump.items()}
        (TARGET / f"{name}.json").write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
