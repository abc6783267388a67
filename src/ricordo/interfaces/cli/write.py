"""Commands that store, correct and remove memories, and that resolve reviews and quarantine."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click
from rich.console import Console
from rich.text import Text

from ricordo.clock import handle_of, shortens, with_handles
from ricordo.consolidation.reviews import REFUSED
from ricordo.encoding.facts import OFF_RECORD, REMOVED, check_is_told
from ricordo.encoding.validation import removal_notice
from ricordo.errors import InvalidError, NotFoundError, RicordoError
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import CommandContext, command, view
from ricordo.interfaces.cli.terminal import (
    Output,
    dim,
    meant,
    one_line,
    progress_bar,
    safe,
    short_id,
    table,
    with_article,
)
from ricordo.interfaces.serialize import CLOSED_WHOLE, HELD_NOTICE, consequences, resolve_review_id
from ricordo.model import BulkReport, Decision, ErasureReport, MemberRole, Node, Outdated, Review, Space, Trust
from ricordo.text.sentences import has_parts, plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

_MAX_REVIEWS = 1_000
_SHOWN_IDS = 4


@command
async def remember(ctx: CommandContext, memory: Memory, content: str, **given: Any) -> Output:
    if given.get("type", "semantic") == "semantic":
        check_is_told(content)
    node = await memory.remember(content, origin="cli", **given)
    return await _stored(ctx, memory, node.id, given=content, outdates=node.outdates, notice=node.notice)


@command
async def add(ctx: CommandContext, memory: Memory, text: str, **given: Any) -> Output:
    return await _stored(ctx, memory, await memory.add(text, **given), given=text)


async def _stored(
    ctx: CommandContext,
    memory: Memory,
    node_id: str,
    *,
    given: str,
    outdates: tuple[Outdated, ...] = (),
    notice: str = "",
) -> Output:
    """Report what was stored: nothing if off the record or erased before; without credentials, less than was given."""
    try:
        node = await memory.get(node_id)
    except NotFoundError:
        return Output(
            data={"id": None, "kept": False},
            show=lambda out: out.print(f"Not stored: {notice or f'{OFF_RECORD}, or {REMOVED}'}."),
        )
    if node.closed_reason == "quarantined":
        return Output(data=replace(node, notice=notice), show=lambda out: _show_quarantined(out, node, notice))
    notice = notice or removal_notice(given, node.content)
    if notice:  # before a long text is embedded
        ctx.notice(notice)
    await ctx.settle(memory)
    node = replace(node, outdates=outdates, notice=notice)
    expires = nodes.expires(await memory.explain(node.id), ctx.zone) if node.type != "episodic" else ""
    is_repeated = node.reinforced_at is not None

    def show(out: Console) -> None:
        done = f"Remembered as {with_article(node.category)}: " if node.category else "Recorded: "
        done = "Already known: " if is_repeated else done
        out.print(Text.assemble((done, "green"), one_line(node.content, most=100), "  ", short_id(node.id)))
        if expires:
            out.print(dim(f"Expires {expires}."))
        for older in outdates:
            out.print(dim(_outdated(ctx, older)))
        if node.category == "task":
            ctx.tip(f"When it is done: ricordo update {short_id(node.id)} --done")
        elif node.type != "episodic":
            ctx.tip('To find it: ricordo search "..."')

    return Output(data=node, show=show)


def _outdated(ctx: CommandContext, older: Outdated) -> str:
    said = one_line(older.content, most=100)
    if older.space is not None:
        place = one_line(older.space)
        where = place or "your own memory"
        forget = ctx.command(f"forget {short_id(older.id)}", chat=place)
        return f"It may make out of date, in {where}: {said}  ({forget} ends it)"
    done, asks = ("replaces", "can reverse this") if older.is_closed else ("may make out of date", "asks about it")
    return f"It {done}: {said}  ({ctx.command('review')} {asks})"


def _show_quarantined(out: Console, node: Node, notice: str = "") -> None:
    if notice == REFUSED:
        out.print(Text.assemble(("Not stored: ", "yellow"), one_line(node.content, most=100)))
        out.print(dim(notice))
        return
    out.print(Text.assemble(("Held in quarantine: ", "yellow"), one_line(node.content, most=100)))
    out.print(dim(f"`ricordo quarantine show {short_id(node.id)}` shows why; `approve` in place of `show` stores it."))


@command
async def end_session(ctx: CommandContext, memory: Memory, session: str) -> dict[str, Any]:
    await memory.end_session(session)
    return {"session": session, "ended": True}


@command
async def off_record(ctx: CommandContext, memory: Memory, session: str | None = None) -> Output:
    await memory.off_record(session)
    chat = memory.scope.chat or ""
    what, ends = _what(chat, session or "")
    return Output(
        data={"chat": chat or None, "session": session, "on_record": False},
        show=lambda out: out.print(f"{what} is off the record: nothing is stored until `{ends}`.", soft_wrap=True),
    )


@command
async def on_record(ctx: CommandContext, memory: Memory, session: str | None = None) -> Output:
    left = await memory.on_record(session)
    chat = memory.scope.chat or ""

    def show(out: Console) -> None:
        if not any(each.chat in ("", chat) and each.session in ("", session) for each in left):
            out.print(f"{_what(chat, session or '')[0]} is on the record again.", soft_wrap=True)
        for pause in left:
            what, ends = _what(pause.chat, pause.session)
            what = f"{what[:1].lower()}{what[1:]}".rstrip(",")
            out.print(f"Still off the record: {what}. `{ends}` ends that.", soft_wrap=True)

    return Output(data={"chat": chat or None, "session": session, "on_record": True, "paused": left}, show=show)


def _what(chat: str, session: str) -> tuple[str, str]:
    """Return what is off the record, and the command that ends that."""
    what = f"What you say in {safe(chat)}" if chat else "Everything you say, in every chat and project,"
    if session:
        what = f"What you say in session {safe(session)}" + (f" of {safe(chat)}" if chat else "")
    chosen = f" --chat {shlex.quote(safe(chat))}" if chat else ""
    only = f" --session {shlex.quote(safe(session))}" if session else ""
    return what, f"ricordo{chosen} on-record{only}"


@command
async def spaces(ctx: CommandContext, memory: Memory) -> list[dict[str, Any]]:
    found = await memory.spaces()
    return [
        {
            "name": each.name,
            "role": each.role,
            "members": list(each.members),
            "in_it": ", ".join(f"{one.owner} ({one.role})" for one in each.members),
        }
        for each in found
    ]


@command
async def space_create(ctx: CommandContext, memory: Memory, name: str, members: Sequence[str] = ()) -> Space:
    made = await memory.create_space(name, members=members)
    await _note_unknown(ctx, memory, name, [each.owner for each in made.members])
    if ctx.owner == "me":
        ctx.notice('The others cannot tell what "me" said. Use --owner NAME, here and later, to write as yourself.')
    return made


@command
async def space_member(ctx: CommandContext, memory: Memory, space: str, member: str, role: MemberRole) -> Space:
    changed = await memory.set_member(space, member, role)
    await _note_unknown(ctx, memory, space, [member])
    return changed


async def _note_unknown(ctx: CommandContext, memory: Memory, space: str, names: Sequence[str]) -> None:
    """Say which owners have neither memories nor a token, and how to give them one: their names may be mistyped."""
    from ricordo.interfaces.http.tokens import Tokens, tokens_file

    known = {each.owner for each in await memory.store_view.owners()} | {ctx.owner}
    with suppress(RicordoError):
        known |= {each.owner for each in Tokens(tokens_file(ctx.location)).all()}
    new = [name for name in dict.fromkeys(names) if name not in known]
    if new:
        asked = "".join(meant(name, known) for name in new)
        command = f"ricordo token add NAME --owner {shlex.quote(new[0])} --chat {shlex.quote(space)}"
        ctx.notice(f"No memory and no token yet: {', '.join(new)}. To give a token: `{command}`.{asked}")


@command
async def space_leave(ctx: CommandContext, memory: Memory, space: str, member: str | None = None) -> dict[str, Any]:
    await memory.remove_member(space, member)
    return {"space": space, "left": member or memory.scope.owner}


# change and forget


@command
async def update(
    ctx: CommandContext,
    memory: Memory,
    tags: list[str] | None = None,
    done: bool = False,
    open: bool = False,
    shared: bool = False,
    private: bool = False,
    **given: Any,
) -> Node | Output:
    for flags, are_given in (("--shared and --private", shared and private), ("--done and --open", done and open)):
        if are_given:
            raise InvalidError(f"{flags} exclude each other", hint="give one of them")
    if done or open:
        given["done"] = done
    if shared or private:
        node = await memory.update(tags=tags, shared=shared, **given)
        if node.closed_reason == "quarantined":
            return Output(data=node, show=lambda out: _show_quarantined(out, node))
        told = f"Shared with {safe(ctx.chat or '')}: " if shared else "Private: "
        shown = Text.assemble((told, "green"), one_line(node.content), "  ", short_id(node.id))
        return Output(data=node, show=lambda out: out.print(shown))
    return await memory.update(tags=[] if tags == [""] else tags, **given)


@command
async def forget(ctx: CommandContext, memory: Memory, id: str, reason: str | None = None) -> Node:
    try:
        await memory.get(id)
    except NotFoundError as error:
        raise NotFoundError(error.message, hint="`ricordo document-remove` removes a document") from None
    return await memory.forget(id, reason)


@command
async def forget_where(ctx: CommandContext, memory: Memory, dry_run: bool, yes: bool, **given: Any) -> Output:
    return await _in_bulk(ctx, partial(memory.forget_where, **given), "forgotten", dry_run=dry_run, yes=yes)


@command
async def update_where(ctx: CommandContext, memory: Memory, dry_run: bool, yes: bool, **given: Any) -> Output:
    return await _in_bulk(ctx, partial(memory.update_where, **given), "updated", dry_run=dry_run, yes=yes)


async def _in_bulk(
    ctx: CommandContext, change: Callable[..., Awaitable[BulkReport]], done: str, *, dry_run: bool, yes: bool
) -> Output:
    """Show what would change, ask for confirmation, and change at most that many memories."""
    bound: dict[str, int] = {}
    if dry_run or not yes:
        report = await change(dry_run=True)
        if dry_run or not report.count:
            return Output(data=report, show=lambda out: _print_bulk(ctx, out, report, done))
        if not ctx.can_ask:
            raise InvalidError(
                f"{report.count:,} memories would be {done}: this needs a confirmation", hint="use --yes, or --dry-run"
            )
        _print_bulk(ctx, ctx.err, report, done)
        if not click.confirm("Do it?", err=True):
            return Output(data=report, show=lambda out: out.print("Nothing was changed."), exit_status=1)
        bound = {"expect": report.count}
    with progress_bar(ctx.err, "Reading") as progress:
        report = await change(progress=progress, **bound)
    return Output(data=report, show=lambda out: _print_bulk(ctx, out, report, done))


def _print_bulk(ctx: CommandContext, out: Console, report: BulkReport, done: str) -> None:
    would = "would be" if report.dry_run else "was" if report.count == 1 else "were"
    out.print(Text(f"{plural(report.count, 'memory', 'memories')} {would} {done}.", style="bold"))
    for node in report.sample if report.dry_run else ():
        out.print(Text(f"  {one_line(node.content, most=100)}"))
    if report.dry_run and report.count > len(report.sample):
        more = report.count - len(report.sample)
        out.print(dim(f"  and {more:,} more; `ricordo list` with the same conditions lists them all"))
    others = {
        "already as asked": report.unchanged,
        "kept, about a protected person or thing (--protected)": report.protected,
        "closed with them, reflections and summaries": report.concluded,
    }
    for what, count in others.items():
        if count:
            out.print(dim(f"{count:,} {what}"))
    if report.commit is not None:
        out.print(dim(f"{ctx.command(f'undo {report.commit}')} takes it back."))


# erase


@command
async def erase(
    ctx: CommandContext, memory: Memory, everything: bool, dry_run: bool, yes: bool, **given: Any
) -> Output:
    if everything + sum(value is not None for value in given.values()) != 1:
        choices = "an ID, --session, --document, --entity, --where, --writer or --everything"
        raise InvalidError("erase: exactly one target is required", hint=f"give {choices}")
    owner = memory.scope.owner if everything else None
    report, told = None, {}
    if dry_run or not yes:
        report = await memory.erase(owner=owner, dry_run=True, **given)
        told = await _told(memory, report)
    if not yes and not dry_run and not _confirms_erasure(ctx, report, told):
        data = {"erased": False}
        return Output(data=data, show=lambda out: out.print("Nothing was erased."), exit_status=1)
    if not dry_run:
        with progress_bar(ctx.err, "Erasing") as progress:
            report = await memory.erase(owner=owner, progress=progress, **given)
    return Output(data=report, show=lambda out: _print_erasure(out, report, told if dry_run else {}))


async def _told(memory: Memory, report: ErasureReport) -> dict[str, str]:
    """Return the first words of each memory that would be erased, by id."""
    ids = [id for each in report.erased for id in each.ids[:_SHOWN_IDS]]
    told: dict[str, str] = {}
    for id in ids:
        with suppress(NotFoundError):  # an entity or a session
            node = await memory.get(id)
            told[id] = HELD_NOTICE if node.closed_reason == "quarantined" else one_line(node.content, most=100)
    return told


def _confirms_erasure(ctx: CommandContext, report: ErasureReport | None, told: Mapping[str, str]) -> bool:
    """Return whether the person at the terminal agrees.

    Raises:
        InvalidError: Standard input is not a terminal, so no person can confirm.
    """
    if not ctx.can_ask:
        raise InvalidError("erase needs a confirmation", hint="use --yes, or --dry-run to see what would be erased")
    _print_erasure(ctx.err, report, told)
    return click.confirm("Erase this permanently?", err=True)


def _print_erasure(out: Console, report: ErasureReport | None, told: Mapping[str, str]) -> None:
    if report is None or not report.erased:
        out.print("There is nothing to erase.")
        return
    lines = table("what", "how many", "which")
    for each in report.erased:
        known = [id for id in each.ids if id in told]
        lines.add_row(each.kind, f"{each.count:,}", Text(told[known[0]]) if known else _id_list(each.ids, each.count))
        for id in known[1:]:
            lines.add_row("", "", Text(told[id]))
        if known and each.count > len(known):
            lines.add_row("", "", dim(f"and {each.count - len(known):,} more; --json lists up to 1,000"))
    named = "" if report.document is None else f" the document {safe(report.document)}"
    out.print(Text(f"{'Would be erased' if report.dry_run else 'Erased'}:{named}", style="bold"), soft_wrap=True)
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


@command
async def review(ctx: CommandContext, memory: Memory, limit: int) -> Output:
    found = await memory.review(limit)
    total = len(await memory.review(_MAX_REVIEWS)) if len(found) == limit else len(found)
    return Output(data={"reviews": found, "total": total}, show=lambda out: nodes.reviews(ctx, found, total=total))


@command
async def resolve(ctx: CommandContext, memory: Memory, item: str, decision: Decision) -> Review:
    return await memory.resolve(await resolve_review_id(memory, item), decision=decision)


@view("resolve")
def _show_decision(ctx: CommandContext, decided: Review) -> None:
    if decided.entities:
        keep, other = (one_line(each.name, most=60) for each in decided.entities)
        done = (
            f"Merged: {other} is now {keep}." if decided.decision == "approve" else f"Kept apart: {other} and {keep}."
        )
        _show_done(ctx, Text(done, "green"), [decided])
        return
    for node in sorted(filter(None, (decided.newer, decided.older)), key=lambda node: not node.is_live):
        done = "Refused: " if decided.decision == "refuse" else "Kept: " if node.is_live else "Closed: "
        ctx.out.print(Text.assemble((done, "green"), one_line(node.content)))
        if done == "Closed: " and has_parts(node.content):
            ctx.out.print(dim(CLOSED_WHOLE))
    for line in consequences(decided):
        ctx.out.print(dim(line))
    _show_done(ctx, None, [decided])


def _show_done(ctx: CommandContext, done: Text | None, decided: Sequence[Review]) -> None:
    """Print what was decided, and how to undo it. All decisions are of one change."""
    if done is not None:
        ctx.out.print(done)
    if decided and decided[0].commit is not None:
        ctx.out.print(dim(f"{ctx.command(f'undo {decided[0].commit}')} reverses this."))


# quarantine

_DECIDED = {"approve": "Approved; search finds it from now on", "refuse": "Refused; it stays out of every answer"}


@command
async def quarantine(
    ctx: CommandContext,
    memory: Memory,
    action: str,
    id: str | None = None,
    content: str | None = None,
    everything: bool = False,
    trust: Trust | None = None,
) -> Output:
    if action == "list":
        if id is not None:
            raise InvalidError("`quarantine list` takes no id", hint="use `ricordo quarantine show ID`")
        found = await memory.review(_MAX_REVIEWS, kind="quarantine")
        return Output(data={"reviews": found}, show=lambda out: _list_quarantine(ctx, found))
    if everything and id is None and action != "show":
        many = await memory.resolve_many(decision=cast("Decision", action), of_trust=trust)
        await ctx.settle(memory)
        told = Text(f"{_DECIDED[action].partition(';')[0]}: {len(many):,}.", "green")
        return Output(data={"reviews": many}, show=lambda out: _show_done(ctx, told, many))
    if id is None or everything:
        raise InvalidError(f"`quarantine {action}` needs an id", hint="`ricordo quarantine` lists the ids")
    held = await _held(memory, id)
    if action == "show":
        return Output(data=held, show=lambda out: _show_held(ctx, held))
    decided = await memory.resolve(held.id, decision=cast("Decision", action), content=content)
    await ctx.settle(memory)
    what, about = _DECIDED[action], decided.newer
    if action == "refuse" and held.older is not None:
        what, about = "Refused; it stays as it is", held.older
    elif about.closed_reason == "forgotten":
        what = "Approved; no answer contains it any more"
    done = Text.assemble((f"{what}: ", "green"), one_line(about.content))
    return Output(data=decided, show=lambda out: _show_done(ctx, done, [decided]))


def _list_quarantine(ctx: CommandContext, found: Sequence[Review]) -> None:
    if not found:
        ctx.out.print("The quarantine is empty.")
        return
    lines = table("id", "from", "by", "because of", "memory")
    for held in found:
        target = "" if held.older is None else f"  [{short_id(held.older.id).plain}]"
        because, *obstacles = nodes.reasons_of(held)
        row = short_id(held.newer.id), held.newer.origin, one_line(held.by, most=30), one_line(because, most=44)
        lines.add_row(*row, Text(one_line((held.older or held.newer).content)).append(target, "dim"))
        for told in (*nodes.changes_of(held), *obstacles):
            lines.add_row("", "", "", "", dim(one_line(told)))
    ctx.out.print(lines)
    ctx.tip("Look at one: ricordo quarantine show ID. Decide: approve ID, or refuse ID.")


async def _held(memory: Memory, given: str) -> Review:
    """Return the quarantine review with an id. Raises NotFoundError if there is none."""
    whole = await resolve_review_id(memory, given, kind="quarantine")
    for held in await memory.review(_MAX_REVIEWS, kind="quarantine"):
        if whole == held.id or shortens(given, held.newer.id):
            return held
    raise NotFoundError(f"nothing in quarantine has the id {given}", hint="`ricordo quarantine` lists the ids")


def _show_held(ctx: CommandContext, held: Review) -> None:
    ctx.out.print(Text(safe((held.older or held.newer).content)))
    for told in nodes.changes_of(held):
        ctx.out.print(Text(safe(told)))
    ctx.out.print()
    because = with_handles("\n".join(nodes.reasons_of(held)))
    ctx.out.print(ctx.labelled(held, {"source": nodes.origin_of(held.newer), "because": because}))
