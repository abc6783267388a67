"""The verb about what is held back: list it, look at one, let it in or keep it out."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.errors import InvalidError, NotFoundError
from ricordo.ids import handle_of
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.evolving import whole_review_id
from ricordo.interfaces.cli.screen import Answer, one_line, shown
from ricordo.interfaces.cli.show_nodes import minute, origin_of, plain_table
from ricordo.interfaces.cli.verb import verb
from ricordo.memory import Memory
from ricordo.model import Decision, Review

Action = Literal["list", "show", "approve", "refuse"]
_MOST = 1_000
_DONE = {"approve": "Approved, it is found from now on", "refuse": "Refused, it stays out"}


@verb("quarantine", panel="Keep")
async def quarantine(
    door: Door,
    action: Annotated[Action, typer.Argument(help="list, show, approve or refuse.")] = "list",
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="What to show or decide on, or the last 8 characters of it.")
    ] = None,
) -> Answer:
    """List what is held back because of its source or its words; approve or refuse it."""
    if action == "list":
        if id is not None:
            raise InvalidError("id: list takes none", hint="ricordo quarantine show ID")
        return await _list(door)
    if id is None:
        raise InvalidError(f"id: {action} needs one", hint="`ricordo quarantine` lists them")
    async with door.open() as memory:
        review = await _held(memory, id)
        if action == "show":
            return Answer(data=review, show=lambda out: _card(out, review, door))
        decided = await memory.resolve(review.id, decision=cast("Decision", action))
        await door.settle(memory)
    done = Text.assemble((f"{_DONE[action]}: ", "green"), one_line(decided.newer.content))
    return Answer(data=decided, show=lambda out: out.print(done))


async def _list(door: Door) -> Answer:
    async with door.open() as memory:
        found = await memory.review(_MOST, kind="quarantine")

    def show(out: Console) -> None:
        if not found:
            out.print("Nothing is held.")
            return
        lines = plain_table("id", "from", "because of", "memory")
        for review in found:
            handle = Text(one_line(handle_of(review.id)), style="dim")
            because = one_line(", ".join(review.reasons), most=44)
            lines.add_row(handle, review.newer.origin, because, Text(one_line(review.newer.content)))
        out.print(lines)
        door.hint("Look at one: ricordo quarantine show ID. Decide: approve ID, or refuse ID.")

    return Answer(data={"reviews": found}, show=show)


async def _held(memory: Memory, given: str) -> Review:
    """Raises:
    NotFoundError: nothing of that id is held.
    """
    wanted = await whole_review_id(memory, given, kind="quarantine")
    found = [each for each in await memory.review(_MOST, kind="quarantine") if wanted in (each.id, each.newer.id)]
    if not found:
        raise NotFoundError(f"nothing is held as {given}", hint="`ricordo quarantine` lists what is")
    return found[0]


def _card(out: Console, review: Review, door: Door) -> None:
    node = review.newer
    out.print(Text(shown(node.content)))
    out.print()
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for name, value in (
        ("id", review.id),
        ("memory", node.id),
        ("came from", origin_of(node)),
        ("held because of", ", ".join(review.reasons)),
        ("about", ", ".join(review.about)),
        ("tags", ", ".join(node.tags)),
        ("since", minute(review.created_at, door.zone)),
    ):
        if value:
            lines.add_row(name, Text(shown(value)))
    out.print(lines)
