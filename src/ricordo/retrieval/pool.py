"""The candidates of one question side by side, with the turns around them: what the signals are computed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.models.embedding.local import one_thread
from ricordo.models.embedding.vectors import Embedded
from ricordo.retrieval.candidates import Lookup, inverse_frequency
from ricordo.retrieval.graph import FOLLOWING
from ricordo.retrieval.plan import CONSOLIDATED
from ricordo.storage.database.embeddings import centre, word_vectors
from ricordo.storage.database.turns import Turns
from ricordo.text import index_terms, name_key, name_terms

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]

Seeds = Mapping[str, Mapping[int, float]]

REACH = 2
"""How many turns on either side belong to a turn's context."""

EXPANDED = 40
"""Of the best by words so many have neighbours that are candidates, too: the answer to what one turn asks."""

_STAND_IN = 0.2
"""What a word finds by chance in any turn: where a whole turn's cosine stands in for words, it begins there."""


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
        cosines: float32[n], centred cosine with the question; 0 where there is no vector.
        spoke: float32[n]: 1 where a person the question names speaks, -1 where another does, 0 where nobody is known
            and where it names none.
        persons: folded names of the people the question names.
        meets: bool[size], what is said in a conversation and meets any word of the question. What meets none is no
            better for being long or naming somebody; and a fact is no small talk, however short.
        named: float32[size], 1 for what is linked to an entity the question names.
        linked: float32[size], how strongly a candidate hangs together with the best by words and meaning, 0 to 1.
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


def gather(look: Lookup, seeds: Seeds) -> Pool | None:
    """Read the candidates and what surrounds them. Those near the best by words are candidates, too."""
    chosen = _keys(chain.from_iterable(seeds.values()))
    if not len(chosen):
        return None
    turns, size, counts = _turns(look, chosen, _keys(islice(seeds.get("words", ()), EXPANDED)))
    if not size:
        return None
    persons = named_persons(look.plan.query.text, turns)
    cosines = np.append(_cosines(look, turns.keys[:-1]), np.float32(0))  # nobody means nothing
    words, idf, counts, strengths, worded = _strengths(look, turns, persons, cosines, counts)
    worth = np.asarray(idf / max(float(idf.sum()), 1e-9), np.float32)
    named = _named(look, turns.keys[:size], words, strengths)
    _, chars = total = look.snapshot.statistics.size(look.scope, look.plan.shelves)
    return Pool(
        turns=turns,
        size=size,
        words=words,
        idf=idf,
        worth=worth,
        counts=counts,
        strengths=strengths,
        worded=worded,
        cosines=cosines,
        spoke=_spoke(turns, persons),
        persons=persons,
        named=named,
        meets=(turns.sessions[:size] >= 0) & (strengths[:, :size] > 0).any(axis=0),
        linked=_linked(seeds, turns.keys[:size]),
        average_chars=max(1.0, chars / max(1, total[0])),
    )


def _turns(look: Lookup, chosen: Keys, best: Keys) -> tuple[Turns, int, Floats]:
    """The candidates, which are the chosen and what is near the best of them, then what is around those; how many
    candidates there are; and how often each turn holds each term of the question, float32[terms, n].
    """
    snapshot, terms, spaces = look.snapshot, tuple(look.terms), look.snapshot.visible(look.scope)
    # What has become knowledge stands around other turns, and is no candidate unless it is asked for.
    shelves = look.plan.shelves
    has_hidden = CONSOLIDATED not in shelves and snapshot.statistics.size(look.scope, (CONSOLIDATED,))[0] > 0
    with snapshot.turns(shared=not look.plan.query.archived) as table:
        turns, size = table.around(
            snapshot,
            chosen,
            best,
            reach=REACH,
            allowed=look.allowed,
            spaces=spaces,
            shelves=shelves if has_hidden else None,
        )
        counts = table.counts(snapshot, terms, turns, spaces)
    return turns, size, turns.counts(terms) if counts is None else counts


def _keys(found: Iterable[int]) -> Keys:
    return np.fromiter(found, np.int64)


def named_persons(question: str, turns: Turns) -> tuple[str, ...]:
    """The speakers of these turns whom the question names, folded, as whole words, in the order of the alphabet."""
    asked = set(name_terms(question))
    places = np.bincount(turns.speakers).nonzero()[0].tolist()
    names = {name_key(speaker) for place in places if (speaker := turns.names[place])}
    return tuple(sorted(name for name in names if not asked.isdisjoint(name.split())))


def terms_of(persons: Iterable[str]) -> set[str]:
    """The words of names, as they are written and as they are indexed."""
    return {term for person in persons for term in (*person.split(), *index_terms(person))}


def _spoke(turns: Turns, persons: Sequence[str]) -> Floats:
    if not persons:  # there may be thousands of speakers
        return np.zeros(len(turns), np.float32)
    worth = [0.0 if not name else 1.0 if name_key(name) in persons else -1.0 for name in turns.names]
    return np.array(worth, np.float32).take(turns.speakers)


def _named(look: Lookup, keys: Keys, words: Sequence[str], strengths: Floats) -> Floats:
    """Which candidates are about somebody the question names, or name them: 1. The words it does so with are met by
    these: what Sarah likes answers what my wife likes.
    """
    named = np.zeros(len(keys), np.float32)
    for naming in look.namings:
        linked = look.snapshot.graph.linked_to(keys.tolist(), naming.entities)
        about = np.flatnonzero(np.fromiter((key in linked for key in keys.tolist()), np.bool_, len(keys)))
        named[about] = 1.0
        rows = np.array([row for row, word in enumerate(words) if word in naming.terms], np.intp)
        strengths[np.ix_(rows, about)] = 1.0
    return named


