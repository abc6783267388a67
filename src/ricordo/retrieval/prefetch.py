"""What is read into memory beside answers, so that later ones come sooner: the vectors and the turns of who asks.

The first answer takes no more than it needs. The rest is read when a caller has been quiet for a moment after it, or
asks again (docs/decisions/0005-ranking-features.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from ricordo.model import Scope
from ricordo.retrieval.plan import DEFAULT_SHELVES
from ricordo.storage import Snapshot, Store

if TYPE_CHECKING:
    from ricordo.storage.database.embeddings import VectorShelves

# Who asks once and leaves is gone by then.
_QUIET_S = 0.1
# Two that compute side by side on one core take longer than one after the other; but nobody is to wait for long.
_PATIENCE_S = 0.1


class Warming:
    """Reads ahead for the callers of a store. Belongs to the event loop it is used in."""

    def __init__(
        self,
        store: Store,
        *,
        vectors: Callable[[], VectorShelves],
        beside: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """Args:
        beside: does some work beside other work; failing only costs time.
        """
        self._store = store
        self._vectors = vectors
        self._beside = beside
        self._asked: dict[Scope, int] = {}
        self._quiet: dict[Scope, asyncio.TimerHandle] = {}
        self._turns: dict[Scope, asyncio.Task[None]] = {}
        self._reads_on: asyncio.Task[None] | None = None

    def load(self, scope: Scope) -> None:
        """Read the vectors a caller's first answer takes, for instance while the embedder reads its weights."""
        self._beside(self._store.read(lambda tx: _load(tx, self._vectors(), scope)))

    def asked(self, scope: Scope, *, by_vector: bool) -> None:
        """A caller asks. Of many vectors the first answer takes few; who asks again has use for the rest."""
        asked = self._asked[scope] = self._asked.get(scope, 0) + 1
        if asked == 1 and by_vector:
            self.load(scope)
        elif asked > 1:
            if by_vector and self._vectors().has_unread and (self._reads_on is None or self._reads_on.done()):
                self._reads_on = self._beside(self._read_on())
            self.read_turns(scope)

    def answered(self, scope: Scope) -> None:
        """A caller has an answer; unless there is another question at once, there is time to read turns."""
        if scope not in self._turns and scope not in self._quiet:
            read_ahead = partial(self.read_turns, scope, ahead=True)
            self._quiet[scope] = asyncio.get_running_loop().call_later(_QUIET_S, read_ahead)

    def read_turns(self, scope: Scope, *, ahead: bool = False) -> None:
        """Begin to read a caller's turns, once.

        Args:
            ahead: only if nobody else's have to go for them; who asks again takes their place.
        """
        if scope not in self._turns:
            self._turns[scope] = self._beside(self._read_turns(scope, ahead=ahead))

    async def wait(self, scope: Scope) -> None:
        """Wait for a caller's turns while they are being read, for a moment."""
        reading = self._turns.get(scope)
        if reading is not None and not reading.done():
            await asyncio.wait((reading,), timeout=_PATIENCE_S)

    def close(self) -> None:
        """Begin nothing more."""
        for quiet in self._quiet.values():
            quiet.cancel()

    async def _read_turns(self, scope: Scope, *, ahead: bool) -> None:
        if self._reads_on is not None:
            await asyncio.wait((self._reads_on,))  # of vectors each search lacks thousands
        if not await self._store.read(partial(read_turns, scope=scope, ahead=ahead)):
            del self._turns[scope]

    async def _read_on(self) -> None:
        """Little by little: others read in between, and closing does not wait long."""
        while await self._store.read(self._vectors().read_on):
            pass


def _load(snapshot: Snapshot, vectors: VectorShelves, scope: Scope) -> None:
    """Read the vectors a caller's searches look at by default into memory."""
    for model in snapshot.models.known():
        if model.state == "active":
            spaces = snapshot.visible(scope)
            vectors.load(snapshot, model=model.key, dimension=model.dimension, spaces=spaces, shelves=DEFAULT_SHELVES)


def read_turns(snapshot: Snapshot, scope: Scope, *, ahead: bool = False) -> bool:
    """Read all turns that a caller's searches may weigh into memory, their order and which words they hold, so that
    searches need not read them little by little; nothing if it is too much to keep.

    Args:
        ahead: only if there is room for them. False is returned where there is none.
    """
    # In a reader's thread: it imports numpy.
    from ricordo.storage.database.turns import KEPT_CHARS, KEPT_MOST, read_all_turns

    count, chars = snapshot.statistics.size(scope, ("k", "e", "c"))
    if count > KEPT_MOST or chars > KEPT_CHARS:
        return True
    if ahead:
        with snapshot.turns() as table:
            if table.count + count > KEPT_MOST:
                return False
    read_all_turns(snapshot, snapshot.visible(scope))
    return True
