"""The verbs by which knowledge changes: correct, update, confirm and the like, and the list of what is in doubt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError
from ricordo.ids import handle_of
from ricordo.interfaces.cli import show_nodes
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.cli.keeping import MemoryId, given_text, say
from ricordo.interfaces.cli.screen import Answer, one_line
from ricordo.interfaces.cli.verb import verb
from ricordo.model import Decision, Node, Review, ReviewKind

if TYPE_CHECKING:
    from ricordo.memory import Memory

_PANEL = "Keep"
_LATEST_REVIEWS = 1_000


@verb("correct", panel=_PANEL)
async def correct(
    door: Door,
    id: MemoryId,
    text: Annotated[str, typer.Argument(help="What is right; - reads standard input.")],
    evidence: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A memory that shows it. Repeatable.")
    ] = None,
) -> Answer:
    """Say what is right instead. The old version goes to the archive."""
    text = given_text(text)
    async with door.open() as memory:
        shown = [await whole_id(memory, each) for each in evidence or ()]
        node = await memory.correct(await whole_id(memory, id), text, origin="cli", evidence=shown)
        await door.settle(memory)
    return _answer("Corrected", node, then=f"`ricordo history {handle_of(node.id)}` shows what it was.")


@verb("update", panel=_PANEL)
async def update(
    door: Door,
    id: MemoryId,
    content: Annotated[str | None, typer.Option(metavar="TEXT", help="Its new words; - reads standard input.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Its labels from now on. Repeatable; '' for none.")
    ] = None,
    attributes: Annotated[
        str | None, typer.Option(metavar="JSON", help="Its attributes from now on: one JSON object.")
    ] = None,
) -> Answer:
    """Alter a memory in place."""
    text = None if content is None else given_text(content)
    async with door.open() as memory:
        node = await memory.update(
            await whole_id(memory, id), content=text, tags=_tags(tag), attributes=_attributes(attributes)
        )
        await door.settle(memory)
    return _answer("Updated", node, then=f"`ricordo history {handle_of(node.id)}` shows what it was.")


def _tags(given: list[str] | None) -> list[str] | None:
    return [] if given == [""] else given or None


def _attributes(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        return cast("dict[str, Any]", json.loads(given))
    except ValueError as error:
        raise InvalidError(f"attributes: {error}", hint='give one JSON object, such as {"task_id": 7}') from error


@verb("confirm", panel=_PANEL)
async def confirm(door: Door, id: MemoryId) -> Answer:
    """Say that a memory is right: it no longer fades."""
    async with door.open() as memory:
        node = await memory.confirm(await whole_id(memory, id))
    return _answer("Confirmed for good", node)


@verb("reinforce", panel=_PANEL)
async def reinforce(door: Door, id: MemoryId) -> Answer:
    """Say that a memory was of use: it ranks higher."""
    async with door.open() as memory:
        node = await memory.reinforce(await whole_id(memory, id))
    return _answer(f"Score {node.score:+g}", node)


@verb("demote", panel=_PANEL)
async def demote(door: Door, id: MemoryId) -> Answer:
    """Say that a memory was of no use: it ranks lower."""
    async with door.open() as memory:
        node = await memory.demote(await whole_id(memory, id))
    return _answer(f"Score {node.score:+g}", node)


def _answer(done: str, node: Node, *, then: str = "") -> Answer:
    return Answer(data=node, show=lambda out: say(out, done, node, then=then))


@verb("review", panel=_PANEL)
async def review(
    door: Door, limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 20
) -> Answer:
    """List facts that may not hold together, and what is held in quarantine, to decide on with resolve."""
    async with door.open() as memory:
        found = await memory.review(limit)

    def show(out: Console) -> None:
        show_nodes.reviews(out, found)
        if found:
            door.hint(
                "Decide: ricordo resolve ID replace, or 'keep both', or 'keep old'; of what is held, approve or refuse."
            )

    return Answer(data={"reviews": found}, show=show)


@verb("resolve", panel=_PANEL)
async def resolve(
    door: Door,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a review, or the last 8 characters of it.")],
    decision: Annotated[
        str,
        typer.Argument(
            help="replace: the older one goes; 'keep both'; 'keep old': the newer goes. If held: approve, refuse."
        ),
    ],
) -> Answer:
    """Decide on what review lists."""
    async with door.open() as memory:
        decided = await memory.resolve(await whole_review_id(memory, id), decision=cast("Decision", decision))
        await door.settle(memory)
    return Answer(data=decided, show=lambda out: _show_decided(out, decided))


async def whole_review_id(memory: Memory, given: str, *, kind: ReviewKind | None = None) -> str:
    """The id meant; one that is not listed is passed on, to be refused by the memory."""
    listed = await memory.review(_LATEST_REVIEWS, kind=kind)
    found = [each.id for each in listed if given in (each.id, handle_of(each.id))]
    if len(found) > 1:
        raise InvalidError(f"id: {given} is the end of several: {', '.join(found[:5])}", hint="give a whole one")
    return found[0] if found else given


def _show_decided(out: Console, decided: Review) -> None:
    both = [node for node in (decided.newer, decided.older) if node is not None]
    kept = {"replace": both[:1], "keep old": both[1:], "refuse": []}.get(decided.decision or "", both)
    if not kept:
        out.print(Text.assemble(("Refused: ", "green"), one_line(decided.newer.content)))
    for node in kept:
        out.print(Text.assemble(("Kept: ", "green"), one_line(node.content)))
