"""The candidates of a question with the turns around them: the input of the signals. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.local import one_thread
from ricordo.models.embedding.vectors import Embedded
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
)
from ricordo.text import index_terms, name_key, name_terms

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]

_STAND_IN = 0.2
"""How well a word meets any turn by chance: where a whole turn's cosine stands in for its words, it starts here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`turns` are the candidates (the first `size`) and the turns around them. All arrays run parallel to it.

    Attributes:
        words: the question's words that count, names left out.
        idf: float32[words], how much each tells.
        worth: float32[words], that as part of what all together tell.
        counts: float32[words, n], how often a turn holds each.
        strengths: float32[words, n], how well each is met by a turn: 1 for the word itself, else the best cosine.
        worded: bool[n], whether that is known word by word; of the others the cosine of the whole turn stands in.
        cosines: float32[n], centred cosine with the question; 0 without a vector.
        spoke: float32[n]: 1 where a person the question names speaks, -1 where another does, 0 where the speaker is not
            known and where the question names none.
        persons: folded names of the speakers the question names.
        meets: bool[size], said in a conversation and meeting any word of the question. What meets none is no
            better for being long or naming somebody; and a fact is no small talk, however short.
        named: float32[size], 1 for what is linked to an entity the question names.
        linked: float32[size], how strongly a candidate is linked with the best by words and meaning, 0 to 1.
        average_chars: mean length of the memories that were searched.
        total: number of memories that were searched.
        frequencies: by term of the question, how many memories hold it.
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
    def nearby(self) -> NDArray[np.intp]:
        """Places in `turns` of the turns one and two before each candidate, then one and two after: intp[4, size]."""
        return self.turns.nearby

    @property
    def before(self) -> NDArray[np.intp]:
        """Of the turns one and two before each, intp[2, size]."""
        return self.turns.nearby[:REACH]

    @property
    def after(self) -> NDArray[np.intp]:
        """Of the turns one and two after each, intp[2, size]."""
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
    """Return the pool of a question; None where no rows were read."""
    rows = found.rows
    if rows is None:
        return None
    turns, size = rows.turns, rows.size
    persons = named_persons(plan.query.text, turns)
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
        average_chars=max(1.0, found.characters / max(1, found.total)),
        total=found.total,
        frequencies=found.frequencies,
        namings=namings,
    )


def named_persons(question: str, turns: Turns) -> tuple[str, ...]:
    """Return the speakers of these turns that the question names, folded, as whole words, in alphabetical order."""
    asked = set(name_terms(question))
    places = np.bincount(turns.speakers).nonzero()[0].tolist()
    names = {name_key(speaker) for place in places if (speaker := turns.names[place])}
    return tuple(sorted(name for name in names if not asked.isdisjoint(name.split())))


def terms_of(persons: Iterable[str]) -> set[str]:
    """Return the words of names, as they are written and as they are indexed."""
    return {term for person in persons for term in (*person.split(), *index_terms(person))}


def _spoke(turns: Turns, persons: Sequence[str]) -> Floats:
    if not persons:  # there may be thousands of speakers
        return np.zeros(len(turns), np.float32)
    worth = [0.0 if not name else 1.0 if name_key(name) in persons else -1.0 for name in turns.names]
    return np.array(worth, np.float32).take(turns.speakers)


def _named(rows: CandidateRows, namings: Sequence[Naming], words: Sequence[str], strengths: Floats) -> Floats:
    """Return 1 for candidates about, or naming, an entity the question names. They match the words it is named by: what
    Sarah likes answers what my wife likes.
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
    """Return the question's words, their weights, how often each turn holds each, how well it matches each, and whether
    that is known word by word.

    A word meets a turn by the best cosine among the turn's words. Where either has no vectors (another script, another
    embedder) the cosine of the whole turn stands in for all words; the word itself meets it fully.
    """
    names, cosines = terms_of(persons), rows.cosines
    words = {
        term: inverse_frequency(count, found.total) for term, count in found.frequencies.items() if term not in names
    }
    question = plan.worded
    vectors = {} if question is None else _word_vectors(question, plan, words, names, total=found.total)
    terms = tuple(term for term, idf in words.items() if idf > 0)
    stand_in = np.minimum(np.maximum(_STAND_IN + (1 - _STAND_IN) * cosines, 0), 1) * (cosines != 0)
    counts = _counts_of(terms, found, rows)
    met = np.where(counts > 0, np.float32(1), stand_in)
    worded = np.zeros(met.shape[1], np.bool_)
    if vectors and terms and rows.words is not None:
        worded[_meet_by_vector(met, terms, vectors, rows.words, rows.turns.keys)] = True
    return terms, np.array([words[term] for term in terms], np.float32), counts, met, worded


def _counts_of(terms: tuple[str, ...], found: CandidateSet, rows: CandidateRows) -> Floats:
    """Return how often each turn holds each of these, float32[terms, n]: terms of the question, and pieces only the
    embedder knows.
    """
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
    """Return the vectors of the question's words by index term. A piece that is not a term becomes one."""
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
    met: Floats, terms: Sequence[str], vectors: Mapping[str, Floats], held: WordVectors, keys: Keys
) -> NDArray[np.intp]:
    """Late interaction: for each word of the question, the best cosine among the words of a turn, if both have vectors.
    Return the places of the turns that have.
    """
    with_vector = [row for row, term in enumerate(terms) if term in vectors]
    asked = np.stack([vectors[terms[row]] for row in with_vector])
    if not len(held.keys):
        return np.zeros(0, np.intp)
    order = np.argsort(keys)
    places = order[keys.searchsorted(held.keys, sorter=order)]
    with one_thread():  # on two, a product this small takes twenty times as long when the machine is busy
        cosines = (asked / np.float32(127)) @ held.codes.astype(np.float32).T
    best = np.maximum.reduceat(cosines, held.starts, axis=1)
    met[np.ix_(np.array(with_vector), places)] = np.maximum(best, 0.0)
    return places


def likeness(rows: CandidateRows, places: NDArray[np.intp]) -> Floats:
    """Return how alike some candidates are: centred cosines, float32[n, n]; 0 where below or unknown."""
    among = np.zeros((len(places), len(places)), np.float32)
    for directions in rows.directions:
        mine = directions[places]
        with one_thread():
            among = np.maximum(among, mine @ mine.T)
    return among
