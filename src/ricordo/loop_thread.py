"""Event loops: one in its own thread for blocking callers such as notebooks, and the loop that tasks belong to."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from ricordo.errors import UnavailableError

T = TypeVar("T")


class Home:
    """The event loop of this process in which tasks were started."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()

    @property
    def has_ended(self) -> bool:
        """Whether the loop, and with it its tasks, has ended."""
        return self._loop.is_closed()

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a function that waits for tasks in their loop, from any loop. If their loop has stopped, do nothing."""
        if self._loop is asyncio.get_running_loop():
            await work()
        elif self._loop.is_running() and os.getpid() == self._process:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))


class Portal:
    """Runs coroutines from blocking code, even if another loop runs in the caller's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="ricordo-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(_end_rest())
        self._loop.close()

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. An interrupt stops the waiting, not the coroutine.

        Raises:
            UnavailableError: the portal is closed, or it was opened before a fork.
        """
        return self.begin(work).result()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine and return its future. Raises as `call` does."""
        if os.getpid() != self._process:
            work.close()
            raise UnavailableError("this memory was opened before a fork", hint="open it again in the child process")
        if not self._thread.is_alive() or self._loop.is_closed():
            work.close()
            raise UnavailableError("the memory is closed", hint="open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def each(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield the items of an asynchronous generator. Leaving the loop closes the generator."""
        end = object()

        async def following() -> T | object:
            return await anext(items, end)

        try:
            while (item := self.call(following())) is not end:
                yield cast("T", item)
        finally:
            if self.is_open:
                self.call(items.aclose())

    def close(self) -> None:
        """Stop the loop. Closing twice is allowed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a temporary loop and return its result."""
    portal = Portal()
    try:
        return portal.call(work)
    finally:
        portal.close()


async def _end_rest() -> None:
    """Cancel the remaining tasks, because a program may stop without closing its memory."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
