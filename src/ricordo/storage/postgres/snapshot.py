"""One snapshot of a PostgreSQL store: the shared readers, and what PostgreSQL needs to do differently."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

from ricordo.model import Scope
from ricordo.storage.candidates import (
    COMMON_LEAST,
    COMMON_SHARE,
    ENTITY_WALK,
    MOST_REPLACED,
    OF_A_TIME,
    CandidateQuery,
    CandidateSet,
)
from ricordo.storage.database import nodes as shared
from ricordo.storage.database import runs, word_index
from ricordo.storage.database.as_of import DatabasePastSnapshot, shadow_links
from ricordo.storage.database.candidates import read_all_turns
from ricordo.storage.database.embeddings import Corpus
from ricordo.storage.database.erase import Erasure
from ricordo.storage.database.nodes import during, replaced_holding
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Asked, Row, Statements, Unchanged
from ricordo.storage.database.turns import Keys, fetched_of
from ricordo.storage.database.vector_math import numbers_in
from ricordo.storage.postgres.connection import OWN
from ricordo.storage.postgres.words import reindex
from ricordo.storage.protocol import Links
from ricordo.storage.values import ClosedFact, Filter, Foreseen, LearntFact, has_operators, holds
from ricordo.text.analyzer import name_key
from ricordo.text.names import candidates, first_names_in, relations_in, with_relations
from ricordo.text.statement import statement_line

T = TypeVar("T")

_AHEAD_MOST = 20
_WHOLE_MOST = 3_000
"""Callers with at most this many memories are read as a whole at their first search: half a millisecond per hundred."""
_SHELVES = ("k", "e", "c")
_NAMED_MOST = 8
"""What is near the other entities that a text may name is asked one by one."""
_FIRST = frozenset(
    (
        "off_record_of",
        "spaces_joined",
        "space_by_owner",
        "withheld_any",
        "session_by_id",
        "commit_last",
        "node_last_key",
        "session_last_key",
    )
)
"""Statements that changes ask before they write."""

_FRAGMENTS: Mapping[str, str] = {
    "types": "n.type = ANY (texts(:types))",
    "categories": "n.category = ANY (texts(:categories))",
    "entity": (
        "n.key IN (SELECT node FROM subjects WHERE entity IN (SELECT key FROM entities WHERE key = :entity"
        " OR merged_into = :entity) UNION SELECT node FROM found_mentions WHERE entity IN (SELECT key FROM entities"
        " WHERE key = :entity OR merged_into = :entity))"
    ),
    "tags": "n.tags = ANY (CAST(:tags AS text[]))",
    "where": "n.attributes = ANY (CAST(:where AS text[]))",
    "condition": "n.attributes = ANY (CAST(:condition AS text[]))",
    "session": "n.session IN (SELECT key FROM sessions WHERE space = ANY (ints(:spaces)) AND session_id = :session)",
    "after": "n.event_time >= :after",
    "before": "n.event_time < :before",
    "spaces": "n.space = ANY (ints(:spaces))",
    "shelves": "n.shelf = ANY (texts(:shelves))",
}


class Nodes(shared.Nodes):
    """Nodes by id, by key and by condition."""

    _matching = "SELECT string_agg(key::text, ',') FROM (SELECT n.key FROM nodes AS n WHERE {})"

    def _conditions(self, scope: Scope, filter_: Filter) -> tuple[str, dict[str, object]]:
        """Compare tags without case and attributes by type. Python does this, on each list that occurs."""
        clause, values = shared.conditions(filter_, _FRAGMENTS)
        if filter_.tags:
            wanted = {tag.casefold() for tag in filter_.tags}
            values["tags"] = [
                text
                for text in self._occurring(scope, "tags_occurring")
                if wanted <= {t.casefold() for t in json.loads(text)}
            ]
        if filter_.where:
            asked = dict(filter_.where)
            occurring = ["{}", *self._occurring(scope, "attributes_occurring")]
            met = [text for text in occurring if holds(json.loads(text), asked)]
            values["condition" if has_operators(asked) else "where"] = met
        return clause, values

    def _occurring(self, scope: Scope, statement: str) -> list[str]:
        return [text for (text,) in self._sql.rows(statement, self._sql.scoped(scope))]


class Evidence(runs.Evidence):
    """Sources of derived memories."""

    def learnt_from(
        self, owner: str, chat: str, content: str, *, evidence: Sequence[str], least: int
    ) -> LearntFact | None:
        values = {
            "space": self._sql.space(owner, chat),
            **_said(content),
            "evidence": json.dumps(evidence),
            "least": least,
        }
        rows = self._sql.rows("learnt_already", values)
        return LearntFact(rows[0][0], bool(rows[0][1])) if rows else None

    def dismissed(
        self, owner: str, chat: str, type_: str, content: str, *, evidence: Sequence[str]
    ) -> list[ClosedFact]:
        values = {
            "space": self._sql.space(owner, chat),
            "type": type_,
            **_said(content),
            "evidence": json.dumps(evidence),
        }
        rows = self._sql.rows("forgotten_like", values)
        return [ClosedFact(text, closed_at, bool(is_same)) for text, closed_at, is_same in rows]


def _said(content: str) -> dict[str, str]:
    return {"content": content, "line": statement_line(content)}


class Receipts(runs.Receipts):
    """What callers were given, as ids."""

    def sweep(self) -> None:
        """Remove ids that are gone, including those in receipts of other callers who were given a memory of a chat."""
        with self._seeing_everything():
            super().sweep()

    def unanswer(self, space: int) -> None:
        """Remove answers, including those to other callers in a chat."""
        with self._seeing_everything():
            super().unanswer(space)

    def _seeing_everything(self) -> AbstractContextManager[None]:
        connection: Any = self._sql.connection
        found: AbstractContextManager[None] = connection.seeing_everything()
        return found


class Upkeep(word_index.Upkeep):
    """No maintenance: the server maintains its indexes itself."""

    def is_due(self, *, least: int = 0) -> bool:
        return False

    def step(self) -> bool:
        return False


class _Worded(Statements):
    """The parts of statements that PostgreSQL writes differently from SQLite."""

    has_packs = False
    reads_around = True
    among = "= ANY (ints(?))"
    holds_evidence = "evidence != '[]' AND EXISTS (SELECT 1 FROM unnest(texts(evidence)) e WHERE e = ANY (texts(?)))"
    former_key = "(before ->> '{}')::bigint"

    def text(self, name: str) -> str:
        found: str = self.connection.text(name)  # type: ignore[attr-defined]
        return found

    def many(self, name: str, rows: Sequence[Row]) -> None:
        self.connection.executemany(self.text(name), rows)

    def rows_of_each(self, name: str, given: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        connection: Any = self.connection
        found: list[list[Row]] = connection.rows_of_each([(name, each) for each in given]) if given else []
        return found

    def in_one_trip(self) -> AbstractContextManager[None]:
        connection: Any = self.connection
        found: AbstractContextManager[None] = connection.in_one_trip()
        return found

    def reindex(self, nodes: Sequence[int]) -> None:
        reindex(self, nodes)

    def index_restored(self, nodes: Sequence[int]) -> None:
        """Do nothing: `reindex` is called once the nodes are restored."""

    @contextmanager
    def deferred_references(self) -> Iterator[None]:
        self.connection.execute("SET CONSTRAINTS ALL DEFERRED")
        yield
        self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def until(self, moment: float, work: Callable[[], T]) -> T:
        if time.monotonic() >= moment:
            raise TimeoutError
        connection: Any = self.connection
        connection.deadline = moment
        try:
            return work()
        finally:
            connection.deadline = None


class _Elevated:
    """The group that erases. What was derived from a memory may belong to another owner, so methods that follow
    references see everything; methods that look something up for the caller see what the caller may see.
    """

    _AS_CALLER = frozenset(("sessions", "texts", "summaries", "former_texts"))

    def __init__(self, erasure: Erasure) -> None:
        self._erasure = erasure

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._erasure, name)
        if name in self._AS_CALLER:
            return method
        connection: Any = self._erasure._sql.connection

        def elevated(*args: Any, **given: Any) -> Any:
            with connection.seeing_everything():
                found = method(*args, **given)
                return iter(list(found)) if isinstance(found, Iterator) else found

        return elevated


AskedKey = tuple[str, tuple[tuple[str, Any], ...]]
"""The name of a statement and its parameters, as a key."""

_SPACES = frozenset(("space", "spaces"))


def _key(name: str, values: Mapping[str, Any] | None = None) -> AskedKey:
    return name, tuple(sorted(values.items())) if values else ()


def _kind(asked: Asked) -> AskedKey:
    """Return what the next query of a kind has in common with this one: all but the position from which it reads on."""
    return _key(asked[0], {name: value for name, value in asked[1].items() if name != "after"})


def _words(spaces: str, shelves: Sequence[str], terms: Sequence[str]) -> Asked:
    """Return what asks for the memories that hold some terms."""
    lists = {"shelves": json.dumps(shelves), "terms": json.dumps(terms)}
    most = {"least": COMMON_LEAST + 1, "share": COMMON_SHARE, "more_than": _WHOLE_MOST}
    return "postings_of", {"spaces": spaces, **lists, **most}


def _names(text: str, each: Sequence[int], spaces: str) -> list[Asked]:
    """Return what is asked to find the entities that a text names, in spaces given as keys and as a list."""
    if not text:
        return []
    relations = sorted(relations_in(text))
    keys, sounds = map(json.dumps, candidates([with_relations(text)]))
    of_each = {"keys": keys, "sounds": sounds}
    words = json.dumps(first_names_in(text))
    of_all = {"space": each[0], "predicates": json.dumps(relations), "spaces": spaces, "words": words, **of_each}
    return [
        *([("names_longer", {"spaces": spaces, "words": words})] if words != "[]" else []),
        *(("names_known", {"space": space, **of_each}) for space in each),
        *(("related_to_owner", {"space": each[0], "predicate": name, "spaces": spaces}) for name in relations),
        ("entities_named", {**of_all, "walk": ENTITY_WALK, "most": _NAMED_MOST}),
    ]


def _with(asked: Asked, own: Mapping[str, Any]) -> Asked:
    """Return a query with other values for some of its parameters."""
    return asked[0], {name: own.get(name, value) for name, value in asked[1].items()}


class _Unknown(BaseException):
    """Ends a read that needs answers which are not known yet."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = asked


