"""Where to look: each strategy is a function of a snapshot and a plan that gives candidates, best first.

They are cheap and generous; what is costly is worked out for the candidates alone (`pool`, `signals`). A new strategy
is a function and an entry in `STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Scope
from ricordo.retrieval.graph import Naming, entity
from ricordo.retrieval.plan import Plan
from ricordo.storage import Snapshot
from ricordo.storage.database.embeddings import VectorShelves
from ricordo.storage.database.vectors.keys import runs_of

if TYPE_CHECKING:
    Keys = NDArray[np.int64]

# A word in more than one memory of a hundred (and at least this many) tells little and costs much: 46 ms a query at a
# million memories with words of up to 5 %, 11 ms with 1 %.
_COMMON_SHARE = 0.01
_COMMON_LEAST = 1_000

# How many each strategy gives at most. Of words 50 find what 80 do: those are the ones whose neighbours are looked at.
_BY_WORDS = 50
_BY_MEANING = 80
_IN_TIME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the question: how much it tells, and the memories that hold it (cut off where it is too common)."""

    idf: float
    keys: Keys
    is_common: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What a strategy may use: the store at one moment, who asks, and which nodes are allowed (None: all).

    `namings` are how the question names somebody, and whom.
    """

    snapshot: Snapshot
    scope: Scope
    plan: Plan
    vectors: VectorShelves
    allowed: Keys | None
    terms: Mapping[str, Term]
    namings: tuple[Naming, ...] = ()

    @property
    def entities(self) -> tuple[int, ...]:
        """The keys of those the question names."""
        return tuple(dict.fromkeys(key for naming in self.namings for key in naming.entities))


Candidates = dict[int, float]


def look_up(snapshot: Snapshot, scope: Scope, plan: Plan) -> dict[str, Term]:
    """The terms of the question with the statistics of what this caller can see, and nobody else's."""
    total, _ = snapshot.statistics.size(scope, plan.shelves)
    most = max(_COMMON_LEAST, int(total * _COMMON_SHARE))
    archived = plan.query.archived
    postings = snapshot.postings(scope, plan.shelves, plan.terms, archived=archived, most=most + 1)
    return {
        term: Term(idf=inverse_frequency(len(keys), total), keys=keys, is_common=len(keys) > most)
        for term, keys in zip(plan.terms, postings, strict=True)
    }


def inverse_frequency(count: int, total: int) -> float:
    """How much a term tells: log(1 + n / (df + 0.5))."""
    return log(1 + max(total, count, 1) / (count + 0.5))


def words(look: Lookup) -> Candidates:
    """The memories that hold the most telling terms; newer ones where that is equal."""
    held = [term for term in look.terms.values() if len(term.keys)]
    used = [term for term in held if not term.is_common] or held
    if not used:
        return {}
    keys = np.concatenate([term.keys for term in used])
    order = keys.argsort(kind="stable")  # a merge of sorted runs
    ordered = keys.take(order)
    begins = runs_of(ordered)
    distinct = ordered.take(begins)
    each = np.array([term.idf for term in used]).repeat([len(term.keys) for term in used])
    sums = np.add.reduceat(each.take(order), begins)
    if look.allowed is not None:
        kept = np.isin(distinct, look.allowed)
        distinct, sums = distinct[kept], sums[kept]
    best = (-sums[::-1]).argsort(kind="stable")[:_BY_WORDS]  # from the newest on
    places = len(sums) - 1 - best
    return dict(zip(distinct[places].tolist(), sums[places].tolist(), strict=True))


def meaning(look: Lookup) -> Candidates:
    """The nearest vectors. While the store changes its model, both answer and a node's better score counts."""
    found: Candidates = {}
    spaces = look.snapshot.visible(look.scope)
    for model, question in look.plan.vectors.items():
        if question.vector is None or look.plan.query.archived:
            continue
        keys, scores = look.vectors.nearest(
            look.snapshot,
            question.vector,
            model=model,
            spaces=spaces,
            shelves=look.plan.shelves,
            limit=_BY_MEANING,
            among=look.allowed,
        )
        nearest = dict(zip(keys.tolist(), scores.tolist(), strict=True))
        found |= {key: max(score, found.get(key, score)) for key, score in nearest.items()} if found else nearest
    return found


def time(look: Lookup) -> Candidates:
    """What happened in the span the question names, the latest of it."""
    interval = look.plan.interval
    if interval is None:
        return {}
    within = look.snapshot.nodes.within(
        look.scope, look.plan.filter(None), after=interval.start, before=interval.end, most=_IN_TIME
    )
    if look.allowed is not None:
        within = within[np.isin(within, look.allowed)]
    return dict.fromkeys(within.tolist(), 1.0)


STRATEGIES: Mapping[str, Callable[[Lookup], Candidates]] = {
    "words": words,
    "meaning": meaning,
    "time": time,
    "entity": entity,
}
