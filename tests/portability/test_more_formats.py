"""Exports of chat programs and of further libraries, in their documented forms."""

# samples as exports write them

from __future__ import annotations

import itertools
import json
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ricordo import ConflictError, InvalidError, Memory, Scope
from tests.portability.conftest import opened


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def telegram(folder: Path) -> Path:
    messages = [
        {"id": 1, "type": "service", "action": "create_group", "date_unixtime": "1700000000", "text": ""},
        {
            "id": 2,
            "type": "message",
            "date": "2023-11-14T22:13:20",
            "date_unixtime": "1700000000",
            "from": "Anna",
            "from_id": "user1",
            "text": ["I moved to ", {"type": "bold", "text": "Rome"}],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2023-11-14T22:14:20",
            "date_unixtime": "1700000060",
            "from": "Bob",
            "from_id": "user2",
            "text": "",
            "photo": "photos/1.jpg",
        },
    ]
    return write(
        folder / "result.json", {"name": "Trip", "type": "private_group", "id": 5, "messages": messages}
    ).parent


def whatsapp(folder: Path) -> Path:
    lines = (
        "31/12/2023, 22:15 - Messages and calls are end-to-end encrypted.\n31/12/2023, 22:15 - Anna: I moved to Rome\n"
        "last week\n01/01/2024, 08:05 - Bob: <Media omitted>\n"
    )
    return write(folder / "WhatsApp Chat with Anna.txt", lines)


def whatsapp_ios(folder: Path) -> Path:
    path = folder / "chat.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "_chat.txt", "[12/31/23, 10:15:32\u202fPM] Anna: I moved to Rome\n[1/2/24, 9:00:00 AM] Bob: Great\n"
        )
    return path


def whatsapp_zip(folder: Path) -> Path:
    path = folder / "WhatsApp Chat mit Anna.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("IMG-20240101-WA0001.jpg", b"\xff\xd8")
        archive.writestr("WhatsApp Chat mit Anna.txt", whatsapp(folder).read_text("utf-8"))
    return path


def slack(folder: Path) -> Path:
    write(folder / "s/users.json", [{"id": "U1", "name": "anna", "profile": {"real_name": "Anna Rossi"}}])
    write(folder / "s/channels.json", [])
    write(folder / "s/integration_logs.json", [])
    day = [
        {"type": "message", "subtype": "channel_join", "user": "U1", "text": "joined", "ts": "1700000000.1"},
        {"type": "message", "user": "U1", "text": "I moved to <http://rome.it|Rome>, <@U1>", "ts": "1700000001.2"},
    ]
    write(folder / "s/general/2023-11-14.json", day)
    return folder / "s"


def zep(folder: Path) -> Path:
    facts = [
        {
            "uuid": "1",
            "fact": "Anna lives in Rome",
            "created_at": "2024-01-01T00:00:00Z",
            "valid_at": "2023-12-01T00:00:00Z",
        },
        {
            "uuid": "2",
            "fact": "Anna lives in Bern",
            "created_at": "2023-01-01T00:00:00Z",
            "invalid_at": "2023-12-01T00:00:00Z",
        },
    ]
    said = [
        {
            "uuid": "m",
            "role": "Anna",
            "role_type": "user",
            "content": "I moved to Rome",
            "created_at": "2024-01-01T00:00:00Z",
        }
    ]
    return write(folder / "zep.json", {"facts": facts, "messages": said})


def letta(folder: Path) -> Path:
    agent = {
        "name": "Sam",
        "messages": [{"id": "m1", "role": "user", "content": [{"type": "text", "text": "I moved to Rome"}]}],
    }
    blocks = [{"label": "human", "value": "Name: Anna\nLives in Rome"}, {"label": "persona", "value": "Be brief"}]
    return write(folder / "sam.af", {"agents": [agent], "blocks": blocks, "tools": [{"name": "x"}]})


@pytest.mark.parametrize(
    ("make", "format", "count"),
    [
        (telegram, "telegram", 2),
        (whatsapp, "whatsapp", 2),
        (whatsapp_ios, "whatsapp", 2),
        (whatsapp_zip, "whatsapp", 2),
        (slack, "slack", 1),
        (zep, "zep", 3),
        (letta, "letta", 4),
    ],
)
async def test_an_export_is_detected_tried_and_imported_once(make, format, count, tmp_path: Path) -> None:
    path = make(tmp_path)
    async with opened(tmp_path / "me.db") as memory:
        tried = await memory.import_(path, dry_run=True)
        report = await memory.import_(path)
        assert (tried.format, tried.read, tried.added, tried.dry_run) == (format, count, count, True)
        assert (report.format, report.read, report.added) == (format, count, count)
        assert (await memory.import_(path)).added == 0
        assert any("Rome" in hit.content for hit in await memory.search("Rome", type="any"))


async def nodes_of(memory: Memory) -> dict[str, object]:
    return {node.content: node for node in (await memory.list(limit=100)).nodes}


