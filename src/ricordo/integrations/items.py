"""Named items stored unchanged, for the key-value pairs and files of other libraries.

An item is a message outside any conversation: search finds it, and facts neither merge with it nor replace it. If an
item outdates another one, it ranks above it. Its history keeps earlier values, and a deleted item can be restored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ricordo.clock import from_ms
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.model import UPDATED_AT, Json, Message, Node

if TYPE_CHECKING:
    from ricordo.memory import Memory


_PAGE = 500


async def listed(memory: Memory, **conditions: Any) -> AsyncIterator[Node]:
    """Yield the memories on all pages of `Memory.list`, latest first."""
    cursor: str | None = None
    while True:
        page = await memory.list(limit=_PAGE, cursor=cursor, **conditions)
        for node in page.nodes:
            yield node
        if (cursor := page.cursor) is None:
            return


def text_of(message: object) -> str:
    """Return the text of a chat message, or its joined text parts; "" for a tool call."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item to store. Search finds it by `text`; `fields` become its attributes."""

    name: Sequence[str]
    text: str
    fields: Json


def first_stored(node: Node) -> datetime:
    """Return when an item was first stored. A correction replaces the node, and its version has this time, too."""
    return node.event_time


class Items:
    """The items of one kind in a memory."""

    def __init__(self, memory: Memory, *, kind: str) -> None:
        self._memory = memory
        self._kind = kind

    def id_of(self, name: Sequence[str]) -> str:
        """Return the id of an item. It includes the owner, because ids must be unique in a store."""
        scope = self._memory.scope
        key = json.dumps([self._kind, scope.owner, scope.chat, *name], ensure_ascii=False)
        return f"{self._kind}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"

    async def get(self, names: Sequence[Sequence[str]]) -> list[Node | None]:
        """Return the live items with the given names, in order; None for a missing item. A corrected item is in the
        version that replaced it.
        """
        found = await self._memory.store_view.newest([self.id_of(name) for name in names])
        nodes = (found.get(self.id_of(name)) for name in names)
        return [node if node is not None and node.is_live else None for node in nodes]

    async def put(self, items: Sequence[Item]) -> None:
        """Store items, new ones in one commit. An item with an existing name gets the new text and fields."""
        self._check_may_change()
        ids = [self.id_of(item.name) for item in items]
        known = await self._memory.store_view.newest(ids)
        fresh = [
            Message(text=item.text, role="assistant", origin="agent", id=id, attributes=self._fields(item))
            for id, item in zip(ids, items, strict=True)
            if id not in known
        ]
        if fresh:
            await self._memory.add_many(fresh)
        for id, item in zip(ids, items, strict=True):
            if id in known:
                if not known[id].is_live:
                    await self._memory.restore(known[id].id)
                await self._memory.update(known[id].id, content=item.text, attributes=self._fields(item))

    async def touch(self, node: Node, fields: Json) -> None:
        """Change some fields of an item."""
        self._check_may_change()
        await self._memory.update(node.id, attributes={**node.attributes, **fields})

    async def delete(self, nodes: Sequence[Node]) -> None:
        self._check_may_change()
        for node in nodes:
            await self._memory.forget(node.id)

    async def all(self, where: Json) -> list[Node]:
        """Return the items whose fields have the given values, in the order they were first stored."""
        found = [node async for node in self._memory.store_view.each({"kind": self._kind, **where})]
        found.reverse()
        return sorted(found, key=first_stored)

    async def search(self, text: str, where: Json, *, limit: int) -> list[tuple[Node, float]]:
        """Search items; return at most 1,000 with their scores, best first."""
        wanted = {"kind": self._kind, **where}
        results = await self._memory.search(text, type="episodic", where=wanted, limit=min(1_000, max(1, limit)))
        nodes = await self._memory.store_view.nodes(results.ids)
        return [(nodes[hit.id], hit.score) for hit in results.hits if hit.id in nodes]

    def _check_may_change(self) -> None:
        """Raise DeniedError if the caller only proposes: its program would take a proposal for the change itself."""
        if self._memory.scope.propose:
            raise DeniedError("items cannot be proposed", hint="use a scope without `propose`, or the tools for facts")

    def _fields(self, item: Item) -> Json:
        now = from_ms(self._memory.store_view.now())
        return {**item.fields, "kind": self._kind, UPDATED_AT: now.isoformat()}


ROOT = "/memories"
_BLANK = "(a blank file)"
_DEPTH = 2


