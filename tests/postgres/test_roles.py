"""Roles that own nothing: the server itself keeps owners apart, also where a statement forgets to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ricordo import ConflictError, Memory, Scope, Settings
from ricordo.language import ScriptedModel
from ricordo.storage.registry import open_store
from tests.contract import server, test_spaces
from tests.leaks import many
from tests.leaks.many import Still
from tests.leaks.world import extracted, private
from tests.postgres.cut import cut

psycopg = pytest.importorskip("psycopg", reason="`make postgres` installs the client library")

WITHOUT_OWNER = {"counters", "leases", "meta", "migrations", "model_use", "models", "removals", "to_link"}
"""Tables whose rows hold numbers and names of models, of the whole store."""
OF_ALL = {"chain_head", "positions"}
"""Views that show numbers of the whole store."""
ANNA, BOB = Scope(owner="anna"), Scope(owner="bob")


@pytest.fixture
def guarded(tmp_path: Path) -> str:
    return server.guarded_location(tmp_path / "memory")


@pytest.fixture
async def memory(guarded: str) -> AsyncIterator[Memory]:
    settings = Settings(durability="process")
    async with Memory.open(
        guarded, embedder="hashing", model=ScriptedModel(extracted), settings=settings, clock=Still()
    ) as opened:
        yield opened


def located(where: str) -> Any:
    from ricordo.storage.postgres.location import Location

    return Location.of(where)


@contextmanager
def connected(where: str) -> Iterator[Any]:
    """A connection of the store's role, with the store's schema first."""
    location = located(where)
    with psycopg.connect(location.conninfo, autocommit=True) as connection:
        connection.execute(f'SET search_path = "{location.schema}"')
        yield connection


async def test_statements_without_their_owner_conditions_show_no_canary(memory, tmp_path, monkeypatch):
    cutting = many.Cutting(monkeypatch)
    tally = await many.try_all(memory, tmp_path, calls=250, seed=11, filled=cutting)
    assert len(cutting.names) > 100
    assert tally.canaries == []


async def test_without_roles_such_statements_show_canaries(where, tmp_path, monkeypatch):
    """So the test above would notice."""
    async with Memory.open(where, embedder="hashing", model=ScriptedModel(extracted), clock=Still()) as memory:
        await private(memory, Random(1))
        await memory.settle(600)
        cut(monkeypatch)
        await memory.scoped(Scope(owner="eve")).remember("Bob lives in Paris")
        shown = (await memory.scoped(Scope(owner="eve")).list(limit=100)).nodes
    assert [each.content for each in shown if "Zq" in each.content]


async def test_a_role_sees_the_rows_of_the_caller_of_its_transaction_alone(memory, guarded):
    for scope in (ANNA, BOB):
        await memory.scoped(scope).remember(f"{scope.owner}_ likes tea", about=["Tea"])  # nobody's name
    tables = ("nodes", "commits", "entities", "subjects", "words", "traits", "shelves", "aliases", "embeddings")
    await memory.settle(600)

    def counted(connection: Any) -> dict[str, int]:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}

    with connected(guarded) as connection:
        assert set(counted(connection).values()) == {0}
        for owner in ("anna", "bob"):
            with connection.transaction():
                connection.execute("SELECT see(%s, '')", (owner,))
                assert set(counted(connection).values()) == {1}
                assert connection.execute("SELECT content FROM live_nodes").fetchall() == [(f"{owner}_ likes tea",)]
        assert set(counted(connection).values()) == {0}
        with connection.transaction():
            connection.execute(f"SET LOCAL ROLE {server.UPKEEP}")
            assert set(counted(connection).values()) == {2}


async def test_a_role_writes_no_row_of_another_owner(memory, guarded):
    for scope in (ANNA, BOB):
        await memory.scoped(scope).remember(f"{scope.owner} likes tea")
    with connected(guarded) as connection:
        with connection.transaction():
            connection.execute("SELECT see('anna', '')")
            assert connection.execute("UPDATE nodes SET content = 'x' WHERE content LIKE 'bob%'").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"), connection.transaction():
            connection.execute("SELECT see('anna', '')")
            connection.execute("INSERT INTO shelves SELECT key + 1, 'k', 1, 1 FROM spaces WHERE owner = 'anna'")


async def test_an_id_of_another_owner_is_taken_without_showing_its_text(memory):
    await memory.scoped(ANNA).remember("Anna likes tea", id="one")
    for text in ("Anna likes tea", "Bob likes tea"):
        with pytest.raises(ConflictError) as refused:
            await memory.scoped(BOB).remember(text, id="one")
        assert "Anna" not in str(refused.value).replace(text, "")


async def test_nothing_of_a_transaction_stays_in_its_connection(guarded):
    """As PgBouncer needs in transaction mode: the next transaction may be another client's."""
    store: Any = open_store(guarded, durability="process", reader_threads=1)
    try:
        asked = "SELECT current_setting('ricordo.spaces', true), current_setting('ricordo.owner', true), current_user"
        await store.seen_by(ANNA).read(lambda tx: tx.statistics.size(ANNA, ("k",)))
        await store.read(lambda tx: tx.lifecycle.scopes())
        await store.seen_by(ANNA).derive(lambda tx: tx.lifecycle.note_decay(ANNA, at=1))
        for left in (store.writer.connection.raw.execute(asked), None):
            if left is None:
                with store.readers.connected() as connection:
                    left = connection.raw.execute(asked)
            spaces, owner, role = left.fetchone()
            assert (spaces or "", owner or "", role) == ("", "", server.CALLERS)
    finally:
        store.close()


