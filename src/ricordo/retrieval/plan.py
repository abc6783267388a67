"""What a question asks for, worked out before the store is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ricordo.model import Category, Fusion, Json, NodeType
from ricordo.models.embedding.vectors import Embedded
from ricordo.retrieval.intent import Complexity, Intent, complexity_of, intent_of
from ricordo.storage.values import Filter, Floor
from ricordo.text import index_terms, question_terms
from ricordo.text.dates import Interval

if TYPE_CHECKING:
    from ricordo.ports import Vector

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
    """How signals become a score: as sums of measures or of reciprocal ranks, and which are left out."""

    fusion: Fusion = "score"
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query made ready: its terms, its time, what it asks for, and its vector for each model that can answer.

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
        """Which parts of the memory may answer: knowledge and what waits to become it, unless a type is asked for."""
        return _SHELVES.get(self.query.type, (KNOWLEDGE,))

    @property
    def question_vectors(self) -> dict[int, Vector]:
        """The question's vector by model, where there is one; the active model first."""
        return {model: each.vector for model, each in self.vectors.items() if each.vector is not None}

    @property
    def worded(self) -> Embedded | None:
        """What the first model says that gave vectors of the question's words."""
        return next((each for each in self.vectors.values() if each.words is not None), None)

    @property
    def word_model(self) -> int:
        """The key of that model; 0 if there is none."""
        return next((model for model, each in self.vectors.items() if each.words is not None), 0)

    def filter(self, entity: int | None) -> Filter:
        """The conditions as the store knows them."""
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
    """Pure. The words that name the time leave the question: "what did we do in May" is not about the word May.

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
