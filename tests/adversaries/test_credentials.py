"""Credentials of today in every field, by every method that stores text; ordinary identifiers are left alone."""

from __future__ import annotations

import contextlib
import inspect
import json
import typing
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, RicordoError, Settings
from ricordo.model import Change, Entity, Node, Reason, Scope
from ricordo.storage.registry import open_store
from ricordo.text.secrets import redact
from tests.adversaries import credentials

SECRET = "fw_" + "A1b2C3d4E5f6G7h8I9j0K1l2"
"""A made-up key of a vendor that no rule names."""
NAMED = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
"""One whose form is known. Ids and names of sessions are checked for these only: ids of programs look like others."""


def clean(text: str) -> str:
    return redact(text).text


@pytest.mark.parametrize("form", credentials.FORMS)
def test_at_most_three_of_120_credentials_are_kept_in_any_form_of_writing(form: str) -> None:
    known = json.loads(credentials.RESULTS.read_text(encoding="utf-8"))
    for half, most in (("dev", 0), ("held", 3)):
        write = credentials.FORMS[form]
        left = [each.name for each in credentials.credentials(half) if credentials.is_kept(each, clean(write(each)))]
        assert len(left) <= most, left
        assert left == known[half][form]


def test_of_two_thousand_ordinary_sentences_with_identifiers_at_most_ten_are_touched() -> None:
    assert len(credentials.touched(clean)) <= 10


# ---- every public method that stores text, by its signature

_WRITES = frozenset(
    (
        "add",
        "add_many",
        "add_nowait",
        "remember",
        "remember_many",
        "correct",
        "update",
        "forget",
        "add_entity",
        "relate",
        "add_document",
    )
) | frozenset(("update_entity", "merge", "split", "end_session", "off_record", "on_record", "import_"))
_WRITES |= {"forget_where", "update_where", "create_space", "set_member", "remove_member", "keep_question"}
_CONDITIONS = {"type", "category", "entity", "tag", "where", "session", "after", "before"}
_NO_TEXT = frozenset(
    ("at", "expires", "valid_from", "valid_until", "evidence", "path", "format", "progress", "mapping")
)


def _is_text(hint: str) -> bool:
    return any(kind in hint for kind in ("str", "Json", "Message", "Fact")) and "Literal" not in hint


def _slots() -> list[tuple[str, str]]:
    """Return each parameter of a writing method that takes text."""
    found = []
    for name in sorted(_WRITES - {"import_"}):
        hints = typing.get_type_hints(getattr(Memory, name))
        for each in inspect.signature(getattr(Memory, name)).parameters.values():
            hint = str(hints.get(each.name, ""))
            if each.name not in {"self", *_NO_TEXT} and _is_text(hint):
                found.append((name, each.name))
    return found


def _value(method: str, name: str, hint: str) -> Any:
    from ricordo import Fact, Message

    if name in ("id", "session"):
        return NAMED
    if "Message" in hint:
        return [Message(text=f"note {SECRET}", speaker=SECRET, session=NAMED, attributes={SECRET: [SECRET]})]
    if "Fact" in hint:
        return [Fact(content=f"note {SECRET}", tags=[SECRET], about=[SECRET], attributes={SECRET: SECRET})]
    if "Json" in hint or "Mapping" in hint:
        return {"note": SECRET, SECRET: {"deep": [SECRET]}}
    return [SECRET] if "Sequence" in hint else SECRET


async def _call(memory: Any, method: str, given: dict[str, Any]) -> None:
    anna = (await memory.add_entity("Anna", aliases=["Annie"])).id if not await memory.people() else "Anna"
    fact = (await memory.remember("Anna likes tea")).id
    usual: dict[str, Any] = {
        "add": {"text": "hello"},
        "add_document": {"text": "hello", "title": "note"},
        "add_nowait": {"text": "hello"},
        "remember": {"content": "Ben likes tea"},
        "correct": {"id": fact, "content": "Anna likes coffee"},
        "update": {"id": fact, "tags": ["x"]},
        "forget": {"id": fact},
        "add_entity": {"name": "Carl"},
        "relate": {"target": anna, "predicate": "sister"},
        "update_entity": {"entity": anna, "aliases": ["Ann"]},
        "merge": {"keep": anna, "other": "Annie"},
        "split": {"entity": anna, "names": ["Annie"]},
        "end_session": {"session": "s"},
        "create_space": {"name": "garden"},
        "set_member": {"space": "club", "member": "ben", "role": "reader"},
        "remove_member": {"space": "club"},
        "forget_where": {"everything": set(given) <= {"reason"}},
        "update_where": {"everything": set(given) & _CONDITIONS == set(), "add_tags": ["x"]},
    }
    answer = getattr(memory, method)(**{**usual.get(method, {}), **given})
    if inspect.isawaitable(answer):
        await answer


