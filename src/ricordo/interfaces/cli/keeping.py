"""The verbs that write: add, remember, forget and the like."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import NotFoundError
from ricordo.interfaces.cli import show_fading
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.cli.screen import Answer, a, dim, one_line, shown
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Category, Node, NodeType, Role

if TYPE_CHECKING:
    from ricordo.memory import Memory

_PANEL = "Keep"

MemoryId = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the last 8 characters of it.")]
SessionOption = Annotated[str | None, typer.Option(metavar="ID", help="The conversation it belongs to.")]


@verb("remember", panel=_PANEL)
async def remember(
    door: Door,
    text: Annotated[str, typer.Argument(help="The fact, preference or instruction; - reads standard input.")],
    about: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Whom or what it is about. Repeatable.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A label. Repeatable.")] = None,
    type: Annotated[
        NodeType, typer.Option(metavar="TYPE", help="semantic (a fact), procedural (how to do something) or opinion.")
    ] = "semantic",
    category: Annotated[
        Category | None,
        typer.Option(metavar="NAME", help="preference, identity, event, task, ... [default: told from the text]"),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long to keep it: 'for 2 weeks', 'until Friday', 2026-07-01.")
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="0..1", help="How sure it is.")] = 1.0,
    valid_from: Annotated[
        str | None, typer.Option(metavar="TIME", help="Since when it is true. [default: now]")
    ] = None,
    session: SessionOption = None,
    id: Annotated[str | None, typer.Option(metavar="ID", help="Your own id. [default: a fresh one]")] = None,
    shared: Annotated[
        bool, typer.Option("--shared", metavar="", help="Keep it for the whole group of --chat.")
    ] = False,
) -> Answer:
    """Keep a piece of knowledge."""
    text = given_text(text)
    async with door.open(makes=True) as memory:
        node = await memory.remember(
            text,
            type=type,
            category=category,
            about=about or (),
            tags=tag or (),
            expires=expires,
            confidence=confidence,
            valid_from=valid_from,
            session=session,
            origin="cli",
            id=id,
            shared=shared,
        )
        return await kept(door, memory, node.id, given=text)


@verb("add", panel=_PANEL)
async def add(
    door: Door,
    text: Annotated[str, typer.Argument(help="What was said; - reads standard input.")],
    role: Annotated[Role, typer.Option(metavar="ROLE", help="user, assistant, system or tool.")] = "user",
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="Who said it.")] = None,
    session: SessionOption = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="When it was said. [default: now]")] = None,
    id: Annotated[str | None, typer.Option(metavar="ID", help="Your own id; the same again is stored once.")] = None,
) -> Answer:
    """Record one message of a conversation."""
    text = given_text(text)
    async with door.open(makes=True) as memory:
        added = await memory.add(text, role=role, speaker=speaker, session=session, at=at, id=id)
        return await kept(door, memory, added, given=text)


def given_text(text: str) -> str:
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\r\n")


async def kept(door: Door, memory: Memory, node_id: str, *, given: str) -> Answer:
    """Say what was kept, as it was kept: off the record it was not at all, and credentials are left out."""
    try:
        node = await memory.get(node_id)
    except NotFoundError:
        return Answer(
            data={"id": None, "kept": False},
            show=lambda out: out.print(
                "Not kept: this is off the record, which `ricordo on-record` ends, or was erased before."
            ),
        )
    if node.closed_reason == "quarantined":
        return _held_back(node)
    await door.settle(memory)
    replaced = await _replaced(memory, node)
    until = show_fading.kept_until(await memory.explain(node.id), door.zone) if node.type != "episodic" else ""
    is_repeated = node.reinforced_at is not None
    if not is_repeated and node.content.strip() != given.strip():
        door.notice("A credential in it was left out. The setting `secrets` decides on that.")

    def show(out: Console) -> None:
        kind = f"Remembered as {a(node.category)}: " if node.category else "Recorded: "
        kind = "Known already: " if is_repeated else kind
        out.print(Text.assemble((kind, "green"), one_line(node.content, most=100), (f"  {shown(node.id)}", "dim")))
        if until:
            out.print(dim(f"It is kept {until}."))
        if replaced:
            out.print(dim(f"It replaces: {one_line(replaced, most=100)}  (`ricordo review` can take that back)"))
        if node.type != "episodic":
            door.hint('Ask for it in your own words: ricordo search "..."')

    return Answer(data=node, show=show)


def _held_back(node: Node) -> Answer:
    def show(out: Console) -> None:
        out.print(Text.assemble(("Held back: ", "yellow"), one_line(node.content, most=100)))
        out.print(dim("`ricordo quarantine` says why, and lets it in."))

    return Answer(data=node, show=show)


async def _replaced(memory: Memory, node: Node) -> str:
    """What a rule let a fresh fact replace, or ""."""
    if node.type == "episodic" or node.reinforced_at is not None:
        return ""
    earlier = [version for version in await memory.history(node.id) if version.node.id != node.id]
    return earlier[-1].content if earlier else ""


@verb("forget", panel=_PANEL)
async def forget(
    door: Door,
    id: MemoryId,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept in the log for ever.")] = None,
) -> Answer:
    """Take a memory out of every answer. It stays in the archive."""
    async with door.open() as memory:
        whole = await whole_id(memory, id)
        await memory.forget(whole, reason)
        node = await memory.get(whole)
    return Answer(
        data=node, show=lambda out: say(out, "Forgotten", node, then=f"`ricordo restore {node.id}` brings it back.")
    )


@verb("restore", panel=_PANEL)
async def restore(door: Door, id: MemoryId) -> Answer:
    """Bring back what was forgotten."""
    async with door.open() as memory:
        node = await memory.restore(await whole_id(memory, id))
        await door.settle(memory)
    return Answer(data=node, show=lambda out: say(out, "Restored", node))


def say(out: Console, verb: str, node: Node, *, then: str = "") -> None:
    out.print(Text.assemble((f"{verb}: ", "green"), one_line(node.content)))
    if then:
        out.print(dim(then))


@verb("end-session", panel=_PANEL)
async def end_session(door: Door, session: Annotated[str, typer.Argument(help="Its id.")]) -> Answer:
    """Mark a conversation as over."""
    async with door.open() as memory:
        await memory.end_session(session)
    return Answer(
        data={"session": session, "ended": True},
        show=lambda out: out.print(Text(f"The conversation {one_line(session)} is over.")),
    )


@verb("off-record", panel=_PANEL)
async def off_record(door: Door, session: SessionOption = None) -> Answer:
    """Store nothing, of one session or at all, until on-record."""
    async with door.open(makes=True) as memory:
        await memory.off_record(session)
    return _on_record_answer(session, is_on=False)


@verb("on-record", panel=_PANEL)
async def on_record(door: Door, session: SessionOption = None) -> Answer:
    """Take off-record back."""
    async with door.open(makes=True) as memory:
        await memory.on_record(session)
    return _on_record_answer(session, is_on=True)


def _on_record_answer(session: str | None, *, is_on: bool) -> Answer:
    what = f"The conversation {one_line(session)}" if session else "Everything"
    said = "is stored again." if is_on else "is off the record: nothing of it is stored until `ricordo on-record`."
    return Answer(data={"session": session, "on_record": is_on}, show=lambda out: out.print(Text(f"{what} {said}")))
