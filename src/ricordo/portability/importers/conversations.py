"""Exported conversations: JSON lines of any origin, the LoCoMo set, ChatGPT's export and Claude's.

ChatGPT and Claude export `conversations.json`; it is read alone, in its folder, or in the ZIP file as downloaded.

Source for ChatGPT: help.openai.com, "How do I export my ChatGPT history", and the format as documented at
difegam.github.io/chatgpt-to-markdown ("Data Models"): a list of conversations, each a tree `mapping` of nodes with
`parent` and `message`; `current_node` is the leaf of the branch that is shown. Large accounts get
`conversations-000.json` and so on.

Source for Claude: support.anthropic.com, "How can I export my Claude data", and the format of the file: a list of
conversations with `uuid`, `name`, `created_at` and `chat_messages`, each with `uuid`, `sender` (human or assistant),
`text`, `created_at` and, in later exports, `content`: blocks of `type` text, thinking, tool_use or tool_result.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import PurePosixPath

from ricordo.errors import InvalidError
from ricordo.model import Message, Role
from ricordo.portability.records import (
    NOT_IMPORTED,
    Destination,
    Records,
    author,
    clamped,
    label,
    object_of,
    parse_time,
    vocabulary,
)
from ricordo.portability.sources import Placed, Row, Source, objects_in

_ROLES: Mapping[str, Role] = vocabulary()["roles"]

# JSON lines

_TEXTS = ("text", "content", "message")
_TIMES = ("time", "at", "timestamp", "date", "created_at")
_AUTHORS = ("speaker", "name", "author", "sender", "from", "username", "user")


def is_locomo(source: Source) -> bool:
    """Return whether the first line is a turn or a question of the LoCoMo data set."""
    row = next(iter(source.first_rows), {})
    return row.get("kind") in ("turn", "query") and "conv" in row


def is_chat(source: Source) -> bool:
    """Return whether one of the first lines has a text field. The format is unspecific, so it is tried late."""
    return any(isinstance(row.get(name), str) for row in source.first_rows for name in _TEXTS)


def read_chat(source: Source, destination: Destination) -> Records:
    """Read JSON lines of `role` or `speaker`, `text`, `time` and `session`.

    A file without any author holds the owner's own texts. Otherwise a message without one is an unknown person's.
    """
    names_authors = any(_names_author(row) for _, row in source.lines.rows)
    return _read_lines(source, destination, partial(_chat, names_authors=names_authors), format="chat")


def _names_author(row: Row) -> bool:
    return row.get("role") is not None or any(name in row for name in _AUTHORS)


def _author(row: Row) -> str:
    """Return who wrote a message without a role: a name, or the name or id of an object."""
    given = [row.get(name) for name in _AUTHORS]
    return author(*(each if isinstance(each, str | int) else _name_in(object_of(each)) for each in given))


def _name_in(person: Row) -> object:
    return next((person[name] for name in ("name", "username", "id") if person.get(name)), None)


def read_locomo(source: Source, destination: Destination) -> Records:
    """Read the turns of the LoCoMo data set; its questions are skipped.

    Source: github.com/snap-research/locomo, one turn per line.
    """
    return _read_lines(source, destination, _locomo, format="locomo")


def _read_lines(
    source: Source, destination: Destination, turns: Callable[[Row], Iterator[Message]], *, format: str
) -> Records:
    records = Records(format=format, destination=destination)
    counts: Counter[str] = Counter()

    def read(place: str, row: Row) -> None:
        for message in turns(row):
            records.message(place, _identified(message, destination, counts))

    return records.read_source(source, (), read)


def _chat(row: Row, *, names_authors: bool) -> Iterator[Message]:
    text = next((row[name] for name in _TEXTS if isinstance(row.get(name), str)), None)
    if text is None or not text.strip():
        raise InvalidError("no text", hint="expected a field text, content or message")
    role = str(row.get("role") or "user").lower()
    if role not in _ROLES:
        raise InvalidError(f"role {role!r} is unknown")
    time = next((row[name] for name in _TIMES if row.get(name) is not None), None)
    is_unsigned = row.get("role") is None and names_authors
    yield Message(
        text=text,
        role=_ROLES[role],
        speaker=_author(row) if is_unsigned else label(row.get("speaker") or row.get("name")),
        session=label(row.get("session") or row.get("session_id") or row.get("conversation_id")),
        # A text is read in the owner's time zone, a number as a Unix time.
        at=time if isinstance(time, str) else parse_time(time, name="time"),
        id=label(row.get("id")),
        origin="import",
    )


def _locomo(row: Row) -> Iterator[Message]:
    if row.get("kind") != "turn":
        return
    caption = f" [shows a picture: {row['caption']}]" if row.get("caption") else ""
    yield Message(
        text=f"{row.get('text') or ''}{caption}".strip(),
        speaker=author(row.get("speaker")),
        session=f"{row['conv']}/{row['session']}",
        at=datetime.strptime(f"{row['date']} +0000", "%I:%M %p on %d %B, %Y %z"),
        id=f"{row['conv']}/{row['id']}",
        origin="import",
    )


def _identified(message: Message, destination: Destination, counts: Counter[str]) -> Message:
    """Give a message an id derived from its text, speaker, time and session, so that a second import adds nothing.

    Identical messages are numbered.
    """
    whose = f"{destination.owner}/{destination.chat}"
    key = [whose, message.id, message.session, message.speaker, message.role, str(message.at), message.text]
    text = json.dumps(key)
    count = 0 if message.id is not None else counts[text]
    counts[text] += 1
    digest = blake2b(json.dumps([*key, count]).encode(), digest_size=16).hexdigest()
    return replace(message, id=f"import-{digest}")


# ChatGPT and Claude

_FILE = re.compile(r"conversations(-\d+)?\.json\Z")
_SPOKEN = frozenset(("text", "multimodal_text", "code"))
_CALL = re.compile(r"\s*(?:[a-z_]+\(.*\)|\{.*\})\s*\Z", re.DOTALL)  # a tool call, such as search("...")
_NAMED_MOST = 20
_TO_EVERYBODY = frozenset((None, "all"))


def _conversations(source: Source) -> Iterator[tuple[str, Row]]:
    """Yield (place, conversation) from every file of an export; both programs use the same file names."""
    for name, document in source.json_file(lambda name: _FILE.match(name) is not None):
        listed = document.get("conversations", [document]) if isinstance(document, dict) else document
        for number, row in enumerate(listed if isinstance(listed, list) else (), start=1):
            if isinstance(row, dict):
                yield f"{name} conversation {number}", row


def is_chatgpt(source: Source) -> bool:
    """Return whether a conversation has a tree `mapping`."""
    return any(isinstance(row.get("mapping"), dict) for _, row in _conversations(source))


def read_chatgpt(source: Source, destination: Destination) -> Records:
    """Read the visible branch of every conversation, without system and tool messages."""
    records = Records(format="chatgpt", destination=destination)
    for place, row in _conversations(source):
        session = row.get("conversation_id") or row.get("id")
        reading = _Reading(records, session=session, title=row.get("title"), last=row.get("create_time"))
        nodes = ((f"{place}, message {node.get('id')}", node) for node in _branch(row))
        reading.read(place, nodes, _chatgpt_turn)
        told = (object_of(node.get("message")) for node in object_of(row.get("mapping")).values() if node)
        records.read(((f"{place}, its instructions", each) for each in told), partial(_chatgpt_facts, records))
    _name_others(records, source, _SHOWN_ELSEWHERE)
    return records


_SHOWN_ELSEWHERE = ("chat.html", "user.json", "shared_conversations.json", "message_feedback.json")
_SAVED = re.compile(r"^\s*(?:\d+\.\s*)?(?:\[[^\]]*\]\.?\s*)?(?=\S)")


def _name_others(records: Records, source: Source, empty: tuple[str, ...]) -> None:
    """Report the files of an export that were not read, except those that hold no memories."""
    if source.is_folder or source.is_archive:
        known = ("conversations", *empty, ".")
        names = [name for name in source.names if not PurePosixPath(name).name.startswith(known)]
        records.refused += [f"{NOT_IMPORTED}{name}" for name in names[:_NAMED_MOST]]
        if len(names) > _NAMED_MOST:
            records.refused.append(f"{NOT_IMPORTED}{len(names) - _NAMED_MOST} more files")


def _chatgpt_facts(records: Records, where: str, said: Row) -> None:
    """Read what users told ChatGPT about themselves and about the answers they want, and what it has saved.

    Source: the content types `user_editable_context` (`user_profile`, `user_instructions`) and
    `model_editable_context` (`model_set_context`), and messages to the tool `bio`, as found in exports.
    """
    content, at = object_of(said.get("content")), parse_time(said.get("create_time"), name="its time")
    for name, kind in (("user_profile", "semantic"), ("user_instructions", "procedural")):
        for line in str(content.get(name) or "").splitlines():
            if line.strip() and not line.startswith(("```", "The user provided")):
                records.fact(where, line.strip(), name, type=kind, tags=("custom instructions",), at=at)
    saved = str(content.get("model_set_context") or "")
    if said.get("recipient") == "bio" and object_of(said.get("author")).get("role") == "assistant":
        saved = _chatgpt_text(content)
    for line in saved.splitlines():
        if text := _SAVED.sub("", line).strip():
            records.fact(where, text, "saved", tags=("saved memory",), at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A turn of an exported conversation; `at` is its time as written."""

    role: Role
    text: str
    id: str | None
    at: object


