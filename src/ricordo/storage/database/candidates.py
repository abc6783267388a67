"""Find candidates of a search in the database. `ricordo.storage.candidates` defines the values."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from math import exp
from typing import TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from ricordo.model import Scope
from ricordo.storage.candidates import (
    ALWAYS,
    ASSOCIATES_EACH,
    BY_DAYS,
    BY_ENTITY,
    BY_LINKS,
    BY_MEANING,
    BY_STATES,
    BY_TASKS,
    BY_TIME,
    BY_WORDS,
    CAUSAL_EDGES,
    CAUSAL_FADE,
    CAUSAL_NODES,
    COMMON_LEAST,
    COMMON_SHARE,
    ENTITY_WALK,
    EXPANDED,
    OF_A_TIME,
    REACH,
    STARTS,
    CandidateQuery,
    CandidateRows,
    CandidateSet,
    Shortlist,
    Turns,
    in_passages,
    inverse_frequency,
    open_tasks,
    spread_over,
)
from ricordo.storage.database import turns
from ricordo.storage.database.embeddings import (
    Corpus,
    EmbeddingModels,
    VectorShelves,
    mean_vector,
    passage_cosines,
    word_vectors,
    words_asked,
)
from ricordo.storage.database.entities import Graph
from ricordo.storage.database.nodes import LazyNodes, Nodes, Statistics
from ricordo.storage.database.statements import Asked, Statements, Unchanged
from ricordo.storage.database.suppression import Suppression
from ricordo.storage.database.turns import KEYS_BELOW, Holders, TurnTable, TurnTables
from ricordo.storage.database.vector_math import numbers_in, runs_of
from ricordo.storage.values import Filter, Weights
from ricordo.text.statement import MAX_STATEMENT_CHARS

Floats = NDArray[np.float32]
Keys = NDArray[np.int64]

T = TypeVar("T")
Found = dict[int, float]

_CONSOLIDATED, _EPISODES, _KNOWLEDGE = "c", "e", "k"


class Cache:
    """What the readers of a store keep from one snapshot to the next. Each part is created when first needed."""

    vectors = cached_property(lambda _: VectorShelves())
    turns = cached_property(lambda _: TurnTables())

    def news(self, spaces: tuple[int, ...], corpora: Sequence[Corpus]) -> list[Asked]:
        """Return what a caller's search will ask if anything was written since the last one."""
        return [*self.turns.news(spaces), *(each for corpus in corpora for each in self.vectors.news(corpus))]


