"""Search of a store as it was at a time.

A search may return exactly the memories of that time, with the contents they had. They are ranked by two of today's
signals: the share of the question's information that a memory holds, and the nearness of its meaning.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from ricordo.clock import to_ms
from ricordo.model import Absence, Node, Scope, Share
from ricordo.retrieval.hits import hit_of
from ricordo.retrieval.query import entity_key
from ricordo.storage import PastSnapshot

if TYPE_CHECKING:
    from ricordo.retrieval.query import Plan
    from ricordo.retrieval.search import Found

_NEAREST = 80
_IN_TIME = 40


def find(snapshot: PastSnapshot, plan: Plan, *, scope: Scope, zone: ZoneInfo) -> Found:
    """Answer a plan from the past.

    Raises:
        NotFoundError: the question is limited to an entity that was not known then.
    """
    from ricordo.retrieval.search import Found

    started = time.perf_counter()
    entity = None if plan.query.entity is None else entity_key(snapshot, scope, plan.query.entity)
    allowed = snapshot.nodes.matching(scope, plan.filter(entity))
    within = set(allowed.tolist())
    work: dict[str, Callable[[], dict[int, float]]] = {
        "words": lambda: _words(snapshot, scope, plan, within),
        "meaning": lambda: snapshot.similar(
            scope, plan.question_vectors, among=allowed, shelves=plan.shelves, most=_NEAREST
        ),
        "date": lambda: _date(snapshot, scope, plan, within),
    }
    signals = {name: measure() for name, measure in work.items() if name not in plan.weighing.without}
    ranked = _ranked(snapshot, signals, plan, scope=scope)
    best = tuple(
        hit_of(each.node, score=each.score, shares=each.shares, terms=plan.terms, now=plan.now, zone=zone)
        for each in ranked[: plan.query.limit]
    )
    return Found(
        best=best,
        candidates={name: len(found) for name, found in signals.items()},
        timings_ms={"the past": (time.perf_counter() - started) * 1_000},
        degraded=(),
        absence=None if plan.query.why_not is None else _absence(snapshot, plan, ranked, scope=scope, within=within),
    )


def _words(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """Return for each memory the share of the question's information that it held."""
    held = {term: snapshot.holders(scope, term) & allowed for term in plan.terms}
    idf = {term: log(1 + len(allowed) / (len(keys) + 0.5)) for term, keys in held.items()}
    total = sum(idf.values())
    found: dict[int, float] = {}
    for term, keys in held.items():
        for key in keys:
            found[key] = found.get(key, 0.0) + idf[term] / total
    return found


def _date(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """Return what happened in the period the question names."""
    if plan.interval is None:
        return {}
    start, end = plan.interval.start, plan.interval.end
    within = snapshot.nodes.within(scope, plan.filter(None), after=start, before=end, most=_IN_TIME)
    return dict.fromkeys(set(within.tolist()) & allowed, 1.0)


class _Ranked(NamedTuple):
    """A memory of that time with its score and the parts of it."""

    node: Node
    score: float
    shares: tuple[Share, ...]


def _ranked(
    snapshot: PastSnapshot, signals: Mapping[str, Mapping[int, float]], plan: Plan, *, scope: Scope
) -> list[_Ranked]:
    """Return everything that any signal found, best first."""
    from ricordo.retrieval.signals import WEIGHTS

    shares: dict[int, list[Share]] = {}
    for name, found in signals.items():
        order = sorted(found.values())
        for key, raw in found.items():
            place = 1 + len(order) - bisect_right(order, raw)
            shares.setdefault(key, []).append(Share(strategy=name, rank=place, raw=raw, share=WEIGHTS[name] * raw))
    nodes = snapshot.nodes.by_key(scope, shares)
    ranked = [
        _weighed(nodes[key], shares[key]) for key in shares if key in nodes and not _is_over(nodes[key], snapshot, plan)
    ]
    return sorted(ranked, key=lambda each: (-each.score, -each.node.key))


def _weighed(node: Node, shares: Sequence[Share]) -> _Ranked:
    score = sum(each.share for each in shares)
    if node.confidence == 1:
        return _Ranked(node, score, tuple(shares))
    lost = Share(strategy="confidence", rank=None, raw=node.confidence, share=score * (node.confidence - 1))
    return _Ranked(node, score + lost.share, (*shares, lost))


def _absence(
    snapshot: PastSnapshot, plan: Plan, ranked: Sequence[_Ranked], *, scope: Scope, within: Container[int]
) -> Absence:
    """Return where the memory that `why_not` names ranked at that time, or why it is missing."""
    asked = plan.query.why_not or ""
    node = snapshot.nodes.get(scope, asked)
    if node is None:
        return Absence(id=asked, stage="unknown", detail="there was no such memory then")
    if node.key not in within or _is_over(node, snapshot, plan):
        detail = "it was closed or had expired then, or a condition of the question leaves it out"
        return Absence(id=node.id, stage="left out", detail=detail)
    place = next((place for place, each in enumerate(ranked) if each.node.key == node.key), None)
    if place is None:
        return Absence(id=node.id, stage="not found", detail="it shares no word with the question, nor its meaning")
    return Absence(
        id=node.id,
        stage="found" if place < plan.query.limit else "ranked below",
        rank=place + 1,
        detail=f"{place + 1} of {len(ranked)} candidates",
        shares=ranked[place].shares,
    )


def _is_over(node: Node, snapshot: PastSnapshot, plan: Plan) -> bool:
    """Return whether it had expired by then."""
    return node.expires_at is not None and to_ms(node.expires_at) <= snapshot.at and not plan.query.archived
