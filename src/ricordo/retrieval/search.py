"""Ask, fuse, cut. One embedding of the question, then one read snapshot; no model, no writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.model import Hit, Results, Scope, Trace
from ricordo.retrieval.hits import hit_of
from ricordo.retrieval.listing import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.rank import Ranked, fuse, weigh
from ricordo.retrieval.strategies import STRATEGIES, Lookup
from ricordo.store import Snapshot
from ricordo.store.sqlite.embeddings import VectorShelves

# Of the best by fused score so many are read and weighed: expired ones and such as became one fall out on the way.
_WEIGHED = 2
_WEIGHED_LEAST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a snapshot gave: the best, and how it came about."""

    best: tuple[Hit, ...]
    candidates: Mapping[str, int]
    timings_ms: Mapping[str, float]


def find(snapshot: Snapshot, plan: Plan, *, scope: Scope, vectors: VectorShelves, zone: ZoneInfo) -> Found:
    """Answer a plan from one snapshot.

    Raises:
        NotFoundError: the question is limited to an entity nobody knows.
    """
    timings: dict[str, float] = {}
    look = _lookup(snapshot, plan, scope=scope, vectors=vectors)
    found: dict[str, dict[int, float]] = {}
    for name, strategy in STRATEGIES.items():
        started = time.perf_counter()
        found[name] = strategy(look)
        timings[name] = (time.perf_counter() - started) * 1_000
    started = time.perf_counter()
    short = fuse(found, most=max(_WEIGHED_LEAST, _WEIGHED * plan.query.limit))
    hits = _best(snapshot, plan, short, scope=scope, zone=zone)
    timings["ranking"] = (time.perf_counter() - started) * 1_000
    counts = {name: len(candidates) for name, candidates in found.items()}
    return Found(best=hits, candidates=counts, timings_ms=timings)


def _lookup(snapshot: Snapshot, plan: Plan, *, scope: Scope, vectors: VectorShelves) -> Lookup:
    entity = None if plan.query.entity is None else entity_key(snapshot, scope, plan.query.entity)
    filter_ = plan.filter(entity)
    allowed = snapshot.matching(scope, filter_) if filter_.narrows or filter_.archived else None
    return Lookup(snapshot=snapshot, scope=scope, plan=plan, vectors=vectors, allowed=allowed)


def _best(snapshot: Snapshot, plan: Plan, short: list[Ranked], *, scope: Scope, zone: ZoneInfo) -> tuple[Hit, ...]:
    nodes = snapshot.nodes(scope, [each.key for each in short])
    weighed = [
        (weigh(each, nodes[each.key], now=plan.now), nodes[each.key])
        for each in short
        if each.key in nodes and not _is_over(nodes[each.key].expires_at, plan)
    ]
    weighed.sort(key=lambda pair: (-pair[0].score, -pair[0].key))
    return tuple(
        hit_of(node, score=each.score, shares=each.shares, terms=plan.terms, now=plan.now, zone=zone)
        for each, node in weighed[: plan.query.limit]
    )


def _is_over(expires_at: object, plan: Plan) -> bool:
    return expires_at is not None and to_ms(expires_at) <= plan.now and not plan.query.archived  # type: ignore[arg-type]


def results_of(found: Found, plan: Plan, *, degraded: tuple[str, ...], traced: bool) -> Results:
    """The answer as the caller gets it; why each hit is here only where it was asked for."""
    if not traced:
        return Results(hits=tuple(replace(hit, why=()) for hit in found.best), degraded=degraded)
    trace = Trace(
        terms=plan.terms,
        ignored_terms=plan.ignored,
        interval=plan.interval.text if plan.interval else "",
        candidates=found.candidates,
        timings_ms=found.timings_ms,
        hits=tuple((hit.id, hit.why) for hit in found.best),
    )
    return Results(hits=found.best, degraded=degraded, trace=trace)
