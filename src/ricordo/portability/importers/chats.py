"""Logs of chat programs: Telegram, WhatsApp and Slack.

Source for Telegram: telegram.org/blog/export-and-more and core.telegram.org/import-export: Telegram Desktop writes
`result.json`, one chat (`name`, `messages`) or all (`chats.list`); a message has `id`, `type`, `date`, `date_unixtime`,
`from`, `from_id` and `text`, which is a string, or a list of strings and of objects that have a `text` of their own.
`from` is null if the account was deleted. An export of all chats names its owner: `personal_information.user_id`.
A forwarded message has `forwarded_from`, a name or null, and `forwarded_from_id` in later exports; `from` forwarded it.

Source for WhatsApp: faq.whatsapp.com, "How to export your chat history": a text file with a line for each message,
`[31/12/2021, 22:15:32] Name: text` on iOS and `31/12/2021, 22:15 - Name: text` on Android, with dates as the phone
writes them; lines without a date continue the message above.

Source for Slack: slack.com/help, "How to read Slack data exports": a folder for each channel with a JSON file for each
day, and `users.json`; a message has `type`, `user`, `text` and `ts`, a Unix time in seconds.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import blake2b
from importlib.resources import files
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Message
from ricordo.portability.records import (
    NOT_IMPORTED,
    UNKNOWN_PERSON,
    Destination,
    ImportedChat,
    Records,
    author,
    label,
    object_of,
    parse_time,
)
from ricordo.portability.sources import Row, Source, objects_in, one_document
from ricordo.text.sentences import plural

_NAMED_PEOPLE = 3
_NUMBER = re.compile(r"(?:\d\D{0,2}){6}")
"""Matches a telephone number, which the setting `redact` may remove from a session's name."""
_MOST_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat:
    """A chat while it is read: its session and its title."""

    session: str
    title: str


def _chat(records: Records, session: str, *, title: str, former: str, is_certain: bool) -> _Chat:
    """Begin a chat.

    Args:
        session: the chat's own id, if it `is_certain`, or a description of it.
    """
    session = f"{records.format}/{session}"
    records.chats[session] = ImportedChat(session=session, former=former, is_certain=is_certain)
    return _Chat(session=session, title=" ".join(title.split())[:500])


def _add(
    records: Records, where: str, chat: _Chat, *, id: tuple[object, ...], speaker: str | None, text: str, at: object
) -> None:
    """Add a person's message under an id made from its chat and its own id.

    Args:
        speaker: the author, see `ricordo.portability.records.author`; None for the owner.
    """
    if text.strip():
        message = Message(
            text=text.strip(),
            speaker=speaker,
            session=chat.session,
            at=at,  # type: ignore[arg-type]
            origin="import",
            attributes={"title": chat.title},
        )
        records.turn(where, message, id)


def _people(names: Iterable[str]) -> str:
    """Describe a chat by its people: by their names or, if there are many or one is a telephone number, by a hash."""
    known = sorted(frozenset(names))
    if len(known) <= _NAMED_PEOPLE and not any(map(_NUMBER.search, known)):
        return ", ".join(known)[:_MOST_CHARS]
    return f"{len(known)} people {blake2b(json.dumps(known).encode(), digest_size=4).hexdigest()}"


def _name_notices(records: Records, count: int, what: str) -> None:
    """Report the number of notices by the chat program itself, which are not imported."""
    if count:
        records.refused.append(f"{NOT_IMPORTED}{plural(count, 'notice')}, {what}")


# Telegram


def is_telegram(source: Source) -> bool:
    """Return whether the source is Telegram's `result.json`, alone or in its folder."""
    return any(_telegram_chats(document) for _, document in _results(source))


def _results(source: Source) -> list[tuple[str, Any]]:
    return source.json_file(lambda name: name == "result.json")


def _telegram_chats(document: object) -> list[Row]:
    chats = [object_of(document), *objects_in(object_of(object_of(document).get("chats")).get("list"))]
    return [chat for chat in chats if any("date_unixtime" in each or "from_id" in each for each in _said(chat)[:20])]


def _said(chat: Row) -> list[Row]:
    return objects_in(chat.get("messages"))


