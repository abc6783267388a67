"""What speaks for a candidate. Each signal is a pure function of the pool, float32[candidates], with a weight; None
where it has nothing to say of any candidate, as most have to most questions.

They are general properties of conversations: who spoke, when, in which session, around what, and what kind of thing
is asked for. Weights are rounded; moving them by a third costs less than a point of recall (MEASURED.md). What depends
on a language lists its words here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ricordo.model import SignalName
from ricordo.retrieval.pool import Pool, terms_of
from ricordo.retrieval.query import Plan
from ricordo.text import index_terms
from ricordo.text.features import ASKS, ENDS_ASKING, FIRST_PERSON, NAME, NUMBER, TIME
from ricordo.text.languages import LanguageSet, cached, languages_of

if TYPE_CHECKING:
    Floats = NDArray[np.float32]

# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), their usual values.
_K1 = 1.2
_B = 0.75

# How much of what the best of a session are above the middle each of its turns gains, and how many count as the best.
_SESSION = 0.25
_SESSION_DEPTH = 3

# What a turn loses in which the person asked about has no part; what another says to them loses 1.
_AWAY = -3

# How much of an answer the turn before and after may give in a turn's stead.
_PREVIOUS = 0.9
_NEXT = 0.7


def words_in_context(pool: Pool, plan: Plan) -> Floats:
    """The question's words in the turn or, a little less, in its neighbours; by idf, from 0 to 1."""
    return _by_idf(pool, met_in_context(pool, pool.strengths))


def met_in_context(pool: Pool, met: Floats) -> Floats:
    """Return how well a candidate or, a little less, its neighbours match each word, float32[words, size].

    Args:
        met: how well each turn does, float32[words, n].
    """
    best = _PREVIOUS * met.take(pool.before[0], axis=1)
    np.maximum(best, _NEXT * met.take(pool.after[0], axis=1), out=best)
    return np.asarray(np.maximum(best, met[:, : pool.size], out=best), np.float32)


def around(pool: Pool, held: Floats) -> Floats:
    """Return the maximum over a candidate and two turns on each side, for each word, float32[words, size]."""
    nearby = np.maximum.reduce(held.take(pool.nearby, axis=1), axis=1)
    return np.asarray(np.maximum(nearby, held[:, : pool.size]), np.float32)


def words_alone(pool: Pool, plan: Plan) -> Floats:
    """The question's words in the turn itself; by idf, from 0 to 1."""
    return _by_idf(pool, pool.strengths[:, : pool.size])


def _by_idf(pool: Pool, met: Floats) -> Floats:
    return np.asarray(pool.worth @ met, np.float32)


def keywords(pool: Pool, plan: Plan) -> Floats | None:
    """BM25 of the turn with two turns on each side, relative to the best candidate, times the share of the question
    that any candidate holds, so that one stray word does not count like the whole question.
    """
    if not len(pool.words):
        return None
    counts, lengths = pool.counts, pool.turns.lengths
    around = counts[:, : pool.size] + counts.take(pool.nearby, axis=1).sum(axis=1)
    long = lengths[: pool.size] + lengths.take(pool.nearby).sum(axis=0)
    norm = _K1 * (1 - _B + _B * long / (5 * pool.average_chars))
    scores = pool.worth @ (around * (_K1 + 1) / (around + norm))
    best = scores.max()
    if best <= 0:
        return None
    held = (pool.worth @ (around > 0)).max()
    return np.asarray(np.sqrt(held) * scores / best, np.float32)


def meaning(pool: Pool, plan: Plan) -> Floats:
    """The cosine with the question, of the turn and in part of the turns around it."""
    near, far = pool.cosines.take(pool.before) + pool.cosines.take(pool.after)
    return np.asarray(pool.cosines[: pool.size] + 0.3 * near + 0.15 * far, np.float32)


def person(pool: Pool, plan: Plan) -> Floats | None:
    """If the question names exactly one speaker: 1 for what they said, -1 for what others said, and -3 if they neither
    speak nor are named around it: that is from another conversation.
    """
    if len(pool.persons) != 1:
        return None
    spoke = pool.spoke[: pool.size]
    away = (spoke < 0) & (around(pool, pool.spoke[np.newaxis])[0] <= 0)
    if away.any():
        away &= ~around(pool, pool.turns.counts(tuple(terms_of(pool.persons)))).any(axis=0)
    return np.where(away, np.float32(_AWAY), spoke)


def own_experience(pool: Pool, plan: Plan) -> Floats | None:
    """If the question names one speaker: whether they speak of themselves."""
    if len(pool.persons) != 1:
        return None
    return np.asarray(_holds(pool, FIRST_PERSON) * (pool.spoke[: pool.size] > 0), np.float32)


def kind_of_answer(pool: Pool, plan: Plan) -> Floats | None:
    """Whether the turn holds what is asked for: a time for when, a number for how many, a name for who and where."""
    text = plan.query.text
    question = text.lower()
    for asked, feature in _kinds_of_answer(languages_of(text)):
        if asked.search(question):
            return _holds(pool, feature)
    return None


