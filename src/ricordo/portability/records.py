"""Records that an importer reads from a file: people, messages, facts, relations and links, with their places."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, get_args

from ricordo.errors import InvalidError
from ricordo.model import Category, ClosedReason, EdgeType, EntityType, Fact, Json, Message
from ricordo.portability.sources import Placed, Row, Source

MALFORMED = (InvalidError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of reading what a stranger wrote: a value of another type, a missing field, a number that no date has."""
UNKNOWN_PERSON = "Unknown person"
"""The speaker of a message whose author is not known. Such a message is never the owner's."""
_MILLISECONDS_FROM = 1e11
"""A Unix time above this is in milliseconds: in seconds it would be after the year 5138."""

NOT_IMPORTED = "not imported: "
"""How the report begins a line about what a source holds besides the export, such as a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPerson:
    """A person or thing with a name. `relation` is the relation to the owner."""

    name: str
    place: str
    type: EntityType = "person"
    aliases: tuple[str, ...] = ()
    relation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """One turn of a conversation, with a message id derived from its source.

    `key`: what the id of a message in an `ImportedChat` is derived from, besides the chat.
    """

    message: Message
    place: str
    tags: tuple[str, ...] = ()
    key: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedChat:
    """A chat whose session is not given by the file, see `ricordo.portability.identity`.

    Attributes:
        session: the session that it gets if no stored one is the same chat.
        former: the session that earlier versions gave it.
        is_certain: whether `session` comes from the source's own id of the chat.
    """

    session: str
    former: str
    is_certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFact:
    """One piece of knowledge, with a fact id derived from its source.

    Attributes:
        at: when it was observed; None if the file does not tell.
        changed_at: when its file was last changed; None for the time of the whole import's file or folder.
        ended: when it stopped being true in the world.
        closed: why the other memory had closed it; None if it had not.
        in_chat: whether it belongs to the current chat rather than to a person; None if the source does not tell.
    """

    fact: Fact
    place: str
    at: datetime | str | None = None
    changed_at: datetime | None = None
    closed: ClosedReason | None = None
    ended: datetime | str | None = None
    score: float = 0.0
    decay_rate: float | None = None
    in_chat: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRelation:
    """A relation between two entities, by name: `target` is the `predicate` of `source`."""

    source: str
    predicate: str
    target: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLink:
    """An edge between two memories, by id: `source` was derived from `target` (`derived_from`) or `supersedes` it."""

    source: str
    target: str
    type: EdgeType
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The owner and chat that a file is imported for. Different owners get different ids."""

    owner: str
    chat: str

    def id_of(self, format: str, *source: object) -> str:
        """Return the id of a record; the same source always gives the same id."""
        key = json.dumps([f"{self.owner}/{self.chat}", format, *source], default=str)
        return f"import-{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


_OF_IMPORT = frozenset(each.name for each in fields(ImportedFact)) - {"fact", "place"}


@dataclass(slots=True, kw_only=True)
class Records:
    """The usable records of a file, in the order they are stored, and why other parts were refused.

    Messages and facts are kept by id, so that each is imported once.
    """

    format: str
    destination: Destination
    refused: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    people: list[ImportedPerson] = field(default_factory=list)
    messages: dict[str, ImportedMessage] = field(default_factory=dict)
    facts: dict[str, ImportedFact] = field(default_factory=dict)
    relations: dict[ImportedRelation, None] = field(default_factory=dict)
    links: list[ImportedLink] = field(default_factory=list)
    chats: dict[str, ImportedChat] = field(default_factory=dict)
    undecided_date: str = ""
    """A date of the file and how it is read, if no date in the file decides whether the day comes first."""

    def fact(self, place: str, content: str, *source: object, **fields: Any) -> str:
        """Add a fact and return its id, which is derived from its source.

        Args:
            fields: fields of `ImportedFact` and of its `Fact`.
        """
        identity = self.destination.id_of(self.format, *source, content)
        own = {name: fields.pop(name) for name in _OF_IMPORT & fields.keys()}
        fact = Fact(content=content, origin="import", id=identity, **fields)
        self.facts[identity] = ImportedFact(fact=fact, place=place, **own)
        return identity

    def close(self, id: str, reason: ClosedReason, ended: datetime | str | None = None) -> None:
        """Close a fact, unless the other memory had already closed it."""
        known = self.facts[id]
        if known.closed is None:
            self.facts[id] = replace(known, closed=reason, ended=known.ended if ended is None else ended)

    def message(self, place: str, message: Message) -> None:
        """Add a message under its id."""
        self.messages[message.id or ""] = ImportedMessage(message=message, place=place)

    def turn(self, place: str, message: Message, key: tuple[object, ...]) -> None:
        """Add a message of a chat in `chats`, under the id that it has in its session."""
        identity = self.id_in(message.session, key)
        self.messages[identity] = ImportedMessage(message=replace(message, id=identity), place=place, key=key)

    def id_in(self, session: str | None, key: tuple[object, ...]) -> str:
        """Return the id of a message in a session."""
        return self.destination.id_of(self.format, session, *key)

    def read(self, rows: Iterable[Placed], read: Callable[[str, Row], None]) -> None:
        """Read each row; rows that cannot be used are refused with their place and the reason."""
        for place, row in rows:
            try:
                read(place, row)
            except MALFORMED as error:
                self.refused.append(f"{place}: {error}")

    def read_source(self, source: Source, rows: Iterable[Placed], read: Callable[[str, Row], None]) -> Records:
        """Read the given rows or, if there are none, the lines of a source, and return the records."""
        rows = list(rows)
        if not rows:
            rows, self.refused = list(source.lines.rows), list(source.lines.refused)
        self.read(rows, read)
        return self


