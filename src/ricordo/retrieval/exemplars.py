"""A question's intent by its nearness to questions whose intent is known.

How near is near depends on the embedder, so it is measured on the exemplars themselves: each is compared with all the
others, and from that follow the cosine at which the nearest tells the intent, and whether the embedder can tell intents
apart at all. Where it cannot, words decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ricordo.models.embedding import checked_batch
from ricordo.retrieval.question import INTENTS, Intent
from ricordo.text.languages import all_languages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ricordo.ports import Embedder

    Floats = NDArray[np.float32]


def known_questions() -> dict[Intent, tuple[str, ...]]:
    """Return questions of each intent, about nothing in particular, so that only the way of asking is compared.

    They are from the language files. Those of the package have some in English and Russian only: more would move the
    threshold that is measured on all of them. In other languages words decide.
    """
    return {intent: _questions_of(intent) for intent in INTENTS}


def _questions_of(intent: Intent) -> tuple[str, ...]:
    return tuple(text for language in all_languages() for text in language.questions.exemplars.get(intent, ()))


_LEAST_TELLING = 0.7
"""An embedder that gives fewer of the exemplars their own intent does not tell intents apart."""

_TOLD = 0.25
"""Of the exemplars' nearest cosines of their own intent so many may lie below the threshold."""

_NEAREST = 3
_MARGIN = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplars:
    """Known questions: their vectors float32[n, d], centred and of length one, their intents, and the threshold for a
    match.
    """

    vectors: Floats
    mean: Floats
    intents: tuple[Intent, ...]
    threshold: float
    accuracy: float

    def intent_of(self, vector: Floats) -> Intent | None:
        """Return the intent of a question's vector, float32[d]; None if it is near none, or near two alike."""
        if self.accuracy < _LEAST_TELLING or vector.shape != self.mean.shape:
            return None
        scores = _by_intent(self.vectors @ _unit(vector - self.mean), self.intents)
        best, second = sorted(scores.values(), reverse=True)[:2]
        if best < self.threshold or best - second < _MARGIN:
            return None
        return max(scores, key=lambda intent: scores[intent])


def calibrated(vectors: Floats, intents: Sequence[Intent]) -> Exemplars:
    """Return exemplars with the threshold that their own cosines give. Pure."""
    mean = vectors.mean(axis=0)
    rows = _unit(vectors - mean)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1.0)
    told, right = [], 0
    for place, intent in enumerate(intents):
        scores = _by_intent(cosines[place], intents)
        right += max(scores, key=lambda each: scores[each]) == intent
        told.append(scores[intent])
    return Exemplars(
        vectors=rows,
        mean=mean,
        intents=tuple(intents),
        threshold=float(np.quantile(told, _TOLD)),
        accuracy=right / len(intents),
    )


def _by_intent(cosines: Floats, intents: Sequence[Intent]) -> dict[Intent, float]:
    """Return the mean of the few best cosines of each intent."""
    scores = {}
    for intent in INTENTS:
        mine = np.sort(cosines[[each == intent for each in intents]])
        scores[intent] = float(mine[-_NEAREST:].mean())
    return scores


def _unit(rows: Floats) -> Floats:
    lengths = np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
    return np.asarray(rows / lengths, np.float32)


async def embedded(embedder: Embedder) -> Exemplars | None:
    """Return the exemplars as vectors of an embedder; None if it could not embed all of them."""
    questions = known_questions()
    texts = [text for intent in INTENTS for text in questions[intent]]
    intents = [intent for intent in INTENTS for _ in questions[intent]]
    vectors = await checked_batch(embedder, texts, "query")
    found = [vector for vector in vectors if vector is not None]
    return calibrated(np.stack(found), intents) if len(found) == len(texts) else None
