"""A store behind PgBouncer in transaction mode, where every transaction may get another connection to the server."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from ricordo import Fact, InvalidError, Memory, Message, Scope, StoreError
from ricordo.storage.registry import open_store
from tests.contract import server
from tests.storage.histories import OPTIONS

psycopg = pytest.importorskip("psycopg", reason="`make postgres` installs the client library")
PGBOUNCER = shutil.which("pgbouncer")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed (Debian: pgbouncer)")


@pytest.fixture
def pooled(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The location of an empty store that keeps owners apart by roles, behind a PgBouncer with two connections, or as
    many as the test says.
    """
    place = urlsplit(server.guarded_location(tmp_path / "memory"))
    given = dict(parse_qsl(place.query))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    users, config = tmp_path / "users.txt", tmp_path / "pgbouncer.ini"
    users.write_text(f'"{server.CALLERS}" ""\n')
    config.write_text(
        f"[databases]\n{place.path.strip('/')} = host={given['host']} port={given.get('port', 5432)}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\nauth_file = {users}\n"
        "pool_mode = transaction\n"
        f"default_pool_size = {getattr(request, 'param', 2)}\nunix_socket_dir =\n"
    )
    for each in (tmp_path, *list(tmp_path.parents)[:3]):
        each.chmod(each.stat().st_mode | 0o055)
    as_user = ["-u", Path(given["host"]).owner()] if os.getuid() == 0 else []  # it does not run as root
    started = subprocess.Popen([str(PGBOUNCER), "-q", *as_user, str(config)])
    address = f"postgresql://{server.CALLERS}@127.0.0.1:{port}{place.path}?sslmode=disable"
    try:
        _wait_for(address)
        yield f"{address}&schema={given['schema']}"
    finally:
        started.terminate()
        started.wait(10)


def _wait_for(address: str) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            return psycopg.connect(address).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@needs_pgbouncer
async def test_a_store_behind_a_pooler_answers_each_caller_with_its_own(pooled):
    async with Memory.open(pooled, **OPTIONS) as one, Memory.open(pooled, **OPTIONS) as two:
        callers = [memory.scoped(Scope(owner=f"owner {n}")) for n in range(4) for memory in (one, two)]

        async def live(me: Memory, number: int) -> None:
            await me.add_many([Message(text=f"tea {number} {n} for {me.scope.owner}") for n in range(60)])
            for n in range(6):
                kept = await me.remember(f"{me.scope.owner} likes tea number {number} {n}")
                await me.correct(kept.id, f"{me.scope.owner} likes coffee number {number} {n}")
                found = await me.search("who likes tea or coffee?", type="any")
                assert found.hits
                assert all(me.scope.owner in hit.content for hit in found.hits)

        await asyncio.gather(*[live(me, number) for number, me in enumerate(callers)])
        me = callers[0]
        before = (await me.log(1))[0]
        await me.remember_many([Fact(content="a slip")])
        await me.undo((await me.log(1))[0].seq)
        then = await me.search("likes coffee", as_of=before.seq)
        assert {hit.content for hit in then.hits} == {hit.content for hit in (await me.search("likes coffee")).hits}
        await me.erase(id=(await me.search("coffee number 0 3")).ids[0])
        assert (await one.doctor()).ok


@needs_pgbouncer
@pytest.mark.parametrize("pooled", [1], indirect=True)  # with two, a client may run the statement of another
async def test_prepared_statements_that_a_pooler_does_not_forward_are_named_with_a_remedy(pooled):
    with pytest.raises(StoreError, match="prepared statement") as refused:
        async with Memory.open(f"{pooled}&prepare=on", **OPTIONS) as memory:
            for _ in range(30):
                await memory.add("tea")
                await memory.search("tea")
    assert "prepare=on" in (refused.value.hint or "")


def test_the_address_takes_prepare_on_or_off_alone():
    with pytest.raises(InvalidError, match="prepare=maybe"):
        open_store("postgresql://127.0.0.1:1/nowhere?prepare=maybe")