def wanted_owner(destination: Destination, owners: Collection[str]) -> str | None:
    """Return the owner whose memories are imported from a file; None means all, if they belong to one person.

    Raises:
        InvalidError: the memories belong to several people, and the destination's owner is not one of them.
    """
    if len(owners) <= 1:
        return None
    if destination.owner in owners:
        return destination.owner
    several = ", ".join(sorted(owners)[:10])
    raise InvalidError(f"the file holds memories of several people: {several}", hint="choose one with --owner NAME")


def check_owner(owner: str | None, *, wanted: str | None) -> None:
    """Raise InvalidError for a memory of another owner or, in a file of several people's, of an unknown one.

    Args:
        wanted: the result of `wanted_owner`.
    """
    if wanted is not None and owner is None:
        raise InvalidError("the memory names no owner, and the file holds memories of several people")
    if wanted is not None and owner != wanted:
        raise InvalidError(f"the memory belongs to another owner, {owner}")


def parse_time(given: object, *, name: str) -> datetime | str | None:
    """Read a time: ISO 8601 text, or Unix seconds or milliseconds.

    Text without an offset is UTC, as SQLite and most exports write it; a bare date stays text, for the owner's zone.

    Raises:
        InvalidError: the value is none of these.
    """
    if given is None or given == "":
        return None
    if isinstance(given, datetime):
        return given if given.tzinfo else given.replace(tzinfo=UTC)
    if isinstance(given, str):
        return _iso(given, name)
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InvalidError(f"{name}: {given!r} is not a time", hint="use ISO 8601 text or a Unix time")
    try:
        return datetime.fromtimestamp(given / 1_000 if abs(given) > _MILLISECONDS_FROM else given, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidError(f"{name}: {given!r} is outside the range of possible dates") from error


def _iso(given: str, name: str) -> datetime | str:
    text = given.strip()
    if len(text) == len("2026-01-15"):
        return text
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidError(f"{name}: {given[:60]!r} is not a time", hint="use ISO 8601 text") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def text_of(row: Row, *names: str) -> str | None:
    """Return the first of the named fields that is text and not blank."""
    return next((row[name] for name in names if isinstance(row.get(name), str) and row[name].strip()), None)


def required_text(row: Row, *names: str) -> str:
    """Return the first of the named fields that is text and not blank. Raises InvalidError if there is none."""
    found = text_of(row, *names)
    if found is None:
        raise InvalidError(f"the field {names[-1]} is missing or blank")
    return found


def picked(row: Row, *names: str) -> dict[str, Any]:
    """Return the named fields that a row has."""
    return {name: row[name] for name in names if row.get(name) is not None}


def label(given: object) -> str | None:
    """Return an id or a name as text; None if it is missing."""
    return None if given is None or given == "" else str(given)


def author(*names: object, unknown: str = UNKNOWN_PERSON) -> str:
    """Return the first name of an author that is not blank, or else `unknown`.

    A message without a speaker is the owner's, so a message of somebody else must always get one.
    """
    return next((text for name in names if (text := (label(name) or "").strip())), unknown)


def texts_of(given: object) -> tuple[str, ...]:
    """Return labels from a list, from a JSON list as text, or from text separated by commas."""
    if isinstance(given, str):
        given = _json(given) if given.strip().startswith("[") else given.strip().split(",")
    if not isinstance(given, list | tuple):
        return ()
    return tuple(dict.fromkeys(str(each).strip() for each in given if each is not None and str(each).strip()))


def object_of(given: object) -> Json:
    """Return a JSON object, or parse it from text; {} for anything else."""
    if isinstance(given, str) and given.strip().startswith("{"):
        given = _json(given)
    return given if isinstance(given, Mapping) else {}


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def clamped(given: object, least: float, most: float, *, otherwise: float) -> float:
    """Return a number limited to a range, or `otherwise` if the value is not a number."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        return otherwise
    return min(most, max(least, float(given)))


@cache
def vocabulary() -> Mapping[str, Mapping[str, Any]]:
    """Return the tables of `data/words.toml`."""
    return tomllib.loads((files(__package__) / "data/words.toml").read_text(encoding="utf-8"))


def entity_type(given: object) -> EntityType:
    """Return the entity type for another memory's word; "concept" if the word is unknown."""
    word, known = str(given or "person").strip().lower(), vocabulary()["entity_types"]
    return next((type_ for type_ in get_args(EntityType) if word in known.get(type_, ())), "concept")


def category_of(given: object) -> Category | None:
    """Return the category for another memory's word; None if it must be inferred from the text."""
    word = str(given or "").strip().lower()
    word = "preference" if word == "preferences" else word
    return next((category for category in get_args(Category) if category == word), None)
