"""Measurements made once per store and embedder: the chance level, and how similar questions of one intent are.

A hundred prompts that concern no memory are searched once, in about a second. The result, nine numbers, is stored, so
that every process uses the same floor. It is measured again when the store has grown or shrunk by a third: in the
background at first, but before the next answer once the store has doubled.

The exemplars, questions of known intent, are compared with each other. This gives the cosine from which the nearest
exemplars show the intent of a question, and whether the embedder can distinguish intents at all. If not, words are
used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ricordo.errors import RicordoError
from ricordo.model import Scope
from ricordo.models.embedding import Embedded, checked_batch, embed_with_words
from ricordo.retrieval.query import DEFAULT_SHELVES, INTENTS, Intent, Query, make_plan
from ricordo.storage import Snapshot, Store
from ricordo.storage.values import Floor
from ricordo.text.languages import all_languages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.ports import Embedder

    Floats = NDArray[np.float32]

_log = logging.getLogger(__name__)

_GROWN, _DOUBLED = 4 / 3, 2.0
# In a large store, where searches take longer, only every third prompt is used.
_LARGE, _EACH = 20_000, 3
# The number of prompts searched in one snapshot. Other reads get in between.
_TOGETHER = 8
_PATIENCE_S = 20.0
# A search that does not wait for a measurement is done by then, so it is not slowed either.
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class _Kept:
    """The stored floor of a caller, and the current number of memories."""

    floor: Floor | None
    count: int

    def is_older_than(self, factor: float) -> bool:
        then = 0 if self.floor is None else self.floor.count
        return self.count * factor < then or self.count > then * factor or (then == 0) != (self.count == 0)


class Floors:
    """Keeps the relevance floor of each caller of an open store. Belongs to the event loop that creates it."""

    def __init__(
        self,
        store: Store,
        *,
        embedder_of: Callable[[int], Embedder | None],
        is_settled: Callable[[], bool],
        beside: Callable[[Coroutine[None, None, Any]], asyncio.Future[Any]],
    ) -> None:
        self._store = store
        self._embedder_of = embedder_of
        self._is_settled = is_settled
        self._beside = beside
        self._prompts: dict[int, list[Embedded]] = {}
        self._making: dict[tuple[Scope, int], asyncio.Future[Floor]] = {}

    async def floor(self, scope: Scope, model: int, *, waits: bool = True) -> Floor | None:
        """Return the scores that unrelated prompts reach in a caller's memory.

        Args:
            model: the key of the answering embedder; 0 for words alone.
            waits: whether to wait for a measurement. If not, it runs in the background, and the answer is None.
        """
        kept = await self._store.seen_by(scope).read(lambda snapshot: _kept(snapshot, scope, model))
        if kept.floor is not None:
            if not kept.is_older_than(_GROWN):
                return kept.floor
            if not self._is_settled():  # vectors are missing, so the old value is more accurate than a new measurement
                return kept.floor
            if not kept.is_older_than(_DOUBLED):
                self._beside(self._made(scope, model))
                return kept.floor
        if not waits:
            self._beside(self._later(scope, model))
            return None
        try:
            return await self._made(scope, model)
        except RicordoError:
            raise
        except Exception as error:
            if model == 0:
                raise
            _log.warning("the prompts of relevance could not be embedded: %s", type(error).__name__)
            return await self.floor(scope, 0)

    async def _later(self, scope: Scope, model: int) -> None:
        await asyncio.sleep(_PAUSE_S)
        await self.floor(scope, model)

    async def _made(self, scope: Scope, model: int) -> Floor:
        """Calibrate once, even if several searches request it at the same time."""
        asked = scope, model
        if asked not in self._making:
            self._making[asked] = self._beside(self._make(scope, model))
            self._making[asked].add_done_callback(lambda _: self._making.pop(asked, None))
        return await asyncio.shield(self._making[asked])

    async def _make(self, scope: Scope, model: int) -> Floor:
        from ricordo.retrieval.relevance import floor_of

        settled = self._is_settled()
        prompts = await self._embedded(model)
        count = await self._store.seen_by(scope).read(
            lambda snapshot: snapshot.statistics.size(scope, DEFAULT_SHELVES)[0]
        )
        asked = list(zip(generic_prompts(), prompts, strict=True))[:: _EACH if count > _LARGE else 1]
        found: list[Floats] = []
        for start in range(0, len(asked) if count else 0, _TOGETHER):
            ask = partial(self._found, scope=scope, model=model, asked=asked[start : start + _TOGETHER])
            found += await self._store.seen_by(scope).read(ask)
        floor = floor_of(found, model=model, count=count)
        if settled:
            await self._keep(scope, floor)
        return floor

    def _found(
        self, snapshot: Snapshot, *, scope: Scope, model: int, asked: Sequence[tuple[str, Embedded | None]]
    ) -> list[Floats]:
        from ricordo.retrieval.search import measured

        found = []
        for text, embedded in asked:
            vectors: Mapping[int, Embedded] = {} if embedded is None else {model: embedded}
            plan = make_plan(Query(text=text), now=0, interval=None, vectors=vectors)
            found.append(measured(snapshot, plan, scope=scope))
        return found

    async def _embedded(self, model: int) -> Sequence[Embedded | None]:
        """Return the vectors of the prompts; None for each if only words are used."""
        embedder = self._embedder_of(model) if model else None
        if embedder is None:
            return [None] * len(generic_prompts())
        if model not in self._prompts:
            embedding = embed_with_words(embedder, generic_prompts(), "query")
            self._prompts[model] = await asyncio.wait_for(embedding, _PATIENCE_S)
        return self._prompts[model]

    async def _keep(self, scope: Scope, floor: Floor) -> None:
        """Store the floor. If that fails, it is computed again next time."""
        try:
            await self._store.seen_by(scope).derive(lambda snapshot: _put(snapshot, scope, floor))
        except RicordoError:
            return


@cache
def generic_prompts() -> tuple[str, ...]:
    """Return prompts that people might give any assistant, in English and Russian."""
    text = (files("ricordo.retrieval") / "generic_prompts.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _kept(snapshot: Snapshot, scope: Scope, model: int) -> _Kept:
    from ricordo.retrieval.relevance import RULE

    floor = snapshot.statistics.floor(scope, model=model, rule=RULE)
    return _Kept(floor, snapshot.statistics.size(scope, DEFAULT_SHELVES)[0])


def _put(snapshot: Snapshot, scope: Scope, floor: Floor) -> None:
    from ricordo.retrieval.relevance import RULE

    snapshot.statistics.put_floor(scope, floor, rule=RULE)


# ---- intent by meaning


def known_questions() -> dict[Intent, tuple[str, ...]]:
    """Return questions of each intent, about nothing in particular, so that only the form of the question is compared.

    Only the English and Russian language files have them: more would move the threshold, which is measured on all of
    them. In other languages, intent is recognised by words only.
    """
    exemplars = [language.questions.exemplars for language in all_languages()]
    return {intent: tuple(text for each in exemplars for text in each.get(intent, ())) for intent in INTENTS}


_LEAST_TELLING = 0.7
"""If fewer exemplars than this share get their own intent, the embedder does not distinguish intents."""

_TOLD = 0.25
"""The share of exemplars whose similarity to their own intent is below the threshold."""

_NEAREST = 3
_MARGIN = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplars:
    """Questions of known intent: their vectors float32[n, d], centred and normalised, their intents, and the threshold
    for a match.
    """

    vectors: Floats
    mean: Floats
    intents: tuple[Intent, ...]
    threshold: float
    accuracy: float

    def intent_of(self, vector: Floats) -> Intent | None:
        """Return the intent of a question's vector, float32[d]; None if no intent is near, or two are equally near."""
        if self.accuracy < _LEAST_TELLING or vector.shape != self.mean.shape:
            return None
        scores = _by_intent(self.vectors @ _unit(vector - self.mean), self.intents)
        best, second = sorted(scores.values(), reverse=True)[:2]
        if best < self.threshold or best - second < _MARGIN:
            return None
        return max(scores, key=lambda intent: scores[intent])


def calibrated(vectors: Floats, intents: Sequence[Intent]) -> Exemplars:
    """Return exemplars with the threshold computed from their own cosines. Pure."""
    import numpy as np

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
    """Return the mean of the highest few cosines of each intent."""
    scores = {}
    for intent in INTENTS:
        mine = cosines[[each == intent for each in intents]]
        mine.sort()
        scores[intent] = float(mine[-_NEAREST:].mean())
    return scores


def _unit(rows: Floats) -> Floats:
    import numpy as np

    lengths = np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
    return np.asarray(rows / lengths, np.float32)


async def embed_exemplars(embedder: Embedder) -> Exemplars | None:
    """Return the exemplars as vectors of an embedder; None if it could not embed all of them."""
    import numpy as np

    questions = known_questions()
    texts = [text for intent in INTENTS for text in questions[intent]]
    intents = [intent for intent in INTENTS for _ in questions[intent]]
    vectors = await checked_batch(embedder, texts, "query")
    found = [vector for vector in vectors if vector is not None]
    return calibrated(np.stack(found), intents) if len(found) == len(texts) else None
