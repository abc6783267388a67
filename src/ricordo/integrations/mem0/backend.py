"""The implementation of mem0's methods: users are owners, and metadata are attributes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ricordo.clock import from_ms
from ricordo.errors import RicordoError
from ricordo.ids import new_id
from ricordo.integrations.mem0 import shapes
from ricordo.integrations.mem0.shapes import IDENTITIES, Item, Mem0Error, asked, fits, identity, plain
from ricordo.model import Json, Message, Node, Scope
from ricordo.settings import default_location

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.ports import Clock, Embedder, LanguageModel

_log = logging.getLogger(__name__)

_PAGE = 500
_MOST = 1_000
_PROCEDURAL = "procedural_memory"


class Unset:
    """The type of a missing argument, where None has a meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The store to open; as in `ricordo.Memory.open`."""

    location: str | Path
    embedder: str | Embedder | None
    model: str | LanguageModel | None
    clock: Clock | None


def options_of(
    config: object,
    *,
    location: str | Path | None,
    embedder: str | Embedder | None,
    model: str | LanguageModel | None,
    clock: Clock | None,
) -> StoreOptions:
    """Return the store of a mem0 configuration: next to its vector store, else in Ricordo's folder."""
    named = config if isinstance(config, Mapping) else {}
    own = dict(named.get("ricordo") or {})
    store = named.get("vector_store") or {}
    inside = store.get("config") or {} if isinstance(store, Mapping) else {}
    name = f"{inside.get('collection_name') or 'mem0'}.db"
    usual = Path(inside["path"]) / name if inside.get("path") else Path(default_location()).with_name(name)
    return StoreOptions(
        location=location or own.get("location") or usual,
        embedder=own.get("embedder", embedder),
        model=own.get("model", model),
        clock=clock,
    )