async def test_speakers_times_and_what_is_left_out(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(slack(tmp_path))
        assert report.refused == ("not imported: 1 notice, such as who joined", "not imported: integration_logs.json")
        (node,) = (await memory.list()).nodes
        assert (node.content, node.speaker) == ("I moved to Rome, Anna Rossi", "Anna Rossi")
        report = await memory.import_(telegram(tmp_path / "t"))
        assert report.refused == ("not imported: 1 notice, such as a call or a pinned message",)
        report = await memory.import_(whatsapp(tmp_path / "w"))
        assert report.refused == ("not imported: 1 notice, of WhatsApp itself",)
        found = await nodes_of(memory)
        assert found["I moved to Rome\nlast week"].event_time.isoformat() == "2023-12-31T21:15:00+00:00"
        await memory.import_(whatsapp_ios(tmp_path))
        assert (await nodes_of(memory))["Great"].event_time.isoformat() == "2024-01-02T08:00:00+00:00"


async def test_claude_memories_projects_and_attachments_are_imported(tmp_path: Path) -> None:
    turns = [
        {
            "uuid": "t",
            "sender": "human",
            "text": "Read this",
            "created_at": "2024-05-01T10:00:00Z",
            "attachments": [{"file_name": "plan.txt", "extracted_content": "The plan is to walk"}],
        }
    ]
    write(
        tmp_path / "c/conversations.json",
        [{"uuid": "a", "name": "x", "created_at": "2024-05-01T10:00:00Z", "chat_messages": turns}],
    )
    write(
        tmp_path / "c/memories.json",
        [
            {
                "conversations_memory": "**Work**\n\nAnna is a baker.\n\n- Likes tea",
                "project_memories": {"p": "Needs flour"},
            }
        ],
    )
    write(
        tmp_path / "c/projects.json",
        [
            {
                "uuid": "p",
                "name": "Bakery",
                "description": "Open a shop",
                "prompt_template": "Be brief",
                "docs": [{"filename": "menu.md", "content": "Bread and cake"}],
            }
        ],
    )
    write(tmp_path / "c/odd.json", [])
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(tmp_path / "c")
        found = await nodes_of(memory)
        assert {
            "Read this\n[attached: plan.txt]",
            "[attached: plan.txt]\nThe plan is to walk",
            "Anna is a baker.",
            "Likes tea",
            "Needs flour",
            "Bakery: Open a shop",
            "Bakery: Be brief",
            "Bakery, menu.md:\nBread and cake",
        } == set(found)
        assert report.refused == ("not imported: odd.json",)
        said_at = found["Read this\n[attached: plan.txt]"].event_time
        assert {found[each].event_time for each in ("Anna is a baker.", "Likes tea", "Needs flour")} == {said_at}


async def test_chatgpt_instructions_and_saved_memories_are_imported_and_tool_calls_are_not(tmp_path: Path) -> None:
    def node(key: str, parent: str | None, role: str, content: dict, **more: object) -> dict:
        said = {
            "id": key,
            "author": {"role": role},
            "content": content,
            "create_time": 1700000000.0,
            "recipient": "all",
            **more,
        }
        return {"id": key, "parent": parent, "children": [], "message": said}

    mapping = {
        "a": node(
            "a",
            None,
            "user",
            {"content_type": "user_editable_context", "user_profile": "I am a baker", "user_instructions": "Be brief"},
        ),
        "b": node("b", "a", "user", {"content_type": "text", "parts": ["Where is Koga?"]}),
        "c": node("c", "b", "assistant", {"content_type": "code", "text": 'search("Koga Japan")'}),
        "d": node("d", "c", "assistant", {"content_type": "text", "parts": ["Anna keeps bees"]}, recipient="bio"),
        "e": node("e", "d", "assistant", {"content_type": "text", "parts": ["In Japan."]}),
        "f": node(
            "f",
            "a",
            "system",
            {"content_type": "model_editable_context", "model_set_context": "1. [2024-05-01]. Likes jazz"},
        ),
    }
    write(
        tmp_path / "g/conversations.json",
        [{"id": "x", "title": "t", "create_time": 1700000000.0, "current_node": "e", "mapping": mapping}],
    )
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(tmp_path / "g")
        found = await nodes_of(memory)
        assert set(found) == {
            "I am a baker",
            "Be brief",
            "Where is Koga?",
            "Anna keeps bees",
            "In Japan.",
            "Likes jazz",
        }
        assert found["Be brief"].type == "procedural"


async def test_markdown_boxes_labels_and_relations(tmp_path: Path) -> None:
    write(
        tmp_path / "v/note.md",
        "# Work\n- [x] Buy a monitor\n- [ ] Sell the desk\n- [decision] Use trains\n- works_with [[Maria]]\n",
    )
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(tmp_path / "v")
        found = await nodes_of(memory)
        assert found["Work: Buy a monitor"].attributes["done"] is True
        assert found["Work: Sell the desk"].category == found["Work: Buy a monitor"].category == "task"
        assert "decision" in found["Work: Use trains"].tags
        assert "Maria" in found["works with Maria"].about


TABLES = """
Plants:
| Plant | Water | Note |
|:------|:-----:|------|
| Cactus | monthly | a \\| b |
| Fern | | shade |

+------+----------+
| Host | IP       |
+------+----------+
| web1 | 10.0.0.1 |
+------+----------+

name,age,city
Ann,31,"Oslo, Norway"
Bob,44,Rome

The prices, sizes and colours vary,
as do the names, dates and places,
and so the owner, tenant and agent.

- Use `a | b` for a pipe.

```
| code | x |
|------|---|
```
"""


async def test_the_rows_of_tables_in_notes_become_facts(tmp_path: Path) -> None:
    path = write(tmp_path / "house.md", TABLES)
    async with opened(tmp_path / "a.db") as memory:
        await memory.import_(path)
        said = {node.content for node in (await memory.list(limit=50)).nodes}
    assert said == {
        "house: Plants: Plant: Cactus, Water: monthly, Note: a | b",
        "house: Plants: Plant: Fern, Note: shade",
        "house: Host: web1, IP: 10.0.0.1",
        "house: name: Ann, age: 31, city: Oslo, Norway",
        "house: name: Bob, age: 44, city: Rome",
        "house: The prices, sizes and colours vary, as do the names, dates and places,"
        " and so the owner, tenant and agent.",
        "house: Use `a | b` for a pipe.",
        "house:\n```\n| code | x |\n|------|---|\n```",
    }


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<Media omitted>", "[a file]"),
        ("<Medien ausgeschlossen>", "[a file]"),
        ("<Без медиафайлов>", "[a file]"),
        ("\u200eBild weggelassen", "[a file]"),
        ("\u200e<adjunto: 0012-PHOTO.jpg>", "[a file]"),
        ("\u200eМенее секунды назад сообщения и звонки защищены сквозным шифрованием", None),
        ("I omitted the second page", "I omitted the second page"),
        ("a < b and b > c", "a < b and b > c"),
        ("\u200e@\u2068Bob\u2069 are you there", "@Bob are you there"),
        ("\u200eDiese Nachricht wurde gelöscht.", None),
        ("Se eliminó este mensaje.", None),
        ("You deleted this message", None),
        ("\u200eVerpasster Sprachanruf", None),
        ("\u200eVideo call, \u200e12 min", None),
        ("null", None),
        ("\u200eSprachnachricht weggelassen", "[a file]"),
        ("Null Problem", "Null Problem"),
        ("Missed voice call from you, sorry", "Missed voice call from you, sorry"),
        ("Videoanruf um acht?", "Videoanruf um acht?"),
        ("The dog is Balu \u200e<This message was edited>", "The dog is Balu"),
        ("The dog is Balu <Сообщение изменено>", "The dog is Balu"),
        ("IMG-20191224-WA0001.jpg (archivo adjunto)\nour kitten", "[a file]\nour kitten"),
        ("our kitten \u200e<attached: 0012-PHOTO.jpg>", "our kitten [a file]"),
        ("I read plan.pdf (twice)", "I read plan.pdf (twice)"),
    ],
)
async def test_what_whatsapp_writes_itself_is_no_message(tmp_path: Path, said: str, kept: str | None) -> None:
    path = write(tmp_path / "_chat.txt", f"[31.12.23, 22:15:00] Anna: {said}\n[31.12.23, 22:16:00] Bob: Hello\n")
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(path)
        assert {*await nodes_of(memory)} == {"Hello", kept} - {None}
        assert len(report.refused) == (kept is None)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("15/03/15, 18:46 - ", "16/03/15, 10:00 meeting"),
        ("15/03/15, 18:46 - ", "16/03/15, 10:00 Zahnarzt: Karte mitnehmen"),
        ("15/03/15, 18:46 - ", "[16/03/15, 10:00:00] Bob: il testo di ieri"),
        ("15/03/2015 18:46 - ", "16/03/2015 10:00 dentista"),
        ("15.03.15, 18:46 - ", "16.03.15, 10:00 встреча"),
        ("3/15/15, 6:46 PM - ", "3/16/15, 10:00 AM dentist"),
        ("15/3/15, 6:46 p. m. - ", "16/3/15, 10:00 a. m. dentista: con la radiografía"),
        ("[15.03.15, 18:46:01] ", "16.03.15 10:00 rendez-vous"),
        ("[15/03/2015, 18:46:01] ", "16/03/2015, 10:00 - Bob: as quoted"),
    ],
)
async def test_a_line_that_begins_with_a_time_belongs_to_the_message(tmp_path: Path, head: str, line: str) -> None:
    chat = tmp_path / "WhatsApp Chat with Bob.txt"
    chat.write_text(f"{head}Ann: the list:\n- bread\n{line}\n- milk\n{head}Bob: ok\n", "utf-8")
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(chat)
        said = [(each.event_time.hour, each.content) for each in (await memory.list()).nodes]
    assert sorted(said) == [(17, "ok"), (17, f"the list:\n- bread\n{line}\n- milk")]
    assert report.refused == ()


