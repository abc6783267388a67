"""The candidates of a question with the turns around them, and the signals that rank them. Pure.

A signal is a function of the pool that returns float32[candidates], or None if it does not apply to the question.
Signals are general properties of conversations: speaker, time, session, neighbouring turns, and the kind of answer
requested. Their weights are in relevance.json. Changing one by a third costs less than a point of recall.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ricordo.model import SignalName
from ricordo.models.embedding import Embedded
from ricordo.models.embedding.local import one_thread
from ricordo.retrieval.query import Plan
from ricordo.storage.candidates import (
    FOLLOWERS,
    REACH,
    CandidateRows,
    CandidateSet,
    Naming,
    Turns,
    WordVectors,
    inverse_frequency,
    stretches,
)
from ricordo.text.analyzer import index_terms, name_key, name_terms, speaks_of_themselves
from ricordo.text.change import states_asked
from ricordo.text.languages import LanguageSet, cached, languages_of
from ricordo.text.passages import ASKS, ASKS_ONLY, ASSISTANT, ENDS_ASKING, FIRST_PERSON, NAME, NUMBER, TIME, TOOL

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]

FITTED: Mapping[str, Any] = json.loads((files("ricordo.retrieval") / "relevance.json").read_text("utf-8"))
"""The weights of signals, of relevance ("floor") and of the features of facts ("facts")."""

_USUAL_PASSAGE = 540.0
"""Average length of a passage of a long message, in characters."""

_STAND_IN = 0.2
"""How well any turn matches a word by chance. Turns compared by one cosine instead of word by word start from here."""

_SAME_STATE = np.float32(0.8)
"""How well a turn that says which one it is matches a word for a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The candidates (the first `size` of `turns`) and the turns around them, n in all.

    Attributes:
        words: the significant words of the question, without names.
        idf: float32[words], inverse document frequencies.
        worth: float32[words], `idf` divided by its sum.
        counts: float32[words, n], how often a turn contains each word.
        strengths: float32[words, n], how well a turn matches each word: 1 for the word itself, else the best cosine.
        worded: bool[n], whether a turn was compared word by word; for others the cosine of the complete turn is used.
        cosines: float32[n], centred cosine with the question; 0 without a vector.
        spoke: float32[n], 1 if a person named in the question speaks, -1 if another does, such as the owner in a
            conversation of several people, 0 if the speaker is unknown or the question names no speaker.
        persons: folded names of the speakers that the question names.
        meets: bool[size], whether a candidate is a turn that matches any word of the question.
        named: float32[size], 1 if a candidate is linked to an entity that the question names.
        linked: float32[size], how strongly a candidate is linked to the best ones by words and meaning, 0 to 1.
        average_chars: mean length of the searched memories.
        total: number of searched memories.
        frequencies: number of memories that contain each term of the question.
        namings: how the question names entities.
    """

    turns: Turns
    size: int
    words: tuple[str, ...]
    idf: Floats
    worth: Floats
    counts: Floats
    strengths: Floats
    worded: NDArray[np.bool_]
    cosines: Floats
    spoke: Floats
    persons: tuple[str, ...]
    meets: NDArray[np.bool_]
    named: Floats
    linked: Floats
    average_chars: float
    total: int
    frequencies: Mapping[str, int]
    namings: tuple[Naming, ...]

    @property
    def before(self) -> NDArray[np.intp]:
        """Positions in `turns` of the turns one and two before each candidate, intp[2, size]."""
        return self.turns.nearby[:REACH]

    @property
    def after(self) -> NDArray[np.intp]:
        """Positions in `turns` of the turns one and two after each candidate, intp[2, size]."""
        return self.turns.nearby[REACH:]

    @property
    def name_terms(self) -> frozenset[str]:
        """The index terms by which the question names entities."""
        return frozenset(term for naming in self.namings for term in naming.terms)

    @property
    def names_entities(self) -> bool:
        """Whether the question names any entity."""
        return any(naming.entities for naming in self.namings)


def pool_of(found: CandidateSet, plan: Plan, namings: tuple[Naming, ...]) -> Pool | None:
    """Return the candidates of a question and the turns around them; None if no rows were read."""
    rows = found.rows
    if rows is None:
        return None
    turns, size = rows.turns, rows.size
    persons = named_persons(plan.query.text, turns, namings)
    words, idf, counts, strengths, worded = _strengths(found, rows, plan, persons)
    worth = np.asarray(idf / max(float(idf.sum()), 1e-9), np.float32)
    return Pool(
        turns=turns,
        size=size,
        words=words,
        idf=idf,
        worth=worth,
        counts=counts,
        strengths=strengths,
        worded=worded,
        cosines=rows.cosines,
        spoke=_spoke(turns, persons),
        persons=persons,
        named=_named(rows, namings, words, strengths),
        meets=(turns.sessions[:size] >= 0) & (strengths[:, :size] > 0).any(axis=0),
        linked=_linked(found.found, turns.keys[:size]),
        average_chars=min(max(1.0, found.characters / max(1, found.total)), _USUAL_PASSAGE),
        total=found.total,
        frequencies=found.frequencies,
        namings=namings,
    )


def named_persons(question: str, turns: Turns, namings: Sequence[Naming] = ()) -> tuple[str, ...]:
    """Return the speakers of these turns that the question names, folded, in alphabetical order."""
    asked, merged = set(name_terms(question)), frozenset[str]().union(*(each.names for each in namings))
    places = np.bincount(turns.speakers).nonzero()[0].tolist()
    names = {name_key(speaker) for place in places if (speaker := turns.names[place])}
    return tuple(sorted(name for name in names if name in merged or not asked.isdisjoint(name.split())))


def terms_of(persons: Iterable[str]) -> set[str]:
    """Return the words of names, as written and as indexed."""
    return {term for person in persons for term in (*person.split(), *index_terms(person))}


def _spoke(turns: Turns, persons: Sequence[str]) -> Floats:
    if not persons:  # there may be thousands of speakers
        return np.zeros(len(turns), np.float32)
    worth = [0.0 if not name else 1.0 if name_key(name) in persons else -1.0 for name in turns.names]
    spoke = np.array(worth, np.float32).take(turns.speakers)
    of_people = np.unique(turns.sessions[turns.speakers != 0])  # there, the owner is one of several people
    spoke[(turns.speakers == 0) & np.isin(turns.sessions, of_people)] = -1.0
    return spoke


def _named(rows: CandidateRows, namings: Sequence[Naming], words: Sequence[str], strengths: Floats) -> Floats:
    """Return 1 for candidates that are about an entity named in the question or mention it, float32[size].

    In `strengths`, they match the words that name the entity: a fact about Sarah answers a question about "my wife".
    """
    named = np.zeros(rows.size, np.float32)
    for naming, is_about in zip(namings, rows.about, strict=True):
        about = np.flatnonzero(is_about)
        named[about] = 1.0
        meant = np.array([row for row, word in enumerate(words) if word in naming.terms], np.intp)
        strengths[np.ix_(meant, about)] = 1.0
    return named


def _linked(found: Mapping[str, Mapping[int, float]], keys: Keys) -> Floats:
    followed = [found[name] for name in FOLLOWERS if found.get(name)]
    if not followed:
        return np.zeros(len(keys), np.float32)
    strongest = (max(each.get(key, 0.0) for each in followed) for key in keys.tolist())
    return np.fromiter(strongest, np.float32, len(keys))


def _strengths(
    found: CandidateSet, rows: CandidateRows, plan: Plan, persons: Sequence[str]
) -> tuple[tuple[str, ...], Floats, Floats, Floats, NDArray[np.bool_]]:
    """Return `words`, `idf`, `counts`, `strengths` and `worded` of a pool.

    A word matches a turn by the best cosine among the turn's words. If one of them has no word vectors (another script
    or embedder), the cosine of the complete turn is used. A turn that contains the word itself matches fully, and one
    that says which one it is almost: "We picked up a Skoda" matches "car".
    """
    names, cosines = terms_of(persons) | ({*plan.dated, *plan.states} - {*plan.terms}), rows.cosines
    words = {
        term: inverse_frequency(count, found.total) for term, count in found.frequencies.items() if term not in names
    }
    question = plan.worded[1]
    vectors = {} if question is None else _word_vectors(question, plan, words, names, total=found.total)
    terms = tuple(term for term, idf in words.items() if idf > 0)
    stand_in = np.minimum(np.maximum(_STAND_IN + (1 - _STAND_IN) * cosines, 0), 1) * (cosines != 0)
    counts = _counts_of(terms, found, rows)
    met = np.where(counts > 0, np.float32(1), stand_in)
    worded, state = np.zeros(met.shape[1], np.bool_), states_asked(plan.query.text)
    if vectors and terms and rows.words is not None:
        worded[_meet_by_vector(met, terms, vectors, rows.words)] = True
    telling = plan.needs.terms if plan.needs else state.values
    if telling and plan.states and plan.interval is None and not plan.is_of_past:  # a message asks for no state
        asked = [row for row, term in enumerate(terms) if term in state.terms or term in telling]
        said = [row for row, term in enumerate(found.frequencies) if term in telling]
        met[asked] = np.maximum(met[asked], _SAME_STATE * (rows.counts[said] > 0).any(axis=0))
    return terms, np.array([words[term] for term in terms], np.float32), counts, met, worded


def _counts_of(terms: tuple[str, ...], found: CandidateSet, rows: CandidateRows) -> Floats:
    """Return how often each turn contains the terms of the question and its embedder-only pieces, float32[terms, n]."""
    known = tuple(found.frequencies)
    if terms == known:
        return rows.counts
    others = [term for term in terms if term not in found.frequencies]
    row_of = {term: row for row, term in enumerate((*known, *others))}
    counts = np.concatenate([rows.counts, rows.turns.counts(others)]) if others else rows.counts
    return counts.take([row_of[term] for term in terms], axis=0)


def _word_vectors(
    question: Embedded, plan: Plan, words: dict[str, float], names: set[str], *, total: int
) -> dict[str, Floats]:
    """Return the vectors of the question's words by index term. A piece that is not a term is added as one."""
    found: dict[str, Floats] = {}
    assert question.words is not None
    for piece, vector in zip(question.pieces, question.words, strict=True):
        term = (index_terms(piece) or [piece])[0]
        if piece in names or term in names or piece in plan.ignored:
            continue
        words.setdefault(term, inverse_frequency(0, total) / 2)
        found[term] = vector
    return found


