"""Commands for entities, for consolidating conversations into knowledge, and for runs of the language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.clock import handle_of
from ricordo.errors import InvalidError
from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import CommandContext, command, exit_status, view
from ricordo.interfaces.cli.terminal import Output, dim, minute, one_line, safe, table
from ricordo.interfaces.serialize import resolve_run_id
from ricordo.model import BY_RULE, GUESSED_TYPE, Conversation, Entity, Profile, Relation, Run, RunItem
from ricordo.text.names import relation_told
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

_MAX_RUNS = 1_000


# people and things


@command
async def relate(ctx: CommandContext, memory: Memory, target: str, predicate: str, **given: Any) -> Profile:
    await memory.relate(target, predicate, **given)
    return await memory.entity(target)


@command
async def split(ctx: CommandContext, memory: Memory, entity: str, names: list[str]) -> dict[str, Entity]:
    kept, other = await memory.split(entity, names)
    return {"kept": kept, "other": other}


@view("entity", "relate")
def _show_profile(ctx: CommandContext, profile: Profile) -> None:
    """Print everything about one entity, without empty fields."""
    ctx.out.print(Text(safe(profile.name), style="bold"))
    ctx.out.print()
    to_you = [each for each in profile.relations if each.source is None and each.target == profile.id]
    own = [f"{each.predicate}{_period(each, ctx.zone)}" for each in to_you]
    attributes = {name: value for name, value in profile.attributes.items() if name != GUESSED_TYPE}
    derived = {
        "guard": ", protected" if profile.protected else "",
        "own": own,
        "others": "; ".join(_relation(each, ctx.zone) for each in profile.relations if each not in to_you),
        "json": json.dumps(attributes, ensure_ascii=False) if attributes else "",
        "mentioned": "once" if profile.mention_count == 1 else f"{profile.mention_count:,} times",
        "often": [f"{each.name} ({each.together})" for each in profile.related],
    }
    ctx.out.print(ctx.labelled(profile, derived, of="entity"))
    left = profile.fact_count - len(profile.facts)
    of_all = f": {len(profile.facts):,} of {profile.fact_count:,}, with --limit N more" if left > 0 else ""
    for title, memories in ((f"Known about it{of_all}", profile.facts), ("Mentioned in", profile.mentions)):
        if memories:
            ctx.out.print(Text(f"\n{title}", style="bold"))
            lines = table("when", "memory")
            for node in memories:
                lines.add_row(minute(node.event_time, ctx.zone), nodes.with_speaker(node))
            ctx.out.print(lines)


def _relation(relation: Relation, zone: ZoneInfo) -> str:
    """Return a relation to somebody else than the owner, or one of the owner on the owner's own page."""
    if relation.source is None:
        told = f"{relation.target_name} (your {relation.predicate})"
    else:
        told = relation_told(relation.target_name, relation.predicate, relation.source_name or "")
    return f"{told}{_period(relation, zone)}"


def _period(relation: Relation, zone: ZoneInfo) -> str:
    start, end = (minute(at, zone)[:10] for at in (relation.valid_from, relation.valid_until))
    return f" ({start}–{end})" if start or end else ""


@view("session")
def _show_session(ctx: CommandContext, found: Conversation) -> None:
    if found.title:
        ctx.out.print(Text(one_line(found.title), style="bold"))
    ctx.out.print(Text(one_line(found.summary or "There is no summary yet.", most=2_000), style="bold"))
    for turn in found.turns:
        who = turn.speaker or ("you" if turn.role == "user" else turn.role or "")
        ctx.out.print(Text(f"{minute(turn.event_time, ctx.zone)}  {who}: {one_line(turn.content, most=2_000)}"))


# consolidation


@command
async def consolidate(ctx: CommandContext, memory: Memory, session: str | None = None, dry_run: bool = False) -> Output:
    run = await memory.consolidate(session, dry_run=dry_run)
    waiting = 0 if run.items else (await memory.stats()).sessions_waiting
    nothing = "No conversation is waiting."
    if waiting and ctx.model is None:
        nothing = f"Nothing new was learnt: the rules have read {plural(1 if session else waiting, 'conversation')}. "
        nothing += "A language model (`--model`) may learn more from them."
    elif waiting:
        nothing = f"Nothing was learnt; {plural(waiting, 'conversation waits', 'conversations wait')}. "
        nothing += "`ricordo review` shows why."
    is_new = any(item.what != "left" for item in run.items)
    return Output(
        data=run, show=lambda out: _print_run(ctx, out, run, nothing, shows_cost=is_new), exit_status=exit_status(run)
    )