@dataclass(slots=True)
class _Reading:
    """Reads one exported conversation. A turn without a time gets `last`, the time of the turn before it."""

    records: Records
    session: object
    title: object
    last: object

    def read(self, place: str, turns: Iterable[Placed], parse: Callable[[Row], _Turn | None]) -> None:
        session, title = label(self.session) or place, " ".join(str(self.title or "").split())[:500]

        def read(where: str, row: Row) -> None:
            turn = parse(row)
            if turn is None or not turn.text:
                return
            message = Message(
                text=turn.text,
                role=turn.role,
                session=session,
                at=parse_time(turn.at or self.last, name="its time"),
                id=self.records.destination.id_of(self.records.format, session, turn.id, turn.text),
                origin="import",
                attributes={"message_id": turn.id, **({"title": title} if title else {})},
            )
            self.records.message(where, message)
            self.last = turn.at or self.last

        self.records.read(turns, read)


def _branch(row: Row) -> list[Row]:
    """Return the nodes from the root to the current leaf, or to the newest leaf. A cycle of parents is cut."""
    mapping = object_of(row.get("mapping"))
    nodes = {str(key): {"id": key, **each} for key, each in mapping.items() if isinstance(each, dict)}
    place = label(row.get("current_node"))
    if place not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        place = max(leaves, key=lambda key: _created_at(nodes[key]), default=None)
    branch: dict[str, Row] = {}
    while place in nodes and place not in branch:
        branch[place] = nodes[place]
        place = label(nodes[place].get("parent"))
    return list(branch.values())[::-1]


