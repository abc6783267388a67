"""Ranking: fusion of signals, factors, diversity, and newer versions before older ones. Pure.

The trace consists of the same numbers as the score.

People tell a change in words of their own: "I climb on Tuesdays", then "tore a pulley, so I swim laps now". Nothing
marks the older fact as outdated, and it holds more words of the question. Whether the later fact answers instead is
estimated by a logistic regression on the question and both facts, fitted by tools/fit_present_answer.py: once with
vectors, and once for words alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, repeat
from math import exp, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Fusion, Share
from ricordo.retrieval.signals import FITTED, Pool
from ricordo.storage.values import Weights
from ricordo.text import change
from ricordo.text.analyzer import index_terms
from ricordo.text.passages import TOOL
from ricordo.trust import UNAPPROVED

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]

_DAY_MS = 86_400_000
# The maximum share of the score that age can take away: an allergy stated a year ago is as true as a new one.
_RECENCY_PART = 0.1
# For questions that ask for several things: the penalty of a turn for each better turn of its session, in standard
# deviations of the scores.
_SAME_SESSION = 0.2
# Likewise the penalty for the most similar better turn, times their cosine.
_SAID_ALREADY = 0.2
_SPREAD_DEPTH = 40
# So many of the best are compared word by word, to find those that repeat a better one.
_DISTINCT_AMONG = 200
# Statements of the web and of tools need a third more evidence than those of the user.
_UNVOUCHED = 0.75
# Facts about somebody else than the question is about.
_OF_ANOTHER = 0.8
# Facts that only mention the person a question names. At an equal match, scores differ by a few hundredths.
_ONLY_MENTIONS = 0.95
# A factor this close to 1 is not shown in a trace.
_NEGLIGIBLE = 1e-9
COMPARED_WITH_BEST = 6
"""Number of top hits of which a later fact may answer instead of the best one."""
INSTEAD_LEAST: float = FITTED["instead"]["least"]
"""The estimate from which a later fact takes the first place."""
_LONG = 20  # words of a statement


FACTORS = ("confidence", "reinforcement", "trust", "recency", "subject", "order")
"""Properties of a memory that multiply the sum of its signals, in the order of application."""


APART = -1
"""The place of a memory that is shown for another reason than its signals, and is in no pool."""


class Ranked(NamedTuple):
    """A candidate: its position in the pool, its score, and how the score was computed from the signals.

    `factors` multiply the score, in the order of `FACTORS`. `moved` is what it gained or lost by changing places with
    another version of the same memory.
    """

    key: int
    place: int
    score: float
    factors: tuple[float, ...] = ()
    moved: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The reasons for the order of the candidates of a pool.

    Attributes:
        values: the measurement of each signal for each candidate, float32[size].
        shares: its contribution to the score, float32[size].
        totals: the sums of the shares, float64[size], before penalties.
        lost: by position, the penalty for better turns that are in the same session or similar.
    """

    values: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    totals: NDArray[np.float64]
    lost: Mapping[int, float]

    def explain(self, candidate: Ranked) -> tuple[Share, ...]:
        """Return the parts of a candidate's score: value, share and rank by signal, the penalty, the factors."""
        return self.explain_all([candidate])[0]

    def explain_all(self, candidates: Sequence[Ranked]) -> list[tuple[Share, ...]]:
        """Return what `explain` does for each of several candidates, in a fraction of the time."""
        ranked = [candidate for candidate in candidates if candidate.place != APART]
        shares = dict(zip(ranked, self._by_signal(ranked), strict=True))
        return [self._with_factors(each, shares.get(each, [])) for each in candidates]

    def _by_signal(self, candidates: Sequence[Ranked]) -> list[list[Share]]:
        if not candidates:
            return []
        places = np.array([candidate.place for candidate in candidates], np.intp)
        matrix = np.stack(list(self.values.values()))
        values = matrix[:, places]
        above = (matrix[:, np.newaxis] > values[:, :, np.newaxis]).sum(axis=2).T.tolist()
        shares = np.stack([self.shares[name][places] for name in self.values]).T.tolist()
        return [
            [
                Share(strategy=name, rank=1 + better if raw > 0 else None, raw=raw, share=share)
                for name, raw, better, share in zip(self.values, *each, strict=True)
                if share
            ]
            for each in zip(values.T.tolist(), above, shares, strict=True)
        ]

    def _with_factors(self, candidate: Ranked, shares: list[Share]) -> tuple[Share, ...]:
        place = candidate.place
        score = 0.0 if place == APART else float(self.totals[place])
        if lost := self.lost.get(place):
            shares.append(Share(strategy="said already", rank=None, raw=lost, share=-lost))
            score -= lost
        for name, factor in zip(FACTORS, candidate.factors, strict=False):  # empty before weighing
            if abs(factor - 1) > _NEGLIGIBLE:
                shares.append(Share(strategy=name, rank=None, raw=factor, share=abs(score) * (factor - 1)))
            score += abs(score) * (factor - 1)
        if candidate.moved:
            shares.append(Share(strategy="newer", rank=None, raw=candidate.moved, share=candidate.moved))
        return tuple(shares)


