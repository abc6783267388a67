"""Call every public method of `Memory` for forbidden data. A method without an entry fails the test.

An entry builds a call from one forbidden item of each kind it takes. The same call is made for a missing item,
and both must give the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from ricordo import Fact, Memory, Message, RicordoError
from ricordo.interfaces.serialize import json_text
from ricordo.model import Node
from tests.leaks.world import World

Ask = Callable[[Memory, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a method with an item of a kind (a list of `World`).

    Attributes:
        compared: whether forbidden and missing items must give the same answer.
        stores: the call stores its arguments for the caller, who may then see them.
    """

    kind: str
    ask: Ask
    compared: bool = True
    stores: bool = False


def _simple(name: str, **more: Any) -> Ask:
    return lambda memory, given: getattr(memory, name)(given, **more)


def _searching(name: str) -> tuple[Call, ...]:
    def by(option: str) -> Ask:
        first = ("Bob",) if name == "search" else ()
        return lambda memory, given: getattr(memory, name)(*first, **{option: given})

    kinds = {"session": "sessions", "tag": "tags", "entity": "names"}
    named = [Call(kind=kind, ask=by(option)) for option, kind in kinds.items()]
    return (*named, Call(kind="entities", ask=by("entity")))


def _added(memory: Memory, text: str) -> Awaitable[Any]:
    async def add() -> str:
        return memory.add_nowait(text)

    return add()


async def _imported(memory: Memory, text: str, folder: Path) -> Any:
    path = folder / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "text": "hello", "session": text}) + "\n", encoding="utf-8")
    return await memory.import_(path, format="chat")


async def _each(memory: Memory) -> list[Node]:
    return [node async for node in memory.store_view.each(None)]


async def _changed(memory: Memory, _: object) -> list[Any]:
    """Return the changes so far."""
    latest = await memory.log(limit=1)
    found: list[Any] = []
    async for each in memory.changes(after=0):
        found.append(each)
        if not latest or each.seq >= latest[0].seq:
            break
    return found


async def _exported(memory: Memory, form: str, folder: Path) -> str:
    """Return the content of an export."""
    with TemporaryDirectory(dir=folder) as place:
        path = Path(place) / ("export.md" if form == "markdown" else "export.jsonl")
        await memory.export(path, format=form)
        return path.read_text(encoding="utf-8")


def _all(ask: Ask) -> Call:
    """A call without arguments."""
    return Call(kind="texts", ask=ask, compared=False)


