"""Session logs of coding agents: Claude Code, Codex, Cursor, Gemini CLI and OpenCode.

What the user and the agent said becomes messages. Tool output is not stored: it is long, and states no one's opinion.
Facts are derived by rule from the commands that ran, and from what the agent says about decisions and causes.

Source for Claude Code: code.claude.com/docs/en/hooks and the logs in `~/.claude/projects/PROJECT/SESSION.jsonl`, which
have their own format: lines of `type` user or assistant with `uuid`, `sessionId`, `cwd`, `timestamp` and a `message`
of the Anthropic API; `isMeta`, `isSidechain` and `isCompactSummary` mark what the user did not say.

Source for Codex: developers.openai.com/codex and `codex-rs/protocol` in github.com/openai/codex: lines of `timestamp`,
`type` and `payload` in `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`; `session_meta` has `id` and `cwd`, a
`response_item` is a message, a call or its output.

Source for Cursor: cursor.com/docs/agent/hooks and `~/.cursor/projects/PROJECT/agent-transcripts/ID.jsonl`: lines of
`role` and `message`, without times and without the results of tools.

Source for Gemini CLI: github.com/google-gemini/gemini-cli, `chatRecordingService`: a JSON document, or JSON lines, with
`sessionId` and messages of `id`, `timestamp`, `type` (user, gemini) and `content`; a message may be written again.

Source for OpenCode: opencode.ai/docs and `opencode export`: a document of `info` (`id`, `directory`) and `messages`,
each with `info` (`id`, `role`, `time.created`) and `parts` of `type` text or tool.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from ricordo.errors import InvalidError
from ricordo.model import AGENT, Message, Role
from ricordo.portability.records import Destination, Records, label, object_of, parse_time, vocabulary
from ricordo.portability.sources import JsonLines, Row, Source, json_lines, objects_in, one_document
from ricordo.text.sentences import plural
from ricordo.text.work import statements_of_work

CLIENTS = ("claude-code", "codex", "cursor", "gemini-cli", "opencode")

_MOST_MESSAGE_CHARS = 20_000
_MOST_COMMANDS = 20
_MOST_COMMAND_CHARS = 200
_NEXT_COMMANDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    role: Role
    text: str
    id: str
    at: object
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """A command, and whether it failed (None if unknown)."""

    command: str
    failed: bool | None
    at: object
    place: str


@dataclass(slots=True, kw_only=True)
class _Log:
    """One session: its folder, the messages, the commands, and how many lines of each kind were skipped."""

    id: str = ""
    folder: str = ""
    said: dict[str, _Said] = field(default_factory=dict)
    ran: dict[str, _Ran] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def say(self, role: Role, text: str, *, id: str, at: object, place: str) -> None:
        """Add a message, or replace it if it was written again. Text inserted by the client is removed."""
        text = _without_scaffolding(text)[:_MOST_MESSAGE_CHARS]
        if text:
            self.said[id] = _Said(role=role, text=text, id=id, at=at, place=place)

    def run(self, id: str, command: object, *, at: object, place: str) -> None:
        """Add a command. A later line may report its result."""
        if text := _command_text(command):
            self.ran[id] = _Ran(command=text, failed=None, at=at, place=place)

    def end(self, id: str, *, failed: bool | None) -> None:
        """Record whether a command failed."""
        if (known := self.ran.get(id)) is not None and failed is not None:
            self.ran[id] = _Ran(command=known.command, failed=failed, at=known.at, place=known.place)


# What clients insert into messages: reminders, the state of the editor, output of their own commands.
_SCAFFOLDING = re.compile(
    r"<(system-reminder|local-command-\w+|command-(?:name|message|args)|environment_context|user_instructions"
    r"|permissions instructions|INSTRUCTIONS|attached_files|open_and_recently_viewed_files|user_info|git_status"
    r"|project_layout|rules|system_notification|timestamp|turn_aborted|session_context)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_TAGS = re.compile(r"</?user_query>")
_WHOLLY = re.compile(
    r"\A\s*(?:# AGENTS\.md instructions|<environment_context|Caveat: The messages below|\[Request inter)"
)


def _without_scaffolding(text: str) -> str:
    if _WHOLLY.match(text):
        return ""
    return _TAGS.sub("", _SCAFFOLDING.sub("", text)).strip()


def _command_text(given: object) -> str:
    """Return a command as text, without the shell that runs it."""
    if isinstance(given, list):
        words = [str(each) for each in given]
        shell = len(words) == 3 and PurePosixPath(words[0]).name in ("bash", "sh", "zsh") and words[1] in ("-lc", "-c")
        given = words[2] if shell else " ".join(words)
    return given.strip() if isinstance(given, str) else ""


def _texts(content: object, *kinds: str) -> str:
    """Return the text of a message, or of its blocks of the given kinds."""
    if isinstance(content, str):
        return content
    blocks = (block for block in objects_in(content) if block.get("type", kinds[0]) in kinds)
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))


# the lines of each client


def _claude_line(log: _Log, place: str, row: Row) -> None:
    kind, message = row.get("type"), object_of(row.get("message"))
    if kind not in ("user", "assistant") or not message or row.get("isSidechain"):
        log.skipped[str(kind)] += 1
        return
    log.id = log.id or label(row.get("sessionId")) or ""
    log.folder = log.folder or label(row.get("cwd")) or ""
    at = row.get("timestamp")
    for block in objects_in(message.get("content")):
        if block.get("type") == "tool_use" and block.get("name") == "Bash":
            log.run(str(block.get("id")), object_of(block.get("input")).get("command"), at=at, place=place)
        elif block.get("type") == "tool_result":
            log.end(str(block.get("tool_use_id")), failed=bool(block.get("is_error")))
    if not (row.get("isMeta") or row.get("isCompactSummary")):
        role: Role = "assistant" if kind == "assistant" else "user"
        log.say(role, _texts(message.get("content"), "text"), id=label(row.get("uuid")) or place, at=at, place=place)


def _codex_line(log: _Log, place: str, row: Row) -> None:
    given, at = object_of(row.get("payload")), row.get("timestamp")
    kind = given.get("type")
    if row.get("type") == "session_meta":
        log.id, log.folder = label(given.get("id")) or log.id, label(given.get("cwd")) or log.folder
    elif row.get("type") == "event_msg" and kind == "exec_command_end":
        log.end(str(given.get("call_id")), failed=given.get("exit_code") != 0)
    elif row.get("type") != "response_item":
        log.skipped[f"{row.get('type')} {kind or ''}".strip()] += 1
    elif kind == "message" and given.get("role") in ("user", "assistant"):
        text = _texts(given.get("content"), "input_text", "output_text", "text")
        log.say("user" if given["role"] == "user" else "assistant", text, id=place, at=at, place=place)
    elif kind in ("function_call", "local_shell_call"):
        asked = _arguments(given.get("arguments")) or object_of(given.get("action"))
        log.run(str(given.get("call_id")), asked.get("cmd") or asked.get("command"), at=at, place=place)
    elif kind == "function_call_output":
        log.end(str(given.get("call_id")), failed=_codex_failed(given.get("output")))
    else:
        log.skipped[str(kind)] += 1


def _arguments(given: object) -> Row:
    found = one_document(given, name="arguments", is_checked=False) if isinstance(given, str) else given
    return object_of(found)


_EXIT = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: code)?|Exit Code)\s*+(?::\s*+)?(-?\d+)\b", re.IGNORECASE)


def _codex_failed(output: object) -> bool | None:
    """Return whether an output (text, or JSON as text) reports a failure; None if it does not say."""
    found = object_of(output) or _arguments(output)
    code = object_of(found.get("metadata")).get("exit_code")
    if isinstance(code, int):
        return code != 0
    return _exit_failed(str(found.get("output") or output or ""))


def _exit_failed(text: str) -> bool | None:
    code = _EXIT.search(text[:2_000])
    return None if code is None else int(code[1]) != 0


def _cursor_line(log: _Log, place: str, row: Row) -> None:
    role, content = row.get("role"), object_of(row.get("message")).get("content")
    if role not in ("user", "assistant"):
        log.skipped[str(role or row.get("type"))] += 1
        return
    for number, block in enumerate(objects_in(content)):
        if block.get("type") == "tool_use" and block.get("name") == "Shell":
            log.run(f"{place}/{number}", object_of(block.get("input")).get("command"), at=None, place=place)
    log.say("user" if role == "user" else "assistant", _texts(content, "text"), id=place, at=None, place=place)


def _gemini_line(log: _Log, place: str, row: Row) -> None:
    if "sessionId" in row and "type" not in row:
        log.id = label(row.get("sessionId")) or log.id
        log.folder = next((str(each) for each in row.get("directories") or () if each), log.folder)
        for number, each in enumerate(objects_in(row.get("messages")), start=1):
            _gemini_line(log, f"message {number}", each)
        return
    kind, at = row.get("type"), row.get("timestamp")
    if kind not in ("user", "gemini"):
        log.skipped[str(kind or next(iter(row), "nothing"))] += 1
        return
    for call in objects_in(row.get("toolCalls")):
        if call.get("name") in ("run_shell_command", "ShellTool"):
            id = str(call.get("id") or f"{place}/{call.get('name')}")
            log.run(id, object_of(call.get("args")).get("command"), at=at, place=place)
            told = _exit_failed(json.dumps(call.get("result"), default=str))
            log.end(id, failed=call.get("status") == "error" if told is None else told)
    text = _texts(row.get("content"), "text")
    log.say("user" if kind == "user" else "assistant", text, id=label(row.get("id")) or place, at=at, place=place)


def _opencode_line(log: _Log, place: str, row: Row) -> None:
    """Read a complete OpenCode export."""
    info = object_of(row.get("info"))
    log.id, log.folder = label(info.get("id")) or log.id, label(info.get("directory")) or log.folder
    for number, message in enumerate(objects_in(row.get("messages")), start=1):
        about, where = object_of(message.get("info")), f"message {number}"
        at = object_of(about.get("time")).get("created")
        parts = objects_in(message.get("parts"))
        for part in parts:
            state = object_of(part.get("state"))
            if part.get("type") == "tool" and part.get("tool") == "bash":
                id = str(part.get("callID") or part.get("id"))
                log.run(id, object_of(state.get("input")).get("command"), at=at, place=where)
                code = object_of(state.get("metadata")).get("exit")
                log.end(id, failed=code != 0 if isinstance(code, int) else state.get("status") == "error")
            elif part.get("type") != "text":
                log.skipped[str(part.get("type"))] += 1
        spoken = [part for part in parts if not part.get("synthetic")]
        role: Role = "user" if about.get("role") == "user" else "assistant"
        log.say(role, _texts(spoken, "text"), id=label(about.get("id")) or where, at=at, place=where)


_LINES: dict[str, Callable[[_Log, str, Row], None]] = {
    "claude-code": _claude_line,
    "codex": _codex_line,
    "cursor": _cursor_line,
    "gemini-cli": _gemini_line,
    "opencode": _opencode_line,
}


# recognition


def is_log_of(client: str, source: Source) -> bool:
    """Return whether a single file is a session log of a client."""
    rows = source.first_rows
    if client == "claude-code":
        return any("sessionId" in row and "message" in row and "uuid" in row for row in rows)
    if client == "codex":
        return any(row.get("type") in ("session_meta", "response_item") and "payload" in row for row in rows)
    if client == "cursor":
        return any(
            row.get("role") in ("user", "assistant") and "content" in object_of(row.get("message")) for row in rows
        )
    if client == "gemini-cli":
        return any("sessionId" in row and "projectHash" in row for row in rows)
    return any("messages" in row and "directory" in object_of(row.get("info")) for row in rows)


def folder_of(path: Path) -> str:
    """Return the folder that a session log says it ran in; "" if it does not say, or cannot be read."""
    try:
        source = Source(path)
        client = next((each for each in CLIENTS if is_log_of(each, source)), None)
        return "" if client is None else _log(client, source.lines, source.path.name).folder
    except InvalidError:
        return ""


# reading


def read_log(client: str, source: Source, destination: Destination) -> Records:
    """Read a session log, or each log in a folder. Lines that are neither messages nor commands are counted."""
    records = Records(format=client, destination=destination)
    for name, lines, at in _files(source):
        log = _log(client, lines, name)
        records.refused += log.refused
        if total := log.skipped.total():
            kinds = ", ".join(f"{kind} {count}" for kind, count in log.skipped.most_common(6))
            records.skipped.append(f"{name}: {plural(total, 'line')} of other kinds ({kinds})")
        _add(records, client, log, log.id or PurePosixPath(name).stem, at)
    return records


def _files(source: Source) -> Iterator[tuple[str, JsonLines, datetime]]:
    """Yield the name, lines and last change of each log."""
    if not source.is_folder:
        yield source.path.name, source.lines, source.changed_at
        return
    for name in source.names:
        if name.endswith((".jsonl", ".json")):
            file = source.text(name)
            document = one_document(file.text, name=name, is_checked=False)
            whole = JsonLines(rows=(("line 1", document),), refused=()) if isinstance(document, dict) else None
            yield name, whole or json_lines(file.text), file.changed_at


def _log(client: str, lines: JsonLines, name: str) -> _Log:
    log = _Log(refused=[f"{name}: {each}" for each in lines.refused])
    for place, row in lines.rows:
        try:
            _LINES[client](log, place, row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.refused.append(f"{name} {place}: {error}")
    return log


def _add(records: Records, client: str, log: _Log, session: str, changed: datetime) -> None:
    name = f"{client}/{session}"

    def read(place: str, said: _Said) -> None:
        message = Message(
            text=said.text,
            role=said.role,
            session=name,
            at=_time(said.at) or changed,
            id=records.destination.id_of(client, session, said.id, said.text),
            origin="import",
            attributes={AGENT: client, "message_id": said.id},
        )
        records.message(place, message)

    for said in log.said.values():
        try:
            read(said.place, said)
        except InvalidError as error:
            records.refused.append(f"{said.place}: {error}")
    _add_statements(records, log, changed)
    _add_commands(records, log, changed)


def _time(given: object) -> datetime | None:
    found = parse_time(given, name="its time")
    return found if isinstance(found, datetime) else None


def _fact(records: Records, said: _Said | _Ran, text: str, changed: datetime, **fields: object) -> None:
    records.fact(said.place, text, "agent", in_chat=True, at=_time(said.at) or changed, **fields)


def _add_statements(records: Records, log: _Log, changed: datetime) -> None:
    """Add what the agent states about decisions and causes, and what its last message says is left to do."""
    answers = [said for said in log.said.values() if said.role == "assistant"]
    for said in answers:
        for told in statements_of_work(said.text):
            if told.kind in ("decision", "cause"):
                _fact(records, said, told.text, changed, category="knowledge", tags=(told.kind,))
    for told in statements_of_work(answers[-1].text) if answers else ():
        if told.kind == "left":
            _fact(records, answers[-1], told.text, changed, category="task", tags=("left",))


# commands

# What may stand before a command; it is part of it, but does not tell what it does.
_BEFORE = re.compile(r"\A(?:cd\s+\S+\s*&&\s*|(?:[A-Z][A-Z0-9_]*=\S+\s+)+|time\s+|timeout\s+\S+\s+|sudo\s+)+")
_AFTER = re.compile(r"(?<!\s)\s*(?:2>&1|2>\s*/dev/null|>\s*/dev/null|\|\s*(?:head|tail|grep|cat|tee|less)\b.*)\s*\Z")


def _plain_command(command: str, folder: str) -> str:
    """Return the command as it ran, without going to the session's folder and without what only cuts its output; "" if
    it only inspects files or is too long.
    """
    text = command.strip().removeprefix(f"cd {folder} && ").lstrip()
    if len(text) > 2 * _MOST_COMMAND_CHARS:  # however much of it only cuts its output
        return ""
    while (shorter := _AFTER.sub("", text)) != text:
        text = shorter
    words = _BEFORE.sub("", text).split()
    if not words or "\n" in text or len(text) > _MOST_COMMAND_CHARS or "`" in text or "<<" in text:
        return ""
    return "" if PurePosixPath(words[0]).name in vocabulary()["commands"]["looks_around"] else text


def _add_commands(records: Records, log: _Log, changed: datetime) -> None:
    """Add the commands that worked, and those that failed, with a similar one that worked soon after."""
    ran = [each for each in log.ran.values() if each.failed is not None]
    known = [(each, text) for each in ran if (text := _plain_command(each.command, log.folder))]
    last = {text: each for each, text in known}
    counts = Counter(text for _, text in known)
    for text, _ in counts.most_common(_MOST_COMMANDS):
        if not last[text].failed:
            _fact(records, last[text], f"`{text}` works", changed, type="procedural", tags=("command",))
            continue
        place = max(number for number, (_, each) in enumerate(known) if each == text)
        instead = next((each for _, each in _worked(known[place + 1 :][:_NEXT_COMMANDS]) if _alike(each, text)), None)
        told = f"`{text}` fails" + (f"; `{instead}` works instead" if instead else "")
        _fact(records, last[text], told, changed, type="procedural", tags=("command",))


def _worked(known: Iterable[tuple[_Ran, str]]) -> Iterator[tuple[_Ran, str]]:
    return ((each, text) for each, text in known if not each.failed)


def _alike(one: str, other: str) -> bool:
    """Return whether two commands share a word that is not an option."""
    words = [
        {word for word in re.split(r"[\s:/=]+", each) if len(word) > 2 and word[0] != "-"} for each in (one, other)
    ]
    return bool(words[0] & words[1])


READERS: Mapping[str, tuple[Callable[[Source], bool], Callable[[Source, Destination], Records]]] = {
    client: (partial(is_log_of, client), partial(read_log, client)) for client in CLIENTS
}
"""For each client: a function that recognizes its logs, and one that reads them."""