def test_each_table_has_a_policy_or_no_owner(guarded):
    with connected(guarded) as connection:
        found = connection.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, pg_get_userbyid(c.relowner),"
            " (SELECT array_agg(polname::text ORDER BY polname) FROM pg_policy WHERE polrelid = c.oid) FROM pg_class c"
            " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace"
        ).fetchall()
        views = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace::regnamespace::text LIKE"
            " current_schema() || '%' AND NOT coalesce('security_invoker=true' = ANY (reloptions), false)"
        ).fetchall()
    assert {name for name, is_forced, *_ in found if not is_forced} == WITHOUT_OWNER
    assert {tuple(policies) for _, is_forced, _, policies in found if is_forced} == {("everything", "of_owner")}
    assert {owner for _, _, owner, _ in found} == {server.OWNER}
    assert {name for (name,) in views} == OF_ALL


def test_a_role_without_rights_reads_no_table(guarded):
    with psycopg.connect(server.address(), autocommit=True) as admin:
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = 'ricordo_stranger'").fetchone():
            admin.execute("CREATE ROLE ricordo_stranger LOGIN")
    location = located(server.location(Path("any"), role="ricordo_stranger"))
    schema = located(guarded).schema
    with psycopg.connect(location.conninfo, autocommit=True) as stranger:
        there = stranger.execute(
            "SELECT relnamespace::regnamespace::text, relname FROM pg_class WHERE relkind IN ('r', 'v')"
            " AND relnamespace::regnamespace::text IN (%s, %s)",
            (schema, f"{schema}_past"),
        ).fetchall()
        assert len(there) > 50
        asked = [f'SELECT * FROM "{where}"."{name}"' for where, name in there]
        for statement in (*asked, f'SELECT "{schema}".live_holders(%s, 1)', f"SET ROLE {server.UPKEEP}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stranger.execute(statement, ("x",) if "%s" in statement else None)


async def test_doctor_says_whether_the_server_keeps_owners_apart(memory, where):
    async with Memory.open(where, embedder=None) as other:
        said = {each.check: each for each in [*(await memory.doctor()).findings, *(await other.doctor()).findings]}
        apart = [each for each in (await memory.doctor()).findings if each.check == "owners"]
    assert apart[0].detail.startswith("kept apart by the server")
    assert said["owners"].detail.startswith("kept apart by statements alone")
    assert said["owners"].ok


SPACES = sorted(
    name
    for name, test in vars(test_spaces).items()
    if name.startswith("test_") and "memory" in test.__code__.co_varnames[: test.__code__.co_argcount]
)


@pytest.mark.parametrize("story", SPACES)
async def test_shared_spaces_are_the_same_where_the_server_hides_rows(guarded, story):
    async with Memory.open(guarded, embedder=None, settings=Settings(durability="process")) as memory:
        await getattr(test_spaces, story)(memory)


async def test_what_a_caller_sees_does_not_take_longer_with_more_owners(memory, guarded):
    await memory.scoped(ANNA).remember("Anna likes tea")
    scans = "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relid IN ('spaces'::regclass, 'members'::regclass)"
    seen = "SELECT spaces_seen('owner 77', '', %s) = (SELECT key::text FROM spaces WHERE owner = 'owner 77')"
    with connected(guarded) as connection:
        connection.execute(f"SET ROLE {server.UPKEEP}")
        connection.execute("INSERT INTO spaces (owner, chat) SELECT 'owner ' || n, '' FROM generate_series(1, 5000) n")
        connection.execute(
            "INSERT INTO members (space, member, role, changed_at, commit_seq, seal)"
            " SELECT key, owner, 'reader', 0, (SELECT max(seq) FROM commits), '' FROM spaces"
        )
        connection.execute("ANALYZE spaces, members")
        connection.execute("SELECT pg_stat_force_next_flush()")
        before = connection.execute(scans).fetchall()
        for shared in ("*", "-", '["team"]'):
            assert connection.execute(seen, [shared]).fetchone() == (True,)
        connection.execute("SELECT pg_stat_force_next_flush()")
        assert connection.execute(scans).fetchall() == before


async def test_an_owner_is_off_the_record_in_every_chat_and_sees_all_own_chats(memory):
    anna, shop = memory.scoped(ANNA), memory.scoped(Scope(owner="anna", chat="shop"))
    await anna.off_record()
    await shop.add("We use pnpm")
    await memory.scoped(Scope(owner="bob", chat="shop")).add("It rains")
    assert [node.content for node in (await shop.list(type="any")).nodes] == ["It rains"]
    assert await anna.on_record() == []
    await shop.add("We use bun")
    await memory.scoped(Scope(owner="bob", chat="poems")).add("Roses are red")
    for here in (anna, shop):
        assert [(each.name, each.messages) for each in await here.chats()] == [("shop", 2)]
