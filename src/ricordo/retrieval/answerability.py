"""Whether a fact states what is asked. A turn stands among others that say the rest; a fact stands alone.

So being about the person that the question names is not enough: a fact must match the rest of the question, and better
than other facts about that person. The weights are a logistic regression on the
questions of tests/fixtures/relevance/fitting by tools/fit_relevance.py, one for questions that name somebody the memory
knows and one for all others. What is measured in meaning is measured in what chance reaches in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ricordo.retrieval.query_features import asks_of_themselves
from ricordo.text.features import begins_with_oneself, is_latin

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

NAMED: Mapping[str, float] = {
    "ahead among those named": 3.05,
    "ahead of its like": 2.15,
    "met": 2.58,
    "met by chance": -14.72,
    "by words": -0.89,
    "anchored": 5.36,
    "letters": 1.17,
    "own": 0.88,
    "alone": 0.33,
    "constant": -2.31,
}
"""What counts how much where the question names somebody the memory knows."""

UNNAMED: Mapping[str, float] = {
    "met beyond chance": 6.0,
    "ahead of its like": 2.45,
    "alone": 0.35,
    "meaning": 0.45,
    "meaning by words": 0.4,
    "other script": -0.71,
    "own": 1.82,
    "own unasked": -0.65,
    "constant": -4.7,
}
"""Likewise where it names nobody."""

EVERYTHING = 3.0
"""How far above the floor a fact about a person is if the question asks for everything about that person."""
_NOTHING = -5.0

_LETTERS_MOST = 6.0
_UNITS_MOST = 6.0


def features(
    *,
    cosines: Floats,
    said: Floats,
    by_chance: Floats,
    letters: Floats,
    worded: NDArray[np.bool_],
    anchored: NDArray[np.bool_],
    texts: Sequence[str],
    question: str,
) -> dict[str, Floats]:
    """What tells a fact that answers from its neighbours, float64[n] each.

    Args:
        cosines: in units of chance.
        said: float64[1 + parts, n], how well what is asked for and each part of it is met, 0 to 1.
        by_chance: float64[1 + parts], how well anything in the memory meets that in the middle.
        letters: how much of what is asked for stands there letter by letter, in nats.
        worded: what is met is met word by word; of the others their whole meaning stands in for that.
        texts: how each begins.
    """
    met, parts, chance = said[0], said[1:] if len(said) > 1 else said, by_chance[1:] if len(said) > 1 else by_chance
    best, second = np.sort(cosines)[::-1][:2] if len(cosines) > 1 else (cosines[0], 0.0)
    among = np.where(anchored, _ahead(met, anchored), met - met.max())
    is_own, latin = asks_of_themselves(question), is_latin(question)
    of_oneself = np.array([begins_with_oneself(text) for text in texts], np.float64)
    return {
        "ahead among those named": among,
        "ahead of its like": np.max([_ahead_of_its_like(part, worded, anchored) for part in parts], axis=0),
        "met": met - met.max(),
        "met beyond chance": np.max(parts - chance[:, np.newaxis], axis=0),
        "met by chance": np.full(len(met), chance.mean()),
        "by words": worded.astype(np.float64),
        "anchored": anchored.astype(np.float64),
        "letters": np.minimum(letters, _LETTERS_MOST),
        "alone": np.clip(cosines - np.where(cosines == best, second, best), -_UNITS_MOST, _UNITS_MOST),
        "meaning": cosines,
        "meaning by words": cosines * worded,
        "other script": np.array([is_latin(text) != latin for text in texts], np.float64),
        "own": np.full(len(met), float(is_own)),
        "own unasked": of_oneself * (not is_own),
    }


def _ahead_of_its_like(met: Floats, worded: NDArray[np.bool_], anchored: NDArray[np.bool_]) -> Floats:
    """Return how far each fact is ahead of the best other fact measured alike; facts about the named person are
    compared with each other.
    """
    ahead = np.zeros(len(met))
    for alike in (worded, ~worded):
        if alike.any():
            ahead[alike] = _ahead(met, alike)[alike]
        if (named := alike & anchored).any():
            ahead[named] = _ahead(met, named)[named]
    return ahead


def _ahead(met: Floats, among: NDArray[np.bool_]) -> Floats:
    """How far each is ahead of the best other one of some, float64[n]; of the mean of all where there is no other."""
    rivals = np.where(among, met, -np.inf)
    best = int(np.argmax(rivals))
    others = np.full(len(met), rivals[best])
    rivals[best] = -np.inf
    others[best] = rivals.max()
    return met - np.where(np.isfinite(others), others, met.mean())


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
