"""Counts how often memories are shown: noted during a search, written some time after. A crash loses what is not
written yet, which does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterable

from ricordo.errors import RicordoError
from ricordo.model import Hit, Scope
from ricordo.storage import Store
from ricordo.storage.values import Usage
from ricordo.text import raw_words
from ricordo.text.recalled import cited

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
        """Note that memories were shown; `now` in Unix milliseconds. Costs a search some microseconds."""
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
        """Write what was noted. What cannot be written is dropped."""
        shown, self._shown = self._shown, {}
        if shown:
            with contextlib.suppress(RicordoError):
                await self._store.derive(lambda tx: tx.graph.put_usage(shown))

    async def close(self) -> None:
        """Write what is left, if the store can be written."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), _CLOSING_S)


_KEPT = 300
_LEAST_WORDS = 4


class Told:
    """The latest memories shown in contexts of this process, by scope."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[Scope, str], tuple[str, str]] = OrderedDict()

    def keep(self, scope: Scope, hits: Iterable[Hit]) -> None:
        """Note the memories of a context."""
        for hit in hits:
            self._told[scope, hit.id] = hit.handle, _folded(hit.content[:1_000])
            self._told.move_to_end((scope, hit.id))
        while len(self._told) > _KEPT:
            self._told.popitem(last=False)

    def quoted_in(self, scope: Scope, text: str) -> list[str]:
        """Return the ids of the memories that a text quotes word for word, or cites by their handle."""
        if not self._told:
            return []
        handles, said = set(cited(text)), f" {_folded(text)} "
        return [
            id
            for (whose, id), (handle, words) in self._told.items()
            if whose == scope and (handle in handles or (words.count(" ") >= _LEAST_WORDS - 1 and f" {words} " in said))
        ]


def _folded(text: str) -> str:
    return " ".join(raw_words(text))
