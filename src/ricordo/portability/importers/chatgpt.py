"""Conversations exported from ChatGPT: `conversations.json`, alone, in its folder, or in the ZIP file as it came.

Source: help.openai.com, "How do I export my ChatGPT history", and the form of its file, as documented at
difegam.github.io/chatgpt-to-markdown ("Data Models"): a list of conversations, each a tree `mapping` of nodes with
`parent` and `message`; `current_node` is the leaf of the branch that is shown. Large accounts get
`conversations-000.json` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Message
from ricordo.portability.importers.conversations import ROLES
from ricordo.portability.records import Parsed, Reader, Said, label, moment, number_in, object_of
from ricordo.portability.sources import Material

NAME = "chatgpt"

_FILE = re.compile(r"conversations(-\d+)?\.json\Z")
_SPOKEN = frozenset(("text", "multimodal_text", "code"))
_TO_EVERYBODY = frozenset((None, "all"))

Row = Mapping[str, Any]


def fits(material: Material) -> bool:
    """Whether one of the conversations is such a tree."""
    return any(isinstance(row.get("mapping"), dict) for _, row in conversations(material))


def conversations(material: Material) -> Iterator[tuple[str, Row]]:
    """(place, conversation) of every file of an export; Claude's are called the same."""
    for name, document in material.json_file(lambda name: _FILE.match(name) is not None):
        listed = document.get("conversations", [document]) if isinstance(document, dict) else document
        for number, row in enumerate(listed if isinstance(listed, list) else (), start=1):
            if isinstance(row, dict):
                yield f"{name} conversation {number}", row


def read(material: Material, reader: Reader) -> Parsed:
    """The branch that is shown of every conversation, without what the system and its tools said among themselves."""
    messages: dict[str, Said] = {}
    refused: list[str] = []
    for place, row in conversations(material):
        session = label(row.get("conversation_id") or row.get("id")) or place
        last = row.get("create_time")
        for node in _branch(row):
            try:
                message = _message(node, row, session, last, reader)
            except (InvalidError, ValueError, TypeError) as error:
                refused.append(f"{place}, message {node.get('id')}: {error}")
                continue
            if message is not None:
                messages[message.id or ""] = Said(message=message, place=f"{place}, message {node.get('id')}")
                last = object_of(node.get("message")).get("create_time") or last
    return Parsed(format=NAME, messages=tuple(messages.values()), refused=tuple(refused))


def _branch(row: Row) -> list[Row]:
    """From the root to the current leaf; the newest leaf where none is named. A ring of parents is left at its second
    turn.
    """
    mapping = object_of(row.get("mapping"))
    nodes = {str(key): {"id": key, **each} for key, each in mapping.items() if isinstance(each, dict)}
    place = label(row.get("current_node"))
    if place not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        place = max(leaves, key=lambda key: _time(nodes[key]), default=None)
    branch: dict[str, Row] = {}
    while place in nodes and place not in branch:
        branch[place] = nodes[place]
        place = label(nodes[place].get("parent"))
    return list(branch.values())[::-1]


def _time(node: Row) -> float:
    return number_in(object_of(node.get("message")).get("create_time"), 0.0, 1e12, otherwise=0.0)


def _message(node: Row, row: Row, session: str, last: object, reader: Reader) -> Message | None:
    """A turn, or None where nothing was said to anybody."""
    said = object_of(node.get("message"))
    role = ROLES.get(str(object_of(said.get("author")).get("role")))
    content = object_of(said.get("content"))
    is_hidden = said.get("weight") == 0 or object_of(said.get("metadata")).get("is_visually_hidden_from_conversation")
    if role not in ("user", "assistant") or is_hidden or content.get("content_type") not in _SPOKEN:
        return None
    if said.get("recipient") not in _TO_EVERYBODY:
        return None
    text = _text(content)
    if not text:
        return None
    identity = label(said.get("id") or node.get("id"))
    return Message(
        text=text,
        role=role,
        session=session,
        at=moment(said.get("create_time") or last, name="create_time"),
        id=reader.id_of(NAME, session, identity, text),
        origin="import",
        attributes={"message_id": identity, "title": str(row.get("title") or "")[:500]},
    )


def _text(content: Row) -> str:
    """Its texts and transcripts; of pictures and files only that there was one."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "").strip()
    said = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            said.append(part["text"])
        elif isinstance(part, dict) and "image" in str(part.get("content_type")):
            said.append("[a picture]")
    return "\n".join(each for each in said if each.strip()).strip()
