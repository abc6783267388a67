"""Conversations exported from Claude: `conversations.json`, alone, in its folder, or in the ZIP file as it came.

Source: support.anthropic.com, "How can I export my Claude data", and the form of its file: a list of conversations with
`uuid`, `name`, `created_at` and `chat_messages`, each with `uuid`, `sender` (human or assistant), `text`, `created_at`
and, in later exports, `content`: blocks of `type` text, thinking, tool_use or tool_result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Message
from ricordo.portability.importers.chatgpt import conversations
from ricordo.portability.importers.conversations import ROLES
from ricordo.portability.records import Parsed, Reader, Said, label, moment
from ricordo.portability.sources import Material

NAME = "claude"

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether one of the conversations has such messages."""
    return any(isinstance(row.get("chat_messages"), list) for _, row in conversations(material))


def read(material: Material, reader: Reader) -> Parsed:
    """What was said in every conversation, without thoughts and the traffic with tools."""
    messages: dict[str, Said] = {}
    refused: list[str] = []
    for place, row in conversations(material):
        turns = row.get("chat_messages")
        for number, turn in enumerate(turns if isinstance(turns, list) else (), start=1):
            where = f"{place}, message {number}"
            try:
                message = _message(turn, row, place, reader)
            except (InvalidError, ValueError, TypeError, AttributeError) as error:
                refused.append(f"{where}: {error}")
                continue
            if message is not None:
                messages[message.id or ""] = Said(message=message, place=where)
    return Parsed(format=NAME, messages=tuple(messages.values()), refused=tuple(refused))


def _message(turn: Row, row: Row, place: str, reader: Reader) -> Message | None:
    role = ROLES.get(str(turn.get("sender")).lower())
    if role is None:
        raise InvalidError(f"sender {turn.get('sender')!r} is unknown")
    text = _text(turn)
    if not text:
        return None
    session = label(row.get("uuid")) or place
    return Message(
        text=text,
        role=role,
        session=session,
        at=moment(turn.get("created_at") or row.get("created_at"), name="created_at"),
        id=reader.id_of(NAME, session, turn.get("uuid"), text),
        origin="import",
        attributes={"message_id": label(turn.get("uuid")), "title": str(row.get("name") or "")[:500]},
    )


def _text(turn: Row) -> str:
    """Its text blocks where it has any, else its text, and the names of what was attached."""
    blocks = turn.get("content")
    texts = [
        block["text"]
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    said = "\n".join(each for each in texts if each.strip()) or str(turn.get("text") or "")
    names = [
        str(each.get("file_name"))
        for each in (turn.get("attachments") or [])
        if isinstance(each, dict) and each.get("file_name")
    ]
    return "\n".join([said.strip(), *(f"[attached: {name}]" for name in names)]).strip()