class SearchReader(Statements):
    """One snapshot of the database, with the groups and caches that a search reads."""

    nodes = cached_property(Nodes)
    graph = cached_property(Graph)
    suppression = cached_property(Suppression)
    models = cached_property(EmbeddingModels)
    statistics = cached_property(Statistics)

    def __init__(
        self, connection: apsw.Connection, cache: Cache | None = None, *, unchanged: Unchanged | None = None
    ) -> None:
        """
        Args:
            unchanged: answers that still hold; None if the store may change during this transaction.
        """
        super().__init__(connection, unchanged=unchanged)
        self._cache = cache or Cache()

    @property
    def vector_shelves(self) -> VectorShelves:
        """The vector indexes that the readers of this process share."""
        return self._cache.vectors

    @contextmanager
    def turns(self, spaces: tuple[int, ...], *, shared: bool = True) -> Iterator[TurnTable]:
        """Yield a caller's cached turns, updated to this snapshot, or a separate table if the cache is already ahead.

        Args:
            spaces: the spaces that the caller sees.
            shared: False to look at closed turns, which have no place in a session's order.
        """
        if shared:
            table = self._cache.turns.of(spaces)
            with table.lock:
                if table.follow(self, spaces):
                    try:
                        yield table
                    except BaseException:  # the table may be incomplete
                        table.drop(changes=-1, last=0)
                        raise
                    return
        own = TurnTable(closed=not shared)
        own.follow(self, spaces)
        yield own

    def has_room_for_turns(self, count: int) -> bool:
        """Return whether so many turns can be cached without evicting other callers' turns."""
        return self._cache.turns.count + count <= turns.KEPT_MOST

    def postings(
        self, scope: Scope, shelves: Sequence[str], terms: Sequence[str], *, archived: bool, most: int
    ) -> list[Keys]:
        """Return for each index term the nodes that hold it, ascending, at most `most` each."""
        endings = self.once(
            ("endings", scope, *shelves, archived), lambda: self._endings(scope, shelves, archived=archived)
        )
        if not endings:
            return [np.empty(0, np.int64) for _ in terms]
        if not archived and self._all_lie_on(scope, shelves):
            with self.turns(self.visible(scope)) as table:
                held = table.holding(terms, self.visible(scope))
            if held is not None:
                return [keys[:most] for keys in held]
        name = "archive_postings" if archived else "live_postings"
        matches = [" OR ".join([f'"{term}{ending}"' for ending in endings]) for term in terms]
        texts = self.values(name, [{"match": match, "most": most} for match in matches])
        return list(map(numbers_in, texts))

    def _all_lie_on(self, scope: Scope, shelves: Sequence[str]) -> bool:
        """Return whether everything a caller may see is on these shelves."""
        counts = self.rows_of_store("shelf_counts", self.scoped(scope))
        return all(shelf in shelves for _, shelf, nodes, _ in counts if nodes)

    def _endings(self, scope: Scope, shelves: Sequence[str], *, archived: bool) -> list[str]:
        """Return the endings of index terms for the visible, non-empty partitions of these shelves: searching an empty
        partition costs as much as a full one.
        """
        if archived:
            return [f"·{space}{shelf}" for space in self.visible(scope) for shelf in shelves]
        counts = self.rows_of_store("shelf_counts", self.scoped(scope))
        return [f"·{space}{shelf}" for space, shelf, nodes, _ in counts if nodes and shelf in shelves]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of the question: its inverse frequency, and the nodes that hold it (cut off if the term is common)."""

    worth: float
    keys: Keys
    is_common: bool


@dataclass(slots=True)
class _Search:
    """The state of a query that is answered stage by stage until its deadline."""

    snapshot: SearchReader
    query: CandidateQuery
    spaces: tuple[int, ...]
    allowed: Keys | None
    terms: Mapping[str, _Term] = field(default_factory=dict)
    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)

    @property
    def shelves(self) -> tuple[str, ...]:
        return self.query.filter.shelves

    @property
    def archived(self) -> bool:
        return self.query.filter.archived

    def stage(self, name: str, work: Callable[[], T], otherwise: T) -> T:
        """Return the result of `work`, or `otherwise` if the deadline comes first."""
        started = time.perf_counter()
        try:
            return self.snapshot.until(self.query.until, work)
        except TimeoutError:
            self.degraded.append(f"{name}: no time left")
            return otherwise
        finally:
            self.timings_ms[name] = (time.perf_counter() - started) * 1_000

    def corpus(self, model: int, vector: NDArray[np.float32]) -> Corpus:
        """Return the vectors of a model that this search reads."""
        return Corpus(model, len(vector), self.spaces, self.shelves)

    def permitted(self, keys: Keys) -> Keys:
        """Return the keys that match the filter, in their order."""
        return keys if self.allowed is None else keys[np.isin(keys, self.allowed)]


def candidates(snapshot: SearchReader, query: CandidateQuery) -> CandidateSet:
    """Answer a query from one snapshot."""
    filter_, scope = query.filter, query.scope
    # The indexes are already divided by space and shelf, so these conditions need no check.
    is_plain = filter_ == Filter(shelves=filter_.shelves)
    allowed = None if is_plain else snapshot.nodes.matching(scope, filter_)
    if query.vectors:
        snapshot.vector_shelves.keep_only({model.key for model in snapshot.models.known() if model.state != "retiring"})
    search = _Search(snapshot, query, snapshot.visible(scope), allowed)
    nothing: dict[str, _Term] = {}
    search.terms = search.stage("terms", lambda: _terms(search), nothing)
    found: dict[str, Found] = {}
    for name, find in _FINDERS.items():
        if name in query.strategies:
            found[name] = search.stage(name, lambda find=find: find(search), {})  # type: ignore[misc]
    for name, follow in _FOLLOWERS.items():
        if name in query.strategies:
            found[name] = search.stage(name, lambda follow=follow: follow(search, found), {})  # type: ignore[misc]
    rows = search.stage("reading", lambda: _read(search, found), None)
    total, characters = snapshot.statistics.size(scope, search.shelves)
    probe = query.probe
    return CandidateSet(
        total=total,
        characters=characters,
        frequencies={term: len(entry.keys) for term, entry in search.terms.items()},
        found=found,
        rows=rows,
        probe_matches=probe is None or allowed is None or probe in allowed,
        probe_similarity=None if probe is None else _similarity(search, probe),
        timings_ms=search.timings_ms,
        degraded=tuple(search.degraded),
    )


def shortlist(
    snapshot: SearchReader, scope: Scope, keys: Sequence[int], *, archived: bool, now: int, model: int = 0
) -> Shortlist:
    """Read the details of the best candidates."""
    kinds, has_spans = snapshot.graph.kinds(), snapshot.rows_of_store("withheld_spans_any")[0][0]
    has_versions, has_lines = kinds.versions and not archived, kinds.lines and not archived
    listed = json.dumps(list(keys))
    asked = [("nodes_by_key", snapshot.scoped(scope, keys=listed))]
    asked += [(name, {"keys": listed}) for name in _OF_VERSIONS] if has_versions else []
    asked += [("lines_of", {"nodes": listed, "most": MAX_STATEMENT_CHARS})] if has_lines else []
    asked += [("evidence_of", snapshot.scoped(scope, nodes=listed))] if kinds.versions else []
    asked += [("withheld_spans_of", {"nodes": listed})] if has_spans else []
    snapshot.ahead(*asked)
    known = snapshot.nodes.lazily(scope, keys)
    weights = known.weights()
    if not archived:
        weights = {key: each for key, each in weights.items() if not _is_expired(each, now)}
    successors: dict[int, int] = {}
    versions: list[tuple[int, int]] = []
    if has_versions:
        closed = [key for key, each in weights.items() if not each.is_live]
        successors = {key: newest for key in closed if (newest := snapshot.nodes.successor(key))}
        versions = snapshot.nodes.succession([*keys, *successors.values()])
        ranked = {*weights, *successors.values()}
        versions = [each for each in versions if not ranked.isdisjoint(each)]
    others = snapshot.nodes.lazily(scope, sorted({*successors.values(), *(newer for newer, _ in versions)} - {*keys}))
    newer = [key for key, each in others.weights().items() if each.is_live and not _is_expired(each, now)]
    nodes = (known | others).of([*(key for key in keys if key in weights), *successors.values(), *newer])
    facts = set(nodes.knowledge())
    lines = snapshot.graph.lines([*keys, *others]) if facts and has_lines else []
    evidence = snapshot.nodes.evidence(scope, [*keys, *others]) if facts and kinds.versions else {}
    return Shortlist(
        nodes=nodes,
        weights=weights,
        shown=snapshot.suppression.shown(nodes) if has_spans else {},
        statements={key: (about, line, since) for key, about, line, since in lines if key in nodes},
        successors=successors,
        versions=versions,
        decided={frozenset(pair) for pair in snapshot.rows("decided_among", {"keys": listed})}
        if has_versions
        else set(),
        evidence={key: ids for key, ids in evidence.items() if key in facts},
        conflicts=snapshot.rows("reviews_against", {"keys": listed}) if has_versions else (),
        vectors=_vectors_of(snapshot, scope, model, nodes),
    )


_OF_VERSIONS = "succession", "decided_among", "reviews_against"


def _is_expired(weights: Weights, now: int) -> bool:
    return weights.expires_at is not None and weights.expires_at <= now


def _vectors_of(snapshot: SearchReader, scope: Scope, model: int, nodes: LazyNodes) -> dict[int, Floats]:
    """Return the vectors, by one model, of the nodes that are compared with each other."""
    facts, stated = nodes.knowledge(), nodes.statements()
    known = next((each for each in snapshot.models.known() if each.key == model), None)
    if known is None or not stated:
        return {}
    shelves = (_KNOWLEDGE,) if len(facts) == len(stated) else (_KNOWLEDGE, _EPISODES, _CONSOLIDATED)
    corpus = Corpus(model, known.dimension, snapshot.visible(scope), shelves)
    rows = snapshot.vector_shelves.vectors(snapshot, corpus, np.array(sorted(stated), np.int64))
    return {key: row for key, row in zip(sorted(stated), rows, strict=True) if not np.isnan(row[0])}


def _terms(search: _Search) -> dict[str, _Term]:
    """Return the terms of the question with statistics over what this caller sees."""
    snapshot, query = search.snapshot, search.query
    total, _ = snapshot.statistics.size(query.scope, search.shelves)
    most = max(COMMON_LEAST, int(total * COMMON_SHARE))
    postings = snapshot.postings(query.scope, search.shelves, query.terms, archived=search.archived, most=most + 1)
    if search.archived and search.allowed is not None:  # quarantined nodes are closed as well, but must not count
        postings = [keys[np.isin(keys, search.allowed)] for keys in postings]
    return {
        term: _Term(inverse_frequency(len(keys), total), keys, len(keys) > most)
        for term, keys in zip(query.terms, postings, strict=True)
    }


def _by_words(search: _Search) -> Found:
    distinct, sums = _worth_by_words(search)
    if search.allowed is not None:
        kept = np.isin(distinct, search.allowed)
        distinct, sums = distinct[kept], sums[kept]
    best = (-sums[::-1]).argsort(kind="stable")[:BY_WORDS]  # of equal sums, the newest first
    places = len(sums) - 1 - best
    return dict(zip(distinct[places].tolist(), sums[places].tolist(), strict=True))


def _worth_by_words(search: _Search) -> tuple[Keys, NDArray[np.float64]]:
    """Return the memories that hold words of the question, ascending, and the sums of what these words are worth."""
    held = [term for term in search.terms.values() if len(term.keys)]
    used = [term for term in held if not term.is_common] or held
    if not used:
        return np.empty(0, np.int64), np.empty(0)
    keys = np.concatenate([term.keys for term in used])
    order = keys.argsort(kind="stable")  # fast: it merges sorted runs
    ordered = keys.take(order)
    begins = runs_of(ordered)
    distinct = ordered.take(begins)
    each = np.array([term.worth for term in used]).repeat([len(term.keys) for term in used])
    return distinct, np.add.reduceat(each.take(order), begins)


def _by_meaning(search: _Search) -> Found:
    """Return the nearest vectors. While the store changes its model, both models count, and the better score wins."""
    found: Found = {}
    for model, vector in search.query.vectors.items() if not search.archived else ():
        keys, scores = search.snapshot.vector_shelves.nearest(
            search.snapshot, search.corpus(model, vector), vector, limit=BY_MEANING, among=search.allowed
        )
        nearest = dict(zip(keys.tolist(), scores.tolist(), strict=True))
        found |= {key: max(score, found.get(key, score)) for key, score in nearest.items()} if found else nearest
    return found


def _by_time(search: _Search) -> Found:
    span, query = search.query.interval, search.query
    if span is None:
        return {}
    anybody = replace(query.filter, entity=None)
    within = search.snapshot.nodes.within(query.scope, anybody, after=span[0], before=span[1], most=OF_A_TIME)
    within = search.permitted(within)
    holders, sums = _worth_by_words(search)
    places = np.minimum(holders.searchsorted(within), max(0, len(holders) - 1))
    worth = np.where(holders.take(places) == within, sums.take(places), 0.0) if len(holders) else np.zeros(len(within))
    best = np.lexsort((spread_over(len(within)), -worth))[:BY_TIME]
    return dict.fromkeys(within[best].tolist(), 1.0)


def _by_entity(search: _Search) -> Found:
    worth: Found = {}
    for key in search.query.entities if not search.archived else ():
        for near in search.snapshot.graph.near_entity(search.query.scope, key, walk=ENTITY_WALK):
            if near.shelf in search.shelves:
                worth[near.key] = near.confidence * exp(0.2 * near.score)
    return _strongest(search, worth, BY_ENTITY)


def _by_tasks(search: _Search) -> Found:
    query = search.query
    if not query.tasks:
        return {}
    asked = open_tasks(query.filter)
    within = search.snapshot.nodes.within(query.scope, asked, after=ALWAYS[0], before=ALWAYS[1], most=BY_TASKS)
    return dict.fromkeys(search.permitted(within).tolist(), 1.0)


def _by_days(search: _Search) -> Found:
    query, days = search.query, search.query.days
    if days is None or search.archived:
        return {}
    listed = search.snapshot.postings(
        query.scope, search.shelves, list(chain.from_iterable(days)), archived=False, most=OF_A_TIME
    )
    postings, nothing = iter(listed), np.empty(0, np.int64)
    months, numbers, weekdays = (np.unique(np.concatenate((nothing, *islice(postings, len(terms))))) for terms in days)
    dated = np.intersect1d(months, numbers) if days.numbers else months
    latest = search.permitted(np.union1d(dated, weekdays))[: -BY_DAYS - 1 : -1]
    return dict.fromkeys(latest.tolist(), 1.0)


def _by_states(search: _Search) -> Found:
    query = search.query
    held = [search.terms[term].keys for term in query.states if len(search.terms[term].keys)]
    if not held or search.archived:
        return {}
    anybody = replace(query.filter, entity=None)
    within = search.snapshot.nodes.within(query.scope, anybody, after=ALWAYS[0], before=ALWAYS[1], most=OF_A_TIME)
    latest = search.permitted(within[np.isin(within, np.concatenate(held))])[:BY_STATES]
    return dict.fromkeys(latest.tolist(), 1.0)


def _causal(search: _Search, found: Mapping[str, Found]) -> Found:
    """Return causes and effects of the best candidates."""
    if not search.snapshot.graph.kinds().causal:
        return {}
    front = _starts(found)
    walked, strengths = set(front), Found()
    for _ in range(search.query.depth):
        if not front or len(walked) >= CAUSAL_NODES:
            break
        steps = search.snapshot.graph.causes_and_effects(search.query.scope, front, most=CAUSAL_EDGES)
        reached: Found = {}
        for step in steps:
            strength = CAUSAL_FADE * step.weight * front[step.origin]
            reached[step.key] = max(strength, reached.get(step.key, 0.0))
            if step.shelf in search.shelves:
                strengths[step.key] = max(strength, strengths.get(step.key, 0.0))
        front = {key: strength for key, strength in reached.items() if key not in walked}
        walked |= front.keys()
    return _strongest(search, strengths, BY_LINKS)


def _associates(search: _Search, found: Mapping[str, Found]) -> Found:
    """Return memories that proved useful together with the best candidates."""
    if not search.snapshot.graph.kinds().associates:
        return {}
    starts, strengths = _starts(found), Found()
    for step in search.snapshot.graph.associates(search.query.scope, starts, each=ASSOCIATES_EACH):
        if step.shelf in search.shelves:
            strengths[step.key] = max(step.weight * starts[step.origin], strengths.get(step.key, 0.0))
    return _strongest(search, strengths, BY_LINKS)


def _starts(found: Mapping[str, Found]) -> Found:
    starts: Found = {}
    for keys in found.values():
        for place, key in enumerate(islice(keys, STARTS)):
            starts[key] = max(1 - place / STARTS, starts.get(key, 0.0))
    return starts


def _strongest(search: _Search, strengths: Found, most: int) -> Found:
    if search.allowed is not None and strengths:
        keys = search.permitted(np.array(list(strengths), np.int64)).tolist()
    else:
        keys = list(strengths)
    return {key: strengths[key] for key in sorted(keys, key=lambda key: (-strengths[key], -key))[:most]}


_FINDERS: Mapping[str, Callable[[_Search], Found]] = {
    "words": _by_words,
    "meaning": _by_meaning,
    "time": _by_time,
    "entity": _by_entity,
    "tasks": _by_tasks,
    "days": _by_days,
    "states": _by_states,
}
_FOLLOWERS: Mapping[str, Callable[[_Search, Mapping[str, Found]], Found]] = {
    "causal": _causal,
    "associates": _associates,
}


def _read(search: _Search, found: Mapping[str, Found]) -> CandidateRows | None:
    """Read the candidates and the turns around them."""
    chosen = np.fromiter(chain.from_iterable(found.values()), np.int64)
    if not len(chosen):
        return None
    best = np.fromiter(islice(found.get("words", ()), EXPANDED), np.int64)
    namings, model, width = search.query.namings, search.query.word_model, search.query.word_width
    linked, worded = list[Asked](), list[Asked]()

    def along(held: Keys) -> list[Asked]:
        linked[:] = [("linked_around", _linked_to(held, naming.entities)) for naming in namings]
        worded[:] = [("word_vectors_around", words_asked(model, held))] if width else []
        return linked + worded

    whole, turns = _turns(search, chosen, best, along)
    if not turns:
        return None
    read, size = in_passages(whole, turns)
    if not linked:
        linked = [("linked_to", _linked_to(read.keys[:size], naming.entities)) for naming in namings]
    if not worded and width:
        worded = [("word_vectors_of", words_asked(model, np.unique(read.keys)))]
    asked = linked + worded
    several = np.unique(read.keys[read.several])
    for each, vector in search.query.vectors.items() if len(several) else ():
        corpus = search.corpus(each, vector)
        asked += search.snapshot.vector_shelves.passages(search.snapshot, corpus, several)[1]
    search.snapshot.ahead(*asked)
    return CandidateRows(
        turns=read,
        size=size,
        counts=read.counts(tuple(search.terms)),
        cosines=_cosines(search, read),
        about=_about(search, read.keys[:size], linked),
        words=word_vectors(search.snapshot, worded[0], read, width=width) if worded else None,
        directions=_directions(search, read.keys[:size]) if search.query.directions else (),
    )


def _turns(search: _Search, chosen: Keys, best: Keys, along: Callable[[Keys], Sequence[Asked]]) -> tuple[Turns, int]:
    """Return the candidates and the turns around them, and the number of candidates. `along` is as in `around`."""
    snapshot, shelves = search.snapshot, search.shelves
    # Consolidated turns appear around others, but are candidates only if their shelf is asked for.
    has_hidden = _CONSOLIDATED not in shelves and snapshot.statistics.size(search.query.scope, (_CONSOLIDATED,))[0] > 0
    with snapshot.turns(search.spaces, shared=not search.archived) as table:
        return table.around(
            snapshot,
            chosen,
            best,
            reach=REACH,
            allowed=search.allowed,
            spaces=search.spaces,
            shelves=shelves if has_hidden else None,
            along=along,
        )


def _linked_to(keys: Keys, entities: Sequence[int]) -> dict[str, str]:
    return {"nodes": json.dumps(keys.tolist()), "entities": json.dumps(entities)}


def _about(search: _Search, keys: Keys, asked: Sequence[Asked]) -> NDArray[np.bool_]:
    about = np.zeros((len(asked), len(keys)), np.bool_)
    for row, each in enumerate(asked):
        linked = {key for (key,) in search.snapshot.rows(*each)}
        about[row] = np.fromiter((key in linked for key in keys.tolist()), np.bool_, len(keys))
    return about


def _cosines(search: _Search, turns: Turns) -> Floats:
    """Return the cosine of each passage. A memory with one passage has one vector; the placeholder row stays 0."""
    cosines, shelves = np.zeros(len(turns), np.float32), search.snapshot.vector_shelves
    for model, vector in search.query.vectors.items():
        corpus = search.corpus(model, vector)
        found = shelves.cosines(search.snapshot, corpus, turns.keys[:-1], vector)
        several = turns.several.nonzero()[0]
        if len(several):
            found[several] = passage_cosines(search.snapshot, shelves, corpus, turns, several, vector)
        cosines[:-1] = np.where((cosines[:-1] == 0) & ~np.isnan(found), found, cosines[:-1])
    return cosines


def _directions(search: _Search, keys: Keys) -> tuple[Floats, ...]:
    directions = []
    for model, vector in search.query.vectors.items():
        corpus = search.corpus(model, vector)
        rows = search.snapshot.vector_shelves.vectors(search.snapshot, corpus, keys)
        rows = np.nan_to_num(rows - mean_vector(search.snapshot, corpus))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        directions.append(rows)
    return tuple(directions)


def _similarity(search: _Search, key: int) -> float | None:
    for model, vector in search.query.vectors.items():
        corpus = search.corpus(model, vector)
        (row,) = search.snapshot.vector_shelves.vectors(search.snapshot, corpus, np.array([key], np.int64))
        if not np.isnan(row[0]):
            return float(row @ vector)
    return None


def load_vectors(snapshot: SearchReader, scope: Scope, shelves: Sequence[str]) -> None:
    """Load the vectors that a caller's first search needs into memory."""
    for model in snapshot.models.known():
        if model.state == "active":
            corpus = Corpus(model.key, model.dimension, snapshot.visible(scope), shelves)
            snapshot.vector_shelves.load(snapshot, corpus)


