"""Commands that store, correct and remove memories, and those that decide on reviews and quarantine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Literal, cast

import typer
from rich.console import Console
from rich.text import Text

from ricordo.clock import handle_of
from ricordo.errors import InvalidError, NotFoundError
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import (
    Output,
    dim,
    fields,
    minute,
    one_line,
    progress_bar,
    safe,
    short_id,
    table,
    with_article,
)
from ricordo.interfaces.serialize import match_end, resolve_id
from ricordo.model import Category, Commit, Decision, ErasureReport, Node, NodeType, Review, ReviewKind, Role

if TYPE_CHECKING:
    from ricordo.memory import Memory

_MAX_REVIEWS = 1_000
_SHOWN_IDS = 4


@command(create=True)
async def remember(
    ctx: CommandContext,
    memory: Memory,
    text: str,
    about: list[str] | None = None,
    tag: list[str] | None = None,
    type: NodeType = "semantic",
    category: Category | None = None,
    expires: str | None = None,
    confidence: float = 1.0,
    valid_from: str | None = None,
    session: str | None = None,
    id: str | None = None,
    shared: bool = False,
    keep_secrets: bool = False,
) -> Output:
    """Store a fact, preference or instruction."""
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
        keep_secrets=keep_secrets,
    )
    return await _stored(ctx, memory, node.id, given=text)


@command(create=True)
async def add(
    ctx: CommandContext,
    memory: Memory,
    text: str,
    role: Role = "user",
    speaker: str | None = None,
    session: str | None = None,
    at: str | None = None,
    id: str | None = None,
) -> Output:
    """Record one message of a conversation."""
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
        return Output(data=node, show=lambda out: _show_quarantined(out, node))
    await ctx.settle(memory)
    replaced = await _replaced(memory, node)
    doubted = [] if replaced else await _doubted(memory, node)
    expires = nodes.expires(await memory.explain(node.id), ctx.zone) if node.type != "episodic" else ""
    is_repeated = node.reinforced_at is not None
    if not is_repeated and node.content.strip() != given.strip():
        ctx.notice("A credential was removed from the text. `remember --keep-secrets` keeps one on purpose.")

    def show(out: Console) -> None:
        done = f"Remembered as {with_article(node.category)}: " if node.category else "Recorded: "
        done = "Already known: " if is_repeated else done
        out.print(Text.assemble((done, "green"), one_line(node.content, most=100), (f"  {safe(node.id)}", "dim")))
        if expires:
            out.print(dim(f"Expires {expires}."))
        if replaced:
            out.print(dim(f"It replaces: {one_line(replaced, most=100)}  (`ricordo review` can reverse this)"))
        for older in doubted:
            out.print(dim(f"It may make out of date: {one_line(older, most=100)}  (`ricordo review` asks about it)"))
        if node.type != "episodic":
            ctx.hint('To find it: ricordo search "..."')

    return Output(data=node, show=show)


def _show_quarantined(out: Console, node: Node) -> None:
    out.print(Text.assemble(("Held in quarantine: ", "yellow"), one_line(node.content, most=100)))
    out.print(dim("`ricordo quarantine` shows why, and approves it."))


async def _replaced(memory: Memory, node: Node) -> str:
    """Return the fact that a rule replaced by this one, or ""."""
    if node.type == "episodic" or node.reinforced_at is not None:
        return ""
    earlier = [version for version in await memory.history(node.id) if version.node.id != node.id]
    return earlier[-1].content if earlier else ""


async def _doubted(memory: Memory, node: Node) -> list[str]:
    """Return the facts that this one may make out of date and that stay until the user decides."""
    if node.type == "episodic" or node.reinforced_at is not None:
        return []
    pairs = (item for item in await memory.review(kind="conflict") if item.newer.id == node.id)
    return [item.older.content for item in pairs if item.older is not None]


@command()
async def end_session(ctx: CommandContext, memory: Memory, session: str) -> Output:
    """Mark a conversation as finished."""
    await memory.end_session(session)
    return Output(
        data={"session": session, "ended": True},
        show=lambda out: out.print(Text(f"Conversation {one_line(session)} is finished.")),
    )


@command(create=True)
async def off_record(ctx: CommandContext, memory: Memory, session: str | None = None) -> Output:
    """Store nothing from one conversation, or from any, until on-record."""
    await memory.off_record(session)
    return _record_status(session, is_on=False)


@command(create=True)
async def on_record(ctx: CommandContext, memory: Memory, session: str | None = None) -> Output:
    """Store conversations again after off-record."""
    await memory.on_record(session)
    return _record_status(session, is_on=True)


def _record_status(session: str | None, *, is_on: bool) -> Output:
    what = f"Conversation {one_line(session)}" if session else "Everything"
    status = "is stored again." if is_on else "is off the record: nothing is stored until `ricordo on-record`."
    return Output(data={"session": session, "on_record": is_on}, show=lambda out: out.print(Text(f"{what} {status}")))


def _done(verb: str, node: Node, *, then: str = "") -> Output:
    def show(out: Console) -> None:
        out.print(Text.assemble((f"{verb}: ", "green"), one_line(node.content)))
        if then:
            out.print(dim(then))

    return Output(data=node, show=show)


# correct


@command()
async def correct(ctx: CommandContext, memory: Memory, id: str, text: str, evidence: list[str] | None = None) -> Output:
    """Replace a memory that is wrong. The old version goes to the archive."""
    sources = [await resolve_id(memory, each) for each in evidence or ()]
    node = await memory.correct(await resolve_id(memory, id), text, origin="cli", evidence=sources)
    await ctx.settle(memory)
    return _done("Corrected", node, then=f"`ricordo history {handle_of(node.id)}` shows the old version.")


@command()
async def update(
    ctx: CommandContext,
    memory: Memory,
    id: str,
    content: str | None = None,
    tag: list[str] | None = None,
    attributes: str | None = None,
    expires: str | None = None,
) -> Output:
    """Change a memory in place."""
    tags = [] if tag == [""] else tag or None
    whole = await resolve_id(memory, id)
    node = await memory.update(
        whole, content=content, tags=tags, attributes=json_attributes(attributes), expires=expires
    )
    await ctx.settle(memory)
    return _done("Updated", node, then=f"`ricordo history {handle_of(node.id)}` shows the old version.")


def json_attributes(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        return cast("dict[str, Any]", json.loads(given))
    except ValueError as error:
        raise InvalidError(f"attributes: {error}", hint='give one JSON object, such as {"task_id": 7}') from error


@command()
async def confirm(ctx: CommandContext, memory: Memory, id: str) -> Output:
    """Confirm that a memory is right: it no longer fades."""
    node = await memory.confirm(await resolve_id(memory, id))
    return _done("Confirmed", node)


@command()
async def reinforce(ctx: CommandContext, memory: Memory, id: str) -> Output:
    """Mark a memory as useful: it ranks higher."""
    node = await memory.reinforce(await resolve_id(memory, id))
    return _done(f"Score {node.score:+g}", node)


@command()
async def demote(ctx: CommandContext, memory: Memory, id: str) -> Output:
    """Mark a memory as not useful: it ranks lower."""
    node = await memory.demote(await resolve_id(memory, id))
    return _done(f"Score {node.score:+g}", node)


# forget and undo


@command()
async def forget(ctx: CommandContext, memory: Memory, id: str, reason: str | None = None) -> Output:
    """Remove a memory from every answer. It stays in the archive."""
    whole = await resolve_id(memory, id)
    await memory.forget(whole, reason)
    node = await memory.get(whole)
    return _done("Forgotten", node, then=f"`ricordo restore {node.id}` brings it back.")


@command()
async def restore(ctx: CommandContext, memory: Memory, id: str) -> Output:
    """Bring back a forgotten or archived memory."""
    node = await memory.restore(await resolve_id(memory, id))
    await ctx.settle(memory)
    return _done("Restored", node)


@command()
async def undo(ctx: CommandContext, memory: Memory, change: str, with_later: bool = False) -> Output:
    """Undo a change. Undoing is a change itself, and can be undone."""
    commit = await memory.undo(change, with_later=with_later)
    await ctx.settle(memory)
    return Output(data=commit, show=lambda out: show_undone(out, f"change {change}", commit))


def show_undone(out: Console, what: str, commit: Commit) -> None:
    out.print(Text.assemble(("Undone: ", "green"), what))
    out.print(dim(f"`ricordo undo {commit.seq}` reverses this."))


# erase


@command(must_exist=True)
async def erase(
    ctx: CommandContext,
    memory: Memory,
    id: str | None = None,
    session: str | None = None,
    entity: str | None = None,
    everything: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> Output:
    """Delete permanently: no byte is left in the store. Cannot be undone."""
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


@command()
async def review(ctx: CommandContext, memory: Memory, limit: int = 20) -> Output:
    """List facts that may contradict each other, and memories in quarantine. Decide with resolve."""
    found = await memory.review(limit)

    def show(out: Console) -> None:
        nodes.reviews(out, found)
        if found:
            ctx.hint(
                "Decide: ricordo resolve ID replace, 'keep both' or 'keep old'; for quarantine, approve or refuse."
            )

    return Output(data={"reviews": found}, show=show)


@command()
async def resolve(ctx: CommandContext, memory: Memory, id: str, decision: str) -> Output:
    """Decide on an item that review lists."""
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


@command()
async def quarantine(
    ctx: CommandContext,
    memory: Memory,
    action: Literal["list", "show", "approve", "refuse"] = "list",
    id: str | None = None,
) -> Output:
    """List memories that are held back because of their source or their text; approve or refuse one."""
    if action == "list":
        if id is not None:
            raise InvalidError("`quarantine list` takes no id", hint="use `ricordo quarantine show ID`")
        return await _list_quarantine(ctx, memory)
    if id is None:
        raise InvalidError(f"`quarantine {action}` needs an id", hint="`ricordo quarantine` lists the ids")
    held = await _held(memory, id)
    if action == "show":
        return Output(data=held, show=lambda out: _show_held(out, held, ctx))
    decided = await memory.resolve(held.id, decision=cast("Decision", action))
    await ctx.settle(memory)
    done = Text.assemble((f"{_DECIDED[action]}: ", "green"), one_line(decided.newer.content))
    return Output(data=decided, show=lambda out: out.print(done))


async def _list_quarantine(ctx: CommandContext, memory: Memory) -> Output:
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