def rank(
    pool: Pool,
    values: Mapping[str, Floats],
    shares: Mapping[str, Floats],
    totals: NDArray[np.float64],
    places: NDArray[np.intp],
    *,
    most: int,
    alike: Callable[[NDArray[np.intp]], Floats] | None,
    repeats: bool,
) -> tuple[list[Ranked], Ranking]:
    """Return the best candidates by the sum of their shares, newer first in a tie, and the reasons.

    Args:
        values: what each signal measured, float32[size]; used for the trace.
        shares: the contribution of each signal to the score, float32[size].
        totals: the sums of the shares, float64[size].
        places: positions of the passages that turns rank by, ascending.
        alike: returns the similarity of candidates at the given positions, float32[n, n], not below 0. If given, turns
            from different sessions with different content are preferred.
        repeats: whether turns that repeat a better one of the same speaker are wanted, even if others are left out.
    """
    order = places[_from_best(totals[places])]
    best_few = order[:_SPREAD_DEPTH]
    lost = _spread(pool, totals, best_few, alike(best_few)) if alike is not None else {}
    scores = totals
    if lost:
        scores = totals.copy()
        scores[list(lost)] -= list(lost.values())
        order = places[_from_best(scores[places])]
    best = (order if repeats else _distinct_first(pool, order))[:most]
    columns = pool.turns.keys[best].tolist(), best.tolist(), scores[best].tolist()
    ranked = list(map(Ranked._make, zip(*columns, repeat(()), repeat(0.0))))
    return ranked, Ranking(values=values, shares=shares, totals=totals, lost=lost)


