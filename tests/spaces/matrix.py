"""Walk through the sharing matrix: `python -m tests.spaces.matrix --calls 2000 --out FILE`.

Each call is one cell of `matrix.txt`, made in Python, over HTTP or over MCP. Every memory of the space is a canary. A
caller whose cell is "empty" or "no" may get no canary, and a refused call may leave no commit in the space.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from mcp import Client, MCPError

from ricordo import Memory, RicordoError, Scope, Settings
from ricordo.interfaces import mcp as mcp_server
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import tools
from ricordo.interfaces.http.guard import Limits
from ricordo.interfaces.serialize import json_text
from tests.interfaces.serving import House
from tests.interfaces.test_rights import EVERY_TOOL

SPACE = "crew"
CANARY, HIDDEN = "zqcanary", "zqhidden"
"""Callers ask with the first; the second is in every text of the space, and nobody gives it."""
OWNERS = {"outsider": "eve", "former": "dan", "reader": "cy", "writer": "bob", "keeper": "ann"}
DOORS = ("python", "http", "mcp")
_TABLE = Path(__file__).with_name("matrix.txt")


def cells() -> dict[tuple[str, str], str]:
    """Return the table: (action, caller) to what is expected."""
    lines = [line.split() for line in _TABLE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    callers = lines[0][1:]
    return {(line[0], who): cell for line in lines[1:] for who, cell in zip(callers, line[1:], strict=True)}


@dataclass(slots=True)
class Target:
    """What a call is about: a fresh memory of the space and what belongs to it."""

    id: str
    session: str
    commit: int
    held: str
    word: str
    person: str
    other: str
    own: str = ""


Ask = Callable[[Target, str], tuple[str, dict[str, Any]]]
"""Returns the method of an action and its arguments, for a target and the caller's owner."""

ACTIONS: Mapping[str, Ask] = {
    "search": lambda at, who: ("search", {"text": at.word}),
    "query": lambda at, who: ("query", {"keywords": at.word}),
    "context": lambda at, who: ("context", {"prompt": f"What is {at.word}?"}),
    "brief": lambda at, who: ("brief", {"budget": 2_000}),
    "list": lambda at, who: ("list", {"limit": 1_000}),
    "timeline": lambda at, who: ("timeline", {"limit": 1_000}),
    "entity": lambda at, who: ("entity", {"name": f"Zqcanary{at.word[-4:]}"}),
    "people": lambda at, who: ("people", {}),
    "log": lambda at, who: ("log", {}),
    "sessions": lambda at, who: ("sessions", {}),
    "session": lambda at, who: ("session", {"id": at.session}),
    "get": lambda at, who: ("get", {"id": at.id}),
    "history": lambda at, who: ("history", {"id": at.id}),
    "explain": lambda at, who: ("explain", {"id": at.id}),
    "review": lambda at, who: ("review", {}),
    "then": lambda at, who: ("search", {"text": at.word, "as_of": at.commit}),
    "spaces": lambda at, who: ("spaces", {}),
    "add": lambda at, who: ("add", {"text": "We meet at noon"}),
    "remember": lambda at, who: ("remember_many", {"facts_": [{"content": "The door is blue", "shared": True}]}),
    "correct": lambda at, who: ("correct", {"id": at.id, "content": "It is otherwise"}),
    "update": lambda at, who: ("update", {"id": at.id, "tags": ["seen"]}),
    "share": lambda at, who: ("update", {"id": at.own, "shared": True}),
    "take_back": lambda at, who: ("update", {"id": at.id, "shared": False}),
    "confirm": lambda at, who: ("confirm", {"id": at.id}),
    "reinforce": lambda at, who: ("reinforce", {"id": at.id}),
    "forget": lambda at, who: ("forget", {"id": at.id}),
    "undo": lambda at, who: ("undo", {"commit_or_run": at.commit}),
    "describe": lambda at, who: ("update_entity", {"entity": at.person, "attributes": {"hair": "red"}}),
    "relate": lambda at, who: ("relate", {"target": at.person, "predicate": "sister", "source": at.other}),
    "merge": lambda at, who: ("merge", {"keep": at.person, "other": at.other}),
    "merge_own": lambda at, who: ("merge", {"keep": at.person, "other": f"Friend of {who}"}),
    "split": lambda at, who: ("split", {"entity": at.other, "names": [f"Nick{at.word[-4:]}"]}),
    "end_session": lambda at, who: ("end_session", {"session": at.session}),
    "off_record": lambda at, who: ("off_record", {"session": f"{at.session} unheard"}),
    "approve": lambda at, who: ("resolve", {"item": at.held, "decision": "approve"}),
    "erase": lambda at, who: ("erase", {"id": at.id}),
    "invite": lambda at, who: ("set_member", {"space": SPACE, "member": "guest", "role": "reader"}),
    "promote": lambda at, who: ("set_member", {"space": SPACE, "member": who, "role": "keeper"}),
    "remove": lambda at, who: ("remove_member", {"space": SPACE, "member": "spare"}),
    "leave": lambda at, who: ("remove_member", {"space": SPACE}),
}

