"""What only the PostgreSQL backend does: opening, broken connections, limits, damage, vectors of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import product
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

import pytest

from ricordo import InvalidError, Memory, Message, Scope, Settings, StoreError, UnavailableError
from ricordo.storage import faults
from ricordo.storage.registry import open_store
from tests.contract import server
from tests.contract.canonical import canonical, differences, searched
from tests.contract.test_commits import listed, numbers
from tests.postgres.network import Requests
from tests.storage.folders import everything
from tests.storage.histories import OPTIONS, PEOPLE, HandClock, History
from tests.storage.making import ME, commit, fact, failing

psycopg = pytest.importorskip("psycopg", reason="`make postgres` installs the client library")


def admin():
    """Open a connection of the tests' own."""
    return psycopg.connect(server.address(), autocommit=True)


def end_connections() -> None:
    """End all other connections, as a server does that restarts."""
    with admin() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid != pg_backend_pid() AND datname = current_database()"
        )


@pytest.fixture
def at_each_fault():
    """Install a function that is called with the name of each point on the way of a write."""
    yield faults.install
    faults.install(None)


# opening


def test_a_server_that_is_not_there_is_named_with_a_remedy():
    with pytest.raises(UnavailableError, match="no connection to PostgreSQL") as refusal:
        open_store("postgresql://127.0.0.1:1/nowhere")
    assert "check that the server runs" in (refusal.value.hint or "")


@pytest.mark.parametrize("schema", ["", "Has Capitals", 'a"b', "x" * 60, "1st"])
def test_a_name_that_no_schema_should_have_is_refused(schema):
    with pytest.raises(InvalidError, match="schema"):
        open_store(f"postgresql://127.0.0.1:1/nowhere?schema={schema}")


def test_a_newer_schema_is_refused_and_not_changed(where):
    store = open_store(where)
    store.close()
    with admin() as connection:
        connection.execute(f'INSERT INTO "{store.location.schema}".migrations VALUES (99)')
    with pytest.raises(StoreError, match=r"99.*upgrade"):
        open_store(where)


def test_several_processes_create_a_store_at_once(where):
    program = "import sys; from ricordo.storage.registry import open_store; open_store(sys.argv[1]).close()"
    root = str(Path(__file__).parents[2])
    started = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, where], cwd=root) for _ in range(4)]
    assert [each.wait(timeout=60) for each in started] == [0, 0, 0, 0]


async def test_what_the_backend_cannot_do_is_refused_with_a_remedy(where, tmp_path):
    async with Memory.open(where, **OPTIONS) as memory:
        await memory.remember("Anna likes tea")
        with pytest.raises(InvalidError, match="no plain files"):
            await memory.rebuild_index()
        with pytest.raises(InvalidError, match="single file"):
            await memory.backup(f"{tmp_path}/copy/")
        with pytest.raises(InvalidError, match="ricordo migrate"):
            await memory.export(tmp_path / "all.jsonl")
        assert (await memory.export(tmp_path / "me.md", format="markdown")) is not None


# connections that break


async def test_reads_and_writes_go_on_after_all_connections_were_ended(store):
    await commit(store, add=(fact("before"),))
    for number in range(3):
        await asyncio.to_thread(end_connections)
        await commit(store, add=(fact(f"after {number}"),))
        await asyncio.to_thread(end_connections)
        assert len(await listed(store)) == number + 2
    assert sorted(await numbers(store)) == [1, 2, 3, 4]
    assert (await store.doctor()).ok


@pytest.mark.parametrize("point", ["writer: after begin", "apply: after commit row", "writer: before commit"])
async def test_a_write_whose_connection_ends_is_done_once(store, point, at_each_fault):
    left = [point]

    def end(reached: str) -> None:
        if left and reached == left[0]:
            left.clear()
            end_connections()

    at_each_fault(end)
    await commit(store, add=(fact("once"),))
    assert not left
    assert await listed(store) == ["once"]
    assert await numbers(store) == [1]