def _meet_by_vector(
    met: Floats, terms: Sequence[str], vectors: Mapping[str, Floats], held: WordVectors
) -> NDArray[np.intp]:
    """Write to `met` the best cosine of each question word among the words of each turn (late interaction).

    Returns:
        The positions of the turns with word vectors.
    """
    with_vector = [row for row, term in enumerate(terms) if term in vectors]
    asked = np.stack([vectors[terms[row]] for row in with_vector])
    if not len(held.places):
        return held.places
    with one_thread():  # with two threads, a product this small takes twenty times as long on a busy machine
        cosines = (asked / np.float32(127)) @ held.codes.astype(np.float32).T
    best = np.maximum.reduceat(cosines, held.starts, axis=1)
    met[np.ix_(np.array(with_vector), held.places)] = np.maximum(best, 0.0)
    return held.places


def likeness(rows: CandidateRows, places: NDArray[np.intp]) -> Floats:
    """Return the centred cosines between candidates, float32[n, n]; 0 if negative or unknown."""
    among = np.zeros((len(places), len(places)), np.float32)
    for directions in rows.directions:
        mine = directions[places]
        with one_thread():
            among = np.maximum(among, mine @ mine.T)
    return among


# ---- signals

# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), their usual values.
_K1 = 1.2
_B = 0.75

