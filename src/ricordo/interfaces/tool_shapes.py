"""Tools that give a method of `Memory` the shape a model or a client expects. They decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ricordo.interfaces.quarantine_filter import withheld
from ricordo.memory import Memory
from ricordo.model import Category, Fact, Node, NodeType, Origin

_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A search result as connectors want it."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundList:
    """All of them, best first."""

    results: tuple[Found, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole memory as connectors want it."""

    id: str
    title: str
    text: str
    url: str
    metadata: Mapping[str, str]


async def remember_fact(
    memory: Memory,
    content: str | Sequence[str],
    *,
    about: Sequence[str] = (),
    category: Category | None = None,
    type: NodeType = "semantic",
    tags: Sequence[str] = (),
    expires: datetime | str | None = None,
    origin: Origin = "agent",
) -> Sequence[Node]:
    """One fact or several, which share the other fields."""
    texts = [content] if isinstance(content, str) else content
    facts = [
        Fact(content=text, type=type, category=category, about=about, tags=tags, expires=expires, origin=origin)
        for text in texts
    ]
    return await memory.remember_many(facts)


async def search(memory: Memory, query: str) -> FoundList:
    """Ids and titles of what answers a question."""
    results = await memory.search(query)
    return FoundList(
        results=tuple(Found(id=hit.id, title=_title(hit.content), url=_url(hit.id)) for hit in results.hits)
    )


async def fetch(memory: Memory, id: str) -> Document:
    """A memory's whole text."""
    node = withheld(await memory.get(id))
    known = {
        "type": node.type,
        "category": node.category,
        "event_time": node.event_time.isoformat(),
        "origin": node.origin,
        "about": ", ".join(node.about),
    }
    return Document(
        id=node.id,
        title=_title(node.content),
        text=node.content,
        url=_url(node.id),
        metadata={name: value for name, value in known.items() if value},
    )


def _title(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1] + "…"


def _url(id: str) -> str:
    return f"ricordo://memory/{id}"


SHAPED: Mapping[str, Callable[..., Any]] = {"remember_fact": remember_fact, "search": search, "fetch": fetch}
"""What a tool calls in place of the method it is named for."""
