"""How often memories are shown: noted while a search answers, written some time after it has.

What is noted and not yet written goes with a crash, which harms nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from ricordo.errors import RicordoError
from ricordo.storage import Store
from ricordo.storage.values import Usage

_WRITTEN_AFTER_S = 2.0
_CLOSING_S = 0.5
_KEPT_MOST = 10_000


class UsageLog:
    """What was shown and is not written yet. Belongs to the event loop it is made in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: dict[int, Usage] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, keys: Iterable[int], *, now: int) -> None:
        """These memories were shown; `now` in Unix milliseconds. Costs a search some microseconds."""
        for key in keys:
            earlier = self._shown.get(key)
            if earlier is not None or len(self._shown) < _KEPT_MOST:
                self._shown[key] = Usage(1 + (earlier.shown if earlier else 0), now)
        if self._shown and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_soon(), name="ricordo-usage")

    async def _write_soon(self) -> None:
        await asyncio.sleep(_WRITTEN_AFTER_S)
        await self.flush()

    async def flush(self) -> None:
        """Write what is noted. What cannot be written is let go."""
        shown, self._shown = self._shown, {}
        if shown:
            with contextlib.suppress(RicordoError):
                await self._store.derive(lambda tx: tx.graph.put_usage(shown))

    async def close(self) -> None:
        """Write what is left, if that can be had at once."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), _CLOSING_S)
