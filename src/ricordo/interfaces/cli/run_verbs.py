"""The verbs about conversations that become knowledge: consolidate, runs, run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, UnavailableError
from ricordo.ids import handle_of
from ricordo.interfaces.cli import show_runs
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, dim, one_line
from ricordo.interfaces.cli.show_nodes import minute, plain_table
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Run

if TYPE_CHECKING:
    from ricordo.memory import Memory

_PANEL = "Learn"
_LATEST = 1_000


@verb("consolidate", panel=_PANEL)
async def consolidate(
    door: Door,
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="One conversation; all that wait when left out.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Ask the model, show what it would do, change nothing.")
    ] = False,
) -> Answer:
    """Turn conversations into knowledge: by a language model, or what is plainly said by rule."""
    async with door.open(uses_model=True) as memory:
        with door.waiting("Asking the model…"):
            run = await memory.consolidate(session, dry_run=dry_run)
        if not dry_run:
            await door.settle(memory)
    status = UnavailableError.exit_status if run.state == "failed" else 0
    return Answer(data=run, show=lambda out: _show_made(out, run), exit_status=status)


def _show_made(out: Console, run: Run) -> None:
    if not run.items:
        out.print("Nothing waits to become knowledge.")
        return
    show_runs.items(out, run.items)
    if all(item.what == "left" for item in run.items):
        return
    out.print(dim(show_runs.cost(run)))
    if run.state == "done":
        out.print(dim(f"`ricordo run undo {handle_of(run.id)}` takes it back."))
    elif run.state == "dry":
        out.print(dim("This was a dry run: nothing is changed."))


@verb("runs", panel=_PANEL)
async def runs(
    door: Door, limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 20
) -> Answer:
    """List the runs in which conversations became knowledge, or conclusions were drawn."""
    async with door.open() as memory:
        found = await memory.runs(limit)

    def show(out: Console) -> None:
        if not found:
            out.print("No conversation has become knowledge yet.")
            return
        lines = plain_table("run", "when", "tokens", "model", "what")
        for run in found:
            lines.add_row(
                handle_of(run.id),
                minute(run.started_at, door.zone),
                f"{run.tokens_in + run.tokens_out:,}",
                Text(one_line(run.model, most=30)),
                Text(_counted(run)),
            )
        out.print(lines)

    return Answer(data={"runs": found}, show=show)


def _counted(run: Run) -> str:
    kinds = dict.fromkeys(item.what for item in run.items)
    counts = {kind: sum(item.what == kind for item in run.items) for kind in kinds}
    names = one_line(", ".join(run.sessions), most=60) or run.kind
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if kind != "looked")
    return f"{names}: {told or 'nothing'}"


@verb("run", panel=_PANEL)
async def run(
    door: Door,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="show (or diff), undo, replay, or accept.")],
    id: Annotated[str, typer.Argument(metavar="RUN", help="Its id, or the last 8 characters of it.")],
    item: Annotated[
        list[int] | None, typer.Option(metavar="N", help="With accept: only this item of the replay; repeatable.")
    ] = None,
) -> Answer:
    """Look at a run, take it back as one, see what the model given would make of its conversations, and accept that."""
    if action not in _ACTIONS and action != "accept":
        raise InvalidError(f"action: {action!r} is unknown", hint=f"choose one of {', '.join(_ACTIONS)}, accept")
    if item and action != "accept":
        raise InvalidError("item: only `accept` takes it")
    async with door.open(uses_model=action == "replay") as memory:
        if action == "accept":
            return await _accept(door, memory, id, item)
        whole = await _whole_run_id(memory, id)
        return await _ACTIONS[action](door, memory, whole)


async def _show(door: Door, memory: Memory, id: str) -> Answer:
    found = await memory.run(id)

    def show(out: Console) -> None:
        out.print(Text(f"{minute(found.started_at, door.zone)}  {', '.join(found.sessions)}", style="bold"))
        show_runs.items(out, found.items)
        out.print(dim(show_runs.cost(found)))

    return Answer(data=found, show=show)


_AFTER_UNDOING = {
    "consolidation": "its conversations wait again.",
    "extraction": "its conversations wait again.",
    None: "its conversations wait again.",
}


async def _undo(door: Door, memory: Memory, id: str) -> Answer:
    kind = next((each.kind for each in await memory.runs(_LATEST) if each.id == id), None)
    commit = await memory.undo(id)
    await door.settle(memory)
    then = _AFTER_UNDOING.get(kind, "what was known before it is known again.")
    done = Text.assemble(("Undone: ", "green"), f"run {handle_of(id)}; {then}")

    def show(out: Console) -> None:
        out.print(done)
        out.print(dim(f"`ricordo undo {commit.seq}` brings it back."))

    return Answer(data=commit, show=show)


async def _whole_run_id(memory: Memory, given: str) -> str:
    """The id meant; one that is not listed is passed on, to be refused by the memory."""
    found = [each.id for each in await memory.runs(_LATEST) if given in (each.id, handle_of(each.id))]
    if len(found) > 1:
        raise InvalidError(f"run: {given} is the end of several: {', '.join(found[:5])}", hint="give a whole one")
    return found[0] if found else given


async def _replay(door: Door, memory: Memory, id: str) -> Answer:
    with door.waiting("Asking the model…"):
        found = await memory.replay(id)

    def show(out: Console) -> None:
        show_runs.items(out, found.items, numbered=True)
        out.print(dim(show_runs.cost(found)))
        handle = handle_of(found.id)
        out.print(
            dim(f"Nothing is changed. `ricordo run accept {handle}` takes it over, with `--item N` a part of it.")
        )

    return Answer(data=found, show=show)


async def _accept(door: Door, memory: Memory, id: str, numbers: list[int] | None) -> Answer:
    done = await memory.accept(id, numbers or None)
    await door.settle(memory)

    def show(out: Console) -> None:
        if not done.items:
            out.print("There was nothing left to accept.")
            return
        show_runs.items(out, done.items)
        out.print(dim(f"`ricordo run undo {handle_of(done.id)}` takes it back."))

    return Answer(data=done, show=show)


_ACTIONS = {"show": _show, "diff": _show, "undo": _undo, "replay": _replay}


@verb("summarise", panel=_PANEL)
async def summarise(
    door: Door, session: Annotated[str, typer.Argument(metavar="SESSION", help="The conversation.")]
) -> Answer:
    """Have a language model sum up a conversation."""
    async with door.open(uses_model=True) as memory:
        with door.waiting("Asking the model…"):
            text = await memory.summarise(session)
    return Answer(
        data={"session": session, "summary": text}, show=lambda out: out.print(Text(one_line(text, most=2_000)))
    )
