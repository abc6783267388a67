"""What every importer makes of its file: people, messages, facts, relations and links, each with its place."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from ricordo.errors import InvalidError
from ricordo.model import Category, ClosedReason, EdgeType, EntityType, Fact, Json, Message

_MILLISECONDS_FROM = 1e11
"""A Unix time above this is in milliseconds: as seconds it would lie beyond the year 5138."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody or something with a name. `relation` is what it is to the owner."""

    name: str
    place: str
    type: EntityType = "person"
    aliases: tuple[str, ...] = ()
    relation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One turn of a conversation. Its message has an id that is made from its source."""

    message: Message
    place: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One piece of knowledge. Its fact has an id that is made from its source.

    `at` is when it was observed; `ended` when it stopped holding in the world; `closed` why the other memory
    had put it away, if it had; `in_chat` whether it is the present chat's and not a person's.
    """

    fact: Fact
    place: str
    at: datetime | str | None = None
    closed: ClosedReason | None = None
    ended: datetime | str | None = None
    score: float = 0.0
    decay_rate: float | None = None
    in_chat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """What somebody is to somebody, by name: `target` is the `predicate` of `source`."""

    source: str
    predicate: str
    target: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """That one memory rests on another (`derived_from`) or took its place (`supersedes`), by id."""

    source: str
    target: str
    type: EdgeType
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """All that a file holds, in the order it is stored, and why some of it cannot be used."""

    format: str
    people: tuple[Person, ...] = ()
    messages: tuple[Said, ...] = ()
    facts: tuple[Known, ...] = ()
    ties: tuple[Tie, ...] = ()
    links: tuple[Link, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For whom a file is read: ids of two owners never meet."""

    owner: str
    chat: str

    def id_of(self, format: str, *source: object) -> str:
        """The id of something by what its source says of it: the same again gets the same."""
        told = json.dumps([f"{self.owner}/{self.chat}", format, *source], default=str)
        return f"import-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def mine(reader: Reader, owners: Collection[str]) -> str | None:
    """Whose memories of a file are the reader's: None stands for all, where they are of one person.

    Raises:
        InvalidError: they are of several people, and none of them is the reader.
    """
    if len(owners) <= 1:
        return None
    if reader.owner in owners:
        return reader.owner
    several = ", ".join(sorted(owners)[:10])
    raise InvalidError(f"the file holds memories of several people: {several}", hint="say whose with --owner NAME")


def moment(given: object, *, name: str) -> datetime | str | None:
    """A time as files have it: ISO 8601 text, or Unix seconds or milliseconds. Text without an offset is UTC, as
    SQLite and most exports write it; a bare date is left to the reader's own zone.

    Raises:
        InvalidError: it is something else.
    """
    if given is None or given == "":
        return None
    if isinstance(given, datetime):
        return given if given.tzinfo else given.replace(tzinfo=UTC)
    if isinstance(given, str):
        return _iso(given, name)
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InvalidError(f"{name}: {given!r} is no time", hint="ISO 8601 text or a Unix time is read")
    try:
        return datetime.fromtimestamp(given / 1_000 if abs(given) > _MILLISECONDS_FROM else given, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidError(f"{name}: {given!r} lies outside the calendar") from error


def _iso(given: str, name: str) -> datetime | str:
    text = given.strip()
    if len(text) == len("2026-01-15"):
        return text
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidError(f"{name}: {given[:60]!r} is no time", hint="ISO 8601 text is read") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def text_of(row: Mapping[str, Any], *names: str) -> str | None:
    """The first of some fields that holds text which is not blank."""
    return next((row[name] for name in names if isinstance(row.get(name), str) and row[name].strip()), None)


def label(given: object) -> str | None:
    """An id, a name or the like as text; None where there is none."""
    return None if given is None or given == "" else str(given)


def texts_of(given: object) -> tuple[str, ...]:
    """A list of labels: a JSON list, the text of one, or words separated by commas."""
    if isinstance(given, str):
        text = given.strip()
        if text.startswith("["):
            try:
                given = json.loads(text)
            except (ValueError, RecursionError):
                given = None
        else:
            given = text.split(",")
    if not isinstance(given, list | tuple):
        return ()
    return tuple(dict.fromkeys(str(each).strip() for each in given if each is not None and str(each).strip()))


def object_of(given: object) -> Json:
    """A JSON object, or the text of one; empty where it is neither."""
    if isinstance(given, str) and given.strip().startswith("{"):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}


def number_in(given: object, least: float, most: float, *, otherwise: float) -> float:
    """A number, brought within bounds; `otherwise` where there is none."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        return otherwise
    return min(most, max(least, float(given)))


_ENTITY_TYPES: Mapping[str, EntityType] = {
    "person": "person",
    "people": "person",
    "human": "person",
    "user": "person",
    "contact": "person",
    "customer": "person",
    "friend": "person",
    "family": "person",
    "character": "person",
    "project": "project",
    "product": "project",
    "repository": "project",
    "codebase": "project",
    "org": "organization",
    "organization": "organization",
    "organisation": "organization",
    "company": "organization",
    "team": "organization",
    "institution": "organization",
    "employer": "organization",
    "school": "organization",
    "place": "place",
    "location": "place",
    "city": "place",
    "country": "place",
    "tool": "tool",
    "software": "tool",
    "library": "tool",
    "framework": "tool",
    "technology": "tool",
    "service": "tool",
    "programming_language": "tool",
}


def entity_type(given: object) -> EntityType:
    """The kind of thing another memory's word means; a concept where it is none of ours."""
    return _ENTITY_TYPES.get(str(given or "person").strip().lower(), "concept")


_CATEGORIES: Mapping[str, Category] = {
    "preference": "preference",
    "identity": "identity",
    "relationship": "relationship",
    "knowledge": "knowledge",
    "context": "context",
    "event": "event",
    "task": "task",
    "observation": "observation",
    "reflection": "reflection",
    "summary": "summary",
    "preferences": "preference",
}


def category_of(given: object) -> Category | None:
    """The category another memory's word means; None leaves it to be told from the text."""
    return _CATEGORIES.get(str(given or "").strip().lower())
