"""Vectors follow their nodes: out of the index, back in, to another partition or model, in every process."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.storage.making import ME, closing, commit, fact, failing, opened, rows

from ricordo.errors import InvalidError, UnavailableError
from ricordo.memory import Memory
from ricordo.model import RowId, RowState
from ricordo.storage import faults
from ricordo.storage.database import embeddings
from ricordo.storage.database.embeddings import Corpus, VectorShelves
from ricordo.storage.database.history import Ledger
from ricordo.storage.values import NewVectors

DIMENSION = 8
EMBEDDED = "SELECT node FROM embeddings"


@pytest.fixture
def small_packs(monkeypatch):
    """Use segments of four vectors instead of 16,384."""
    monkeypatch.setattr(embeddings, "PACK_ROWS", 4)


@pytest.fixture(params=[(6, 0), (6, 10_000), (10_000, 10_000)], ids=["large", "medium", "small"])
def size(request, monkeypatch, small_packs):
    """Cover the behaviour above 150,000 vectors, above 50,000, and below."""
    sketched_from, at_once = request.param
    monkeypatch.setattr(embeddings, "SKETCH_FROM", sketched_from)
    monkeypatch.setattr(embeddings, "_READ_AT_ONCE", at_once)


def vector_of(key, turn=0):
    return np.random.default_rng([key, turn]).standard_normal(DIMENSION).astype(np.float32)


def new(key, text, turn=0):
    """Return a vector and two word vectors made from a text."""
    vector = vector_of(key, turn)
    return NewVectors(key=key, content=text, vector=vector, pieces=("a", "b"), words=np.eye(2, dtype=np.float32))


class World:
    """A store with one model, its expected state from SQL, and readers that joined at different times."""

    def __init__(self, store):
        self.store = store
        self.model = None
        self.readers = []

    async def begin(self):
        self.model = await self.store.derive(lambda tx: tx.models.adopt(name="m", dimension=DIMENSION, spec=""))

    async def add(self, count):
        nodes = [fact(f"fact {random.random()}") for _ in range(count)]
        await commit(self.store, add=tuple(nodes))
        return nodes

    async def embed(self, turn=0):
        """Embed all nodes without a vector."""

        def work(tx):
            lacking = tx.rows("lacking", {"model": self.model.key, "after": 0, "most": 1_000})
            tx.vectors.put(self.model.key, DIMENSION, [new(key, text, turn) for key, text, _ in lacking])

        await self.store.derive(work)

    async def pack(self):
        while await self.store.derive(lambda tx: tx.vectors.compact()):
            pass

    async def tidy(self):
        """Delete removals, as if all vectors had just been computed; return the number of rows."""

        def work(tx):
            newest = tx.rows("embeddings_position")[0][1]
            tx.models.note_progress(self.model.key, 0, newest)
            return tx.models.drop_removals()

        return await self.store.derive(work)

    async def key(self, node):
        return await self.store.read(lambda tx: tx.rows("node_place", {"id": node.id})[0][0])

    def corpus(self, tx, shelves):
        return Corpus(self.model.key, DIMENSION, tx.visible(ME), shelves)

    async def held(self, shelves, on="kec"):
        """Return the answer of a reader's index: {key: score}."""
        question = np.ones(DIMENSION, np.float32)
        keys, scores = await self.store.read(
            lambda tx: shelves.nearest(tx, self.corpus(tx, on), question, limit=10_000, among=None)
        )
        return dict(zip(keys.tolist(), scores.tolist(), strict=True))

    async def read_on(self, reader):
        return await self.store.read(lambda tx: reader.read_on(tx, for_s=0))  # one segment at a time

    async def vectors(self, shelves, keys):
        """Return a reader's vectors for keys in all partitions."""
        return await self.store.read(lambda tx: shelves.vectors(tx, self.corpus(tx, "kec"), np.array(keys)))

    async def check(self):
        """Old readers, a new one, and the table of embeddings agree."""
        self.readers.append(VectorShelves())
        for shelf in "kec":
            wanted = await self.store.read(lambda tx, s=shelf: self._wanted(tx, s))
            for reader in self.readers:
                assert set(await self.held(reader, shelf)) == wanted
        answers = [await self.held(reader) for reader in self.readers]
        assert all(answer == answers[0] for answer in answers)
        keys = [*range(60, 0, -1), 7]
        vectors = [await self.vectors(reader, keys) for reader in self.readers]
        for given in vectors:
            np.testing.assert_array_equal(given, vectors[0])
            assert {key for key, vector in zip(keys, given, strict=True) if vector[0] == vector[0]} == {
                key for key in answers[0] if key <= 60
            }

        asked = {"model": self.model.key, "nodes": json.dumps(list(range(1_000)))}
        words = await self.store.read(lambda tx: {row[0] for row in tx.rows("word_vectors_of", asked)})
        embedded = await self.store.read(lambda tx: {row[0] for row in tx.connection.execute(EMBEDDED)})
        assert words == embedded, "word vectors follow as vectors do"

    def _wanted(self, tx, shelf):
        values = {"model": self.model.key, "space": tx.space("me", ""), "shelf": shelf, "after": 0, "most": 10_000}
        return {int(key) for key in (tx.rows("embeddings_new", values)[0][1] or "").split(",") if key}


