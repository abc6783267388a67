"""`doctor` detects each kind of damage. Every test really damages a store."""

from __future__ import annotations

import asyncio
import re
import shutil

import apsw
import pytest
from tests.storage.making import NOON, closing, commit, fact, failing, opened, raw, rows, said

from ricordo import Memory, Settings
from ricordo.model import Entity

ANNA = Entity(id="anna", type="person", name="Anna", first_seen=NOON, last_updated=NOON, owner="me")


@pytest.fixture
def path(tmp_path):
    """A store with some data of every kind."""
    tea, gone, hello = fact("Anna likes tea"), fact("Anna likes milk"), said("hello\0there", session="s")

    async def fill(store):
        await commit(store, add=(tea, gone, hello), entities=(ANNA,), subjects=((tea.id, "anna"),))
        await commit(store, close=(closing(gone),))

    path = tmp_path / "m.db"
    opened(path, fill)
    return path


def examined(path):
    async def look(store):
        return await store.doctor()

    return opened(path, look)


def damage(path, *statements):
    """Without the triggers, like a bit flip: the schema's triggers would repair it."""
    connection = raw(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, text in triggers:
        connection.execute(text)
    connection.execute("COMMIT")
    connection.close()


def test_a_sound_store_is_found_sound(path):
    report = examined(path)
    assert report.ok, report
    assert all(finding.detail for finding in report.findings)


DAMAGE = [
    ("UPDATE nodes SET content = 'Anna likes tee' WHERE key = 1", "row seals"),
    ("UPDATE nodes SET closed_at = NULL, closed_reason = NULL WHERE key = 2", "row seals"),
    ("UPDATE nodes SET confidence = 0.5 WHERE key = 1", "row seals"),
    ("UPDATE nodes SET event_time = event_time + 1 WHERE key = 1", "row seals"),
    ("UPDATE entities SET canonical_name = 'Anne'", "row seals"),
    ("UPDATE aliases SET alias = 'Anne'", "row seals"),
    ("UPDATE sessions SET session_id = 't'", "row seals"),
    ("UPDATE subjects SET seal = zeroblob(24)", "row seals"),
    ("DELETE FROM nodes_fts WHERE rowid = 1", "full text"),
    ("DELETE FROM archive_fts WHERE rowid = 2", "full text"),
    ("INSERT INTO nodes_fts (rowid, terms) VALUES (99, 'x')", "full text"),
    ("UPDATE traits SET traits = zeroblob(length(traits)) WHERE node = 1", "full text"),
    ("UPDATE traits SET event_time = event_time + 1 WHERE node = 1", "full text"),
    ("UPDATE shelves SET nodes = nodes + 1 WHERE shelf = 'k'", "counts"),
    ("UPDATE shelves SET chars = chars - 1 WHERE shelf = 'e'", "counts"),
    ("DELETE FROM shelves WHERE shelf = 'k'", "counts"),
    ("INSERT INTO shelves VALUES (1, 'c', 3, 10)", "counts"),
    ("UPDATE entity_counts SET nodes = nodes + 1", "counts"),
    ("UPDATE entity_counts SET first_at = first_at - 1", "time spans"),
    ("UPDATE entity_counts SET last_at = last_at + 1", "time spans"),
    ("DELETE FROM entity_counts", "time spans"),
    ("UPDATE sums SET total = total - 1 WHERE tbl = 'entity_counts'", "time spans"),
    ("UPDATE slots SET line = 'milk'", "slots"),
    ("UPDATE slots SET space = space + 1", "slots"),
    ("UPDATE slots SET subjects = subjects || ',7'", "slots"),
    ("UPDATE history SET before = replace(before, 'milk', 'silk')", "history"),
    ("UPDATE history SET before = '[]'", "history"),
    ("UPDATE history SET tbl = 'nowhere'", "history"),
    ("UPDATE history SET seq = 1", "commit rows"),
    ("UPDATE history SET row = '1'", "commit rows"),
    ("PRAGMA foreign_keys = OFF; UPDATE entities SET key = 7", "row seals"),
    ("UPDATE spaces SET owner = 'mf'", "settings and vectors"),
    ("INSERT INTO off_record VALUES ('me', '', 's', 1, NULL)", "settings and vectors"),
    ("INSERT INTO models VALUES (1, 'hashing', 256, '', 'active')", "settings and vectors"),
    ("INSERT INTO meta VALUES ('fingerprint_key', '00')", "settings and vectors"),
    ("UPDATE commits SET reason = 'other' WHERE seq = 1", "commit chain"),
    ("UPDATE commits SET at = at + 1 WHERE seq = 2", "commit chain"),
    ("UPDATE commits SET digest = zeroblob(16) WHERE seq = 1", "commit chain"),
    ("PRAGMA foreign_keys = OFF; DELETE FROM commits WHERE seq = 1", "commit chain"),
    ("PRAGMA foreign_keys = OFF; DELETE FROM entities", "references"),
    ("PRAGMA foreign_keys = OFF; DELETE FROM nodes WHERE key = 1", "references"),
    ("UPDATE nodes SET commit_seq = 77 WHERE key = 1", "references"),
    ("DROP INDEX nodes_by_session", "schema"),
    ("ALTER TABLE nodes ADD COLUMN extra TEXT", "schema"),
    ("DROP TRIGGER nodes_left_live; CREATE TABLE t (a)", "schema"),
]


@pytest.mark.parametrize(("statements", "check"), DAMAGE)
def test_damage_is_found_and_named(path, statements, check):
    if statements.startswith("DROP TRIGGER"):
        rows(path, statements)
    else:
        damage(path, statements)
    report = examined(path)
    assert check in failing(report)
    assert all(finding.remedy for finding in report.findings if not finding.ok)


DERIVED = ("full text", "counts", "slots", "time spans")


@pytest.mark.parametrize("statements", [statements for statements, check in DAMAGE if check in DERIVED])
def test_what_is_worked_out_from_the_memories_is_mended_in_place(path, statements):
    truth = "SELECT * FROM nodes", "SELECT * FROM commits", "SELECT * FROM history"
    derived = "SELECT * FROM entity_counts", "SELECT * FROM slots", "SELECT * FROM shelves WHERE nodes > 0"
    before = [rows(path, each) for each in (*truth, *derived)]
    damage(path, statements)

    async def mend(store):
        await store.mend(await store.doctor())
        return await store.doctor()

    assert opened(path, mend).ok
    assert [rows(path, each) for each in (*truth, *derived)] == before


def test_damaged_memories_do_not_spread_into_what_is_worked_out_from_them(path):
    damage(path, "UPDATE nodes SET content = 'Anna likes tee' WHERE key = 1", "UPDATE shelves SET nodes = 9")

    async def mend(store):
        await store.mend(await store.doctor())
        return await store.doctor()

    assert failing(opened(path, mend)) == {"row seals", "counts", "slots", "full text"}


def test_a_changed_kind_of_an_empty_page_is_found(path):
    """Every use of such an index fails, and SQLite's own check calls it sound."""
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    ((page,),) = rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'relations_by_target'")
    assert content[(page - 1) * size] == 10
    content[(page - 1) * size] = 2
    path.write_bytes(content)
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert failing(examined(path)) == {"file"}


def test_a_removed_last_commit_is_found_by_the_rows_it_wrote(path):
    damage(path, "PRAGMA foreign_keys = OFF; DELETE FROM commits WHERE seq = 2")
    assert "references" in failing(examined(path))


def test_a_file_readable_by_others_is_reported(path):
    path.chmod(0o644)
    assert failing(examined(path)) == {"permissions"}


def test_a_flipped_byte_of_a_text_inside_the_file_is_found(path):
    """The page is valid for SQLite; only the seal shows it, and the data derived from the text: slot and features."""
    content = path.read_bytes()
    place = next(found.start() for found in re.finditer(b"Anna likes tea", content))
    path.write_bytes(content[:place] + b"B" + content[place + 1 :])
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert failing(examined(path)) == {"row seals", "slots", "full text"}


def test_a_torn_page_is_found_or_the_store_is_not_opened(path):
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    (page,) = rows(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'nodes'")[0]
    content[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(content)
    report = examined(path)
    assert "file" in failing(report)
    assert "row seals" in failing(report)


def test_doctor_changes_nothing(path):
    damage(path, "UPDATE shelves SET nodes = 9")
    before = rows(path, "SELECT * FROM shelves"), rows(path, "SELECT * FROM nodes")
    examined(path)
    assert (rows(path, "SELECT * FROM shelves"), rows(path, "SELECT * FROM nodes")) == before


def test_texts_with_nul_are_counted_completely(path):
    """SQLite's length() stops at a NUL: the counts were wrong after the first forgotten text with one."""
    node = said("one\0two", session="s")

    async def come_and_go(store):
        await commit(store, add=(node,))
        await commit(store, close=(closing(node),))
        return await store.doctor()

    assert opened(path, come_and_go).ok
    assert rows(path, "SELECT chars FROM shelves WHERE shelf = 'e'") == [(len("hello\0there"),)]


def test_the_sqlite_version_has_the_wal_fix():
    assert apsw.SQLITE_VERSION_NUMBER >= 3_051_003


def test_doctor_is_not_confused_by_writes_of_other_processes(tmp_path):
    """FTS5's own check uses the last state its connection saw; a reader's connection had seen less."""
    path = tmp_path / "m.db"

    async def look_and_look_again(store):
        nodes = [fact(f"tea {number}") for number in range(40)]
        reports = []
        for node in nodes:
            await commit(store, add=(node,))
            if len(reports) > 5:
                await commit(store, close=(closing(nodes[len(reports) - 3]),))
            reports.append(await store.doctor())
        return reports

    assert all(report.ok for report in opened(path, look_and_look_again, reader_threads=1))


class TestWitness:
    """Somebody with write access rewrites the whole chain, or puts an older copy in the place of the store."""

    @staticmethod
    def told(path, witness, *texts):
        """Open the store, add texts, and return what `doctor` finds wrong."""

        async def story():
            settings = Settings(durability="process", witness=str(witness))
            async with Memory.open(path, embedder=None, settings=settings) as memory:
                for text in texts:
                    await memory.add(text)
                return [(each.check, each.detail) for each in (await memory.doctor()).findings if not each.ok]

        return asyncio.run(story())

    @pytest.mark.parametrize("kind", ["file", "folder"])
    def test_an_older_copy_is_noticed(self, tmp_path, kind):
        path, witness = tmp_path / ("m.db" if kind == "file" else "m"), tmp_path / "elsewhere"
        if kind == "folder":
            path.mkdir()
        assert self.told(path, witness, "one", "two") == []
        copy = tmp_path / "copy"
        shutil.copytree(path, copy) if kind == "folder" else shutil.copy2(path, copy)
        assert self.told(path, witness, "three") == []
        shutil.rmtree(path) if kind == "folder" else path.unlink()
        copy.rename(path)
        ((check, detail),) = self.told(path, witness)
        assert (check, "older copy" in detail) == ("witness", True)
        ((check, detail),) = self.told(path, witness, "another three")
        assert (check, "rewritten" in detail) == ("witness", True)

    def test_a_chain_that_is_rewritten_throughout_is_noticed(self, tmp_path):
        path, witness = tmp_path / "m.db", tmp_path / "elsewhere"
        assert self.told(path, witness, "one", "two") == []
        path.unlink()
        assert self.told(path, tmp_path / "nobody's", "one", "forged") == [], "the store itself is sound"
        ((check, _),) = self.told(path, witness)
        assert check == "witness"

    def test_erasing_and_undoing_leave_the_witness_at_peace(self, tmp_path):
        path, witness = tmp_path / "m.db", tmp_path / "elsewhere"

        async def story():
            settings = Settings(durability="process", witness=str(witness))
            async with Memory.open(path, embedder=None, settings=settings) as memory:
                node = await memory.remember("a secret")
                await memory.doctor()
                await memory.forget(node.id)
                await memory.undo((await memory.log())[0].seq)
                await memory.doctor()
                await memory.erase(id=node.id)
                await memory.gc()
                return (await memory.doctor()).ok

        assert asyncio.run(story()) and self.told(path, witness) == []
        lines = witness.read_text().splitlines()
        assert len(lines) >= 3 and "secret" not in witness.read_text() and witness.stat().st_mode & 0o077 == 0

    def test_a_witness_that_cannot_be_written_keeps_nobody_from_working(self, tmp_path):
        ((check, detail),) = self.told(tmp_path / "m.db", tmp_path / "no folder" / "file", "one")
        assert (check, "cannot be written" in detail) == ("witness", True)
