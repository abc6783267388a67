"""A call through a door: the permission is checked, what belongs to the connection is bound, the method runs."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ricordo.errors import DeniedError, RicordoError
from ricordo.interfaces.catalog import Access, Capability
from ricordo.interfaces.handles import HANDLE_CHARS, Handles
from ricordo.model import Origin, Scope
from ricordo.settings import Settings

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.ports import Progress

Trust = Literal["user", "agent", "tool", "web"]

_ORIGINS: Mapping[Trust, Origin] = {"user": "user", "agent": "agent", "tool": "tool_result", "web": "web"}
_SPOKEN: Mapping[Trust, Origin] = {**_ORIGINS, "user": "conversation", "agent": "conversation"}
_MAY_HOLD = frozenset({"get", "history", "explain", "review", "resolve"})
"""Methods that also tell of what is held in quarantine; search, lists and figures never do."""
_ALL: frozenset[Access] = frozenset({"read", "write", "admin", "erase"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is at a door: bound to a process, a token or a socket, and never told by an argument.

    Attributes:
        trust: where the caller's texts count as coming from.
        access: what it may do.
        name: what to call it in figures; a token's name.
    """

    owner: str = "me"
    chat: str | None = None
    trust: Trust = "agent"
    access: frozenset[Access] = _ALL
    name: str = "process"

    @property
    def scope(self) -> Scope:
        return Scope(owner=self.owner, chat=self.chat, trust=self.trust)

    @property
    def origin(self) -> Origin:
        """What is said of where its texts come from."""
        return _ORIGINS[self.trust]

    def must_have(self, access: Access) -> None:
        """Raises:
        DeniedError: the caller has no such permission.
        """
        if access not in self.access:
            raise DeniedError(f"this needs the permission {access!r}", hint=f"this caller has {_listed(self.access)}")


def _listed(access: frozenset[Access]) -> str:
    return ", ".join(sorted(access)) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a server opens. `embedder` and `model` are None for none."""

    location: str
    embedder: str | None
    model: str | None
    settings: Settings

    async def opened(self) -> Memory:
        """The memory, which begins to read what the first question needs."""
        from ricordo.memory import Memory  # loaded only now: a client may be waiting for its first answer

        memory = await Memory.open(self.location, embedder=self.embedder, model=self.model, settings=self.settings)
        await memory.warm()
        return memory


class Calls:
    """The way from all doors of one process to its store."""

    def __init__(self, opening: Awaitable[Memory]) -> None:
        """Args:
        opening: gives the store; a door may be ready before it is open.
        """
        self._opening = asyncio.ensure_future(opening)
        self._handles = Handles()
        self._running: set[asyncio.Future[None]] = set()

    async def opened(self) -> Memory:
        """The memory itself, as whoever started the process has it."""
        return await asyncio.shield(self._opening)

    async def memory(self, caller: Caller) -> Memory:
        """The memory as this caller has it."""
        return (await self.opened()).scoped(caller.scope)

    async def call(
        self, capability: Capability, given: object, *, caller: Caller, as_tool: bool, progress: Progress | None = None
    ) -> Any:
        """What the capability gives, for the caller's own scope.

        Args:
            given: the arguments: an object, or its JSON as bytes.
            progress: told how far long work is, where the method can tell.

        Raises:
            DeniedError: the caller may not.
            InvalidError: an argument does not fit.
            RicordoError: as the method says.
        """
        caller.must_have(capability.access)
        memory = await self.memory(caller)
        from ricordo.interfaces.schema import checked, work_of  # brings the memory's own imports

        arguments = checked(capability, given, as_tool=as_tool)
        work = work_of(capability)
        names = inspect.signature(work).parameters
        names_one = capability.effect != "adds" and capability.method != "run"  # else it is a new one, or a run's
        if names_one and isinstance(arguments.get("id"), str):
            arguments["id"] = await self._whole(memory, arguments["id"], arguments.get("as_of"))
        if "origin" in names:
            arguments["origin"] = _origin(capability, caller)
        if "progress" in names:
            arguments["progress"] = progress
        bound = {name: _bound(value, capability, caller) for name, value in arguments.items()}
        answer = await work(memory, **bound)
        if as_tool or caller.trust != "user":
            answer = self._without_held(capability, answer)
        self._handles.note(caller.scope, answer)
        return answer

    def _without_held(self, capability: Capability, answer: Any) -> Any:
        from ricordo.interfaces.quarantine_filter import withheld

        return withheld(answer) if capability.method in _MAY_HOLD else answer

    async def _whole(self, memory: Memory, id: str, as_of: str | int | None) -> str:
        """An id may be given by its end, as answers show it; anything else is left to the method."""
        if len(id) != HANDLE_CHARS:
            return id
        from ricordo.interfaces.cli.ids import whole_id

        return self._handles.whole(memory.scope, id) or await whole_id(memory, id, as_of=as_of)

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Start something nobody waits for, such as telling a client how far things are."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)

    async def close(self) -> None:
        """Finish what is being written and let go of the store. What is not open yet is not opened any more."""
        if not self._opening.done():
            self._opening.cancel()
        with contextlib.suppress(RicordoError, asyncio.CancelledError):
            await (await self._opening).close()


def _origin(capability: Capability, caller: Caller) -> Origin:
    return (_SPOKEN if capability.method in ("add", "add_many") else _ORIGINS)[caller.trust]


def _bound(value: Any, capability: Capability, caller: Caller) -> Any:
    """Facts and messages of a list come from where the caller's words come from."""
    if isinstance(value, list) and value and is_dataclass(value[0]) and hasattr(value[0], "origin"):
        return [replace(each, origin=_origin(capability, caller)) for each in value]
    return value