async def test_a_commit_whose_answer_is_lost_is_not_written_twice(store, at_each_fault, monkeypatch):
    """The server has committed, then the connection breaks: the transaction's own state tells."""
    from ricordo.storage.postgres.connection import PostgresConnection

    send, lost = PostgresConnection.commit, []

    def lose(self):
        send(self)
        if not lost:
            lost.append(self.number)
            self.raw.close()
            raise psycopg.OperationalError("the answer was lost")

    monkeypatch.setattr(PostgresConnection, "commit", lose)
    await commit(store, add=(fact("once"),))
    assert lost
    assert await listed(store) == ["once"]
    assert await numbers(store) == [1]


# damage


async def test_doctor_sees_a_row_that_somebody_altered(store):
    await commit(store, add=(fact("likes tea"), fact("likes rain")))
    assert (await store.doctor()).ok
    with admin() as connection:
        connection.execute(f'SET search_path = "{store.location.schema}"')
        connection.execute("UPDATE nodes SET confidence = 0.1 WHERE content = 'likes tea'")
        connection.execute("UPDATE words SET terms = '{}' WHERE node = 2")
    assert {"row seals", "full text"} <= failing(await store.doctor())


async def test_wrong_counts_are_counted_again(store):
    await commit(store, add=(fact("likes tea"), fact("likes rain")))
    with admin() as connection:
        connection.execute(f'SET search_path = "{store.location.schema}"')
        connection.execute("UPDATE shelves SET nodes = nodes + 3")
    report = await store.doctor()
    assert failing(report) == {"counts"}
    await store.mend(report)
    assert (await store.doctor()).ok


async def test_a_change_of_one_owner_is_seen_by_no_other(where):
    async with Memory.open(where, **OPTIONS) as memory:
        await memory.remember("Anna likes tea", tags=["drinks"], attributes={"cups": 2})
        other = memory.scoped(type(ME)(owner="eve"))
        assert not (await other.search("Anna tea")).hits
        assert not (await other.search("Anna tea", type="any", tag="drinks")).hits


async def test_tags_and_attributes_filter_without_case_and_by_type(where):
    async with Memory.open(where, **OPTIONS) as memory:
        kept = await memory.remember("Anna likes tea", tags=["STRASSE", "Ärger"], attributes={"cups": 2})
        await memory.remember("Ben likes rain", tags=["Strasse"], attributes={"cups": 2.0})
        for conditions in ({"tag": ["straße", "ärger"]}, {"where": {"cups": 2}}):
            assert (await memory.search("what is liked", **conditions)).ids == [kept.id], conditions


# moving


async def lived(location, *, steps=25, seed=3):
    clock = HandClock()
    async with Memory.open(location, clock=clock, **OPTIONS) as memory:
        history = History(memory, clock, Path("/nowhere"), seed=seed)
        for _ in range(steps):
            await history.step()
        await memory.settle(600)
        return history.ids


async def dumped(location, ids):
    async with Memory.open(location, clock=HandClock(), **OPTIONS) as memory:
        await memory.settle(600)
        assert failing(await memory.doctor()) == set()
        found = await canonical(memory, ids=ids, names=PEOPLE, points=(2, 9))
        hashes = [(each.seq, each.hash) for each in await memory.log(1_000)]
        return {**found, "hashes": hashes, **await searched(memory, points=(9,))}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 11])
async def test_a_store_moves_to_the_server_and_back_with_all_hashes(tmp_path, where, seed):
    file, back = tmp_path / "me.db", tmp_path / "back.db"
    ids = await lived(file, seed=seed)
    async with Memory.open(file, **OPTIONS) as memory:
        await memory.add("a\0b \uf8f0 \uf8f00", session="odd")
        await memory.migrate(where)
    before = await dumped(file, ids)
    assert differences(before, await dumped(where, ids)) == []
    async with Memory.open(where, **OPTIONS) as memory:
        await memory.migrate(back)
        await memory.migrate(f"{tmp_path}/folder/")
    assert differences(before, await dumped(back, ids)) == []
    assert len(everything(tmp_path / "folder")) > 0
    async with Memory.open(where, **OPTIONS) as memory:
        await memory.remember("life goes on")
        with pytest.raises(InvalidError, match="exists"):
            await memory.migrate(back)
    async with Memory.open(back, **OPTIONS) as memory:
        with pytest.raises(InvalidError, match="not empty"):
            await memory.migrate(where)