async def test_a_dry_run_shows_the_days_of_each_file_and_which_order_was_taken(tmp_path: Path) -> None:
    def days(*written: str) -> Path:
        text = "".join(f"{day}, 10:00 - Bob: hi\n" for day in written)
        return write(tmp_path / "in" / "WhatsApp Chat with Bob.txt", text)

    async with opened(tmp_path / "me.db") as memory:
        for written, first, last, undecided in (
            (("03/04/19", "05/04/19"), "2019-04-03", "2019-04-05", ("03/04/19 as 2019-04-03 (day first)",)),
            (("04/04/19", "05/06/19"), "2019-04-04", "2019-06-05", ("05/06/19 as 2019-06-05 (day first)",)),
            (("04/04/19", "05/05/19"), "2019-04-04", "2019-05-05", ()),
            (("03/04/19", "13/04/19"), "2019-04-03", "2019-04-13", ()),
            (("3/4/19", "3/13/19"), "2019-03-04", "2019-03-13", ()),
            (("2019-03-04", "2019-05-06"), "2019-03-04", "2019-05-06", ()),
        ):
            report = await memory.import_(days(*written), dry_run=True)
            shown = [each and each.date().isoformat() for each in (report.first_at, report.last_at)]
            assert (shown, report.undecided_dates) == ([first, last], undecided)
        telegram(tmp_path / "in" / "DataExport_2026")
        days("03/04/19")
        report = await memory.import_(tmp_path / "in", dry_run=True)
        assert report.undecided_dates == ("WhatsApp Chat with Bob.txt: 03/04/19 as 2019-04-03 (day first)",)
        chat = next(each for each in report.parts if each.format == "whatsapp")
        assert chat.first_at == chat.last_at == report.first_at
        assert all(each.first_at for each in report.parts)


async def test_the_notices_of_a_whatsapp_group_are_no_messages(tmp_path: Path) -> None:
    lines = [
        "Dublin crew: \u200eMessages and calls are end-to-end encrypted",
        "Dublin crew: \u200eAoife created this group",
        "Dublin crew: \u200eAoife added you",
        "Aoife: hi all",
        "Marta: \u200eLocation: https://maps.example/?q=53.3",
        "Aoife: \u200ePOLL:\nWhere do we eat?\n\u200eOPTION: Tacos (2 votes)",
        "Marta: \u200eimage omitted",
    ]
    text = "".join(f"[31.12.23, 22:1{minute}:00] {line}\n" for minute, line in enumerate(lines))
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(write(tmp_path / "_chat.txt", text))
        said = {*await nodes_of(memory)}
        assert {each.title for each in await memory.sessions()} == {"Dublin crew"}
    assert said == {
        "hi all",
        "Location: https://maps.example/?q=53.3",
        "POLL:\nWhere do we eat?\nOPTION: Tacos (2 votes)",
        "[a file]",
    }
    assert [each for each in report.refused if "3 notices" in each]