def story(path, tell):
    """Open a world and run `tell(world)`."""

    async def work(store):
        world = World(store)
        await world.begin()
        await tell(world)
        report = await store.doctor()
        assert not failing(report), report

    opened(path, work)


def test_a_closed_node_leaves_the_index_and_a_restored_one_returns(tmp_path):
    async def tell(world):
        one, two = await world.add(2)
        await world.embed()
        await world.check()
        await commit(world.store, close=(closing(one),))
        await world.check()
        assert len(await world.held(world.readers[0])) == 1
        await commit(world.store, put=(one,))
        await world.check()
        assert set(await world.held(world.readers[0])) == {await world.key(one), await world.key(two)}

    story(tmp_path / "m.db", tell)


def test_old_removals_are_deleted_and_a_stale_reader_starts_over(tmp_path):
    async def tell(world):
        nodes = await world.add(6)
        await world.embed()
        await world.check()
        slept = world.readers.pop()
        for node in nodes[:4]:
            await commit(world.store, close=(closing(node),))
        assert await world.tidy() == 3, "the newest is the position of all readers, and stays"
        assert await world.tidy() == 0
        assert (await _now(world)).models.lost_since(1)[1] == 1, "who made vectors then looks through all again"
        await commit(world.store, put=(nodes[0],))
        world.readers.append(slept)
        await world.check()
        assert len(await world.held(slept)) == 3

    story(tmp_path / "m.db", tell)


async def _now(world):
    return await world.store.read(lambda tx: tx)


def test_changed_text_needs_a_new_vector(tmp_path):
    async def tell(world):
        (node,) = await world.add(1)
        await world.embed()
        await world.check()
        before = await world.held(world.readers[0])
        await commit(world.store, put=(replace(node, content="other words"),))
        await world.check()
        assert await world.held(world.readers[0]) == {}
        await world.embed(turn=1)
        await world.check()
        after = await world.held(world.readers[0])
        assert after.keys() == before.keys() and after != before

    story(tmp_path / "m.db", tell)


def test_a_vector_for_outdated_text_is_not_stored(tmp_path):
    async def tell(world):
        (node,) = await world.add(1)
        key = await world.key(node)
        await commit(world.store, put=(replace(node, content="other words"),))
        await world.store.derive(lambda tx: tx.vectors.put(world.model.key, DIMENSION, [new(key, node.content)]))
        assert await world.held(VectorShelves()) == {}

    story(tmp_path / "m.db", tell)


def test_the_id_of_a_moved_vector_is_never_reused(tmp_path):
    """A reader that had followed up to that id would never see its next use."""

    async def tell(world):
        one, _ = await world.add(2)
        await world.embed()
        await commit(world.store, close=(closing(one),))
        await commit(world.store, put=(one,))  # back, with the highest id
        await world.check()
        await commit(world.store, put=(replace(one, content="other words"),))  # the highest id goes
        await world.embed(turn=1)
        await world.check()
        assert len(await world.held(world.readers[0])) == 2

    story(tmp_path / "m.db", tell)


def test_a_node_keeps_its_vector_when_it_changes_partition(tmp_path):
    path = tmp_path / "m.db"

    async def tell(world):
        one, two = await world.add(2)
        await world.embed()
        await world.check()
        key = await world.key(one)
        await _move(world, key, "c")
        await world.check()
        assert set(await world.held(world.readers[0], "c")) == {key}
        assert set(await world.held(world.readers[0], "k")) == {await world.key(two)}
        await _move(world, key, "k")
        await world.check()

    story(path, tell)
    assert rows(path, "SELECT sum(nodes) FROM shelves") == [(2,)]