@dataclass(slots=True)
class Caller:
    """What a process knows about a caller from earlier snapshots, to ask it together at the beginning of the next one.

    Attributes:
        cached: what they asked once after each write, by kind, the latest last.
        read_once: what they read into memory at the first search.
        spaces, shelves, corpora: what they searched last.
        named_in: the spaces that the caller sees, as in the parameters of statements; "" if no names are known there.
    """

    cached: dict[AskedKey, Asked] = field(default_factory=dict)
    read_once: list[Asked] = field(default_factory=list)
    spaces: tuple[int, ...] = ()
    shelves: tuple[str, ...] = ()
    corpora: Sequence[Corpus] = ()
    named_in: str = ""

    def note(self, asked: Asked) -> None:
        """Note what the caller asks once after each write."""
        self.cached.pop(_kind(asked), None)
        self.cached[_kind(asked)] = asked
        if len(self.cached) > _AHEAD_MOST:
            del self.cached[next(iter(self.cached))]

    def asks(self, news: Sequence[Asked]) -> list[Asked]:
        """Return what the caller asks after a write, with the present positions."""
        return list((self.cached | {_kind(each): each for each in news}).values())

    def learn(self, scope: Scope, unchanged: Unchanged) -> None:
        """Note which spaces the caller sees, and whether names are known there."""
        spaces = json.dumps(unchanged.get(("visible", scope), ()))
        if known := unchanged.get(("names_any", spaces)):
            self.named_in = spaces if known[0][0] else ""

    def anywhere(self, scope: Scope) -> list[Asked]:
        """Return what another caller will ask that depends on no space."""
        own = {"owner": scope.owner, "member": scope.who}
        return [_with(each, own) for each in self.cached.values() if not _SPACES & each[1].keys()]

    def in_space(self, space: int) -> list[Asked]:
        """Return what another caller will ask after each write about the only space it sees."""
        own = {"spaces": json.dumps([space]), "space": space}
        return [_with(each, own) for each in self.cached.values() if _SPACES & each[1].keys()]

    def first_of(self, owner: str, foreseen: Foreseen) -> list[Asked]:
        """Return what another caller will ask about its only space, whose key is not known yet, at its first search."""
        asked = [*self.cached.values(), *self.read_once]
        own = [_with(each, {"spaces": OWN, "space": OWN}) for each in asked if _SPACES & each[1].keys()]
        named = _names(foreseen.about, [OWN], OWN) if self.named_in else []
        looked_up = [*self.words(foreseen.terms, OWN), *self.within(foreseen.interval, OWN)]
        return [("own_space", {"owner": owner}), *named, *own, *looked_up]

    def words(self, terms: Sequence[str], spaces: str = "") -> list[Asked]:
        """Return what a search for some terms will ask, by default in the spaces that were searched last."""
        return [_words(spaces or json.dumps(self.spaces), self.shelves, terms)] if terms and self.shelves else []

    def replaced(self, terms: Sequence[str]) -> list[Asked]:
        """Return what a search for some terms will ask about facts that were replaced, in the spaces searched last."""
        is_asked = terms and self.spaces and "k" in self.shelves
        return [replaced_holding(self.spaces, terms, most=MOST_REPLACED)] if is_asked else []

    def within(self, interval: tuple[int, int] | None, spaces: str = "") -> list[Asked]:
        """Return what a search in a span will ask, by default in the spaces that were searched last."""
        if interval is None or not self.shelves:
            return []
        return [during(spaces or json.dumps(self.spaces), self.shelves, *interval, most=OF_A_TIME)]

    def named(self, names: Sequence[str]) -> list[Asked]:
        """Return what is asked to find entities by their folded names."""
        if not names or not self.named_in:
            return []
        keys = json.dumps(list(dict.fromkeys(map(name_key, names))))
        return [("names_like", {"spaces": self.named_in, "keys": keys, "sounds": "[]"})]

    def names_in(self, text: str) -> list[Asked]:
        """Return what is asked to find the entities that a text names."""
        return _names(text, json.loads(self.named_in), self.named_in) if self.named_in else []