_NOT_OVER_MCP = frozenset(("share", "take_back", "approve", "invite", "promote", "remove", "leave", "spaces"))
"""What an agent's tools do not offer, or offer with other arguments."""


@dataclass(slots=True)
class Walk:
    """What was called, and what was wrong."""

    calls: Counter[str] = field(default_factory=Counter)
    cells: set[tuple[str, str]] = field(default_factory=set)
    leaks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Crew:
    """A space with a member of each role, behind all interfaces."""

    def __init__(self, built: House, memory: Memory, client: Client, current: list[Caller]) -> None:
        self._built, self._memory, self._client, self._current = built, memory, client, current
        self._tools = {each.method: each.tool for each in reversed(tools(EVERY_TOOL))}
        self._secrets: dict[str, str] = {}
        self.keeper = memory.scoped(Scope(owner="ann", chat=SPACE))
        self._number = 0

    async def found(self) -> None:
        await self._memory.scoped(Scope(owner="ann")).create_space(SPACE)
        await self._memory.scoped(Scope(owner="mia")).remember("I keep this to myself")
        for owner in OWNERS.values():
            await self._memory.scoped(Scope(owner=owner)).add_entity(f"Friend of {owner}")
        await self.restore()

    async def restore(self) -> None:
        """Give everybody the role that the table is about."""
        for owner, role in (
            ("ann", "keeper"),
            ("bob", "writer"),
            ("cy", "reader"),
            ("spare", "reader"),
            ("dan", "reader"),
        ):
            await self.keeper.set_member(SPACE, owner, role)  # type: ignore[arg-type]
        for gone in ("dan", "guest"):
            if any(each.owner == gone for each in (await self.keeper.spaces())[0].members):
                await self.keeper.remove_member(SPACE, gone)

    async def target(self) -> Target:
        self._number += 1
        word, hidden = f"{CANARY}{self._number:04}", f"{HIDDEN}{self._number:04}"
        session = f"{word} talk"
        await self.keeper.add(f"Zqcanary{word[-4:]} said {word} {hidden}", session=session)
        await self.keeper.remember(f"It was {hidden}", shared=True, about=[f"Zqother{word[-4:]}"])
        other = (await self.keeper.entity(f"Zqother{word[-4:]}")).id
        await self.keeper.update_entity(other, aliases=[f"Nick{word[-4:]}"])
        kept = await self.keeper.remember(f"The word is {word} {hidden}", shared=True, about=[f"Zqcanary{word[-4:]}"])
        commit = (await self.keeper.log(limit=1))[0].seq
        named = await self.keeper.entity(f"Zqcanary{word[-4:]}")
        person = named.id
        proposing = self._memory.scoped(Scope(owner="bob", chat=SPACE, propose=True))
        await proposing.remember(f"A proposal of {word} {hidden}", shared=True)
        held = (await self.keeper.review(kind="quarantine"))[0].id
        if other == person or named.relations:  # a name was taken for an earlier one, misspelt
            return await self.target()
        return Target(id=kept.id, session=session, commit=commit, held=held, word=word, person=person, other=other)

    async def call(
        self, door: str, owner: str, chat: str | None, method: str, given: dict[str, Any]
    ) -> tuple[bool, str]:
        """Make a call; return whether it was done, and all that was said."""
        if door == "python":
            return await self._in_python(self._memory.scoped(Scope(owner=owner, chat=chat)), method, given)
        if door == "http":
            name = f"{owner} {chat}"
            if name not in self._secrets:
                self._secrets[name] = self._built.secret(name, owner=owner, chat=chat, trust="user")
            given = {("facts" if key == "facts_" else key): value for key, value in given.items()}
            said = await self._built.client(self._secrets[name]).post(f"/v1/{method}", json=given)
            return said.status_code < 400, said.text
        self._current.append(Caller(owner=owner, chat=chat, trust="user"))
        given = given["facts_"][0] if method == "remember_many" else given
        try:
            answer = await self._client.call_tool(self._tools[method], given)
        except MCPError as error:
            return False, str(error)
        return not answer.is_error, answer.model_dump_json()

    async def _in_python(self, memory: Memory, method: str, given: dict[str, Any]) -> tuple[bool, str]:
        if method == "remember_many":
            method, given = "remember", given["facts_"][0]
        try:
            return True, json_text(await getattr(memory, method)(**given))
        except RicordoError as error:
            return False, f"{error} {error.hint}"


