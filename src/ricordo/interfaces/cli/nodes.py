"""Memories as text for people: tables, cards, versions, timelines, reviews, and weak or archived memories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.clock import handle_of, with_handles
from ricordo.interfaces.cli.options import CommandContext, view
from ricordo.interfaces.cli.terminal import dim, minute, one_line, safe, short_id, table
from ricordo.model import Explanation, Node, Page, Review, Version, Weak
from ricordo.text.dates import with_dates
from ricordo.text.sentences import plural
from ricordo.text.tasks import ending_of_task
from ricordo.trust import label, trust_of

_BAR = 10
_FADING = {"never": "never", "sinks": "then ranks lower", "closes": "then archived"}
_COMPARED = (
    "content",
    "closed_reason",
    "tags",
    "attributes",
    "event_time",
    "category",
    "confidence",
    "score",
    "decay_rate",
    "valid_until",
    "expires_at",
)
"""The fields whose changes a history shows, the most important first, because lines may be truncated."""


def with_speaker(node: Node) -> Text:
    """Return a memory on one line: a message with its speaker, a fact with the subjects that its text does not name."""
    who = f"{node.place or _item_name(node) or node.speaker or node.role}: " if node.type == "episodic" else ""
    about = one_line(", ".join(name for name in node.about if name not in node.content), most=60)
    line = Text(one_line(who + with_dates(node.content, node.attributes)))
    return line.append(f"  (about {about})", "dim") if about and node.type != "episodic" else line


def _item_name(node: Node) -> str:
    """Return the namespace and key of an item that a graph stored, or the path of an agent's file; else ""."""
    names = node.attributes.get("namespace"), node.attributes.get("name")
    if node.attributes.get("kind") == "langgraph" and isinstance(names[0], list):
        return "/".join(map(str, (*names[0], names[1])))
    return str(node.attributes.get("path", "")) if node.attributes.get("kind") == "memory file" else ""


def origin_of(node: Node) -> str:
    """Return the origin of a memory, its trust level, and its place in a document or an imported note."""
    more = ", ".join(filter(None, (label(trust_of(node.origin, node.role)), safe(node.place))))
    return f"{node.origin} ({more})" if more else node.origin


# one line for each memory


_LONG_KEY = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
"""A UUID, with which the items of agents are often named. In a list, it would leave no room for what they say."""


@view("list")
def listing(ctx: CommandContext, page: Page) -> None:
    """Print one line for each memory."""
    if not page.nodes:
        ctx.out.print("Nothing to list.")
        return
    is_of_past = any(minute(node.event_time, ctx.zone) != minute(node.created_at, ctx.zone) for node in page.nodes)
    lines = table("id", "recorded", *(["happened"] if is_of_past else []), "kind", "memory")
    for node in page.nodes:
        times = [minute(node.created_at, ctx.zone)] + ([minute(node.event_time, ctx.zone)] if is_of_past else [])
        kind = (node.closed_reason or "closed") if not node.is_live else _kind(node)
        memory = with_speaker(replace(node, content=_LONG_KEY.sub(r"\1…", node.content)))
        if node.expires_at is not None and node.is_live:
            memory.append(f"  (expires {minute(node.expires_at, ctx.zone)[:10]})", "dim")
        if node.notice:
            memory.append(f"  ({node.notice})", "dim")
        lines.add_row(short_id(node.id), *times, kind, memory)
    ctx.out.print(lines)
    if page.cursor is not None:
        shown = f"{len(page.nodes):,} of {page.total:,}" if page.total is not None else f"{len(page.nodes):,} shown"
        ctx.out.print(dim(f"{shown}; more with --cursor {page.cursor} or a higher --limit."))


def _kind(node: Node) -> str:
    if node.category == "task":
        return f"task, {ending_of_task(node) or 'open'}"
    return node.category or node.type


def archive(ctx: CommandContext, nodes: Sequence[Node], *, totals: Mapping[str, int] | None = None) -> None:
    """Print one line for each closed memory, with when and why it was closed."""
    if not nodes:
        ctx.out.print("Nothing in the archive matches." if totals is None or totals else "The archive is empty.")
        return
    lines = table("id", "closed", "because", "memory")
    for node in nodes:
        lines.add_row(short_id(node.id), minute(node.closed_at, ctx.zone), node.closed_reason or "", with_speaker(node))
    ctx.out.print(lines)
    if totals:
        ctx.out.print(dim("In all: " + ", ".join(f"{count:,} {reason}" for reason, count in totals.items())))
    ctx.tip("`ricordo restore ID` brings one back.")


