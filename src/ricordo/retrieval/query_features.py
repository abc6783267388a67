"""What a question asks for: its words without the names in it and without that one wants to know, part by part."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.retrieval.plan import Plan
from ricordo.retrieval.pool import Pool
from ricordo.storage.candidates import inverse_frequency
from ricordo.text import index_terms, question_terms
from ricordo.text.features import speaks_of_themselves
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of

if TYPE_CHECKING:
    Floats = NDArray[np.float32]

_QUESTION_CHARACTERS = 2_000


@cached()
def _asking() -> frozenset[str]:
    """Return words that ask for an answer and do not say about what; without them only names may be left."""
    words = all_languages().words(lambda each: each.questions.asking)
    return frozenset(term for word in words for term in index_terms(word))


@cached()
def _parts(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of what joins the parts of a question."""
    joined_by = languages.pattern(lambda each: each.questions.parts_joined_by, r"\b(?:{})\b").pattern
    return re.compile(rf"[,;:?!]|{joined_by}", re.IGNORECASE)


@cached()
def _of_anything(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of what is said of anything: "tell me"."""
    return languages.pattern(lambda each: each.questions.of_anything, flags=re.IGNORECASE)


def asked_for(words: Sequence[str], *, terms: Mapping[str, object], names: frozenset[str]) -> NDArray[np.bool_]:
    """Return which words of a question say what is asked for, bool[words]: not names, and not words such as "tell me".
    Word pieces that only the embedder knows are left out: they may be parts of a name.
    """
    asking = _asking()
    return np.array([word in terms and word not in names and word not in asking for word in words], np.bool_)


def parts_of(question: str, asked: Sequence[str]) -> list[NDArray[np.intp]]:
    """Which of the words that are asked for stand in each part of a question, where they stand in several: "the car and
    its tyres" is answered by what says something of either.
    """
    question = question[:_QUESTION_CHARACTERS]
    texts = _parts(languages_of(question)).split(question)
    terms = [frozenset(index_terms(text)) for text in texts] if len(texts) > 1 else []
    places = [np.array([place for place, word in enumerate(asked) if word in part], np.intp) for part in terms]
    found = [each for each in places if len(each)]
    return found if len(found) > 1 else []


def asks_of_themselves(question: str) -> bool:
    """Return whether a question is about the asker: "tell me" and "how do I" do not count."""
    question = question[:_QUESTION_CHARACTERS]
    return speaks_of_themselves(_of_anything(languages_of(question)).sub(" ", question))


class Asked(NamedTuple):
    """What a question asks for: its words and how much each tells, float32[words]; how well candidates meet each and
    whether they hold it, both float32[words, size].
    """

    words: tuple[str, ...]
    idf: Floats
    met: Floats
    held: Floats

    def said(self, question: str) -> Floats:
        """How well candidates meet all of it and each part of the question, float32[1 + parts, size]."""
        wanted = [np.arange(len(self.words)), *parts_of(question, self.words)]
        sums = [(self.idf[rows] @ self.met[rows], float(self.idf[rows].sum())) for rows in wanted]
        return np.array([met / max(total, 1e-9) for met, total in sums], np.float32)


def asked_of(pool: Pool, plan: Plan, held: Floats) -> Asked:
    """What a question asks for. The month or day that it is limited to is no word of the search, but facts state such.

    Args:
        held: whether candidates hold each word of the pool letter by letter, float32[words, n].
    """
    rows = np.flatnonzero(asked_for(pool.words, terms=pool.frequencies, names=pool.name_terms))
    words, idf = tuple(pool.words[row] for row in rows), pool.idf[rows]
    met, held = pool.strengths[rows, : pool.size], held[rows, : pool.size]
    span = plan.interval
    if span is None or len(dated := question_terms(span.text)) != 1:
        return Asked(words, idf, met, held)
    states = (pool.turns.counts(dated)[:, : pool.size] > 0).astype(np.float32)
    worth = np.array([inverse_frequency(int(states.sum()), pool.total)], np.float32)
    return Asked(
        (*words, *dated), np.concatenate([idf, worth]), np.concatenate([met, states]), np.concatenate([held, states])
    )
