"""Wait for what a test needs, however slow the machine is."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60.0) -> None:
    """Ask a condition again and again until it holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not (await said if inspect.isawaitable(said := condition()) else said):
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.02)
