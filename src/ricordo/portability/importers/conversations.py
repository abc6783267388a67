"""Conversations from files: JSON lines of role or speaker, text, time and session; and the form of the LoCoMo set.

Every message gets an id made from what it says, who said it, when and where, so importing a file again adds nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Message, Role
from ricordo.portability.records import Parsed, Reader, Said, label, moment
from ricordo.portability.sources import Material

ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}


def is_locomo(material: Material) -> bool:
    """Whether the first line is a turn or a question of the LoCoMo set."""
    row = material.first_row()
    return row.get("kind") in ("turn", "query") and "conv" in row


def is_chat(material: Material) -> bool:
    """Whether the first lines hold a text of somebody; the plainest of forms, asked last."""
    rows = [row for _, row in material.lines.rows[:20]]
    return any(isinstance(row.get(name), str) for row in rows for name in _TEXT)


def read_chat(material: Material, reader: Reader) -> Parsed:
    """JSON lines of `role` or `speaker`, `text`, `time` and `session`."""
    return _read(material, reader, _chat, format="chat")


def read_locomo(material: Material, reader: Reader) -> Parsed:
    """The turns of the LoCoMo set; its questions are passed over.

    Source: github.com/snap-research/locomo, a turn a line.
    """
    return _read(material, reader, _locomo, format="locomo")


def _read(
    material: Material, reader: Reader, turns: Callable[[Mapping[str, Any]], Iterator[Message]], *, format: str
) -> Parsed:
    refused = list(material.lines.refused)
    messages: dict[str, Said] = {}
    ids = Turns(reader)
    for number, row in material.lines.rows:
        try:
            for message in turns(row):
                identified = ids.identified(message)
                messages[identified.id or ""] = Said(message=identified, place=f"line {number}")
        except (InvalidError, ValueError, TypeError, KeyError) as error:
            refused.append(f"line {number}: {error}")
    return Parsed(format=format, messages=tuple(messages.values()), refused=tuple(refused))


_TEXT = ("text", "content", "message")


def _chat(row: Mapping[str, Any]) -> Iterator[Message]:
    text = next((row[name] for name in _TEXT if isinstance(row.get(name), str)), None)
    if text is None or not text.strip():
        raise InvalidError("no text", hint="expected a field text, content or message")
    role = str(row.get("role") or "user").lower()
    if role not in ROLES:
        raise InvalidError(f"role {role!r} is unknown")
    time = next(
        (row[name] for name in ("time", "at", "timestamp", "date", "created_at") if row.get(name) is not None), None
    )
    yield Message(
        text=text,
        role=ROLES[role],
        speaker=label(row.get("speaker") or row.get("name")),
        session=label(row.get("session") or row.get("session_id") or row.get("conversation_id")),
        at=_time(time),
        id=label(row.get("id")),
        origin="import",
    )


def _time(given: object) -> datetime | str | None:
    """Text is for the reader's own zone to understand, a number a Unix time."""
    return given if isinstance(given, str) else moment(given, name="time")


def _locomo(row: Mapping[str, Any]) -> Iterator[Message]:
    if row.get("kind") != "turn":
        return
    caption = f" [shows a picture: {row['caption']}]" if row.get("caption") else ""
    said_at = datetime.strptime(f"{row['date']} +0000", "%I:%M %p on %d %B, %Y %z")
    yield Message(
        text=f"{row.get('text') or ''}{caption}".strip(),
        speaker=label(row["speaker"]),
        session=f"{row['conv']}/{row['session']}",
        at=said_at,
        id=f"{row['conv']}/{row['id']}",
        origin="import",
    )


class Turns:
    """Gives messages their ids: a second one exactly alike is told apart by counting."""

    def __init__(self, reader: Reader) -> None:
        self._whose = f"{reader.owner}/{reader.chat}"
        self._counts: Counter[str] = Counter()

    def identified(self, message: Message) -> Message:
        """The message with an id of its own, made from what it says, who said it, when and where."""
        told = [self._whose, message.id, message.session, message.speaker, message.role, str(message.at), message.text]
        plain = json.dumps(told)
        count = 0 if message.id is not None else self._counts[plain]
        self._counts[plain] += 1
        digest = blake2b(json.dumps([*told, count]).encode(), digest_size=16).hexdigest()
        return replace(message, id=f"import-{digest}")