# vectors


async def test_vectors_passages_and_words_rank_as_in_a_file(tmp_path, where):
    texts = [
        f"{who} {what} in {place}."
        for who in ("Anna", "Ben")
        for what in ("rows", "sings")
        for place in ("Rome", "Oslo")
    ]
    texts.append("\n".join(f"{'The harvest of peanuts was good that year. ' * 9}Part {number}." for number in range(3)))
    found = []
    for location in (tmp_path / "me.db", where):
        async with Memory.open(location, clock=HandClock()) as memory:
            for text in texts:
                await memory.add(text, session="s")
            await memory.settle(600)
            assert (await memory.stats()).embedding_missing == 0
            answers = [await memory.search(question, type="any") for question in ("a boat in Italy", "nuts", "music")]
            found.append([[(hit.content, round(hit.score, 6)) for hit in answer.hits] for answer in answers])
    assert found[0] == found[1]
    assert all(found[0])


@pytest.fixture
def requests(tmp_path):
    """Provide a network that counts requests, and the location of an empty store that is reached through it."""
    network, place = Requests(server.address()), urlsplit(server.guarded_location(tmp_path))
    there = urlsplit(network.address)
    through = there._replace(
        netloc=f"{place.username}@{there.hostname}:{there.port}",
        query=f"{there.query}&schema={parse_qs(place.query)['schema'][0]}&prepare=off",
    )
    yield network, urlunsplit(through)
    network.close()


READS, ADDS, PROFILES = b"n.key, n.id, n.type", b"INSERT INTO nodes", b"count(DISTINCT walked.node)"
"""What the last request of a search, of an addition and of a context contains."""


@pytest.mark.parametrize("embedder", ["hashing", "default"])
async def test_searches_take_three_round_trips_and_an_addition_takes_two(requests, embedder):
    network, where = requests
    async with Memory.open(where, embedder=embedder, settings=Settings(durability="process")) as memory:
        me = memory.scoped(Scope(owner="anna"))
        await me.remember("My wife is called Mary Jones")
        await me.remember("Mary Jones likes tea in Paris")
        await me.remember("Mary Jones lives in Rome")
        coffee = await me.remember("Mary Jones likes coffee in Paris")
        await me.correct(coffee.id, "Mary Jones likes cocoa in Paris")
        said = [Message(text=f"Tea {n} in Paris with Mary", speaker="Tom", session=f"s{n % 3}") for n in range(60)]
        await me.add_many([*said, Message(text="A long text about tea in Paris. " * 150, session="long")])
        await memory.settle(600)
        questions = (
            "Who drinks tea in Paris?",
            "What does Mary drink in Paris?",
            "Which drink does my wife like?",
            "Tea last week?",
        )
        for question, type_ in product(questions, (None, "any")):
            for _ in range(3):
                network.forget()
                assert (await me.search(question, type=type_)).hits
            assert len(network.latest_with(READS)) <= 3, (question, type_)
        taken = []  # the writer may take background work into the same transaction
        for number in range(3):
            await memory.settle(600)
            network.forget()
            await me.add(f"Cocoa {number} in Rome", session="new")
            taken.append(len(network.latest_with(ADDS)))
        assert min(taken) == 2


async def test_what_a_context_adds_and_a_fact_are_read_side_by_side(requests):
    network, where = requests
    people = {"wife": "Mary Jones", "brother": "Tom Smith", "boss": "Lucy Brown"}
    async with Memory.open(where, embedder="hashing", settings=Settings(durability="process")) as memory:
        me = memory.scoped(Scope(owner="anna"))
        for relation, name in people.items():
            await me.remember(f"My {relation} is called {name}")
            drink = await me.remember(f"{name} likes tea in Paris")
            await me.correct(drink.id, f"{name} likes cocoa in Paris")
            await me.remember(f"{name} is allergic to nuts")
        said = [
            Message(text=f"Did Tom drink tea {n} in Paris?", speaker="Mary", session=f"s{n % 3}") for n in range(20)
        ]
        await me.add_many(said)
        await memory.settle(600)
        for _ in range(3):
            network.forget()
            block = await me.context("What do Mary Jones, Tom Smith and Lucy Brown like to drink in Paris?")
        assert block and all(name in block for name in people.values())
        assert len(network.latest_with(PROFILES)) <= 4
        taken = []  # the writer may take background work into the same transaction
        for drink in ("wine", "mead", "beer"):
            await memory.settle(600)
            network.forget()
            await me.remember(f"Mary Jones likes {drink} in Pisa")
            taken.append(len(network.latest_with(ADDS)))
        assert min(taken) <= 7


