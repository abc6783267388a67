"""Estimate whether a fact answers a question.

A message is understood from the messages around it, but a fact has no context. If it is about the person in the
question, it must also match the rest of the question, and better than other facts about that person. The estimate is a
logistic regression, fitted by tools/fit_relevance.py on the questions of tests/fixtures/relevance/fitting: once for
questions that name a known person or thing, and once for all others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.retrieval.query import Plan, phrases_of_anything
from ricordo.retrieval.signals import FITTED, Pool
from ricordo.storage.candidates import inverse_frequency
from ricordo.text.analyzer import (
    begins_with_oneself,
    index_terms,
    is_latin,
    question_terms,
    raw_words,
    speaks_of_themselves,
)
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]

NAMED: Mapping[str, float] = FITTED["facts"]["named"]
UNNAMED: Mapping[str, float] = FITTED["facts"]["unnamed"]
"""Weights of the features of a fact, for questions that name an entity in memory, and for all others."""

# "Tell me everything about Anna" has no words besides the name: facts about Anna answer it, others do not. These are
# log odds, far from the floor on either side.
EVERYTHING = 3.0
_NOTHING = -5.0

# Beyond these limits, more letters or a greater lead add no evidence, and an outlier would decide alone.
_LETTERS_MOST = 6.0
_UNITS_MOST = 6.0

# Only the beginning of a question is read.
_QUESTION_CHARACTERS = 2_000


def features(
    *,
    cosines: Doubles,
    said: Doubles,
    by_chance: Doubles,
    letters: Doubles,
    worded: NDArray[np.bool_],
    anchored: NDArray[np.bool_],
    texts: Sequence[str],
    question: str,
) -> dict[str, Doubles]:
    """Return the features of each fact, float64[n] each.

    Args:
        cosines: in units of the chance level.
        said: float64[1 + parts, n], how well a fact matches the question and each part of it, 0 to 1.
        by_chance: float64[1 + parts], the mean of `said` over the memory.
        letters: the information, in nats, of question words that occur in the fact letter by letter.
        worded: whether a fact was compared word by word rather than by its overall meaning.
        texts: the beginning of each fact.
    """
    met, parts, chance = said[0], said[1:] if len(said) > 1 else said, by_chance[1:] if len(said) > 1 else by_chance
    best, second = np.sort(cosines)[::-1][:2] if len(cosines) > 1 else (cosines[0], 0.0)
    among = np.where(anchored, _ahead(met, anchored), met - met.max())
    is_own = asks_of_themselves(question)
    elsewhere = np.array([_are_in_two_languages(question, text) for text in texts], np.float64)
    beyond = np.max(parts - chance[:, np.newaxis], axis=0)
    ahead = np.max([_ahead_of_its_like(part, worded, anchored) for part in parts], axis=0)
    of_oneself = np.array([begins_with_oneself(text) for text in texts], np.float64)
    return {
        "ahead among those named": among,
        "ahead of its like": ahead,
        "met": met - met.max(),
        "met beyond chance": beyond,
        "met by chance": np.full(len(met), chance.mean()),
        "by words": worded.astype(np.float64),
        "anchored": anchored.astype(np.float64),
        "letters": np.minimum(letters, _LETTERS_MOST),
        "alone": np.clip(cosines - np.where(cosines == best, second, best), -_UNITS_MOST, _UNITS_MOST),
        "meaning": cosines,
        "meaning by words": cosines * worded,
        "beyond elsewhere": beyond * elsewhere,
        "ahead elsewhere": ahead * elsewhere,
        "meaning elsewhere": cosines * elsewhere,
        "own": np.full(len(met), float(is_own)),
        "own unasked": of_oneself * (not is_own),
    }


def _are_in_two_languages(question: str, text: str) -> bool:
    """Return whether a question and a fact have no language in common."""
    if not (is_latin(question) and is_latin(text)):
        return is_latin(question) != is_latin(text)
    asked = languages_of(question)
    return not any(each in asked for each in languages_of(text))


def _ahead_of_its_like(met: Doubles, worded: NDArray[np.bool_], anchored: NDArray[np.bool_]) -> Doubles:
    """Return the lead of each candidate over the best other one that was measured in the same way.

    Candidates about an entity that the question names are only compared with each other.
    """
    ahead = np.zeros(len(met))
    for alike in (worded, ~worded):
        if alike.any():
            ahead[alike] = _ahead(met, alike)[alike]
        if (named := alike & anchored).any():
            ahead[named] = _ahead(met, named)[named]
    return ahead


def _ahead(met: Doubles, among: NDArray[np.bool_]) -> Doubles:
    """Return the lead of each fact over the best other one in `among`, else over the mean of all, float64[n]."""
    rivals = np.where(among, met, -np.inf)
    best = int(np.argmax(rivals))
    others = np.full(len(met), rivals[best])
    rivals[best] = -np.inf
    others[best] = rivals.max()
    return met - np.where(np.isfinite(others), others, met.mean())


def answer_odds(found: Mapping[str, Doubles], *, is_named: bool, asks_all: bool) -> Doubles:
    """Return how likely each fact answers the question, as log odds, float64[n].

    Args:
        is_named: the question names an entity in memory.
        asks_all: the question consists of names only.
    """
    if is_named and asks_all:
        return np.where(found["anchored"] > 0, EVERYTHING, _NOTHING)
    weights = NAMED if is_named else UNNAMED
    told = (weight * found[name] for name, weight in weights.items() if name != "constant")
    return np.asarray(sum(told, np.full(len(found["met"]), weights["constant"])), np.float64)


@cached()
def _asking() -> frozenset[str]:
    """Return words that request an answer without naming its topic. A question without other words has only names."""
    languages = all_languages()
    words = languages.words(lambda each: each.questions.asking)
    return frozenset(term for word in words for term in index_terms(word, languages=languages))


@cached()
def _parts(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of separators between the parts of a question."""
    joined_by = languages.pattern(lambda each: each.questions.parts_joined_by, r"\b(?:{})\b").pattern
    return re.compile(rf"[,;:?!]|{joined_by}", re.IGNORECASE)


