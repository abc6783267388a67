"""Ask, fuse, cut. One embedding of the question, then one read snapshot; no model, no writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.model import Hit, Node, Results, Scope, Trace
from ricordo.retrieval.candidates import STRATEGIES, Lookup, look_up
from ricordo.retrieval.hits import hit_of
from ricordo.retrieval.names import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.pool import Pool, gather
from ricordo.retrieval.rank import Ranked, rank, weigh
from ricordo.retrieval.signals import asks_for_a_list, shares
from ricordo.retrieval.succession import in_succession
from ricordo.store import Snapshot
from ricordo.store.sqlite.embeddings import VectorShelves

T = TypeVar("T")

# Of the best so many are read and weighed: expired ones and such as became one fall out on the way.
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

    def timed(name: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        result = work()
        timings[name] = (time.perf_counter() - started) * 1_000
        return result

    look = timed("terms", lambda: _lookup(snapshot, plan, scope=scope, vectors=vectors))
    seeds = {name: timed(name, lambda use=use: use(look)) for name, use in STRATEGIES.items()}  # type: ignore[misc]
    pool = timed("reading", lambda: gather(look, seeds))
    hits = () if pool is None else timed("ranking", lambda: _best(look, pool, seeds, zone=zone))
    counts = {name: len(found) for name, found in seeds.items()} | {"in all": pool.size if pool else 0}
    return Found(best=hits, candidates=counts, timings_ms=timings)


def _lookup(snapshot: Snapshot, plan: Plan, *, scope: Scope, vectors: VectorShelves) -> Lookup:
    entity = None if plan.query.entity is None else entity_key(snapshot, scope, plan.query.entity)
    filter_ = plan.filter(entity)
    allowed = snapshot.matching(scope, filter_) if filter_.narrows or filter_.archived else None
    terms = look_up(snapshot, scope, plan)
    return Lookup(snapshot=snapshot, scope=scope, plan=plan, vectors=vectors, allowed=allowed, terms=terms)


def _best(look: Lookup, pool: Pool, seeds: Mapping[str, Mapping[int, float]], *, zone: ZoneInfo) -> tuple[Hit, ...]:
    plan = look.plan
    short = rank(
        pool, shares(pool, plan), seeds, most=max(_WEIGHED_LEAST, _WEIGHED * plan.query.limit),
        spread=asks_for_a_list(plan.query.text),
    )  # fmt: skip
    nodes = look.snapshot.nodes(look.scope, [each.key for each in short])
    weighed = [
        (weigh(each, nodes[each.key], now=plan.now), nodes[each.key])
        for each in short
        if each.key in nodes and not _is_over(nodes[each.key].expires_at, plan)
    ]
    weighed.sort(key=lambda pair: (-pair[0].score, -pair[0].key))
    if not plan.query.archived:
        weighed = _newest_first(look, weighed)
    return tuple(
        hit_of(node, score=each.score, shares=each.shares, terms=plan.terms, now=plan.now, zone=zone)
        for each, node in weighed[: plan.query.limit]
    )


def _newest_first(look: Lookup, weighed: list[tuple[Ranked, Node]]) -> list[tuple[Ranked, Node]]:
    """What was replaced gives its place to its live successor, and what is in conflict stands newest first."""
    snapshot, nodes = look.snapshot, {node.key: node for _, node in weighed}
    successors = {
        key: newest for key, node in nodes.items() if not node.is_live and (newest := snapshot.successor(key))
    }
    nodes |= snapshot.nodes(look.scope, [key for key in successors.values() if key not in nodes])
    hits = [each for each, _ in weighed]
    ordered = in_succession(hits, links=snapshot.succession(nodes), successors=successors)
    return [(each, nodes[each.key]) for each in ordered if each.key in nodes]


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