@command
async def summarise(ctx: CommandContext, memory: Memory, session: str) -> dict[str, str]:
    return {"session": session, "summary": await memory.summarise(session)}


@view("extract", "reflect", "enrich", "infer-causes")
def _show_conclusions(ctx: CommandContext, run: Run) -> None:
    _print_run(ctx, ctx.out, run, ctx.spec["empty"], shows_cost=run.state in ("done", "dry"))


def _print_run(ctx: CommandContext, out: Console, run: Run, nothing: str, *, shows_cost: bool) -> None:
    if not run.items:
        out.print(nothing)
        return
    show_items(out, run.items)
    if shows_cost:
        out.print(dim(cost(run)))
        if run.state == "done":
            out.print(dim(f"{ctx.command(f'run undo {handle_of(run.id)}')} reverses this."))
        elif run.state == "dry":
            out.print(dim("This was a dry run: nothing was changed."))


# runs


@view("runs")
def _show_runs(ctx: CommandContext, found: Sequence[Run]) -> None:
    if not found:
        ctx.out.print("There are no runs yet.")
        return
    lines = table("run", "when", "tokens", "model", "what")
    for run in found:
        when, tokens = minute(run.started_at, ctx.zone), f"{run.tokens_in + run.tokens_out:,}"
        lines.add_row(handle_of(run.id), when, tokens, Text(one_line(run.model, most=30)), Text(_totals(run)))
    ctx.out.print(lines)


def _totals(run: Run) -> str:
    kinds = dict.fromkeys(item.what for item in run.items if item.what != "looked")
    totals = ", ".join(f"{sum(item.what == kind for item in run.items)} {kind}" for kind in kinds)
    names = one_line(", ".join(run.sessions), most=60) or run.kind
    ended = {"done": totals or "nothing", "failed": f"failed: {run.reason}", "dry": "dry run"}
    return f"{names}: {ended.get(run.state, run.state)}"


@command
async def run(ctx: CommandContext, action: str, id: str, item: list[int] | None = None) -> Output:
    if action not in _ACTIONS and action != "accept":
        raise InvalidError(f"action: {action!r} is unknown", hint=f"choose one of {', '.join(_ACTIONS)}, accept")
    if item and action != "accept":
        raise InvalidError("--item is only for `run accept`", hint="leave it out")
    async with ctx.open(with_model=action == "replay") as memory:
        if action == "accept":
            return await _accept(ctx, memory, id, item)
        return await _ACTIONS[action](ctx, memory, await resolve_run_id(memory, id))


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

    def show(out: Console) -> None:
        out.print(Text.assemble(("Undone: ", "green"), f"run {handle_of(id)}; {then}"))
        out.print(dim(f"{ctx.command(f'undo {commit.seq}')} reverses this."))

    return Output(data=commit, show=show)


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
        out.print(dim(f"{ctx.command(f'run undo {handle_of(done.id)}')} reverses this."))

    return Output(data=done, show=show)


_ACTIONS = {"show": _show, "diff": _show, "undo": _undo, "replay": _replay}


# runs as text for people

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


_MEANINGS = {"repeated": "known already", "entity": "person or thing", "relation": "person or thing"}


def show_items(out: Console, items: Sequence[RunItem], *, numbered: bool = False) -> None:
    """Print what was added, replaced and refused as a diff; with numbers if the user can choose among the items."""
    lines = Table.grid(padding=(0, 1))
    for number, item in sorted(enumerate(items, start=1), key=lambda each: each[1].what == "refused"):
        mark, style = _MARKS[item.what]
        why = f"  {one_line(item.reason, most=160)}" if item.reason else ""
        text = one_line(item.text, most=200) or item.what
        which = (dim(str(number)),) if numbered else ()
        content = Text.assemble((text, style if style != "dim" else ""), (why, "dim"))
        lines.add_row(*which, Text(mark, style=style), content)
    out.print(lines)
    marks = {_MARKS[item.what][0]: _MEANINGS.get(item.what, item.what) for item in reversed(items)}
    if legend := ", ".join(f"{mark} {meaning}" for mark, meaning in marks.items()):
        out.print(dim(f"Marks: {legend}"))


def cost(run: Run) -> str:
    """Return the model of a run and the tokens it used."""
    if run.model == BY_RULE:
        return "Stored by rules, without a language model; the conversations still wait for one."
    paid = "" if run.cost is None else f", {run.cost:.4f}"
    read = f"{plural(len(run.sessions), 'conversation')}, " if run.sessions else ""
    return f"{read}{run.model}, {run.tokens_in:,} tokens in and {run.tokens_out:,} out{paid}, prompts {run.prompt}"