def test_when_all_loose_vectors_were_closed_before_packing_nothing_is_packed(tmp_path, small_packs):
    async def tell(world):
        nodes = await world.add(6)
        await world.embed()
        await commit(world.store, close=tuple(closing(node) for node in nodes))
        await world.pack()
        await world.check()
        assert await world.held(VectorShelves()) == {}

    story(tmp_path / "m.db", tell)


@pytest.mark.parametrize("seed", range(6))
def test_every_reader_index_equals_the_stored_vectors(tmp_path, size, seed):
    """Add, close, restore, edit, move, pack and read in any order."""
    dice = random.Random(seed)

    async def tell(world):
        nodes, gone = list(await world.add(6)), []
        for turn in range(40):
            match dice.choice(
                ("add", "embed", "embed", "pack", "close", "restore", "alter", "move", "check", "read on", "tidy")
            ):
                case "add":
                    nodes += await world.add(dice.randrange(1, 4))
                case "embed":
                    await world.embed(turn)
                case "pack":
                    await world.pack()
                case "close" if nodes:
                    node = nodes.pop(dice.randrange(len(nodes)))
                    await commit(world.store, close=(closing(node),))
                    gone.append(node)
                case "restore" if gone:
                    node = gone.pop(dice.randrange(len(gone)))
                    await commit(world.store, put=(node,))
                    nodes.append(node)
                case "alter" if nodes:
                    place = dice.randrange(len(nodes))
                    nodes[place] = replace(nodes[place], content=f"altered {turn}")
                    await commit(world.store, put=(nodes[place],))
                case "move" if nodes:
                    key, shelf = await world.key(dice.choice(nodes)), dice.choice("kec")
                    await _move(world, key, shelf)
                case "tidy":
                    await world.tidy()
                case "read on" if world.readers:
                    await world.read_on(dice.choice(world.readers))
                case "check":
                    await world.check()
        await world.embed(99)
        await world.check()

    story(tmp_path / "m.db", lambda world: _quietly(tell(world)))


@pytest.mark.parametrize("size", [(6, 0)], indirect=True)
def test_vectors_of_a_large_partition_are_read_at_the_second_search(tmp_path, size):
    async def tell(world):
        nodes = await world.add(30)
        await world.embed()
        await world.pack()
        reader = VectorShelves()
        first = await world.held(reader)
        assert len(first) == 30
        await commit(world.store, close=tuple(closing(node) for node in nodes[3:15]))  # time to compact the live rows
        halfway = [await world.held(reader)]
        while await world.read_on(reader):
            halfway.append(await world.held(reader))
        assert len(halfway) == 8, "a pack at a time, seven of them"
        assert not await world.read_on(reader)
        gone = {await world.key(node) for node in nodes[3:15]}
        left = {key: score for key, score in first.items() if key not in gone}
        assert all(held == left for held in halfway)
        wanted, question = np.array([*gone, 900, *list(left)[:3]]), np.ones(DIMENSION, np.float32)
        among = await world.store.read(
            lambda tx: reader.nearest(tx, world.corpus(tx, "kec"), question, limit=5, among=wanted)
        )
        assert set(among[0].tolist()) == set(list(left)[:3])

    story(tmp_path / "m.db", tell)


@pytest.mark.parametrize("size", [(6, 0), (6, 10_000)], indirect=True)
def test_a_damaged_segment_spoils_no_answer(tmp_path, size):
    async def tell(world):
        await world.add(30)
        await world.embed()
        await world.pack()
        right = await world.held(VectorShelves())
        await world.store.derive(lambda tx: tx.connection.execute(NOT_A_NUMBER) and None)
        reader = VectorShelves()
        assert await world.held(reader) == right
        with pytest.raises(InvalidError, match="scales"):
            while await world.read_on(reader):
                pass
        assert await world.held(reader) == right

    story(tmp_path / "m.db", tell)


NOT_A_NUMBER = """
UPDATE packs SET segment = CAST(substr(segment, 1, 32) || x'0000c07f' || substr(segment, 37) AS BLOB)
WHERE key = (SELECT min(key) FROM packs)
"""


