"""Leases: a job is done by one process at a time. A lease expires by itself, and no data depends on it.

A holder is named after its machine and process, so that other processes on the same machine can see that it died.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import sys
import time
import uuid
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ricordo.errors import RicordoError

if TYPE_CHECKING:
    from ricordo.storage import Store

_MACHINE = platform.node().replace("/", " ")


def new_holder() -> str:
    """Return a unique holder name: machine/process id/random."""
    return f"{_MACHINE}/{os.getpid()}/{uuid.uuid4().hex}"


def is_gone(holder: str) -> bool:
    """Return whether a holder's process is known to have ended: it ran on this machine and no longer exists.

    If another process has its id by now, this returns False, and the lease has to expire.
    """
    machine, _, rest = holder.partition("/")
    process = rest.partition("/")[0]
    if machine != _MACHINE or not process.isdecimal() or sys.platform == "win32":  # on Windows, `os.kill` ends it
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


class LeaseHolder:
    """Takes, renews and releases one lease of a store.

    Times come from the machine's clock, which other processes share, and not from a clock that the caller passes.
    """

    def __init__(self, store: Store, name: str, *, lease_ms: int) -> None:
        self._store = store
        self._name = name
        self._lease_ms = lease_ms
        self._holder = new_holder()
        self._until = 0

    @property
    def is_fresh(self) -> bool:
        """Whether more than half of the lease's time remains, so that it need not be renewed yet."""
        return self._until - _now() > self._lease_ms // 2

    async def free(self) -> None:
        """Free the lease even if another process holds it: in a copied store, that process works on the original."""
        now = _now()
        await self._store.derive(
            lambda tx: tx.leases.take(self._name, self._holder, now=now, until=now, is_gone=lambda holder: True)
        )
        await self._store.derive(lambda tx: tx.leases.drop(self._name, self._holder))

    async def take(self) -> bool:
        """Take or renew the lease; return whether this process holds it. A dead process no longer holds its lease."""
        now = _now()
        until = now + self._lease_ms
        taken = await self._store.derive(
            lambda tx: tx.leases.take(self._name, self._holder, now=now, until=until, is_gone=is_gone)
        )
        self._until = until if taken else 0
        return taken

    async def release(self) -> None:
        """Release the lease if this process holds it. If that cannot be written, the lease expires."""
        if self._until:
            self._until = 0
            with contextlib.suppress(RicordoError):
                await self._store.derive(lambda tx: tx.leases.drop(self._name, self._holder))

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[bool]:
        """Yield whether the lease was taken; if so, renew it every third of its time until the block ends."""
        if not await self.take():
            yield False
            return
        renewing = asyncio.create_task(self._renew(), name="ricordo-lease")
        try:
            yield True
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
            await self.release()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3_000)
            with contextlib.suppress(RicordoError):  # tried again after another third
                await self.take()


def _now() -> int:
    return time.time_ns() // 1_000_000
