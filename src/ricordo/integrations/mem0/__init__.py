"""`Memory` and `AsyncMemory` with mem0's names, arguments and answers, stored in Ricordo.

    from ricordo.integrations.mem0 import Memory  # in place of: from mem0 import Memory

Neither mem0 nor an API key is needed. docs/how-to/use-with-frameworks.md lists the differences.

Each mem0 user is an owner, and metadata become attributes. A search of one user never reads another user's memories.
Agents and runs are filters within a user's memories.

Source: docs.mem0.ai, "Python quickstart" and "API reference"; the interface is that of mem0ai 2.2, and the
ids as arguments of 1.x (`search(..., user_id=)`) are accepted, too.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ricordo.clock import from_ms, new_id
from ricordo.errors import RicordoError
from ricordo.integrations.items import listed
from ricordo.integrations.mem0 import shapes
from ricordo.integrations.mem0.shapes import IDENTITIES, Item, Mem0Error, asked, plain
from ricordo.loop_thread import Portal
from ricordo.model import Json, Message, Node, Scope
from ricordo.settings import default_location

if TYPE_CHECKING:
    from datetime import date

    from ricordo.memory import Memory as Store
    from ricordo.ports import Clock, Embedder, LanguageModel

__all__ = ["AsyncMemory", "Mem0Error", "Memory"]

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Answer = dict[str, Any]

_UNSET = object()
"""The default of an argument for which None has a meaning."""
_MOST = 1_000
_PROCEDURAL = "procedural_memory"


class AsyncMemory:
    """mem0's `AsyncMemory`. The store is opened at the first call."""

    def __init__(
        self,
        config: object = None,
        *,
        location: str | Path | None = None,
        embedder: str | Embedder | None = "default",
        model: str | LanguageModel | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Args:
        config: a configuration of mem0. Only the path of its vector store is used, and an entry `ricordo` with the
            arguments below.
        location: the store's file; by default `mem0.db` in Ricordo's folder.
        embedder, model, clock: as in `ricordo.Memory.open`. With a model, `add` extracts facts from messages at once.
        """
        own = dict((config if isinstance(config, Mapping) else {}).get("ricordo") or {})
        self._location = location or own.get("location") or _usual_location(config)
        self._embedder, self._model, self._clock = own.get("embedder", embedder), own.get("model", model), clock
        self._store: Store | None = None
        self._opening = asyncio.Lock()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> AsyncMemory:
        """Return a memory from mem0's configuration; its providers and keys are ignored."""
        return cls(config_dict)

    async def add(
        self,
        messages: str | Mapping[str, Any] | list[Any],
        *,
        user_id: object = None,
        agent_id: object = None,
        run_id: object = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: object = None,
        expiration_date: str | date | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Answer:
        """Record messages; return `{"results": [{"id", "memory", "event"}]}`.

        Args:
            infer: if True and without a model, messages are stored word for word, and plain statements of the user
                ("I live in Rome") as facts, whose new values replace old ones. If False, only messages are stored.
            expiration_date: the last day on which `search` and `get_all` return the memories.

        Raises:
            Mem0Error: no id is given, or an argument is invalid.
        """
        _refuse_platform_argument("timestamp", timestamp)
        if memory_type not in (None, _PROCEDURAL):
            raise Mem0Error(f"Invalid 'memory_type'. Please pass {_PROCEDURAL} to create procedural memories.")
        known = shapes.identities(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not known:
            raise Mem0Error("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        payload = {name: value for name, value in (metadata or {}).items() if name not in shapes.OWN_KEYS} | known
        if (day := shapes.expiration(expiration_date)) is not None:
            payload["expiration_date"] = day
        store = (await self._opened()).scoped(_scope(known))
        session = known.get("run_id") or new_id(store.store_view.now())
        recorded = [shapes.recorded(each, session=session, payload=payload) for each in shapes.spoken(messages)]
        if not recorded:
            return {"results": []}
        if memory_type is not None and "agent_id" in known:
            return {"results": [await _procedure(store, recorded, payload)]}
        if not infer:
            return {"results": await _messages(store, recorded)}
        if self._model is not None:
            return {"results": await _consolidated(store, recorded, session, payload)}
        return {"results": await _by_rule(store, recorded)}

    async def search(
        self,
        /,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        reference_date: object = None,
        show_expired: bool = False,
        limit: int | None = None,
        **ids: Any,
    ) -> Answer:
        """Return the memories that answer a question, best first: `{"results": [...]}`.

        Args:
            filters: at least one of user_id, agent_id and run_id; conditions on metadata with mem0's operators.
            threshold: the minimum score, from 0 to 1; every hit when None. Scores are Ricordo's.
            rerank: accepted and ignored.
            explain: whether to add `score_details`, the share of each signal.

        Raises:
            Mem0Error: no id is given, or an argument is invalid.
        """
        _refuse_platform_argument("reference_date", reference_date)
        wanted = asked(filters, ids)
        if not isinstance(query, str) or not query.strip():
            raise Mem0Error("Invalid query: cannot be empty or whitespace-only.")
        if threshold is not None and not 0 <= threshold <= 1:
            raise Mem0Error(f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).")
        count = _checked(top_k if limit is None else limit)
        found: list[Item] = []
        for store in await self._stores(wanted) if count else ():
            most = min(_MOST, max(4 * count, 60))
            results = await store.search(query, where=plain(wanted) or None, limit=most, trace=explain)
            nodes = await store.store_view.nodes(results.ids)
            for hit in results.hits:
                if hit.id in nodes and _is_wanted(store, nodes[hit.id], wanted, show_expired):
                    shares = {each.strategy: each.share for each in hit.why}
                    shown = shapes.item(nodes[hit.id], score=hit.score)
                    found.append({**shown, "score_details": shares} if explain else shown)
        found.sort(key=lambda each: -float(each["score"]))
        return {"results": [each for each in found if threshold is None or each["score"] >= threshold][:count]}

    async def get(self, memory_id: str) -> Item | None:
        """Return a memory, or None."""
        try:
            _, node = await self._live(memory_id)
        except Mem0Error:
            return None
        return shapes.item(node)

    async def get_all(
        self,
        /,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        limit: int | None = None,
        **ids: Any,
    ) -> Answer:
        """Return memories, latest first: `{"results": [...]}`. Raises the same errors as `search`."""
        wanted, count = asked(filters, ids), _checked(top_k if limit is None else limit)
        found: list[Node] = []
        for store in await self._stores(wanted):
            kept = 0
            async for node in store.store_view.each(plain(wanted)):
                if kept == count:
                    break
                if _is_wanted(store, node, wanted, show_expired):
                    found.append(node)
                    kept += 1
        found.sort(key=lambda node: -node.key)
        items = (shapes.item(node) for node in found[:count])
        return {"results": [{name: value for name, value in each.items() if name != "score"} for each in items]}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: object = _UNSET,
        data: str | None = None,
    ) -> Answer:
        """Change a memory in place; `history` keeps the old version.

        Raises:
            Mem0Error: no memory has this id, or nothing is given.
        """
        content = data if text is None else text
        if content is None and metadata is None and expiration_date is _UNSET:
            raise Mem0Error("At least one of text, metadata, or expiration_date must be provided.")
        store, node = await self._live(memory_id)
        given = {name: value for name, value in (metadata or {}).items() if name not in shapes.OWN_KEYS}
        if expiration_date is not _UNSET:
            given["expiration_date"] = shapes.expiration(expiration_date)
        now = from_ms(store.store_view.now()).isoformat()
        await store.update(memory_id, content=content, attributes={**node.attributes, **given, "updated_at": now})
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> Answer:
        """Delete a memory; `history` still lists it.

        Raises:
            Mem0Error: no memory has this id.
        """
        store, _ = await self._live(memory_id)
        await store.forget(memory_id)
        return {"message": "Memory deleted successfully!"}

    async def delete_all(self, user_id: object = None, agent_id: object = None, run_id: object = None) -> Answer:
        """Delete all memories of a user, agent or run.

        Raises:
            Mem0Error: no id is given.
        """
        known = shapes.identities(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not known:
            raise Mem0Error("At least one filter is required to delete all memories. `reset()` deletes everything.")
        for store in await self._stores(known):
            for node in [node async for node in store.store_view.each(plain(known))]:
                await store.forget(node.id)
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[Item]:
        """Return the events of a memory, oldest first; empty if no memory has this id."""
        store = await self._opened()
        scope = await store.store_view.owner_of(memory_id)
        return [] if scope is None else shapes.events(memory_id, await store.scoped(scope).history(memory_id))

    async def reset(self) -> None:
        """Erase everything stored through this interface, of all users. Other memories in the same store stay."""
        opened = await self._opened()
        for scope in await opened.store_view.owners():
            store = opened.scoped(scope)
            found = [node for archived in (False, True) async for node in listed(store, archived=archived)]
            ours = [node for node in found if any(name in node.attributes for name in IDENTITIES)]
            if ours and len(ours) == len(found):
                await store.erase(owner=scope.owner)
                continue
            for node in ours:
                await store.erase(id=node.id)

    async def close(self) -> None:
        """Close the store; the next call opens it again."""
        store, self._store = self._store, None
        if store is not None:
            await store.close()

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # the store and its owners

    async def _opened(self) -> Store:
        from ricordo.memory import Memory as Store

        async with self._opening:
            if self._store is None:
                if self._location != ":memory:":
                    await asyncio.to_thread(Path(self._location).parent.mkdir, parents=True, exist_ok=True)
                self._store = await Store.open(
                    self._location, embedder=self._embedder, model=self._model, clock=self._clock
                )
        return self._store

    async def _live(self, id: str) -> tuple[Store, Node]:
        """Return a live memory, with the store scoped to its owner. Raises Mem0Error if there is none with this id."""
        store = await self._opened()
        scope = await store.store_view.owner_of(id) if isinstance(id, str) else None
        found = {} if scope is None else await store.scoped(scope).store_view.nodes([id])
        if scope is None or id not in found or not found[id].is_live:
            raise Mem0Error(f"Memory with id {id} not found")
        return store.scoped(scope), found[id]

    async def _stores(self, wanted: Json) -> list[Store]:
        """Return the stores to search, each scoped to an owner: the user in the filters, or all users."""
        store = await self._opened()
        user = wanted.get("user_id")
        if isinstance(user, str) and user != "*":
            return [store.scoped(Scope(owner=user))]
        return [store.scoped(each) for each in await store.store_view.owners()]


def _blocking(
    work: Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Memory, P], T]:
    """Return the method without `await`."""

    @functools.wraps(work)
    def method(self: Memory, /, *args: P.args, **options: P.kwargs) -> T:
        return self._portal.call(work(self._memory, *args, **options))

    return method


class Memory:
    """mem0's `Memory`: `AsyncMemory` without `await`, in scripts, notebooks and threads. Arguments, answers and errors
    are the same.
    """

    def __init__(self, config: object = None, **place: Any) -> None:
        """Args:
        config: as for `AsyncMemory`. `place` takes the other arguments of `AsyncMemory`.
        """
        import ricordo.memory  # noqa: F401  # its exit handlers must run after ours

        self._memory = AsyncMemory(config, **place)
        self._portal = Portal()
        atexit.register(self._portal.close)  # lets a program exit that did not close the memory

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Memory:
        """Return a memory from mem0's configuration; its providers and keys are ignored."""
        return cls(config_dict)

    add = _blocking(AsyncMemory.add)
    search = _blocking(AsyncMemory.search)
    get = _blocking(AsyncMemory.get)
    get_all = _blocking(AsyncMemory.get_all)
    update = _blocking(AsyncMemory.update)
    delete = _blocking(AsyncMemory.delete)
    delete_all = _blocking(AsyncMemory.delete_all)
    history = _blocking(AsyncMemory.history)
    reset = _blocking(AsyncMemory.reset)

    def close(self) -> None:
        """Close the store. Closing twice is fine; answered calls are durable without it."""
        if self._portal.is_open:
            self._portal.call(self._memory.close())
            self._portal.close()
            atexit.unregister(self._portal.close)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _usual_location(config: object) -> Path:
    """Return the path of the store for a mem0 configuration: next to its vector store, else in Ricordo's folder."""
    store = (config if isinstance(config, Mapping) else {}).get("vector_store") or {}
    inside = store.get("config") or {} if isinstance(store, Mapping) else {}
    name = f"{inside.get('collection_name') or 'mem0'}.db"
    return Path(inside["path"]) / name if inside.get("path") else Path(default_location()).with_name(name)


def _scope(ids: Mapping[str, str]) -> Scope:
    """Return the scope of the owner. Ids contain no spaces, so the names of users, agents and runs cannot collide."""
    owner = ids.get("user_id")
    return Scope(owner=owner or next(f"{name.removesuffix('_id')} {ids[name]}" for name in IDENTITIES if name in ids))


def _refuse_platform_argument(name: str, value: object) -> None:
    if value is not None:
        raise Mem0Error(f"{name} is accepted only by mem0's hosted platform; leave it out")


def _checked(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise Mem0Error(f"Invalid top_k: {top_k}. Must be a non-negative integer.")
    return top_k


def _is_wanted(store: Store, node: Node, wanted: Json, show_expired: bool) -> bool:
    today = from_ms(store.store_view.now()).date()
    return shapes.fits(node.attributes, wanted) and (show_expired or not shapes.is_over(node, today))


# what is stored


def _added(id: str, text: str) -> Item:
    return {"id": id, "memory": text, "event": "ADD"}


async def _messages(store: Store, recorded: Sequence[Message]) -> list[Item]:
    ids = await store.add_many(recorded)
    return [
        {**_added(id, each.text), "role": (each.attributes or {}).get("role")}
        for id, each in zip(ids, recorded, strict=True)
    ]


async def _by_rule(store: Store, recorded: Sequence[Message]) -> list[Item]:
    """Store plain statements as facts, and each message with any other content as a message."""
    said = [(each, shapes.learnt(each)) for each in recorded]
    facts = [fact for _, found in said for fact in found]
    nodes = await store.remember_many(facts) if facts else []
    found = {fact.content: await _kept(store, node) for fact, node in zip(facts, nodes, strict=True)}
    whole = [
        each
        for each, facts in said
        if not shapes.says_no_more(each, facts) or any(found[fact.content] is None for fact in facts)
    ]
    kept = [each for each in found.values() if each is not None]
    return kept + (await _messages(store, whole) if whole else [])


async def _kept(store: Store, node: Node) -> Item | None:
    """Return the result for a stored statement; None if it already existed with other metadata or from another run.

    The existing memory then keeps its metadata, because a memory can have only one set.
    """
    versions = [each for each in await store.history(node.id) if each.node.id == node.id]
    if len(versions) < 2:
        return _added(node.id, node.content)
    before = versions[-2].node.attributes
    if before == node.attributes:
        return {**_added(node.id, node.content), "event": "NONE"}
    await store.update(node.id, attributes=before)
    return None


async def _procedure(store: Store, recorded: Sequence[Message], payload: Json) -> Item:
    """Store a procedure word for word. It is not summarized."""
    text = "\n".join(f"{each.role}: {each.text}" for each in recorded)
    node = await store.remember(text, type="procedural", attributes={**payload, "memory_type": _PROCEDURAL})
    return _added(node.id, node.content)


async def _consolidated(store: Store, recorded: Sequence[Message], session: str, payload: Json) -> list[Item]:
    """Store messages and consolidate them. If the model fails, the messages wait for a later run."""
    messages = await _messages(store, recorded)
    try:
        run = await store.consolidate(session)
    except RicordoError as error:
        _log.warning("the messages are stored as they are: %s", error)
        return messages
    if run.state != "done":
        _log.warning("the messages are stored as they are: %s", run.reason)
        return messages
    made = [each.id for each in run.items if each.what in ("added", "replaced") and each.id is not None]
    found = await store.store_view.nodes(list(dict.fromkeys(made)))
    live = [node for node in found.values() if node.is_live]
    named = [await store.update(node.id, attributes={**node.attributes, **payload}) for node in live]
    return [_added(node.id, node.content) for node in named]
