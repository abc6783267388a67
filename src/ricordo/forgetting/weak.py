"""What is low in confidence, has faded or will soon, or is soon over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from heapq import nsmallest

from ricordo.clock import from_ms
from ricordo.decay import DAY_MS, FADED, Vital, ending, fades_at, fate, left, lifetime_days
from ricordo.forgetting.upkeep import Keeping
from ricordo.model import Node, Scope, Weak
from ricordo.storage import Snapshot

_UNSURE = 0.5
_SOON_DAYS = 14
_ENDS_SOON_DAYS = 7


async def weak(keeping: Keeping, *, limit: int) -> tuple[Weak, ...]:
    """What upkeep closes soon, the first to go first; then what stays, by how little of it is left."""
    found: list[tuple[tuple[float, float], Vital]] = []
    nodes: dict[int, Node] = {}
    for scope in keeping.scopes:
        found += [(_place(keeping, vital), vital) for vital in await keeping.vitals(scope) if reasons(keeping, vital)]
    best = [vital for _, vital in nsmallest(limit, found, key=lambda each: (each[0], each[1].key))]
    for scope in keeping.scopes:
        nodes |= await keeping.store.read(partial(_nodes, scope=scope, keys=[vital.key for vital in best]))
    return tuple(_told(keeping, vital, nodes[vital.key]) for vital in best if vital.key in nodes)


def reasons(keeping: Keeping, vital: Vital) -> list[str]:
    """Why a memory is weak, in words; none where it is not. Pure."""
    found = []
    if vital.confidence < _UNSURE:
        found.append(f"only {vital.confidence:.0%} sure")
    end = ending(vital)
    if end is not None and end.at <= keeping.now + _ENDS_SOON_DAYS * DAY_MS:
        kept = "as you said" if end.why == "expiry" else f"{vital.category}: {lifetime_days(vital.category)} days"
        found.append(f"{'over since' if end.at <= keeping.now else 'over on'} {keeping.day(end.at)} ({kept})")
    at = fades_at(vital)
    if at is not None and at <= keeping.now + _SOON_DAYS * DAY_MS:
        faded = left(vital, now=keeping.now) < FADED
        found.append(f"{'faded since' if faded else 'faded by'} {keeping.day(at)}")
    return found


def leaves_at(keeping: Keeping, vital: Vital) -> int | None:
    """When upkeep will close a memory that nothing touches, Unix milliseconds. Pure."""
    closes = fate(vital, keeping.rules.decay_closes) == "closes"
    ends = [end.at for end in [ending(vital)] if end is not None]
    ends += [at for at in [fades_at(vital)] if at is not None and closes]
    return min(ends, default=None)


def _nodes(snapshot: Snapshot, *, scope: Scope, keys: Sequence[int]) -> dict[int, Node]:
    return snapshot.nodes.by_key(scope, keys)


def _place(keeping: Keeping, vital: Vital) -> tuple[float, float]:
    leaves = leaves_at(keeping, vital)
    soon = leaves is not None and leaves <= keeping.now + _SOON_DAYS * DAY_MS
    return (0, float(leaves or 0)) if soon else (1, left(vital, now=keeping.now))


def _told(keeping: Keeping, vital: Vital, node: Node) -> Weak:
    end = ending(vital)
    return Weak(
        node=node,
        retention=left(vital, now=keeping.now),
        fades_at=_instant(fades_at(vital)),
        fading=fate(vital, keeping.rules.decay_closes),
        ends_at=None if end is None else from_ms(end.at),
        ends_by=None if end is None else end.why,
        leaves_at=_instant(leaves_at(keeping, vital)),
        why="; ".join(reasons(keeping, vital)),
    )


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)
