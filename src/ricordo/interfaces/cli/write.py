"""Commands that store: remember, add, end-session, off-record and on-record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import NotFoundError
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import (
    CommandContext,
    SessionOption,
    TagOption,
    command,
    flag,
    option,
    text_or_stdin,
)
from ricordo.interfaces.cli.terminal import Output, dim, one_line, safe, with_article
from ricordo.model import Category, Node, NodeType, Role

if TYPE_CHECKING:
    from ricordo.memory import Memory

PANEL = "Remember"

_OnlySession = Annotated[str | None, option(metavar="ID", help="Only this conversation. [default: all]")]


@command("remember", panel=PANEL)
async def remember(
    ctx: CommandContext,
    text: Annotated[str, typer.Argument(help="The fact, preference or instruction; - reads standard input.")],
    about: Annotated[
        list[str] | None, option(metavar="NAME", help="The person or thing it is about. Repeatable.")
    ] = None,
    tag: TagOption = None,
    type: Annotated[
        NodeType, option(metavar="TYPE", help="semantic (a fact), procedural (how to do something) or opinion.")
    ] = "semantic",
    category: Annotated[
        Category | None,
        option(metavar="NAME", help="preference, identity, event, task, ... [default: inferred from the text]"),
    ] = None,
    expires: Annotated[
        str | None, option(metavar="TIME", help="How long to keep it: 'for 2 weeks', 'until Friday', 2026-07-01.")
    ] = None,
    confidence: Annotated[float, option(metavar="0..1", help="How certain it is.")] = 1.0,
    valid_from: Annotated[str | None, option(metavar="TIME", help="Since when it is true. [default: now]")] = None,
    session: SessionOption = None,
    id: Annotated[str | None, option(metavar="ID", help="An id of your own. [default: a new id]")] = None,
    shared: Annotated[bool, flag("--shared", help="Share it with the group of --chat.")] = False,
) -> Output:
    """Store a fact, preference or instruction."""
    text = text_or_stdin(text)
    async with ctx.open(create=True) as memory:
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
        return await _stored(ctx, memory, node.id, given=text)


@command("add", panel=PANEL)
async def add(
    ctx: CommandContext,
    text: Annotated[str, typer.Argument(help="What was said; - reads standard input.")],
    role: Annotated[Role, option(metavar="ROLE", help="user, assistant, system or tool.")] = "user",
    speaker: Annotated[str | None, option(metavar="NAME", help="Who said it.")] = None,
    session: SessionOption = None,
    at: Annotated[str | None, option(metavar="TIME", help="When it was said. [default: now]")] = None,
    id: Annotated[
        str | None, option(metavar="ID", help="An id of your own; a repeated id is stored only once.")
    ] = None,
) -> Output:
    """Record one message of a conversation."""
    text = text_or_stdin(text)
    async with ctx.open(create=True) as memory:
        added = await memory.add(text, role=role, speaker=speaker, session=session, at=at, id=id)
        return await _stored(ctx, memory, added, given=text)


async def _stored(ctx: CommandContext, memory: Memory, node_id: str, *, given: str) -> Output:
    """Report what was stored: off the record it is nothing, and without credentials it is less than what was given."""
    try:
        node = await memory.get(node_id)
    except NotFoundError:
        return Output(
            data={"id": None, "kept": False},
            show=lambda out: out.print(
                "Not stored: the memory is off the record (`ricordo on-record` ends that), or it was erased before."
            ),
        )
    if node.closed_reason == "quarantined":
        return _quarantined(node)
    await ctx.settle(memory)
    replaced = await _replaced(memory, node)
    expires = nodes.expires(await memory.explain(node.id), ctx.zone) if node.type != "episodic" else ""
    is_repeated = node.reinforced_at is not None
    if not is_repeated and node.content.strip() != given.strip():
        ctx.notice("A credential was removed from the text. The setting `secrets` controls this.")

    def show(out: Console) -> None:
        done = f"Remembered as {with_article(node.category)}: " if node.category else "Recorded: "
        done = "Already known: " if is_repeated else done
        out.print(Text.assemble((done, "green"), one_line(node.content, most=100), (f"  {safe(node.id)}", "dim")))
        if expires:
            out.print(dim(f"Expires {expires}."))
        if replaced:
            out.print(dim(f"It replaces: {one_line(replaced, most=100)}  (`ricordo review` can reverse this)"))
        if node.type != "episodic":
            ctx.hint('To find it: ricordo search "..."')

    return Output(data=node, show=show)


def _quarantined(node: Node) -> Output:
    def show(out: Console) -> None:
        out.print(Text.assemble(("Held in quarantine: ", "yellow"), one_line(node.content, most=100)))
        out.print(dim("`ricordo quarantine` shows why, and approves it."))

    return Output(data=node, show=show)


async def _replaced(memory: Memory, node: Node) -> str:
    """Return the fact that a rule replaced by this one, or ""."""
    if node.type == "episodic" or node.reinforced_at is not None:
        return ""
    earlier = [version for version in await memory.history(node.id) if version.node.id != node.id]
    return earlier[-1].content if earlier else ""


@command("end-session", panel=PANEL)
async def end_session(
    ctx: CommandContext, session: Annotated[str, typer.Argument(help="The conversation's id.")]
) -> Output:
    """Mark a conversation as finished."""
    async with ctx.open() as memory:
        await memory.end_session(session)
    return Output(
        data={"session": session, "ended": True},
        show=lambda out: out.print(Text(f"Conversation {one_line(session)} is finished.")),
    )


@command("off-record", panel=PANEL)
async def off_record(ctx: CommandContext, session: _OnlySession = None) -> Output:
    """Store nothing from one conversation, or from any, until on-record."""
    async with ctx.open(create=True) as memory:
        await memory.off_record(session)
    return _record_status(session, is_on=False)


@command("on-record", panel=PANEL)
async def on_record(ctx: CommandContext, session: _OnlySession = None) -> Output:
    """Store conversations again after off-record."""
    async with ctx.open(create=True) as memory:
        await memory.on_record(session)
    return _record_status(session, is_on=True)


def _record_status(session: str | None, *, is_on: bool) -> Output:
    what = f"Conversation {one_line(session)}" if session else "Everything"
    status = "is stored again." if is_on else "is off the record: nothing is stored until `ricordo on-record`."
    return Output(data={"session": session, "on_record": is_on}, show=lambda out: out.print(Text(f"{what} {status}")))