NAMED, LATELY = "Does Mary Jones or my wife drink tea?", "Did Mary Jones or my wife drink tea in the last week?"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("embedder", "count", "trips"),
    [
        ("hashing", 30, {"Who drinks tea?": 2, NAMED: 3}),
        ("hashing", 330, {"Who drinks tea?": 3, NAMED: 3, "Who drinks tea since last week?": 3, LATELY: 3}),
        ("default", 30, {"Who drinks tea?": 3, NAMED: 3}),
        ("default", 330, {"Who drinks tea?": 3, LATELY: 3}),
    ],
)
async def test_the_first_search_of_an_owner_takes_few_round_trips(requests, monkeypatch, embedder, count, trips):
    monkeypatch.setattr("ricordo.storage.postgres.snapshot._WHOLE_MOST", 300)
    network, where = requests
    owners = [Scope(owner=f"owner {n}") for n in range(2)]
    async with Memory.open(where, embedder=embedder, settings=Settings(durability="process")) as memory:
        for owner in owners:
            said = [Message(text=f"Tea {n} in Paris", session=f"s{n % 3}") for n in range(count)]
            await memory.scoped(owner).add_many(said)
            await memory.scoped(owner).remember("My wife is called Mary Jones")
            await memory.scoped(owner).remember("Mary Jones drinks tea in Rome")
        await memory.settle(600)
    for question in trips:
        async with Memory.open(where, embedder=embedder, settings=Settings(durability="process")) as memory:
            for owner in owners:
                network.forget()
                assert len((await memory.scoped(owner).search(question, type="any")).hits) == 10
            assert len(network.latest_with(READS)) == trips[question]


@pytest.mark.parametrize("locate", [server.location, server.guarded_location])
async def test_the_first_search_of_each_owner_finds_the_same_as_in_a_file(tmp_path, monkeypatch, locate):
    """It is told ahead what another owner asked, whose space it does not know yet."""
    monkeypatch.setattr("ricordo.storage.postgres.snapshot._WHOLE_MOST", 40)
    questions = "Who drinks tea?", "Where does Mary Jones drink?", "What does my wife drink at 7?", "Any tasks?"
    found = []
    for location in (tmp_path / "me.db", locate(tmp_path / "memory")):
        async with Memory.open(location, embedder="hashing", clock=HandClock()) as memory:
            for number, (owner, count) in enumerate({"anna": 90, "bob": 5, "cleo": 120, "dora": 50, "eve": 0}.items()):
                me = memory.scoped(Scope(owner=owner))
                said = [
                    Message(text=f"{owner} drinks tea {n} in Paris with Mary", speaker=owner, session=f"s{n % 7}")
                    for n in range(count)
                ]
                await me.add_many(said)
                if number % 2:
                    await me.remember("My wife is called Mary Jones")
                    await me.remember(f"Mary Jones likes coffee in town number {number}")
            await memory.scoped(Scope(owner="anna")).create_space("team", members=["dora", "eve"])
            team = memory.scoped(Scope(owner="anna", chat="team"))
            for n in range(60):
                await team.remember(f"The team drinks tea number {n}", shared=True)
            await memory.settle(600)
        async with Memory.open(location, embedder="hashing", clock=HandClock()) as memory:
            answers = []
            for owner, question in product(("cleo", "nobody", "bob", "dora", "eve", "anna", "cleo"), questions):
                hits = (await memory.scoped(Scope(owner=owner)).search(question, type="any")).hits
                answers.append([(hit.content, round(hit.score, 6)) for hit in hits])
            found.append(answers)
    assert found[0] == found[1]
    assert sum(map(bool, found[0])) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("embedder", ["hashing", "default"])
