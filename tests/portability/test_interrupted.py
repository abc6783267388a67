"""A killed import resumes and ends like an undisturbed one."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.crash.forking import run_forked
from tests.portability.conftest import opened
from tests.storage.canonical import canonical

FACTS = 1_050
MESSAGES = 1_050

KILLED = """
import asyncio, os, sys
from pathlib import Path
from tests.portability.conftest import opened

async def main():
    def progress(done, total):
        if done >= int(sys.argv[3]):
            os._exit(9)
    async with opened(Path(sys.argv[2])) as memory:
        await memory.import_(sys.argv[1], progress=progress)

asyncio.run(main())
"""


def large_database(folder: Path) -> Path:
    """A store with kinds, people, episodes, repeated and contradicting facts, and links."""
    import apsw

    from tests.portability.conftest import FILES

    path = folder / "large.db"
    connection = apsw.Connection(str(path))
    connection.execute((FILES / "by_kind.sql").read_text("utf-8"))
    columns = "id, kind, content, event_time, created_at, source_ids, entity_ids"
    row = f"INSERT INTO memories ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
    with connection:
        for n in range(MESSAGES):
            at = 1_768_200_000 + n
            connection.execute(row, (f"e{n}", "episode", f"Said number {n}, about number {n % 7}", at, at, "[]", "[]"))
        for n in range(FACTS):
            at, who = 1_768_300_000 + n, f'["ent_{1 + n % 2}"]'
            content = ("Vitaly lives in city ", "Project Alpha has badge ")[n % 2] + str(n % 50)
            if n % 5:  # most facts are related to no other
                content = f"xk{n} zq{n}"
            connection.execute(row, (f"f{n}", "fact", content, at, at, f'["e{n % MESSAGES}"]', who))
    connection.close()
    return path


def comparable(path: Path) -> str:
    """Return all durable data of a store, with names in place of random ids."""
    dump = canonical(path)
    text = json.dumps(dump, default=str, ensure_ascii=False)
    names = {row[0]: row[3] for row in dump["entities"]}
    for entity, name in names.items():
        text = text.replace(entity, name)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "drawn", text)
    return json.dumps({table: sorted(map(str, rows)) for table, rows in json.loads(text).items()})


@pytest.mark.slow
async def test_a_killed_and_resumed_import_equals_an_undisturbed_one(tmp_path: Path) -> None:
    source = large_database(tmp_path)
    async with opened(tmp_path / "whole.db") as memory:
        undisturbed = await memory.import_(source)
    for at in (1_030, 2_080):
        killed = tmp_path / f"killed-{at}.db"
        assert await asyncio.to_thread(status_of_killed, source, killed, at) == 9
        async with opened(killed) as memory:
            report = await memory.import_(source)
            assert 0 < report.known <= report.read == undisturbed.read == report.known + report.added
            assert (await memory.doctor()).ok
        assert comparable(killed) == comparable(tmp_path / "whole.db")


def status_of_killed(source: Path, store: Path, at: int) -> int:
    """Import in a process that is killed after a number of records."""
    return run_forked(KILLED, str(source), str(store), str(at)).returncode
