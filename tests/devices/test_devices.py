"""Several devices exchange their commits and end with the same memory."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ricordo import DeniedError, InvalidError, Memory, RicordoError, Scope
from ricordo.encoding.worker import LEASE
from ricordo.interfaces.watch import Watch
from ricordo.storage import faults
from ricordo.storage.leases import LeaseHolder
from tests.devices.histories import lived
from tests.storage.folders import without_index
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


@pytest.mark.parametrize("seed", range(1, 3))
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


async def test_a_replaced_version_forgotten_here_is_quoted_and_learnt_on_no_device(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.add("I am allergic to nuts", session="s")
        old = await one.remember("I am allergic to nuts")
        await one.correct(old.id, "I am allergic to milk")
        await exchange(shared, one, other)
        assert "nuts" in await other.context("What am I allergic to?")
        await one.forget(old.id)
        await exchange(shared, one, other)
        assert "nuts" not in await other.context("What am I allergic to?")
        assert not (await other.search("nuts", type="any")).hits


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


async def last(memory: Memory, origin: str) -> int:
    return next(commit.seq for commit in await memory.log() if commit.origin == origin)


@pytest.mark.slow
@pytest.mark.parametrize("are_told", [False, True])
@pytest.mark.parametrize("is_here", [False, True])
@pytest.mark.parametrize(
    ("verb", "asked"), [("remember", {}), ("remember", {"entity": "Zanzibar Smith"}), ("add", {"session": "s"})]
)
async def test_what_was_undone_on_one_device_and_erased_on_another_is_gone_from_the_history_of_both(
    tmp_path: Path, verb: str, asked: dict[str, str], is_here: bool, are_told: bool
) -> None:
    """Whether the device that erases had undone it itself, and whether the other one knows."""
    async with two(tmp_path) as (one, other, shared):
        text = "Zanzibar Smith plays chess"
        if verb == "add":
            said = await one.add(text, session="s")
        else:
            said = (await one.remember(text, about=["Zanzibar Smith"])).id
        await exchange(shared, one, other)
        undoing, erasing = (one, other) if is_here else (other, one)
        await undoing.undo(await last(undoing, verb))
        if are_told:
            await exchange(shared, one, other)
        await erasing.erase(**(asked or {"id": said}))  # type: ignore[arg-type]
        await exchange(shared, one, other)
        await _cannot_undo(one, other)
        assert not _left(tmp_path, b"anzibar")


def _left(place: Path, word: bytes) -> list[str]:
    """Return where a word is left."""
    return [name for name in ("shared", "one.db", "two.db") if word in _bytes(place / name)]


async def _cannot_undo(*devices: Memory) -> None:
    for device in devices:
        for commit in await device.log():
            with contextlib.suppress(RicordoError):
                await device.undo(commit.seq)
        assert await contents(device) == []
        assert (await device.doctor()).ok


@pytest.mark.parametrize("is_of_other", [False, True])
async def test_an_undone_version_of_what_is_erased_on_another_device_is_gone_on_both(
    tmp_path: Path, is_of_other: bool
) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await one.remember("I live in Rome")
        await exchange(shared, one, other)
        await (other if is_of_other else one).correct(fact.id, "I live in Zanzibar")
        if not is_of_other:
            await exchange(shared, one, other)
        await other.undo(await last(other, "correct"))
        await one.erase(id=fact.id)
        await exchange(shared, one, other)
        await _cannot_undo(one, other)
        assert not _left(tmp_path, b"Zanzibar")


SECRET = "I secretly dislike the neighbour Balthasar."


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("is_direct", [False, True])
async def test_an_erased_document_does_not_return_from_a_device_with_a_copy_of_its_own(
    tmp_path: Path, is_folder: bool, is_direct: bool
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    end = "/" if is_folder else ".db"
    async with (
        Memory.open(f"{tmp_path}/one{end}", embedder=None, clock=HandClock()) as one,
        Memory.open(f"{tmp_path}/two{end}", embedder=None, clock=HandClock(HandClock().ms + BEGINNING)) as other,
    ):
        for device in (one, other):
            await device.add_document(text=f"# Diary\n\n{SECRET}\n", id="vault/Diary.md", title="Diary.md")
            await device.add_document(text="# Tap\n\nThe tap drips.\n", id="vault/Tap.md", title="Tap.md")
        await one.erase(document="vault/Diary.md")
        if is_direct:
            for _ in range(2):
                await one.sync(f"{tmp_path}/two{end}")
        else:
            await exchange(shared, one, other)
        for device in (one, other):
            assert [each.title for each in await device.documents()] == ["Tap.md"]
            assert not [hit for hit in (await device.search("neighbour Balthasar")).hits if "Balthasar" in hit.content]
            assert not failing(await device.doctor())
    assert b"Balthasar" not in _bytes(tmp_path)


async def test_of_an_edited_copy_of_an_erased_document_only_the_new_text_is_kept(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.add_document(text=f"# Diary\n\n{SECRET}\n", id="vault/Diary.md", title="Diary.md")
        await one.erase(document="vault/Diary.md")
        edited = f"# Diary\n\n{SECRET}\n\nThe kitchen tap was repaired by Xaver.\n"
        await other.add_document(text=edited, id="vault/Diary.md", title="Diary.md")
        await exchange(shared, one, other)
        for device in (one, other):
            document = await device.document("vault/Diary.md")
            assert ["Xaver" in each.content for each in document.text] == [True]
            assert document.text[0].place == "Diary.md, line 3"
            assert not failing(await device.doctor())
        assert not _left(tmp_path, b"Balthasar")
        again = await other.add_document(text="The kitchen tap was repaired by Xaver.", id="vault/Tap.md")
        assert again.added == 1, "what was kept is not withheld"


@pytest.mark.parametrize("verb", ["remember", "add"])
async def test_what_both_devices_were_told_is_gone_from_both_unless_it_is_said_again_later(
    tmp_path: Path, verb: str
) -> None:
    """The clock of the other device is a month ahead: that does not make its earlier words later ones."""
    text = "I am allergic to zanzibarite dust"
    async with two(tmp_path) as (one, other, shared):
        told = [await (device.remember(text) if verb == "remember" else device.add(text)) for device in (one, other)]
        await one.erase(id=getattr(told[0], "id", told[0]))
        await exchange(shared, one, other)
        for device in (one, other):
            assert await contents(device) == []
        assert not _left(tmp_path, b"zanzibarite")
        await (other.remember(text) if verb == "remember" else other.add(text, at="2026-02-11"))
        await exchange(shared, one, other)
        for device in (one, other):
            assert await contents(device) == [(text, ())]


async def test_what_a_device_undid_itself_does_not_bring_an_erased_text_back(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        for device in (one, other):
            await device.add_document(text=SECRET, id="Diary.md")
        await other.undo(await last(other, "add document"))
        await one.erase(document="Diary.md")
        await exchange(shared, one, other)
        assert not _left(tmp_path, b"Balthasar")


async def look(device: Memory, vault: Path, rent: int) -> None:
    """Watch a vault with one note on a device, where the other device's vault does not exist."""
    _write(vault, f"The rent is {rent} euros.\n\n# Deposit\n\nPaid.\n")
    await Watch(device, vault, ignores=lambda path: False).step(settled_s=0)
    shutil.rmtree(vault)


