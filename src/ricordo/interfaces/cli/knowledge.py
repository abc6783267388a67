"""Commands about what was learnt: people and things, conversations that become knowledge, and the runs that did it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.clock import handle_of
from ricordo.errors import InvalidError, UnavailableError
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, minute, one_line, safe, table
from ricordo.interfaces.cli.write import json_attributes, show_undone
from ricordo.interfaces.serialize import match_end, resolve_id
from ricordo.model import BY_RULE, Entity, EntityType, Profile, Relation, Run, RunItem
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

_MAX_RUNS = 1_000


# people and things


@command()
async def people(ctx: CommandContext, memory: Memory, limit: int = 100) -> Output:
    """List known people, the most often mentioned first."""
    known = await memory.people(limit=limit)
    return Output(data={"people": known}, show=lambda out: _show_list(out, known))


@command()
async def entity(ctx: CommandContext, memory: Memory, name: str, limit: int = 10) -> Output:
    """Show what is known about a person or thing."""
    profile = await memory.entity(name, limit=limit)
    return Output(data=profile, show=lambda out: _show_profile(out, profile, zone=ctx.zone))


@command(create=True)
async def entity_add(
    ctx: CommandContext,
    memory: Memory,
    name: str,
    type: EntityType = "person",
    alias: list[str] | None = None,
    relation: str | None = None,
    protected: bool = False,
) -> Output:
    """Add a person or thing by name, so that memories that name it are linked to it."""
    added = await memory.add_entity(name, type=type, aliases=alias or (), relation=relation, protected=protected)
    await ctx.settle(memory)
    return Output(data=added, show=lambda out: _show_done(out, "Added", _on_one_line(added)))


@command()
async def entity_update(
    ctx: CommandContext,
    memory: Memory,
    name: str,
    type: EntityType | None = None,
    alias: list[str] | None = None,
    attributes: str | None = None,
    protected: bool | None = None,
) -> Output:
    """Change what is known of a person or thing: its type, further names, attributes."""
    altered = await memory.update_entity(
        name, type=type, aliases=alias or (), attributes=json_attributes(attributes), protected=protected
    )
    await ctx.settle(memory)
    return Output(data=altered, show=lambda out: _show_done(out, "Updated", _on_one_line(altered)))


@command()
async def relate(
    ctx: CommandContext,
    memory: Memory,
    target: str,
    predicate: str,
    source: str | None = None,
    valid_from: str | None = None,
    valid_until: str | None = None,
    evidence: list[str] | None = None,
) -> Output:
    """Record what someone is to you, or to another person; --valid-until ends it."""
    sources = [await resolve_id(memory, each) for each in evidence or ()]
    await memory.relate(
        target, predicate, source=source, valid_from=valid_from, valid_until=valid_until, evidence=sources
    )
    profile = await memory.entity(target)
    await ctx.settle(memory)
    return Output(data=profile, show=lambda out: _show_profile(out, profile, zone=ctx.zone))


@command()
async def merge(ctx: CommandContext, memory: Memory, keep: str, other: str) -> Output:
    """Merge two entries that are the same person or thing."""
    merged = await memory.merge(keep, other)
    then = f"`ricordo split` separates {one_line(other)} again."
    return Output(data=merged, show=lambda out: _show_done(out, "Merged", _on_one_line(merged), then=then))


@command()
async def split(ctx: CommandContext, memory: Memory, name: str, names: list[str]) -> Output:
    """Split one entry that is really two people or things: the given names, and what names them, become the other."""
    kept, other = await memory.split(name, names)
    await ctx.settle(memory)
    both = f"{_on_one_line(kept)} and {_on_one_line(other)}"
    return Output(data={"kept": kept, "other": other}, show=lambda out: _show_done(out, "Split", both))


def _show_done(out: Console, what: str, text: str, *, then: str = "") -> None:
    out.print(Text.assemble((f"{what}: ", "green"), one_line(text)))
    if then:
        out.print(dim(then))


def _on_one_line(entity: Entity) -> str:
    also = f" (also {', '.join(entity.aliases)})" if entity.aliases else ""
    return f"{entity.name}, {entity.relation or entity.type}{also}"


def _show_list(out: Console, people: Sequence[Entity]) -> None:
    if not people:
        out.print("No people are known yet; `ricordo entity-add NAME` adds one.")
        return
    lines = table("name", "is your", "mentioned", "also called")
    for person in people:
        also = Text(one_line(", ".join(person.aliases)))
        name, relation = Text(one_line(person.name, most=30)), Text(one_line(person.relation or "", most=20))
        lines.add_row(name, relation, f"{person.mention_count:,}", also)
    out.print(lines)


def _show_profile(out: Console, profile: Profile, *, zone: ZoneInfo) -> None:
    """Print everything about one entity; what is empty is omitted."""
    out.print(Text(safe(profile.name), style="bold"))
    out.print()
    rows = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for label, value in _rows(profile, zone):
        if value:
            rows.add_row(dim(label), Text(one_line(value)))
    out.print(rows)
    for title, memories in (("Known about it", profile.facts), ("Mentioned in", profile.mentions)):
        if memories:
            out.print(Text(f"\n{title}", style="bold"))
            lines = table("when", "memory")
            for node in memories:
                lines.add_row(minute(node.event_time, zone), nodes.with_speaker(node))
            out.print(lines)


def _rows(profile: Profile, zone: ZoneInfo) -> list[tuple[str, str]]:
    others = [relation for relation in profile.relations if relation.source is not None]
    own = [f"{each.predicate}{_period(each, zone)}" for each in profile.relations if each.source is None]
    return [
        ("is", ", ".join(part for part in (profile.type, "protected" if profile.protected else "") if part)),
        ("your", ", ".join(own)),
        ("also called", ", ".join(profile.aliases)),
        ("relations", "; ".join(_relation(each, zone) for each in others)),
        ("summary", profile.summary or ""),
        ("attributes", json.dumps(dict(profile.attributes), ensure_ascii=False) if profile.attributes else ""),
        ("mentioned", "once" if profile.mention_count == 1 else f"{profile.mention_count:,} times"),
        ("first", minute(profile.first_seen, zone)),
        ("last", minute(profile.last_seen, zone)),
        ("often with", ", ".join(f"{each.name} ({each.together})" for each in profile.related)),
        ("id", profile.id),
    ]


def _relation(relation: Relation, zone: ZoneInfo) -> str:
    return f"{relation.target_name} is the {relation.predicate} of {relation.source_name}{_period(relation, zone)}"


def _period(relation: Relation, zone: ZoneInfo) -> str:
    start, end = (minute(at, zone)[:10] for at in (relation.valid_from, relation.valid_until))
    return f" ({start}–{end})" if start or end else ""


# conversations


@command()
async def sessions(ctx: CommandContext, memory: Memory, limit: int = 20) -> Output:
    """List conversations, the latest first, with their summaries."""
    found = await memory.sessions(limit)

    def show(out: Console) -> None:
        if not found:
            out.print("There are no conversations yet.")
            return
        lines = table("session", "last message", "messages", "summary")
        for each in found:
            when, what = minute(each.last_at, ctx.zone), one_line(each.summary or "", most=120)
            lines.add_row(safe(each.id), when, f"{each.messages:,}", Text(what))
        out.print(lines)

    return Output(data={"sessions": found}, show=show)


@command()
async def session(ctx: CommandContext, memory: Memory, id: str) -> Output:
    """Read a conversation: its summary, and its messages in order."""
    found = await memory.session(id)

    def show(out: Console) -> None:
        out.print(Text(one_line(found.summary or "There is no summary yet.", most=2_000), style="bold"))
        for turn in found.turns:
            who = turn.speaker or ("you" if turn.role == "user" else turn.role or "")
            out.print(Text(f"{minute(turn.event_time, ctx.zone)}  {who}: {one_line(turn.content, most=2_000)}"))

    return Output(data=found, show=show)


# conversations become knowledge


@command(with_model=True)
async def consolidate(ctx: CommandContext, memory: Memory, session: str | None = None, dry_run: bool = False) -> Output:
    """Turn finished conversations into knowledge, with a language model or, without one, by rules."""
    with ctx.status("Asking the model…"):
        run = await memory.consolidate(session, dry_run=dry_run)
    if not dry_run:
        await ctx.settle(memory)
    waiting = 0 if run.items else (await memory.stats()).sessions_waiting
    nothing = "No conversation is waiting."
    if waiting:
        what = "A language model has to read them" if ctx.model is None else "`ricordo review` shows why"
        nothing = f"Nothing was learnt; {plural(waiting, 'conversation waits', 'conversations wait')}. {what}."
    return _run_output(run, nothing=nothing, shows_cost=any(i.what != "left" for i in run.items))


@command(with_model=True, must_exist=True)
async def extract(ctx: CommandContext, memory: Memory, session: str | None = None, dry_run: bool = False) -> Output:
    """Store what is new and worth knowing in conversations that are still going on."""
    return await _conclude(ctx, memory, memory.extract(session, dry_run=dry_run), "Nothing new is worth storing.")


@command(with_model=True)
async def summarise(ctx: CommandContext, memory: Memory, session: str) -> Output:
    """Summarise a conversation with a language model."""
    with ctx.status("Asking the model…"):
        text = await memory.summarise(session)
    return Output(
        data={"session": session, "summary": text}, show=lambda out: out.print(Text(one_line(text, most=2_000)))
    )


@command(with_model=True, must_exist=True)
async def reflect(
    ctx: CommandContext, memory: Memory, after: str = "7 days ago", before: str | None = None, dry_run: bool = False
) -> Output:
    """Store what several memories of a period show together."""
    work = memory.reflect(after=after, before=before, dry_run=dry_run)
    return await _conclude(ctx, memory, work, "There is nothing new to reflect on.")


@command(with_model=True, must_exist=True)
async def enrich(ctx: CommandContext, memory: Memory, dry_run: bool = False) -> Output:
    """Summarise people and things that are mentioned often and have no summary yet."""
    return await _conclude(ctx, memory, memory.enrich(dry_run=dry_run), "No summary is missing.")


@command(with_model=True, must_exist=True)
async def infer_causes(ctx: CommandContext, memory: Memory, dry_run: bool = False) -> Output:
    """Find causes and effects that someone stated."""
    return await _conclude(ctx, memory, memory.infer_causes(dry_run=dry_run), "No new cause is stated anywhere.")


async def _conclude(ctx: CommandContext, memory: Memory, work: Awaitable[Run], nothing: str) -> Output:
    with ctx.status("Asking the model…"):
        run = await work
    if run.state == "done":
        await ctx.settle(memory)
    return _run_output(run, nothing=nothing, shows_cost=run.state in ("done", "dry"))


def _run_output(run: Run, *, nothing: str, shows_cost: bool) -> Output:
    def show(out: Console) -> None:
        if not run.items:
            out.print(nothing)
            return
        show_items(out, run.items)
        if shows_cost:
            out.print(dim(cost(run)))
            if run.state == "done":
                out.print(dim(f"`ricordo run undo {handle_of(run.id)}` reverses this."))
            elif run.state == "dry":
                out.print(dim("This was a dry run: nothing was changed."))

    return Output(data=run, show=show, exit_status=UnavailableError.exit_status if run.state == "failed" else 0)


# runs


@command()
async def runs(ctx: CommandContext, memory: Memory, limit: int = 20) -> Output:
    """List the runs that turned conversations into knowledge or drew conclusions, the latest first."""
    found = await memory.runs(limit)

    def show(out: Console) -> None:
        if not found:
            out.print("There are no runs yet.")
            return
        lines = table("run", "when", "tokens", "model", "what")
        for run in found:
            lines.add_row(
                handle_of(run.id),
                minute(run.started_at, ctx.zone),
                f"{run.tokens_in + run.tokens_out:,}",
                Text(one_line(run.model, most=30)),
                Text(_totals(run)),
            )
        out.print(lines)

    return Output(data={"runs": found}, show=show)


def _totals(run: Run) -> str:
    kinds = dict.fromkeys(item.what for item in run.items if item.what != "looked")
    totals = ", ".join(f"{sum(item.what == kind for item in run.items)} {kind}" for kind in kinds)
    names = one_line(", ".join(run.sessions), most=60) or run.kind
    ended = {"done": totals or "nothing", "failed": f"failed: {run.reason}", "dry": "dry run"}
    return f"{names}: {ended.get(run.state, run.state)}"


@command()
async def run(ctx: CommandContext, action: str, id: str, item: list[int] | None = None) -> Output:
    """Show or undo a run; replay it with the model given, and accept the result."""
    if action not in _ACTIONS and action != "accept":
        raise InvalidError(f"action: {action!r} is unknown", hint=f"choose one of {', '.join(_ACTIONS)}, accept")
    if item and action != "accept":
        raise InvalidError("--item is only for `run accept`", hint="leave it out")
    async with ctx.open(with_model=action == "replay") as memory:
        if action == "accept":
            return await _accept(ctx, memory, id, item)
        # An id that is not listed is passed on, for the memory to refuse.
        listed = (each.id for each in await memory.runs(_MAX_RUNS))
        return await _ACTIONS[action](ctx, memory, match_end(id, listed, kind="run") or id)


async def _show(ctx: CommandContext, memory: Memory, id: str) -> Output:
    found = await memory.run(id)

    def show(out: Console) -> None:
        out.print(Text(f"{minute(found.started_at, ctx.zone)}  {', '.join(found.sessions)}", style="bold"))
        show_items(out, found.items)
        out.print(dim(cost(found)))

    return Output(data=found, show=show)


async def _undo(ctx: CommandContext, memory: Memory, id: str) -> Output:
    kind = next((each.kind for each in await memory.runs(_MAX_RUNS) if each.id == id), None)
    commit = await memory.undo(id)
    await ctx.settle(memory)
    reads_conversations = kind in ("consolidation", "extraction", None)
    then = "its conversations wait again." if reads_conversations else "the earlier knowledge is back."
    return Output(data=commit, show=lambda out: show_undone(out, f"run {handle_of(id)}; {then}", commit))


async def _replay(ctx: CommandContext, memory: Memory, id: str) -> Output:
    with ctx.status("Asking the model…"):
        found = await memory.replay(id)

    def show(out: Console) -> None:
        show_items(out, found.items, numbered=True)
        out.print(dim(cost(found)))
        accept = f"`ricordo run accept {handle_of(found.id)}` applies it, with `--item N` a part of it."
        out.print(dim(f"Nothing was changed. {accept}"))

    return Output(data=found, show=show)


async def _accept(ctx: CommandContext, memory: Memory, id: str, numbers: list[int] | None) -> Output:
    done = await memory.accept(id, numbers or None)
    await ctx.settle(memory)

    def show(out: Console) -> None:
        if not done.items:
            out.print("There was nothing left to accept.")
            return
        show_items(out, done.items)
        out.print(dim(f"`ricordo run undo {handle_of(done.id)}` reverses this."))

    return Output(data=done, show=show)


_ACTIONS = {"show": _show, "diff": _show, "undo": _undo, "replay": _replay}


@command()
async def spending(ctx: CommandContext, memory: Memory, days: int = 30, all_owners: bool = False) -> Output:
    """List what language models used by day and model, failed and undone runs included."""
    found = await memory.spending(days, all_owners=all_owners)

    def show(out: Console) -> None:
        if not found:
            out.print("No language model was asked.")
            return
        lines = table("day", "owner", "model", "runs", "calls", "tokens in", "tokens out", "cost")
        for use in found:
            paid = "" if use.cost is None else f"{use.cost:.4f}"
            numbers = (f"{each:,}" for each in (use.runs, use.calls, use.tokens_in, use.tokens_out))
            lines.add_row(use.day, safe(use.owner or use.chat), safe(use.model), *numbers, paid)
        out.print(lines)

    return Output(data={"spending": found}, show=show)


# a run as people see it

_MARKS = {
    "added": ("+", "green"),
    "repeated": ("=", "dim"),
    "replaced": ("-", "red"),
    "held": ("?", "yellow"),
    "in doubt": ("?", "yellow"),
    "entity": ("@", "cyan"),
    "relation": ("@", "cyan"),
    "cause": (">", "cyan"),
    "summary": ("#", "dim"),
    "missing": ("-", "yellow"),
    "refused": ("x", "dim"),
    "failed": ("!", "bold red"),
    "left": ("~", "yellow"),
    "kept": ("=", "yellow"),
    "looked": ("·", "dim"),
}


def show_items(out: Console, items: Sequence[RunItem], *, numbered: bool = False) -> None:
    """Print a readable diff: what was added, replaced and refused; with numbers if some of it can be chosen."""
    lines = Table.grid(padding=(0, 1))
    for number, item in sorted(enumerate(items, start=1), key=lambda each: each[1].what == "refused"):
        mark, style = _MARKS[item.what]
        why = f"  {one_line(item.reason, most=160)}" if item.reason else ""
        text = one_line(item.text, most=200) or item.what
        which = (dim(str(number)),) if numbered else ()
        content = Text.assemble((text, style if style != "dim" else ""), (why, "dim"))
        lines.add_row(*which, Text(mark, style=style), content)
    out.print(lines)


def cost(run: Run) -> str:
    """Return which model made a run, and the tokens it took."""
    if run.model == BY_RULE:
        return "Stored by rules, without a language model; the conversations still wait for one."
    paid = "" if run.cost is None else f", {run.cost:.4f}"
    read = f"{plural(len(run.sessions), 'conversation')}, " if run.sessions else ""
    return f"{read}{run.model}, {run.tokens_in:,} tokens in and {run.tokens_out:,} out{paid}, prompts {run.prompt}"