# Number of best turns that rate a session.
_SESSION_DEPTH = 3

# The value of a turn in which the person asked about is absent; a turn spoken to them by another has -1.
_AWAY = -3

# The weights of a match in the previous and the next turn.
_PREVIOUS = 0.9
_NEXT = 0.7


def words_in_context(pool: Pool, plan: Plan) -> Floats:
    """The share of the question's words in the turn or, with a lower weight, in its neighbours; by idf, from 0 to 1."""
    return np.asarray(pool.worth @ met_in_context(pool, pool.strengths), np.float32)


def met_in_context(pool: Pool, met: Floats) -> Floats:
    """Return how well a candidate or, with a lower weight, its neighbours match each word, float32[words, size].

    Args:
        met: how well each turn matches each word, float32[words, n].
    """
    best = _PREVIOUS * met.take(pool.before[0], axis=1)
    np.maximum(best, _NEXT * met.take(pool.after[0], axis=1), out=best)
    return np.asarray(np.maximum(best, met[:, : pool.size], out=best), np.float32)


def around(pool: Pool, held: Floats) -> Floats:
    """Return, per word, the maximum over a candidate and two turns on each side, float32[words, size]."""
    nearby = np.maximum.reduce(held.take(pool.turns.nearby, axis=1), axis=1)
    return np.asarray(np.maximum(nearby, held[:, : pool.size]), np.float32)


