"""Which conversation an imported chat continues."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from ricordo import InvalidError, Memory, Message, NotFoundError, Settings
from ricordo.portability.records import Destination
from tests.portability.conftest import opened

ANNA = ["31/12/2023, 22:15 - Anna: I moved to Rome", "01/01/2024, 08:05 - Me: Lovely"]
OLGA = ["31/12/2023, 22:15 - Olga: My dentist is Dr. Haas", "01/01/2024, 08:05 - Me: Lovely"]


def chat(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


async def held(memory: Memory) -> dict[str, int]:
    return {each.id: each.messages for each in await memory.sessions()}


@pytest.mark.parametrize("name", ["Chat with Anna (1).txt", "WhatsApp Chat mit Anna.txt", "b/_chat.txt", "c.zip"])
async def test_a_later_export_adds_only_what_is_new_whatever_its_name(name: str, tmp_path: Path) -> None:
    first, lines = chat(tmp_path / "WhatsApp Chat with Anna.txt", ANNA), [*ANNA, "02/01/2024, 09:00 - Anna: Come by"]
    later = chat(tmp_path / name, lines)
    if name.endswith(".zip"):
        with zipfile.ZipFile(later, "w") as archive:
            archive.writestr("_chat.txt", "\n".join(lines))
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(first, me=["Me"])
        tried = await memory.import_(later, me=["Me"], dry_run=True)
        report = await memory.import_(later, me=["Me"])
        assert (tried.known, report.added, report.known) == (2, 1, 2)
        assert await held(memory) == {"whatsapp/Anna, Me": 3}
        assert (await memory.session("whatsapp/Anna, Me")).title == "Anna"


async def test_a_group_that_has_grown_is_the_same_chat(tmp_path: Path) -> None:
    lines = [f"0{day}/01/2024, 08:05 - {who}: Day {day}" for day in range(1, 6) for who in ("Ann", "Bob")]
    grown = [f"0{day}/02/2024, 08:05 - {who}: Day {day}" for day in range(1, 6) for who in ("Cy", "Dee", "Eva")]
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(chat(tmp_path / "a/_chat.txt", lines))
        await memory.import_(chat(tmp_path / "b/_chat.txt", lines + grown))
        assert await held(memory) == {"whatsapp/Ann, Bob": 25}


async def test_chats_of_different_people_stay_apart(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        for name, lines in (("a", ANNA), ("b", OLGA), ("a", ANNA), ("b", OLGA)):
            await memory.import_(chat(tmp_path / name / "_chat.txt", lines))
        assert await held(memory) == {"whatsapp/Anna, Me": 2, "whatsapp/Me, Olga": 2}


async def test_two_groups_of_the_same_people_stay_apart(tmp_path: Path) -> None:
    other = ["31/12/2023, 22:20 - Anna: Who brings cake?", "01/01/2024, 08:00 - Me: Bob"]
    async with opened(tmp_path / "me.db") as memory:
        for _ in range(2):
            await memory.import_(chat(tmp_path / "a/_chat.txt", ANNA))
            await memory.import_(chat(tmp_path / "b/_chat.txt", other))
        assert await held(memory) == {"whatsapp/Anna, Me": 2, "whatsapp/Anna, Me (2)": 2}


def slack(folder: Path, team: str, text: str) -> Path:
    files = {
        "users.json": [{"id": "U1", "team_id": team, "name": "ann"}, {"id": "U2", "team_id": team, "name": "bob"}],
        "channels.json": [{"id": "C1", "name": "Anna", "members": ["U1"]}],
        "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
        "Anna/2024-01-01.json": [{"type": "message", "user": "U1", "text": text, "ts": "1704067200.1"}],
        "D1/2024-01-01.json": [{"type": "message", "user": "U2", "text": f"{text}?", "ts": "1704067200.2"}],
    }
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def telegram(folder: Path, id: int, text: str) -> Path:
    said = {"id": 1, "type": "message", "date_unixtime": "1704067200", "from": "Anna", "from_id": "u1", "text": text}
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"name": "Anna", "id": id, "messages": [said]}))
    return folder / "result.json"


async def test_chats_of_one_title_from_several_sources_stay_apart(tmp_path: Path) -> None:
    paths = [
        chat(tmp_path / "WhatsApp Chat with Anna.txt", ANNA),
        telegram(tmp_path / "t1", 1, "Hello"),
        telegram(tmp_path / "t2", 2, "Hello"),
        slack(tmp_path / "s1", "T1", "Hello"),
        slack(tmp_path / "s2", "T2", "Hello"),
    ]
    async with opened(tmp_path / "me.db") as memory:
        for path in paths * 2:
            report = await memory.import_(path)
        assert report.refused == ()
        titles = {each.id: each.title for each in await memory.sessions()}
    assert titles == {
        "whatsapp/Anna, Me": "Anna",
        "telegram/1": "Anna",
        "telegram/2": "Anna",
        "slack/T1/C1": "Anna",
        "slack/T2/C1": "Anna",
        "slack/T1/D1": "ann, bob",
        "slack/T2/D1": "ann, bob",
    }


async def test_what_an_earlier_version_imported_is_known(tmp_path: Path) -> None:
    """The session was the name of the file or of the chat, and a part of every id."""
    ids = Destination(owner="me", chat="")
    first, last = ("2023-12-31T22:15:00", "2024-01-01T08:05:00")
    turns = [
        ("whatsapp", "Ann", f"{first} Anna", "Anna", first, "I moved to Rome"),
        ("whatsapp", "Ann", f"{last} Me", "Me", last, "Lovely\n"),
        ("telegram", "Anna", 1, "Anna", last, "Hello"),
        ("slack", "Anna", "1704067200.1", "ann", last, "Hello"),
        ("slack", "D1", "1704067200.2", "bob", last, "Hello?"),
    ]
    said = [
        Message(text=text.strip(), speaker=who, session=session, at=at, id=ids.id_of(kind, session, key, text))
        for kind, session, key, who, at, text in turns
    ]
    async with opened(tmp_path / "me.db") as memory:
        await memory.add_many(said)
        later = chat(tmp_path / "x/_chat.txt", [*ANNA, "02/01/2024, 09:00 - Anna: Come by"])
        assert (await memory.import_(later)).added == 1
        assert (await memory.import_(telegram(tmp_path / "t", 1, "Hello"))).added == 0
        assert (await memory.import_(slack(tmp_path / "s", "T1", "Hello"))).added == 0
        assert await held(memory) == {"Ann": 3, "Anna": 2, "D1": 1}


async def test_a_greeting_sent_to_several_chats_makes_them_no_single_chat(tmp_path: Path) -> None:
    greetings = [f"[01.01.2{year}, 00:01:00] Me: Happy new year!" for year in range(5)]
    groups = [
        [*greetings, *(f"[02.01.20, 08:00:0{n}] {who}: And you" for n, who in enumerate(names))]
        for names in ("ABC", "DEF")
    ]
    begins = "[01.01.20, 00:00:00] {}: \u200eMessages and calls are end-to-end encrypted."
    pairs = [
        [begins.format("Nils"), greetings[0]],
        [begins.format("Olga"), greetings[0], "[01.01.20, 00:02:00] Olga: Hi"],
    ]
    async with opened(tmp_path / "me.db") as memory:
        for number, lines in enumerate((*groups, *pairs, *groups, *pairs)):
            await memory.import_(chat(tmp_path / f"{number}/_chat.txt", lines))
        assert sorted((await held(memory)).values()) == [1, 2, 8, 8]


def mailbox(path: Path, *days: int) -> Path:
    letters = [
        f"From a@b Mon Jan  1 00:00:00 2024\nFrom: Ann <a@b>\nSubject: Day {day}\n"
        f"Date: Mon, {day:02} Jan 2024 09:00:00 +0000\n\nThe boat is number {day}.\n"
        for day in days
    ]
    path.write_text("\n".join(letters))
    return path


async def test_mailboxes_of_any_name_add_only_letters_that_are_new(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(mailbox(tmp_path / "All mail.mbox", 1, 2))
        tried = await memory.import_(mailbox(tmp_path / "All mail (1).mbox", 2, 3), dry_run=True)
        report = await memory.import_(tmp_path / "All mail (1).mbox")
        assert (tried.known, report.added, report.known) == (1, 1, 1)
        await memory.import_(mailbox(tmp_path / "All mail.mbox", 3, 4))
        stored = [node.content for each in await memory.documents() for node in (await memory.document(each.id)).text]
        assert sorted(text.split()[-1] for text in stored) == ["1.", "2.", "3.", "4."]


async def test_a_folder_takes_mail_and_documents_as_single_imports_do(tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    chat(chats / "_chat.txt", ANNA)
    mailbox(chats / "mail.mbox", 1)
    (chats / "page.html").write_text("<p>The gate is blue.</p>")
    (tmp_path / "mail").mkdir()
    mailbox(tmp_path / "mail/mail.mbox", 1)
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(chats)
        assert (report.format, report.added, report.refused) == ("whatsapp, document", 4, ())
        assert (await memory.import_(tmp_path / "mail")).known == 1
        (tmp_path / "mail/mail.mbox").unlink()
        (chats / "page.html").rename(tmp_path / "mail/page.html")
        assert (await memory.import_(tmp_path / "mail")).known == 1


async def test_a_conversation_is_found_by_its_title_if_only_one_has_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(chat(tmp_path / "WhatsApp Chat with Anna.txt", ANNA))
        assert (await memory.session("Anna")).id == "whatsapp/Anna, Me"
        await memory.import_(telegram(tmp_path / "t1", 1, "Hello"))
        with pytest.raises(InvalidError, match="is the title of"):
            await memory.session("Anna")


async def test_chats_with_unknown_numbers_stay_apart_without_personal_data(tmp_path: Path) -> None:
    settings = Settings(redact="phone")
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=settings) as memory:
        for number in ("+44 7700 900123", "+44 7700 900456") * 2:
            lines = [f"31/12/2023, 22:15 - {number}: It is {number[-3]}", "31/12/2023, 22:16 - Me: Thanks"]
            await memory.import_(chat(tmp_path / "_chat.txt", lines))
        assert sorted((await held(memory)).values()) == [2, 2]


async def test_every_verb_takes_the_title_by_which_a_chat_is_read(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(telegram(tmp_path / "t1", 1, "Hello"))
        assert (await memory.session("Anna")).id == "telegram/1"
        assert (await memory.list(session="Anna")).nodes[0].session == "telegram/1"
        assert (await memory.search("Hello", session="Anna")).hits
        await memory.end_session("Anna")
        assert (await memory.session("Anna")).ended_at is not None
        await memory.off_record(session="Anna")
        await memory.add("Secret", session="telegram/1")
        await memory.on_record(session="Anna")
        assert (await memory.consolidate("Anna", dry_run=True)).id
        erased = (await memory.erase(session="Anna", dry_run=True)).erased  # Anna is known only from this chat
        assert {(each.kind, each.count) for each in erased} == {("episodic", 1), ("session", 1), ("entity", 1)}
        assert (await memory.forget_where(session="Anna", dry_run=True)).count == 1

        await memory.import_(telegram(tmp_path / "t2", 2, "Goodbye"))  # another Anna
        for tried in (
            memory.session("Anna"),
            memory.erase(session="Anna"),
            memory.list(session="Anna"),
            memory.off_record("Anna"),
            memory.end_session("Anna"),
        ):
            with pytest.raises(InvalidError, match=r"telegram/[12], telegram/[12]"):
                await tried
        await memory.erase(session="telegram/1")
        assert (await memory.session("Anna")).id == "telegram/2"
        with pytest.raises(NotFoundError):
            await memory.erase(session="Bob")
