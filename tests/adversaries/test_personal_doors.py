"""Personal data that a person chose to leave out is in no file of the store, whatever way it came in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ricordo import Message, Settings
from ricordo.language import ScriptedModel
from ricordo.sync import Memory
from tests.interfaces.conftest import Cli
from tests.storage import canaries

CHOSEN = Settings(redact="email, phone, iban", receipts="reads")
ADDRESSES = (11, 14, 15, 16)
"""Places whose word is an address that the caller chooses: an id, a name or a session that is asked for, an owner."""


def mails(count: int) -> list[str]:
    return [f"{word}@example.com" for word in canaries.words(count)]


def test_no_place_of_a_store_takes_what_is_left_out(tmp_path: Path) -> None:
    model = ScriptedModel(lambda turns, schema: {"facts": [], "note": "write to zqmodelsaid@example.com"})
    search = canaries.Search(tmp_path, [mail.partition("@")[0] for mail in mails(20)] + ["zqmodelsaid"])
    told = [mail for number, mail in enumerate(mails(20)) if number not in ADDRESSES]
    places = [place for number, place in enumerate(canaries.PLACES) if number not in ADDRESSES]
    with Memory.open(tmp_path / "me.db", embedder=None, settings=CHOSEN, model=model) as memory:
        for place, mail in zip(places, told, strict=True):
            place(memory, mail)
        memory.add_entity(told[0], aliases=[told[1]])
        memory.add(f"I work at {told[2]} since May", session="talk")
        memory.end_session("talk")
        memory.consolidate("talk")
        memory.settle()
        assert memory.search("email").hits
    search.look("closed")
    assert not search.found, search.found


def test_credentials_are_kept_and_personal_data_is_not(tmp_path: Path) -> None:
    settings = Settings(secrets="keep", redact="phone")
    with Memory.open(tmp_path / "me.db", embedder=None, settings=settings) as memory:
        fact = memory.remember("my password is hunter2xyz, call +49 170 1234567")
        kept = memory.remember("the door code is 4711, call +49 170 7654321", keep_secrets=True)
        assert fact.content == "my password is hunter2xyz, call [redacted: phone]"
        assert "7654321" in kept.content
        memory.add_many([Message(text="ring 089/12345678", attributes={"phone": "+49 170 1234567", "count": 7})])
        (said,) = memory.list(type="episodic")
        assert (said.content, said.attributes["phone"]) == ("ring [redacted: phone]", "[redacted: phone]")


def test_commands_and_imports_read_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path, capsys)
    monkeypatch.setenv("RICORDO_REDACT", "email")
    chat = tmp_path / "chat.jsonl"
    chat.write_text(json.dumps({"role": "user", "text": "I am ann@example.com", "session": "s"}) + "\n")
    assert cli("remember", "Ben is ben@example.com", embedder="none").status == 0
    assert cli("import", str(chat), embedder="none").status == 0
    with Memory.open(cli.store, embedder=None) as memory:
        found = sorted(node.content for node in memory.list(limit=10))
    assert found == ["Ben is [redacted: email]", "I am [redacted: email]"]
