"""What a caller asks: the request, its validation, and the plan of a search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, get_args
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.model import Category, Fusion, Json, NodeType
from ricordo.models.embedding.vectors import Embedded
from ricordo.retrieval.question import Complexity, Intent, complexity_of, intent_of
from ricordo.storage.values import Filter, Floor
from ricordo.text import index_terms, question_terms
from ricordo.text.dates import Interval, parse_instant
from ricordo.text.recalled import without_recalled

if TYPE_CHECKING:
    from ricordo.ports import Vector


MAX_LIMIT = 1_000

_TYPES: frozenset[str] = frozenset(get_args(NodeType)) | {"any"}
_CATEGORIES: frozenset[str] = frozenset(get_args(Category))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of `search` and `list`, unchecked."""

    text: str = ""
    type: str | None = None
    category: Category | Sequence[Category] | None = None
    entity: str | None = None
    tag: str | Sequence[str] | None = None
    where: Json | None = None
    session: str | None = None
    after: datetime | str | None = None
    before: datetime | str | None = None
    as_of: datetime | str | int | None = None
    archived: bool = False
    limit: int = 10
    trace: bool = False
    words_only: bool = False
    only_relevant: bool = False
    why_not: str | None = None


def query_of(request: Request, *, now: int, zone: ZoneInfo) -> Query:
    """Validate a request and return it as a query.

    Raises:
        InvalidError: an argument does not fit; the message names it.
    """
    if not isinstance(request.text, str):
        raise InvalidError(f"text must be text, not {type(request.text).__name__}")
    if request.type is not None and (not isinstance(request.type, str) or request.type not in _TYPES):
        raise InvalidError(f"type: {request.type!r} is unknown", hint=f"choose one of {', '.join(sorted(_TYPES))}")
    after = _instant("after", request.after, now=now, zone=zone)
    before = _instant("before", request.before, now=now, zone=zone)
    if after is not None and before is not None and after > before:
        raise InvalidError(f"after: {request.after} is later than before: {request.before}", hint="swap the two")
    return Query(
        # A question with half a character is still a question; what was recalled before asks for nothing.
        text=without_recalled(request.text.encode("utf-8", "replace").decode(), " "),
        type=request.type,
        categories=_categories(request.category),
        entity=_text("entity", request.entity),
        tags=_several(request.tag, name="tag"),
        where=_where(request.where),
        session=_text("session", request.session),
        after=after,
        before=before,
        archived=bool(request.archived),
        limit=checked_limit(request.limit),
        words_only=request.words_only,
        only_relevant=bool(request.only_relevant),
        why_not=_text("why_not", request.why_not),
    )