def words_alone(pool: Pool, plan: Plan) -> Floats:
    """The share of the question's words in the turn itself; by idf, from 0 to 1."""
    return np.asarray(pool.worth @ pool.strengths[:, : pool.size], np.float32)


def keywords(pool: Pool, plan: Plan) -> Floats | None:
    """BM25 of the turn and two on each side, relative to the best candidate, times the square root of the question's
    share that any candidate contains. The root keeps a single matching word from counting like the full question.
    """
    if not len(pool.words):
        return None
    counts, lengths = pool.counts, pool.turns.lengths
    around = counts[:, : pool.size] + counts.take(pool.turns.nearby, axis=1).sum(axis=1)
    long = lengths[: pool.size] + lengths.take(pool.turns.nearby).sum(axis=0)
    norm = _K1 * (1 - _B + _B * long / (5 * pool.average_chars))
    scores = pool.worth @ (around * (_K1 + 1) / (around + norm))
    best = scores.max()
    if best <= 0:
        return None
    held = (pool.worth @ (around > 0)).max()
    return np.asarray(np.sqrt(held) * scores / best, np.float32)


def meaning(pool: Pool, plan: Plan) -> Floats:
    """The cosine of the turn with the question, plus a part of the cosines of its neighbours; less in a document, where
    a paragraph says by itself what it is about.
    """
    near, far = pool.cosines.take(pool.before) + pool.cosines.take(pool.after)
    share = np.where(_holds(pool, TOOL), np.float32(FITTED["document"]["neighbours"]), np.float32(1))
    return np.asarray(pool.cosines[: pool.size] + share * (0.3 * near + 0.15 * far), np.float32)


def person(pool: Pool, plan: Plan) -> Floats | None:
    """If the question names one speaker: 1 for turns they speak, -1 for turns of others, and -3 if they neither speak
    nor are named nearby, as in another conversation.
    """
    if len(pool.persons) != 1:
        return None
    spoke = pool.spoke[: pool.size]
    away = (spoke < 0) & (around(pool, pool.spoke[np.newaxis])[0] <= 0)
    if away.any():
        away &= ~around(pool, pool.turns.counts(tuple(terms_of(pool.persons)))).any(axis=0)
    return np.where(away, np.float32(_AWAY), spoke)


def own_experience(pool: Pool, plan: Plan) -> Floats | None:
    """If the question names one speaker: whether a turn is theirs and in the first person."""
    if len(pool.persons) != 1:
        return None
    return np.asarray(_holds(pool, FIRST_PERSON) * (pool.spoke[: pool.size] > 0), np.float32)


def kind_of_answer(pool: Pool, plan: Plan) -> Floats | None:
    """Whether the turn contains the kind of answer requested, such as a number for "how many"."""
    text = plan.query.text
    question = text.lower()
    for asked, feature in _kinds_of_answer(languages_of(text)):
        if asked.search(question):
            return _holds(pool, feature)
    return None


