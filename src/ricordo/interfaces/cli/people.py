"""Commands about people and things: people, entity, entity-add, relate, merge and split."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli import nodes
from ricordo.interfaces.cli.options import CommandContext, Limit, command, flag, option
from ricordo.interfaces.cli.terminal import Output, dim, minute, one_line, safe, table
from ricordo.model import Entity, EntityType, Node, Profile, Relation

PANEL = "People and things"

EntityName = Annotated[str, typer.Argument(metavar="NAME", help="Any of their names, 'my wife', or an id.")]


@command("people", panel=PANEL)
async def people(ctx: CommandContext, limit: Limit = 100) -> Output:
    """List known people, the most often mentioned first."""
    async with ctx.open() as memory:
        known = await memory.people(limit=limit)
    return Output(data={"people": known}, show=lambda out: _show_list(out, known))


@command("entity", panel=PANEL)
async def entity(
    ctx: CommandContext,
    name: EntityName,
    limit: Annotated[int, option(metavar="N", help="Maximum number of facts and of mentions.")] = 10,
) -> Output:
    """Show what is known about a person or thing."""
    async with ctx.open() as memory:
        profile = await memory.entity(name, limit=limit)
    return Output(data=profile, show=lambda out: _show_profile(out, profile, zone=ctx.zone))


@command("entity-add", panel=PANEL)
async def entity_add(
    ctx: CommandContext,
    name: Annotated[str, typer.Argument(help="The name.")],
    type: Annotated[
        EntityType, option(metavar="TYPE", help="person, project, organization, place, concept or tool.")
    ] = "person",
    alias: Annotated[list[str] | None, option(metavar="NAME", help="Another name. Repeatable.")] = None,
    relation: Annotated[str | None, option(metavar="TEXT", help="The relation to you: sister, employer.")] = None,
    protected: Annotated[bool, flag("--protected", help="What is known about it does not fade.")] = False,
) -> Output:
    """Add a person or thing by name, so that memories that name it are linked to it."""
    async with ctx.open(create=True) as memory:
        added = await memory.add_entity(name, type=type, aliases=alias or (), relation=relation, protected=protected)
        await ctx.settle(memory)
    return Output(data=added, show=lambda out: _done(out, "Added", _on_one_line(added)))


@command("relate", panel=PANEL)
async def relate(
    ctx: CommandContext,
    target: EntityName,
    predicate: Annotated[str, typer.Argument(metavar="RELATION", help="The relation: wife, employer, жена.")],
    source: Annotated[str | None, option(metavar="NAME", help="To this person. [default: to you]")] = None,
    valid_from: Annotated[str | None, option(metavar="TIME", help="Since when.")] = None,
    valid_until: Annotated[str | None, option(metavar="TIME", help="Until when.")] = None,
) -> Output:
    """Record what someone is to you, or to another person."""
    async with ctx.open() as memory:
        await memory.relate(target, predicate, source=source, valid_from=valid_from, valid_until=valid_until)
        profile = await memory.entity(target)
        await ctx.settle(memory)
    return Output(data=profile, show=lambda out: _show_profile(out, profile, zone=ctx.zone))


@command("merge", panel=PANEL)
async def merge(
    ctx: CommandContext,
    keep: Annotated[str, typer.Argument(metavar="KEEP", help="The one whose name stays: a name or an id.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The one that is the same: a name or an id.")],
) -> Output:
    """Merge two entries that are the same person or thing."""
    async with ctx.open() as memory:
        merged = await memory.merge(keep, other)
    then = f"`ricordo split` separates {one_line(other)} again."
    return Output(data=merged, show=lambda out: _done(out, "Merged", _on_one_line(merged), then=then))


@command("split", panel=PANEL)
async def split(
    ctx: CommandContext,
    name: EntityName,
    names: Annotated[list[str], typer.Argument(metavar="NAMES...", help="The names that belong to the other one.")],
) -> Output:
    """Split one entry that is really two people or things: the given names, and what names them, become the other."""
    async with ctx.open() as memory:
        kept, other = await memory.split(name, names)
        await ctx.settle(memory)
    both = f"{_on_one_line(kept)} and {_on_one_line(other)}"
    return Output(data={"kept": kept, "other": other}, show=lambda out: _done(out, "Split", both))


def _done(out: Console, what: str, text: str, *, then: str = "") -> None:
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
            out.print(_memories(memories, zone))


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


def _memories(memories: Sequence[Node], zone: ZoneInfo) -> Table:
    lines = table("when", "memory")
    for node in memories:
        lines.add_row(minute(node.event_time, zone), nodes.with_speaker(node))
    return lines
