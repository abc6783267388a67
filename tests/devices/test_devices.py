"""Several devices exchange their commits and end with the same memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import InvalidError, Memory, Scope
from tests.devices.histories import lived
from tests.storage.histories import HandClock
from tests.storage.making import failing

BEGINNING = 40 * 24 * 3_600_000


@contextlib.asynccontextmanager
async def two(place: Path, **options: Any) -> AsyncIterator[tuple[Memory, Memory, Path]]:
    """Open two devices whose clocks are a month apart, and make a folder between them."""
    shared = place / "shared"
    shared.mkdir()
    ahead = HandClock(HandClock().ms + BEGINNING)
    async with (
        Memory.open(place / "one.db", embedder=None, clock=HandClock(), **options) as one,
        Memory.open(place / "two.db", embedder=None, clock=ahead, **options) as two,
    ):
        yield one, two, shared


async def exchange(shared: Path, *devices: Memory) -> None:
    """Sync until nothing moves."""
    for _ in range(6):
        reports = [await device.sync(shared) for device in devices]
        assert not [line for report in reports for line in report.left_out]
        if not any(report.sent + report.received + report.erased for report in reports):
            return
    raise AssertionError("it does not come to rest")


async def contents(memory: Memory) -> list[tuple[str, tuple[str, ...]]]:
    page = await memory.list(type="any", limit=100)
    return sorted((node.content, node.about) for node in page.nodes)


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_histories_leave_the_same_rows_on_all_devices(tmp_path: Path, seed: int) -> None:
    assert lived(tmp_path, seed=seed, steps=30).differences == []


async def test_what_is_new_travels_in_both_directions_and_twice_is_once(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.add("Anna likes tea", session="monday", speaker="Anna")
        await other.remember("Boris speaks French", about=["Boris"])
        assert (await one.sync(shared)).sent == 1
        there = await other.sync(shared)
        assert (there.sent, there.received) == (1, 1)
        assert (await one.sync(shared)).received == 1
        assert await contents(one) == await contents(other) != []
        for device in (one, other):
            again = await device.sync(shared)
            assert (again.sent, again.received) == (0, 0)
        assert [commit.origin for commit in await one.log()] == ["remember", "add"]


async def test_a_fact_told_on_both_devices_is_one_fact_about_one_person(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        for device in (one, other):
            await device.remember("Anna lives in Rome", about=["Anna"])
        await other.remember("Anna plays chess", about=["Anna"])
        await exchange(shared, one, other)
        for device in (one, other):
            assert await contents(device) == [("Anna lives in Rome", ("Anna",)), ("Anna plays chess", ("Anna",))]
            assert [person.name for person in await device.people()] == ["Anna"]
            assert not await device.review()


async def test_both_corrections_stay_and_become_a_review(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await one.remember("I live in Rome")
        await exchange(shared, one, other)
        await one.correct(fact.id, "I live in Milan")
        await other.correct(fact.id, "I live in Turin")
        await exchange(shared, one, other)
        for device in (one, other):
            (review,) = await device.review()
            assert {review.newer.content, review.older.content} == {"I live in Milan", "I live in Turin"}  # type: ignore[union-attr]
        decided = await one.resolve((await one.review())[0], decision="keep old")
        await exchange(shared, one, other)
        assert await contents(other) == [(decided.older.content, ())]  # type: ignore[union-attr]
        assert not await other.review()


async def test_a_review_decided_differently_is_open_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await one.remember("I live in Rome")
        await exchange(shared, one, other)
        await one.correct(fact.id, "I live in Milan")
        await other.correct(fact.id, "I live in Turin")
        await exchange(shared, one, other)
        await one.resolve((await one.review())[0], decision="replace")
        await other.resolve((await other.review())[0], decision="keep old")
        await exchange(shared, one, other)
        for device in (one, other):
            assert len(await device.review()) == 1
            assert [text for text, _ in await contents(device)] == ["I live in Milan", "I live in Turin"]


async def test_what_is_forgotten_here_is_forgotten_there_and_not_learnt_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await one.remember("Anna is allergic to nuts", about=["Anna"])
        await exchange(shared, one, other)
        await other.forget(fact.id)
        await exchange(shared, one, other)
        assert not (await one.get(fact.id)).is_live
        await one.restore(fact.id)
        await exchange(shared, one, other)
        assert (await other.get(fact.id)).is_live


async def test_what_is_erased_leaves_no_byte_on_any_device_or_in_the_folder(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        said = await one.add("The code word is Zanzibar", session="s")
        await exchange(shared, one, other)
        await other.update((await other.remember("Zanzibar is warm")).id, tags=["x"])
        await exchange(shared, one, other)
        assert b"Zanzibar is warm" in _bytes(shared)
        await one.erase(id=said)
        await exchange(shared, one, other)
        assert b"code word" not in _bytes(shared) + _bytes(tmp_path / "one.db") + _bytes(tmp_path / "two.db")
        assert [text for text, _ in await contents(other)] == ["Zanzibar is warm"]
        third = Memory.open(tmp_path / "three.db", embedder=None)
        async with third as device:
            await device.sync(shared)
            assert await contents(device) == await contents(other)


def _bytes(place: Path) -> bytes:
    files = [place, *place.parent.glob(f"{place.name}-*")] if place.is_file() else place.rglob("*")
    return b"".join(path.read_bytes() for path in files if path.is_file())


async def test_an_erased_person_whom_another_device_needs_stays(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await one.remember("Anna sold a boat", about=["Anna"])
        await exchange(shared, one, other)
        await other.remember("Anna plays chess", about=["Anna"])
        await one.erase(id=fact.id)
        await exchange(shared, one, other)
        for device in (one, other):
            assert await contents(device) == [("Anna plays chess", ("Anna",))]
            assert [person.name for person in await device.people()] == ["Anna"]


async def test_merges_in_opposite_directions_leave_one_person(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        for name in ("Anna", "Annie"):
            await one.remember(f"{name} plays chess with {name}", about=[name])
        await exchange(shared, one, other)
        await one.merge("Anna", "Annie")
        await other.merge("Annie", "Anna")
        await exchange(shared, one, other)
        assert [len(await device.people()) for device in (one, other)] == [1, 1]
        assert (await one.people())[0].id == (await other.people())[0].id


async def test_two_stores_exchange_directly_and_pass_on_what_they_got(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, _, _):
        await one.remember("I live in Rome")
        async with Memory.open(tmp_path / "three.db", embedder=None) as third:
            await third.remember("I speak Greek")
        await one.sync(tmp_path / "three.db")
        report = await one.sync(tmp_path / "three.db")
        assert (report.sent, report.received) == (0, 0)
    async with Memory.open(tmp_path / "two.db", embedder=None) as device:
        report = await device.sync(tmp_path / "one.db")
        assert (report.sent, report.received) == (0, 2)
        assert [text for text, _ in await contents(device)] == ["I live in Rome", "I speak Greek"]


async def test_a_preview_changes_nothing(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        assert (await one.sync(shared, dry_run=True)).sent == 1
        assert list(shared.iterdir()) == []
        await one.sync(shared)
        assert (await other.sync(shared, dry_run=True)).received == 1
        assert await contents(other) == []
        assert (await other.sync(shared)).received == 1


async def test_other_owners_stay_at_home(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        await one.remember("I live in Rome")
        await one.scoped(Scope(owner="you")).remember("My secret is Zanzibar")
        await one.scoped(Scope(owner="me", chat="family")).remember("We meet in Lisbon", shared=True)
        await one.sync(shared)
    assert b"Rome" in _bytes(shared)
    assert b"Zanzibar" not in _bytes(shared)
    assert b"Lisbon" not in _bytes(shared)


async def test_files_that_are_cut_off_damaged_or_foreign_are_left_out_and_said(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        await one.sync(shared)
        (segment,) = shared.rglob("*.jsonl")
        whole = segment.read_bytes()
        for damaged, why in (
            (whole[:-30], "incomplete"),
            (whole[: len(whole) // 2], "incomplete"),
            (whole.replace(b"Rome", b"Oslo"), "damaged"),
            (b"", "was not written by Ricordo"),
            (b"\x00\xff garbage\n" * 40, "was not written by Ricordo"),
        ):
            segment.write_bytes(damaged)
            report = await other.sync(shared)
            assert why in report.left_out[0]
            assert await contents(other) == []
        segment.write_bytes(whole)
        copy = segment.with_name(f"{segment.stem}.sync-conflict-20261123-120000-ABCDEFG.jsonl")
        copy.write_bytes(whole)
        (segment.parent / "notes.txt").write_text("not ours", encoding="utf-8")
        assert (await other.sync(shared)).received == 1
        assert await contents(other) == await contents(one)
        assert not failing(await other.doctor())


async def test_a_copy_of_a_store_becomes_a_device_of_its_own(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        await one.remember("I live in Rome")
        await one.sync(shared)
        await one.backup(tmp_path / "two.db")
        await one.remember("I speak Greek")
        await one.sync(shared)
        async with Memory.open(tmp_path / "two.db", embedder=None) as copy:
            await copy.remember("I like tea")
            await exchange(shared, one, copy)
            assert await contents(one) == await contents(copy)
            assert len(await contents(one)) == 3


@pytest.mark.parametrize("other", ["nowhere", "one.db"])
async def test_there_must_be_something_else_to_exchange_with(tmp_path: Path, other: str) -> None:
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        with pytest.raises(InvalidError, match="other"):
            await one.sync(tmp_path / other)


async def test_two_syncs_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        for number in range(20):
            await one.remember(f"Box {number} holds books")
        await asyncio.gather(one.sync(shared), other.sync(shared))
        await exchange(shared, one, other)
        assert await contents(one) == await contents(other)


async def test_an_older_index_of_a_folder_follows_what_a_sync_wrote(tmp_path: Path) -> None:
    shared, store = tmp_path / "shared", tmp_path / "store"
    shared.mkdir()
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        fact = await one.remember("I live in Rome")
        await one.sync(shared)
        async with Memory.open(f"{store}/", embedder=None) as other:
            await other.sync(shared)
        older = (store / "index.db").read_bytes()
        for tag in ("x", "y"):
            await one.update(fact.id, tags=[tag])
        await one.sync(shared)
    async with Memory.open(f"{store}/", embedder=None) as other:
        assert (await other.sync(shared)).received == 2
    (store / "index.db").write_bytes(older)
    async with Memory.open(f"{store}/", embedder=None) as other:
        assert not failing(await other.doctor())
        assert (await other.get(fact.id)).tags == ("y",)