def asked_for(words: Sequence[str], *, terms: Mapping[str, object], names: frozenset[str]) -> NDArray[np.bool_]:
    """Return which words of a question state its topic, bool[words]: neither names nor words such as "tell me". Word
    pieces known only to the embedder are excluded, because they may be parts of a name.
    """
    asking = _asking()
    return np.array([word in terms and word not in names and word not in asking for word in words], np.bool_)


def parts_of(question: str, asked: Sequence[str]) -> list[NDArray[np.intp]]:
    """Return, for a question with several parts, which topic words are in each part. "The car and its tyres" is
    answered by a memory about either.
    """
    question = question[:_QUESTION_CHARACTERS]
    texts = _parts(languages_of(question)).split(question)
    terms = [frozenset(index_terms(text)) for text in texts] if len(texts) > 1 else []
    places = [np.array([place for place, word in enumerate(asked) if word in part], np.intp) for part in terms]
    found = [each for each in places if len(each)]
    return found if len(found) > 1 else []


def topics_beside_names(question: str, asked: Sequence[str], names: frozenset[str]) -> list[NDArray[np.intp]]:
    """Return, for a list of names and topics ("Tell me about Anna and the rent"), which topic words are in each part
    without a name. Empty for any other question: in "What does Anna eat for lunch and dinner?", dinner is hers.
    """
    question = question[:_QUESTION_CHARACTERS]
    languages = languages_of(question)
    first, *others = _parts(languages).split(question)
    if not others:
        return []
    told, meant = _determiners(languages), names | {*asked}
    words = [
        [frozenset(index_terms(word)) for word in raw_words(part) if word not in told] for part in (first, *others)
    ]
    if any(not terms.isdisjoint(_asking()) for terms in words[0]):
        words[0] = [terms for terms in words[0] if not terms.isdisjoint(meant)]
    said = [frozenset[str]().union(*each) for each in words]
    is_list = all(not terms.isdisjoint(meant) for each in words for terms in each)
    if not is_list or not any(not each.isdisjoint(names) and each.isdisjoint(asked) for each in said):
        return []
    places = ([place for place, word in enumerate(asked) if word in each] for each in said if each.isdisjoint(names))
    return [np.array(each, np.intp) for each in places if each]


@cached()
def _determiners(languages: LanguageSet) -> frozenset[str]:
    return languages.words(lambda each: (*each.statements.articles, *each.statements.determiners))


def asks_of_themselves(question: str) -> bool:
    """Return whether a question is about the asker. "Tell me" and "how do I" do not count."""
    question = question[:_QUESTION_CHARACTERS]
    return speaks_of_themselves(phrases_of_anything(languages_of(question)).sub(" ", question))


class Asked(NamedTuple):
    """The topic words of a question and their information, float32[words]; how well each candidate matches each word,
    and whether it contains the word, both float32[words, size].
    """

    words: tuple[str, ...]
    idf: Floats
    met: Floats
    held: Floats

    def said(self, question: str) -> Floats:
        """Return how well candidates match the complete question and each part of it, float32[1 + parts, size]."""
        return self._matches([np.arange(len(self.words)), *parts_of(question, self.words)])

    def said_beside(self, question: str, names: frozenset[str]) -> Floats:
        """Return how well candidates match each topic that a list has beside names, float32[topics, size]."""
        return self._matches(topics_beside_names(question, self.words, names))

    def _matches(self, wanted: Sequence[NDArray[np.intp]]) -> Floats:
        sums = [(self.idf[rows] @ self.met[rows], float(self.idf[rows].sum())) for rows in wanted]
        found = [met / max(total, 1e-9) for met, total in sums]
        return np.array(found, np.float32).reshape(len(wanted), self.met.shape[1])


def asked_of(pool: Pool, plan: Plan, held: Floats) -> Asked:
    """Return the topic words of a question. A month or day in the question is no search word, but facts may state it.

    Args:
        held: whether candidates contain each word of the pool letter by letter, float32[words, n].
    """
    rows = np.flatnonzero(asked_for(pool.words, terms=pool.frequencies, names=pool.name_terms))
    words, idf = tuple(pool.words[row] for row in rows), pool.idf[rows]
    met, held = pool.strengths[rows, : pool.size], held[rows, : pool.size]
    span = plan.interval
    if not pool.words or span is None or len(dated := question_terms(span.text)) != 1:
        return Asked(words, idf, met, held)
    states = (pool.turns.counts(dated)[:, : pool.size] > 0).astype(np.float32)
    worth = np.array([inverse_frequency(int(states.sum()), pool.total)], np.float32)
    return Asked(
        (*words, *dated), np.concatenate([idf, worth]), np.concatenate([met, states]), np.concatenate([held, states])
    )
