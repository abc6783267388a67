"""Memories in time, for people: a timeline by day and conversation, and where one memory came from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.ids import handle_of
from ricordo.interfaces.cli.screen import one_line, shown
from ricordo.interfaces.cli.show_fading import prospects
from ricordo.interfaces.cli.show_nodes import history, minute, origin_of
from ricordo.model import Explanation, Node


def timeline(out: Console, events: Sequence[Node], *, zone: ZoneInfo) -> None:
    """Events under their days and, within a day, their conversations, in the order they happened."""
    if not events:
        out.print("Nothing happened then that is remembered.")
        return
    for day, on_day in groupby(events, lambda event: event.event_time.astimezone(zone).strftime("%A, %Y-%m-%d")):
        out.print(Text(day, style="bold"))
        for session, together in groupby(on_day, lambda event: event.session):
            if session is not None:
                out.print(Text(f"  conversation {one_line(session, most=60)}", style="dim"))
            lines = Table.grid(padding=(0, 1), expand=True)
            for column in range(3):
                lines.add_column(no_wrap=column != 2, overflow="fold", ratio=1 if column == 2 else None)
            for event in together:
                lines.add_row(
                    Text("  " + event.event_time.astimezone(zone).strftime("%H:%M")),
                    Text(one_line(handle_of(event.id)), style="dim"),
                    _told(event),
                )
            out.print(lines)


def _told(event: Node) -> Text:
    if event.type == "episodic":
        return Text.assemble(
            (f"{one_line(event.speaker or event.role or '', most=40)}: ", "bold"), one_line(event.content)
        )
    about = f" (about {one_line(', '.join(event.about), most=60)})" if event.about else ""
    return Text(one_line(event.content) + about, style="cyan")


def explanation(out: Console, why: Explanation, *, zone: ZoneInfo) -> None:
    """The memory, where it came from, what links to it, and its versions where there are several."""
    out.print(Text(shown(why.node.content)))
    out.print()
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for name, value in _facts(why, zone):
        if value:
            lines.add_row(name, Text(shown(value)))
    out.print(lines)
    if len(why.versions) > 1:
        out.print()
        history(out, why.versions, zone=zone)


def _facts(why: Explanation, zone: ZoneInfo) -> list[tuple[str, str]]:
    node, made = why.node, why.made
    recorded = f"change {made.seq} of {minute(made.at, zone)}, {made.origin} by {made.actor}" if made else ""
    links = (
        f"{edge.predicate or edge.type} {handle_of(edge.target if edge.source == node.id else edge.source)}"
        for edge in why.edges
        if edge.type not in ("supersedes", "derived_from")
    )
    return [
        ("id", node.id),
        ("recorded", recorded),
        ("run", (made.run_id or "") if made else ""),
        ("came from", origin_of(node)),
        ("conversation", node.session or ""),
        ("rests on", _listed(why.sources)),
        ("replaced", _listed(why.supersedes)),
        ("replaced by", _listed(why.superseded_by)),
        ("about", ", ".join(node.about)),
        ("names", ", ".join(why.mentions)),
        ("linked to", ", ".join(links)),
        ("how sure", f"{node.confidence:.0%}"),
        ("score", f"{node.score:+g}" if node.score else ""),
        ("closed", f"{minute(node.closed_at, zone)}, {node.closed_reason}" if node.closed_at else ""),
        *prospects(why, zone),
    ]


def _listed(nodes: Sequence[Node]) -> str:
    return "\n".join(f"{handle_of(node.id)}  {one_line(node.content, most=100)}" for node in nodes)