class PostgresSnapshot(_Worded, DatabaseSnapshot):
    """A store at one moment, in one transaction of one thread.

    What is known ahead was asked together with other statements, in one round trip. It holds until a statement writes.
    """

    _caller: Caller | None = None
    _first: dict[AskedKey, None] | None = None
    _is_kept = False
    _is_together = False
    _known: Mapping[AskedKey, list[Row]] = {}
    _known_at = 0

    def know(self, found: Mapping[AskedKey, list[Row]]) -> None:
        """Take over the answers to queries, until something is written."""
        connection: Any = self.connection
        before = self._known if self._known_at == connection.writes else {}
        self._known, self._known_at = {**before, **found}, connection.writes

    def know_all(self, asked: Sequence[Asked], rows: Sequence[list[Row]]) -> None:
        """Take over the answers to what was asked at the beginning."""
        self.know({_key(*each): found for each, found in zip(asked, rows, strict=True)})
        for (name, values), found in zip(asked, rows, strict=True):
            if name == "entities_named":
                self.know_names(values, found)

    def ahead(self, *asked: Asked) -> None:
        missing = [each for each in asked if self._answer(_key(*each)) is None]
        if self._is_together and missing:
            raise _Unknown(missing)
        if len(missing) > 1:
            self._ask(missing)

    def _ask(self, asked: Sequence[Asked]) -> None:
        """Run statements in one round trip, each once."""
        connection: Any = self.connection
        once = {_key(*each): each for each in asked}
        self.know(dict(zip(once, connection.rows_of_each(list(once.values())), strict=True)))

    def together(self, *reads: Callable[[], Any]) -> list[Any]:
        """Run reads side by side: each one up to the first answer that is unknown, and again once it is known."""
        found: dict[int, Any] = {}
        is_within, self._is_together = self._is_together, True
        try:
            while missing := self._advance(reads, found):
                if is_within:
                    raise _Unknown(missing)
                self._ask(missing)
        finally:
            self._is_together = is_within
        return [found[place] for place in range(len(reads))]

    def _advance(self, reads: Sequence[Callable[[], Any]], found: dict[int, Any]) -> list[Asked]:
        """Run the reads without a result as far as answers are known; return what they ask next."""
        missing: list[Asked] = []
        for place, read in enumerate(reads):
            if place not in found:
                try:
                    found[place] = read()
                except _Unknown as unknown:
                    missing += unknown.asked
        return missing

    def know_names(self, asked: Mapping[str, Any], rows: Sequence[Row]) -> None:
        """Take over the answer to `entities_named`."""
        members: dict[int, list[Row]] = {}
        near: dict[int, list[Row]] = {}
        for whole, member, keys, shelves, *columns in rows:
            members.setdefault(whole, []).append((member,))
            near[member] = list(zip(keys, shelves, *columns, strict=True)) if keys else []
        of_near = {"spaces": asked["spaces"], "walk": asked["walk"]}
        self.know(
            {_key("entity_members", {"entity": whole}): found for whole, found in members.items()}
            | {_key("entity_near", {"entity": key, **of_near}): found for key, found in near.items()}
        )

    def ask_cached(self, scope: Scope, caller: Caller, like: Caller | None, news: Sequence[Asked]) -> None:
        """Run in one round trip what the caller's earlier snapshots cached until the next write, if there was a write.

        Args:
            like: another caller of the same kind, for a caller without earlier snapshots.
            news: what else the caller asks after a write.
        """
        self._caller = caller
        if like is None:
            asked, kept = caller.asks(news), list(caller.cached.values())
            self.know(self.once(("ahead", scope), lambda: self._cached(asked, kept)))
            return
        found = self._cached(like.anywhere(scope))
        spaces = self.visible(scope)
        if len(spaces) == 1 and self._answer(_key("own_space", {"owner": scope.owner})) == [(str(spaces[0]),)]:
            self._know_space(spaces[0])
            found |= self._cached(like.in_space(spaces[0]))
        self.once(("ahead", scope), lambda: found)

    def _know_space(self, space: int) -> None:
        """Take over the answers about the space of an owner, now that its key is known."""
        known = {"space": space, "spaces": json.dumps([space])}

        def located(values: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
            return tuple((key, known[key] if value is OWN else value) for key, value in values)

        self.know({(name, located(values)): rows for (name, values), rows in self._known.items()})

    def postings(
        self, scope: Scope, shelves: Sequence[str], terms: Sequence[str], *, archived: bool, most: int
    ) -> list[Keys]:
        asked = _words(self.scoped(scope)["spaces"], shelves, terms)
        if not archived and (rows := self._answer(_key(*asked))):
            return [numbers_in(nodes)[:most] for (nodes,) in rows]
        return super().postings(scope, shelves, terms, archived=archived, most=most)

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        with suppress(TimeoutError):
            self.until(query.until, lambda: self._read_missing(query))
        return super().candidates(query)

    def _read_missing(self, query: CandidateQuery) -> None:
        """Read in one round trip what is not in memory: a caller's vectors, and the turns if there are few memories."""
        spaces = self.visible(query.scope)
        corpora = [Corpus(model, len(vector), spaces, query.filter.shelves) for model, vector in query.vectors.items()]
        if self._caller is not None:
            self._caller.spaces, self._caller.corpora = spaces, corpora
            self._caller.shelves = query.filter.shelves
        count, _ = self.statistics.size(query.scope, _SHELVES)
        if query.filter.archived or not count:
            return
        with self.turns(spaces) as table:
            is_held = table.holding((), spaces) is not None
        whole: Asked = "traits_whole", {"spaces": json.dumps(spaces), "most": _WHOLE_MOST}
        vectors = [each for corpus in corpora for each in self.vector_shelves.lacks(corpus)]
        is_read = not is_held and count <= _WHOLE_MOST
        self.ahead(*([whole] if is_read else []), *vectors)
        if self._caller is not None and (is_read or vectors):
            self._caller.read_once = [whole, *vectors]
        if is_read and (fetched := fetched_of(self.rows(*whole)[0])) is not None:
            read_all_turns(self, spaces, fetched)

    def _cached(self, asked: Sequence[Asked], kept: Sequence[Asked] | None = None) -> dict[AskedKey, list[Row]]:
        """Run statements in one round trip; return the answers to those that are kept."""
        self.ahead(*asked)
        keys = (_key(*each) for each in (asked if kept is None else kept))
        return {key: rows for key in keys if (rows := self._answer(key)) is not None}

    def ask_first(self, earlier: Sequence[AskedKey]) -> dict[AskedKey, None]:
        """Ask in one round trip what an earlier change of the caller asked before it wrote anything.

        Returns:
            What this change asks before it writes; more is added as it asks.
        """
        self.ahead(*((name, dict(values)) for name, values in earlier))
        self._first = {}
        return self._first

    def once(self, asked: tuple[Hashable, ...], work: Callable[[], T]) -> T:
        before, self._is_kept = self._is_kept, True
        try:
            return super().once(asked, work)
        finally:
            self._is_kept = before

    def value(self, name: str, values: Mapping[str, Any] | None = None) -> Any:
        rows = self.rows(name, values)
        return rows[0][0] if rows else None

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        key = _key(name, values)
        if self._is_kept and self._caller is not None:
            self._caller.note((name, values or {}))
        if self._first is not None and name in _FIRST:
            self._first[key] = None
        known = self._answer(key)
        if known is not None:
            return known
        if self._is_together:
            raise _Unknown([(name, values or {})])
        return super().rows(name, values)

    def rows_of_each(self, name: str, given: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        asked = [(name, each) for each in given]
        missing = [each for each in asked if self._answer(_key(*each)) is None]
        if self._is_together and missing:
            raise _Unknown(missing)
        found = iter(super().rows_of_each(name, [values for _, values in missing]))
        return [next(found) if (rows := self._answer(_key(*each))) is None else rows for each in asked]

    def _answer(self, asked: AskedKey) -> list[Row] | None:
        """Return what is known ahead; None if it has to be asked."""
        connection: Any = self.connection
        return self._known.get(asked) if self._known and self._known_at == connection.writes else None

    receipts = cached_property(Receipts)
    erasure = cached_property(lambda self: _Elevated(Erasure(self)))  # type: ignore[assignment]

    nodes = cached_property(Nodes)
    evidence = cached_property(Evidence)
    upkeep = cached_property(Upkeep)


class _Listener(PostgresSnapshot):
    """A snapshot without answers."""

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        raise _Unknown([(name, values or {})])


def asked_by(reads: Iterable[Callable[[PostgresSnapshot], object]]) -> list[Asked]:
    """Return the first statement that each of some reads asks."""
    nowhere: Any = None
    return _Listener(nowhere)._advance([partial(read, _Listener(nowhere)) for read in reads], {})


class PostgresPastSnapshot(_Worded, DatabasePastSnapshot):
    """The store as it was after a commit; its tables are the views of the past."""

    nodes = cached_property(Nodes)
    evidence = cached_property(Evidence)
    upkeep = cached_property(Upkeep)


def past_snapshot(
    connection: Any, today: PostgresSnapshot, *, commit: int, at: int, links: Links
) -> PostgresPastSnapshot:
    """Return a past state of the store, on a connection that has begun to read it."""
    snapshot = PostgresPastSnapshot(connection, today=today, commit=commit, at=at)
    shadow_links(snapshot, links)
    return snapshot
