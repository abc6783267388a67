"""Erasing leaves no byte, keeps everything else, and leaves the hash chain intact."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.storage.making import opened, raw, rows
from tests.storage.test_doctor import damage
from tests.storage.traces import canaries, traces

from ricordo import Memory, Message, Scope, Settings
from ricordo.errors import ConflictError, NotFoundError
from ricordo.forgetting import erase
from ricordo.model import Change, Edge, Reason
from ricordo.storage import faults
from ricordo.storage.database import erase as erasing
from ricordo.storage.database.history import TABLES, truth_of

ANN, BOB = Scope(owner="Annabrix"), Scope(owner="bob")
QUICK = Settings(durability="process", patience_s=5.0)


def open_(path: Path | str, scope: Scope = ANN, **options) -> Memory:
    return Memory.open(path, embedder="hashing", scope=scope, **{"settings": QUICK, **options})


async def summed_up(memory: Memory, session: str, person: str, words: list[str]) -> None:
    """Write a session and a person with a summary, as a consolidation would."""
    store, scope = memory._opened.store, memory.scope

    def decide(tx):
        known = tx.sessions.get(scope, session)
        (entity,) = tx.entities.named(scope, person).entities
        return Change(
            sessions=(replace(known, summary=f"it was about {words[0]}"),),
            put_entities=(replace(entity, summary=f"likes {words[1]}", attributes={"k": words[2]}),),
        ), None

    reason = Reason(actor=scope.owner, origin="consolidate", reason="consolidate")
    await store.write(decide, scope=scope, reason=reason, at=datetime(2026, 1, 1, tzinfo=UTC))


async def fill(memory: Memory, words: list[str]) -> None:
    """Put words into every place that can hold text."""
    left = iter(words)
    for _ in range(len(words) // 20):
        session = f"talk {next(left)}"
        await memory.add(f"We saw a {next(left)} at noon. My sister is {next(left)}.", session=session, speaker=None)
        await memory.add_many(
            [
                Message(
                    text=f"Yes, the {next(left)}",
                    session=session,
                    speaker=next(left),
                    role="user",
                    attributes={"where": next(left)},
                    id=f"id-{next(left)}",
                )
            ]
        )
        name = next(left)
        fact = await memory.remember(
            f"{name} keeps the {next(left)}",
            about=[name],
            tags=[next(left)],
            attributes={next(left): next(left)},
            session=session,
        )
        await memory.update(fact.id, content=f"{name} keeps no {next(left)}")
        await memory.correct(fact.id, f"{name} keeps a {next(left)}")
        await memory.add_entity(f"Sir {next(left)}", aliases=[next(left)], relation=f"{next(left)} friend")
        gone = await memory.remember(f"a {next(left)} for nobody")
        await memory.forget(gone.id, reason=f"it was {next(left)}")
        await memory.off_record(f"secret {next(left)}")
        await summed_up(memory, session, name, words)


@pytest.fixture(scope="module")
def words():
    return canaries(200, seed=7)


async def other_things(memory: Memory) -> list[str]:
    """Data that must stay."""
    ids = [await memory.add(f"the kettle number {number} is on", session="kitchen") for number in range(20)]
    kept = await memory.remember("Tom likes plums", about=["Tom"], tags=["fruit"])
    await memory.update(kept.id, tags=["fruit", "plum"])
    return [*ids, kept.id]


@pytest.mark.parametrize("place", ["m.db", "folder/"])
def test_an_erased_owner_leaves_no_byte_and_all_others_stay(tmp_path, words, place):
    async def story():
        async with open_(f"{tmp_path}/{place}", BOB) as bobs:
            ids = await other_things(bobs)
            anns = bobs.scoped(ANN)
            await fill(anns, words)
            await anns.add("hello group")
            await bobs.settle(600)
            before = (await bobs.stats(), await bobs.log(), [await bobs.get(id_) for id_ in ids])
            assert {found.partition(" in ")[0] for found in traces(tmp_path, words)} == set(words)
            dry = await anns.erase(owner=ANN.owner, dry_run=True)
            report = await anns.erase(owner=ANN.owner)
            assert (dry.erased, dry.kept) == (report.erased, report.kept)
            assert report.is_done
            assert {each.kind for each in report.erased} == {"episodic", "semantic", "entity", "relation", "session"}
            await bobs.backup(tmp_path / "copies" / "backup.db")
            # While it is open: the log exists, and this process has read everything before.
            assert traces(tmp_path, [*words, ANN.owner]) == []
            after = (await bobs.stats(), await bobs.log(), [await bobs.get(id_) for id_ in ids])
            assert [before[1], before[2]] == [after[1], after[2]]
            assert before[0].nodes == after[0].nodes
            checked = await bobs.doctor()
            assert checked.ok, checked
            assert (await anns.stats()).nodes == {}
            assert (await anns.search("noon")).hits == ()
            await anns.add("hello again")
            assert (await anns.stats()).nodes == {"episodic": 1}
            with pytest.raises(NotFoundError):
                await bobs.scoped(Scope(owner="nobody")).erase(owner="nobody")
        assert traces(tmp_path, words) == []

    asyncio.run(story())


@pytest.mark.slow
@pytest.mark.parametrize("place", ["m.db", "folder/"])
def test_erasing_step_by_step_leaves_no_byte_either(tmp_path, words, place):
    index = tmp_path / (f"{place}index.db" if place.endswith("/") else place)

    async def story():
        async with open_(f"{tmp_path}/{place}") as memory:
            ids = await other_things(memory)
            await fill(memory, words)
            await memory.settle(600)
            before = [await memory.get(id_) for id_ in ids]
            for session in {row[0] for row in rows(index, "SELECT session_id FROM sessions")} - {"kitchen"}:
                await memory.erase(session=session)
            for name in [each.name for each in await memory.people() if each.name != "Tom"]:
                await memory.erase(entity=name)
            for archived in (False, True):
                for node in (await memory.list(archived=archived, limit=1_000)).nodes:
                    if node.id not in ids:
                        await memory.erase(id=node.id)
            for secret in {row[0] for row in rows(index, "SELECT session_id FROM off_record")}:
                await memory.on_record(secret)
            await memory.erase(id=(await memory.remember("the last one")).id)
            assert traces(tmp_path, words) == []
            await memory.backup(tmp_path / "backup.db")
            assert traces(tmp_path, words) == []
            assert [await memory.get(id_) for id_ in ids] == before
            checked = await memory.doctor()
            assert checked.ok, checked

    asyncio.run(story())


async def undo_all(memory: Memory) -> None:
    """Undo every change of a memory that can be undone."""
    for commit in await memory.log(1_000):
        with suppress(ConflictError):
            await memory.undo(commit.seq, with_later=True)
    assert (await memory.stats()).nodes == {}


@pytest.mark.parametrize("place", ["m.db", "folder/"])
def test_what_was_undone_leaves_no_byte_either(tmp_path, words, place):
    """An erasure of everything, and one of a conversation that was imported, undone and imported again."""

    async def story():
        async with open_(f"{tmp_path}/{place}", BOB) as bobs:
            ids = await other_things(bobs)
            anns = bobs.scoped(ANN)
            await fill(anns, words[:40])
            await anns.settle(600)
            await undo_all(anns)
            assert {found.partition(" in ")[0] for found in traces(tmp_path, words[:40])} == set(words[:40])
            assert (await anns.erase(owner=ANN.owner)).is_done
            assert traces(tmp_path, [*words[:40], ANN.owner]) == []

            told = [Message(text=f"{words[1]} bought a {words[2]}", session="talk", speaker=words[3], id=words[4])]
            await anns.add_many(told)
            await anns.settle(600)
            await undo_all(anns)
            await anns.add_many(told)
            await anns.erase(session="talk")
            assert traces(tmp_path, words) == []
            assert [(await bobs.get(id_)).id for id_ in ids] == ids
            assert (await bobs.doctor()).ok

    asyncio.run(story())


def test_every_table_is_covered_by_erasure(tmp_path):
    """A new table that can hold content is reached by a foreign key or listed in the erasing code."""

    async def nothing(store):
        return None

    opened(tmp_path / "m.db", nothing)
    connection = raw(tmp_path / "m.db")
    truth, by_hand = truth_of(connection), {*TABLES["erased_otherwise"]}
    reached = {"spaces"}
    while True:
        more = {each.table for each in truth.references if each.target in reached} - {*TABLES["referring"]}
        if more <= reached:
            break
        reached |= more
    listed = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables = {name for (name,) in listed if not name.startswith(("nodes_fts_", "archive_fts_"))}
    connection.close()
    assert tables - reached - by_hand - {*TABLES["without_content"]} == set()
    assert tables >= by_hand
    assert not by_hand & reached


async def small(memory: Memory) -> dict[str, str]:
    """Make a session and the facts learnt from it; return ids by name."""
    said = await memory.add("My wife is Mirabel. The code is Zuvinakob.", session="talk")
    fact = await memory.remember("Mirabel likes tea", about=["Mirabel"], session="other")
    lives = await memory.remember("Mirabel lives in Rome", about=["Mirabel"])
    return {"said": said, "likes": fact.id, "lives": lives.id}


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("DELETE FROM erased WHERE rowid_ = 1", "commit rows"),
        ("UPDATE erased SET hash = zeroblob(16) WHERE rowid_ = 1", "erasures"),
        ("UPDATE erasures SET at = at + 1", "row seals"),
        ("DELETE FROM erasures", "commit rows"),
        ("UPDATE commits SET reason = '', seal = substr(seal, -16) WHERE seq = 3", "commit chain"),
        ("UPDATE commits SET actor = 'x' WHERE seq = 3", "commit chain"),
        ("DELETE FROM edges; DELETE FROM subjects; DELETE FROM relations WHERE source IS NULL", "commit rows"),
        (
            "INSERT INTO erased SELECT commit_seq, 'row', substr(seal, -16), NULL, 1 FROM subjects;"
            "DELETE FROM subjects",
            "erasures",
        ),
    ],
)
def test_only_erased_rows_can_pass_as_erased(tmp_path, statement, check):
    """`doctor` detects removed rows, rows marked as erased, and blanked texts."""

    async def story(*, then=None):
        async with open_(tmp_path / "m.db") as memory:
            if then is None:
                ids = await small(memory)
                await memory.remember("Tom plays the lute", about=["Tom"])
                await memory.erase(id=ids["likes"])
            return await memory.doctor()

    assert asyncio.run(story()).ok
    first = "(made, hash) IN (SELECT made, hash FROM erased LIMIT 1)"
    damage(tmp_path / "m.db", *statement.replace("rowid_ = 1", first).split(";"))
    assert check in {finding.check for finding in asyncio.run(story(then=True)).findings if not finding.ok}


def test_other_open_processes_no_longer_see_erased_data(tmp_path):
    async def story():
        path = tmp_path / "m.db"
        async with open_(path) as mine, open_(path) as theirs:
            ids = await small(mine)
            await mine.add("the kettle is on")
            await mine.settle(600)
            for _ in range(3):
                assert (await theirs.search("who is Mirabel")).hits
            shelves = theirs._opened.store.readers._cache.vectors
            assert shelves._shelves
            await mine.erase(entity="Mirabel")
            found = await theirs.search("who is Mirabel")
            assert [hit.content for hit in found.hits] in ([], ["the kettle is on"])
            await theirs.search("the kettle")
            assert sum(len(held.index) for held in shelves._shelves.values()) == 1
            kept = theirs._opened.store.readers._cache.turns
            assert kept.count == 1  # the kettle
            assert "Mirabel" not in str(await theirs.context("who is Mirabel"))
            for id_ in ids.values():
                with pytest.raises(NotFoundError, match="was erased on"):
                    await theirs.get(id_)

    asyncio.run(story())


READER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN"); connection.execute("SELECT count(*) FROM nodes").fetchall()
print("reading", flush=True)
sys.stdin.readline()
"""


