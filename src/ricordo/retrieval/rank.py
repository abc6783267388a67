"""From signals to a ranking. Pure: the trace is made of the very numbers that make the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import to_ms
from ricordo.model import Node, Share
from ricordo.retrieval.pool import Pool

if TYPE_CHECKING:
    Floats = NDArray[np.float32]

_DAY_MS = 86_400_000
# How much of the score age may take away at most: an allergy said a year ago is as true as one said today.
_RECENCY_PART = 0.1
# For a question that asks for several things: what a turn loses for each better one of its session, in standard
# deviations of the scores.
_SAME_SESSION = 0.2
_SPREAD_DEPTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its score and the shares that add up to it."""

    key: int
    score: float
    shares: tuple[Share, ...]


def rank(pool: Pool, shares: Mapping[str, Floats], seeds: Mapping[str, Mapping[int, float]], *, most: int,
         spread: bool) -> list[Ranked]:  # fmt: skip
    """The best candidates by the sum of their shares; newer ones where that is equal.

    Args:
        seeds: each strategy's raw scores; a hit tells its rank among them.
        spread: prefer turns of different sessions.
    """
    totals = np.asarray(np.sum(list(shares.values()), axis=0), np.float64)
    keys = np.array([turn.key for turn in pool.turns[: pool.size]])
    order = np.lexsort((-keys, -totals))
    lost = _spread(pool, totals, order[:_SPREAD_DEPTH]) if spread else {}
    if lost:
        order = np.array(sorted(order, key=lambda place: (-(totals[place] - lost.get(int(place), 0.0)), -keys[place])))
    ranks = {strategy: _ranks(raw) for strategy, raw in seeds.items()}
    return [
        Ranked(
            key=int(keys[place]),
            score=float(totals[place]) - lost.get(int(place), 0.0),
            shares=_told(int(keys[place]), int(place), shares, seeds, ranks, lost.get(int(place), 0.0)),
        )
        for place in order[:most]
    ]


def _ranks(raw: Mapping[int, float]) -> dict[int, int]:
    return {key: rank for rank, key in enumerate(sorted(raw, key=lambda key: (-raw[key], -key)), start=1)}


def _told(key: int, place: int, shares: Mapping[str, Floats], seeds: Mapping[str, Mapping[int, float]],
          ranks: Mapping[str, Mapping[int, int]], lost: float) -> tuple[Share, ...]:  # fmt: skip
    """What a candidate got from each signal, and its place among the candidates of a strategy of the same name."""
    told = [
        Share(
            strategy=name,
            rank=ranks.get(name, {}).get(key),
            raw=seeds.get(name, {}).get(key, float(values[place])),
            share=float(values[place]),
        )
        for name, values in shares.items()
        if values[place] or key in seeds.get(name, {})
    ]
    return (*told, Share(strategy="same session", rank=None, raw=lost, share=-lost)) if lost else tuple(told)


def _spread(pool: Pool, totals: NDArray[np.float64], order: Sequence[int] | NDArray[np.intp]) -> dict[int, float]:
    """What each of the best loses to better ones of its session, chosen greedily."""
    step = _SAME_SESSION * float(np.std(totals))
    left, chosen = [int(place) for place in order], dict[int, int]()
    lost: dict[int, float] = {}
    while left:
        best = max(left, key=lambda place: totals[place] - step * chosen.get(pool.turns[place].session or -place, 0))
        left.remove(best)
        session = pool.turns[best].session or -best
        if chosen.get(session):
            lost[best] = step * chosen[session]
        chosen[session] = chosen.get(session, 0) + 1
    return lost


def weigh(candidate: Ranked, node: Node, *, now: int) -> Ranked:
    """Apply what is known of the memory itself: confidence, reinforcement exp(score x 0.2), and a little recency.

    Each factor's share is what it adds to the score or takes away, so that all shares still add up.
    """
    shares = list(candidate.shares)
    score = candidate.score
    for name, factor in factors(node, now=now).items():
        change = abs(score) * (factor - 1)
        shares.append(Share(strategy=name, rank=None, raw=factor, share=change))
        score += change
    return Ranked(key=candidate.key, score=score, shares=tuple(shares))


def factors(node: Node, *, now: int) -> dict[str, float]:
    """The factors of a node that differ from one."""
    days = max(0.0, (now - to_ms(node.reinforced_at or node.created_at)) / _DAY_MS)
    recency = 1 / (1 + days * 0.01)
    every = {
        "confidence": node.confidence,
        "reinforcement": exp(node.score * 0.2),
        "recency": 1 - _RECENCY_PART + _RECENCY_PART * recency,
    }
    return {name: factor for name, factor in every.items() if abs(factor - 1) > 1e-9}