def _created_at(node: Row) -> float:
    return clamped(object_of(node.get("message")).get("create_time"), 0.0, 1e12, otherwise=0.0)


def _chatgpt_turn(node: Row) -> _Turn | None:
    """Return a turn, or None for a node that is not part of the visible conversation."""
    said = object_of(node.get("message"))
    role = _ROLES.get(str(object_of(said.get("author")).get("role")))
    content = object_of(said.get("content"))
    is_hidden = said.get("weight") == 0 or object_of(said.get("metadata")).get("is_visually_hidden_from_conversation")
    is_spoken = content.get("content_type") in _SPOKEN and said.get("recipient") in _TO_EVERYBODY
    is_call = content.get("content_type") == "code" and role == "assistant" and _CALL.match(_chatgpt_text(content))
    if role not in ("user", "assistant") or is_hidden or not is_spoken or is_call:
        return None
    identity = label(said.get("id") or node.get("id"))
    return _Turn(role=role, text=_chatgpt_text(content), id=identity, at=said.get("create_time"))


def _chatgpt_text(content: Row) -> str:
    """Return the texts and transcripts of a message; a picture becomes a placeholder."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return str(content.get("text") or "").strip()
    said = (part if isinstance(part, str) else _part_text(object_of(part)) for part in parts)
    return "\n".join(each for each in said if each.strip()).strip()


def _part_text(part: Row) -> str:
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return "[a picture]" if "image" in str(part.get("content_type")) else ""


def is_claude(source: Source) -> bool:
    """Return whether a conversation has `chat_messages`."""
    return any(isinstance(row.get("chat_messages"), list) for _, row in _conversations(source))


def read_claude(source: Source, destination: Destination) -> Records:
    """Read every conversation, without thinking and tool calls."""
    records = Records(format="claude", destination=destination)
    for place, row in _conversations(source):
        reading = _Reading(records, session=row.get("uuid"), title=row.get("name"), last=row.get("created_at"))
        turns = row.get("chat_messages")
        numbered = list(enumerate(turns if isinstance(turns, list) else (), start=1))
        reading.read(place, ((f"{place}, message {number}", turn) for number, turn in numbered), _claude_turn)
        attached = (
            (f"{place}, message {number}, attachment", {**each, "of": turn})
            for number, turn in numbered
            for each in objects_in(object_of(turn).get("attachments"))
        )
        reading.read(place, attached, _claude_attachment)
    _read_claude_memories(records, source)
    _name_others(records, source, ("memories.json", "projects.json", "users.json"))
    return records


def _claude_attachment(given: Row) -> _Turn | None:
    """Return the text of an attached file as a separate message, after the one it was attached to."""
    text, turn = str(given.get("extracted_content") or "").strip(), object_of(given.get("of"))
    if not text:
        return None
    name = str(given.get("file_name") or "a file")
    identity = f"{label(turn.get('uuid'))}/{label(given.get('id')) or name}"
    return _Turn(role="user", text=f"[attached: {name}]\n{text}", id=identity, at=turn.get("created_at"))


def _read_claude_memories(records: Records, source: Source) -> None:
    """Read `memories.json` (Claude's notes on all conversations and on each project) and `projects.json`.

    Source: the files as found in exports: `conversations_memory` is Markdown, `project_memories` has a Markdown text
    for each project; a project has `name`, `description`, `prompt_template` and `docs` of `filename` and `content`.
    """
    if not (source.is_folder or source.is_archive):
        return
    names: dict[str, str] = {}
    known = max((at for each in records.messages.values() if isinstance(at := each.message.at, datetime)), default=None)
    for file, document in source.json_file(lambda name: name == "projects.json"):
        for row in objects_in(document):
            names[str(row.get("uuid"))] = str(row.get("name") or "")
            records.read([(f"{file} {row.get('name')}", row)], partial(_claude_project, records))
    for file, document in source.json_file(lambda name: name == "memories.json"):
        for row in objects_in(document) or [object_of(document)]:
            _claude_notes(records, file, str(row.get("conversations_memory") or ""), tags=("saved memory",), at=known)
            for project, text in object_of(row.get("project_memories")).items():
                tag = names.get(str(project)) or str(project)
                _claude_notes(records, file, str(text), tags=("saved memory", tag[:100]), at=known)


def _claude_notes(records: Records, where: str, text: str, *, tags: tuple[str, ...], at: datetime | None) -> None:
    """Read Claude's notes, which have no dates: they are as old as the latest message of the export."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
        fact = re.sub(r"\*\*|^\s*(?:[-*]|#+)\s+", "", paragraph.strip()).strip()
        if fact and not re.fullmatch(r"\s*(\*\*[^*]+\*\*|#+ .*)\s*", paragraph):  # a heading states nothing
            records.fact(where, fact, *tags, tags=tags, at=at)


def _claude_project(records: Records, where: str, row: Row) -> None:
    name, at = str(row.get("name") or "a project"), parse_time(row.get("created_at"), name="created_at")
    for field, kind in (("description", "semantic"), ("prompt_template", "procedural")):
        if text := str(row.get(field) or "").strip():
            records.fact(where, f"{name}: {text}", row.get("uuid"), field, type=kind, tags=("project",), at=at)
    for doc in objects_in(row.get("docs")):
        if text := str(doc.get("content") or "").strip():
            title = f"{name}, {doc.get('filename') or 'a document'}"
            key = row.get("uuid"), doc.get("uuid") or doc.get("filename")
            records.fact(where, f"{title}:\n{text}", *key, tags=("project", "document"), at=at)


def _claude_turn(turn: Row) -> _Turn:
    role = _ROLES.get(str(turn.get("sender")).lower())
    if role is None:
        raise InvalidError(f"sender {turn.get('sender')!r} is unknown")
    return _Turn(role=role, text=_claude_text(turn), id=label(turn.get("uuid")), at=turn.get("created_at"))


def _claude_text(turn: Row) -> str:
    """Return the text blocks of a turn, or else its text, and the names of its attachments."""
    blocks = (block for block in objects_in(turn.get("content")) if block.get("type") == "text")
    texts = (block["text"] for block in blocks if isinstance(block.get("text"), str))
    text = "\n".join(each for each in texts if each.strip()) or str(turn.get("text") or "")
    names = [str(each["file_name"]) for each in objects_in(turn.get("attachments")) if each.get("file_name")]
    return "\n".join([text.strip(), *(f"[attached: {name}]" for name in names)]).strip()
