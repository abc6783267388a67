"""The verbs about people and things: who is known, who is who."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ricordo.interfaces.cli import show_people
from ricordo.interfaces.cli.door import Door
from ricordo.interfaces.cli.screen import Answer, dim, one_line
from ricordo.interfaces.cli.verb import verb
from ricordo.model import EntityType

_PANEL = "People"

EntityName = Annotated[str, typer.Argument(metavar="NAME", help="Any name of theirs, 'my wife', or an id.")]


@verb("people", panel=_PANEL)
async def people(
    door: Door, limit: Annotated[int, typer.Option(metavar="N", help="How many at most.")] = 100
) -> Answer:
    """Who is known, those who are named most often first."""
    async with door.open() as memory:
        known = await memory.people(limit=limit)
    return Answer(data={"people": known}, show=lambda out: show_people.table(out, known))


@verb("entity", panel=_PANEL)
async def entity(
    door: Door,
    name: EntityName,
    limit: Annotated[int, typer.Option(metavar="N", help="How many facts and mentions at most.")] = 10,
) -> Answer:
    """What is known of a person or thing."""
    async with door.open() as memory:
        profile = await memory.entity(name, limit=limit)
    return Answer(data=profile, show=lambda out: show_people.card(out, profile, zone=door.zone))


@verb("entity-add", panel=_PANEL)
async def entity_add(
    door: Door,
    name: Annotated[str, typer.Argument(help="What it is called.")],
    type: Annotated[
        EntityType, typer.Option(metavar="TYPE", help="person, project, organization, place, concept or tool.")
    ] = "person",
    alias: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Another name. Repeatable.")] = None,
    relation: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is to you: sister, employer.")] = None,
    protected: Annotated[
        bool, typer.Option("--protected", metavar="", help="What is known about it does not fade.")
    ] = False,
) -> Answer:
    """Make a person or thing known, so that what names it is linked to it."""
    async with door.open(makes=True) as memory:
        added = await memory.add_entity(name, type=type, aliases=alias or (), relation=relation, protected=protected)
        await door.settle(memory)
    return Answer(data=added, show=lambda out: _say(out, "Known now", show_people.named(added)))


@verb("relate", panel=_PANEL)
async def relate(
    door: Door,
    target: EntityName,
    predicate: Annotated[str, typer.Argument(metavar="RELATION", help="What they are: wife, employer, жена.")],
    source: Annotated[str | None, typer.Option(metavar="NAME", help="To whom. [default: to you]")] = None,
    valid_from: Annotated[str | None, typer.Option(metavar="TIME", help="Since when.")] = None,
    valid_until: Annotated[str | None, typer.Option(metavar="TIME", help="Until when.")] = None,
) -> Answer:
    """Say what somebody is to you, or to another."""
    async with door.open() as memory:
        await memory.relate(target, predicate, source=source, valid_from=valid_from, valid_until=valid_until)
        profile = await memory.entity(target)
        await door.settle(memory)
    return Answer(data=profile, show=lambda out: show_people.card(out, profile, zone=door.zone))


@verb("merge", panel=_PANEL)
async def merge(
    door: Door,
    keep: Annotated[str, typer.Argument(metavar="KEEP", help="Whose name stays: a name or an id.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Who is the same: a name or an id.")],
) -> Answer:
    """Two are one: all that is known of both is known of the first."""
    async with door.open() as memory:
        merged = await memory.merge(keep, other)
    then = f"`ricordo split` takes {one_line(other)} out again."
    return Answer(data=merged, show=lambda out: _say(out, "One now", show_people.named(merged), then=then))


@verb("split", panel=_PANEL)
async def split(
    door: Door,
    name: EntityName,
    names: Annotated[list[str], typer.Argument(metavar="NAMES...", help="The names that are somebody else's.")],
) -> Answer:
    """One is two: the names given, and what was said under them, are another's."""
    async with door.open() as memory:
        kept, other = await memory.split(name, names)
        await door.settle(memory)
    both = f"{show_people.named(kept)} and {show_people.named(other)}"
    return Answer(data={"kept": kept, "other": other}, show=lambda out: _say(out, "Two now", both))


def _say(out: Console, what: str, text: str, *, then: str = "") -> None:
    out.print(Text.assemble((f"{what}: ", "green"), one_line(text)))
    if then:
        out.print(dim(then))
