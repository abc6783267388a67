"""Whether a fact states what is asked. A turn stands among others that say the rest; a fact stands alone.

So of a fact it is not enough that it is about whom the question names: what is left of the question without its names
must be met by it, and better than by the other facts about the same. The weights are a logistic regression on the
questions of tests/fixtures/relevance/fitting by tools/fit_relevance.py, one for questions that name somebody the memory
knows and one for all others. What is measured in meaning is measured in what chance reaches in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.words import index_terms

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

NAMED: Mapping[str, float] = {
    "met among those named": 5.78, "anchored": 5.32, "letters": 1.08, "own": 1.22, "met": 7.01, "alone": 0.07,
    "as a turn": 0.09, "constant": -5.16,
}  # fmt: skip
"""What counts how much where the question names somebody the memory knows."""

UNNAMED: Mapping[str, float] = {
    "words": 0.13, "own": 1.39, "alone": 0.38, "meaning": 0.78, "letters": 0.35, "names others": -0.08, "score": 3.53,
    "constant": -3.07,
}  # fmt: skip
"""Likewise where it names nobody."""

EVERYTHING = 3.0
"""How far above the floor a fact stands that is about whom a question asks everything of."""
_NOTHING = -5.0

_LETTERS_MOST = 6.0
_UNITS_MOST = 6.0

# Words that ask to be told something and say nothing of what: what is left then is the name alone.
_ASKING = frozenset(
    term
    for word in (
        "know", "tell", "everything", "anything", "something", "all", "remember", "remind", "say", "said", "describe",
        "note", "noted", "information", "info", "please", "mind", "keep", "need", "talk", "explain", "give", "list",
        "знать", "знаешь", "знаем", "известно", "рассказать", "расскажи", "рассказывай", "помнить", "помнишь",
        "помним", "напомни", "напомнить", "все", "всё", "скажи", "говорили", "пожалуйста", "информация",
    )
    for term in index_terms(word)
)  # fmt: skip


def asked_for(words: Sequence[str], *, terms: Mapping[str, object], names: frozenset[str]) -> NDArray[np.bool_]:
    """Which words of a question say what is asked for, bool[words]: not whom it is about, nor that one wants to know.
    Pieces only the embedder knows are left out: they may be halves of a name.
    """
    return np.array([word in terms and word not in names and word not in _ASKING for word in words], np.bool_)


def features(*, cosines: Floats, words: Floats, met: Floats, letters: Floats, scores: Floats, even: Floats,
             anchored: NDArray[np.bool_], names_others: NDArray[np.bool_],
             is_own: bool) -> dict[str, Floats]:  # fmt: skip
    """What tells a fact that answers from its neighbours, float64[n] each.

    Args:
        cosines, words: in units of chance.
        met: how well what is asked for is met, 0 to 1.
        letters: how much of that stands there letter by letter, in nats.
        even: the relevance a turn would have.
        is_own: the question is about whoever asks it.
    """
    among = met - met.max()
    for place in np.flatnonzero(anchored):
        others = np.delete(met, place)[np.delete(anchored, place)]
        among[place] = met[place] - (others.max() if len(others) else met.mean())
    best, second = np.sort(cosines)[::-1][:2] if len(cosines) > 1 else (cosines[0], 0.0)
    return {
        "alone": np.clip(cosines - np.where(cosines == best, second, best), -_UNITS_MOST, _UNITS_MOST),
        "meaning": cosines,
        "words": words,
        "met among those named": among,
        "met": met - met.max(),
        "letters": np.minimum(letters, _LETTERS_MOST),
        "as a turn": np.clip(even, -_UNITS_MOST, _UNITS_MOST),
        "anchored": anchored.astype(np.float64),
        "names others": names_others.astype(np.float64),
        "score": scores - scores.max(),
        "own": np.full(len(met), float(is_own)),
    }


def stated(found: Mapping[str, Floats], *, is_named: bool, asks_all: bool) -> Floats:
    """How likely each fact answers, as the logarithm of its odds, float64[n].

    Args:
        is_named: the question names somebody the memory knows.
        asks_all: nothing is left of the question without its names.
    """
    if is_named and asks_all:
        return np.where(found["anchored"] > 0, EVERYTHING, _NOTHING)
    weights = NAMED if is_named else UNNAMED
    told = (weight * found[name] for name, weight in weights.items() if name != "constant")
    return np.asarray(sum(told, np.full(len(found["met"]), weights["constant"])), np.float64)
