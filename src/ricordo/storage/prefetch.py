"""Loads vectors and turns into memory in the background, so that later searches are faster.

The first answer reads no more than it needs. The rest is read when a caller has been quiet for a moment after it, or
asks again (docs/decisions/0005-what-ranking-reads.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from ricordo.model import Scope
from ricordo.storage import Store

# A process that asks once has exited by then.
_QUIET_S = 0.1
# Two that compute side by side on one core take longer than one after the other; but no search waits longer than this.
_PATIENCE_S = 0.1


class Prefetch:
    """Loads for the callers of a store. Belongs to the event loop it is used in."""

    def __init__(
        self, store: Store, *, shelves: Sequence[str], beside: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        """
        Args:
            shelves: those that searches look at by default.
            beside: runs work in the background; a failure only costs time.
        """
        self._store = store
        self._shelves = tuple(shelves)
        self._beside = beside
        self._asked: dict[Scope, int] = {}
        self._quiet: dict[Scope, asyncio.TimerHandle] = {}
        self._turns: dict[Scope, asyncio.Task[None]] = {}
        self._more: asyncio.Task[None] | None = None

    def load_vectors(self, scope: Scope) -> None:
        """Load the vectors of a caller's first search, for instance while the embedder loads its weights."""
        self._beside(self._store.read(lambda tx: tx.load_vectors(scope, self._shelves)))

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> None:
        """Load a caller's turns, once; `ahead` only if no other caller's turns have to be dropped for them."""
        if scope not in self._turns:
            self._turns[scope] = self._beside(self._load_turns(scope, ahead=ahead))

    def asked(self, scope: Scope, *, by_vector: bool) -> None:
        """Note that a caller searches. The first search needs few of many vectors; later ones profit from the rest."""
        asked = self._asked[scope] = self._asked.get(scope, 0) + 1
        if asked == 1:
            if by_vector:
                self.load_vectors(scope)
            return
        is_due = asked & (asked - 1) == 0  # now and then: what was loaded may have been dropped
        if by_vector and is_due and (self._more is None or self._more.done()):
            self._more = self._beside(self._load_more())
        self.load_turns(scope)

    def answered(self, scope: Scope) -> None:
        """Note that a caller has an answer. Unless another search follows at once, there is time to load turns."""
        if scope not in self._turns and scope not in self._quiet:
            load = partial(self.load_turns, scope, ahead=True)
            self._quiet[scope] = asyncio.get_running_loop().call_later(_QUIET_S, load)

    async def wait(self, scope: Scope) -> None:
        """Wait a moment for a caller's turns while they are being loaded."""
        loading = self._turns.get(scope)
        if loading is not None and not loading.done():
            await asyncio.wait((loading,), timeout=_PATIENCE_S)

    def close(self) -> None:
        """Start nothing more."""
        for quiet in self._quiet.values():
            quiet.cancel()

    async def _load_turns(self, scope: Scope, *, ahead: bool) -> None:
        if self._more is not None:
            await asyncio.wait((self._more,))  # each search lacks thousands of vectors, and few turns
        if not await self._store.read(lambda tx: tx.load_turns(scope, ahead=ahead)):
            del self._turns[scope]

    async def _load_more(self) -> None:
        """Load little by little: others read in between, and closing does not wait long."""
        while await self._store.read(lambda tx: tx.load_more_vectors()):
            pass
