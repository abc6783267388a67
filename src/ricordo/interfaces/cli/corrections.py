"""Commands that change or remove memories: correct, confirm, forget, erase, undo, reviews and quarantine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, NotFoundError
from ricordo.ids import handle_of
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import (
    CommandContext,
    MemoryId,
    PositiveLimit,
    YesOption,
    command,
    flag,
    option,
    text_or_stdin,
)
from ricordo.interfaces.cli.terminal import Output, dim, fields, minute, one_line, progress_bar, safe, short_id, table
from ricordo.interfaces.serialize import match_end, resolve_id
from ricordo.model import Commit, Decision, ErasureReport, Node, Review, ReviewKind

if TYPE_CHECKING:
    from ricordo.memory import Memory

PANEL = "Correct and forget"
_MAX_REVIEWS = 1_000
_SHOWN_IDS = 4


def _done(verb: str, node: Node, *, then: str = "") -> Output:
    def show(out: Console) -> None:
        out.print(Text.assemble((f"{verb}: ", "green"), one_line(node.content)))
        if then:
            out.print(dim(then))

    return Output(data=node, show=show)


# correct


@command("correct", panel=PANEL)
async def correct(
    ctx: CommandContext,
    id: MemoryId,
    text: Annotated[str, typer.Argument(help="The correct text; - reads standard input.")],
    evidence: Annotated[list[str] | None, option(metavar="ID", help="A memory that proves it. Repeatable.")] = None,
) -> Output:
    """Replace a memory that is wrong. The old version goes to the archive."""
    text = text_or_stdin(text)
    async with ctx.open() as memory:
        sources = [await resolve_id(memory, each) for each in evidence or ()]
        node = await memory.correct(await resolve_id(memory, id), text, origin="cli", evidence=sources)
        await ctx.settle(memory)
    return _done("Corrected", node, then=f"`ricordo history {handle_of(node.id)}` shows the old version.")


@command("update", panel=PANEL)
async def update(
    ctx: CommandContext,
    id: MemoryId,
    content: Annotated[str | None, option(metavar="TEXT", help="The new text; - reads standard input.")] = None,
    tag: Annotated[
        list[str] | None, option(metavar="TAG", help="A label that replaces the old ones. Repeatable; '' for none.")
    ] = None,
    attributes: Annotated[
        str | None, option(metavar="JSON", help="The attributes that replace the old ones: one JSON object.")
    ] = None,
) -> Output:
    """Change a memory in place."""
    text = None if content is None else text_or_stdin(content)
    tags = [] if tag == [""] else tag or None
    async with ctx.open() as memory:
        whole = await resolve_id(memory, id)
        node = await memory.update(whole, content=text, tags=tags, attributes=_attributes(attributes))
        await ctx.settle(memory)
    return _done("Updated", node, then=f"`ricordo history {handle_of(node.id)}` shows the old version.")


def _attributes(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        return cast("dict[str, Any]", json.loads(given))
    except ValueError as error:
        raise InvalidError(f"attributes: {error}", hint='give one JSON object, such as {"task_id": 7}') from error


@command("confirm", panel=PANEL)
async def confirm(ctx: CommandContext, id: MemoryId) -> Output:
    """Confirm that a memory is right: it no longer fades."""
    async with ctx.open() as memory:
        node = await memory.confirm(await resolve_id(memory, id))
    return _done("Confirmed", node)


@command("reinforce", panel=PANEL)
async def reinforce(ctx: CommandContext, id: MemoryId) -> Output:
    """Mark a memory as useful: it ranks higher."""
    async with ctx.open() as memory:
        node = await memory.reinforce(await resolve_id(memory, id))
    return _done(f"Score {node.score:+g}", node)


@command("demote", panel=PANEL)
async def demote(ctx: CommandContext, id: MemoryId) -> Output:
    """Mark a memory as not useful: it ranks lower."""
    async with ctx.open() as memory:
        node = await memory.demote(await resolve_id(memory, id))
    return _done(f"Score {node.score:+g}", node)


# forget and undo


@command("forget", panel=PANEL)
async def forget(
    ctx: CommandContext,
    id: MemoryId,
    reason: Annotated[str | None, option(metavar="TEXT", help="Why; the log keeps it for ever.")] = None,
) -> Output:
    """Remove a memory from every answer. It stays in the archive."""
    async with ctx.open() as memory:
        whole = await resolve_id(memory, id)
        await memory.forget(whole, reason)
        node = await memory.get(whole)
    return _done("Forgotten", node, then=f"`ricordo restore {node.id}` brings it back.")


@command("restore", panel=PANEL)
async def restore(ctx: CommandContext, id: MemoryId) -> Output:
    """Bring back a forgotten or archived memory."""
    async with ctx.open() as memory:
        node = await memory.restore(await resolve_id(memory, id))
        await ctx.settle(memory)
    return _done("Restored", node)


@command("undo", panel=PANEL)
async def undo(
    ctx: CommandContext,
    change: Annotated[
        str, typer.Argument(metavar="CHANGE", help="The number of a change in `ricordo log`, or the id of a run.")
    ],
    with_later: Annotated[bool, flag("--with-later", help="Also undo later changes that depend on it.")] = False,
) -> Output:
    """Undo a change. Undoing is a change itself, and can be undone."""
    async with ctx.open() as memory:
        commit = await memory.undo(change, with_later=with_later)
        await ctx.settle(memory)
    return Output(data=commit, show=lambda out: show_undone(out, f"change {change}", commit))


def show_undone(out: Console, what: str, commit: Commit) -> None:
    out.print(Text.assemble(("Undone: ", "green"), what))
    out.print(dim(f"`ricordo undo {commit.seq}` reverses this."))


# erase


@command("erase", panel=PANEL)
async def erase(
    ctx: CommandContext,
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The memory's id, or its last 8 characters.")] = None,
    session: Annotated[str | None, option(metavar="ID", help="A conversation, with everything learnt from it.")] = None,
    entity: Annotated[
        str | None, option(metavar="NAME", help="A person or thing, with everything that names it.")
    ] = None,
    everything: Annotated[bool, flag("--everything", help="The whole memory of the owner.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", help="Show what would be erased, and erase nothing.")] = False,
    yes: YesOption = False,
) -> Output:
    """Delete permanently: no byte is left in the store. Cannot be undone."""
    ctx.require_store()
    async with ctx.open() as memory:
        whole = None if id is None else await resolve_id(memory, id)
        owner = memory.scope.owner if everything else None
        if dry_run or not yes:
            report = await memory.erase(id=whole, session=session, entity=entity, owner=owner, dry_run=True)
            if dry_run:
                return Output(data=report, show=lambda out: _show_erasure(out, report))
            _confirm_erasure(ctx, report)
        with progress_bar(ctx.err, "Erasing") as progress:
            report = await memory.erase(id=whole, session=session, entity=entity, owner=owner, progress=progress)
    return Output(data=report, show=lambda out: _show_erasure(out, report))


def _confirm_erasure(ctx: CommandContext, report: ErasureReport) -> None:
    """Raises:
    InvalidError: Standard input is not a terminal, so that no one can confirm.
    typer.Abort: The answer is no.
    """
    if ctx.options.as_json or not (sys.stdin.isatty() and ctx.err.is_terminal):
        raise InvalidError("erase needs a confirmation", hint="use --yes, or --dry-run to see what would be erased")
    _show_erasure(ctx.err, report)
    typer.confirm("Erase this permanently?", abort=True, err=True)


def _show_erasure(out: Console, report: ErasureReport) -> None:
    if not report.erased:
        out.print("There is nothing to erase.")
        return
    lines = table("what", "how many", "which")
    for each in report.erased:
        lines.add_row(each.kind, f"{each.count:,}", _id_list(each.ids, each.count))
    out.print(Text("Would be erased:" if report.dry_run else "Erased:", style="bold"))
    out.print(lines)
    for kept in report.kept:
        out.print(Text.assemble(("Kept: ", "yellow"), f"{kept.count:,}, {kept.why}  ", _id_list(kept.ids, kept.count)))
    out.print(dim("Out of reach: " + "; ".join(map(safe, report.out_of_reach)) + "."))
    if not report.dry_run and report.is_done:
        out.print(Text("No byte of it is left in the store's files.", style="green"))
    elif not report.dry_run:
        out.print(Text("No answer contains it any more, but not all bytes are gone yet: see above.", style="yellow"))


def _id_list(ids: tuple[str, ...], count: int) -> Text:
    shown = [one_line(handle_of(each) if len(each) == 36 else each, most=30) for each in ids[:_SHOWN_IDS]]
    return dim(", ".join(shown) + (", …" if count > len(shown) and shown else ""))


# reviews


@command("review", panel=PANEL)
async def review(ctx: CommandContext, limit: PositiveLimit = 20) -> Output:
    """List facts that may contradict each other, and memories in quarantine. Decide with resolve."""
    async with ctx.open() as memory:
        found = await memory.review(limit)

    def show(out: Console) -> None:
        nodes.reviews(out, found)
        if found:
            ctx.hint(
                "Decide: ricordo resolve ID replace, 'keep both' or 'keep old'; for quarantine, approve or refuse."
            )

    return Output(data={"reviews": found}, show=show)


@command("resolve", panel=PANEL)
async def resolve(
    ctx: CommandContext,
    id: Annotated[str, typer.Argument(metavar="ID", help="The review's id, or its last 8 characters.")],
    decision: Annotated[
        str,
        typer.Argument(
            help="replace (closes the older), 'keep both' or 'keep old' (closes the newer); for quarantine, approve "
            "or refuse."
        ),
    ],
) -> Output:
    """Decide on an item that review lists."""
    async with ctx.open() as memory:
        decided = await memory.resolve(await _review_id(memory, id), decision=cast("Decision", decision))
        await ctx.settle(memory)
    return Output(data=decided, show=lambda out: _show_decision(out, decided))


async def _review_id(memory: Memory, given: str, *, kind: ReviewKind | None = None) -> str:
    """Return the whole id; one that is not listed is passed on, for the memory to refuse."""
    listed = await memory.review(_MAX_REVIEWS, kind=kind)
    return match_end(given, (each.id for each in listed)) or given


def _show_decision(out: Console, decided: Review) -> None:
    both = [node for node in (decided.newer, decided.older) if node is not None]
    kept = {"replace": both[:1], "keep old": both[1:], "refuse": []}.get(decided.decision or "", both)
    if not kept:
        out.print(Text.assemble(("Refused: ", "green"), one_line(decided.newer.content)))
    for node in kept:
        out.print(Text.assemble(("Kept: ", "green"), one_line(node.content)))


# quarantine

_DECIDED = {"approve": "Approved; search finds it from now on", "refuse": "Refused; it stays out of every answer"}


@command("quarantine", panel=PANEL)
async def quarantine(
    ctx: CommandContext,
    action: Annotated[
        Literal["list", "show", "approve", "refuse"], typer.Argument(help="list, show, approve or refuse.")
    ] = "list",
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The id to show or decide on, or its last 8 characters.")
    ] = None,
) -> Output:
    """List memories that are held back because of their source or their text; approve or refuse one."""
    if action == "list":
        if id is not None:
            raise InvalidError("id: list takes none", hint="ricordo quarantine show ID")
        return await _list_quarantine(ctx)
    if id is None:
        raise InvalidError(f"id: {action} needs one", hint="`ricordo quarantine` lists the ids")
    async with ctx.open() as memory:
        held = await _held(memory, id)
        if action == "show":
            return Output(data=held, show=lambda out: _show_held(out, held, ctx))
        decided = await memory.resolve(held.id, decision=cast("Decision", action))
        await ctx.settle(memory)
    done = Text.assemble((f"{_DECIDED[action]}: ", "green"), one_line(decided.newer.content))
    return Output(data=decided, show=lambda out: out.print(done))


async def _list_quarantine(ctx: CommandContext) -> Output:
    async with ctx.open() as memory:
        found = await memory.review(_MAX_REVIEWS, kind="quarantine")

    def show(out: Console) -> None:
        if not found:
            out.print("The quarantine is empty.")
            return
        lines = table("id", "from", "because of", "memory")
        for held in found:
            because = one_line(", ".join(held.reasons), most=44)
            lines.add_row(short_id(held.id), held.newer.origin, because, Text(one_line(held.newer.content)))
        out.print(lines)
        ctx.hint("Look at one: ricordo quarantine show ID. Decide: approve ID, or refuse ID.")

    return Output(data={"reviews": found}, show=show)


async def _held(memory: Memory, given: str) -> Review:
    """Raises:
    NotFoundError: Nothing in quarantine has this id.
    """
    whole = await _review_id(memory, given, kind="quarantine")
    for held in await memory.review(_MAX_REVIEWS, kind="quarantine"):
        if whole in (held.id, held.newer.id):
            return held
    raise NotFoundError(f"nothing in quarantine has the id {given}", hint="`ricordo quarantine` lists the ids")


def _show_held(out: Console, held: Review, ctx: CommandContext) -> None:
    out.print(Text(safe(held.newer.content)))
    out.print()
    rows = [
        ("id", held.id),
        ("memory", held.newer.id),
        ("origin", nodes.origin_of(held.newer)),
        ("held because of", ", ".join(held.reasons)),
        ("about", ", ".join(held.about)),
        ("tags", ", ".join(held.newer.tags)),
        ("since", minute(held.created_at, ctx.zone)),
    ]
    out.print(fields(rows))
