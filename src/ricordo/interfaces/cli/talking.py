"""What a chat at the terminal stands on: memory, host and conversation in an event loop of their own.

The main thread is the keyboard's: it waits for lines and for Ctrl-C, while sessions end, jobs come due and answers
stream in the loop's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ricordo.errors import RicordoError
from ricordo.host import Conversation, Exchange, Host, MemoryExtension, Models, Place
from ricordo.interfaces.cli.ids import whole_id
from ricordo.interfaces.tools import offered
from ricordo.loop_thread import Portal
from ricordo.memory import Memory
from ricordo.model import Hit, Results, Scope
from ricordo.settings import default_chat, default_owner
from ricordo.text.recalled import cited

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from ricordo.interfaces.cli.door import Door

T = TypeVar("T")

_LOOK_S = 0.1
_RECALLED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What was put before the model, and for each memory of it why it was found; `others` were found by whom they
    are about, not by the question.
    """

    question: str
    results: Results
    hits: tuple[Hit, ...]
    others: int


class Talk:
    """A chat with whatever model is chosen, or with none. Blocking; for one thread."""

    def __init__(self, door: Door) -> None:
        """Raises:
        RicordoError: the memory or the journal cannot be opened, or there is no such model.
        """
        # What goes wrong behind a chat is said in it, not between its lines.
        logging.getLogger("ricordo").addHandler(logging.NullHandler())
        self._door = door
        self._settings = door.settings()
        self._stack = contextlib.AsyncExitStack()
        self._answering: asyncio.Task[None] | None = None
        self._conversation: Conversation | None = None
        scope = Scope(owner=door.given.owner or default_owner(), chat=door.given.chat or default_chat())
        self.place = Place(owner=scope.owner, chat=scope.chat or "", channel="terminal")
        self._portal = Portal()
        try:
            self._portal.call(self._open(scope))
        except BaseException:
            self.close()
            raise

    async def _open(self, scope: Scope) -> None:
        door, settings = self._door, self._settings
        models = Models(settings, consolidation=door.model)
        model = models.chat()
        self.memory = await self._stack.enter_async_context(
            Memory.open(
                door.location, embedder=door.embedder, model=models.consolidation, settings=settings, scope=scope
            )
        )
        await self.memory.warm()
        known = MemoryExtension(self.memory, settings, tools=offered(self.memory))
        self.host = await self._stack.enter_async_context(
            Host(door.location, [known], settings=settings, models=models)
        )
        self._conversation = None if model is None else Conversation(self.host, model, self.place)
        self.model = None if model is None else model.name

    def close(self) -> None:
        """Write what is queued and let go of everything."""
        with contextlib.suppress(RicordoError):
            self._portal.call(self._stack.aclose())
        self._portal.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Something of the memory's or the host's, from the keyboard's thread."""
        return self._portal.call(work)

    @property
    def last(self) -> Exchange | None:
        """The latest message and its answer."""
        return None if self._conversation is None else self._conversation.last

    # a message and its answer

    def answer(self, text: str) -> Iterator[str]:
        """The answer as it comes. An interrupt, or reading no further, ends it; what came is recorded.

        Raises:
            RicordoError: the model gave no answer, or broke off.
        """
        pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        self._portal.begin(self._speak(text, pieces))
        try:
            while (piece := _next(pieces)) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self._portal.call(self._stop())

    async def _speak(self, text: str, pieces: queue.SimpleQueue[str | BaseException | None]) -> None:
        self._answering = asyncio.current_task()
        assert self._conversation is not None
        try:
            async with contextlib.aclosing(self._conversation.say(text)) as answer:
                async for piece in answer:
                    pieces.put(piece)
            pieces.put(None)
        except BaseException as error:  # it is raised where the answer is read
            pieces.put(error)
            raise

    async def _stop(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)
            self._answering = None

    # what commands ask

    def search(self, text: str, limit: int = 5) -> Results:
        """Hits with their reasons."""
        return self.run(self.memory.search(text, limit=limit, trace=True))

    def recalled(self) -> Recalled | None:
        """Why the latest answer was told what it was; None where nothing was recalled."""
        last = self.last
        if last is None or not last.context:
            return None
        handles = cited(last.context)
        results = self.run(self.memory.search(last.text, limit=_RECALLED, trace=True))
        by_handle = {hit.handle: hit for hit in results.hits}
        hits = tuple(by_handle[each] for each in handles if each in by_handle)
        return Recalled(question=last.text, results=results, hits=hits, others=len(handles) - len(hits))

    def forget(self, id: str) -> str:
        """Take a memory out of every answer; returns what it said. Raises NotFoundError where there is none."""

        async def forget() -> str:
            node = await self.memory.get(await whole_id(self.memory, id.removeprefix("[id:").removesuffix("]")))
            await self.memory.forget(node.id, reason="forgotten in a chat")
            return node.content

        return self.run(forget())

    def off_record(self, is_off: bool) -> None:
        """Keep nothing of this conversation from here on, until it is taken back."""

        async def mark() -> None:
            standing = await self.host.router.standing(self.place)
            if standing is not None and standing.session is not None:
                marking = self.memory.off_record if is_off else self.memory.on_record
                await marking(standing.session)
            await self.host.router.off_record(self.place, is_off)

        self.run(mark())

    def is_off_record(self) -> bool:
        """Whether nothing is kept of what is said now."""
        standing = self.run(self.host.router.standing(self.place))
        return standing is not None and standing.is_off_record

    def goes_on(self) -> bool:
        """Whether the session of a moment ago goes on."""
        standing = self.run(self.host.router.standing(self.place))
        return standing is not None and standing.session is not None

    def new_session(self) -> bool:
        """End the session; whether there was one."""
        return self.run(self.host.router.complete(self.place)) is not None

    def left_over(self) -> Sequence[str]:
        """What the host could not do, in words."""
        letters = self.run(self.host.bus.dead_letters(5))
        return [f"{each.topic} ({each.reason}, {each.tries} tries)" for each in letters]


def _next(pieces: queue.SimpleQueue[str | BaseException | None]) -> str | BaseException | None:
    """Waited for in short parts: an interrupt must come through on every system."""
    while True:
        with contextlib.suppress(queue.Empty):
            return pieces.get(timeout=_LOOK_S)