class Backend:
    """An open store, and mem0's methods on it."""

    def __init__(self, options: StoreOptions) -> None:
        self._options = options
        self._memory: Memory | None = None
        self._opening = asyncio.Lock()

    async def _opened(self) -> Memory:
        from ricordo.memory import Memory

        async with self._opening:
            if self._memory is None:
                options = self._options
                if options.location != ":memory:":
                    await asyncio.to_thread(Path(options.location).parent.mkdir, parents=True, exist_ok=True)
                self._memory = await Memory.open(
                    options.location, embedder=options.embedder, model=options.model, clock=options.clock
                )
        return self._memory

    async def close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            await memory.close()

    # writing

    async def add(
        self,
        messages: object,
        *,
        ids: Mapping[str, object],
        metadata: Json | None,
        until: object,
        infer: bool,
        kind: str | None,
    ) -> list[Item]:
        """Record messages; return what was stored, each with its event."""
        if kind not in (None, _PROCEDURAL):
            raise Mem0Error(f"Invalid 'memory_type'. Please pass {_PROCEDURAL} to create procedural memories.")
        known = {name: found for name, value in ids.items() if (found := identity(value, name)) is not None}
        if not known:
            raise Mem0Error("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        payload = {name: value for name, value in (metadata or {}).items() if name not in shapes.OWN_KEYS} | known
        if (day := shapes.expiration(until)) is not None:
            payload["expiration_date"] = day
        memory = (await self._opened()).scoped(_scope(known))
        said = shapes.spoken(messages)
        if not said:
            return []
        session = known.get("run_id") or new_id(memory.store_view.now())
        recorded = [shapes.recorded(each, session=session, payload=payload) for each in said]
        if kind is not None and "agent_id" in known:
            return [await _procedure(memory, recorded, payload)]
        if not infer:
            return await _messages(memory, recorded)
        if self._options.model is not None:
            return await _asked_of_a_model(memory, recorded, session, payload)
        return await _by_rule(memory, recorded)

    async def update(self, id: str, text: str | None, metadata: Json | None, until: object) -> None:
        if text is None and metadata is None and isinstance(until, Unset):
            raise Mem0Error("At least one of text, metadata, or expiration_date must be provided.")
        memory, node = await self._living(id)
        given = {name: value for name, value in (metadata or {}).items() if name not in shapes.OWN_KEYS}
        if not isinstance(until, Unset):
            given["expiration_date"] = shapes.expiration(until)
        now = from_ms(memory.store_view.now()).isoformat()
        await memory.update(id, content=text, attributes={**node.attributes, **given, "updated_at": now})

    async def delete(self, id: str) -> None:
        memory, _ = await self._living(id)
        await memory.forget(id)

    async def delete_all(self, ids: Mapping[str, object]) -> None:
        known = {name: found for name, value in ids.items() if (found := identity(value, name)) is not None}
        if not known:
            raise Mem0Error("At least one filter is required to delete all memories. `reset()` deletes everything.")
        for memory in await self._memories(known):
            for node in [node async for node in _all(memory, plain(known))]:
                await memory.forget(node.id)

    async def reset(self) -> None:
        """Erase the memories of this interface; others in the same store stay."""
        opened_memory = await self._opened()
        for scope in await opened_memory.store_view.owners():
            memory = opened_memory.scoped(scope)
            found = [node async for node in _everything(memory)]
            ours = [node for node in found if _is_ours(node)]
            if ours and len(ours) == len(found):
                await memory.erase(owner=scope.owner)
                continue
            for node in ours:
                await memory.erase(id=node.id)

    # reading

    async def search(
        self,
        query: str,
        *,
        filters: Json | None,
        ids: Mapping[str, Any],
        top_k: int,
        threshold: float | None,
        explain: bool,
        show_expired: bool,
    ) -> list[Item]:
        """Return hits, best first; those of several owners are ordered by score."""
        wanted = asked(filters, ids)
        if not isinstance(query, str) or not query.strip():
            raise Mem0Error("Invalid query: cannot be empty or whitespace-only.")
        if threshold is not None and not 0 <= threshold <= 1:
            raise Mem0Error(f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).")
        if _checked(top_k) == 0:
            return []
        found: list[Item] = []
        for memory in await self._memories(wanted):
            most = min(_MOST, max(4 * top_k, 60))
            results = await memory.search(query, where=plain(wanted) or None, limit=most, trace=explain)
            nodes = await memory.store_view.nodes(results.ids)
            for hit in results.hits:
                if hit.id in nodes and self._is_wanted(memory, nodes[hit.id], wanted, show_expired):
                    shares = {each.strategy: each.share for each in hit.why}
                    shown = shapes.item(nodes[hit.id], score=hit.score)
                    found.append({**shown, "score_details": shares} if explain else shown)
        found.sort(key=lambda each: -float(each["score"]))
        return [each for each in found if threshold is None or each["score"] >= threshold][:top_k]

    async def get(self, id: str) -> Item | None:
        try:
            _, node = await self._living(id)
        except Mem0Error:
            return None
        return shapes.item(node)

    async def get_all(
        self, *, filters: Json | None, ids: Mapping[str, Any], top_k: int, show_expired: bool
    ) -> list[Item]:
        wanted = asked(filters, ids)
        _checked(top_k)
        found: list[Node] = []
        for memory in await self._memories(wanted):
            kept = 0
            async for node in _all(memory, plain(wanted)):
                if kept == top_k:
                    break
                if self._is_wanted(memory, node, wanted, show_expired):
                    found.append(node)
                    kept += 1
        found.sort(key=lambda node: -node.key)
        items = (shapes.item(node) for node in found[:top_k])
        return [{name: value for name, value in each.items() if name != "score"} for each in items]

    async def history(self, id: str) -> list[Item]:
        memory = await self._opened()
        scope = await memory.store_view.owner_of(id)
        return [] if scope is None else shapes.events(id, await memory.scoped(scope).history(id))

    # owners

    async def _living(self, id: str) -> tuple[Memory, Node]:
        """Return a live memory, and the store scoped to its owner.

        Raises:
            Mem0Error: there is none.
        """
        memory = await self._opened()
        scope = await memory.store_view.owner_of(id) if isinstance(id, str) else None
        found = {} if scope is None else await memory.scoped(scope).store_view.nodes([id])
        if scope is None or id not in found or not found[id].is_live:
            raise Mem0Error(f"Memory with id {id} not found")
        return memory.scoped(scope), found[id]

    async def _memories(self, wanted: Json) -> list[Memory]:
        """Return the store scoped to each owner that the filters may mean: one user, or all."""
        memory = await self._opened()
        user = wanted.get("user_id")
        if isinstance(user, str) and user != "*":
            return [memory.scoped(Scope(owner=user))]
        return [memory.scoped(each) for each in await memory.store_view.owners()]

    def _is_wanted(self, memory: Memory, node: Node, wanted: Json, show_expired: bool) -> bool:
        today: date = from_ms(memory.store_view.now()).date()
        return fits(node.attributes, wanted) and (show_expired or not shapes.is_over(node, today))


def _scope(ids: Mapping[str, str]) -> Scope:
    """Return the owner. Ids contain no spaces, so no user is mistaken for an agent."""
    owner = ids.get("user_id")
    return Scope(owner=owner or next(f"{name.removesuffix('_id')} {ids[name]}" for name in IDENTITIES if name in ids))


def _checked(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise Mem0Error(f"Invalid top_k: {top_k}. Must be a non-negative integer.")
    return top_k


def _is_ours(node: Node) -> bool:
    return any(name in node.attributes for name in IDENTITIES)


async def _all(memory: Memory, where: Json) -> AsyncIterator[Node]:
    """Yield the memories that a search covers, latest first."""
    last: int | None = None
    while page := await memory.store_view.page(where, before_key=last, limit=_PAGE):
        for node in page:
            yield node
        last = page[-1].key


async def _everything(memory: Memory) -> AsyncIterator[Node]:
    """Yield all memories, live and closed."""
    for archived in (False, True):
        cursor: str | None = None
        while True:
            page = await memory.list(archived=archived, limit=_PAGE, cursor=cursor)
            for node in page.nodes:
                yield node
            if (cursor := page.cursor) is None:
                break


# what is stored


def _added(id: str, text: str) -> Item:
    return {"id": id, "memory": text, "event": "ADD"}


async def _messages(memory: Memory, recorded: Sequence[Message]) -> list[Item]:
    ids = await memory.add_many(recorded)
    return [
        {**_added(id, each.text), "role": (each.attributes or {}).get("role")}
        for id, each in zip(ids, recorded, strict=True)
    ]


async def _by_rule(memory: Memory, recorded: Sequence[Message]) -> list[Item]:
    """Store plain statements as facts, and every message that says more as a message."""
    said = [(each, shapes.learnt(each)) for each in recorded]
    facts = [fact for _, found in said for fact in found]
    nodes = await memory.remember_many(facts) if facts else []
    found = {fact.content: await _kept(memory, node) for fact, node in zip(facts, nodes, strict=True)}
    whole = [
        each
        for each, facts in said
        if not shapes.says_no_more(each, facts) or any(found[fact.content] is None for fact in facts)
    ]
    kept = [each for each in found.values() if each is not None]
    return kept + (await _messages(memory, whole) if whole else [])


async def _kept(memory: Memory, node: Node) -> Item | None:
    """Return the result of a statement; None if it existed with other metadata or from another run.

    The existing memory then keeps its metadata: one memory cannot belong to both.
    """
    versions = [each for each in await memory.history(node.id) if each.node.id == node.id]
    if len(versions) < 2:
        return _added(node.id, node.content)
    before = versions[-2].node.attributes
    if before == node.attributes:
        return {**_added(node.id, node.content), "event": "NONE"}
    await memory.update(node.id, attributes=before)
    return None


async def _procedure(memory: Memory, recorded: Sequence[Message], payload: Json) -> Item:
    """Store a procedure word for word: without a model it is not summarized."""
    told = "\n".join(f"{each.role}: {each.text}" for each in recorded)
    node = await memory.remember(told, type="procedural", attributes={**payload, "memory_type": _PROCEDURAL})
    return _added(node.id, node.content)


async def _asked_of_a_model(memory: Memory, recorded: Sequence[Message], session: str, payload: Json) -> list[Item]:
    """Store messages and consolidate them. If the model fails, the messages wait for a later run."""
    messages = await _messages(memory, recorded)
    try:
        run = await memory.consolidate(session)
    except RicordoError as error:
        _log.warning("the messages are kept as they are: %s", error)
        return messages
    if run.state != "done":
        _log.warning("the messages are kept as they are: %s", run.reason)
        return messages
    made = [each.id for each in run.items if each.what in ("added", "replaced") and each.id is not None]
    found = await memory.store_view.nodes(list(dict.fromkeys(made)))
    live = [node for node in found.values() if node.is_live]
    named = [await memory.update(node.id, attributes={**node.attributes, **payload}) for node in live]
    return [_added(node.id, node.content) for node in named]
