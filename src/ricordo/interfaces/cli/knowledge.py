"""Commands that turn conversations into knowledge, and those that inspect, undo and replay such runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.errors import InvalidError, UnavailableError
from ricordo.ids import handle_of
from ricordo.interfaces.cli.corrections import show_undone
from ricordo.interfaces.cli.options import (
    AfterOption,
    BeforeOption,
    CommandContext,
    PositiveLimit,
    command,
    flag,
    option,
)
from ricordo.interfaces.cli.terminal import Output, dim, minute, one_line, table
from ricordo.interfaces.serialize import match_end
from ricordo.model import BY_RULE, Run, RunItem
from ricordo.text.wording import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

PANEL = "Learn"
_MAX_RUNS = 1_000

_Session = Annotated[str | None, typer.Argument(metavar="[SESSION]", help="One conversation. [default: all waiting]")]
_DryRun = Annotated[bool, flag("--dry-run", help="Show what the model would change, and change nothing.")]


@command("consolidate", panel=PANEL)
async def consolidate(ctx: CommandContext, session: _Session = None, dry_run: _DryRun = False) -> Output:
    """Turn finished conversations into knowledge, with a language model or, without one, by rules."""
    async with ctx.open(with_model=True) as memory:
        with ctx.status("Asking the model…"):
            run = await memory.consolidate(session, dry_run=dry_run)
        if not dry_run:
            await ctx.settle(memory)
    return _run_output(run, nothing="No conversation is waiting.", shows_cost=any(i.what != "left" for i in run.items))


@command("extract", panel=PANEL)
async def extract(ctx: CommandContext, session: _Session = None, dry_run: _DryRun = False) -> Output:
    """Store what is new and worth knowing in conversations that are still going on."""
    return await _conclude(
        ctx, lambda memory: memory.extract(session, dry_run=dry_run), nothing="Nothing new is worth storing."
    )


@command("summarise", panel=PANEL)
async def summarise(
    ctx: CommandContext, session: Annotated[str, typer.Argument(metavar="SESSION", help="The conversation's id.")]
) -> Output:
    """Summarise a conversation with a language model."""
    async with ctx.open(with_model=True) as memory:
        with ctx.status("Asking the model…"):
            text = await memory.summarise(session)
    return Output(
        data={"session": session, "summary": text}, show=lambda out: out.print(Text(one_line(text, most=2_000)))
    )


@command("reflect", panel=PANEL)
async def reflect(
    ctx: CommandContext, after: AfterOption = "7 days ago", before: BeforeOption = None, dry_run: _DryRun = False
) -> Output:
    """Store what several memories of a period show together."""
    return await _conclude(
        ctx,
        lambda memory: memory.reflect(after=after or "7 days ago", before=before, dry_run=dry_run),
        nothing="There is nothing new to reflect on.",
    )


@command("enrich", panel=PANEL)
async def enrich(ctx: CommandContext, dry_run: _DryRun = False) -> Output:
    """Summarise people and things that are mentioned often and have no summary yet."""
    return await _conclude(ctx, lambda memory: memory.enrich(dry_run=dry_run), nothing="No summary is missing.")


@command("infer-causes", panel=PANEL)
async def infer_causes(ctx: CommandContext, dry_run: _DryRun = False) -> Output:
    """Find causes and effects that someone stated."""
    return await _conclude(
        ctx, lambda memory: memory.infer_causes(dry_run=dry_run), nothing="No new cause is stated anywhere."
    )


async def _conclude(ctx: CommandContext, work: Callable[[Memory], Awaitable[Run]], *, nothing: str) -> Output:
    ctx.require_store()
    async with ctx.open(with_model=True) as memory:
        with ctx.status("Asking the model…"):
            run = await work(memory)
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


@command("runs", panel=PANEL)
async def runs(ctx: CommandContext, limit: PositiveLimit = 20) -> Output:
    """List the runs that turned conversations into knowledge or drew conclusions, the latest first."""
    async with ctx.open() as memory:
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
    return f"{names}: {totals or 'nothing'}"


@command("run", panel=PANEL)
async def run(
    ctx: CommandContext,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="show (or diff), undo, replay or accept.")],
    id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or its last 8 characters.")],
    item: Annotated[
        list[int] | None, option(metavar="N", help="accept: only this item of the replay. Repeatable.")
    ] = None,
) -> Output:
    """Show or undo a run; replay it with the model given, and accept the result."""
    if action not in _ACTIONS and action != "accept":
        raise InvalidError(f"action: {action!r} is unknown", hint=f"choose one of {', '.join(_ACTIONS)}, accept")
    if item and action != "accept":
        raise InvalidError("item: only `accept` takes it")
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