async def test_an_export_beside_another_one_is_named_with_what_to_do(tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    row = {"id": "m", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["I live in Oslo"]}}
    said = [{"title": "t", "mapping": {"a": {"message": row, "parent": None, "children": []}}}]
    write(chats / "conversations.json", json.dumps(said))
    write(chats / "Lucía.txt", "[31.12.23, 22:15:00] Anna: hi\n[31.12.23, 22:16:00] Bob: Hello\n")
    with zipfile.ZipFile(tmp_path / "chats.zip", "w") as archive:
        for path in chats.iterdir():
            archive.write(path, path.name)
    async with opened(tmp_path / "me.db") as memory:
        of_folder = (await memory.import_(chats)).refused
        of_archive = (await memory.import_(tmp_path / "chats.zip")).refused
    assert of_folder == ("not imported: Lucía.txt: an exported WhatsApp chat; import it by itself",)
    assert [each for each in of_archive if "Lucía.txt" in each and "unpack the archive" in each]


async def test_a_folder_of_exports_is_imported_whole_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    chats = tmp_path / "chats"
    telegram(chats / "DataExport_2026")
    whatsapp(chats)
    whatsapp_ios(chats)
    slack(chats)
    torn = (telegram(tmp_path / "old") / "result.json").read_text("utf-8")[:-40]
    write(chats / "DataExport_2019/result.json", torn)
    (chats / "Jan.zip").write_bytes((chats / "chat.zip").read_bytes()[:-30])
    write(chats / "invoice.csv", "1;2;3")
    (chats / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\0")
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(chats)
        assert (await memory.import_(chats)).added == 0
        sessions = {each.title for each in await memory.sessions()}
    assert report.format == "telegram, whatsapp, slack"
    assert report.added == 2 + 2 + 2 + 1
    assert {"Trip", "Anna"} <= sessions
    assert "result.json: incomplete" in report.refused[0]
    assert [(each.name, each.format, each.read) for each in report.parts if each.format == "whatsapp"] == [
        ("WhatsApp Chat with Anna.txt", "whatsapp", 2),
        ("chat.zip", "whatsapp", 2),
    ]
    for name in ("Jan.zip is an incomplete ZIP", "in no known format: invoice.csv, photo.jpg"):
        assert any(name in line for line in report.refused)


async def test_what_the_owner_says_in_a_chat_is_about_the_owner(tmp_path: Path) -> None:
    path = write(
        tmp_path / "_chat.txt",
        "[31.12.23, 22:15:00] Anna Weiss: I'm allergic to penicillin\n[31.12.23, 22:16:00] Bob: I'm allergic to nuts\n",
    )
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(path, me=["anna weiss", "Anne"])
        assert [(each.name, each.messages) for each in report.me] == [("Anna Weiss", 1)]
        assert report.not_found == ("Anne",)
        await memory.consolidate()
        facts = {each.content: each.about for each in (await memory.list(type="semantic")).nodes}
    assert facts == {
        "The user's name is Anna Weiss": (),
        "I'm allergic to penicillin": (),
        "I'm allergic to nuts": ("Bob",),
    }


RIGA = "I live in Riga"


def of_deleted_account(folder: Path) -> Path:
    about = {"type": "message", "date_unixtime": "1700000000"}
    said = [{"id": 1, "from": None, "from_id": "user777", "text": RIGA}]
    said += [{"id": 2, "from": None, "from_id": "user222", "text": "I live in Bonn"}]
    said += [{"id": 3, "from": None, "text": "I live in Oslo"}, {"id": 4, "from": "", "from_id": "", "text": "Hm"}]
    chat = {"name": "Trip", "type": "private_group", "id": 5, "messages": [{**about, **each} for each in said]}
    owner = {"personal_information": {"user_id": 222}, "chats": {"list": [chat]}}
    return write(folder / "result.json", owner)


def of_nameless_bot(folder: Path) -> Path:
    about = {"type": "message", "ts": "1700000001.2"}
    day = [{**about, "bot_id": "B7", "text": RIGA}, {**about, "text": "I live in Oslo"}]
    day += [{**about, "user": "U9", "text": "I live in Bern"}]
    return write(folder / "s/general/2023-11-14.json", day).parents[1]


def of_marks(folder: Path) -> Path:
    return write(folder / "_chat.txt", f"[31.12.23, 22:15:00] \u202a\u202c: {RIGA}\n[31.12.23, 22:16:00] Bob: Hm\n")


def of_lines(folder: Path) -> Path:
    rows = [
        {"speaker": None, "text": RIGA},
        {"text": "I live in Oslo"},
        {"author": {"id": 9}, "text": "I live in Bern"},
    ]
    rows += [{"role": "user", "name": None, "text": "I live in Bonn"}]
    return write(folder / "chat.jsonl", "\n".join(map(json.dumps, rows)))


def of_locomo(folder: Path) -> Path:
    turn = {"kind": "turn", "conv": 1, "session": 1, "id": 1, "date": "1:56 pm on 8 May, 2023", "speaker": None}
    return write(folder / "locomo.jsonl", json.dumps({**turn, "text": RIGA}))


def of_database(folder: Path) -> Path:
    path = folder / "memory.db"
    folder.mkdir()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE memories (id, kind, content, attributes)")
    roles = (RIGA, {}), ("I live in Oslo", {"role": "guest"}), ("I live in Bonn", {"role": "user"})
    rows = [(number, "episode", text, json.dumps(each)) for number, (text, each) in enumerate(roles)]
    db.executemany("INSERT INTO memories VALUES (?, ?, ?, ?)", rows)
    db.commit()
    db.close()
    return path


UNKNOWN = "Unknown person"


@pytest.mark.parametrize(
    ("write_file", "speakers"),
    [
        (of_deleted_account, {RIGA: "Deleted account (777)", "I live in Oslo": UNKNOWN, "Hm": UNKNOWN}),
        (of_nameless_bot, {RIGA: "B7", "I live in Oslo": UNKNOWN, "I live in Bern": "U9"}),
        (of_marks, {RIGA: UNKNOWN, "Hm": "Bob"}),
        (of_lines, {RIGA: UNKNOWN, "I live in Oslo": UNKNOWN, "I live in Bern": "9"}),
        (of_locomo, {RIGA: UNKNOWN}),
        (of_database, {RIGA: UNKNOWN, "I live in Oslo": UNKNOWN}),
    ],
)
async def test_a_message_of_an_unknown_author_is_never_the_owners(
    tmp_path: Path, write_file: Callable[[Path], Path], speakers: dict[str, str]
) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(write_file(tmp_path / "x"), me=["Katrin"])
        said = {each.content: each.speaker for each in (await memory.list(type="episodic")).nodes}
        await memory.consolidate()
        facts = {each.content: each.about for each in (await memory.list(type="semantic")).nodes}
    assert said == {**speakers, **({"I live in Bonn": None} if "I live in Bonn" in said else {})}
    assert RIGA not in facts or facts[RIGA] == (speakers[RIGA],)
    assert all(text == "I live in Bonn" or about for text, about in facts.items())


@pytest.mark.parametrize(
    "row",
    [
        lambda owner: {"id": owner or "m", "memory": f"I live with {owner}", "user_id": owner},
        lambda owner: {
            "id": owner or "m",
            "memory_type": "identity",
            "content": f"I live with {owner}",
            "owner_user_id": owner,
        },
    ],
    ids=["mem0", "memories-jsonl"],
)
async def test_in_a_file_of_several_people_a_memory_without_an_owner_is_refused(
    tmp_path: Path, row: Callable[[str | None], dict[str, object]]
) -> None:
    path = write(tmp_path / "memories.jsonl", "\n".join(json.dumps(row(owner)) for owner in ("me", "ann", None)))
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(path)
        facts = {each.content for each in (await memory.list(type="semantic")).nodes}
    assert facts == {"I live with me"}
    assert any("names no owner" in line for line in report.refused)


async def test_a_single_export_in_a_folder_is_one_import(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        assert (await memory.import_(slack(tmp_path / "one"))).format == "slack"
        write(tmp_path / "two/notes.md", "- Anna likes tea\n")
        assert (await memory.import_(whatsapp(tmp_path / "two").parent)).format == "markdown"


@pytest.mark.parametrize("format", [None, "telegram"])
@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
async def test_a_torn_export_is_called_incomplete(cut: float, format: str | None, tmp_path: Path) -> None:
    file = telegram(tmp_path) / "result.json"
    text = file.read_text("utf-8")
    write(file, text[: int(len(text) * cut)])
    async with opened(tmp_path / "me.db") as memory:
        for path in (file, tmp_path):
            with pytest.raises(InvalidError, match=r"incomplete|not valid JSON"):
                await memory.import_(path, format=format)


async def test_a_torn_file_beside_complete_ones_is_named(tmp_path: Path) -> None:
    turn = {"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["I like figs"]}}}
    row = {"title": "A", "id": "c1", "current_node": "n", "mapping": {"n": {"id": "n", **turn}}}
    write(tmp_path / "conversations-000.json", [row])
    write(tmp_path / "conversations-001.json", json.dumps([row])[:-20])
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(tmp_path)
    assert report.messages == 1
    assert any("conversations-001.json: incomplete" in line for line in report.refused)


async def test_the_report_names_redacted_credentials_and_the_time_zone(tmp_path: Path) -> None:
    lines = "31/12/2023, 22:15 - Anna: The garage code is 4471\n31/12/2023, 22:16 - Bob: Thanks\n"
    path = write(tmp_path / "WhatsApp Chat with Anna.txt", lines)
    async with opened(tmp_path / "me.db") as memory:
        tried, report, again = [await memory.import_(path, dry_run=each) for each in (True, False, False)]
        assert [(each.added, each.redacted) for each in (tried, report, again)] == [(2, 1), (2, 1), (0, 0)]
        assert report.time_zone == "Europe/Berlin"
        assert (await memory.import_(telegram(tmp_path / "t"))).time_zone == ""


async def test_a_dry_run_of_a_folder_counts_a_file_that_is_there_twice_once(tmp_path: Path) -> None:
    first = whatsapp(tmp_path / "c")
    write(tmp_path / "c/WhatsApp Chat with Anna (1).txt", first.read_text("utf-8"))
    async with opened(tmp_path / "me.db") as memory:
        tried, report = [await memory.import_(tmp_path / "c", dry_run=each) for each in (True, False)]
        assert (tried.added, tried.known) == (report.added, report.known) == (2, 2)


async def test_an_import_in_a_chat_says_who_can_read_it_and_can_stay_private(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        team = memory.scoped(Scope(owner="me", chat="team"))
        assert (await team.import_(whatsapp(tmp_path), shared=False)).chat == ""
        assert (await team.import_(telegram(tmp_path / "t"))).chat == "team"
        told = await memory.scoped(Scope(owner="bob", chat="team")).sessions()
        assert [each.title for each in told] == ["Trip"]


async def test_one_number_undoes_the_import_of_a_file_and_the_log_names_it(tmp_path: Path) -> None:
    lines = [f"{1 + day % 28:02}/01/{2000 + day // 28}, 08:05 - Anna: Day {day}" for day in range(1_200)]
    write(tmp_path / "c/_chat.txt", "\n".join(lines))
    whatsapp(tmp_path / "c")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(tmp_path / "c")
        log = list(await memory.log())[::-1]
        assert [each.reason for each in log] == [
            "import of WhatsApp Chat with Anna.txt (whatsapp)",
            *["import of _chat.txt (whatsapp)"] * 2,
        ]
        assert log[1].words.startswith("1,000 memories, such as Day")
        undone = await memory.undo(log[2].seq)
        assert undone.words.startswith("removes 1,200 memories, such as “Day ")
        assert {each.title for each in await memory.sessions()} == {"Anna"}
        assert (await memory.import_(tmp_path / "c")).added == 1_200


def chat_of(folder: Path, *said: str, name: str = "_chat.txt") -> Path:
    """Write a WhatsApp chat from lines such as "2019-07-01 Ann: Hello", at noon."""
    lines = [f"{line[8:10]}/{line[5:7]}/{line[:4]}, 12:{number:02} - {line[11:]}" for number, line in enumerate(said)]
    return write(folder / name, "\n".join(lines) + "\n")


async def relatives(memory: Memory) -> set[tuple[str, str]]:
    return {(person.name, person.relation) for person in await memory.people() if person.relation}


def forwards(folder: Path) -> Path:
    """Write a Telegram chat of Katja and Bob, in which Katja forwards what others said, and quotes."""

    def said(number: int, text: object, **fields: object) -> dict[str, object]:
        head = {"id": number, "type": "message", "date_unixtime": str(1_700_000_000 + 60 * number)}
        return {**head, "from": "Katja", "from_id": "user1", "text": text, **fields}

    erna, channel = "I'm allergic to penicillin. My wife is Greta Lang.\n\nI work at the embassy in Oslo", "I'm vegan."
    messages = [
        said(1, "Hi", **{"from": "Bob", "from_id": "user2"}),
        said(2, erna, forwarded_from="Tante Erna"),
        said(3, channel, forwarded_from="News, I live in Bergen]\nI smoke", forwarded_from_id="channel3"),
        said(4, "I moved to Bonn last week", forwarded_from=None),
        said(5, "", forwarded_from="Tante Erna", photo="photos/1.jpg"),
        said(6, ["He wrote", {"type": "blockquote", "text": "I love sailing.\nI'm a nurse."}, "I play the cello"]),
        said(7, "I'm allergic to nuts", forwarded_from="Katja", forwarded_from_id="user1"),
    ]
    return write(folder / "result.json", {"name": "Bob", "type": "personal_chat", "id": 5, "messages": messages})


@pytest.mark.parametrize("me", [(), ("Katja",)])
async def test_a_forwarded_message_names_its_author_and_teaches_nothing(me: Sequence[str], tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        path = forwards(tmp_path)
        assert (await memory.import_(path, me=me)).messages == 7
        texts = [turn.content for turn in (await memory.session("telegram/5")).turns]
        assert texts[1:6] == [
            "[forwarded from Tante Erna]\n> I'm allergic to penicillin. My wife is Greta Lang.\n>\n"
            "> I work at the embassy in Oslo",
            "[forwarded from News, I live in Bergen I smoke]\n> I'm vegan.",
            "[forwarded from a deleted account]\n> I moved to Bonn last week",
            "[forwarded from Tante Erna]\n> [photo]",
            "He wrote\n> I love sailing.\n> I'm a nurse.\nI play the cello",
        ]
        assert texts[6] == "I'm allergic to nuts"  # Katja forwards her own message
        await memory.consolidate()
        learnt = {each.content for each in (await memory.list(type="semantic")).nodes}
        assert learnt - {"The user's name is Katja"} == {"I'm allergic to nuts", "I play the cello"}
        assert not (await memory.entity("Katja")).relations
        assert not {person.name for person in await memory.people()} & {"Greta Lang", "Tante Erna"}
        assert (await memory.import_(path, me=me)).added == 0


async def test_a_forwarded_message_of_an_earlier_import_is_not_imported_twice(tmp_path: Path) -> None:
    path = forwards(tmp_path)
    plain = path.read_text("utf-8").replace("forwarded_from", "was_forwarded").replace("blockquote", "italic")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(write(tmp_path / "before/result.json", plain))
        assert (await memory.import_(path)).added == 0
        await memory.undo((await memory.log())[0].seq)
        assert (await memory.import_(path)).messages == 7
        assert (await memory.session("telegram/5")).turns[1].content.startswith("[forwarded from Tante Erna]")


async def test_the_speakers_of_imported_messages_are_people(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(whatsapp(tmp_path / "w"))
        await memory.import_(slack(tmp_path))
        assert {person.name for person in await memory.people()} >= {"Anna", "Bob", "Anna Rossi"}
        assert (await memory.entity("Bob")).type == "person"
        await memory.import_(of_deleted_account(tmp_path / "x"))
        assert not {person.name for person in await memory.people()} & {UNKNOWN, "Deleted account (777)"}


async def test_imported_messages_tell_relations_like_live_ones(tmp_path: Path) -> None:
    path = chat_of(
        tmp_path / "a",
        "2015-03-01 Ann: My sister Sarah is coming. My boss is Tom.",
        "2016-03-01 Bob: My wife is Greta",
        "2018-03-01 Ann: My boss is Kate",
        "2019-03-01 Ann: My husband is Paul.",
        "2021-03-01 Ann: Paul and I got divorced.",
    )
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(path, me=["Ann"])
        assert await relatives(memory) == {("Sarah", "sister"), ("Kate", "boss")}
        (wife,) = (await memory.entity("Greta")).relations
        assert (wife.source_name, wife.predicate) == ("Bob", "wife")
        assert (await memory.entity("my sister")).name == "Sarah"
        tom = [each for each in (await memory.entity("Tom")).relations if each.valid_until is not None]
        assert [each.valid_until.year for each in tom] == [2018]


async def test_an_import_ends_no_relation_that_is_newer_or_the_owners_own_word(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(chat_of(tmp_path / "a", "2018-03-01 Ann: My boss is Kate"), me=["Ann"])
        await memory.import_(chat_of(tmp_path / "b", "2015-03-01 Ann: My boss is Tom"), me=["Ann"])
        assert await relatives(memory) == {("Kate", "boss")}
        await memory.add("My boss is Rosa")
        await memory.import_(chat_of(tmp_path / "c", "2020-03-01 Ann: My boss is Igor. My doctor is Nina."), me=["Ann"])
        assert await relatives(memory) == {("Rosa", "boss"), ("Nina", "doctor")}


async def test_the_name_of_the_owner_is_counted_as_a_fact_and_not_as_read(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        path = chat_of(tmp_path, "2015-03-01 Ann: I moved to Berlin", "2015-03-02 Bob: Hi")
        for is_dry in (True, False):
            report = await memory.import_(path, me=["Ann"], dry_run=is_dry)
            assert (report.read, report.messages, report.facts, report.added) == (2, 2, 1, 3)


async def test_the_name_of_the_owner_is_not_counted_as_known_for_each_file(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        for name, other in (("a", "Bob"), ("b", "Eve")):
            path = chat_of(tmp_path / name, "2015-03-01 Ann: I moved to Berlin", f"2015-03-02 {other}: Hi")
            report = await memory.import_(path, me=["Ann"])
            assert (report.messages, report.known) == (2, 0)
        again = await memory.import_(path, me=["Ann"])
        assert (again.added, again.known) == (0, 2)


async def test_undoing_an_import_takes_back_what_was_learnt_from_it_alone(tmp_path: Path) -> None:
    first = chat_of(tmp_path / "a", "2015-03-01 Ann: I moved to Berlin. My sister Sarah says hi", "2015-03-02 Bob: Hi")
    second = chat_of(
        tmp_path / "b", "2016-03-01 Ann: I'm allergic to nuts. My sister Sarah knows", "2016-03-02 Eve: Hi"
    )
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("I have a dog")
        await memory.add("I moved to Berlin", session="live")
        await memory.end_session("live")
        await memory.import_(first, me=["Ann"])
        number = (await memory.log())[0].seq
        await memory.import_(second, me=["Ann"])
        await memory.consolidate()
        await memory.maintain()
        assert "removes" in (await memory.undo(number, dry_run=True)).words
        await memory.undo(number)
        assert {person.name for person in await memory.people()} == {"Eve"}
        await memory.consolidate()  # learns again what other conversations say, too
        facts = [each.content for each in (await memory.list(type="semantic")).nodes]
        named = "The user's name is Ann"  # the other import states it, too
        assert sorted(facts) == ["I have a dog", "I moved to Berlin", "I'm allergic to nuts", named]
        messages = {each.session for each in (await memory.list(type="episodic")).nodes}
        assert messages == {"live", "whatsapp/Ann, Eve"}
        assert (await memory.import_(first, me=["Ann"])).added == 2
        assert await relatives(memory) == {("Sarah", "sister")}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_the_owners_name_stays_until_the_last_import_that_states_it_is_undone(tmp_path: Path, order) -> None:
    folder = tmp_path / "in"
    for number, friend in enumerate(("Bob", "Eve", "Kim")):
        chat = folder / f"WhatsApp Chat with {friend}.txt"
        folder.mkdir(exist_ok=True)
        chat.write_text(
            "".join(f"0{number + 1}/03/2015, 10:0{at} - {who}: Hello {at}\n" for at, who in enumerate(("Ann", friend)))
        )
    name = ["The user's name is Ann"]
    async with opened(tmp_path / "me.db") as memory:
        report = await memory.import_(folder, me=["Ann"])
        assert (report.added, report.links) == (7, 0)
        imports = sorted({each.run_id: each.seq for each in await memory.log()}.values())
        for left, number in zip((2, 1, 0), order, strict=True):
            undone = await memory.undo(imports[number])
            assert [each.content for each in (await memory.list(type="semantic")).nodes] == name * (left > 0)
        assert (await memory.list()).nodes == ()
        await memory.undo(undone.seq)
        assert [each.content for each in (await memory.list(type="semantic")).nodes] == name
        assert (await memory.doctor()).ok


async def test_undoing_an_import_asks_before_it_takes_back_what_somebody_said(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(chat_of(tmp_path, "2015-03-01 Ann: I moved to Berlin", "2015-03-02 Bob: Hi"), me=["Ann"])
        await memory.consolidate()
        (fact,) = (each for each in (await memory.list(type="semantic")).nodes if "Berlin" in each.content)
        await memory.correct(fact.id, "I moved to Bonn")
        with pytest.raises(ConflictError, match="with-later"):
            await memory.undo((await memory.log())[-1].seq)


async def canonical_of(memory: Memory) -> tuple[Any, ...]:
    nodes = sorted((node.id, node.content, node.about) for node in (await memory.list(limit=500)).nodes)
    people = sorted((person.name, person.aliases, person.relation) for person in await memory.people())
    return nodes, people, sorted(review.id for review in await memory.review())


async def test_one_import_is_undone_without_the_other_that_speaks_of_the_same_person(tmp_path: Path) -> None:
    first = chat_of(tmp_path / "a", "2015-03-01 Anna Keller: I live in Berlin", "2015-03-02 Bob: Hi")
    second = chat_of(tmp_path / "b", "2016-03-01 Anna Keller: I live in Rome", "2016-03-02 Eve: Hi")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(first)
        number = (await memory.log())[0].seq
        await memory.import_(second)
        await memory.remember("Anna Keller plays the cello", about=["Anna Keller"])
        before = await canonical_of(memory)
        shown = (await memory.undo(number, dry_run=True)).words
        assert "removes the person “Bob”; keeps the person “Anna Keller”, as other memories need it" in shown
        assert await canonical_of(memory) == before
        undone = await memory.undo(number)
        assert undone.words == shown
        texts = {node.content for node in (await memory.list()).nodes}
        assert texts == {"Anna Keller plays the cello", "I live in Rome", "Hi"}
        assert {person.name for person in await memory.people()} == {"Anna Keller", "Eve"}
        await memory.undo(undone.seq)
        assert await canonical_of(memory) == before
        assert (await memory.doctor()).ok


async def test_what_two_imports_taught_stays_when_one_is_undone(tmp_path: Path) -> None:
    first = chat_of(tmp_path / "a", "2015-03-01 Ann: I live in Berlin. I'm allergic to nuts", "2015-03-02 Bob: Hi")
    second = chat_of(tmp_path / "b", "2016-03-01 Ann: I live in Rome. I'm allergic to nuts", "2016-03-02 Eve: Hi")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(first, me=["Ann"])
        number = (await memory.log())[0].seq
        await memory.consolidate()
        await memory.import_(second, me=["Ann"])
        await memory.consolidate()
        before = await canonical_of(memory)
        undone = await memory.undo(number)
        facts = [node.content for node in (await memory.list(type="semantic")).nodes]
        assert sorted(facts) == ["I live in Rome", "I'm allergic to nuts", "The user's name is Ann"]
        kept = "keeps 2 memories that others state as well: “The user's name is Ann”, “I'm allergic to nuts”"
        assert kept in undone.words
        await memory.undo(undone.seq)
        assert await canonical_of(memory) == before
        assert (await memory.doctor()).ok


@pytest.mark.parametrize("is_each", [True, False])
async def test_an_import_is_undone_without_what_the_owner_did_about_others(tmp_path: Path, is_each: bool) -> None:
    family = chat_of(
        tmp_path / "family",
        "2023-03-01 Mum: I like tea",
        "2023-03-02 Kat: I live at 12 Lime Street. My sister Julia is coming",
        "2023-03-03 Kat: I'm allergic to nuts",
        "2023-03-04 Kat: I work at Siemens",
        "2023-03-05 Kat: My favourite colour is blue",
    )
    friend = chat_of(
        tmp_path / "friend",
        "2023-04-01 Lena Brandt: I live in Berlin",
        "2023-04-02 Kat: I'm allergic to nuts",
        "2023-04-03 Kat: I like coffee. My favourite colour is green",
        "2023-04-04 Kat: I live at 14 Lime Street. My brother Jonas is ill",
    )
    colleague = chat_of(
        tmp_path / "colleague",
        "2023-05-01 Tobias: I live in Halle",
        "2023-05-02 Kat: I work at Bosch now",
        "2023-05-03 Kat: I don't like coffee",
        "2023-05-04 Kat: Lena Brandt is visiting. My favourite colour is red",
    )
    async with opened(tmp_path / "me.db") as memory:
        numbers = []
        for path in (family, friend, colleague):
            await memory.import_(path, me=["Kat"])
            numbers.append((await memory.log())[0].seq)
            if is_each:
                await memory.consolidate()
        await memory.consolidate()
        facts = {node.content: node.id for node in (await memory.list(type="semantic")).nodes}
        decisions = {
            "I like coffee": "replace",
            "I work at Siemens": "keep both",
            "I live at 12 Lime Street": "keep old",
        }
        for review in await memory.review(kind="conflict"):
            assert review.older is not None
            await memory.resolve(review, decision=decisions[review.older.content])
        await memory.correct(facts["I live at 12 Lime Street"], "I live at 18 Lime Street")
        await memory.forget(facts["I like tea"])
        await memory.undo(numbers[2])
        await memory.import_(colleague, me=["Kat"])
        await memory.consolidate()
        before = await canonical_of(memory), await relatives(memory)

        undone = await memory.undo(numbers[1])
        left = {node.content for node in (await memory.list(type="semantic")).nodes}
        assert left == {
            "I live at 18 Lime Street",
            "I'm allergic to nuts",
            "I work at Siemens",
            "I work at Bosch now",
            "I don't like coffee",
            "My favourite colour is red",
            "I live in Halle",
            "The user's name is Kat",
        }
        assert {person.name for person in await memory.people()} == {"Mum", "Julia", "Tobias"}
        assert await relatives(memory) == {("Julia", "sister")}
        assert "takes back" not in undone.words
        assert "removes 1 decision about what goes" in undone.words
        await memory.undo(undone.seq)
        assert (await canonical_of(memory), await relatives(memory)) == before

        with pytest.raises(ConflictError, match="2 later changes") as refused:
            await memory.undo(numbers[0])
        corrected, forgotten = refused.value.message.splitlines()[1:]
        assert "correct" in corrected and "which changed “I live at 12 Lime Street”" in corrected
        assert "forget “I like tea”" in forgotten
        undone = await memory.undo(numbers[0], with_later=True)
        assert "brings back “I live at 14 Lime Street”" in undone.words  # the correction had closed it
        assert undone.words.startswith(f"takes back {corrected.strip()}, {forgotten.strip()}; ")
        await memory.undo(undone.seq)
        assert (await canonical_of(memory), await relatives(memory)) == before
        assert (await memory.doctor()).ok


async def test_a_relation_of_an_undone_import_stays_while_the_owner_states_it(tmp_path: Path) -> None:
    first = chat_of(tmp_path / "a", "2015-03-01 Ann: My boss is Kate. I like tea")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(first, me=["Ann"])
        number = (await memory.log())[0].seq
        said = await memory.add("My boss is Kate", session="live")
        undone = await memory.undo(number)
        (boss,) = (await memory.entity("Kate")).relations
        assert (boss.predicate, boss.evidence) == ("boss", (said,))
        await memory.undo(undone.seq)
        (boss,) = (await memory.entity("Kate")).relations
        assert len(boss.evidence) == 2
        assert (await memory.doctor()).ok


async def test_an_import_whose_person_was_merged_is_undone_with_the_merge(tmp_path: Path) -> None:
    first = chat_of(tmp_path / "a", "2015-03-01 Anna Keller: I live in Berlin")
    second = chat_of(tmp_path / "b", "2016-03-01 Annie: I live in Rome")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(first)
        await memory.import_(second)
        number = (await memory.log())[0].seq
        await memory.consolidate()
        await memory.merge("Anna Keller", "Annie")
        before = await canonical_of(memory)
        with pytest.raises(ConflictError, match=r"a later change depends on it:\n  \d+ merge “Anna Keller”"):
            await memory.undo(number)
        undone = await memory.undo(number, with_later=True)
        assert [(person.name, person.aliases) for person in await memory.people()] == [("Anna Keller", ())]
        await memory.undo(undone.seq)
        assert await canonical_of(memory) == before
        assert (await memory.doctor()).ok


@pytest.mark.parametrize("title", ["Attività", "Tarefas", "Aufgaben", "Tasks", "Дела"])
async def test_a_list_of_tasks_is_no_thing(tmp_path: Path, title: str) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / f"{title}.md").write_text(f"# {title}\n\n- [ ] Send the plan to [[Marek]]\n- [x] Pay the tax\n", "utf-8")
    async with opened(tmp_path / "me.db") as memory:
        await memory.import_(vault)
        assert [each.name for each in await memory.people()] == ["Marek"]
        assert {node.category for node in (await nodes_of(memory)).values()} == {"task"}