def _from_best(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return positions by descending score, newer first in a tie. Candidates are ascending by key."""
    order: NDArray[np.intp] = len(scores) - 1 - (-scores[::-1]).argsort(kind="stable")
    return order


def _distinct_first(pool: Pool, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the best candidates with turns that repeat the words of a better one of the same speaker after others."""
    turns, seen = pool.turns, set[tuple[int, bytes]]()
    first, again = list[int](), list[int]()
    for place in order[:_DISTINCT_AMONG].tolist():
        start, size = int(turns.starts[place]), int(turns.sizes[place])
        said = int(turns.speakers[place]), turns.codes[start : start + size].tobytes()
        is_repeat = size > 0 and turns.sessions[place] >= 0 and said in seen
        (again if is_repeat else first).append(place)
        seen.add(said)
    return np.concatenate([np.array([*first, *again], np.intp), order[_DISTINCT_AMONG:]])


def totals_of(shares: Mapping[str, Floats], size: int) -> NDArray[np.float64]:
    """Return the sums of the shares, float64[size]."""
    totals = np.zeros(size, np.float64)
    for share in shares.values():
        totals += share
    return totals


_AHEAD = 1.0001  # with weight 1, the best-rated memory comes before one with an equal score, however sums are rounded


def reranked(
    pool: Pool, totals: NDArray[np.float64], places: NDArray[np.intp], ratings: Mapping[int, float], *, weight: float
) -> tuple[Floats, Floats]:
    """Return the reranker's ratings scaled from 0 for the worst to 1 for the best, and their shares of the score.

    Rerankers use different scales. Ratings are scaled to the score range of the rated memories, times the reranker's
    weight. Memories that were not rated get nothing.

    Args:
        totals: the sums of all other shares, float64[size].
        places: positions of the passages that turns rank by.
        ratings: at least two different ratings, by the keys of memories.
    """
    keys = pool.turns.keys[: pool.size].tolist()
    read = [place for place in places.tolist() if keys[place] in ratings]
    values, shares = np.zeros(pool.size, np.float32), np.zeros(pool.size, np.float32)
    if read:
        given = np.array([ratings[keys[place]] for place in read])
        lowest, highest = min(ratings.values()), max(ratings.values())
        values[read] = (given - lowest) / (highest - lowest)
        shares[read] = values[read] * weight * (np.ptp(totals[read]) or 1.0) * _AHEAD
    return values, shares


def rank_by_seeds(seeds: Mapping[str, Mapping[int, float]], *, most: int) -> tuple[list[Ranked], Ranking]:
    """Rank by the results of the strategies, each divided by its maximum, if there was no time for signals."""
    keys = np.array(sorted({key for found in seeds.values() for key in found}), np.int64)
    raw = {
        name: np.array([found.get(int(key), 0.0) for key in keys], np.float32)
        for name, found in seeds.items()
        if found and max(found.values()) > 0
    }
    by_strategy = {name: np.asarray(values / values.max() / len(seeds), np.float32) for name, values in raw.items()}
    totals = totals_of(by_strategy, len(keys))
    order = np.lexsort((-keys, -totals))[:most]
    best = [Ranked(key=int(keys[place]), place=int(place), score=float(totals[place])) for place in order]
    return best, Ranking(values=raw, shares=by_strategy, totals=totals, lost={})


def _spread(pool: Pool, totals: NDArray[np.float64], order: NDArray[np.intp], alike: Floats) -> dict[int, float]:
    """Return the penalties of the best turns, for better ones of the same session and for the most similar better one,
    chosen greedily. The passages of a document share a session, but each says something else.
    """
    deviation = float(np.std(totals))
    is_tool = pool.turns.flags[order] & TOOL != 0
    sessions = np.where(is_tool, -pool.turns.keys[order], pool.turns.sessions[order])
    left = totals[order].copy()
    penalties = np.zeros(len(order))
    nearest = np.zeros(len(order))
    lost: dict[int, float] = {}
    for _ in order:
        losses = deviation * (penalties + _SAID_ALREADY * nearest)
        best = int(np.argmax(left - losses))
        if losses[best]:
            lost[int(order[best])] = float(losses[best])
        left[best] = -np.inf
        penalties[sessions == sessions[best]] += _SAME_SESSION
        nearest = np.maximum(nearest, alike[best])
    return lost


def weigh(
    candidates: Sequence[Ranked],
    known: Sequence[Weights],
    *,
    now: int,
    of_another: Set[int] = frozenset(),
    only_mentioning: Set[int] = frozenset(),
) -> list[Ranked]:
    """Apply the properties of each memory. Return the best first, newer first in a tie.

    Args:
        of_another: the keys of facts about somebody else than the question is about.
        only_mentioning: the keys of facts that only mention the person a question names.
    """
    weighed = []
    for candidate, memory in zip(candidates, known, strict=True):
        subject = _ONLY_MENTIONS if candidate.key in only_mentioning else 1.0
        subject = _OF_ANOTHER if candidate.key in of_another else subject
        factors, score = factors_of(memory, now=now, subject=subject), candidate.score
        for factor in factors:
            if factor != 1:  # true for most
                score += abs(score) * (factor - 1)
        weighed.append(Ranked(candidate.key, candidate.place, score, factors))
    if any(each.reads_like_an_order for each in known):
        return _below_all(weighed, [each.reads_like_an_order for each in known])
    return _best_first(weighed)


def _best_first(weighed: Iterable[Ranked]) -> list[Ranked]:
    return sorted(weighed, key=lambda each: (each.score, each.key), reverse=True)


def _below_all(weighed: Sequence[Ranked], is_order: Sequence[bool]) -> list[Ranked]:
    """Return the best first, then instructions, with one more factor. Attackers can repeat the words of a question."""
    least = min((each.score for each, order in zip(weighed, is_order, strict=True) if not order), default=inf)
    orders, others = list[Ranked](), list[Ranked]()
    for each, order in zip(weighed, is_order, strict=True):
        is_above = order and each.score > least and each.score != 0
        factor = 1 + (least - each.score) / abs(each.score) if is_above else 1.0
        score = each.score + abs(each.score) * (factor - 1)
        (orders if order else others).append(each._replace(score=score, factors=(*each.factors, factor)))
    return _best_first(others) + _best_first(orders)


def factors_of(known: Weights, *, now: int, subject: float) -> tuple[float, ...]:
    """Return all of `FACTORS` but the last: confidence, reinforcement exp(score x 0.2), trust, a slight recency, and
    `subject`, below 1 if it is not about the person the question is about.
    """
    days = max(0.0, (now - known.since) / _DAY_MS)
    return (
        known.confidence,
        exp(known.score * 0.2),
        _UNVOUCHED if known.trust in UNAPPROVED else 1.0,
        1 - _RECENCY_PART + _RECENCY_PART / (1 + days * 0.01),
        subject,
    )


# Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods"
# (2009), their value.
_RANK_CONSTANT = 60


def fuse(values: Mapping[str, Floats], weights: Mapping[str, float], *, fusion: Fusion) -> dict[str, Floats]:
    """Return the contribution of each signal to the score of each candidate.

    Args:
        values: what each signal measured, float32[candidates].
        weights: the weights of signals; they add up to 1, so that a score is about 1 at most.
        fusion: "score" multiplies the weight by the measurement, "rrf" by the rank term 61 / (60 + rank).
    """
    if fusion == "score":
        return {name: np.asarray(weights[name] * measured, np.float32) for name, measured in values.items()}
    return {name: np.asarray(weights[name] * _by_rank(measured), np.float32) for name, measured in values.items()}


def _by_rank(measured: Floats) -> NDArray[np.float64]:
    """Return (k + 1) / (k + rank), which is 1 for the first; 0 if the signal does not apply."""
    found = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + _ranks(measured))
    return np.where(measured > 0, found, 0.0)


