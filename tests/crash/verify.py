"""The invariants of a store after its process was killed, checked after reopening."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import numpy as np

from ricordo.memory import Memory
from ricordo.storage.database.embeddings import Corpus, VectorShelves
from ricordo.storage.database.schema import migrations
from ricordo.storage.registry import open_store
from tests.crash.workload import UPGRADED
from tests.storage.folders import everything, without_index
from tests.storage.making import raw

# Each check returns errors, so all of them must return nothing.
HALF_DONE = {
    "an add_many of which a part is there": """
        SELECT json_extract(attributes, '$.batch') AS batch, count(*),
          max(json_extract(attributes, '$.of')) AS lot
        FROM nodes WHERE json_extract(attributes, '$.batch') IS NOT NULL GROUP BY batch
        HAVING count(*) != lot""",
    # A correction may be about others than the old version.
    "a fact without its subjects": """
        SELECT id FROM nodes WHERE type != 'episodic' AND json_extract(attributes, '$.subjects')
          != (SELECT count(*) FROM subjects WHERE node = nodes.key)
          AND key NOT IN (SELECT source FROM edges WHERE relation_type = 'supersedes')""",
    "a text that is there twice": """
        SELECT content FROM nodes WHERE content != 'and life goes on' GROUP BY content HAVING count(*) > 1""",
    "a correction of which the old one lives on": """
        SELECT id FROM edges e JOIN live_nodes n ON n.key = e.target
        WHERE relation_type = 'supersedes' AND e.closed_at IS NULL""",
    "an entity without a name": "SELECT id FROM entities WHERE key NOT IN (SELECT entity FROM aliases)",
    "a gap in the commits": "SELECT max(seq), count(*) FROM commits HAVING coalesce(max(seq), 0) != count(*)",
    "a commit without its rows": """
        SELECT seq FROM commits EXCEPT SELECT commit_seq FROM (
          SELECT commit_seq FROM nodes UNION SELECT commit_seq FROM entities
          UNION SELECT commit_seq FROM edges UNION SELECT commit_seq FROM sessions
          UNION SELECT commit_seq FROM aliases UNION SELECT commit_seq FROM subjects
          UNION SELECT commit_seq FROM erasures UNION SELECT made FROM erased
          UNION SELECT json_extract(before, '$.commit_seq') FROM history)""",
    "a row without its commit": """
        SELECT commit_seq FROM (SELECT commit_seq FROM nodes UNION SELECT commit_seq FROM entities
          UNION SELECT commit_seq FROM edges UNION SELECT commit_seq FROM sessions
          UNION SELECT commit_seq FROM aliases UNION SELECT commit_seq FROM subjects
          UNION SELECT seq FROM history)
        EXCEPT SELECT seq FROM commits""",
    "a closed node without its before-image": """
        SELECT id FROM nodes WHERE closed_at IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM history WHERE tbl = 'nodes' AND row = nodes.key AND seq = nodes.commit_seq)""",
    "a live node without its vector": """
        SELECT id FROM nodes WHERE closed_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM embeddings e JOIN models m ON m.key = e.model
                          WHERE e.node = nodes.key AND m.name = 'hashing-256-v1')""",
    "something half erased": "SELECT key FROM erasing UNION ALL SELECT row FROM to_erase",
    "a model left over": "SELECT name, state FROM models WHERE (name, state) != ('hashing-256-v1', 'active')",
    "a vector of a model left over": "SELECT DISTINCT model FROM embeddings EXCEPT SELECT key FROM models",
    "a pack of a model left over": "SELECT DISTINCT model FROM packs EXCEPT SELECT key FROM models",
    "a vector on the wrong shelf": """
        SELECT e.id FROM embeddings e JOIN live_nodes n ON n.key = e.node
        WHERE (e.space, e.shelf) != (n.space, n.shelf)""",
}


@dataclass(slots=True)
class Acknowledged:
    """The output of the killed process."""

    texts: dict[str, str] = field(default_factory=dict)
    about: dict[str, list[str]] = field(default_factory=dict)
    closed: dict[str, bool | None] = field(default_factory=dict)  # None: it was being changed
    erased: dict[str, str] = field(default_factory=dict)
    erasing: set[str] = field(default_factory=set)
    entities: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    doing: Counter[str] = field(default_factory=Counter)
    count: int = 0

    def hear(self, line: dict) -> None:
        match line:
            case {"try": "erase", "id": id_}:
                self.erasing.add(id_)
            case {"did": "erase", "id": id_}:
                self.erased[id_] = self.texts.pop(id_)
                self.closed.pop(id_)
                self.erasing.discard(id_)
            case {"try": _, "id": id_}:
                self.closed[id_] = None
            case {"did": "add", "id": id_, "text": text}:
                self.texts[id_] = text
                self.about[id_] = line.get("about", [])
                self.closed[id_] = False
            case {"did": "forget" | "restore" as verb, "id": id_}:
                self.closed[id_] = verb == "forget"
            case {"did": "meet", "id": id_}:
                self.entities.append(id_)
            case {"did": "copy", "path": path}:
                self.copies.append(path)
            case {"begins": act}:
                self.doing[act] += 1
            case {"ends": act}:
                self.doing[act] -= 1
        self.count += "did" in line


@dataclass(slots=True)
class Verdict:
    """The errors: `lost` writes, and operations `half` done."""

    lost: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.lost and not self.half


def verify(path: Path, said: Acknowledged) -> Verdict:
    """Reopen, finish background work, and check everything."""
    verdict = Verdict()
    _end_lease(path)
    asyncio.run(_verify(path, said, verdict))
    if path.is_dir():
        verdict.half += asyncio.run(_differences_from_a_rebuilt(path))
    verdict.lost += [f"copy {copy}" for copy in said.copies if not Path(copy).exists()]
    for copy in (*path.parent.glob("backup-*"), *path.parent.glob("migrated-*")):
        if ".partial" in copy.name or copy.suffix == ".json":  # has no name yet, or is the manifest of a copy
            continue
        verdict.half += [f"{copy.name}: {problem}" for problem in _unsound(copy)]
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
    said.copies.clear()
    return verdict


async def _differences_from_a_rebuilt(folder: Path) -> list[str]:
    """Files and index agree: a rebuilt index is equal."""
    before = everything(folder)
    without_index(folder)
    async with Memory.open(folder, embedder="hashing") as memory:
        await memory.settle(600)
    after = everything(folder)
    return [f"{part} differs from a rebuilt index" for part in before if before[part] != after[part]]


def _end_lease(path: Path) -> None:
    """Expire the lease of a killed process, which takes ten seconds and has a test of its own."""
    index = path / "index.db" if path.is_dir() else path
    if index.exists():
        connection = raw(index)
        with contextlib.suppress(apsw.SQLError):  # it was killed before the table existed
            connection.execute("DELETE FROM leases")
        connection.close()


async def _verify(path: Path, said: Acknowledged, verdict: Verdict) -> None:
    async with Memory.open(path, embedder="hashing") as memory:
        await memory.settle(600)
        store = memory._opened.store
        stored = await store.read(
            lambda tx: {row[0]: row[1:] for row in tx.connection.execute("SELECT id, content, closed_at FROM nodes")}
        )
        for id_ in said.erasing - stored.keys():  # the kill came before the output
            said.hear({"did": "erase", "id": id_})
        said.erasing.clear()
        verdict.half += [f"{id_} is erased and still there" for id_ in said.erased if id_ in stored]
        verdict.half += _traces(path, said)
        verdict.lost += _lost(said, stored)
        verdict.lost += await _wrong_through_the_door(memory, said)
        verdict.half += await store.read(_half_done)
        verdict.half += await store.read(_index_off)
        report = await memory.doctor()
        verdict.half += [f"doctor: {found.check}: {found.detail}" for found in report.findings if not found.ok]
        await memory.add("and life goes on")
        await memory.settle(600)


def _traces(path: Path, said: Acknowledged) -> list[str]:
    """The store is open, so its raw files may be read only by another process."""
    marks = [text.split()[0] for text in said.erased.values()]
    if not marks:
        return []
    # The report of an erasure lists set-aside files as out of reach.
    places = path.iterdir() if path.is_dir() else path.parent.glob(f"{path.name}*")
    files = [str(each) for each in places if not each.name.startswith("set-aside-")]
    looked = subprocess.run(
        [sys.executable, "-c", _LOOK, *files], input=json.dumps(marks), capture_output=True, text=True
    )
    return [f"a trace of {mark}" for mark in json.loads(looked.stdout)]


_LOOK = """
import json, sys
data = b"".join(open(path, "rb").read() for path in sys.argv[1:])
print(json.dumps([mark for mark in json.load(sys.stdin) if mark.encode() + b" " in data]))
"""


def _lost(said: Acknowledged, stored: dict) -> list[str]:
    lost = [f"{id_} is not there" for id_ in said.texts if id_ not in stored]
    lost += [
        f"{id_} holds another text" for id_, text in said.texts.items() if id_ in stored and stored[id_][0] != text
    ]
    return lost + [
        f"{id_} is {'live' if closed else 'closed'} again"
        for id_, closed in said.closed.items()
        if closed is not None and id_ in stored and (stored[id_][1] is not None) != closed
    ]


async def _wrong_through_the_door(memory: Memory, said: Acknowledged) -> list[str]:
    """Check the newest memories through the API: they were nearest to the kill."""
    wrong = []
    for id_ in [*said.texts][-30:]:
        node = await memory.get(id_)
        if node.content != said.texts[id_] or sorted(node.about) != sorted(said.about[id_]):
            wrong.append(f"get({id_}) differs")
        found = await memory.query(node.content.split()[0])
        if node.is_live and found.ids[:1] != [id_]:
            wrong.append(f"search does not find {id_}" + "".join(f" ({late})" for late in found.degraded))
    known = await memory._opened.store.read(
        lambda tx: {id_ for (id_,) in tx.connection.execute("SELECT id FROM entities")}
    )
    return wrong + [f"entity {id_} is not there" for id_ in said.entities if id_ not in known]


def _half_done(tx) -> list[str]:
    found = {name: tx.connection.execute(text).fetchall() for name, text in HALF_DONE.items()}
    wrong = [f"{name}: {rows[:3]}" for name, rows in found.items() if rows]
    if any(tx.mentions.unlinked(space, 1) for space in tx.mentions.spaces_with_names()) or tx.mentions.new_names():
        wrong.append("names are not linked")
    return wrong


def _index_off(tx) -> list[str]:
    """A fresh index, loaded from segments and loose vectors, must hold exactly the live nodes."""
    wrong = []
    for key, dimension in tx.connection.execute("SELECT key, dimension FROM models").fetchall():
        for space, shelf in tx.connection.execute("SELECT DISTINCT space, shelf FROM nodes").fetchall():
            corpus, question = Corpus(key, dimension, [space], [shelf]), np.ones(dimension, np.float32)
            keys, _ = VectorShelves().nearest(tx, corpus, question, limit=1_000_000, among=None)
            live = tx.connection.execute("SELECT key FROM live_nodes WHERE (space, shelf) = (?, ?)", (space, shelf))
            if set(keys.tolist()) != {key for (key,) in live}:
                wrong.append(f"the vector index of shelf {space}{shelf} is out of step")
    return wrong


def _unsound(copy: Path) -> list[str]:
    """Every file with the name of a copy is a complete store, acknowledged or not; a folder also without its index."""
    if copy.is_dir():
        without_index(copy)

    async def look():
        store = open_store(copy)
        try:
            report = await store.doctor()
            found = [f"{finding.check}: {finding.detail}" for finding in report.findings if not finding.ok]
            return found + await store.read(lambda tx: [row[0] for row in _partial(tx)])
        finally:
            await asyncio.to_thread(store.close)

    return asyncio.run(look())


def _partial(tx):
    return tx.connection.execute(HALF_DONE["an add_many of which a part is there"]).fetchall()


def verify_upgrade(path: Path, before: list[tuple]) -> Verdict:
    """After a kill during an upgrade, the store is the complete old or new version, and the upgrade can continue."""
    verdict = Verdict()
    verdict.half += _mixed(path)
    open_store(path, steps=UPGRADED).close()
    verdict.half += _mixed(path)
    connection = apsw.Connection(str(path))
    if connection.pragma("user_version") != UPGRADED[-1].version:
        verdict.half.append("the upgrade does not go on")
    if connection.execute("SELECT id, content FROM nodes ORDER BY key").fetchall() != before:
        verdict.lost.append("texts are gone after an upgrade")
    connection.close()
    backup = apsw.Connection(str(path.with_name(f"{path.name}.v{migrations()[-1].version}.backup")))
    if backup.execute("SELECT id, content FROM nodes ORDER BY key").fetchall() != before:
        verdict.lost.append("the backup before the upgrade does not hold everything")
    backup.close()
    return verdict


def _mixed(path: Path) -> list[str]:
    connection = apsw.Connection(str(path))
    version = connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'upgraded'").get
    count = connection.execute("SELECT count(*) FROM upgraded").get if tables else 0
    connection.close()
    wanted = (1, 2) if version == UPGRADED[-1].version else (0, 0)
    return [] if (tables, count) == wanted else [f"version {version} with {tables} tables of the next and {count} rows"]
