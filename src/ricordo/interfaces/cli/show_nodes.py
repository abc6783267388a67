"""Memories as they lie in the store, for people: tables, one card, versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.ids import handle_of
from ricordo.interfaces.cli.screen import one_line, shown
from ricordo.model import Node, Review, Version
from ricordo.trust import label, trust_of


def minute(at: datetime | None, zone: ZoneInfo) -> str:
    """An instant to the minute, as the user's clock shows it."""
    return "" if at is None else at.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def plain_table(*columns: str) -> Table:
    """A table without lines; the last column takes what room there is, and is cut where it needs more."""
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, expand=True)
    for name in columns[:-1]:
        table.add_column(name, no_wrap=True)
    table.add_column(columns[-1], no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def table(out: Console, nodes: Sequence[Node], *, zone: ZoneInfo) -> None:
    """A line for each memory."""
    if not nodes:
        out.print("Nothing to list.")
        return
    lines = plain_table("id", "when", "kind", "memory")
    for node in nodes:
        who = f"{node.speaker or node.role}: " if node.type == "episodic" else ""
        kind = (node.closed_reason or "closed") if not node.is_live else node.category or node.type
        handle, memory = Text(one_line(handle_of(node.id)), style="dim"), Text(one_line(who + node.content))
        lines.add_row(handle, minute(node.event_time, zone), kind, memory)
    out.print(lines)


def card(out: Console, node: Node, *, zone: ZoneInfo, more: Sequence[tuple[str, str]] = ()) -> None:
    """Everything about one memory, and `more`; what is empty is left out."""
    out.print(Text(shown(node.content)))
    out.print()
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for name, value in [*_facts(node, zone), *more]:
        if value:
            lines.add_row(name, Text(shown(value)))
    out.print(lines)


def _facts(node: Node, zone: ZoneInfo) -> list[tuple[str, str]]:
    said_by = ", ".join(part for part in (node.speaker, node.role) if part) if node.type == "episodic" else ""
    closed = f"{minute(node.closed_at, zone)}, {node.closed_reason}" if node.closed_at else ""
    return [
        ("id", node.id),
        ("kind", ", ".join(part for part in (node.type, node.category) if part)),
        ("said by", said_by),
        ("conversation", node.session or ""),
        ("about", ", ".join(node.about)),
        ("tags", ", ".join(node.tags)),
        ("attributes", json.dumps(dict(node.attributes), ensure_ascii=False) if node.attributes else ""),
        ("came from", origin_of(node)),
        ("how sure", f"{node.confidence:.0%}" + (", for good" if node.decay_rate == 0 else "")),
        ("score", f"{node.score:+g}" if node.score else ""),
        ("happened", minute(node.event_time, zone)),
        ("recorded", minute(node.created_at, zone)),
        ("true since", minute(node.valid_from, zone) if node.valid_from != node.event_time else ""),
        ("true until", minute(node.valid_until, zone)),
        ("expires", minute(node.expires_at, zone) if node.closed_at or node.type == "episodic" else ""),
        ("closed", closed),
    ]


def origin_of(node: Node) -> str:
    """Where a memory came from, and what that means for how far it is believed."""
    told = label(trust_of(node.origin, node.role))
    return f"{node.origin} ({told})" if told else node.origin


def reviews(out: Console, found: Sequence[Review]) -> None:
    """A pair of lines for each question, the newer fact first."""
    if not found:
        out.print("Nothing to decide.")
        return
    lines = plain_table("id", "what", "memory")
    for review in found:
        handle = Text(one_line(handle_of(review.id)), style="dim")
        lines.add_row(handle, _SAID[review.kind], Text(one_line(review.newer.content)))
        beside = (
            ("because of", ", ".join(review.reasons)) if review.older is None else ("before:", review.older.content)
        )
        lines.add_row("", beside[0], Text(one_line(beside[1]), style="dim"))
    out.print(lines)


_SAID = {
    "replaced": "replaced by a rule",
    "conflict": "may conflict",
    "several": "may both hold",
    "same": "said twice",
    "quarantine": "held back",
    "session": "not learnt",
}


_TOLD = (
    "content",
    "closed_reason",
    "tags",
    "attributes",
    "category",
    "confidence",
    "score",
    "decay_rate",
    "valid_until",
    "expires_at",
)
"""What of a memory people may want to know the change of, the most telling first: a line may be cut."""


def history(out: Console, versions: Sequence[Version], *, zone: ZoneInfo) -> None:
    """A line for each version, oldest first: the change that made it so, and what it altered."""
    lines = plain_table("change", "when", "by", "what", "memory")
    before: Node | None = None
    for version in versions:
        number, when, who, what = "", "", "", ""
        if version.commit is not None:
            number, when = str(version.commit.seq), minute(version.commit.at, zone)
            who, what = version.commit.actor, version.commit.reason
        told = [one_line(who, most=20), one_line(what, most=40), one_line(_altered(before, version.node, zone))]
        lines.add_row(number, when, *(Text(each) for each in told))
        before = version.node
    out.print(lines)


def _altered(before: Node | None, node: Node, zone: ZoneInfo) -> str:
    """The memory as it became or, where its words stayed, what else did not."""
    if before is None or before.id != node.id or before.content != node.content:
        return node.content + (f" ({node.closed_reason})" if node.closed_reason else "")
    changes = [
        f"{name.replace('_', ' ')}: {_plain(getattr(before, name), zone)} → {_plain(getattr(node, name), zone)}"
        for name in _TOLD
        if getattr(before, name) != getattr(node, name)
    ]
    return "; ".join(changes) or "as it was"


def _plain(value: object, zone: ZoneInfo) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, datetime):
        return minute(value, zone)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