def read_telegram(source: Source, destination: Destination) -> Records:
    """Read the messages of each chat; the number of calls, joins and other notices is reported."""
    records = Records(format="telegram", destination=destination)
    notices = 0
    for name, document in _results(source):
        owner = label(object_of(object_of(document).get("personal_information")).get("user_id"))
        for chat in _telegram_chats(document):
            former = label(chat.get("name")) or label(chat.get("id")) or "chat"
            own = label(chat.get("id"))
            people = _people(label(each.get("from")) or "" for each in _said(chat) if each.get("type") == "message")
            title = "Saved messages" if chat.get("type") == "saved_messages" else former
            into = _chat(records, own or people, title=title, former=former, is_certain=own is not None)
            notices += sum(each.get("type") != "message" for each in _said(chat))
            rows = ((f"{name} {former}, message {each.get('id')}", each) for each in _said(chat))
            records.read(rows, partial(_telegram_message, records, into, owner))
    _name_notices(records, notices, "such as a call or a pinned message")
    return records


_ACCOUNT = re.compile(r"\A[a-z]+(?=\d)")


def _telegram_author(row: Row, owner: str | None) -> str | None:
    """Return the name of an author, or for a deleted account its id; None for the owner's own account."""
    account = _ACCOUNT.sub("", label(row.get("from_id")) or "")
    if not label(row.get("from")) and account and row.get("from_id") in (owner, f"user{owner}"):
        return None
    return author(row.get("from"), f"Deleted account ({account})" if account else None)


def _telegram_message(records: Records, chat: _Chat, owner: str | None, where: str, row: Row) -> None:
    if row.get("type") != "message":
        return
    given = row["text"] if isinstance(row.get("text"), list) else [row.get("text") or ""]
    parts = [{"text": part} if isinstance(part, str) else object_of(part) for part in given]
    media = label(row.get("media_type")) or ("photo" if row.get("photo") else label(row.get("file_name")))
    said = _telegram_text(parts), "".join(str(part.get("text") or "") for part in parts)
    text, former = (f"{each}\n[{media}]".strip() if media else each for each in said)
    if text.strip() and (source := _forwarded_from(row)):
        text = f"[forwarded from {source}]\n{_quoted(text.strip())}"
    at = parse_time(int(row["date_unixtime"]), name="date") if row.get("date_unixtime") else row.get("date")
    # The id is made from the text as earlier versions stored it, so that the same message is not imported twice.
    _add(records, where, chat, id=(row.get("id"), former), speaker=_telegram_author(row, owner), text=text, at=at)


def _telegram_text(parts: Iterable[Row]) -> str:
    """Return the text of a message, with the lines that it quotes after ">"."""
    text, was_quote = "", False
    for part in parts:
        said, is_quote = str(part.get("text") or ""), part.get("type") == "blockquote"
        if (is_quote or was_quote) and not text.endswith("\n") and not said.startswith("\n"):
            text += "\n"
        text += _quoted(said) if is_quote else said
        was_quote = is_quote
    return text


def _forwarded_from(row: Row) -> str:
    """Return who wrote a forwarded message; "" for a message of the one who sent it, also if it is forwarded."""
    name, id_ = row.get("forwarded_from"), row.get("forwarded_from_id")
    is_own = id_ == row.get("from_id") if id_ else name and name == row.get("from")
    if "forwarded_from" not in row or is_own:
        return ""
    return " ".join(re.sub(r"[\[\]]", " ", label(name) or "a deleted account").split())[:_MOST_CHARS] or UNKNOWN_PERSON