def table(folder: Path) -> Mapping[str, tuple[Call, ...]]:
    """Return the calls by method."""
    ids = {
        name: (Call(kind="ids", ask=_simple(name)),)
        for name in ("get", "history", "explain", "confirm", "reinforce", "demote", "forget", "restore")
    }
    whole = {
        name: (_all(lambda memory, _, name=name: getattr(memory, name)()),)  # type: ignore[misc]
        for name in (
            "stats",
            "people",
            "spaces",
            "chats",
            "review",
            "staged",
            "log",
            "weak",
            "archive",
            "settle",
            "doctor",
            "runs",
            "sessions",
            "spending",
        )
    }
    upkeep = {
        name: (_all(lambda memory, _, name=name: getattr(memory, name)(dry_run=True)),)  # type: ignore[misc]
        for name in ("gc", "prune", "maintain", "enrich", "infer_causes")
    }
    return {
        **ids,
        **whole,
        **upkeep,
        "search": (
            Call(kind="texts", ask=_simple("search", limit=100, trace=True), compared=False),
            Call(kind="texts", ask=_simple("search", type="any", limit=100), compared=False),
            Call(kind="texts", ask=_simple("search", archived=True, limit=100), compared=False),
            Call(kind="commits", ask=lambda memory, given: memory.search("Bob", as_of=given), compared=False),
            Call(kind="ids", ask=lambda memory, given: memory.search("Bob", why_not=given)),
            *_searching("search"),
        ),
        "ask": (Call(kind="texts", ask=_simple("ask"), compared=False),),
        "changes": (_all(_changed),),
        "query": (Call(kind="texts", ask=_simple("query", limit=100), compared=False),),
        "context": (
            Call(kind="texts", ask=_simple("context", budget=50_000), compared=False),
            Call(kind="sessions", ask=lambda memory, given: memory.context("Bob", session=given)),
        ),
        **{
            name: (
                _all(lambda memory, _, name=name: getattr(memory, name)(budget=50_000)),
                Call(kind="sessions", ask=lambda memory, given, name=name: getattr(memory, name)(session=given)),
                Call(
                    kind="commits",
                    ask=lambda memory, given, name=name: getattr(memory, name)(since=given),
                    compared=False,
                ),
            )
            for name in ("brief", "brief_parts")
        },
        "list": (
            _all(lambda memory, _: memory.list(limit=1_000)),
            _all(lambda memory, _: memory.list(limit=1_000, archived=True)),
            *_searching("list"),
        ),
        "timeline": (
            _all(lambda memory, _: memory.timeline(limit=1_000)),
            Call(kind="names", ask=lambda memory, given: memory.timeline(entity=given)),
        ),
        "update_entity": (
            Call(kind="names", ask=lambda memory, given: memory.update_entity(given, type="place")),
            Call(kind="entities", ask=lambda memory, given: memory.update_entity(given, type="place")),
        ),
        "entity": (Call(kind="names", ask=_simple("entity")), Call(kind="entities", ask=_simple("entity"))),
        "correct": (
            Call(kind="ids", ask=_simple("correct", content="it is not so")),
            Call(kind="ids", ask=lambda memory, given: _with_evidence(memory, given)),
        ),
        "update": (Call(kind="ids", ask=_simple("update", content="it is not so")),),
        "resolve": (Call(kind="reviews", ask=_simple("resolve", decision="keep both")),),
        "forget_where": (
            Call(kind="names", ask=lambda memory, given: memory.forget_where(entity=given, dry_run=True)),
            Call(kind="sessions", ask=lambda memory, given: memory.forget_where(session=given, dry_run=True)),
        ),
        "update_where": (
            Call(kind="sessions", ask=lambda memory, given: memory.update_where(session=given, add_tags=["x"])),
        ),
        "resolve_many": (
            Call(kind="reviews", ask=lambda memory, given: memory.resolve_many([given], decision="refuse")),
        ),
        "approve": (Call(kind="reviews", ask=lambda memory, given: memory.approve(given)),),
        "refuse": (Call(kind="reviews", ask=lambda memory, given: memory.refuse([given])),),
        "context_parts": (
            Call(kind="texts", ask=_simple("context_parts", budget=50_000), compared=False),
            Call(kind="sessions", ask=lambda memory, given: memory.context_parts("Bob", session=given)),
        ),
        "export": tuple(
            _all(lambda memory, _, form=form: _exported(memory, form, folder))  # type: ignore[misc]
            for form in ("jsonl", "markdown", "mcp")
        ),
        "store_view": (
            Call(kind="ids", ask=lambda memory, given: memory.store_view.nodes([given])),
            Call(kind="ids", ask=lambda memory, given: memory.store_view.owner_of(given)),
            _all(lambda memory, _: memory.store_view.owners()),
            _all(lambda memory, _: _each(memory)),
        ),
        "run": (Call(kind="runs", ask=_simple("run")),),
        "receipts": (
            _all(lambda memory, _: memory.receipts()),
            Call(kind="receipts", ask=lambda memory, given: memory.receipts(before=given), compared=False),
        ),
        "receipt": (Call(kind="receipts", ask=_simple("receipt")),),
        "replay_receipt": (Call(kind="receipts", ask=_simple("replay_receipt")),),
        "keep_question": (
            Call(kind="texts", ask=_simple("keep_question"), stores=True),
            Call(kind="names", ask=_simple("keep_question"), stores=True),
        ),
        "questions": (_all(lambda memory, _: memory.questions()),),
        "question": (Call(kind="receipts", ask=_simple("question")),),
        "renew_questions": (
            Call(kind="receipts", ask=_simple("renew_questions")),
            _all(lambda memory, _: memory.renew_questions(fresh=True)),
        ),
        "drop_question": (Call(kind="receipts", ask=_simple("drop_question")),),
        "accept": (Call(kind="runs", ask=_simple("accept")),),
        "replay": (Call(kind="runs", ask=_simple("replay")),),
        "summarise": (Call(kind="sessions", ask=_simple("summarise")),),
        "session": (Call(kind="sessions", ask=_simple("session")),),
        "document": (Call(kind="sessions", ask=_simple("document")),),
        "documents": (_all(lambda memory, _: memory.documents()),),
        "remove_document": (Call(kind="sessions", ask=_simple("remove_document")),),
        "add_document": (
            Call(kind="sessions", ask=lambda memory, given: memory.add_document(text="Bob", id=given), stores=True),
        ),
        "extract": (Call(kind="sessions", ask=_simple("extract")),),
        "consolidate": (Call(kind="sessions", ask=_simple("consolidate")),),
        "reflect": (_all(lambda memory, _: memory.reflect(after="10 years ago", dry_run=True)),),
        "undo": (
            Call(kind="runs", ask=_simple("undo")),
            Call(kind="commits", ask=_simple("undo")),
            Call(kind="commits", ask=_simple("undo", with_later=True)),
        ),
        "set_member": (Call(kind="names", ask=_simple("set_member", member="eve", role="keeper")),),
        "remove_member": (Call(kind="names", ask=_simple("remove_member")),),
        "end_session": (Call(kind="sessions", ask=_simple("end_session")),),
        "off_record": (Call(kind="sessions", ask=_simple("off_record"), stores=True),),
        "on_record": (Call(kind="sessions", ask=_simple("on_record")),),
        "merge": (
            Call(kind="names", ask=_simple("merge", other="Bob")),
            Call(kind="entities", ask=_simple("merge", other="Bob")),
            Call(kind="names", ask=lambda memory, given: memory.merge("Bob", given)),
        ),
        "split": (
            Call(kind="names", ask=_simple("split", names=["x"])),
            Call(kind="entities", ask=_simple("split", names=["x"])),
        ),
        "relate": (
            Call(kind="names", ask=_simple("relate", predicate="friend")),
            Call(kind="entities", ask=lambda memory, given: memory.relate("Bob", "friend", source=given)),
        ),
        "erase": (
            Call(kind="ids", ask=lambda memory, given: memory.erase(id=given)),
            Call(kind="sessions", ask=lambda memory, given: memory.erase(session=given)),
            Call(kind="names", ask=lambda memory, given: memory.erase(entity=given)),
            Call(kind="entities", ask=lambda memory, given: memory.erase(entity=given)),
            Call(kind="owners", ask=lambda memory, given: memory.erase(writer=given)),
            Call(kind="owners", ask=lambda memory, given: memory.erase(owner=given)),
        ),
        "add": (Call(kind="sessions", ask=lambda memory, given: memory.add("hello", session=given), stores=True),),
        "add_many": (
            Call(
                kind="sessions",
                stores=True,
                ask=lambda memory, given: memory.add_many([Message(text="hello", session=given)]),
            ),
        ),
        "add_nowait": (Call(kind="names", ask=lambda memory, given: _added(memory, f"{given} was here"), stores=True),),
        "remember": (
            Call(
                kind="names", stores=True, ask=lambda memory, given: memory.remember(f"{given} is here", about=[given])
            ),
        ),
        "remember_many": (
            Call(kind="texts", ask=lambda memory, given: memory.remember_many([Fact(content=given)]), stores=True),
        ),
        "add_entity": (Call(kind="names", ask=_simple("add_entity"), stores=True),),
        "import_": (Call(kind="sessions", ask=lambda memory, given: _imported(memory, given, folder), stores=True),),
    }