def _vault(vault: Path) -> Path:
    _write(vault, "The rent is 900 euros.\n")
    return vault


def _write(vault: Path, text: str) -> None:
    vault.mkdir(parents=True, exist_ok=True)
    (vault / "Flat.md").write_text(text, encoding="utf-8")


async def rents(device: Memory) -> list[bool]:
    """Return for each passage of the only document whether it tells the rent of 900 euros."""
    (document,) = await device.documents()
    assert not failing(await device.doctor())
    return ["900" in passage.content for passage in (await device.document(document.id)).text]


async def test_a_vault_that_two_devices_watch_is_read_once(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        vaults = [(one, tmp_path / "a" / "vault"), (other, tmp_path / "b" / "vault")]
        for device, vault in vaults:
            await look(device, vault, 900)
        await exchange(shared, one, other)
        assert await rents(one) == await rents(other) == [True, False]
        for rent in (835, 900):  # edited on both
            for device, vault in vaults:
                await look(device, vault, rent)
            await exchange(shared, one, other)
        assert await rents(one) == await rents(other) == [True, False]
        await look(one, vaults[0][1], 835)
        await exchange(shared, one, other)
        assert await rents(one) == await rents(other) == [False, False]


@pytest.mark.parametrize("is_synced_first", [False, True])
@pytest.mark.parametrize("edited", [(0,), (1,), (0, 1)])
async def test_a_note_stays_one_document_although_the_paths_of_both_vaults_exist_here(
    tmp_path: Path, edited: tuple[int, ...], is_synced_first: bool
) -> None:
    """Such as when a device also has an old copy of the vault, where another device keeps its own."""
    async with two(tmp_path) as (one, other, shared):
        devices, vaults = (one, other), (tmp_path / "a" / "vault", tmp_path / "b" / "vault")
        watches = [Watch(*each, ignores=lambda path: False) for each in zip(devices, map(_vault, vaults), strict=True)]
        for watch in watches:
            await watch.step(settled_s=0)
            if is_synced_first:
                await exchange(shared, one, other)
        await exchange(shared, one, other)
        for rent in (835, 850):
            for number in edited:
                _write(vaults[number], f"The rent is {rent} euros.\n")
                assert (await watches[number].step(settled_s=0)).changed == ["Flat.md"]
            await exchange(shared, one, other)
            for device in devices:
                (document,) = await device.documents()
                (passage,) = (await device.document(document.id)).text
                assert str(rent) in passage.content
        if len(edited) == 1:
            moved = vaults[edited[0]] / "Home.md"
            (vaults[edited[0]] / "Flat.md").rename(moved)
            assert (await watches[edited[0]].step(settled_s=0)).moved == ["Home.md"]


@pytest.mark.parametrize("is_older_first", [False, True])
async def test_a_note_that_two_devices_read_in_two_versions_is_one_after_the_next_look(
    tmp_path: Path, is_older_first: bool
) -> None:
    async with two(tmp_path) as (one, other, shared):
        first, second = (780, 900) if is_older_first else (900, 780)
        await look(one, tmp_path / "a" / "vault", first)
        await look(other, tmp_path / "b" / "vault", second)
        await exchange(shared, one, other)
        await look(other, tmp_path / "b" / "vault", 900)
        await exchange(shared, one, other)
        assert await rents(one) == await rents(other) == [True, False]


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


async def test_an_erased_person_whom_a_device_needs_has_the_same_names_on_all(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared), Memory.open(tmp_path / "three.db", embedder=None) as third:
        await one.remember("Anna sold a boat", about=["Anna"])
        await one.add_entity("Zoe")
        await one.merge("Anna", "Zoe")
        await exchange(shared, one, other, third)
        await other.remember("Anna plays chess", about=["Anna"])
        await one.erase(entity="Anna")
        await exchange(shared, one, other)
        await exchange(shared, third, one, other)
        names = [[(each.name, each.aliases) for each in await device.people()] for device in (one, other, third)]
        assert names == [[("Anna", ("Zoe",))]] * 3


async def test_a_person_whom_a_message_names_stays_when_the_erasure_comes_with_that_message(tmp_path: Path) -> None:
    """Whether the background work of a device has linked the message must not decide it."""
    async with two(tmp_path) as (one, other, shared):
        work = LeaseHolder(other._opened.store, LEASE, lease_ms=600_000)
        assert await work.take()  # so the other device links nothing in the background
        told = await one.remember("Chiara likes tea", about=["Chiara"])
        await exchange(shared, one, other)
        await one.add("Chiara sold the red bicycle")
        await one.settle(600)
        await one.erase(id=told.id)
        assert (await one.entity("Chiara")).name == "Chiara"
        await exchange(shared, one, other)
        await work.release()
        for device in (one, other):
            await device.settle(600)
            assert (await device.entity("Chiara")).mention_count == 1
        assert await contents(one) == await contents(other)


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


async def test_people_merged_in_a_chain_by_two_devices_are_one_person(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("Clara plays chess", about=["Clara"])
        await exchange(shared, one, other)
        await one.remember("Chiara sings", about=["Chiara"])
        await one.merge("Clara", "Chiara")
        await other.remember("Chiara paints", about=["Chiara"])
        await other.merge("Chiara", "Clara")
        await exchange(shared, other, one)
        (person,), (there,) = await one.people(), await other.people()
        assert (person.id, person.name, set(person.aliases)) == (there.id, there.name, set(there.aliases))
        assert len(await contents(one)) == 3


async def ended(memory: Memory, session: str) -> bool:
    return (await memory.session(session)).ended_at is not None


async def test_a_session_continued_elsewhere_after_its_only_message_was_undone_ends_on_both(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.add("Anna likes tea", session="s")
        await one.undo((await one.log())[0].seq)
        await one.sync(shared)
        await other.sync(shared)
        await other.add("Boris likes milk", session="s")
        await exchange(shared, one, other)
        await other.end_session("s")
        await exchange(shared, one, other)
        assert [await ended(one, "s"), await ended(other, "s")] == [True, True]


async def test_a_session_that_comes_back_with_a_message_of_another_device_stays_ended(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.add("Anna likes tea", session="s")
        await exchange(shared, one, other)
        await other.end_session("s")
        await other.sync(shared)
        await one.undo((await one.log())[0].seq)
        await one.sync(shared)
        await other.add("Boris likes milk", session="s")
        await exchange(shared, one, other)
        assert [await ended(one, "s"), await ended(other, "s")] == [True, True]


async def test_a_session_erased_after_its_end_and_continued_elsewhere_is_the_same_on_both(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        said = await one.add("Anna likes tea", session="s")
        await one.sync(shared)
        await one.end_session("s")
        await one.sync(shared)
        await one.erase(id=said)
        await other.add("Boris likes milk", session="s")
        await other.sync(shared)
        await exchange(shared, one, other)
        assert await ended(one, "s") == await ended(other, "s")


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


async def test_other_owners_and_their_chats_stay_at_home(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        await one.remember("I live in Rome")
        await one.scoped(Scope(owner="you")).remember("My secret is Zanzibar")
        await one.scoped(Scope(owner="you", chat="family")).remember("We meet in Lisbon", shared=True)
        assert (await one.sync(shared)).chats == ()
    assert b"Rome" in _bytes(shared)
    assert b"Zanzibar" not in _bytes(shared)
    assert b"Lisbon" not in _bytes(shared)


SHOP, SITE = "github.com/someone/shop", "github.com/someone/site"


def in_chat(memory: Memory, chat: str, owner: str = "me") -> Memory:
    return memory.scoped(Scope(owner=owner, chat=chat, shares=True))


async def said_in(memory: Memory, chat: str, owner: str = "me") -> list[str]:
    """Return what a chat alone holds, as its member sees it."""
    page = await in_chat(memory, chat, owner).list(type="any", limit=100)
    return sorted(node.content for node in page.nodes if node.chat == chat)


async def test_one_call_exchanges_all_projects_of_a_person(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        await in_chat(one, SHOP).add("We deploy on Fridays", session="s")
        await in_chat(other, SITE).remember("The site is built with make")
        assert (await one.sync(shared)).chats == (SHOP,)
        assert (await other.sync(shared)).chats == (SHOP, SITE)
        report = await one.sync(shared)
        assert (report.chats, report.received, report.sent) == ((SHOP, SITE), 1, 0)
        for device in (one, other):
            assert await said_in(device, SHOP) == ["We deploy on Fridays"]
            assert await said_in(device, SITE) == ["The site is built with make"]
            again = await device.sync(shared)
            assert (again.sent, again.received) == (0, 0)


async def test_a_project_travels_on_from_a_device_that_only_received_it(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, _):
        await in_chat(one, SHOP).add("We deploy on Fridays")
        for place in ("a", "b"):
            (tmp_path / place).mkdir()
        await exchange(tmp_path / "a", one, other)
        await other.sync(tmp_path / "b")
        async with Memory.open(tmp_path / "three.db", embedder=None) as third:
            assert (await third.sync(tmp_path / "b")).chats == (SHOP,)
            assert await said_in(third, SHOP) == ["We deploy on Fridays"]


async def test_two_stores_exchange_all_projects_or_those_that_are_named(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, _):
        for device, chat in ((one, SHOP), (one, "work"), (other, SITE)):
            await in_chat(device, chat).remember(f"This is about {chat}")
        await other.close()
        assert (await one.sync(tmp_path / "two.db", chats=[SHOP])).chats == (SHOP,)
        async with Memory.open(tmp_path / "two.db", embedder=None) as again:
            assert [await said_in(again, chat) for chat in (SHOP, "work")] == [[f"This is about {SHOP}"], []]
        assert (await one.sync(tmp_path / "two.db", dry_run=True)).chats == (SHOP, SITE, "work")
        assert (await one.sync(tmp_path / "two.db")).chats == (SHOP, SITE, "work")
        assert await said_in(one, SITE) == [f"This is about {SITE}"]


async def test_a_shared_space_is_exchanged_by_its_keepers_only(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.create_space("team")
        await one.set_member("team", "anna", "writer")
        await in_chat(one, "team").remember("The budget is 500 euros")
        assert (await one.scoped(Scope(owner="anna")).spaces())[0].role == "writer"
        assert (await one.sync(shared)).chats == ("team",)
        assert (await other.sync(shared)).chats == ("team",)
        assert await said_in(other, "team") == ["The budget is 500 euros"]
        assert await said_in(other, "team", "anna") == ["The budget is 500 euros"]
        await one.set_member("team", "anna", "keeper")
        await one.set_member("team", "me", "reader")
        await in_chat(other, "team").remember("I still think that I keep it")
        report = await one.sync(shared)
        assert report.chats == ()
        assert report.left_out == ("the shared space 'team': only its keepers sync it",)
        assert await said_in(one, "team") == ["The budget is 500 euros"]


async def test_a_folder_of_an_encrypted_store_shows_no_plain_byte(tmp_path: Path) -> None:
    async with two(tmp_path, key="one two three") as (one, other, shared):
        await one.remember("I live in Rome", about=["Zanzibar"])
        await in_chat(other, SHOP).add("We deploy on Fridays", session="monday")
        await exchange(shared, one, other)
        assert await contents(one) == await contents(other) == [("I live in Rome", ("Zanzibar",))]
        assert await said_in(one, SHOP) == ["We deploy on Fridays"]
        data = _bytes(shared)
        for word in (b"Rome", b"Zanzibar", b"Fridays", b"shop", b"monday", b"nodes", b"deltas", b'"me"'):
            assert word not in data
        assert [each.name for each in shared.iterdir()] == ["ricordo-sealed"]


async def test_a_passphrase_encrypts_the_folder_of_a_plain_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDER_KEY", "one two three")
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        assert (await one.sync(shared, key="one two three")).sent == 1
        assert (await other.sync(shared, key="env:FOLDER_KEY")).received == 1
        assert b"Rome" not in _bytes(shared)


@pytest.mark.parametrize("key", [None, "another key"])
async def test_a_wrong_or_missing_key_writes_nothing(tmp_path: Path, key: str | None) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        await one.sync(shared, key="one two three")
        before = _bytes(shared)
        await other.remember("I speak Greek")
        for dry_run in (True, False):
            with pytest.raises(DeniedError, match=r"no key was given|the key is wrong"):
                await other.sync(shared, key=key, dry_run=dry_run)
        assert _bytes(shared) == before
        assert [text for text, _ in await contents(other)] == ["I speak Greek"]


async def test_one_device_with_another_key_is_named_and_left_out(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        await one.sync(shared, key="one two three")
        (tmp_path / "apart").mkdir()
        await other.sync(tmp_path / "apart", key="another key")
        await other.remember("I speak Greek")
        await other.sync(tmp_path / "apart", key="another key")
        for file in (tmp_path / "apart" / "ricordo-sealed").iterdir():
            file.rename(shared / "ricordo-sealed" / file.name)
        report = await one.sync(shared, key="one two three")
        assert [line.partition(" ")[2] for line in report.left_out] == [
            "is encrypted with another key (use one key on all devices)"
        ]
        assert [text for text, _ in await contents(one)] == ["I live in Rome"]


async def test_a_folder_that_gets_a_key_keeps_no_plain_file_of_this_device(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        await one.remember("I live in Rome")
        await other.remember("I speak Greek")
        await exchange(shared, one, other)
        report = await one.sync(shared, key="one two three")
        assert len(report.left_out) == 1
        assert "is not encrypted" in report.left_out[0]
        assert not (await other.sync(shared, key="one two three")).left_out
        assert [each.name for each in shared.iterdir()] == ["ricordo-sealed"]
        await exchange_sealed(shared, one, other)
        assert await contents(one) == await contents(other)
        with pytest.raises(DeniedError, match="no key was given"):
            await one.sync(shared)


async def exchange_sealed(shared: Path, *devices: Memory) -> None:
    for _ in range(3):
        for device in devices:
            assert not (await device.sync(shared, key="one two three")).left_out


async def test_encrypted_files_that_are_cut_moved_or_changed_are_left_out_and_read_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        for city in ("Rome", "Milan", "Turin"):
            await one.remember(f"I was in {city}")
        await one.sync(shared, key="one two three")
        (segment,) = shared.rglob("*.jsonl")
        whole = segment.read_bytes()
        lines = whole.splitlines(keepends=True)
        middle = lines[3].replace(lines[3][40:44], b"AAAA")
        for damaged, why in (
            (whole[:-30], "incomplete"),
            (whole[: len(whole) // 2], "incomplete"),
            (b"".join(lines[:2]), "incomplete"),
            (lines[0], "incomplete"),
            (lines[0][:40], "not a file that Ricordo encrypted"),
            (b"", "not a file that Ricordo encrypted"),
            (b"".join((*lines[:2], lines[3], lines[2], *lines[4:])), "damaged"),
            (b"".join((*lines[:2], *lines[3:])), "damaged"),
            (b"".join((*lines[:3], middle, *lines[4:])), "damaged"),
            (lines[0].replace(b'"salt":"', b'"salt":"zz'), "damaged"),
        ):
            segment.write_bytes(damaged)
            report = await other.sync(shared, key="one two three")
            assert why in report.left_out[0], report.left_out
            assert await contents(other) == []
        segment.write_bytes(whole)
        copy = segment.with_name(f"{segment.stem} (Anna's conflicted copy 2026-11-23).jsonl")
        segment.rename(copy)
        assert (await other.sync(shared, key="one two three")).received == 3
        assert await contents(other) == await contents(one)


async def test_what_is_erased_goes_from_encrypted_files_too(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other, shared):
        fact = await in_chat(one, SHOP).remember("The code word is Zanzibar")
        await exchange_sealed(shared, one, other)
        before = {each.name for each in shared.rglob("*.jsonl")}
        await in_chat(one, SHOP).erase(id=fact.id)
        await exchange_sealed(shared, one, other)
        assert await said_in(other, SHOP) == []
        assert not before & {each.name for each in shared.rglob("*.jsonl") if each.stat().st_size > 2_000}


async def test_a_store_does_not_exchange_with_itself_under_another_name(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "one.db", embedder=None) as one:
        await one.remember("I live in Rome")
        (tmp_path / "two.db").hardlink_to(tmp_path / "one.db")
        with pytest.raises(RicordoError):
            await one.sync(tmp_path / "two.db")


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


@pytest.mark.parametrize(("backup", "restored"), [("b.db", "new.db"), ("b.db", "new/"), ("b/", "new/")])
async def test_a_restored_store_is_a_device_of_its_own_before_it_sees_the_folder(
    tmp_path: Path, backup: str, restored: str
) -> None:
    """It does not know what it has sent since the backup, and must not use those numbers again."""
    shared, empty = tmp_path / "shared", tmp_path / "empty"
    shared.mkdir()
    empty.mkdir()
    async with Memory.open(tmp_path / "other.db", embedder=None) as other:
        async with Memory.open(f"{tmp_path}/{'one/' if backup == 'b/' else 'one.db'}", embedder=None) as one:
            await one.remember("I live in Rome")
            await exchange(shared, one, other)
            await one.backup(f"{tmp_path}/{backup}")
            await one.remember("I speak Greek")
            await exchange(shared, one, other)
        await Memory.restore_backup(f"{tmp_path}/{backup}", f"{tmp_path}/{restored}")
        async with Memory.open(f"{tmp_path}/{restored}", embedder=None) as new:
            await new.remember("I like tea")
            await new.sync(empty)
            for path in empty.rglob("*.jsonl"):
                target = shared / path.relative_to(empty)
                assert not target.exists()
                target.write_bytes(path.read_bytes())
            await exchange(shared, new, other)
            assert await contents(new) == await contents(other)
            assert len(await contents(new)) == 3
            assert not failing(await new.doctor())


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


@pytest.mark.parametrize("has_index", [True, False], ids=["catching up", "rebuilding"])
async def test_a_folder_killed_before_a_commit_line_takes_in_again_what_it_lost(
    tmp_path: Path, has_index: bool
) -> None:
    """It must not count a commit of another device as known whose rows it does not have."""
    store, died = tmp_path / "store", tmp_path / "died"

    def die(point: str) -> None:
        if point == "folder: before commit line" and not died.exists():
            shutil.copytree(store, died, ignore=shutil.ignore_patterns("*-shm"))

    async with Memory.open(f"{store}/", embedder=None) as other, Memory.open(tmp_path / "one.db", embedder=None) as one:
        await other.remember("Boris speaks French", about=["Boris"])
        await one.sync(store)
        await one.remember("Chiara likes tea", about=["Chiara"])
        faults.install(die)
        try:
            assert (await one.sync(store)).sent == 1
        finally:
            faults.install(None)
        if not has_index:
            without_index(died)
        async with Memory.open(f"{died}/", embedder=None) as other:
            assert await contents(other) == [("Boris speaks French", ("Boris",))]
        assert (await one.sync(died)).sent == 1
        async with Memory.open(f"{died}/", embedder=None) as other:
            assert await contents(other) == await contents(one)
            assert len(await contents(one)) == 2
            assert not failing(await other.doctor())


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
