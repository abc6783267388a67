"""A `BaseStore` for LangGraph, stored in Ricordo: durable, in one file, searched by words and meaning.

    from ricordo.integrations.langgraph import RicordoStore

Source: langchain-ai.github.io/langgraph, "Memory" and the reference of `langgraph.store.base` 4.3.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from langgraph.store.base.embed import get_text_at_path

from ricordo.clock import from_ms
from ricordo.errors import InvalidError
from ricordo.integrations import items as kept
from ricordo.integrations.items import Items
from ricordo.loop_thread import Portal
from ricordo.memory import Memory
from ricordo.model import ErasureReport, Json, Node, Scope

if TYPE_CHECKING:
    from types import TracebackType

    from ricordo.ports import Clock, Embedder

__all__ = ["RicordoStore"]

Namespace = tuple[str, ...]

_NAME = "name"
"""The attribute with the key of an item: random characters after the word "key" would be redacted as a credential."""
_MOST = 1_000
_MOST_CHARS = 20_000
_MOST_VALUE_CHARS = 100_000


class RicordoStore(BaseStore):
    """LangGraph's long-term memory. The methods of `BaseStore`, with and without `await`, work from any thread or event
    loop. Close the store, or use it in a `with` block.
    """

    supports_ttl = True

    def __init__(
        self,
        location: str | Path,
        *,
        scope: Scope = Scope(owner="me"),
        embedder: str | Embedder | None = "default",
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Args:
        location: the store's file; it is created if it does not exist.
        scope: the owner of the items; other owners' items are not visible. `scoped` serves further owners.
        embedder: as in `ricordo.Memory.open`.
        fields: paths of the texts to search in ("content", "chapters[*].title"); None for all texts.
        ttl: the default time to live. `sweep_interval_minutes` is ignored: expired items are never returned.
        """
        self.ttl_config = ttl
        self._fields = fields
        self._portal = Portal()
        try:
            self._memory = self._portal.call(
                Memory.open(location, embedder=embedder, scope=scope, clock=clock).__aenter__()
            )
        except BaseException:
            self._portal.close()
            raise
        self._items = Items(self._memory, kind="langgraph")
        self._is_opener = True

    def scoped(self, scope: Scope) -> RicordoStore:
        """Return a store with another owner's items, on the same open file, without further threads, files or models.
        Closing it closes nothing.

        Raises:
            InvalidError: the scope is invalid.
        """
        other = copy(self)
        other._memory = self._memory.scoped(scope)
        other._items = Items(other._memory, kind="langgraph")
        other._is_opener = False
        return other

    def erase(self, namespace: Namespace) -> ErasureReport:
        """Delete all items under a namespace for good, with their former values, and those deleted before.

        Raises:
            InvalidError: the namespace is not a tuple of labels, or it is empty: it would stand for all namespaces.
            NotFoundError: there is no item under it.
        """
        _check_namespace(namespace)
        where = {"kind": "langgraph", **_labels(namespace)}
        return self._portal.call(self._memory.erase(where=where))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see the state before the batch; of several writes to one key, the last one counts."""
        return self._portal.call(self._done(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations like `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        if self._is_opener and self._portal.is_open:
            self._portal.call(self._memory.close())
            self._portal.close()

    def __enter__(self) -> RicordoStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> RicordoStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # inside

    async def _done(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(await self._get(op))
            elif isinstance(op, SearchOp):
                results.append(await self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._namespaces(op))
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
        await self._put(list(puts.values()))
        return results

    async def _put(self, puts: Sequence[PutOp]) -> None:
        gone = [[*op.namespace, op.key] for op in puts if op.value is None]
        await self._items.delete([node for node in await self._items.get(gone) if node is not None])
        await self._items.put([self._item(op) for op in puts if op.value is not None])

    def _item(self, op: PutOp) -> kept.Item:
        now = self._now()
        fields: dict[str, Any] = {
            "namespace": list(op.namespace),
            _NAME: op.key,
            "value": dict(op.value or {}),
            "indexed": op.index is not False,
            **_labels(op.namespace),
        }
        if op.ttl is not None:
            fields |= {"ttl": op.ttl, "until": (now + timedelta(minutes=op.ttl)).isoformat()}
        _check_value(op)
        text = op.key if op.index is False else self._text(op)
        return kept.Item(name=[*op.namespace, op.key], text=text, fields=fields)

    def _text(self, op: PutOp) -> str:
        """Return the text by which search finds the item."""
        paths = op.index or self._fields
        found = [each for path in paths for each in get_text_at_path(op.value, path)] if paths else _texts(op.value)
        text = "\n".join(each for each in found if each.strip()) or _json(op.value)
        return text[:_MOST_CHARS]

    async def _get(self, op: GetOp) -> Item | None:
        found = await self._live(await self._items.get([[*op.namespace, op.key]]), refresh=op.refresh_ttl)
        return Item(**_shown(found[0])) if found else None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.limit < 0 or op.offset < 0:
            raise InvalidError("limit and offset must not be negative", hint="leave them out for the first ten items")
        where = _labels(op.namespace_prefix)
        last = op.offset + op.limit
        scored: list[tuple[Node, float | None]]
        if op.query:
            most = _MOST if op.filter else max(60, 4 * last)
            hits = await self._items.search(op.query, where, limit=most)
            scored = [(node, score) for node, score in hits if node.attributes["indexed"]]
            if len(scored) < last:
                rest = await self._items.all({**where, "indexed": False})
                scored += [(node, None) for node in rest]
        else:
            scored = [(node, None) for node in await self._items.all(where)]
        fitting = [(node, score) for node, score in scored if _fits(_value(node), op.filter or {})]
        live = {node.id for node in await self._live([node for node, _ in fitting], refresh=False)}
        page = [(node, score) for node, score in fitting if node.id in live][op.offset : last]
        await self._live([node for node, _ in page], refresh=op.refresh_ttl)
        return [SearchItem(**_shown(node), score=score) for node, score in page]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        nodes = await self._live(await self._items.all({}), refresh=False)
        found = {tuple(node.attributes["namespace"]) for node in nodes}
        met = [each for each in found if all(_meets(each, condition) for condition in op.match_conditions or ())]
        cut = sorted({each[: op.max_depth] for each in met})
        return cut[op.offset : op.offset + op.limit]

    async def _live(self, nodes: Sequence[Node | None], *, refresh: bool) -> list[Node]:
        """Return the items that have not expired; delete the expired ones. With `refresh`, restart the time to live."""
        now = self._now()
        there = [node for node in nodes if node is not None]
        over = [node for node in there if "until" in node.attributes and _until(node) <= now]
        await self._items.delete(over)
        live = [node for node in there if node not in over]
        for node in live if refresh else ():
            if "ttl" in node.attributes:
                until = now + timedelta(minutes=node.attributes["ttl"])
                await self._items.touch(node, {"until": until.isoformat()})
        return live

    def _now(self) -> datetime:
        return from_ms(self._memory.store_view.now())


def _labels(namespace: Namespace) -> dict[str, str]:
    return {f"label {depth}": label for depth, label in enumerate(namespace)}


def _check_namespace(namespace: Namespace) -> None:
    """Raise InvalidError unless a namespace has labels, and all of them are texts."""
    is_tuple = isinstance(namespace, tuple | list) and len(namespace) > 0
    if not is_tuple or not all(isinstance(label, str) and label for label in namespace):
        raise InvalidError(
            f"namespace: {namespace!r} is not a tuple of one label or more",
            hint="erase each namespace of `list_namespaces`; `Memory.erase(owner=...)` erases all that an owner has",
        )


def _check_value(op: PutOp) -> None:
    """Raise InvalidError if a value cannot be stored."""
    hint = "store dates and other objects as text"
    try:
        size = len(json.dumps(op.value, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise InvalidError(f"the value of {op.key!r} is not JSON: {error}", hint=hint) from error
    if size > _MOST_VALUE_CHARS:
        hint = f"at most {_MOST_VALUE_CHARS:,} are allowed; divide it between several keys"
        raise InvalidError(f"the value of {op.key!r} has {size:,} characters of JSON", hint=hint)


def _until(node: Node) -> datetime:
    return datetime.fromisoformat(node.attributes["until"])


def _shown(node: Node) -> dict[str, Any]:
    fields = node.attributes
    return {
        "namespace": tuple(fields["namespace"]),
        "key": fields[_NAME] if _NAME in fields else fields["key"],  # "key" in items of earlier versions
        "value": _value(node),
        "created_at": kept.first_stored(node),
        "updated_at": max(datetime.fromisoformat(fields["updated_at"]), node.created_at),
    }


def _value(node: Node) -> Json:
    """Return the value of an item. If a person has corrected its text, the texts in the value are corrected. If
    it cannot be told which is which, the correction is beside them under "corrected".
    """
    value: Json = node.attributes["value"]
    said = node.content
    texts = _texts(value)
    if not node.attributes["indexed"] or len(said) >= _MOST_CHARS or _is_made_of(said, texts or [_json(value)]):
        return value
    corrected = _json_object(said) if not texts else None
    if corrected is not None:
        return corrected
    lines = [said] if len(texts) == 1 else said.split("\n")
    if len(lines) != len(texts) or any("\n" in text for text in texts[1:]):
        return {**value, "corrected": said}
    found: Json = _replaced(value, iter(lines))
    return found


def _is_made_of(said: str, texts: Sequence[str]) -> bool:
    """Return whether a text consists of some of the given texts, as stored."""
    for text in sorted(texts, key=len, reverse=True):
        said = said.replace(text.strip(), "", 1)
    return not said.strip()


def _replaced(value: Any, texts: Iterator[str]) -> Any:
    """Return a JSON value with its texts replaced, in order."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, Mapping):
        return {name: _replaced(each, texts) for name, each in value.items()}
    return [_replaced(each, texts) for each in value] if isinstance(value, list | tuple) else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_object(text: str) -> Json | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _texts(value: object) -> list[str]:
    """Return all texts in a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [text for each in inner for text in _texts(each)]


def _meets(namespace: Namespace, condition: Any) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _fits(value: Json, wanted: Mapping[str, Any]) -> bool:
    return all(_is(value.get(name), condition) for name, condition in wanted.items())


def _is(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(name.startswith("$") for name in condition):
            return all(_compares(value, name, operand) for name, operand in condition.items())
        return isinstance(value, Mapping) and all(_is(value.get(name), each) for name, each in condition.items())
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(_is(each, wanted) for each, wanted in zip(value, condition, strict=True))
        )
    return bool(value == condition)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    """Compare values as numbers, like LangGraph's stores. Values that are not numbers do not match."""
    if operator in ("$eq", "$ne"):
        return (value == operand) is (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        ours, other = float(value), float(operand)
    except (TypeError, ValueError):
        return False
    return {"$gt": ours > other, "$gte": ours >= other, "$lt": ours < other, "$lte": ours <= other}[operator]