def _quoted(text: str) -> str:
    """Return a text as a quote. Nothing is learnt from quotes, see `ricordo.text.sentences.without_quotes`."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


# WhatsApp

_LINE = re.compile(
    r"[\u200e\u200f\ufeff]*\[?(\d{1,4})[./-](\d{1,2})[./-](\d{2,4}),?\s+(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"(?:\s*([AaPp])\.?\s?[Mm]\.?)?\]?(?:\s+-)?\s+([^:\n]{1,80}): (.*)"
)
_STAMP = re.compile(
    r"[\u200e\u200f\ufeff]*\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
    r"(?:\s*[AaPp]\.?\s?[Mm]\.?)?(\]|\s+-(?=\s)|)"
)
"""The time at the head of a message, and what follows it: "]" from an iPhone, " -" from Android."""
_BY_PROGRAM = re.compile(
    r"\s*(?:[\u200e\u202a]+(?![@\u2068])|<(?=[^<>\n]*>\s*\Z)|(?=[^\n]{,20} omitted\]?\s*\Z))(.*)", re.DOTALL
)
"""What WhatsApp writes in place of a file, or as a notice: after a direction mark, or in angle brackets."""
_IS_SAID = re.compile(r"https?://|\S\n+\S")
"""What somebody shared although WhatsApp writes it: a place with its link, a poll with its lines."""
_MOST_WORDS = 4
"""A placeholder for a file has at most this many words ("image omitted", "Bild weggelassen"); a notice has more."""
_OWN = tomllib.loads((files("ricordo.portability") / "data/whatsapp.toml").read_text(encoding="utf-8"))
_NOTICES, _CALLS = frozenset(_OWN["notices"]), tuple(_OWN["calls"])
_EDITED = re.compile(rf"(?<!\s)\s*(?:\u200e<[^<>:\n]*>|<(?:{'|'.join(_OWN['edited'])})\.?>)\s*\Z", re.IGNORECASE)
_FILE = re.compile(
    rf"(?<![^\s()])[^\s()]+\.\w{{2,5}} \((?:{'|'.join(_OWN['attached'])})\)(?=\n|\Z)"
    r"|\u200e<[^<>\n]{0,100}: [^<>\n]{0,260}\.\w{2,5}>",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def _whatsapp_text(text: str) -> str | None:
    """Return what a person said: without what WhatsApp adds, and with a placeholder for a file; None for a notice."""
    text = _EDITED.sub("", text)
    plain = " ".join(_MARKS.sub("", text).split()).casefold().removesuffix(".")
    if plain in _NOTICES:
        return None
    text, is_file = _FILE.subn("[a file]", text)
    by_program = None if is_file else _BY_PROGRAM.match(text)
    if by_program and not _IS_SAID.search(by_program[1]):
        is_notice = len(by_program[1].split()) > _MOST_WORDS or plain.startswith(_CALLS)
        return None if is_notice else "[a file]"
    return _MARKS.sub("", text).strip()


def _former_text(text: str) -> str:
    """Return a text as earlier versions stored it, for the id of the message: up to a line that begins with a time."""
    first, *more = text.split("\n")
    text = "\n".join([first, *takewhile(lambda line: not _STAMP.match(line), more)])
    return "[a file]" if _BY_PROGRAM.match(text) else text


def is_whatsapp(source: Source) -> bool:
    """Return whether one of the first lines is a message with a date and a name."""
    return bool(source.head) and _is_chat(_chat_text(source))


def _is_chat(text: str) -> bool:
    return any(map(_LINE.match, text.split("\n")[:20]))


def _chat_text(source: Source) -> str:
    """Return the text of a chat. An iPhone calls it `_chat.txt`; Android names it after the chat, in an archive."""
    if source.is_archive or source.is_folder:
        texts = [name for name in source.names if name.lower().endswith(".txt")]
        named = [name for name in texts if PurePosixPath(name).name.lower().endswith("chat.txt")]
        found = (source.text(name).text for name in named or (texts if source.is_archive else ()))
        return next((text for text in found if named or _is_chat(text)), "")
    return "" if source.is_database else source.own_text


def is_whatsapp_archive(source: Source) -> bool:
    """Return whether an archive or folder holds such a log, or a single file is one."""
    return _is_chat(_chat_text(source)) if source.is_archive or source.is_folder else is_whatsapp(source)


def read_whatsapp(source: Source, destination: Destination) -> Records:
    """Read the messages of one chat. Dates are day first, unless only the second number is ever above 12."""
    records = Records(format="whatsapp", destination=destination)
    read = list(_whatsapp_lines(_chat_text(source)))
    found = [each for each in read if each[1]]
    is_month_first = any(int(each[1]) > 12 for _, each, _ in found) and not any(
        int(each[0]) > 12 for _, each, _ in found
    )
    if not any(int(number) > 12 for _, each, _ in found for number in each[:2]):
        undecided = next((each for _, each, _ in found if int(each[0]) != int(each[1])), None)
        records.undecided_date = "" if undecided is None else _as_read(undecided)
    notices = len(read) - len(found)
    said: list[tuple[str, str, str, str, str]] = []
    begun_by = ""
    group = _group_of(found)
    for number, parts, text in found:
        try:
            at = _whatsapp_time(parts, is_month_first=is_month_first)
        except ValueError as error:
            records.refused.append(f"line {number}: {error}")
            continue
        speaker = author(parts[7].strip("\u200e\u202a\u202c "))
        text = text.rstrip("\n")
        if speaker == group or (own := _whatsapp_text(text)) is None:
            begun_by = begun_by if said else begun_by or speaker  # a chat begins with a notice by the chat's name
            notices += 1
        else:
            said.append((f"line {number}", at, speaker, own, _former_text(text)))
    chat = _whatsapp_chat(records, source.path.name, begun_by, {speaker for _, _, speaker, *_ in said})
    for where, at, speaker, text, former in said:
        _add(records, where, chat, id=(f"{at} {speaker}", former), speaker=speaker, text=text, at=at)
    _name_notices(records, notices, "of WhatsApp itself")
    return records


def _as_read(parts: tuple[str, ...]) -> str:
    day = _whatsapp_time(parts, is_month_first=False)[:10]
    return f"{'/'.join(parts[:3])} as {day} (day first)"


def _group_of(found: Sequence[tuple[int, tuple[str, ...], str]]) -> str:
    """Return the name of a group, by which its notices begin; "" if none does. The first message is one of them.

    A group says nothing of its own, as somebody may who only shows pictures.
    """
    said = [(author(parts[7].strip("\u200e\u202a\u202c ")), text) for _, parts, text in found]
    if len({speaker for speaker, _ in said}) <= 2 or _whatsapp_text(said[0][1]) is not None:
        return ""
    first = said[0][0]
    return first if all(_BY_PROGRAM.match(text) for speaker, text in said if speaker == first) else ""


_CHAT_FILE = re.compile(
    r"(?:.*\bWhatsApp\b(?: chat)?(?: -| \w{1,4})? |_chat)?(.*?)(?: ?\(\d+\))*(?:\.(?:txt|zip))*", re.I
)
"""Matches the name of a file: "WhatsApp Chat with Ann (1).txt", "Chat de WhatsApp con Ann.txt"."""
_FORMER_FILE = re.compile(r"^(WhatsApp Chat (with|-) |_chat)|\.(txt|zip)$")


def _whatsapp_chat(records: Records, file: str, begun_by: str, speakers: set[str]) -> _Chat:
    people = _people(speakers if len(speakers) > 1 or not begun_by else {*speakers, begun_by})
    named = _CHAT_FILE.fullmatch(file) if "whatsapp" in file.lower() else None
    former = _FORMER_FILE.sub("", file).strip() or "WhatsApp"
    return _chat(
        records, people, title=(named and named[1].strip()) or begun_by or people, former=former, is_certain=False
    )


def _whatsapp_lines(text: str) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Yield (line, parts of the head, text) for each message, and for each notice with empty parts. All heads of a file
    have the form of the first one; another line that begins with a time belongs to what somebody said.
    """
    head: tuple[str, ...] = ()
    said: list[str] = []
    begun = 0
    form = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        stamp = _STAMP.match(line)
        form = form if begun or stamp is None else stamp[1].strip()
        if stamp and form in ("", stamp[1].strip()):
            found = _LINE.match(line)
            if begun:
                yield begun, head, "\n".join(said)
            head = tuple(part or "" for part in found.groups()) if found else ()
            said, begun = [found[9]] if found else [], number
        else:
            said.append(line)
    if begun:
        yield begun, head, "\n".join(said)


