"""Ask, fuse, cut. One embedding of the question, then one read snapshot; no model, no writes.

A question has until its deadline. What is not done by then is left out and named; the answer is what there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Absence, Hit, Results, Scope, Trace
from ricordo.retrieval.candidates import STRATEGIES, Candidates, Lookup, Term, look_up
from ricordo.retrieval.explain_missing import absence_of
from ricordo.retrieval.fusion import fuse
from ricordo.retrieval.graph import FOLLOWING, Naming, namings
from ricordo.retrieval.hits import hit_of, told, warnings_of
from ricordo.retrieval.names import entity_key
from ricordo.retrieval.plan import Plan
from ricordo.retrieval.pool import Pool, gather, likeness
from ricordo.retrieval.rank import Ranked, Ranking, rank, rank_by_seeds, totals_of, weigh
from ricordo.retrieval.relevance import MEASURES, Judged, evidence_of, judge
from ricordo.retrieval.signals import WEIGHTS, asks_for_a_list, measure, session
from ricordo.retrieval.succession import in_succession, newest_of_equal
from ricordo.storage import Snapshot
from ricordo.storage.database.embeddings import VectorShelves
from ricordo.storage.values import Weights
from ricordo.trust import awaits_a_word

T = TypeVar("T")

# Of the best so many are read and weighed: expired ones and such as became one fall out on the way.
_WEIGHED = 2
_WEIGHED_LEAST = 30
# For a question nobody waits for.
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a snapshot gave: the best, also as keys (`shown`), how it came about, and what had no time left."""

    best: tuple[Hit, ...]
    candidates: Mapping[str, int]
    timings_ms: Mapping[str, float]
    degraded: tuple[str, ...]
    absence: Absence | None = None
    shown: tuple[int, ...] = ()
    under_floor: tuple[tuple[str, float, str], ...] = ()


@dataclass(slots=True)
class _Run:
    """One search as it goes: its stages with their times, until the deadline."""

    snapshot: Snapshot
    until: float
    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)

    def stage(self, name: str, work: Callable[[], T], otherwise: T) -> T:
        """The result of some work, or `otherwise` where the deadline came first."""
        started = time.perf_counter()
        try:
            return self.snapshot.until(self.until, work)
        except TimeoutError:
            self.degraded.append(f"{name}: no time left")
            return otherwise
        finally:
            self.timings_ms[name] = (time.perf_counter() - started) * 1_000


def find(
    snapshot: Snapshot, plan: Plan, *, scope: Scope, vectors: VectorShelves, zone: ZoneInfo, until: float, traced: bool
) -> Found:
    """Answer a plan from one snapshot.

    Args:
        until: the deadline on the clock of `time.monotonic`, seconds.
        traced: work out why each hit is here.

    Raises:
        NotFoundError: the question is limited to an entity nobody knows.
    """
    run = _Run(snapshot, until)
    look = _lookup(run, plan, scope=scope, vectors=vectors)
    seeds: dict[str, Candidates] = {
        name: run.stage(name, lambda use=use: use(look), {})  # type: ignore[misc]
        for name, use in STRATEGIES.items()
    }
    for name, follow in FOLLOWING.items():
        seeds[name] = run.stage(name, lambda follow=follow: follow(look, seeds), {})  # type: ignore[misc]
    pool = run.stage("reading", lambda: gather(look, seeds), None)
    started = time.perf_counter()
    short, ranking = _ranked(look, pool, seeds)
    weighed = _weighed(look, short)
    judged = _judged(run, look, pool, weighed) if plan.query.only_relevant else None
    best = (weighed if judged is None else list(judged.kept))[: plan.query.limit]
    hits = _hits(look, best, ranking if traced else None, zone=zone)
    absence = None if plan.query.why_not is None else absence_of(look, seeds, pool, ranking, weighed, judged)
    run.timings_ms["ranking"] = (time.perf_counter() - started) * 1_000
    counts = {name: len(found) for name, found in seeds.items()} | {"in all": pool.size if pool else 0}
    return Found(
        best=hits,
        candidates=counts,
        timings_ms=run.timings_ms,
        degraded=tuple(run.degraded),
        absence=absence,
        shown=tuple(each.key for each in best),
        under_floor=_under_floor(look, judged) if traced else (),
    )


def _judged(run: _Run, look: Lookup, pool: Pool | None, weighed: list[Ranked]) -> Judged:
    """What of the best is relevant; nothing where there was no time to tell."""
    floor = look.plan.floor
    if pool is None or floor is None:
        if weighed:
            run.degraded.append("relevance: no time left")
        return Judged(kept=(), relevance={}, reasons={})
    nodes = look.snapshot.nodes.by_key(look.scope, [each.key for each in weighed])
    return judge(weighed, evidence_of(look, pool), floor, nodes=nodes, query=look.plan.query)


def _under_floor(look: Lookup, judged: Judged | None) -> tuple[tuple[str, float, str], ...]:
    """(id, relevance, reason) of those of the best that fell out, in their order."""
    if judged is None or not judged.reasons:
        return ()
    nodes = look.snapshot.nodes.by_key(look.scope, list(judged.reasons))
    told = ((key, judged.relevance[key], judged.reasons[key]) for key in judged.relevance if key in judged.reasons)
    return tuple((nodes[key].id, relevance, reason) for key, relevance, reason in told if key in nodes)


def measured(snapshot: Snapshot, plan: Plan, *, scope: Scope, vectors: VectorShelves) -> NDArray[np.float32]:
    """What a question finds by each measure of relevance, float32[measures, candidates], of which there is one at
    least.
    """
    look = _lookup(_Run(snapshot, time.monotonic() + _PATIENCE_S), plan, scope=scope, vectors=vectors)
    seeds: dict[str, Candidates] = {name: use(look) for name, use in STRATEGIES.items()}
    pool = gather(look, seeds)
    return np.zeros((len(MEASURES), 1), np.float32) if pool is None else evidence_of(look, pool).values


