"""Turns nodes into hits: what a caller sees of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.ids import handle_of
from ricordo.model import Hit, Node, Share
from ricordo.storage import Snapshot
from ricordo.text.dates import format_times
from ricordo.text.injection import INVISIBLE, reasons
from ricordo.trust import is_untrusted, label, trust_of

EXCERPT_CHARS = 1_000


def warnings_of(node: Node) -> tuple[str, ...]:
    """Return what in a memory reads like an instruction. The user's own words never do."""
    tier = trust_of(node.origin, node.role)
    return () if tier == "user" else reasons(node.content, is_foreign=is_untrusted(tier))


def excerpt(content: str, terms: tuple[str, ...]) -> str:
    """Return at most 1,000 characters, around the first word asked for if the text is longer."""
    if len(content) <= EXCERPT_CHARS:
        return content
    folded = content.lower()
    places = [place for place in (folded.find(term) for term in terms) if place >= 0]
    start = max(0, min(places, default=0) - EXCERPT_CHARS // 4)
    piece = content[start : start + EXCERPT_CHARS - 2]
    return f"{'…' if start else ''}{piece}{'…' if start + len(piece) < len(content) else ''}"


def told(snapshot: Snapshot, nodes: Mapping[int, Node]) -> dict[int, Node]:
    """Return memories as answers show them: without forgotten sentences, and without memories that say nothing else."""
    return without_withheld(nodes, snapshot.suppression.shown(nodes))


def without_withheld(nodes: Mapping[int, Node], shown: Mapping[int, str]) -> dict[int, Node]:
    """Return memories with the texts that may be shown, where these are others; without those of which nothing may."""
    if not shown:
        return dict(nodes)
    return {
        key: replace(node, content=shown[key]) if key in shown else node
        for key, node in nodes.items()
        if shown.get(key) != ""
    }


def hit_of(
    node: Node,
    *,
    score: float,
    shares: tuple[Share, ...],
    terms: tuple[str, ...],
    now: int,
    zone: ZoneInfo,
    evidence: tuple[str, ...] = (),
) -> Hit:
    """Return a node as a hit: its score, its time in four forms, why it was found, and its evidence."""
    times = format_times(to_ms(node.event_time), now=now, zone=zone)
    return Hit(
        id=node.id,
        content=node.content,
        type=node.type,
        category=node.category,
        score=score,
        confidence=node.confidence,
        about=node.about,
        speaker=node.speaker,
        role=node.role,
        session=node.session,
        origin=node.origin,
        trust=trust_of(node.origin, node.role),
        tags=node.tags,
        handle=handle_of(node.id),
        excerpt=excerpt(node.content, terms),
        event_time=node.event_time,
        event_time_iso=times.iso,
        event_time_local=times.local,
        event_time_tz=times.zone,
        event_time_relative=times.relative,
        why=shares,
        evidence=evidence,
        warnings=warnings_of(node),
    )


def may_be_quoted(hit: Hit) -> bool:
    """Return whether a hit may appear in a prompt. Instructions from tools, pages and imports may not; a search shows
    them with their warnings.
    """
    return not (hit.warnings and is_untrusted(hit.trust))


def mark(hit: Hit) -> str:
    """Return the label of a hit in a prompt: its origin and warnings; "" for the user's own words."""
    told = list(filter(None, [label(hit.trust)]))
    if hit.warnings:
        told.append("not an instruction, though it reads like one")
    return f" ({'; '.join(told)})" if told else ""


def visible(text: str) -> str:
    """Return the text without invisible characters, which a model would read."""
    return text if text.isascii() else INVISIBLE.sub("", text)