@cached()
def _kinds_of_answer(languages: LanguageSet) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return the patterns of what asks for a time, a number, a name; they are looked for in lower case."""
    return (
        (languages.pattern(lambda each: each.questions.a_time, r"\b(?:{})\b"), TIME),
        (languages.pattern(lambda each: each.questions.a_number, r"\b(?:{})\b"), NUMBER),
        (languages.pattern(lambda each: each.questions.a_name, r"\b(?:{})\b"), NAME),
    )


def date(pool: Pool, plan: Plan) -> Floats | None:
    """What was said in the period the question names: 1, or a half if it names only a year."""
    span = plan.interval
    if span is None:
        return None
    times = pool.turns.event_times[: pool.size]
    worth = np.float32(0.5 if span.precision == "year" else 1)
    return worth * np.asarray((times >= span.start) & (times < span.end), np.float32)


def replies(pool: Pool, plan: Plan) -> Floats:
    """Whether the turn before it asks something."""
    return np.asarray(pool.turns.flags.take(pool.before[0]) & ASKS, np.float32)


def asks(pool: Pool, plan: Plan) -> Floats:
    """Whether the turn is itself a question, and says little."""
    return _holds(pool, ENDS_ASKING)


def name(pool: Pool, plan: Plan) -> Floats:
    """Whether it matches the question and names someone or something; "that sounds great" is about nothing."""
    return _holds(pool, NAME) * pool.meets


def length(pool: Pool, plan: Plan) -> Floats:
    """How much longer it is than the median candidate, as a logarithm, from -1 to 1: late interaction rates one word of
    thanks as high as a statement.
    """
    logarithms = np.log(np.maximum(pool.turns.lengths[: pool.size], 1))
    above = logarithms - np.float32(_median(logarithms))
    return np.asarray(np.minimum(np.maximum(above, -1), 1) * pool.meets, np.float32)


def entity(pool: Pool, plan: Plan) -> Floats | None:
    """Whether it is about an entity the question names, or mentions one."""
    return np.float32(_BY_ENTITY.get(plan.intent, 0.7)) * pool.named if pool.named.any() else None


def linked(pool: Pool, plan: Plan) -> Floats | None:
    """Whether it caused, resulted from, or proved useful together with what answers best."""
    return np.float32(_BY_LINKS.get(plan.intent, 0.5)) * pool.linked if pool.linked.any() else None


# How much of a link's worth counts, by what is asked for.
_BY_ENTITY = {"who": 1.0, "what": 1.0}
_BY_LINKS = {"why": 1.0}


def _holds(pool: Pool, trait: int) -> Floats:
    return np.asarray((pool.turns.flags[: pool.size] & trait) != 0, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A function of the pool, and its weight."""

    weight: float
    value: Callable[[Pool, Plan], Floats | None]


_SAID: Mapping[SignalName, Signal] = {
    "words in context": Signal(weight=9, value=words_in_context),
    "words": Signal(weight=2, value=words_alone),
    "keywords": Signal(weight=3, value=keywords),
    "meaning": Signal(weight=3.5, value=meaning),
    "person": Signal(weight=1, value=person),
    "kind of answer": Signal(weight=2, value=kind_of_answer),
    "date": Signal(weight=4, value=date),
    "replies": Signal(weight=0.5, value=replies),
    "own experience": Signal(weight=0.5, value=own_experience),
    "asks": Signal(weight=-0.5, value=asks),
    "name": Signal(weight=0.5, value=name),
    "length": Signal(weight=0.25, value=length),
}

_LINKED: Mapping[SignalName, Signal] = {
    "entity": Signal(weight=1, value=entity),
    "linked": Signal(weight=2, value=linked),
}

SIGNALS: Mapping[SignalName, Signal] = {**_SAID, **_LINKED}

_SCALE = sum(signal.weight for signal in _SAID.values() if signal.weight > 0)

WEIGHTS: Mapping[str, float] = {name: signal.weight / _SCALE for name, signal in SIGNALS.items()}
"""What each signal counts; those of what is said, as far as above zero, add up to 1."""


def measure(pool: Pool, plan: Plan) -> dict[str, Floats]:
    """Return what each signal measures for each candidate, float32[size]; signals that do not apply or are left out are
    not computed.
    """
    without = plan.weighing.without
    found = ((name, signal.value(pool, plan)) for name, signal in SIGNALS.items() if name not in without)
    return {name: value for name, value in found if value is not None}


def session(pool: Pool, totals: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """How well the session of each candidate answers by its three best turns, and what that adds to the score.

    What is asked mostly stands in one conversation. A question for several things is another matter: `asks_for_a_list`.

    Args:
        totals: what the other signals gave, together.

    Returns:
        float32[size] twice: by how much the best three stand above the middle of all, and a quarter of it.
    """
    sessions = pool.turns.sessions[: pool.size]
    order = np.lexsort((-totals, sessions))
    ordered = sessions[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    lengths = np.append(begins[1:], len(order)) - begins
    rank = np.arange(len(order)) - begins.repeat(lengths)
    above = np.where(rank < _SESSION_DEPTH, np.maximum(totals[order] - _median(totals), 0), 0)
    measured = np.empty(len(order))
    measured[order] = (np.add.reduceat(above, begins) / _SESSION_DEPTH).repeat(lengths)
    return np.asarray(measured, np.float32), np.asarray(_SESSION * measured, np.float32)


def _median(values: NDArray[np.floating[Any]]) -> float:
    """Return the median; numpy's takes four times as long for so few."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = np.sort(values)
    return float((ordered[low] + ordered[high]) / 2)


def asks_for_a_list(text: str) -> bool:
    """Return whether several things are asked for: a plural after what or which, kinds, types, all, both."""
    languages = languages_of(text)
    return _lists(languages).search(text.lower()) is not None or index_terms(text)[:1] in _list_verbs(languages)


@cached()
def _lists(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.lists)


@cached()
def _list_verbs(languages: LanguageSet) -> tuple[list[str], ...]:
    return tuple([verb] for verb in languages.in_order(lambda each: each.questions.list_verbs))
