"""The candidates of one question side by side, with the turns around them: what the signals are computed on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.embedding.blas import one_thread
from ricordo.embedding.words import Embedded
from ricordo.retrieval.candidates import Lookup, inverse_frequency
from ricordo.store.sqlite.embeddings import centre, word_vectors
from ricordo.words import index_terms, name_key, name_terms

Seeds = Mapping[str, Mapping[int, float]]
Windows = Mapping[int, tuple[list[int], list[int]]]

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

REACH = 2
"""How many turns on either side belong to a turn's context."""

_STAND_IN = 0.2
"""What a word finds by chance in any turn: where a whole turn's cosine stands in for words, it begins there."""


class Turn(NamedTuple):  # not a dataclass: a search makes a thousand, and these are made four times as fast
    """What ranking knows of a memory. `terms` are its index terms, or none where none of the question's can be."""

    key: int
    content: str
    speaker: str | None
    session: int | None
    event_time: int
    is_episode: bool
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`turns` are the candidates (the first `size`) and the turns around them. All arrays run parallel to it.

    Attributes:
        before, after: places in `turns` of the turn before and after, at distance 1 and 2: intp[2, n], -1 for none.
        words: the question's words that count, names left out.
        idf: float32[words], how much each tells.
        strengths: float32[words, n], how well each is met by a turn: 1 for the word itself, else the best cosine.
        cosines: float32[n], centred cosine with the question; 0 where there is no vector.
        persons: folded names of the people the question names.
    """

    turns: tuple[Turn, ...]
    size: int
    before: Places
    after: Places
    words: tuple[str, ...]
    idf: Floats
    strengths: Floats
    cosines: Floats
    persons: tuple[str, ...]
    average_chars: float

    @property
    def candidates(self) -> tuple[Turn, ...]:
        return self.turns[: self.size]


def gather(look: Lookup, seeds: Seeds) -> Pool | None:
    """Read the candidates and what surrounds them. A word's neighbours within two turns are candidates too."""
    chosen = dict.fromkeys(key for found in seeds.values() for key in found)
    if not chosen:
        return None
    windows = _windows(look, seeds, chosen)
    keys = _candidates(look, seeds, windows, chosen)
    around = dict.fromkeys(key for pair in windows.values() for part in pair for key in part if key not in keys)
    turns = _turns(look, [*keys, *around])
    places = {turn.key: place for place, turn in enumerate(turns)}
    before, after = _chains(windows, places)
    persons = named_persons(look.plan.query.text, turns)
    cosines = _cosines(look, turns)
    words, idf, strengths = _strengths(look, turns, persons, cosines)
    _, chars = total = look.snapshot.shelf_counts(look.scope, look.plan.shelves)
    return Pool(
        turns=turns,
        size=sum(turn.key in keys for turn in turns),
        before=before,
        after=after,
        words=words,
        idf=idf,
        strengths=strengths,
        cosines=cosines,
        persons=persons,
        average_chars=max(1.0, chars / max(1, total[0])),
    )


def _candidates(look: Lookup, seeds: Seeds, windows: Windows, chosen: Mapping[int, None]) -> dict[int, None]:
    """The seeds, and the turns near those found by words, as far as the question's conditions allow."""
    near = np.array(
        [key for seed in seeds.get("words", ()) for part in windows.get(seed, ()) for key in part[:REACH]],
        np.int64,
    )
    if look.allowed is not None:
        near = near[np.isin(near, look.allowed)]
    return dict.fromkeys([*chosen, *near.tolist()])


def _windows(look: Lookup, seeds: Seeds, chosen: Mapping[int, None]) -> Windows:
    """The turns around each seed. Those near a word's seed become candidates, and need a context of their own."""
    by_word = list(seeds.get("words", ()))
    others = [key for key in chosen if key not in seeds.get("words", ())]
    return look.snapshot.windows(by_word, 2 * REACH) | look.snapshot.windows(others, REACH)


def _turns(look: Lookup, keys: Sequence[int]) -> tuple[Turn, ...]:
    rows = {row[0]: row for row in look.snapshot.turns(look.scope, keys)}
    beginnings = _beginnings(look)
    turns = []
    for key in keys:
        if (row := rows.get(key)) is not None:
            _, content, speaker, tags, session, event_time, kind = row
            terms = _terms(content, speaker or "", tags, beginnings)
            turns.append(Turn(key, content, speaker, session, event_time, kind == "episodic", terms))
    return tuple(turns)


def _beginnings(look: Lookup) -> re.Pattern[str] | None:
    """What every word begins with that could be one of the question's. None if only other scripts hold them."""
    words = set(look.terms)
    for question in look.plan.vectors.values():
        words.update(term for piece in question.pieces for term in index_terms(piece))
    parts = {beginning(word) for word in words if word.isascii()}
    return re.compile("|".join(map(re.escape, sorted(parts)))) if parts else None


def beginning(term: str) -> str:
    """The letters that an ASCII word and its stem share: stemming turns "dying" to "die", "tries" to "tri"."""
    if term in ("die", "lie", "tie"):
        return term[0]
    return term[:2] if len(term) <= 3 else term[:3]


