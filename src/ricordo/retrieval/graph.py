"""What no word and no vector finds: what is about whom the question names, what led to what, what helped before.

Each is bounded: an entity may have a hundred thousand facts, and everything may have caused everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from math import exp
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ricordo.text import index_terms
from ricordo.text.kinship import relations_in, stems_of
from ricordo.text.names import meant, runs_in

if TYPE_CHECKING:
    from ricordo.model import Scope
    from ricordo.retrieval.candidates import Candidates, Lookup
    from ricordo.storage import Snapshot

_NAMED_CHARS = 2_000
_ENTITIES = 8
_ENTITY_WALK = 100
_NEAR = 40

_SEEDS = 6
_DEPTHS = {"simple": 2, "complex": 4}
_CAUSAL_EDGES = 200
_WALKED_MOST = 150
_LINKED = 24
_FADES = 0.5
_ASSOCIATES = 5


class Naming(NamedTuple):
    """How a question names somebody: the index terms of the words it uses, and the keys of whom they mean."""

    terms: frozenset[str]
    entities: tuple[int, ...]


def namings(snapshot: Snapshot, scope: Scope, question: str) -> tuple[Naming, ...]:
    """Whom a question names, in any form or as "my wife", with those that were merged into them."""
    if not snapshot.graph.kinds().names:  # who is the owner's wife has a name, too
        return ()
    text = question[:_NAMED_CHARS]
    found: dict[frozenset[str], dict[int, None]] = {}
    if known := snapshot.graph.known_names(scope, text):
        wholes = {bearer.entity: bearer.whole for bearers in known.values() for bearer in bearers}
        for run in runs_in(text):
            if those := [wholes[key] for key in meant(run, known, text)]:
                found.setdefault(frozenset(index_terms(run.written)), {}).update(dict.fromkeys(those))
    for predicate in relations_in(text):
        if those := [entity.key for entity in snapshot.entities.related_as(scope, predicate)]:
            terms = frozenset(term for word in stems_of(predicate) for term in index_terms(word))
            found.setdefault(terms, {}).update(dict.fromkeys(those))
    return tuple(
        Naming(terms, tuple(snapshot.graph.entity_keys(list(those)[:_ENTITIES])))
        for terms, those in islice(found.items(), _ENTITIES)
    )


def entity(look: Lookup) -> Candidates:
    """Of the latest memories about those the question names, the ones held most true and most useful."""
    if look.plan.query.archived:
        return {}
    worth: dict[int, float] = {}
    for key in look.entities:
        near = look.snapshot.graph.near_entity(look.scope, key, walk=_ENTITY_WALK)
        for each in near:
            if each.shelf in look.plan.shelves:
                worth[each.key] = each.confidence * exp(0.2 * each.score)
    best = sorted(_allowed(look, worth), key=lambda key: (-worth[key], -key))[:_NEAR]
    return {key: worth[key] for key in best}


def causal(look: Lookup, seeds: Mapping[str, Candidates]) -> Candidates:
    """What led to the best candidates and what they led to, two steps away, four where the question is complex."""
    if not look.snapshot.graph.kinds().causal:
        return {}
    front = _best(seeds)
    walked, found = set(front), dict[int, float]()
    for _ in range(_DEPTHS[look.plan.complexity]):
        if not front or len(walked) >= _WALKED_MOST:
            break
        steps = look.snapshot.graph.causes_and_effects(look.scope, front, most=_CAUSAL_EDGES)
        reached: dict[int, float] = {}
        for step in steps:
            strength = _FADES * step.weight * front[step.origin]
            reached[step.key] = max(strength, reached.get(step.key, 0.0))
            if step.shelf in look.plan.shelves:
                found[step.key] = max(strength, found.get(step.key, 0.0))
        front = {key: strength for key, strength in reached.items() if key not in walked}
        walked |= front.keys()
    return _strongest(look, found)


def associates(look: Lookup, seeds: Mapping[str, Candidates]) -> Candidates:
    """What proved useful together with the best candidates."""
    if not look.snapshot.graph.kinds().associates:
        return {}
    best, found = _best(seeds), dict[int, float]()
    for step in look.snapshot.graph.associates(look.scope, best, each=_ASSOCIATES):
        if step.shelf in look.plan.shelves:
            found[step.key] = max(step.weight * best[step.origin], found.get(step.key, 0.0))
    return _strongest(look, found)


def _best(seeds: Mapping[str, Candidates]) -> dict[int, float]:
    """The first few of each strategy, the first with a strength of 1, and less for each after it."""
    best: dict[int, float] = {}
    for found in seeds.values():
        for place, key in enumerate(islice(found, _SEEDS)):
            best[key] = max(1 - place / _SEEDS, best.get(key, 0.0))
    return best


def _strongest(look: Lookup, found: Mapping[int, float]) -> Candidates:
    best = sorted(_allowed(look, found), key=lambda key: (-found[key], -key))[:_LINKED]
    return {key: found[key] for key in best}


def _allowed(look: Lookup, keys: Iterable[int]) -> list[int]:
    """Those of some keys that the conditions of the question let through, and not where the archive is asked."""
    wanted = list(keys)
    if look.allowed is None or not wanted:
        return wanted
    return [int(key) for key in np.array(wanted, np.int64)[np.isin(wanted, look.allowed)]]


FOLLOWING: Mapping[str, Callable[[Lookup, Mapping[str, Candidates]], Candidates]] = {
    "causal": causal,
    "associates": associates,
}
"""Strategies that go on from what the others found."""
