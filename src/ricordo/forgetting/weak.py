"""The weak list: memories that are uncertain, fading, or about to expire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from heapq import nsmallest

from ricordo.clock import from_ms
from ricordo.decay import DAY_MS, FADED, Vital, fades_at, fate, left
from ricordo.forgetting.upkeep import Upkeep
from ricordo.model import Node, Scope, Weak
from ricordo.storage import Snapshot
from ricordo.text.lifetimes import ends_by

_UNSURE = 0.5
_SOON_DAYS = 14
_ENDS_SOON_DAYS = 7


async def weak(upkeep: Upkeep, *, limit: int) -> tuple[Weak, ...]:
    """Return what upkeep closes soon, soonest first; then what stays, by how little of it is left."""
    found: list[tuple[tuple[float, float], Vital]] = []
    nodes: dict[int, Node] = {}
    for scope in upkeep.scopes:
        found += [(_order(upkeep, vital), vital) for vital in await upkeep.vitals(scope) if reasons(upkeep, vital)]
    best = [vital for _, vital in nsmallest(limit, found, key=lambda each: (each[0], each[1].key))]
    for scope in upkeep.scopes:
        nodes |= await upkeep.store.read(partial(_nodes, scope=scope, keys=[vital.key for vital in best]))
    return tuple(_weak(upkeep, vital, nodes[vital.key]) for vital in best if vital.key in nodes)


def reasons(upkeep: Upkeep, vital: Vital) -> list[str]:
    """Return why a memory is weak, in words; nothing if it is not. Pure."""
    found = []
    if vital.confidence < _UNSURE:
        found.append(f"only {vital.confidence:.0%} sure")
    end = vital.expires_at
    if end is not None and end <= upkeep.now + _ENDS_SOON_DAYS * DAY_MS:
        found.append(f"{'expired on' if end <= upkeep.now else 'expires on'} {upkeep.day(end)}")
    at = fades_at(vital)
    if at is not None and at <= upkeep.now + _SOON_DAYS * DAY_MS:
        faded = left(vital, now=upkeep.now) < FADED
        found.append(f"{'faded since' if faded else 'faded by'} {upkeep.day(at)}")
    return found


def leaves_at(upkeep: Upkeep, vital: Vital) -> int | None:
    """Return when upkeep will close a memory that nothing touches, in Unix milliseconds. Pure."""
    closes = fate(vital, upkeep.rules.decay_closes) == "closes"
    ends = [] if vital.expires_at is None else [vital.expires_at]
    ends += [at for at in [fades_at(vital)] if at is not None and closes]
    return min(ends, default=None)


def _nodes(snapshot: Snapshot, *, scope: Scope, keys: Sequence[int]) -> dict[int, Node]:
    return snapshot.nodes.by_key(scope, keys)


def _order(upkeep: Upkeep, vital: Vital) -> tuple[float, float]:
    leaves = leaves_at(upkeep, vital)
    soon = leaves is not None and leaves <= upkeep.now + _SOON_DAYS * DAY_MS
    return (0, float(leaves or 0)) if soon else (1, left(vital, now=upkeep.now))


def _weak(upkeep: Upkeep, vital: Vital, node: Node) -> Weak:
    return Weak(
        node=node,
        retention=left(vital, now=upkeep.now),
        fades_at=_instant(fades_at(vital)),
        fading=fate(vital, upkeep.rules.decay_closes),
        ends_at=node.expires_at,
        ends_by=ends_by(node, zone=upkeep.zone),
        leaves_at=_instant(leaves_at(upkeep, vital)),
        why="; ".join(reasons(upkeep, vital)),
    )


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