async def _move(world, key, shelf):
    """Move a node to another partition in a commit of its own."""
    row = RowId(table="nodes", key=(key,))
    image = await world.store.read(lambda tx: Ledger(tx).current(row))
    await commit(world.store, rows=(RowState(row=row, values={**image, "shelf": shelf}),))


async def _quietly(tale):
    await tale


# changing the embedder


class Letters:
    """An embedder that cannot be built from a name: letter frequencies."""

    name = "letters"
    dimension = 26

    async def embed(self, text, *, kind="query"):
        counts = np.array([text.lower().count(chr(97 + place)) for place in range(26)], np.float32)
        return counts / max(1.0, float(np.linalg.norm(counts)))

    async def embed_batch(self, texts, *, kind="passage"):
        return [await self.embed(text) for text in texts]


WORDS = [
    "tea",
    "coffee",
    "milk",
    "bread",
    "butter",
    "anna",
    "berta",
    "carl",
    "likes",
    "hates",
    "drinks",
    "eats",
    "every",
    "morning",
    "evening",
]
QUESTIONS = ("who drinks tea", "bread and butter", "morning")


def texts(count):
    dice = random.Random(8)
    return [f"{number} " + " ".join(dice.choices(WORDS, k=6)) for number in range(count)]


async def tell_all(memory, lot):
    await asyncio.gather(*(memory.add(text) for text in lot))


async def answers(memory):
    return [[hit.content for hit in (await memory.search(question, limit=20)).hits] for question in QUESTIONS]


def vectors_in(path):
    """Return {text: vector} and the names of the models."""
    found = rows(path, "SELECT n.content, e.vector FROM embeddings e JOIN nodes n ON n.key = e.node")
    return dict(found), rows(path, "SELECT name, state FROM models")


def test_a_store_that_changed_its_model_equals_one_that_always_had_it(tmp_path):
    changed, fresh = tmp_path / "changed.db", tmp_path / "fresh.db"
    lot = texts(150)

    async def main():
        async with Memory.open(changed, embedder=Letters()) as memory:
            for text in lot:
                await memory.add(text)
            await memory.settle(600)
        async with Memory.open(changed, embedder="hashing") as memory:
            await memory.settle(600)
            mine = await answers(memory)
        async with Memory.open(fresh, embedder="hashing") as memory:
            for text in lot:
                await memory.add(text)
            await memory.settle(600)
            return mine, await answers(memory)

    mine, theirs = asyncio.run(main())
    assert mine == theirs
    assert vectors_in(changed) == vectors_in(fresh)
    assert vectors_in(fresh)[1] == [("hashing-256-v1", "active")]


def test_while_the_model_changes_the_old_one_answers_and_the_answer_says_so(tmp_path):
    path = tmp_path / "m.db"

    async def main():
        async with Memory.open(path, embedder="hashing") as memory:
            await tell_all(memory, texts(30))
            await memory.settle(600)
        slow = Slow()
        async with Memory.open(path, embedder=slow) as memory:
            during = await memory.search("tea")
            slow.gate.set()
            await memory.settle(600)
            return during, await memory.search("tea")

    during, after = asyncio.run(main())
    assert during.hits
    assert any("changing its model" in said for said in during.degraded)
    assert after.hits and after.degraded == ()


class Slow(Letters):
    """An embedder that embeds passages only when released."""

    def __init__(self):
        self.gate = asyncio.Event()

    async def embed_batch(self, texts, *, kind="passage"):
        await self.gate.wait()
        return await super().embed_batch(texts)


def test_switching_embedders_back_and_forth_ends_with_the_last(tmp_path):
    path = tmp_path / "m.db"

    async def main():
        for embedder in ("hashing", Letters(), "hashing", Letters(), "hashing"):
            async with Memory.open(path, embedder=embedder) as memory:
                await tell_all(memory, texts(10))
        async with Memory.open(path, embedder="hashing") as memory:
            await memory.settle(600)
            return await memory.doctor(), await memory.search("tea")

    report, results = asyncio.run(main())
    assert report.ok and results.hits
    vectors, known = vectors_in(path)
    assert known == [("hashing-256-v1", "active")]
    assert len(vectors) == 10  # the same ten texts five times, each a memory of its own
    assert rows(path, "SELECT count(*) FROM embeddings") == [(50,)]