def _whatsapp_time(parts: tuple[str, ...], *, is_month_first: bool) -> str:
    """Return ISO 8601 text in the owner's time zone."""
    one, two, three, hour, minute, second, half = parts[:7]
    year, month, day = (one, two, three) if len(one) == 4 else (three, two, one)
    if is_month_first and len(one) != 4:
        month, day = day, month
    hours = int(hour) % 12 + (12 if half.lower() == "p" else 0) if half else int(hour)
    whole = int(year) + (2_000 if int(year) < 100 else 0)
    return datetime(whole, int(month), int(day), hours, int(minute), int(second or 0)).isoformat()


# Slack

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json\Z")
_PERSON = re.compile(r"<@([UW]\w+)(?:\|[^<>]*)?>")
_LINK = re.compile(r"<([^@#!|<>][^|<>]*)(?:\|([^<>]*))?>")


def is_slack(source: Source) -> bool:
    """Return whether the source is a folder or archive with a file for each day of a channel."""
    return (source.is_folder or source.is_archive) and any(
        _DAY.match(PurePosixPath(name).name) for name in source.names
    )


def read_slack(source: Source, destination: Destination) -> Records:
    """Read the messages of each channel with their authors' names; the number of notices is reported."""
    records = Records(format="slack", destination=destination)
    workspace = _Workspace.of(source)
    notices = 0
    others = [name for name in source.names if not _DAY.match(PurePosixPath(name).name)]
    for name in source.names:
        if name in others:
            continue
        try:
            document = one_document(source.text(name).text, name=name)
        except InvalidError as error:
            records.refused.append(f"{name}: {error}")
            continue
        chat = workspace.chat(records, PurePosixPath(name).parent.name or "slack")
        rows = [(f"{name}, message {number}", row) for number, row in enumerate(objects_in(document), start=1)]
        notices += sum(not _is_spoken(row) for _, row in rows)
        records.read(rows, partial(_slack_message, records, chat, workspace.people))
    _name_notices(records, notices, "such as who joined")
    known = ("users.json", *_SLACK_CHATS)
    records.refused += [f"{NOT_IMPORTED}{name}" for name in others if PurePosixPath(name).name not in known][:20]
    return records