def _ranks(measured: Floats) -> NDArray[np.intp]:
    """Return ranks, 1 for the best. Equal values get the same, better rank."""
    ascending = np.sort(measured)
    return 1 + len(measured) - np.searchsorted(ascending, measured, side="right")


# A newer memory moves before the older one if at most this many other hits rank between them.
_BETWEEN = 3


def in_succession(
    hits: Sequence[Ranked], *, links: Sequence[tuple[int, int]], successors: Mapping[int, int]
) -> list[Ranked]:
    """Return the hits, best first, with newer versions moved up to right above the older ones they are linked with.

    Many links are only likely. A newer memory that ranks far below the older one answers another question, and stays
    where it is. A wrong link costs the older one a single rank, and no hit loses score. A share "newer" holds what one
    gains, so that its shares still add up to its score.

    Args:
        hits: best first.
        links: pairs (newer, older) of node keys. Nodes that are not hits may connect hits.
        successors: by the key of a replaced node, the key of its live newest version.
    """
    present = _succeeded(hits, successors)
    places = {each.key: place for place, each in enumerate(present)}
    after: dict[int, set[int]] = {}
    for later, older in links:
        if places.get(later, 0) - places.get(older, len(present)) <= _BETWEEN + 1:
            after.setdefault(later, set()).add(older)
    if not after:
        return present
    moved = {key: (place, 0) for key, place in places.items()}
    for group in _groups(after, places):
        oldest = sorted(group, key=lambda key: (len(_older(key, after)), -places[key]))
        best = accumulate((places[key] for key in oldest), min)
        moved |= {key: (place, -number) for number, (key, place) in enumerate(zip(oldest, best, strict=True))}
    ordered = sorted(present, key=lambda each: moved[each.key])
    return [_moved(each, score=present[moved[each.key][0]].score) for each in ordered]


def _succeeded(hits: Sequence[Ranked], successors: Mapping[int, int]) -> list[Ranked]:
    """Replace each superseded hit by its successor. If the successor is already a hit, the better rank is kept."""
    found: dict[int, Ranked] = {}
    for hit in hits:
        key = successors.get(hit.key, hit.key)
        found.setdefault(key, hit if key == hit.key else hit._replace(key=key))
    return list(found.values())


def newest_of_equal(hits: Sequence[Ranked], *, said: Mapping[int, tuple[str, int]]) -> list[Ranked]:
    """Return hits without duplicate statements: the newest of each group, at the best rank of the group.

    Args:
        said: by key, the subjects and statement of a hit as one text, and its start of validity in Unix milliseconds.
    """
    newest: dict[str, int] = {}
    for hit in hits:
        if hit.key in said:
            line, since = said[hit.key]
            other = newest.get(line)
            if other is None or (since, hit.key) > (said[other][1], other):
                newest[line] = hit.key
    if len(newest) == len(said):
        return list(hits)
    by_key = {hit.key: hit for hit in hits}
    shown: dict[str, Ranked] = {}
    for hit in hits:
        if hit.key not in said:
            shown[str(hit.key)] = hit
        elif (line := said[hit.key][0]) not in shown:
            shown[line] = _moved(by_key[newest[line]], score=hit.score)
    return list(shown.values())