def _terms(content: str, speaker: str, tags: str, beginnings: re.Pattern[str] | None) -> tuple[str, ...]:
    """Folding is the costliest part of reading a turn; most turns around a candidate hold no word of the question."""
    text = f"{content} {speaker} {tags if tags != '[]' else ''}"
    if text.isascii() and (beginnings is None or beginnings.search(text.lower().replace("'", "")) is None):
        return ()
    return _folded(text)


@lru_cache(maxsize=20_000)
def _folded(text: str) -> tuple[str, ...]:
    """Texts come up as candidates again and again."""
    return tuple(index_terms(text))


def _chains(windows: Windows, places: Mapping[int, int]) -> tuple[Places, Places]:
    """From each seed's window the order of its session around it, as places of the turns one and two away."""
    before = np.full((REACH, len(places)), -1, np.intp)
    after = np.full((REACH, len(places)), -1, np.intp)
    for key, (earlier, later) in windows.items():
        line = [place for each in (*reversed(earlier), key, *later) if (place := places.get(each)) is not None]
        for distance in range(1, REACH + 1):
            for first, second in zip(line, line[distance:], strict=False):
                after[distance - 1, first] = second
                before[distance - 1, second] = first
    return before, after


def named_persons(question: str, turns: Sequence[Turn]) -> tuple[str, ...]:
    """The speakers of these turns whom the question names, folded, as whole words."""
    asked = set(name_terms(question))
    speakers = dict.fromkeys(turn.speaker for turn in turns if turn.speaker)
    names = dict.fromkeys(name_key(speaker) for speaker in speakers)
    return tuple(name for name in names if not asked.isdisjoint(name.split()))


def _strengths(look: Lookup, turns: Sequence[Turn], persons: Sequence[str],
               cosines: Floats) -> tuple[tuple[str, ...], Floats, Floats]:  # fmt: skip
    """The question's words, what each tells, and how well each turn meets each.

    A word meets a turn by the best cosine among the turn's words. Where either has no vectors (another script, another
    embedder) the cosine of the whole turn stands in for all words; the word itself meets it fully.
    """
    names = {term for person in persons for term in (*person.split(), *index_terms(person))}
    words = {term: entry.idf for term, entry in look.terms.items() if term not in names}
    model, question = _worded(look)
    vectors = {} if question is None else _word_vectors(look, question, words, names)
    terms = tuple(term for term, idf in words.items() if idf > 0)
    met = np.tile(np.clip(_STAND_IN + (1 - _STAND_IN) * cosines, 0, 1) * (cosines != 0), (len(terms), 1))
    by_vector = np.zeros(met.shape, bool)
    if vectors and terms:
        _meet_by_vector(look, met, by_vector, terms, vectors, model, turns)
    for row, term in enumerate(terms):
        holders = [place for place, turn in enumerate(turns) if term in turn.terms and not by_vector[row, place]]
        met[row, holders] = 1.0
    return terms, np.array([words[term] for term in terms], np.float32), np.asarray(met, np.float32)


def _word_vectors(look: Lookup, question: Embedded, words: dict[str, float], names: set[str]) -> dict[str, Floats]:
    """The vectors of the question's words by index term; a piece that is no term of the question becomes one."""
    total, _ = look.snapshot.shelf_counts(look.scope, look.plan.shelves)
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


def _meet_by_vector(look: Lookup, met: Floats, by_vector: NDArray[np.bool_], terms: Sequence[str],
                    vectors: Mapping[str, Floats], model: int, turns: Sequence[Turn]) -> None:  # fmt: skip
    """Late interaction: for each word of the question the best cosine among the words of a turn."""
    held = word_vectors(look.snapshot, model, [turn.key for turn in turns])
    places = [place for place, turn in enumerate(turns) if turn.key in held]
    if not places:
        return
    rows = [held[turns[place].key][1] for place in places]
    stacked = np.concatenate(rows).astype(np.float32) / np.float32(127)
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    with_vector = [row for row, term in enumerate(terms) if term in vectors]
    asked = np.stack([vectors[terms[row]] for row in with_vector])
    with one_thread():  # on two, a product this small takes twenty times as long when the machine is busy
        cosines = asked @ stacked.T
    best = np.maximum.reduceat(cosines, starts, axis=1)
    met[np.ix_(with_vector, places)] = np.maximum(best, 0.0)
    by_vector[np.ix_(with_vector, places)] = True


def _cosines(look: Lookup, turns: Sequence[Turn]) -> Floats:
    """Cosine with the question after the mean of the caller's memories is taken from both, by the first model."""
    cosines = np.zeros(len(turns), np.float32)
    spaces = look.snapshot.visible(look.scope)
    keys = np.array([turn.key for turn in turns], np.int64)
    for model, question in look.plan.vectors.items():
        if question.vector is None:
            continue
        rows = look.vectors.vectors(
            look.snapshot,
            keys,
            model=model,
            dimension=len(question.vector),
            spaces=spaces,
            shelves=look.plan.shelves,
        )
        mean = centre(
            look.snapshot, model=model, dimension=len(question.vector), spaces=spaces, shelves=look.plan.shelves
        )
        here = ~np.isnan(rows[:, 0]) & (cosines == 0)
        centred, asked = rows[here] - mean, question.vector - mean
        norms = np.linalg.norm(centred, axis=1) * np.linalg.norm(asked)
        cosines[here] = centred @ asked / np.maximum(norms, 1e-9)
    return cosines