@view("weak")
def weak(ctx: CommandContext, found: Sequence[Weak]) -> None:
    """Print two lines for each weak memory: its retention and text; why it is weak and what will happen to it."""
    if not found:
        ctx.out.print("Nothing is weak: every memory is certain and fresh enough.")
        return
    lines = table("id", "left", "memory")
    for each in found:
        lines.add_row(short_id(each.node.id), retention_bar(each.retention), with_speaker(each.node))
        fate = "then archived" if each.leaves_at is not None else "ranks lower" if each.fading == "sinks" else "stays"
        lines.add_row("", "", dim(f"{each.why}, {fate}"))
    ctx.out.print(lines)
    ctx.tip("`ricordo confirm ID` keeps one permanently, `ricordo reinforce ID` for longer.")


def retention_bar(part: float) -> Text:
    """Return a retention from 0 to 1 as a bar and a percentage."""
    full = round(max(0.0, min(1.0, part)) * _BAR)
    colour = "red" if part < 0.2 else "yellow" if part < 0.5 else "green"
    return Text.assemble(("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {part:4.0%}")


def reviews(ctx: CommandContext, found: Sequence[Review], *, total: int) -> None:
    """Print two lines for each review, the newer fact first, and how many there are."""
    if not found:
        ctx.out.print("Nothing to decide.")
        return
    lines = table("id", "what", "memory")
    for review in found:
        of_proposal = review.older if review.kind == "quarantine" else None
        memory = with_speaker(of_proposal or review.newer)
        lines.add_row(short_id(review.id), ctx.spec["kinds"][review.kind], memory)
        for why, text in _why(review):
            lines.add_row("", why, dim(one_line(text)))
    ctx.out.print(lines)
    if total > len(found):
        ctx.out.print(dim(f"{len(found):,} of {total:,}; a higher --limit shows more."))
    ctx.hint("Decide: ricordo resolve ID replace, keep both or keep old; for quarantine and merges, approve or refuse.")


def reasons_of(review: Review) -> list[str]:
    """Return why something is in quarantine, and then what is in the way of a proposal."""
    if review.older is None:
        return [", ".join(review.reasons)]
    proposed, method, *obstacles = review.reasons
    return [f"{proposed}: {method}", *map(with_handles, obstacles)]


def changes_of(review: Review) -> list[str]:
    """Return what a proposal would change, one line for each field."""
    told = []
    for each in review.changes:
        change = f"{each.old or 'none'} → {each.new or 'none'}"
        told.append(f"→ {each.new}" if each.field == "content" else f"{each.field.replace('_', ' ')}: {change}")
    if review.reasons[1:2] == ("forget",):
        reason = review.newer.content.removeprefix("forget").removeprefix(": ")
        told = [f"→ forgotten ({reason})" if reason else "→ forgotten"]
    return told


def _why(review: Review) -> Iterator[tuple[str, str]]:
    """Yield the lines below a review: the older fact or, for a merge, its evidence and what it would join."""
    if review.kind == "quarantine":
        because = "; ".join(reasons_of(review))
        yield "because of", f"{because}; by {review.by}" if review.by else because
        for told in changes_of(review):
            yield "change:", told
    elif review.older is not None:
        yield "before:", with_speaker(review.older).plain
    else:
        yield "because of", ", ".join(review.reasons)
    for node in review.evidence:
        yield "shown by", with_speaker(node).plain
    if review.entities:
        keep, other = (f"{each.name} ({plural(each.mention_count, 'mention')})" for each in review.entities)
        yield "merge:", f"{other} into {keep}"


@view("history")
def history(ctx: CommandContext, versions: Sequence[Version]) -> None:
    """Print one line for each version, oldest first: its commit and the changed fields."""
    lines = table("change", "when", "by", "what", "memory")
    before: Node | None = None
    for version in versions:
        commit = version.commit
        number, when = (str(commit.seq), minute(commit.at, ctx.zone)) if commit else ("", "")
        who, what = (
            (one_line(commit.author, most=50), one_line(with_handles(commit.reason), most=40)) if commit else ("", "")
        )
        lines.add_row(number, when, Text(who), Text(what), Text(one_line(_difference(before, version.node, ctx.zone))))
        before = version.node
    ctx.out.print(lines)


def _difference(before: Node | None, node: Node, zone: ZoneInfo) -> str:
    """Return the new text or, if the text did not change, the other changed fields."""
    if before is None or before.id != node.id or before.content != node.content:
        return node.content + (f" ({node.closed_reason})" if node.closed_reason else "")
    if node.closed_reason and before.closed_reason is None:
        return f"closed: {node.closed_reason}"
    changes = [
        f"{name.replace('_', ' ')}: {_plain(getattr(before, name), zone)} → {_plain(getattr(node, name), zone)}"
        for name in _COMPARED
        if getattr(before, name) != getattr(node, name)
    ]
    return "; ".join(changes) or "unchanged"


def _plain(value: object, zone: ZoneInfo) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, datetime):
        return minute(value, zone)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def timeline(out: Console, events: Sequence[Node], *, zone: ZoneInfo) -> None:
    """Print events in order, grouped by day and by conversation."""
    if not events:
        out.print("Nothing is remembered from that time.")
        out.print(dim('A timeline shows when things were told. For plans: ricordo search "what is coming up"'))
        return
    for day, on_day in groupby(events, lambda event: event.event_time.astimezone(zone).strftime("%A, %Y-%m-%d")):
        out.print(Text(day, style="bold"))
        for session, together in groupby(on_day, lambda event: event.session):
            if session is not None:
                out.print(dim(f"  conversation {one_line(session, most=60)}"))
            lines = Table.grid(padding=(0, 1), expand=True)
            for column in range(3):
                lines.add_column(no_wrap=column != 2, overflow="fold", ratio=1 if column == 2 else None)
            for event in together:
                time = Text("  " + event.event_time.astimezone(zone).strftime("%H:%M"))
                lines.add_row(time, short_id(event.id), _event(event))
            out.print(lines)