def _groups(after: Mapping[int, set[int]], hits: Mapping[int, int]) -> list[list[int]]:
    """Return the hits connected by links, in groups of two or more."""
    neighbours: dict[int, set[int]] = {}
    for newer, olders in after.items():
        for older in olders:
            neighbours.setdefault(newer, set()).add(older)
            neighbours.setdefault(older, set()).add(newer)
    seen: set[int] = set()
    groups = []
    for start in hits:
        if start not in seen and start in neighbours:
            group = _reached(start, neighbours)
            seen |= group
            groups.append([key for key in group if key in hits])
    return [group for group in groups if len(group) > 1]


def _older(key: int, after: Mapping[int, set[int]]) -> set[int]:
    """Return all predecessors of a node, at any distance."""
    return _reached(key, after) - {key}


def _reached(start: int, steps: Mapping[int, set[int]]) -> set[int]:
    reached, left = {start}, [start]
    while left:
        for key in steps.get(left.pop(), ()):
            if key not in reached:
                reached.add(key)
                left.append(key)
    return reached


def _moved(hit: Ranked, *, score: float) -> Ranked:
    """Return a hit with the score of the rank it moves to."""
    return hit._replace(score=score, moved=hit.moved + score - hit.score)


def may_answer_instead(question: str, old: str, new: str) -> bool:
    """Return whether nothing speaks against a newer fact as the answer instead of an older one. It is about no relative
    that neither the question nor the older fact mentions.

    >>> may_answer_instead("What do I drive?", "I drive a Golf", "Sold it, we go by bike")
    True
    >>> may_answer_instead("What do I drive?", "I drive a Golf", "I might get a Tesla")
    False
    """
    if change.has_doubts(old, new):
        return False
    return not change.topics(new).others or any(change.topics(text).others for text in (question, old))


@dataclass(frozen=True, slots=True)
class Meaning:
    """The cosines between a question and its top hits, and between each two of these, on the default scale."""

    asked: Sequence[float]
    between: Sequence[Sequence[float]]


def instead_of_best(
    question: str, texts: Sequence[str], scores: Sequence[float], newer: Sequence[int], meaning: Meaning | None
) -> dict[int, float]:
    """Return how likely each newer fact answers the question instead of the best hit, from 0 to 1, by its place.

    Args:
        texts: of the top hits, the best one first, with their scores.
        newer: the places of the facts that were told after the best one.
        meaning: None without an embedder.
    """
    weights = FITTED["instead"]["words" if meaning is None else "meaning"]
    found: dict[int, float] = {}
    for place in newer:
        values = features_instead(question, texts, scores, place, meaning)
        total = weights["constant"] + sum(weight * values[name] for name, weight in weights.items() if name in values)
        found[place] = 1 / (1 + exp(-total))
    return found


def features_instead(
    question: str, texts: Sequence[str], scores: Sequence[float], place: int, meaning: Meaning | None
) -> dict[str, float]:
    """Return the features of the hit at a place, newer than the first one. Arguments as for `instead_of_best`."""
    old, new = texts[0], texts[place]
    of_texts = change.features(old, new)
    asked, before, after = (frozenset(index_terms(text)) for text in (question, old, new))
    found = {
        "score": scores[place] / scores[0] if scores[0] > 0 else 1.0,
        "third or later": float(place >= 2),
        "fourth or later": float(place >= 3),
        "asks for the newer": float(change.asks_for(question, new, old)),
        "asks of themselves": float(change.topics(question).is_own),
        "more words of the question": (len(asked & after) - len(asked & before)) / max(1, len(asked)),
        "length": min(change.topics(new).length / _LONG, 1.0),
        "length before": min(change.topics(old).length / _LONG, 1.0),
        **{name: of_texts[name] for name in ("share", "says so", "introduced", "head", "apart", "branched")},
    }
    if meaning is None:
        return found
    own, between = meaning.asked[place], meaning.between[place]
    alike = [between[each] for each in range(1, len(texts)) if each != place]
    return found | {
        "meaning": own,
        "more meaning": own - meaning.asked[0],
        "says so, alike": of_texts["says so"] * between[0],
        "nearest": between[0] - max(alike, default=change.USUAL),
    }
