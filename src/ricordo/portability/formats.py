"""Every format that can be brought in, by name, and how one is told from its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ricordo.errors import InvalidError
from ricordo.portability.format_names import IMPORTED
from ricordo.portability.importers import (
    chatgpt,
    claude,
    complete,
    conversations,
    langgraph_store,
    markdown,
    mcp_graph,
    mem0,
    memories_jsonl,
    memories_sqlite,
)
from ricordo.portability.records import Parsed, Reader
from ricordo.portability.sources import Material


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What can be brought in: `about` says what it is to a person, `fits` tells it from its content."""

    name: str
    about: str
    fits: Callable[[Material], bool]
    read: Callable[[Material, Reader], Parsed]


FORMATS: tuple[Format, ...] = (
    Format(name=complete.NAME, about="everything that Ricordo exports", fits=complete.fits, read=complete.read),
    Format(name=chatgpt.NAME, about="ChatGPT's export", fits=chatgpt.fits, read=chatgpt.read),
    Format(name=claude.NAME, about="Claude's export", fits=claude.fits, read=claude.read),
    Format(
        name=memories_jsonl.NAME,
        about="memories.jsonl, archive.jsonl and people.jsonl",
        fits=memories_jsonl.fits,
        read=memories_jsonl.read,
    ),
    Format(
        name=memories_sqlite.NAME,
        about="a SQLite table of memories",
        fits=memories_sqlite.fits,
        read=memories_sqlite.read,
    ),
    Format(
        name=mcp_graph.NAME,
        about="the MCP reference server's knowledge graph",
        fits=mcp_graph.fits,
        read=mcp_graph.read,
    ),
    Format(name=mem0.NAME, about="mem0's memories and history", fits=mem0.fits, read=mem0.read),
    Format(name=langgraph_store.NAME, about="a LangGraph store", fits=langgraph_store.fits, read=langgraph_store.read),
    Format(name="locomo", about="the LoCoMo set", fits=conversations.is_locomo, read=conversations.read_locomo),
    Format(
        name="chat",
        about="JSON lines of role or speaker, text, time and session",
        fits=conversations.is_chat,
        read=conversations.read_chat,
    ),
    Format(name=markdown.NAME, about="MEMORY.md and the like", fits=markdown.fits, read=markdown.read),
)
"""Those of the most telling marks first."""


def chosen_format(material: Material, format: str | None) -> Format:
    """The format of a name; the one that the content is of when there is None.

    Raises:
        InvalidError: there is no such format, or the content is of none that is known.
    """
    return _named(format) if format is not None else _told(material)


def parse(material: Material, chosen: Format, reader: Reader) -> Parsed:
    """Read what somebody handed us.

    Raises:
        InvalidError: it cannot be read, or holds nothing to remember.
    """
    parsed = chosen.read(material, reader)
    parsed = replace(parsed, refused=(*material.notes, *parsed.refused))
    if not (parsed.messages or parsed.facts or parsed.people or parsed.refused):
        raise InvalidError(f"{material.path} holds no messages and no facts", hint=f"it was read as {chosen.about}")
    return parsed


def _named(name: str) -> Format:
    found = next((each for each in FORMATS if each.name == name), None)
    if found is None:
        raise InvalidError(f"format: {name!r} is unknown", hint=f"choose one of {', '.join(IMPORTED)}")
    return found


def _told(material: Material) -> Format:
    found = next((each for each in FORMATS if each.fits(material)), None)
    if found is None:
        raise InvalidError(
            f"{material.path} is of no format that is known", hint=f"--format says which: {', '.join(IMPORTED)}"
        )
    return found
