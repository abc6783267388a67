"""Every format that can be imported, by name, and how to recognize its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ricordo.errors import InvalidError
from ricordo.portability import IMPORTED, markdown
from ricordo.portability.documents import MAILBOXES, is_document
from ricordo.portability.importers import agents, chats, complete, conversations, libraries, memories
from ricordo.portability.records import MALFORMED, NOT_IMPORTED, Destination, Records
from ricordo.portability.sources import Source
from ricordo.text.sentences import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An import format: `about` describes it to the user, `fits` recognizes its content."""

    name: str
    about: str
    fits: Callable[[Source], bool]
    read: Callable[[Source, Destination], Records]

    def is_of(self, source: Source) -> bool:
        """Return whether the content is recognized. Content that breaks the rules of every format is not.

        Raises:
            InvalidError: the source cannot be read.
        """
        try:
            return self.fits(source)
        except InvalidError:
            raise
        except MALFORMED:
            return False


FORMATS = tuple(
    Format(name=name, about=about, fits=fits, read=read)
    for name, about, fits, read in (
        (complete.NAME, "Ricordo's complete export", complete.fits, complete.read),
        ("chatgpt", "ChatGPT's export", conversations.is_chatgpt, conversations.read_chatgpt),
        ("claude", "Claude's export", conversations.is_claude, conversations.read_claude),
        (memories.JSONL, "memories.jsonl, archive.jsonl and people.jsonl", memories.is_jsonl, memories.read_jsonl),
        (memories.SQLITE, "a SQLite table of memories", memories.is_sqlite, memories.read_sqlite),
        (libraries.MCP, "the MCP reference server's knowledge graph", libraries.is_mcp, libraries.read_mcp),
        (libraries.MEM0, "mem0's memories and history", libraries.is_mem0, libraries.read_mem0),
        (libraries.LANGGRAPH, "a LangGraph store", libraries.is_langgraph, libraries.read_langgraph),
        (libraries.ZEP, "Zep's facts and messages", libraries.is_zep, libraries.read_zep),
        (libraries.LETTA, "a Letta agent file", libraries.is_letta, libraries.read_letta),
        *((name, f"a session log of {name}", *agents.READERS[name]) for name in agents.CLIENTS),
        ("telegram", "Telegram's export", chats.is_telegram, chats.read_telegram),
        ("slack", "Slack's export", chats.is_slack, chats.read_slack),
        ("whatsapp", "an exported WhatsApp chat", chats.is_whatsapp_archive, chats.read_whatsapp),
        ("locomo", "the LoCoMo set", conversations.is_locomo, conversations.read_locomo),
        ("chat", "JSON lines of role, text, time and session", conversations.is_chat, conversations.read_chat),
        (markdown.NAME, "markdown notes such as MEMORY.md", markdown.fits, markdown.read),
    )
)
"""The most specific formats come first."""

_BUNDLED = ("chatgpt", "claude", "telegram", "slack", "whatsapp")
"""Formats of exports that people keep side by side in one folder, each an archive, a folder or a text file."""


def exports_in(source: Source) -> list[Path]:
    """Return the entries of a folder that holds separate chat exports; [] if the folder is a single import."""
    if not source.is_folder:
        return []
    inside = sorted(each for each in source.path.iterdir() if not each.name.startswith((".", "__")))
    inside = [each for each in inside if not each.is_symlink()]
    exports = [each for each in inside if _is_bundled(each)]
    own = [each for each in inside if each.suffix.lower() in (".json", ".jsonl", ".md") and each.is_file()]
    is_whole = [each.name for each in exports] == ["_chat.txt"]  # with its pictures, as unpacked
    is_many = len(exports) > 1 or (exports and not is_whole and not any(map(_fits, own)))
    is_many = is_many or (any(is_document(each, None) for each in inside) and _fits(source.path) is None)
    return inside if is_many else []


def _is_bundled(path: Path) -> bool:
    """Return whether an entry of a folder is a complete chat export or a mailbox."""
    if path.suffix.lower() in MAILBOXES:
        return path.is_file()
    if not (path.is_dir() or path.suffix.lower() in (".zip", ".txt")):
        return False
    found = _fits(path)
    if found and path.is_dir() and found.name == "slack":  # a channel's own folder is only a part of an export
        return any(each.is_dir() for each in path.iterdir())
    return found is not None and found.name in _BUNDLED


def _fits(path: Path) -> Format | None:
    """Return the first format that fits the content; None if none fits or the content cannot be read."""
    try:
        source = Source(path)
        return next((each for each in FORMATS if each.is_of(source)), None)
    except (InvalidError, OSError):
        return None


UNKNOWN_FORMAT = (
    "`ricordo document-add` remembers a text or a document; --format names a format, see `ricordo import --help`"
)


def format_of(source: Source, name: str | None) -> Format:
    """Return the format with a name or, without a name, the format that fits the content.

    Raises:
        InvalidError: no format has this name, no format fits, or the file is incomplete.
    """
    found = next((each for each in FORMATS if (each.is_of(source) if name is None else each.name == name)), None)
    if found is None and name is None:
        source.check_complete()
        if not (source.names if source.is_folder or source.is_archive else source.own_text.strip()):
            kind = "holds no files" if source.is_folder or source.is_archive else "is empty"
            raise InvalidError(f"{source.path} {kind}", hint="check that the export was complete")
        raise InvalidError(f"the format of {source.path} is not recognized", hint=UNKNOWN_FORMAT)
    if found is None:
        raise InvalidError(f"format: {name!r} is unknown", hint=f"choose one of {', '.join(IMPORTED)}")
    return found


def _other_export(source: Source, name: str) -> str:
    """Return what to do with a file in a folder or archive that is no part of the export in it."""
    if source.is_archive:
        is_text = name.lower().endswith((".json", ".txt", ".zip"))
        hint = ": no part of this export; unpack the archive to import it by itself" if is_text else ""
        return f"{NOT_IMPORTED}{name}{hint}"
    other = _fits(source.path / name)
    return f"{NOT_IMPORTED}{name}{f': {other.about}; import it by itself' if other else ''}"


def parse(source: Source, format: Format, destination: Destination) -> Records:
    """Read a source in a format.

    Raises:
        InvalidError: the source cannot be read, or contains nothing to remember.
    """
    try:
        records = format.read(source, destination)
    except InvalidError:
        raise
    except MALFORMED as error:
        hint = "check the file, or choose another format with --format"
        raise InvalidError(f"{source.path} cannot be read as {format.about}: it is malformed", hint=hint) from error
    if source.watched and not (source.is_folder and records.facts):
        notes = plural(len(source.watched), "note")
        told = f"{source.path}: nothing was imported: `watch` already keeps {notes} in step"
        raise InvalidError(told, hint="to have their lines as facts instead, remove what `documents` lists of it")
    if not (records.messages or records.facts or records.people or records.refused):
        source.check_complete()
    records.refused[:] = [
        _other_export(source, name) if (name := each.removeprefix(NOT_IMPORTED)) != each else each
        for each in records.refused
    ]
    records.refused[:0] = [*source.notes, *source.damaged]
    if not (records.messages or records.facts or records.people or records.refused):
        raise InvalidError(f"{source.path} contains no messages and no facts", hint=f"it was read as {format.about}")
    return records
