"""Where a question is looked up: in the thread of whoever asks while that is brief, else in a reader's.

Waking another thread and being woken by it takes a tenth of a brief search, and on a virtual machine whose processors
fall asleep now and then as long as the search itself (docs/decisions/0014-brief-searches.md).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import TypeVar

from ricordo.errors import UnavailableError
from ricordo.storage import Snapshot, Store

T = TypeVar("T")

# What the last few took, the middle of them, is what the next is expected to take; less than three tell nothing.
_REMEMBERED = 5
_LEAST = 3
# Whoever waits for a timer or another task is served within so many rounds of the event loop.
_ROUNDS = 3
_KINDS_MOST = 10_000


class Pace:
    """How long the questions of each kind took lately, and where the next one is therefore asked."""

    def __init__(self, store: Store, *, brief_ms: float) -> None:
        """Args:
        brief_ms: what is expected to take longer is looked up in a reader's thread; all is where this is 0.
        """
        self._store = store
        self._brief_s = brief_ms / 1_000
        self._spent: dict[Hashable, deque[float]] = {}
        self._turn = asyncio.Lock()

    async def read(self, ask: Callable[[Snapshot], T], kind: Hashable, *, is_calm: bool) -> T:
        """Ask from one snapshot.

        Args:
            kind: whatever questions of it ask for, they take about the same time.
            is_calm: nobody holds what the answer needs for longer than a moment.

        Raises:
            UnavailableError: the store is closed.
        """
        timed = self._timed(ask, kind)
        if is_calm and self._expected_s(kind) < self._brief_s:
            async with self._turn:  # one at a time, and everybody else on the event loop before it
                for _ in range(_ROUNDS):
                    await asyncio.sleep(0)
                try:
                    return self._store.read_here(timed)
                except UnavailableError:
                    pass  # a reader's thread may wait
        return await self._store.read(timed)

    def _expected_s(self, kind: Hashable) -> float:
        spent = self._spent.get(kind, ())
        return sorted(spent)[len(spent) // 2] if len(spent) >= _LEAST else float("inf")

    def _timed(self, ask: Callable[[Snapshot], T], kind: Hashable) -> Callable[[Snapshot], T]:
        def answer(snapshot: Snapshot) -> T:
            began = time.perf_counter()
            try:
                return ask(snapshot)
            finally:
                self._note(kind, time.perf_counter() - began)

        return answer

    def _note(self, kind: Hashable, spent_s: float) -> None:
        if kind not in self._spent and len(self._spent) >= _KINDS_MOST:
            self._spent.clear()
        self._spent.setdefault(kind, deque(maxlen=_REMEMBERED)).append(spent_s)