@pytest.mark.parametrize("is_own", [True, False])
async def test_the_first_search_after_a_write_takes_three_round_trips(requests, is_own, embedder):
    network, where = requests
    settings = Settings(durability="process")
    async with (
        Memory.open(where, embedder=embedder, settings=settings) as memory,
        Memory.open(where, embedder=embedder, settings=settings) as other,
    ):
        me, writer = memory.scoped(Scope(owner="anna")), memory if is_own else other
        await me.remember("Mary Jones likes tea in Paris")
        said = [Message(text=f"Tea {n} in Paris with Mary", session=f"s{n % 3}") for n in range(60)]
        await me.add_many([*said, Message(text="A long text about cocoa with Mary in Paris. " * 150, session="long")])
        await memory.settle(600)
        writes = (
            lambda they, n: they.add(f"Mary drank cocoa {n} in Paris", session="s1"),
            lambda they, n: they.remember(f"Mary Jones likes cake number {n}"),
        )
        for number, write in product(range(3), writes):
            for _ in range(4):
                assert (await me.search("What does Mary drink in Paris?", type="any")).hits
            await network.settle()  # what is left is loaded in the background
            await write(writer.scoped(Scope(owner="anna")), number)
            await writer.settle(600)
            await memory.settle(600)  # it notices that another process has written
            network.forget()
            assert (await me.search(f"Did Mary have cocoa {number} in Paris?", type="any")).hits
            if number:  # the first time, it is not known what the caller asks
                assert len(network.latest_with(READS)) <= 3, (number, write)


async def test_a_row_that_the_server_refuses_fails_only_its_own_change(where):
    """It is sent together with the COMMIT."""
    store = open_store(where)
    try:

        def refused(tx):
            with tx.in_one_trip():
                tx.many("subject_insert", [(1, 1, 1, 1, b"")])

        with pytest.raises(StoreError, match="refused the change"):
            await store.derive(refused)
        await commit(store, add=[fact("Likes tea")])
        assert len(await listed(store)) == 1
    finally:
        store.close()


# upgrades


async def test_an_upgrade_gives_way_to_readers_of_a_table_and_tries_again(where, monkeypatch):
    from ricordo.storage.postgres import schema

    open_store(where).close()
    newest = schema.migrations()[-1][0]
    steps = (*schema.migrations(), (newest + 1, "ALTER TABLE nodes ADD COLUMN later bigint"))
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    monkeypatch.setattr(schema, "_LOCK_MS", 50)
    name = open_location(where).schema
    with admin() as reader, reader.transaction():
        reader.execute(f'SELECT count(*) FROM "{name}".nodes')
        opening = asyncio.create_task(asyncio.to_thread(open_store, where))
        await asyncio.sleep(0.3)
        with admin() as another:
            another.execute("SET statement_timeout = 2000")
            another.execute(f'SELECT count(*) FROM "{name}".nodes')  # would wait behind a waiting step
        assert not opening.done()
    store = await opening
    try:
        assert store.writer.submit(lambda tx: schema.version_of(tx.connection)).result() == newest + 1
    finally:
        store.close()


async def test_words_of_another_analyzer_are_derived_again_while_others_write(where, monkeypatch):
    from ricordo.storage.postgres import store as store_module
    from ricordo.storage.postgres import words

    async with Memory.open(where, **OPTIONS) as memory:
        await memory.add_many([Message(text=f"tea number {n}") for n in range(25)])
        schema = open_location(where).schema
        monkeypatch.setattr(words, "_STEP", 10)
        steps, analyze = [], words.analyze_again

        def noted(snapshot):
            is_left = analyze(snapshot)
            steps.append(is_left)
            return is_left

        monkeypatch.setattr(store_module, "analyze_again", noted)
        with admin() as connection:
            connection.execute(f"UPDATE \"{schema}\".meta SET value = 'older' WHERE name = 'analyzer'")
            connection.execute(f"UPDATE \"{schema}\".words SET terms = '{{}}'")
        async with Memory.open(where, **OPTIONS) as other:
            assert steps == [True, True, False]
            assert (await other.search("number 7", type="any")).hits
            assert (await other.doctor()).ok


def open_location(where):
    from ricordo.storage.postgres.location import Location

    return Location.of(where)