def _lookup(run: _Run, plan: Plan, *, scope: Scope, vectors: VectorShelves) -> Lookup:
    snapshot = run.snapshot
    entity = None if plan.query.entity is None else entity_key(snapshot, scope, plan.query.entity)
    filter_ = plan.filter(entity)
    allowed = snapshot.nodes.matching(scope, filter_) if filter_.narrows or filter_.archived else None
    nothing: dict[str, Term] = {}
    terms = run.stage("terms", lambda: look_up(snapshot, scope, plan), nothing)
    nobody: tuple[Naming, ...] = ()
    named = run.stage("names", lambda: namings(snapshot, scope, plan.query.text), nobody)
    return Lookup(
        snapshot=snapshot, scope=scope, plan=plan, vectors=vectors, allowed=allowed, terms=terms, namings=named
    )


def _ranked(look: Lookup, pool: Pool | None, seeds: Mapping[str, Candidates]) -> tuple[list[Ranked], Ranking]:
    """By all signals; where there was no time to read what they need, by what the strategies said."""
    most = max(_WEIGHED_LEAST, _WEIGHED * look.plan.query.limit)
    if pool is None:
        return rank_by_seeds(seeds, most=most)
    alike = (lambda keys: likeness(look, keys)) if asks_for_a_list(look.plan.query.text) else None
    values = measure(pool, look.plan)
    shares = fuse(values, WEIGHTS, fusion=look.plan.weighing.fusion)
    totals = totals_of(shares, pool.size)
    if alike is None and "session" not in look.plan.weighing.without:
        values["session"], shares["session"] = session(pool, totals)
        totals += shares["session"]
    return rank(pool, values, shares, totals, most=most, alike=alike)


def _weighed(look: Lookup, short: list[Ranked]) -> list[Ranked]:
    """The best that are still in force, by their score with what is known of each memory, best first."""
    plan = look.plan
    known = look.snapshot.nodes.weights(look.scope, [each.key for each in short])
    alive = [each for each in short if each.key in known and not _is_over(known[each.key].expires_at, plan)]
    known = _warned(look, known)
    weighed = weigh(alive, [known[each.key] for each in alive], now=plan.now)
    if plan.query.archived:
        return weighed
    return _newest_of_equal(look.snapshot, _newest_first(look.snapshot, weighed, known))


def _warned(look: Lookup, known: dict[int, Weights]) -> dict[int, Weights]:
    """What is known of memories; of what tools and pages say also whether it reads like an order."""
    foreign = [key for key, each in known.items() if awaits_a_word(each.trust)]
    if not foreign:
        return known
    nodes = look.snapshot.nodes.by_key(look.scope, foreign)
    return known | {key: known[key]._replace(reads_like_an_order=True) for key in nodes if warnings_of(nodes[key])}


def _newest_of_equal(snapshot: Snapshot, weighed: list[Ranked]) -> list[Ranked]:
    """Of facts that say the same about the same, in other letters perhaps, the newest alone."""
    lines = snapshot.graph.lines([each.key for each in weighed])
    said = {key: (f"{subjects}|{line}", since) for key, subjects, line, since in lines}
    return newest_of_equal(weighed, said=said) if said else weighed


def _newest_first(snapshot: Snapshot, weighed: list[Ranked], known: Mapping[int, Weights]) -> list[Ranked]:
    """What was replaced gives its place to its live successor, and what is in conflict stands newest first."""
    if not snapshot.graph.kinds().versions:
        return weighed
    closed = [each.key for each in weighed if not known[each.key].is_live]
    successors = {key: newest for key in closed if (newest := snapshot.nodes.successor(key))}
    links = snapshot.nodes.succession([*(each.key for each in weighed), *successors.values()])
    return in_succession(weighed, links=links, successors=successors) if links or successors else weighed


def _is_over(expires_at: int | None, plan: Plan) -> bool:
    return expires_at is not None and expires_at <= plan.now and not plan.query.archived


def _hits(look: Lookup, best: list[Ranked], ranking: Ranking | None, *, zone: ZoneInfo) -> tuple[Hit, ...]:
    nodes = told(look.snapshot, look.snapshot.nodes.by_key(look.scope, [each.key for each in best]))
    derived = [key for key, node in nodes.items() if node.type != "episodic"]
    evidence = look.snapshot.runs.evidence(look.scope, derived) if derived else {}
    return tuple(
        hit_of(
            nodes[each.key],
            score=each.score,
            shares=ranking.told(each) if ranking else (),
            terms=look.plan.terms,
            now=look.plan.now,
            zone=zone,
            evidence=evidence.get(each.key, ()),
        )
        for each in best
        if each.key in nodes
    )


def results_of(found: Found, plan: Plan, *, embedding_ms: float, degraded: tuple[str, ...], traced: bool) -> Results:
    """The answer as the caller gets it; why each hit is here only where it was asked for."""
    degraded = degraded + found.degraded
    if not traced:
        return Results(hits=found.best, intent=plan.intent, complexity=plan.complexity, degraded=degraded)
    trace = Trace(
        terms=plan.terms,
        ignored_terms=plan.ignored,
        interval=plan.interval.text if plan.interval else "",
        candidates=found.candidates,
        timings_ms={"embedding": embedding_ms, **found.timings_ms},
        hits=tuple((hit.id, hit.why) for hit in found.best),
        absence=found.absence,
        under_floor=found.under_floor,
    )
    return Results(hits=found.best, intent=plan.intent, complexity=plan.complexity, degraded=degraded, trace=trace)
