"""Conversations from files: JSON lines of role or speaker, text, time and session; and the form of the LoCoMo set.

Every message gets an id made from what it says, who said it, when and where, so importing a file again adds nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from ricordo.errors import InvalidError
from ricordo.model import ImportReport, Message, Role
from ricordo.ports import Progress

Format = Literal["chat", "locomo"]

_BATCH = 1_000
_MAX_BYTES = 2_000_000_000
_SHOWN_REFUSALS = 20
_ROLES: Mapping[str, Role] = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "system": "system", "tool": "tool", "function": "tool",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The messages of a file, and why some of its lines are none."""

    messages: tuple[Message, ...]
    refused: tuple[str, ...]


async def bring_in(
    path: Path,
    *,
    format: str | None,
    owner: str,
    add_many: Callable[[Sequence[Message]], Awaitable[list[str]]],
    known: Callable[[Sequence[str]], Awaitable[int]],
    progress: Progress | None,
    dry_run: bool,
) -> ImportReport:
    """Record the messages of a file in batches of 1,000, each a commit: an interrupted import goes on where it was.

    Args:
        owner: whose memory it goes to; ids of two owners never meet.
        known: counts which of some ids are stored already.

    Raises:
        InvalidError: the file cannot be read or is of no known format.
    """
    parsed = await asyncio.to_thread(parse, path, format=format, owner=owner)
    already = 0
    for start in range(0, len(parsed.messages), _BATCH):
        batch = parsed.messages[start : start + _BATCH]
        already += await known([message.id or "" for message in batch])
        if not dry_run:
            await add_many(batch)
        if progress is not None:
            progress(start + len(batch), len(parsed.messages))
    return ImportReport(
        read=len(parsed.messages),
        added=0 if dry_run else len(parsed.messages) - already,
        known=already,
        refused=parsed.refused[:_SHOWN_REFUSALS],
        refused_count=len(parsed.refused),
        sessions=len({message.session for message in parsed.messages if message.session}),
    )


def parse(path: Path, *, format: str | None, owner: str) -> Parsed:
    """Read a whole file.

    Raises:
        InvalidError: it cannot be read, is larger than 2 GB, or is of no known format.
    """
    rows, refused = _rows(path)
    if not rows:
        raise InvalidError(
            f"{path} holds no messages", hint="one JSON object a line: role or speaker, text, time, session"
        )
    reader = _READERS.get(format or told_from(rows[0][1]))
    if reader is None:
        raise InvalidError(f"format: {format!r} is unknown", hint=f"choose one of {', '.join(_READERS)}")
    messages: dict[str, Message] = {}
    for number, row in rows:
        try:
            for message in reader(row):
                identified = _identified(message, owner, messages)
                messages[identified.id or ""] = identified
        except (InvalidError, ValueError, TypeError, KeyError) as error:
            refused.append(f"line {number}: {error}")
    return Parsed(messages=tuple(messages.values()), refused=tuple(refused))


def _rows(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidError(f"{path} is larger than 2 GB", hint="split it")
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidError(f"{path} cannot be read: {error.strerror}") from error
    rows, refused = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            refused.append(f"line {number}: not JSON: {error}")
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        else:
            refused.append(f"line {number}: not a JSON object")
    return rows, refused


def told_from(row: Mapping[str, Any]) -> Format:
    """The format of a file, from its first line."""
    return "locomo" if row.get("kind") in ("turn", "query") and "conv" in row else "chat"


def _chat(row: Mapping[str, Any]) -> Iterator[Message]:
    text = next((row[name] for name in ("text", "content", "message") if isinstance(row.get(name), str)), None)
    if text is None or not text.strip():
        raise InvalidError("no text", hint="expected a field text, content or message")
    role = str(row.get("role") or "user").lower()
    if role not in _ROLES:
        raise InvalidError(f"role {role!r} is unknown")
    time = next(
        (row[name] for name in ("time", "at", "timestamp", "date", "created_at") if row.get(name) is not None),
        None,
    )
    yield Message(
        text=text,
        role=_ROLES[role],
        speaker=_label(row.get("speaker") or row.get("name")),
        session=_label(row.get("session") or row.get("session_id") or row.get("conversation_id")),
        at=_time(time),
        id=_label(row.get("id")),
        origin="import",
    )


def _time(given: object) -> datetime | str | None:
    """ISO text, or a Unix time in seconds or milliseconds as many exports have."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidError(f"time {given!r} is neither text nor a number")
    return datetime.fromtimestamp(given / 1_000 if given > 1e11 else given, UTC)


def _locomo(row: Mapping[str, Any]) -> Iterator[Message]:
    if row.get("kind") != "turn":
        return
    caption = f" [shows a picture: {row['caption']}]" if row.get("caption") else ""
    moment = datetime.strptime(f"{row['date']} +0000", "%I:%M %p on %d %B, %Y %z")
    yield Message(
        text=f"{row.get('text') or ''}{caption}".strip(),
        speaker=_label(row["speaker"]),
        session=f"{row['conv']}/{row['session']}",
        at=moment,
        id=f"{row['conv']}/{row['id']}",
        origin="import",
    )


def _label(given: object) -> str | None:
    return None if given is None else str(given)


def _identified(message: Message, owner: str, earlier: Mapping[str, Message]) -> Message:
    """The message with an id of its own; a second one exactly alike is told apart by counting."""
    told = [owner, message.id, message.session, message.speaker, message.role, str(message.at), message.text]
    for count in range(1_000):
        digest = blake2b(json.dumps([*told, count]).encode(), digest_size=16).hexdigest()
        if digest not in earlier or message.id is not None:
            return replace(message, id=f"import-{digest}")
    raise InvalidError("the same message a thousand times")


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Message]]] = {"chat": _chat, "locomo": _locomo}