def test_a_process_with_a_replaced_embedder_keeps_working(tmp_path, caplog):
    path = tmp_path / "m.db"

    async def main():
        async with Memory.open(path, embedder=Letters()) as first:
            await first.add("Anna likes tea")
            await first.settle(600)
            async with Memory.open(path, embedder="hashing") as second:
                rows(path, "DELETE FROM leases")  # as if the first one's ten seconds were over
                await second.settle(600)
                await first.add("Berta likes milk")
                await first.settle(600)
                await second.settle(600)
                return (await first.search("milk")).hits, (await second.search("milk")).hits

    mine, theirs = asyncio.run(main())
    assert mine[0].content == theirs[0].content == "Berta likes milk"
    assert [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
    assert vectors_in(path)[1] == [("hashing-256-v1", "active")]


def test_an_open_process_switches_to_the_new_embedder(tmp_path):
    path = tmp_path / "m.db"

    async def main():
        async with Memory.open(path, embedder=Letters()) as first:
            await first.add("Anna likes tea")
            await first.settle(600)
            before = await first.search("tea", trace=True)
            async with Memory.open(path, embedder="hashing") as second:
                rows(path, "DELETE FROM leases")  # as if the first one's ten seconds were over
                await second.settle(600)
                return before, await first.search("tea", trace=True)

    before, after = asyncio.run(main())
    assert before.trace.candidates["meaning"] == after.trace.candidates["meaning"] == 1
    assert after.degraded == ()


def test_the_key_of_a_dropped_model_is_never_reused(tmp_path):
    """Another process may still hold vectors under it."""

    async def work(store):
        first = await store.derive(lambda tx: tx.models.adopt(name="a", dimension=2, spec=""))
        coming = await store.derive(lambda tx: tx.models.adopt(name="b", dimension=2, spec=""))
        await store.derive(lambda tx: tx.models.adopt(name="a", dimension=2, spec=""))
        assert await store.derive(lambda tx: tx.models.drop_retired())
        other = await store.derive(lambda tx: tx.models.adopt(name="c", dimension=3, spec=""))
        return first.key, coming.key, other.key

    assert opened(tmp_path / "m.db", work) == (1, 2, 3)


def test_writes_of_another_process_are_found_by_meaning(tmp_path):
    """The two share only the file; each has its own engine."""
    path = tmp_path / "m.db"

    async def main():
        async with Memory.open(path, embedder="hashing") as reader, Memory.open(path, embedder="hashing") as writer:
            node = await writer.remember("the zebra eats grass")
            await writer.settle(600)
            vectors = (await reader._opened.embed_question("zebras")).vectors
            found = await reader.search("zebras", trace=True)
            await writer.forget(node.id)
            return vectors, found, await reader.search("zebras")

    vectors, found, gone = asyncio.run(main())
    assert vectors
    assert found.trace.candidates["meaning"] == 1
    assert gone.hits == ()


def test_failing_background_work_is_retried_and_close_still_works(tmp_path, caplog):
    """The task died, and then `settle` waited forever."""
    path, left = tmp_path / "m.db", [ValueError("a bug"), ValueError("another")]

    def fail_twice(point):
        if point == "vectors: before storing" and left:
            raise left.pop()

    async def main():
        async with Memory.open(path, embedder="hashing") as memory:
            await memory.add("Anna likes tea")
            await memory.settle(600)
            return (await memory.stats()).embedding_missing

    faults.install(fail_twice)
    try:
        assert asyncio.run(main()) == 0
    finally:
        faults.install(None)
    assert left == []
    assert caplog.text.count("background work failed") == 2


def test_background_work_that_keeps_failing_is_logged_once_and_tried_less_and_less_often(tmp_path, caplog):
    """While somebody waited, the log got 10 tracebacks a second."""
    is_broken, tries = True, []

    def fail(point):
        if point == "vectors: before storing" and is_broken:
            tries.append(point)
            raise ValueError("a bug")

    async def main():
        nonlocal is_broken
        async with Memory.open(tmp_path / "m.db", embedder="hashing") as memory:
            await memory.add("Anna likes tea")
            with pytest.raises(UnavailableError):
                await memory.settle(2)
            failed, is_broken = len(tries), False
            await memory.settle(600)
            return failed, (await memory.stats()).embedding_missing

    faults.install(fail)
    try:
        failed, missing = asyncio.run(main())
    finally:
        faults.install(None)
    assert 2 <= failed <= 8
    assert missing == 0
    assert caplog.text.count("background work failed") == 1