def load_turns(snapshot: SearchReader, scope: Scope, *, ahead: bool = False) -> bool:
    """Load all turns of a caller, their order, and which words they hold; nothing if they are too many.

    Args:
        ahead: evict no other caller's turns; return False if there is no room.
    """
    count, chars = snapshot.statistics.size(scope, (_KNOWLEDGE, _EPISODES, _CONSOLIDATED))
    if count > turns.KEPT_MOST or chars > turns.KEPT_CHARS:
        return True
    if ahead and not snapshot.has_room_for_turns(count):
        return False
    with snapshot.turns(snapshot.visible(scope)) as table:
        if table.holding((), snapshot.visible(scope)) is not None:
            return True
    read_all_turns(snapshot, snapshot.visible(scope))
    return True


def read_all_turns(snapshot: SearchReader, spaces: tuple[int, ...], fetched: turns.Fetched | None = None) -> None:
    """Load the live turns of some spaces into the cached table, with their order and the turns that hold each word.

    Args:
        fetched: these turns, if they are read already.
    """
    if fetched is None:
        keys = turns.live_turns(snapshot, spaces)
        if not len(keys):
            return
        # At once, and before the table is locked: each step would wait for the interpreter lock again.
        fetched = turns.fetch_close(snapshot, spaces, keys)
    else:
        keys = np.sort(fetched.keys)
    with snapshot.turns(spaces) as table:
        if fetched is not None:
            table.keep(fetched, among=keys)
        table.read_all(snapshot, keys)
        words, position = table.words_of(keys), table.position
    if position[1] >= KEYS_BELOW:
        return
    holders = Holders(words)  # built without the lock as well
    with snapshot.turns(spaces) as table:
        if table.position == position:
            table.keep_holders(holders, spaces=spaces, through=position[1])