Cells = Set[tuple[str, str]]


async def walk(crew: Crew, *, calls: int, seed: int, only: Cells) -> Walk:
    """Make a number of calls: every cell by every interface first, then at random."""
    random, result = Random(seed), Walk()
    every = [
        (door, action, who)
        for (action, who), cell in cells().items()
        for door in DOORS
        if cell != "-" and (action, who) in (only or cells()) and not (door == "mcp" and action in _NOT_OVER_MCP)
    ]
    random.shuffle(every)
    for number in range(calls):
        door, action, who = every[number] if number < len(every) else random.choice(every)
        await _one(crew, result, door, action, who)
    return result


async def _one(crew: Crew, result: Walk, door: str, action: str, who: str) -> None:
    role, _, place = who.partition("-")
    owner = OWNERS[role]
    chat = None if place == "reads" else SPACE
    if role == "keeper" and action == "leave":
        await crew.keeper.set_member(SPACE, "spare", "keeper")
    at, expected = await crew.target(), cells()[action, who]
    if action == "share":
        own = f"My own is zqown{at.word[-4:]}"  # the caller may see it later, so it is no canary
        at.own = (await crew._memory.scoped(Scope(owner=owner)).remember(own)).id
    method, given = ACTIONS[action](at, owner)
    before = (await crew.keeper.log(limit=1))[0].seq
    done, said = await crew.call(door, owner, chat, method, given)
    where = f"{door}: {action} by {who}"
    result.calls[door] += 1
    result.cells.add((action, who))
    marks = [HIDDEN, *([] if at.word[-4:] in json.dumps(given) or at.id in given.values() else [CANARY])]
    if action == "merge_own" and role not in ("outsider", "former"):  # the refusal names a person that members may read
        marks = [HIDDEN]
    if expected != "yes" and any(mark in said.lower() for mark in marks):
        result.leaks.append(f"{where}: {said[:200]}")
    left = owner == "ann" and action == "leave"
    after = before if left else (await crew.keeper.log(limit=1))[0].seq
    if expected == "no" and (done or after != before):
        what = "done" if done else "followed by a commit"
        result.wrong.append(f"{where}: {what}, though it may not be: {said[:200]}")
    if expected == "yes" and not done:
        result.wrong.append(f"{where}: refused: {said[:300]}")
    if expected == "yes" and action in _SHOWING and CANARY not in said.lower() and SPACE not in said:
        result.wrong.append(f"{where}: nothing was found: {said[:200]}")
    if action in ("leave", "remove", "invite", "promote"):
        if role == "keeper" and action == "leave":
            await crew._memory.scoped(Scope(owner="spare", chat=SPACE)).set_member(SPACE, "ann", "keeper")
        await crew.restore()


_SHOWING = frozenset(
    ("search", "list", "timeline", "get", "history", "explain", "session", "sessions", "entity", "then")
)


async def tried(folder: Path, *, calls: int, seed: int, only: Cells = frozenset()) -> Walk:
    """Walk through the table, or some cells of it, in a new store."""
    async with AsyncExitStack() as stack:

        async def opened() -> Memory:
            return await Memory.open(folder / "me.db", embedder=None, settings=Settings(durability="process"))

        calls_, current = Dispatcher(opened()), [Caller()]
        stack.push_async_callback(calls_.close)
        built = House(folder / "me.db", calls_, Limits(rate=1e6, burst=1_000_000))
        stack.push_async_callback(built.close)
        memory = await calls_.opened()
        server = mcp_server.build(calls_, profile=EVERY_TOOL, caller_of=lambda ctx: current[-1])
        client = await stack.enter_async_context(Client(server))
        crew = Crew(built, memory, client, current)
        await crew.found()
        return await walk(crew, calls=calls, seed=seed, only=only)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given, began = parser.parse_args(arguments), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(tried(Path(folder), calls=given.calls, seed=given.seed))
    report = {
        "calls": dict(sorted(found.calls.items())),
        "cells": f"{len(found.cells)} of {sum(cell != '-' for cell in cells().values())}",
        "leaks": found.leaks,
        "wrong": found.wrong,
        "seed": given.seed,
        "seconds": round(time.monotonic() - began),
        "machine": {"system": platform.system(), "python": platform.python_version()},
    }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if found.leaks or found.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