async def _with_evidence(memory: Memory, given: str) -> Any:
    mine = (await memory.list(type="semantic", limit=1)).nodes[0]
    return await memory.correct(mine.id, "it is otherwise", evidence=[given])


NOT_TRIED = {
    "sync": "exchanges the caller's own memory with files; tests/devices looks for other owners' there",
    "open": "opens a store",
    "create_space": "makes a space of its own; tests/spaces walks what its members may do",
    "close": "closes it",
    "scope": "is what the caller gave",
    "warm": "gives nothing",
    "scoped": "makes another caller: allowed to the holder of the store",
    "backup": "copies the whole store: upkeep, for users who may read the file",
    "migrate": "likewise",
    "verify_backup": "shows no memory, and opens no store",
    "restore_backup": "likewise",
    "rekey": "likewise",
    "rebuild_index": "rebuilds the index of the whole store and returns a number of lines",
}
"""Methods that concern no owner's memory, and why."""

ABSENT = {
    "texts": "I met zqabsent7",
    "ids": "zqabsentid7",
    "sessions": "zqabsentsession7",
    "names": "Zqabsentname7",
    "entities": "019b0000-0000-7000-8000-000000000000",
    "tags": "zqabsenttag7",
    "reviews": "019b0000-0000-7000-8000-000000000001",
    "commits": 987_654_321,
    "owners": "zqnobody",
    "runs": "019b0000-0000-7000-8000-000000000002",
    "receipts": "019b0000-0000-7000-8000-000000000003",
}
"""A missing item of each kind."""


async def answer(call: Call, memory: Memory, given: Any) -> str:
    """Return the answer or error of a call as text, without its arguments."""
    try:
        said = json_text(await call.ask(memory, given))
    except RicordoError as error:
        said = f"{type(error).__name__}: {error} {getattr(error, 'commits', ())}"
    said = _TIMINGS.sub("", said)
    whole = rf"\b{re.escape(str(given))}\b"
    return re.sub(f"(?i){whole}|{'|'.join(canaries_in(str(given))) or whole}", "GIVEN", said)


_TIMINGS = re.compile(r'"timings_ms": \{[^}]*\}')


def canaries_in(text: str) -> list[str]:
    return re.findall("zq[a-z]+7", text.lower())


def leaks(said: str, world: World) -> list[str]:
    """Return the canaries in an answer that the caller did not pass in."""
    return [canary for canary in canaries_in(said) if canary in world.secret]


def pick(world: World, call: Call, random: Random) -> Any:
    """Return a forbidden item of a kind, or a missing one if there is none. Stored items come from a few that
    are then no longer secret.
    """
    there = getattr(world, call.kind) or [ABSENT[call.kind]]
    if call.kind in ("texts", "sessions", "names"):
        there = there[:2] if call.stores else there[2:]
    return random.choice(there)