class MemoryFiles:
    """The files in a memory. A folder exists while it contains a file. Deleted files can be restored."""

    def __init__(self, memory: Memory) -> None:
        self._items = Items(memory, kind="memory file")

    async def view(self, path: str, lines: Sequence[int] | None = None) -> str:
        """Return the text of a file with line numbers, or the list of files in a folder.

        Args:
            lines: the first and the last line to show, from 1; -1 is the end.

        Raises:
            InvalidError: the path is outside /memories.
            NotFoundError: the path does not exist.
        """
        place = checked_path(path)
        node = await self._file(place)
        if node is None:
            return await self._folder(place)
        shown = list(enumerate(_content(node).split("\n"), start=1))
        if lines is not None and len(lines) == 2:
            last = len(shown) if lines[1] == -1 else lines[1]
            shown = shown[max(1, lines[0]) - 1 : last]
        return f"Here's the content of {place} with line numbers:\n{_numbered(shown)}"

    async def create(self, path: str, text: str) -> str:
        """Create a file. Raises ConflictError if the path exists."""
        place = checked_path(path)
        if place == ROOT or await self._under(place):
            raise ConflictError(f"{place} is a directory")
        if await self._file(place) is not None:
            raise ConflictError(f"File {place} already exists")
        await self._write(place, text)
        return f"File created successfully at: {place}"

    async def replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once.

        Raises:
            NotFoundError: the file does not exist.
            InvalidError: the old text does not occur exactly once.
        """
        place, content = await self._read(path)
        count = content.count(old) if old else 0
        if count != 1:
            where = f"did not appear verbatim in {place}" if count == 0 else f"appears {count} times; make it unique"
            raise InvalidError(f"No replacement was performed: old_str `{old}` {where}.")
        line = content[: content.index(old)].count("\n")
        await self._write(place, content := content.replace(old, new))
        around = list(enumerate(content.split("\n"), start=1))[max(0, line - 2) : line + 3]
        return f"The memory file has been edited.\n{_numbered(around)}"

    async def insert(self, path: str, line: int, text: str) -> str:
        """Insert a text after a line; line 0 is the beginning. Raises InvalidError if the line does not exist."""
        place, content = await self._read(path)
        lines = content.split("\n")
        there = len(lines) - (lines[-1] == "")
        if not 0 <= line <= there:
            raise InvalidError(f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {there}].")
        lines[line:line] = [text.removesuffix("\n")]
        await self._write(place, "\n".join(lines))
        return f"The file {place} has been edited."

    async def delete(self, path: str) -> str:
        """Delete a file, or a folder with its content. Raises NotFoundError if the path does not exist."""
        place = _inside(path)
        await self._items.delete(await self._there(place))
        return f"Successfully deleted {place}"

    async def rename(self, old: str, new: str) -> str:
        """Rename a file or a folder. Raises ConflictError if the new path exists."""
        source, target = _inside(old), _inside(new)
        if target.startswith(f"{source}/"):
            raise InvalidError(f"{source} cannot be moved into itself")
        nodes = await self._there(source)
        if await self._file(target) is not None or await self._under(target):
            raise ConflictError(f"The destination {target} already exists")
        for node in nodes:
            await self._write(target + node.attributes["path"].removeprefix(source), _content(node))
        await self._items.delete(nodes)
        return f"Successfully renamed {source} to {target}"

    async def clear(self) -> str:
        """Delete all files."""
        await self._items.delete(await self._items.all({}))
        return "All memory cleared"

    # inside

    async def _file(self, place: str) -> Node | None:
        return (await self._items.get([[place]]))[0]

    async def _under(self, folder: str) -> list[Node]:
        files = await self._items.all({})
        return [node for node in files if node.attributes["path"].startswith(f"{folder}/")]

    async def _there(self, place: str) -> list[Node]:
        file = await self._file(place)
        found = [file] if file is not None else await self._under(place)
        if not found:
            raise NotFoundError(f"The path {place} does not exist")
        return found

    async def _read(self, path: str) -> tuple[str, str]:
        place = checked_path(path)
        node = await self._file(place)
        if node is None:
            raise NotFoundError(f"The path {place} does not exist. Please provide a valid path.")
        return place, _content(node)

    async def _write(self, place: str, content: str) -> None:
        is_blank = not content.strip()
        fields = {"path": place, **({"blank": content} if is_blank else {})}
        await self._items.put([Item(name=[place], text=_BLANK if is_blank else content, fields=fields)])

    async def _folder(self, place: str) -> str:
        files = await self._under(place)
        if not files and place != ROOT:
            raise NotFoundError(f"The path {place} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {place: 0}
        for node in files:
            parts = node.attributes["path"].removeprefix(f"{place}/").split("/")
            if any(part.startswith(".") for part in parts):
                continue
            size = len(_content(node).encode())
            names = [f"{place}/{'/'.join(parts[:depth])}/" for depth in range(1, len(parts))]
            for name in (place, *names, node.attributes["path"]):
                sizes[name] = sizes.get(name, 0) + size
        depth = place.count("/") + _DEPTH
        shown = sorted(name for name in sizes if name.rstrip("/").count("/") <= depth)
        listing = "\n".join(f"{_size(sizes[name])}\t{name}" for name in shown)
        return f"Here're the files and directories up to 2 levels deep in {place}, excluding hidden items:\n{listing}"


def checked_path(path: str) -> str:
    """Return a path without a trailing slash.

    Raises:
        InvalidError: the path is not under /memories, or leads out of it.
    """
    place = path.rstrip("/") if isinstance(path, str) else ""
    if place != ROOT and not place.startswith(f"{ROOT}/"):
        raise InvalidError(f"Path must start with {ROOT}, got: {path}")
    for form in (place, unquote(place), unquote(unquote(place))):
        parts = form.removeprefix(f"{ROOT}/").replace("\\", "/").split("/") if form != ROOT else []
        if any(part in ("", ".", "..") for part in parts) or not form.isprintable():
            raise InvalidError(f"Path {path} is invalid or leads out of {ROOT}")
    return place


def _inside(path: str) -> str:
    place = checked_path(path)
    if place == ROOT:
        raise InvalidError(f"{ROOT} itself cannot be deleted or renamed")
    return place


def _content(node: Node) -> str:
    return str(node.attributes.get("blank", node.content))


def _numbered(lines: Sequence[tuple[int, str]]) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in lines)


def _size(size: int) -> str:
    return f"{size / 1024:.1f}K" if size else "0"
