"""Nodes as hits: what a caller gets to see of a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.ids import handle_of
from ricordo.making import Maker
from ricordo.model import Hit, Node, Share
from ricordo.storage import Snapshot
from ricordo.text.dates import format_times
from ricordo.text.injection import reasons
from ricordo.trust import is_untrusted, trust_of

EXCERPT_CHARS = 1_000


def warnings_of(node: Node) -> tuple[str, ...]:
    """Return what in a memory reads like an instruction. The user's own words never do."""
    tier = trust_of(node.origin, node.role)
    return () if tier == "user" else reasons(node.content, is_foreign=is_untrusted(tier))


def excerpt(content: str, terms: tuple[str, ...]) -> str:
    """At most 1,000 characters, around the first word asked for if the text is longer."""
    if len(content) <= EXCERPT_CHARS:
        return content
    folded = content.lower()
    places = [place for place in (folded.find(term) for term in terms) if place >= 0]
    start = max(0, min(places, default=0) - EXCERPT_CHARS // 4)
    piece = content[start : start + EXCERPT_CHARS - 2]
    return f"{'…' if start else ''}{piece}{'…' if start + len(piece) < len(content) else ''}"


def told(snapshot: Snapshot, nodes: Mapping[int, Node]) -> dict[int, Node]:
    """Memories as answers tell them: without the sentences that were forgotten, and those that say nothing else not at
    all.
    """
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
    """A node with its score, its time in four forms, why it is here, and what it rests on."""
    times = format_times(to_ms(node.event_time), now=now, zone=zone)
    return _hit(
        node.id,
        node.content,
        node.type,
        node.category,
        score,
        node.confidence,
        node.about,
        node.speaker,
        node.role,
        node.session,
        node.origin,
        trust_of(node.origin, node.role),
        node.tags,
        handle_of(node.id),
        excerpt(node.content, terms),
        node.event_time,
        times.iso,
        times.local,
        times.zone,
        times.relative,
        shares,
        evidence,
        warnings_of(node),
    )


_hit = Maker(Hit)
