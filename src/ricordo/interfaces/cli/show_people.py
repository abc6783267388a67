"""People and things for people: a table, and one card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.interfaces.cli.screen import one_line, shown
from ricordo.interfaces.cli.show_nodes import minute, plain_table
from ricordo.model import Entity, Node, Profile, Relation


def named(entity: Entity) -> str:
    """An entity on one line."""
    also = f" (also {', '.join(entity.aliases)})" if entity.aliases else ""
    return f"{entity.name}, {entity.relation or entity.type}{also}"


def table(out: Console, people: Sequence[Entity]) -> None:
    """A line for each person."""
    if not people:
        out.print("Nobody is known yet; `ricordo entity-add NAME` makes somebody known.")
        return
    lines = plain_table("name", "is your", "named", "also called")
    for person in people:
        also = Text(one_line(", ".join(person.aliases)))
        told = Text(one_line(person.name, most=30)), Text(one_line(person.relation or "", most=20))
        lines.add_row(*told, f"{person.mention_count:,}", also)
    out.print(lines)


def card(out: Console, profile: Profile, *, zone: ZoneInfo) -> None:
    """Everything about one entity; what is empty is left out."""
    out.print(Text(shown(profile.name), style="bold"))
    out.print()
    rows = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for label, value in _rows(profile, zone):
        if value:
            rows.add_row(Text(label, style="dim"), Text(one_line(value)))
    out.print(rows)
    for title, nodes in (("Known about it", profile.facts), ("Named in", profile.mentions)):
        if nodes:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(_memories(nodes, zone))


def _rows(profile: Profile, zone: ZoneInfo) -> list[tuple[str, str]]:
    times = "once" if profile.mention_count == 1 else f"{profile.mention_count:,} times"
    others = [relation for relation in profile.relations if relation.source is not None]
    return [
        ("is", ", ".join(part for part in (profile.type, "protected" if profile.protected else "") if part)),
        ("your", ", ".join(_own(relation, zone) for relation in profile.relations if relation.source is None)),
        ("also called", ", ".join(profile.aliases)),
        ("relations", "; ".join(_between(relation, zone) for relation in others)),
        ("summary", profile.summary or ""),
        ("attributes", json.dumps(dict(profile.attributes), ensure_ascii=False) if profile.attributes else ""),
        ("named", times),
        ("first", minute(profile.first_seen, zone)),
        ("last", minute(profile.last_seen, zone)),
        ("often with", ", ".join(f"{each.name} ({each.together})" for each in profile.related)),
        ("id", profile.id),
    ]


def _own(relation: Relation, zone: ZoneInfo) -> str:
    return f"{relation.predicate}{_when(relation, zone)}"


def _between(relation: Relation, zone: ZoneInfo) -> str:
    return f"{relation.target_name} is the {relation.predicate} of {relation.source_name}{_when(relation, zone)}"


def _when(relation: Relation, zone: ZoneInfo) -> str:
    start, end = (minute(at, zone)[:10] for at in (relation.valid_from, relation.valid_until))
    return f" ({start}–{end})" if start or end else ""


def _memories(nodes: Sequence[Node], zone: ZoneInfo) -> Table:
    lines = plain_table("when", "memory")
    for node in nodes:
        who = f"{node.speaker or node.role}: " if node.type == "episodic" else ""
        lines.add_row(minute(node.event_time, zone), Text(one_line(who + node.content)))
    return lines