def test_a_long_reader_is_reported_and_the_next_opening_truncates_the_log(tmp_path):
    async def story(path):
        async with open_(path, ANN, settings=replace(QUICK, patience_s=0.3)) as memory:
            ids = await small(memory)
            reader = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert reader.stdout.readline() == "reading\n"
            report = await memory.erase(id=ids["said"])
            assert not report.is_done
            assert "-wal" in report.out_of_reach[-1]
            with pytest.raises(NotFoundError, match="was erased on"):
                await memory.get(ids["said"])
            reader.communicate("\n", timeout=20)
        async with open_(path) as memory:
            assert traces(tmp_path, ["Zuvinakob"]) == []
            assert (await memory.doctor()).ok
        assert rows(path, "SELECT count(*) FROM erasing") == [(0,)]

    asyncio.run(story(tmp_path / "m.db"))


def test_memories_with_other_evidence_stay_without_the_erased_part(tmp_path):
    async def story():
        async with open_(tmp_path / "m.db") as memory:
            one = await memory.add("My wife is Mirabel", session="one")
            two = await memory.add("a longer day", session="two")
            lone, both = await memory.remember("a"), await memory.remember("b")
            store = memory._opened.store

            def decide(tx):
                (relation,) = tx.entities.open_relations(ANN, "wife")
                fresh = [
                    replace(lone, id="from-one", key=0, origin="consolidation", content="she is Mirabel"),
                    replace(both, id="from-both", key=0, origin="consolidation", content="a day with Mirabel"),
                ]
                links = [Edge(source="from-one", target=one, type="derived_from", evidence=(one,))]
                links += [
                    Edge(source="from-both", target=each, type="derived_from", evidence=(one, two))
                    for each in (one, two)
                ]
                links += [Edge(source="from-both", target=lone.id, type="entity", evidence=(one, two))]
                kept = replace(relation, evidence=(one, two))
                return Change(add=tuple(fresh), link=tuple(links), put_relations=(kept,)), None

            reason = Reason(actor="x", origin="consolidate", reason="consolidate")
            await store.write(decide, scope=ANN, reason=reason, at=datetime(2026, 1, 1, tzinfo=UTC))
            report = await memory.erase(session="one")
            assert {each.kind: each.count for each in report.erased} == {"episodic": 1, "semantic": 1, "session": 1}
            assert [each.ids for each in report.kept] == [("from-both",)]
            assert (await memory.get("from-both")).content == "a day with Mirabel"
            assert (await memory.entity("Mirabel")).relation == "wife"
            everything = rows(tmp_path / "m.db", "SELECT evidence FROM relations UNION ALL SELECT evidence FROM edges")
            everything += rows(tmp_path / "m.db", "SELECT before FROM history")
            assert not any(one in text for (text,) in everything)
            assert sum(two in text for (text,) in everything) >= 2
            checked = await memory.doctor()
            assert checked.ok, checked
            again = await memory.erase(session="two")
            assert {each.kind for each in again.erased} >= {"semantic", "relation", "entity"}
            checked = await memory.doctor()
            assert checked.ok, checked

    asyncio.run(story())