def checked_limit(limit: int) -> int:
    """Raises:
    InvalidError: it is not a whole number from 1 to 1,000.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidError(f"limit: {limit!r} is not a whole number from 1 to {MAX_LIMIT:,}")
    return limit


def checked_name(name: str) -> str:
    """Raises:
    InvalidError: it is no text, or blank.
    """
    checked = _text("name", name)
    if checked is None:
        raise InvalidError("name must be text that is not blank")
    return checked


def checked_position(position: int | None, *, name: str) -> int | None:
    """Raises:
    InvalidError: it is no whole number from 1 that a store can count to.
    """
    if position is None:
        return None
    if isinstance(position, bool) or not isinstance(position, int) or not 1 <= position < 1 << 62:
        raise InvalidError(f"{name}: {position!r} is not a whole number from 1")
    return position


def _instant(name: str, value: datetime | str | None, *, now: int, zone: ZoneInfo) -> int | None:
    return None if value is None else parse_instant(value, now=now, zone=zone, field=name)


def _categories(given: Category | Sequence[Category] | None) -> tuple[Category, ...]:
    names = _several(given, name="category")
    for name in names:
        if name not in _CATEGORIES:
            raise InvalidError(f"category: {name!r} is unknown", hint=f"choose from {', '.join(get_args(Category))}")
    return names  # type: ignore[return-value]  # checked just now


def _several(given: str | Sequence[str] | None, *, name: str) -> tuple[str, ...]:
    if not isinstance(given, str | Sequence | None):
        raise InvalidError(f"{name} must be text or a list of texts")
    values = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    return tuple(_text(name, value) or "" for value in values)


def _text(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidError(f"{name} must be text that is not blank")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(f"{name} has an unpaired surrogate at character {error.start}") from error
    return value


def _where(given: Json | None) -> Json | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidError("where must be a JSON object", hint="pass a dict with text keys")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
            raise InvalidError("where: keys must be text and values text, numbers, true, false or null")
    try:
        json.dumps(dict(given), allow_nan=False).encode()
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidError(f"where cannot be written as JSON: {error}") from error
    return given or None


KNOWLEDGE, WAITING, CONSOLIDATED = "k", "e", "c"

DEFAULT_SHELVES = (KNOWLEDGE, WAITING)

_SHELVES: Mapping[str | None, tuple[str, ...]] = {
    None: DEFAULT_SHELVES,
    "episodic": (WAITING, CONSOLIDATED),
    "any": (KNOWLEDGE, WAITING, CONSOLIDATED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question with its conditions. Instants are Unix milliseconds.

    `with_leading`: where anything is relevant, what is ranked first is told with it.
    """

    text: str
    type: str | None = None
    categories: tuple[Category, ...] = ()
    entity: str | None = None
    tags: tuple[str, ...] = ()
    where: Json | None = None
    session: str | None = None
    after: int | None = None
    before: int | None = None
    archived: bool = False
    limit: int = 10
    words_only: bool = False
    only_relevant: bool = False
    with_leading: bool = False
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How signals become a score: sums of values or of reciprocal ranks, and which signals are left out."""

    fusion: Fusion = "score"
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query ready to run: its terms, time, intent, and its vector for each model that can answer.

    `floor` is what chance reaches, where only what is relevant is asked for.
    """

    query: Query
    now: int
    terms: tuple[str, ...]
    ignored: tuple[str, ...]
    interval: Interval | None
    vectors: Mapping[int, Embedded] = field(default_factory=dict)
    intent: Intent = "general"
    complexity: Complexity = "simple"
    weighing: Weighing = Weighing()
    floor: Floor | None = None

    @property
    def shelves(self) -> tuple[str, ...]:
        """Return which parts of the memory may answer: knowledge and unconsolidated episodes, unless a type is asked
        for.
        """
        return _SHELVES.get(self.query.type, (KNOWLEDGE,))

    @property
    def question_vectors(self) -> dict[int, Vector]:
        """Return the question's vector by model, the active model first."""
        return {model: each.vector for model, each in self.vectors.items() if each.vector is not None}

    @property
    def worded(self) -> Embedded | None:
        """Return the question as embedded by the first model that gives vectors of words."""
        return next((each for each in self.vectors.values() if each.words is not None), None)

    @property
    def word_model(self) -> int:
        """Return the key of that model; 0 if there is none."""
        return next((model for model, each in self.vectors.items() if each.words is not None), 0)

    def filter(self, entity: int | None) -> Filter:
        """Return the conditions as a filter of the store."""
        query = self.query
        types: tuple[NodeType, ...] = ()
        if query.type not in (None, "any", "episodic"):
            types = (query.type,)  # type: ignore[assignment]  # checked where it came in
        return Filter(
            types=types,
            shelves=self.shelves,
            categories=query.categories,
            entity=entity,
            tags=query.tags,
            where=query.where,
            session=query.session,
            after=query.after,
            before=query.before,
            archived=query.archived,
        )


def make_plan(
    query: Query,
    *,
    now: int,
    interval: Interval | None,
    vectors: Mapping[int, Embedded],
    intent: Intent | None = None,
    weighing: Weighing = Weighing(),
) -> Plan:
    """Make a plan. Pure. The words that name a time leave the question: "what did we do in May" is not about the word
    May.

    Args:
        intent: what the question asks for; by its words where this is None.
    """
    text = query.text if interval is None else query.text.replace(interval.text, " ", 1)
    terms = question_terms(text)
    ignored = dict.fromkeys(index_terms(query.text[:2_000]))
    for term in terms:
        ignored.pop(term, None)
    return Plan(
        query=query,
        now=now,
        terms=tuple(terms),
        ignored=tuple(ignored),
        interval=interval,
        vectors=vectors,
        intent=intent or intent_of(query.text),
        complexity=complexity_of(query.text),
        weighing=weighing,
    )
