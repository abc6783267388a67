"""Background reading of conversations: the new messages of a conversation are read once it has paused.

Only `settle` waits for it. A reading interrupted by a crash or by closing is repeated when the store is next opened, or
when the conversation is consolidated. No state kept here is essential.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable

from ricordo.errors import RicordoError, UnavailableError
from ricordo.model import Run, Scope

_log = logging.getLogger(__name__)

Conversation = tuple[tuple[str, str], str | None]
"""((owner, chat), session); the session is None for messages outside any session."""

Extract = Callable[[tuple[str, str], str | None], Awaitable[Run]]

Unread = Callable[[], Awaitable[Iterable[Conversation]]]

# A conversation without pauses is read after this multiple of the wait.
_PATIENCE = 10
# After this many failures in a row, a conversation is left to consolidation.
_MAX_TRIES = 3


class Debouncer:
    """Waits for a pause in each conversation, then has it read, one conversation at a time."""

    def __init__(self, extract: Extract, *, wait_s: float, unread: Unread | None) -> None:
        """Args:
        extract: reads one conversation.
        wait_s: how long a pause is.
        unread: returns conversations that may have unread messages from earlier; None disables reading.
        """
        self._extract = extract
        self._wait_s = wait_s
        self._loop = asyncio.get_running_loop()
        self._due: dict[Conversation, tuple[float, float]] = {}
        self._tries: dict[Conversation, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._reading: tuple[Conversation, asyncio.Future[Run]] | None = None
        self._hurries = False
        self._task: asyncio.Task[None] | None = None
        if unread is not None:
            self._idle.clear()
            self._task = self._loop.create_task(self._run(unread), name="ricordo-exchanges")

    def note(self, scope: Scope, sessions: Iterable[str | None]) -> None:
        """Note that messages were added. Callable from any thread."""
        place = ("", scope.chat) if scope.chat else (scope.owner, "")
        said = [(place, session) for session in dict.fromkeys(sessions)]
        with contextlib.suppress(RuntimeError):  # the loop is closed; consolidation will read the messages
            self._loop.call_soon_threadsafe(self._expect, said)

    def _expect(self, said: Iterable[Conversation]) -> None:
        now = time.monotonic()
        for each in said:
            since = self._due[each][1] if each in self._due else now
            self._due[each] = min(now + self._wait_s, since + _PATIENCE * self._wait_s), since
        self._idle.clear()
        self._wake.set()

    async def settle(self, timeout_s: float | None) -> None:
        """Read everything that is due now, without waiting for a pause, and wait until that is done.

        Raises:
            UnavailableError: the timeout expired; reading continues.
        """
        await asyncio.sleep(0)  # lets pending notes run first
        if self._idle.is_set():
            return
        self._hurries = True
        self._wake.set()
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except TimeoutError:
            raise UnavailableError("a conversation is still being read", hint="wait longer; nothing is lost") from None
        finally:
            self._hurries = False

    async def leave(self, scope: Scope, session: str | None) -> None:
        """Stop reading a conversation (None: all in a scope), because it is about to be consolidated."""
        place = ("", scope.chat) if scope.chat else (scope.owner, "")
        for each in [each for each in self._due if each[0] == place and session in (None, each[1])]:
            del self._due[each]
        if self._reading is not None and self._reading[0][0] == place and session in (None, self._reading[0][1]):
            reading = self._reading[1]
            reading.cancel()
            await asyncio.wait([reading])
        self._wake.set()

    async def close(self) -> None:
        """Stop at once. An interrupted conversation is read another time."""
        if self._task is not None:
            self._due.clear()
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self, unread: Unread) -> None:
        try:
            self._expect(await unread())
        except RicordoError as error:
            _log.warning("unread conversations could not be listed: %s", error)
        while True:
            self._wake.clear()
            due = min(self._due, key=lambda each: self._due[each][0], default=None)
            if due is None:
                self._idle.set()
                await self._wake.wait()
                continue
            left = 0.0 if self._hurries else self._due[due][0] - time.monotonic()
            if left > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), left)
                continue
            del self._due[due]
            if self._tries.get(due, 0) < _MAX_TRIES:
                await self._read(due)

    async def _read(self, conversation: Conversation) -> None:
        reading = asyncio.ensure_future(self._extract(*conversation))
        self._reading = conversation, reading
        try:
            run = await asyncio.shield(reading)
            failed = run.state == "failed"
            self._tries[conversation] = self._tries.get(conversation, 0) + 1 if failed else 0
            if failed:
                _log.warning("a conversation was not read: %s", run.reason)
        except asyncio.CancelledError:
            if not reading.cancelled():  # this task was cancelled
                reading.cancel()
                await asyncio.wait([reading])
                raise
        except Exception:  # noqa: BLE001 - a dead task would never read again
            _log.exception("a conversation could not be read; it waits")
        finally:
            self._reading = None
            if not self._tries.get(conversation):
                self._tries.pop(conversation, None)