def _event(event: Node) -> Text:
    if event.type == "episodic":
        who = one_line(event.speaker or event.role or "", most=40)
        return Text.assemble((f"{who}: ", "bold"), one_line(event.content))
    about = f" (about {one_line(', '.join(event.about), most=60)})" if event.about else ""
    return Text(one_line(event.content) + about, style="cyan")


# one memory


def card(ctx: CommandContext, why: Explanation) -> None:
    """Print everything about one memory, without empty fields."""
    node = why.node
    ctx.out.print(Text(safe(with_dates(node.content, node.attributes))))
    ctx.out.print()
    said_by = ", ".join(filter(None, (node.speaker, node.role))) if node.type == "episodic" else ""
    since = node.valid_from if node.valid_from != node.event_time else None
    lasts = ", does not fade" if node.decay_rate == 0 else ""
    derived = {**_derived(why, ctx.zone), "said_by": said_by, "since": since, "lasts": lasts}
    if node.type == "episodic":
        derived |= {"retention": "", "fades": "", "expiry": node.expires_at}
    ctx.out.print(ctx.labelled(node, derived))


@view("explain")
def explanation(ctx: CommandContext, why: Explanation) -> None:
    """Print a memory, its sources and linked memories, and its versions if there are several."""
    node, made = why.node, why.made
    ctx.out.print(Text(safe(node.content)))
    ctx.out.print()
    recorded = f"change {made.seq} of {minute(made.at, ctx.zone)}, {made.origin} by {made.author}" if made else ""
    links = [
        f"{edge.predicate or edge.type} {handle_of(edge.target if edge.source == node.id else edge.source)}"
        for edge in why.edges
        if edge.type not in ("supersedes", "derived_from")
    ]
    memories = {name: _lines(getattr(why, name)) for name in ("sources", "supersedes", "superseded_by")}
    undecided = "\n".join(_undecided(node, review) for review in why.reviews)
    derived = {"recorded": recorded, "made": made, "links": links, "mentions": why.mentions, **memories}
    derived |= {"undecided": undecided}
    ctx.out.print(ctx.labelled(node, {**_derived(why, ctx.zone), **derived}))
    if len(why.versions) > 1:
        ctx.out.print()
        history(ctx, why.versions)


def _undecided(node: Node, review: Review) -> str:
    other, which = (review.newer, "newer") if review.newer.id != node.id else (review.older or review.newer, "older")
    return f"{short_id(review.id)}  {which}: {one_line(other.content, most=100)}"


def _lines(nodes: Sequence[Node]) -> str:
    return "\n".join(f"{handle_of(node.id)}  {one_line(node.content, most=100)}" for node in nodes)


def _derived(why: Explanation, zone: ZoneInfo) -> dict[str, Any]:
    """Return values for the templates that are computed from a memory, such as when it will fade."""
    node = why.node
    shown = {
        "json": json.dumps(dict(node.attributes), ensure_ascii=False) if node.attributes else "",
        "source": origin_of(node),
        "points": f"{node.score:+g}" if node.score else "",
    }
    if node.closed_at is not None:
        return {**shown, "expiry": node.expires_at}
    fades = f"{minute(why.fades_at, zone)}, {_FADING[why.fading]}" if why.fades_at else _FADING["never"]
    return {**shown, "retention": f"{why.retention:.0%}", "fades": fades, "expiry": expires(why, zone)}


def expires(why: Explanation, zone: ZoneInfo) -> str:
    """Return when a memory expires, and whether the time comes from its text; "" if it does not expire."""
    if why.ends_at is None:
        return ""
    is_by_text = why.ends_by == "lifetime"
    return minute(why.ends_at, zone) + (f" ({why.ends_why}; `--expires never` keeps it)" if is_by_text else "")
