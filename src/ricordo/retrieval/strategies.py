"""Ways to find candidates. Each is a function of a snapshot and a plan that gives a raw score for each candidate.

A new one is a function and an entry in `STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Scope
from ricordo.retrieval.plan import Plan
from ricordo.store import Snapshot
from ricordo.store.sqlite.embeddings import VectorShelves
from ricordo.words import index_terms

if TYPE_CHECKING:
    Keys = NDArray[np.int64]

# A word in more than one memory of a hundred (and at least this many) tells little and costs much: 46 ms a query at a
# million memories with words of up to 5 %, 11 ms with 1 %.
_COMMON_SHARE = 0.01
_COMMON_LEAST = 2_000
_CANDIDATES = 200

# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), their usual values.
_K1 = 1.2
_B = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What a strategy may use: the store at one moment, who asks, and which nodes are allowed (None: all)."""

    snapshot: Snapshot
    scope: Scope
    plan: Plan
    vectors: VectorShelves
    allowed: Keys | None


Candidates = dict[int, float]


def words(look: Lookup) -> Candidates:
    """BM25 over the terms of the question, with the statistics of what this caller can see and nobody else's."""
    total, chars = look.snapshot.shelf_counts(look.scope, look.plan.shelves)
    weights = _term_weights(look, total)
    keys = _most_promising(look, weights)
    average = max(1.0, chars / max(1, total))
    idf = {term: weight for term, (weight, _) in weights.items()}
    texts = look.snapshot.texts(look.scope, keys)
    scored = {key: bm25(text, idf, average) for key, text in texts.items()}
    return {key: score for key, score in scored.items() if score > 0}


def _term_weights(look: Lookup, total: int) -> dict[str, tuple[float, Keys]]:
    """For each term its inverse document frequency and the nodes that hold it, cut off where it is too common."""
    most = max(_COMMON_LEAST, int(total * _COMMON_SHARE))
    found = {}
    for term in look.plan.terms:
        keys = look.snapshot.postings(
            look.scope, look.plan.shelves, term, archived=look.plan.query.archived, most=most + 1
        )
        if len(keys):
            found[term] = (inverse_frequency(len(keys), total), keys)
    rare = {term: entry for term, entry in found.items() if len(entry[1]) <= most}
    return rare or found


def inverse_frequency(count: int, total: int) -> float:
    """How much a term tells: log(1 + (n - df + 0.5) / (df + 0.5)), never negative.

    Source: the form Lucene uses for BM25.
    """
    return log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _most_promising(look: Lookup, weights: Mapping[str, tuple[float, Keys]]) -> list[int]:
    """The nodes that hold the most telling terms, at most 200; newer ones where that is equal."""
    if not weights:
        return []
    keys = np.concatenate([keys for _, keys in weights.values()])
    gains = np.concatenate([np.full(len(keys), weight) for weight, keys in weights.values()])
    distinct, where = np.unique(keys, return_inverse=True)
    sums = np.bincount(where, weights=gains)
    if look.allowed is not None:
        kept = np.isin(distinct, look.allowed)
        distinct, sums = distinct[kept], sums[kept]
    order = np.lexsort((-distinct, -sums))[:_CANDIDATES]
    return [int(key) for key in distinct[order]]


def bm25(text: str, idf: Mapping[str, float], average_chars: float) -> float:
    """How well a text's words match. Length counts in characters, so that no count of words need be stored."""
    terms = _terms(text)
    length = _K1 * (1 - _B + _B * len(text) / average_chars)
    score = 0.0
    for term, weight in idf.items():
        count = terms.count(term)
        score += weight * count * (_K1 + 1) / (count + length)
    return score


@lru_cache(maxsize=20_000)
def _terms(text: str) -> tuple[str, ...]:
    """Texts come up as candidates again and again, and folding is the costliest part of scoring them."""
    return tuple(index_terms(text))


def meaning(look: Lookup) -> Candidates:
    """The nearest vectors. While the store changes its model, both models answer and a node's better rank counts."""
    found: Candidates = {}
    spaces = look.snapshot.visible(look.scope)
    for model, vector in look.plan.vectors.items():
        keys, scores = look.vectors.nearest(
            look.snapshot, vector, model=model, spaces=spaces, shelves=look.plan.shelves, limit=_CANDIDATES,
            among=look.allowed,
        )  # fmt: skip
        for key, score in zip(keys.tolist(), scores.tolist(), strict=True):
            if score > found.get(key, -1.0):
                found[key] = score
    return found


def time(look: Lookup) -> Candidates:
    """What happened in the span the question names, the latest of it."""
    interval = look.plan.interval
    if interval is None:
        return {}
    within = look.snapshot.within(
        look.scope, look.plan.filter(None), after=interval.start, before=interval.end, most=_CANDIDATES
    )
    if look.allowed is not None:
        within = within[np.isin(within, look.allowed)]
    return dict.fromkeys(within.tolist(), 1.0)


STRATEGIES: Mapping[str, Callable[[Lookup], Candidates]] = {"words": words, "meaning": meaning, "time": time}