def _linked(seeds: Seeds, keys: Keys) -> Floats:
    followed = [seeds[name] for name in FOLLOWING if seeds.get(name)]
    if not followed:
        return np.zeros(len(keys), np.float32)
    strongest = (max(found.get(key, 0.0) for found in followed) for key in keys.tolist())
    return np.fromiter(strongest, np.float32, len(keys))


def _strengths(
    look: Lookup, turns: Turns, persons: Sequence[str], cosines: Floats, counts: Floats
) -> tuple[tuple[str, ...], Floats, Floats, Floats, NDArray[np.bool_]]:
    """The question's words, what each tells, how often each turn holds each, how well it meets each, and whether that
    is known word by word.

    A word meets a turn by the best cosine among the turn's words. Where either has no vectors (another script, another
    embedder) the cosine of the whole turn stands in for all words; the word itself meets it fully.

    Args:
        counts: how often each turn holds each term of the question, float32[terms, n].
    """
    names = terms_of(persons)
    words = {term: entry.idf for term, entry in look.terms.items() if term not in names}
    model, question = _worded(look)
    vectors = {} if question is None else _word_vectors(look, question, words, names)
    terms = tuple(term for term, idf in words.items() if idf > 0)
    stand_in = np.minimum(np.maximum(_STAND_IN + (1 - _STAND_IN) * cosines, 0), 1) * (cosines != 0)
    counts = _counts_of(terms, look, turns, counts)
    met = np.where(counts > 0, np.float32(1), stand_in)
    worded = np.zeros(met.shape[1], np.bool_)
    if vectors and terms:
        worded[_meet_by_vector(look, met, terms, vectors, model, turns.keys)] = True
    return terms, np.array([words[term] for term in terms], np.float32), counts, met, worded


def _counts_of(terms: tuple[str, ...], look: Lookup, turns: Turns, known: Floats) -> Floats:
    """How often each turn holds each of these, float32[terms, n]: of the terms of the question, for which that is
    known, and of pieces only the embedder knows.
    """
    if terms == tuple(look.terms):
        return known
    others = [term for term in terms if term not in look.terms]
    row_of = {term: row for row, term in enumerate((*look.terms, *others))}
    counts = np.concatenate([known, turns.counts(others)]) if others else known
    return counts.take([row_of[term] for term in terms], axis=0)


def _word_vectors(look: Lookup, question: Embedded, words: dict[str, float], names: set[str]) -> dict[str, Floats]:
    """The vectors of the question's words by index term; a piece that is no term of the question becomes one."""
    total, _ = look.snapshot.statistics.size(look.scope, look.plan.shelves)
    found: dict[str, Floats] = {}
    assert question.words is not None
    for piece, vector in zip(question.pieces, question.words, strict=True):
        term = (index_terms(piece) or [piece])[0]
        if piece in names or term in names or piece in look.plan.ignored:
            continue
        words.setdefault(term, inverse_frequency(0, total) / 2)
        found[term] = vector
    return found


def _worded(look: Lookup) -> tuple[int, Embedded | None]:
    """The first model that gave the question's words."""
    for model, question in look.plan.vectors.items():
        if question.words is not None:
            return model, question
    return 0, None


def _meet_by_vector(
    look: Lookup, met: Floats, terms: Sequence[str], vectors: Mapping[str, Floats], model: int, keys: Keys
) -> NDArray[np.intp]:
    """Late interaction: for each word of the question the best cosine among the words of a turn, where both have
    vectors. Returns the places of the turns that have.
    """
    with_vector = [row for row, term in enumerate(terms) if term in vectors]
    asked = np.stack([vectors[terms[row]] for row in with_vector])
    holders, starts, held = word_vectors(look.snapshot, model, keys.tolist(), width=asked.shape[1])
    if not len(holders):
        return np.zeros(0, np.intp)
    order = np.argsort(keys)
    places = order[keys.searchsorted(holders, sorter=order)]
    with one_thread():  # on two, a product this small takes twenty times as long when the machine is busy
        cosines = (asked / np.float32(127)) @ held.astype(np.float32).T
    best = np.maximum.reduceat(cosines, starts, axis=1)
    met[np.ix_(np.array(with_vector), places)] = np.maximum(best, 0.0)
    return places


def _cosines(look: Lookup, keys: Keys) -> Floats:
    """Cosine with the question after the mean of the caller's memories is taken from both, by the first model."""
    cosines = np.zeros(len(keys), np.float32)
    spaces, shelves = look.snapshot.visible(look.scope), look.plan.shelves
    for model, question in look.plan.vectors.items():
        if question.vector is not None:
            found = look.vectors.cosines(
                look.snapshot, keys, question.vector, model=model, spaces=spaces, shelves=shelves
            )
            cosines = np.where((cosines == 0) & ~np.isnan(found), found, cosines)
    return cosines


def likeness(look: Lookup, keys: Keys) -> Floats:
    """How alike memories are: cosines after the mean is taken from each, float32[n, n]; 0 where below or unknown."""
    among = np.zeros((len(keys), len(keys)), np.float32)
    spaces, shelves = look.snapshot.visible(look.scope), look.plan.shelves
    for model, question in look.plan.vectors.items():
        if question.vector is None:
            continue
        width = len(question.vector)
        rows = look.vectors.vectors(look.snapshot, keys, model=model, dimension=width, spaces=spaces, shelves=shelves)
        rows = np.nan_to_num(rows - centre(look.snapshot, model=model, dimension=width, spaces=spaces, shelves=shelves))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        with one_thread():
            among = np.maximum(among, rows @ rows.T)
    return among
