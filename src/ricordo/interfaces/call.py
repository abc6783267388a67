"""Call a capability: check the permission and arguments, set owner and origin from the caller, run the method."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ricordo.encoding.facts import check_is_told
from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.interfaces.serialize import (
    FULL_ID_CHARS,
    RecentIds,
    as_text,
    recorded_as_text,
    resolve_id,
    resolve_review_id,
    resolve_run_id,
    results_as_text,
    stored_as_text,
    too_small,
    withhold,
    without_tail,
)
from ricordo.model import Origin, Results, Scope, Trust
from ricordo.rights import Access, Door, Holder, allows, at_door, require
from ricordo.settings import Settings
from ricordo.trust import capped

if TYPE_CHECKING:
    from ricordo.interfaces.catalog import Capability
    from ricordo.memory import Memory
    from ricordo.ports import Progress

_log = logging.getLogger(__name__)

_SHOW_HELD = frozenset({"get", "history", "explain", "review", "staged", "resolve", "forget"})
"""The methods whose answers can contain quarantined memories; search, lists and statistics never do."""
_LONG = frozenset(
    (
        "accept",
        "ask",
        "consolidate",
        "enrich",
        "extract",
        "gc",
        "import_",
        "infer_causes",
        "maintain",
        "prune",
        "reflect",
        "renew_questions",
        "replay_receipt",
        "summarise",
    )
)
"""Methods that can take minutes: they call a language model, copy the store, or go through all memories."""
_MOST_LONG = 4
_RECORDING = frozenset(("add", "add_many"))
"""Methods that record messages. They return ids, also of messages that are not stored."""
_ASKED = frozenset(("search", "query"))
"""Methods that look for a text, which must not be blank."""
STORING = frozenset(("remember", "remember_many"))
"""Methods that store facts, which belong to the user or to a chat."""
EVERY_ACCESS: frozenset[Access] = frozenset({"read", "write", "admin", "erase"})
PROPOSING: frozenset[Access] = frozenset({"read", "propose"})
"""The permissions of a caller whose changes need the user's approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The identity of a caller. It belongs to a process, a token or a socket; no argument can set it.

    Attributes:
        trust: The trust level of the caller's texts.
        access: The caller's permissions. With "propose" and without "write", its changes are only proposals.
        name: The name of its token, for rate limits.
        shares: Whether facts that are not about the user belong to the caller's chat only. Coding agents use this to
            keep projects apart.
    """

    owner: str = "me"
    chat: str | None = None
    trust: Trust = "agent"
    access: frozenset[Access] = EVERY_ACCESS
    name: str = "process"
    shares: bool = False

    @property
    def scope(self) -> Scope:
        return Scope(owner=self.owner, chat=self.chat, trust=self.trust, propose=self.proposes)

    @property
    def proposes(self) -> bool:
        """Whether the caller's changes wait for the user's decision."""
        return "propose" in self.access and "write" not in self.access

    @property
    def can_share(self) -> bool:
        """Whether the caller can choose to share a fact with a chat or space."""
        return self.chat is not None and not self.shares

    @property
    def origin(self) -> Origin:
        """The origin to store with the caller's texts."""
        return capped("user", "user", caller=self.trust)

    def at(self, door: Door) -> Caller:
        """Return this caller with its trust limited to the maximum of an interface."""
        return replace(self, trust=at_door(door, self.trust))

    def may(self, capability: str) -> bool:
        """Return whether the caller has the right to a capability."""
        return allows(capability, self._holder)

    def require(self, capability: str) -> None:
        """Raises:
        DeniedError: The caller does not have the right to a capability.
        """
        require(capability, self._holder)

    @property
    def _holder(self) -> Holder:
        return Holder(self.trust, access=self.access, proposes=self.proposes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """The store that a server opens, with its models. None means no embedder or no language model."""

    location: str
    embedder: str | None
    model: str | None
    settings: Settings

    async def open(self) -> Memory:
        """Open the memory and preload what the first search needs."""
        from ricordo.memory import Memory  # imported late: a client may be waiting for its first answer

        memory = await Memory.open(self.location, embedder=self.embedder, model=self.model, settings=self.settings)
        await memory.warm()
        return memory


_MEMORY_IDS = frozenset(
    ("get", "history", "explain", "correct", "update", "confirm", "reinforce", "demote", "forget", "restore", "erase")
)
"""Methods whose `id` is the id of a memory."""
_NOTHING = {
    "on_record": "Nothing is off the record now.",
    "context": "Nothing in the memory matters for this prompt.",
    "brief": "Nothing relevant is remembered yet.",
}
"""What a model is told where there is nothing to tell it."""
_REVIEW_IDS = {"resolve_many": "items", "approve": "ids", "refuse": "ids"}
_RUN_IDS = {"run": "id", "accept": "run", "undo": "commit_or_run"}


class Dispatcher:
    """Runs the calls of all interfaces of a process on one store."""

    def __init__(self, opening: Awaitable[Memory]) -> None:
        """Args:
        opening: Opens the store in the background, so that interfaces can start before it is open.
        """
        self._opening = asyncio.ensure_future(opening)
        self.is_closing: Callable[[], bool] = lambda: False
        """Whether the server is about to stop; endless streams then end."""
        self.most_calls: int | None = None
        """The maximum number of one caller's calls at a time; None: no limit. A server sets it. A call counts until it
        is done, even if the client has left."""
        self._calls: Counter[tuple[str, bool]] = Counter()
        self._recent = RecentIds()
        self._running: set[asyncio.Future[None]] = set()

    async def opened(self) -> Memory:
        """Wait until the store is open; return the memory with its original scope."""
        return await asyncio.shield(self._opening)

    async def memory(self, caller: Caller) -> Memory:
        """Return the memory scoped to a caller."""
        return (await self.opened()).scoped(caller.scope)

    async def call(
        self, capability: Capability, given: object, *, caller: Caller, as_tool: bool, progress: Progress | None = None
    ) -> Any:
        """Run a capability in the caller's scope and return its answer.

        Args:
            given: The arguments, as an object or as JSON in bytes.
            progress: Called with the progress of long work, if the method reports any.

        Raises:
            DeniedError: The caller lacks the right.
            InvalidError: An argument is not valid.
            UnavailableError: Too many calls of the caller are still running.
            RicordoError: Any error of the method.
        """
        caller.require(capability.method)
        with self._counted(caller, is_long=capability.method in _LONG):
            return await self._call(capability, given, caller=caller, as_tool=as_tool, progress=progress)

    async def call_tool(
        self, capability: Capability, given: object, *, caller: Caller, progress: Progress | None = None
    ) -> tuple[Any, str]:
        """Run a capability for a model, as `call` does. Returns the answer, and the answer as text.

        Unless `limit` is given, most of the weak hits at the end of a search are left out; the text says how many,
        also if `only_relevant` left out all.
        """
        answer = await self.call(capability, given, caller=caller, as_tool=True, progress=progress)
        from ricordo.interfaces.schema import check_arguments  # imports the memory

        if isinstance(answer, Results):
            left_out = 0
            arguments = check_arguments(capability, given, as_tool=True)
            if not answer.hits and arguments.get("only_relevant"):
                weaker = {**cast("Mapping[str, Any]", given), "only_relevant": False}
                left_out = len(await self.call(capability, weaker, caller=caller, as_tool=True))
            elif "limit" not in arguments:
                answer, left_out = without_tail(answer)
            return answer, results_as_text(answer, left_out=left_out)
        if not answer and capability.method in _NOTHING:
            return answer, await self._too_small(capability, given, caller) or _NOTHING[capability.method]
        if capability.method in _RECORDING:
            ids, given_texts = _recorded(answer, check_arguments(capability, given, as_tool=True))
            stored = await (await self.memory(caller)).store_view.nodes(ids)
            return answer, recorded_as_text([stored.get(id) for id in ids], given_texts)
        is_filed = caller.chat is not None and capability.method in STORING
        text = stored_as_text(answer) if is_filed else as_text(answer)
        if isinstance(answer, list | tuple):
            most = _limit(capability, check_arguments(capability, given, as_tool=True))
            text += f"\n{most:,} shown; a higher limit shows more, if there are any." if len(answer) == most else ""
        return answer, text

    async def _too_small(self, capability: Capability, given: object, caller: Caller) -> str:
        """Return that a given budget holds no line of a context; "" if there is none."""
        from ricordo.interfaces.schema import check_arguments  # imports the memory

        arguments = check_arguments(capability, given, as_tool=True)
        if capability.method != "context" or "budget" not in arguments:
            return ""
        memory = await self.memory(caller)
        return too_small(await memory.context_parts(**{**arguments, "receipt": False}), "`budget`")

    @contextlib.contextmanager
    def _counted(self, caller: Caller, *, is_long: bool) -> Iterator[None]:
        """Count a call until the end of the block. Raises UnavailableError if the caller has too many."""
        key = caller.name, is_long
        most = _MOST_LONG if is_long else self.most_calls
        if self.most_calls is not None and most is not None and self._calls[key] >= most:
            raise UnavailableError(
                f"{most} {'long calls' if is_long else 'calls'} of this caller are still running",
                hint="wait until they are done; give each program its own token",
            )
        self._calls[key] += 1
        try:
            yield
        finally:
            self._calls[key] -= 1
            if not self._calls[key]:
                del self._calls[key]

    async def _call(
        self, capability: Capability, given: object, *, caller: Caller, as_tool: bool, progress: Progress | None
    ) -> Any:
        memory = await self.memory(caller)
        from ricordo.interfaces.schema import check_arguments, function_of  # imports the memory

        arguments = check_arguments(capability, given, as_tool=as_tool, can_share=caller.can_share)
        asked = (arguments[name] for name in ("text", "keywords", "query") if name in arguments)
        if capability.method in _ASKED and not all(each.strip() for each in asked):
            raise InvalidError("text is empty", hint="give the words of a question")
        work = function_of(capability)
        names = inspect.signature(work).parameters
        await self._complete_ids(capability.method, arguments, memory)
        if "origin" in names:
            arguments["origin"] = _origin(capability, caller)
        if "progress" in names:
            arguments["progress"] = progress
        if "judge" in names:
            arguments.setdefault("judge", True)
        bound = {name: _bind_origin(value, capability, caller) for name, value in arguments.items()}
        if capability.method in STORING:
            for text in _told(arguments):
                check_is_told(text)
        if caller.shares and caller.chat and capability.method in STORING:
            bound = await _filed(bound, memory, project=caller.chat, takes_several="of_project" in names)
        answer = await work(memory, **bound)
        if capability.method in _SHOW_HELD and (as_tool or not caller.may("review.quarantined_text")):
            answer = withhold(answer)
        self._recent.note(caller.scope, answer)
        if isinstance(answer, Results) and answer.trace is None:  # reasons are returned only with `trace`
            answer = replace(answer, hits=tuple(replace(hit, why=()) for hit in answer.hits))
        return answer

    async def _complete_ids(self, method: str, arguments: dict[str, Any], memory: Memory) -> None:
        """Replace shortened ids of memories, reviews and runs in the arguments by full ones."""
        as_of = arguments.get("as_of")
        if method in _MEMORY_IDS and isinstance(arguments.get("id"), str):
            arguments["id"] = await self._full_id(memory, arguments["id"], as_of, undone=method == "erase")
        if method == "correct" and arguments.get("evidence"):
            arguments["evidence"] = [await self._full_id(memory, each, as_of) for each in arguments["evidence"]]
        if method == "resolve" and _is_short(arguments.get("item")):
            arguments["item"] = await resolve_review_id(memory, arguments["item"])
        if (several := _REVIEW_IDS.get(method)) and (given := arguments.get(several)) is not None:
            arguments[several] = [
                await resolve_review_id(memory, each) if _is_short(each) else each
                for each in (given if isinstance(given, list) else [given])
            ]
        name = _RUN_IDS.get(method, "")
        if _is_short(arguments.get(name)) and not arguments[name].isdecimal():
            arguments[name] = await resolve_run_id(memory, arguments[name])

    async def _full_id(self, memory: Memory, id: str, as_of: str | int | None, *, undone: bool = False) -> str:
        """Return the full id of a memory for a short one."""
        if not _is_short(id):
            return id
        return self._recent.full(memory.scope, id) or await resolve_id(memory, id, as_of=as_of, undone=undone)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work without waiting for it, such as a progress notification."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)

    async def close(self) -> None:
        """Finish pending writes and close the store. If the store is not open yet, cancel opening it."""
        if not self._opening.done():
            self._opening.cancel()
        with contextlib.suppress(RicordoError, asyncio.CancelledError):
            await (await self._opening).close()


def _limit(capability: Capability, arguments: Mapping[str, Any]) -> int | None:
    """Return the most items that a call returns; None if it has no limit."""
    from ricordo.interfaces.schema import function_of  # imports the memory

    parameter = inspect.signature(function_of(capability)).parameters.get("limit")
    return None if parameter is None else arguments.get("limit", parameter.default)


def _told(arguments: Mapping[str, Any]) -> Sequence[str]:
    """Return the texts that a call remembers as facts, rather than as ways to do something or opinions."""
    if "facts_" in arguments:
        return [each.content for each in arguments["facts_"] if each.type == "semantic"]
    content = arguments["content"] if arguments.get("type", "semantic") == "semantic" else ()
    return [content] if isinstance(content, str) else content


def _recorded(answer: str | Sequence[str], arguments: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the ids and the given texts of the messages that a call recorded."""
    if isinstance(answer, str):
        return [answer], [arguments["text"]]
    return answer, [each.text for each in arguments["messages"]]


def _is_short(given: object) -> bool:
    """Return whether an argument may be a shortened id."""
    return isinstance(given, str) and len(given) < FULL_ID_CHARS


async def _filed(given: Mapping[str, Any], memory: Memory, *, project: str, takes_several: bool) -> dict[str, Any]:
    """Return the arguments of a call that stores facts, with those that are about the project shared with its chat."""
    from ricordo.text.filing import is_about_user

    names = await memory.store_view.owner_names()

    def is_shared(content: object, category: str | None) -> bool:
        return not is_about_user(str(content), category=category, names=names, project=project)

    if "facts_" in given:
        facts = given["facts_"]
        return {
            **given,
            "facts_": [replace(each, shared=each.shared or is_shared(each.content, each.category)) for each in facts],
        }
    content, category = given.get("content"), given.get("category")
    if takes_several:
        texts = [content] if isinstance(content, str) else content or ()
        return {**given, "of_project": [each for each in texts if is_shared(each, category)]}
    return {**given, "shared": bool(given.get("shared")) or is_shared(content, category)}


def _origin(capability: Capability, caller: Caller) -> Origin:
    """Return the origin of a text: "conversation" for messages of the user or the agent, else the caller's own."""
    if capability.method in _RECORDING and caller.trust in ("user", "agent"):
        return "conversation"
    return caller.origin


def _bind_origin(value: Any, capability: Capability, caller: Caller) -> Any:
    """Set the origin of facts and messages in a list."""
    if isinstance(value, list) and value and is_dataclass(value[0]) and hasattr(value[0], "origin"):
        return [replace(each, origin=_origin(capability, caller)) for each in value]
    return value


@contextlib.asynccontextmanager
async def nightly_maintenance(config: StoreConfig, dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Run scheduled maintenance for all owners inside the `with` block, if the setting `nightly` is on."""
    if not config.settings.nightly:
        yield
        return
    task = asyncio.create_task(_maintain(config, dispatcher), name="ricordo-nightly")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _maintain(config: StoreConfig, dispatcher: Dispatcher) -> None:
    """Start once the store is open, which may be long after the server has started."""
    try:
        memory = await dispatcher.opened()
        from ricordo.host import Host, MemoryExtension

        extension = MemoryExtension(memory, config.settings, all_owners=True)
        async with Host(config.location, [extension], settings=config.settings):
            await asyncio.Event().wait()
    except RicordoError as error:  # requests are still served
        _log.error("nightly maintenance is off: %s", error)
