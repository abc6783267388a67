"""What chance reaches in a store, found out by asking it a hundred prompts that concern nobody's memory.

That takes about a second once. What came of it is kept in the store, so that every process goes by the same floor; it
is made again when the store has grown or shrunk by a third: beside the answers at first, before the next one when it
has doubled. What is kept are nine numbers, and nothing of what anybody said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from ricordo.errors import RicordoError
from ricordo.model import Scope
from ricordo.models.embedding.vectors import Embedded, embed_with_words
from ricordo.retrieval.query import DEFAULT_SHELVES, Query, make_plan
from ricordo.storage import Snapshot, Store
from ricordo.storage.values import Floor

if TYPE_CHECKING:
    from ricordo.ports import Embedder
    from ricordo.retrieval.relevance import Floats

_log = logging.getLogger(__name__)

_GROWN, _DOUBLED = 4 / 3, 2.0
# Of a large store, where an answer takes longer, every third prompt is asked.
_LARGE, _EACH = 20_000, 3
# So many prompts are asked of one snapshot: others read in between.
_TOGETHER = 8
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class _Kept:
    """The stored floor of a caller, and how many memories there are now."""

    floor: Floor | None
    count: int

    def is_older_than(self, factor: float) -> bool:
        then = 0 if self.floor is None else self.floor.count
        return self.count * factor < then or self.count > then * factor or (then == 0) != (self.count == 0)


class Floors:
    """The floors of the callers of one opened store. Belongs to the event loop it is made in."""

    def __init__(
        self,
        store: Store,
        *,
        embedder_of: Callable[[int], Embedder | None],
        is_settled: Callable[[], bool],
        beside: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        self._store = store
        self._embedder_of = embedder_of
        self._is_settled = is_settled
        self._beside = beside
        self._prompts: dict[int, list[Embedded]] = {}
        self._making: dict[tuple[Scope, int], asyncio.Future[Floor]] = {}

    async def floor(self, scope: Scope, model: int) -> Floor:
        """Return what unrelated prompts reach in a caller's memory.

        Args:
            model: the key of the embedder that answers; 0 where words alone do.
        """
        kept = await self._store.read(lambda snapshot: _kept(snapshot, scope, model))
        if kept.floor is not None:
            if not kept.is_older_than(_GROWN):
                return kept.floor
            if not self._is_settled():  # vectors are missing: what it was before is nearer the truth
                return kept.floor
            if not kept.is_older_than(_DOUBLED):
                self._beside(self._renew(scope, model))
                return kept.floor
        try:
            return await self._made(scope, model)
        except RicordoError:
            raise
        except Exception as error:
            if model == 0:
                raise
            _log.warning("the prompts of relevance could not be embedded: %s", type(error).__name__)
            return await self.floor(scope, 0)

    async def _renew(self, scope: Scope, model: int) -> None:
        await self._made(scope, model)

    async def _made(self, scope: Scope, model: int) -> Floor:
        """Calibrate once, however many searches ask for it at the same time."""
        asked = scope, model
        if asked not in self._making:
            self._making[asked] = asyncio.ensure_future(self._make(scope, model))
            self._making[asked].add_done_callback(lambda _: self._making.pop(asked, None))
        return await asyncio.shield(self._making[asked])

    async def _make(self, scope: Scope, model: int) -> Floor:
        from ricordo.retrieval.relevance import floor_of

        settled = self._is_settled()
        prompts = await self._embedded(model)
        count = await self._store.read(lambda snapshot: snapshot.statistics.size(scope, DEFAULT_SHELVES)[0])
        asked = list(zip(generic_prompts(), prompts, strict=True))[:: _EACH if count > _LARGE else 1]
        found: list[Floats] = []
        for start in range(0, len(asked) if count else 0, _TOGETHER):
            ask = partial(self._found, scope=scope, model=model, asked=asked[start : start + _TOGETHER])
            found += await self._store.read(ask)
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
        """Return the vectors of the prompts; None for each if words alone answer."""
        embedder = self._embedder_of(model) if model else None
        if embedder is None:
            return [None] * len(generic_prompts())
        if model not in self._prompts:
            embedding = embed_with_words(embedder, generic_prompts(), "query")
            self._prompts[model] = await asyncio.wait_for(embedding, _PATIENCE_S)
        return self._prompts[model]

    async def _keep(self, scope: Scope, floor: Floor) -> None:
        """Store the floor. If it cannot be written, it is computed again next time."""
        try:
            await self._store.derive(lambda snapshot: _put(snapshot, scope, floor))
        except RicordoError:
            return


@cache
def generic_prompts() -> tuple[str, ...]:
    """Return prompts that people give to any assistant, in English and Russian."""
    text = (files("ricordo.retrieval") / "generic_prompts.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _kept(snapshot: Snapshot, scope: Scope, model: int) -> _Kept:
    from ricordo.retrieval.relevance import RULE

    floor = snapshot.statistics.floor(scope, model=model, rule=RULE)
    return _Kept(floor, snapshot.statistics.size(scope, DEFAULT_SHELVES)[0])


def _put(snapshot: Snapshot, scope: Scope, floor: Floor) -> None:
    from ricordo.retrieval.relevance import RULE

    snapshot.statistics.put_floor(scope, floor, rule=RULE)