@pytest.mark.parametrize(("method", "parameter"), _slots())
async def test_no_method_stores_a_credential_in_any_argument(tmp_path: Path, method: str, parameter: str) -> None:
    path = tmp_path / "memories"
    hint = str(typing.get_type_hints(getattr(Memory, method))[parameter])
    async with Memory.open(f"{path}/", embedder=None, settings=Settings(durability="process")) as memory:
        # What is refused is not stored.
        with contextlib.suppress(RicordoError):
            await _call(memory, method, {parameter: _value(method, parameter, hint)})
        await memory.settle(600)
    stored = b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
    assert SECRET.encode() not in stored and NAMED.encode() not in stored


_READS = (
    frozenset(("open", "scoped", "search", "query", "context", "context_parts", "get", "list", "entity", "session"))
    | frozenset(("review", "consolidate", "extract", "replay", "accept", "summarise", "reflect", "run", "history"))
    | frozenset(("timeline", "explain", "undo", "archive", "resolve", "confirm", "reinforce", "demote", "restore"))
    | frozenset(("erase", "backup", "verify_backup", "restore_backup", "rekey", "export", "migrate", "ask", "sync"))
    | frozenset(("brief", "brief_parts", "receipt", "receipts", "replay_receipt", "resolve_many", "approve", "refuse"))
    | frozenset(("document", "documents", "remove_document", "question", "renew_questions", "drop_question"))
)
"""Methods whose texts are ids, questions, paths and choices; what models return passes the gate."""


def test_every_public_method_that_takes_text_is_called_with_a_credential_or_stores_no_text() -> None:
    taking = {
        name
        for name, method in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_")
        and any(_is_text(str(hint)) for given, hint in typing.get_type_hints(method).items() if given != "return")
    }
    assert taking - _WRITES - _READS == set()


async def test_a_change_that_no_method_checked_is_screened_before_it_is_stored(tmp_path: Path) -> None:
    """A new field, a new method or a plug-in that writes to the store is covered without a check of its own."""
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=Settings(durability="process")) as memory:
        node = await memory.get((await memory.remember("Anna likes tea")).id)
        entity = await memory.add_entity("Anna")
        store = memory.store_view._store
        change = Change(
            put=(_with(node, content=SECRET, speaker=SECRET, attributes={SECRET: {"a": [SECRET]}}, tags=(SECRET,)),),
            put_entities=(_with(entity, summary=SECRET, relation=SECRET, aliases=(SECRET,), attributes={"a": SECRET}),),
        )
        reason = Reason(actor="me", origin="test", reason=f"because of {SECRET}")
        await store.write(lambda _: (change, None), scope=Scope(), reason=reason, at=node.created_at)
    assert SECRET.encode() not in (tmp_path / "me.db").read_bytes()


def _with(value: Node | Entity, **changed: Any) -> Any:
    from dataclasses import replace

    return replace(value, **changed)


async def test_ids_and_sessions_of_other_programs_stay_apart(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=Settings(durability="process")) as memory:
        for number in range(3):
            name = f"wamid_A1b2C3d4E5f6G7h8I9j0K{number}"
            assert await memory.add("hello", id=name, session=name) == name
        assert len(await memory.sessions()) == 3


async def test_what_the_owner_keeps_stays_through_later_changes(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=Settings(durability="process")) as memory:
        kept = await memory.remember(f"The key of the shop is {SECRET}", tags=[SECRET], keep_secrets=True)
        await memory.reinforce(kept.id)
        await memory.update(kept.id, attributes={"room": "cellar"})
        await memory.forget(kept.id)
        again = await memory.restore(kept.id)
        assert (SECRET in again.content, again.tags) == (True, (SECRET,))
        assert SECRET not in (await memory.update(kept.id, content=f"The key is now {SECRET[:-1]}x")).content


def test_a_store_without_a_memory_has_no_gate(tmp_path: Path) -> None:
    store = open_store(tmp_path / "plain.db")
    store.close()