@cached()
def _kinds_of_answer(languages: LanguageSet) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return the patterns of questions for a time, a number or a name, in lower case."""
    return (
        (languages.pattern(lambda each: each.questions.a_time, r"\b(?:{})\b"), TIME),
        (languages.pattern(lambda each: each.questions.a_number, r"\b(?:{})\b"), NUMBER),
        (languages.pattern(lambda each: each.questions.a_name, r"\b(?:{})\b"), NAME),
    )


def date(pool: Pool, plan: Plan) -> Floats | None:
    """1 for turns in the period that the question names, and for turns that name it with its year."""
    span = plan.interval
    if span is None:
        return None
    times = pool.turns.event_times[: pool.size]
    is_within = (times >= span.start) & (times < span.end)
    if plan.dated:
        is_within |= (pool.turns.counts(plan.dated)[:, : pool.size] > 0).all(axis=0)
    return np.asarray(is_within, np.float32)


def replies(pool: Pool, plan: Plan) -> Floats:
    """Whether the previous turn asks something."""
    return np.asarray(pool.turns.flags.take(pool.before[0]) & ASKS, np.float32) * _is_of_speaker(pool)


_ASKS_ONLY = 5.0
"""The value of a turn that consists of questions; one that only ends in a question has 1. With 5, LoCoMo and REALTALK
have the most hits in first place, and no fewer among the first ten.
"""
_ASKED_BEFORE = 20.0
"""The value of a short question to an assistant: asked again, it would come before every answer. With 10 as with 20,
BEAM and RealMem find as much as without; with 20, answers in other words come first.
"""
_SHORT_QUESTION = 100
"""Longer questions to an assistant, in characters, often tell something: "What can Nora eat, who has no fish?"."""


def asks(pool: Pool, plan: Plan) -> Floats:
    """Whether the turn of a named speaker ends in a question; more if it consists of questions: it has the words of the
    topic, but no answer. Messages to an assistant often end in a question, so only short questions count, and they are
    raised if the question is about what was asked.
    """
    of_speaker, only = _is_of_speaker(pool), _holds(pool, ASKS_ONLY)
    asked = np.maximum(_holds(pool, ENDS_ASKING), np.float32(_ASKS_ONLY) * only) * of_speaker
    is_short = pool.turns.lengths[: pool.size] <= _SHORT_QUESTION
    text = plan.query.text.lower()
    languages = languages_of(text)
    if _of_asking(languages).search(text):
        asked -= _ASKS_ONLY * only
    elif not _of_both(languages).search(text):
        asked += _ASKED_BEFORE * only * is_short * (1 - of_speaker)
    return np.asarray(asked, np.float32)


@cached()
def _of_asking(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.of_asking)


def name(pool: Pool, plan: Plan) -> Floats:
    """Whether the turn matches the question and contains a name; "that sounds great" names nothing."""
    return _holds(pool, NAME) * pool.meets


def length(pool: Pool, plan: Plan) -> Floats:
    """The log ratio of the turn's length to the median, from -1 to 1, because late interaction scores a word of thanks
    as high as a statement. Only for turns of named speakers: an assistant's turns are always long.
    """
    logarithms = np.log(np.maximum(pool.turns.lengths[: pool.size], 1))
    above = logarithms - np.float32(_median(logarithms))
    value = np.minimum(np.maximum(above, -1), 1) * pool.meets * _is_of_speaker(pool)
    return np.asarray(value - _SAYS_LITTLE * says_little(pool), np.float32)


_SHORT_WORDS = 20
"""Up to this length, in characters, a turn without a name, number or time is a word of thanks or a nod. With 35, hits
in first place are lost in REALTALK.
"""
_SAYS_LITTLE = 5.0
"""What such a turn loses. LoCoMo and REALTALK find as much as without; with 10, REALTALK finds less."""


def says_little(pool: Pool) -> Floats:
    """Whether a candidate is a nod or a word of thanks: short, naming nothing, and not about its speaker."""
    is_short = pool.turns.lengths[: pool.size] <= _SHORT_WORDS
    told = _holds(pool, FIRST_PERSON | NAME | NUMBER | TIME) + ((pool.turns.flags.take(pool.before[0]) & ASKS) != 0)
    return np.asarray(is_short * (told == 0) * _is_of_speaker(pool), np.float32)


def entity(pool: Pool, plan: Plan) -> Floats | None:
    """Whether the memory is about an entity in the question, or mentions one; weighted more for who and what."""
    weight = 1.0 if plan.intent in ("who", "what") else 0.7
    return np.float32(weight) * pool.named if pool.named.any() else None


def linked(pool: Pool, plan: Plan) -> Floats | None:
    """Whether the memory is a cause or result of the best ones, or was useful with them; weighted more for why."""
    return np.float32(1.0 if plan.intent == "why" else 0.5) * pool.linked if pool.linked.any() else None


def assistant(pool: Pool, plan: Plan) -> Floats | None:
    """For assistant turns: -1 if the question is in the first person, because answers repeat the user's words; 1 if it
    asks what the assistant said. Long messages (`is_message`) get values near 0.
    """
    text = plan.query.text.lower()
    languages = languages_of(text)
    said = _holds(pool, ASSISTANT)
    if not said.any() or _of_both(languages).search(text):
        return None
    if _of_assistant(languages).search(text):
        return said
    return np.float32(is_message(plan) - 1) * said if speaks_of_themselves(text) else None


@cached()
def _of_assistant(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.of_assistant)


@cached()
def _of_both(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.of_both)


_QUESTION_TERMS, _MESSAGE_TERMS = 12, 32


def is_message(plan: Plan) -> float:
    """Return how much a text looks like a message rather than a question, by its length, from 0 to 1."""
    terms = len(plan.terms) + len(plan.ignored)
    return min(1.0, max(0.0, (terms - _QUESTION_TERMS) / (_MESSAGE_TERMS - _QUESTION_TERMS)))


def _is_of_speaker(pool: Pool) -> Floats:
    """Return 1 for turns of named speakers, float32[size]. Users and assistants have no speaker name."""
    return np.asarray(pool.turns.speakers[: pool.size] != 0, np.float32)


def _holds(pool: Pool, trait: int) -> Floats:
    return np.asarray((pool.turns.flags[: pool.size] & trait) != 0, np.float32)


SIGNALS: Mapping[SignalName, Callable[[Pool, Plan], Floats | None]] = {
    "words in context": words_in_context,
    "words": words_alone,
    "keywords": keywords,
    "meaning": meaning,
    "person": person,
    "kind of answer": kind_of_answer,
    "date": date,
    "replies": replies,
    "own experience": own_experience,
    "asks": asks,
    "name": name,
    "length": length,
    "assistant": assistant,
    "entity": entity,
    "linked": linked,
}

_APART = ("entity", "linked", "assistant")
_SCALE = sum(weight for name, weight in FITTED["signals"].items() if weight > 0 and name not in _APART)

WEIGHTS: Mapping[str, float] = {name: weight / _SCALE for name, weight in FITTED["signals"].items()}
"""The weight of each signal. The positive weights of text-based signals add up to 1."""


def measure(pool: Pool, plan: Plan) -> dict[str, Floats]:
    """Return the values of each signal, float32[size]. Signals that do not apply or are disabled are not computed."""
    without = plan.weighing.without
    found = ((name, signal(pool, plan)) for name, signal in SIGNALS.items() if name not in without)
    return {name: value for name, value in found if value is not None}


def weigh_by_origin(pool: Pool, shares: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the shares, adjusted for memories outside any conversation and for documents: meaning counts more, most
    other signals less.

    The turns around a turn complete its words. A fact or a paragraph stands alone, and is asked for in other words.
    Without vectors, nothing changes.

    Args:
        shares: the contribution of each signal to the score, float32[size].
    """
    if not pool.cosines.any():
        return dict(shares)
    origins = {"standalone": pool.turns.sessions[: pool.size] < 0, "document": _holds(pool, TOOL) > 0}
    weighed = dict(shares)
    for origin, is_from in origins.items():
        if is_from.any():
            factors = FITTED[origin]
            for name, share in weighed.items():
                weighed[name] = np.where(is_from, share * np.float32(factors.get(name, factors["others"])), share)
    return weighed