_SLACK_CHATS = ("channels.json", "groups.json", "dms.json", "mpims.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workspace:
    """What an export says about its workspace: its id, the names of its people by id, its channels by folder."""

    team: str
    people: dict[str, str]
    channels: dict[str, Row]

    @staticmethod
    def of(source: Source) -> _Workspace:
        users = [
            user for _, document in source.json_file(lambda name: name == "users.json") for user in objects_in(document)
        ]
        teams = Counter(str(user["team_id"]) for user in users if user.get("team_id"))
        channels = [row for _, document in source.json_file(_SLACK_CHATS.__contains__) for row in objects_in(document)]
        return _Workspace(
            team=teams.most_common(1)[0][0] if teams else "",
            people={
                str(user.get("id")): label(object_of(user.get("profile")).get("real_name"))
                or label(user.get("name"))
                or ""
                for user in users
            },
            channels={str(row.get("name") or row.get("id")): row for row in channels},
        )

    def chat(self, records: Records, folder: str) -> _Chat:
        """Begin the chat in a folder, which is named after its channel or, for direct messages, after its id."""
        row = self.channels.get(folder, {})
        own = label(row.get("id")) or folder
        members = row.get("members") if row.get("name") is None else None
        names = [self.people.get(str(each)) or str(each) for each in members or ()]
        session = f"{self.team}/{own}" if self.team else f"{own}, {_people(self.people.values())}"
        return _chat(records, session, title=", ".join(names) or folder, former=folder, is_certain=bool(self.team))


_SPOKEN = (None, "thread_broadcast", "me_message", "bot_message")


def _is_spoken(row: Row) -> bool:
    return row.get("type") == "message" and row.get("subtype") in _SPOKEN


def _slack_message(records: Records, chat: _Chat, people: dict[str, str], where: str, row: Row) -> None:
    if not _is_spoken(row):
        return
    user = str(row.get("user") or "")
    profile, bot = object_of(row.get("user_profile")), object_of(row.get("bot_profile"))
    names = people.get(user), profile.get("real_name"), row.get("username"), user, bot.get("name"), row.get("bot_id")
    text = _PERSON.sub(lambda found: people.get(found[1]) or found[1], str(row.get("text") or ""))
    text = _LINK.sub(lambda found: found[2] or found[1], text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    attached = [str(each["name"]) for each in objects_in(row.get("files")) if each.get("name")]
    text = "\n".join([text, *(f"[attached: {name}]" for name in attached)])
    at = parse_time(float(row["ts"]), name="ts")
    _add(records, where, chat, id=(row["ts"], text), speaker=author(*names), text=text, at=at)
