"""Exchange commits with and between stores in PostgreSQL."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ricordo import InvalidError, Memory, Scope
from tests.contract import server
from tests.devices.histories import lived
from tests.devices.test_devices import _bytes
from tests.storage.histories import HandClock
from tests.storage.making import failing


def opened(where: str | Path, **options: object) -> Memory:
    return Memory.open(where, **{"embedder": None, "clock": HandClock(), **options})  # type: ignore[arg-type]


async def told(memory: Memory) -> list[str]:
    page = await memory.scoped(Scope(chat="shop")).list(type="any", limit=100)
    return sorted(node.content for node in page.nodes)


@pytest.mark.parametrize("seed", [2, 3])
def test_random_histories_leave_the_same_rows_on_all_devices(tmp_path: Path, seed: int) -> None:
    assert lived(tmp_path, seed=seed, steps=30).differences == []


@pytest.mark.parametrize("kind", ["file", "folder", "database"])
async def test_a_database_exchanges_with_any_other_store(tmp_path: Path, where: str, kind: str) -> None:
    others = {"file": tmp_path / "two.db", "folder": f"{tmp_path}/two/", "database": server.location(tmp_path / "two")}
    async with opened(others[kind]) as other:
        await other.remember("I speak Greek")
    async with opened(where) as one:
        await one.remember("I live in Rome", about=["Anna"])
        await one.scoped(Scope(chat="shop")).add("We deploy on Fridays", session="s")
        report = await one.sync(others[kind])
        assert (report.sent, report.received, report.chats) == (2, 1, ("shop",))
        assert not failing(await one.doctor())
    async with opened(others[kind]) as other:
        report = await other.sync(where)
        assert (report.sent, report.received) == (0, 0)
        assert await told(other) == ["I live in Rome", "I speak Greek", "We deploy on Fridays"]
        assert not failing(await other.doctor())


async def test_an_erased_text_does_not_come_back_into_a_database(tmp_path: Path, where: str) -> None:
    async with opened(where) as one, opened(tmp_path / "two.db") as other:
        for memory in (one, other):
            await memory.add_document(text="I secretly dislike Balthasar.", id="Diary.md")
        await one.erase(document="Diary.md")
        (tmp_path / "shared").mkdir()
        for memory in (one, other, one, other):
            await memory.sync(tmp_path / "shared")
        for memory in (one, other):
            assert not await memory.documents()
            assert not failing(await memory.doctor())
    assert b"Balthasar" not in _bytes(tmp_path)


async def test_a_database_exchanges_through_an_encrypted_folder_and_erases(tmp_path: Path, where: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    async with opened(where) as one, opened(tmp_path / "two.db", key="one two three") as other:
        fact = await one.scoped(Scope(chat="shop", shares=True)).remember("The code word is Zanzibar")
        await one.sync(shared, key="one two three")
        await other.sync(shared)
        assert await told(other) == ["The code word is Zanzibar"]
        await other.scoped(Scope(chat="shop", shares=True)).erase(id=fact.id)
        await other.sync(shared)
        assert (await one.sync(shared, key="one two three")).erased == 1
        assert await told(one) == []


async def test_rows_of_a_guarded_store_are_exchanged_for_their_owner_only(tmp_path: Path) -> None:
    async with opened(server.guarded_location(tmp_path / "guarded")) as one, opened(tmp_path / "two.db") as other:
        await one.scoped(Scope(owner="anna")).remember("My secret is Zanzibar")
        await one.scoped(Scope(owner="anna", chat="hers")).add("Zanzibar it is")
        await one.remember("I live in Rome")
        await one.scoped(Scope(chat="shop")).add("We deploy on Fridays")
        shared = tmp_path / "shared"
        shared.mkdir()
        assert (await one.sync(shared)).chats == ("shop",)
        await other.sync(shared)
        assert await told(other) == ["I live in Rome", "We deploy on Fridays"]
        assert not [file for file in shared.rglob("*.jsonl") if b"Zanzibar" in file.read_bytes()]


async def test_a_database_under_another_address_is_still_the_store_itself(where: str) -> None:
    async with opened(where) as one:
        await one.remember("I live in Rome")
        with pytest.raises(InvalidError, match="the store itself"):
            await one.sync(f"{where}&application_name={random.random()}")