def best_passages(pool: Pool, totals: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the position of each turn's best passage, by which the turn ranks, ascending; the first one in a tie."""
    if not pool.turns.several[: pool.size].any():
        return np.arange(pool.size)
    keys = pool.turns.keys[: pool.size]
    order = np.lexsort((-totals, keys))
    return np.sort(order[runs_of(keys[order])])


def session(pool: Pool, totals: NDArray[np.float64], places: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Rate the session of each candidate by its three best turns, because most answers are in one conversation.

    Not used for questions that ask for several things (`asks_for_a_list`).

    Args:
        totals: the sums of all other signals, float64[size].
        places: positions of the passages that turns rank by; all other passages get 0.

    Returns:
        float32[size] twice: how far the three best are above the overall median, and the share of the score.
    """
    measured = np.zeros(pool.size)
    measured[places] = _of_sessions(pool.turns.sessions[places], totals[places])
    return np.asarray(measured, np.float32), np.asarray(FITTED["session"] * measured, np.float32)


_ALIKE_TO, _ALIKE_AMONG = 3, 200


def like_best(pool: Pool, plan: Plan, totals: NDArray[np.float64]) -> tuple[Floats, Floats] | None:
    """Rate passages by the words they share with the three best. A message names its topic only in passing, and earlier
    turns on the topic use different words from the message. Used for messages only (`is_message`).

    Args:
        totals: the sums of all other signals, float64[size].

    Returns:
        float32[size] twice: the cosine with the most similar of the three, weighted by inverse frequency among the best
        200 passages; and the share of the score.
    """
    weight = FITTED["alike"] / _SCALE * is_message(plan)
    if not weight:
        return None
    best = (-totals).argsort(kind="stable")[:_ALIKE_AMONG]
    turns = pool.turns
    sizes = turns.sizes[best]
    codes = turns.codes.take(stretches(turns.starts[best], sizes)).astype(np.uint64)
    pairs = np.unique(codes << np.uint64(32) | np.arange(len(best)).repeat(sizes).astype(np.uint64))
    rows = (pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)
    _, term, held = np.unique(pairs >> np.uint64(32), return_inverse=True, return_counts=True)
    idf = np.log(1 + len(best) / (held + 0.5)).take(term)
    norms = np.sqrt(np.bincount(rows, idf * idf, minlength=len(best)))
    nearest = np.zeros(len(best))
    for row in range(min(_ALIKE_TO, len(best))):
        mine = np.bincount(term, idf * (rows == row), minlength=len(held))
        dots = np.bincount(rows, idf * mine.take(term), minlength=len(best))
        nearest = np.maximum(nearest, dots / np.maximum(norms * norms[row], 1e-9))
    measured = np.zeros(pool.size, np.float32)
    measured[best] = nearest
    return measured, np.asarray(weight * measured, np.float32)


def _of_sessions(sessions: Keys, totals: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.lexsort((-totals, sessions))
    begins = runs_of(sessions[order])
    lengths = np.append(begins[1:], len(order)) - begins
    rank = np.arange(len(order)) - begins.repeat(lengths)
    above = np.where(rank < _SESSION_DEPTH, np.maximum(totals[order] - _median(totals), 0), 0)
    measured = np.empty(len(order))
    measured[order] = (np.add.reduceat(above, begins) / _SESSION_DEPTH).repeat(lengths)
    return measured


def runs_of(ordered: Keys) -> NDArray[np.intp]:
    """Return the start of each run of equal numbers."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def _median(values: NDArray[np.floating[Any]]) -> float:
    """Return the median; numpy's own function takes four times as long for so few values."""
    ordered = np.sort(values)
    return float((ordered[(len(values) - 1) // 2] + ordered[len(values) // 2]) / 2)


def asks_for_a_list(text: str) -> bool:
    """Return whether a text asks for several things: a plural after what or which, kinds, types, all, both."""
    languages = languages_of(text)
    return _lists(languages).search(text.lower()) is not None or index_terms(text)[:1] in _list_verbs(languages)


@cached()
def _lists(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.questions.lists)


@cached()
def _list_verbs(languages: LanguageSet) -> tuple[list[str], ...]:
    return tuple([verb] for verb in languages.in_order(lambda each: each.questions.list_verbs))
