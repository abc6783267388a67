"""A server that stays does a night's work, where the settings ask for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Calls, Place

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def keeping_house(place: Place, calls: Calls) -> AsyncIterator[None]:
    """Maintain and prune everybody's memories at their hours while the block runs, with the setting `nightly`."""
    if not place.settings.nightly:
        yield
        return
    keeping = asyncio.create_task(_keep(place, calls), name="ricordo-nightly")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def _keep(place: Place, calls: Calls) -> None:
    """Once the store is open, which may be long after the server has begun."""
    try:
        memory = await calls.opened()
        from ricordo.host import Host, MemoryExtension

        extension = MemoryExtension(memory, place.settings, all_owners=True)
        async with Host(place.location, [extension], settings=place.settings):
            await asyncio.Event().wait()
    except RicordoError as error:  # who asks questions is answered all the same
        _log.error("there will be no nightly upkeep: %s", error)