def test_erasing_a_very_large_memory_uses_little_ram(tmp_path, monkeypatch):
    """Step by step, with progress; other writers do not wait for the end."""
    monkeypatch.setattr(erasing, "STEP_ROWS", 50)
    told = []

    async def story():
        async with open_(tmp_path / "m.db") as memory:
            for start in range(0, 2_000, 500):
                numbers = range(start, start + 500)
                await memory.add_many([Message(text=f"turn {number}", session=f"s{number % 9}") for number in numbers])
            bobs = memory.scoped(BOB)
            await bobs.add("before")
            erased = asyncio.create_task(memory.erase(owner=ANN.owner, progress=lambda *at: told.append(at)))
            while len(told) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await bobs.add("meanwhile")
            assert told[-1][0] < 2_000
            assert (await erased).erased[0].count == 2_000
            assert told[-1] == (2_009, 2_009)
            assert len((await erased).erased[0].ids) == 1_000
            assert (await bobs.stats()).nodes == {"episodic": 2}
            checked = await memory.doctor()
            assert checked.ok, checked

    asyncio.run(story())


async def test_a_rebuild_during_an_erasure_restores_nothing(tmp_path, monkeypatch):
    """The files are rewritten at the end: rows removed only from the index came back with a rebuild."""
    monkeypatch.setattr(erase, "AT_ONCE_ROWS", 0)
    monkeypatch.setattr(erasing, "STEP_ROWS", 1)
    async with open_(f"{tmp_path}/me/") as memory:

        def make_anew(point):
            if point.startswith("erase: ") and threading.current_thread() is threading.main_thread():
                memory._opened.store.index.rebuild()

        gone = [await memory.add(f"lemur-77 number {number}", session="zoo") for number in range(5)]
        faults.install(make_anew)
        await memory.erase(session="zoo")
        faults.install(None)
        assert (await memory.doctor()).ok
        await memory.rebuild_index()
        for id_ in gone:
            with pytest.raises(NotFoundError):
                await memory.get(id_)
        assert (await memory.doctor()).ok
    assert not any(b"lemur-77" in path.read_bytes() for path in (tmp_path / "me").iterdir())
