"""One snapshot of a PostgreSQL store: the shared readers, and what PostgreSQL needs to do differently."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, TypeVar

from ricordo.model import Scope
from ricordo.storage.candidates import Shortlist
from ricordo.storage.database import nodes as shared
from ricordo.storage.database import runs, word_index
from ricordo.storage.database.as_of import DatabasePastSnapshot, shadow_links
from ricordo.storage.database.erase import Erasure
from ricordo.storage.database.snapshot import DatabaseSnapshot
from ricordo.storage.database.statements import Row, Statements
from ricordo.storage.postgres.words import reindex
from ricordo.storage.protocol import Links
from ricordo.storage.values import ClosedFact, Filter, LearntFact, has_operators, holds
from ricordo.text.statement import statement_line

T = TypeVar("T")

_AHEAD_MOST = 20

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
        found: list[list[Row]] = connection.rows_of_each([(name, each) for each in given])
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


Asked = tuple[str, tuple[tuple[str, Any], ...]]
"""The name of a statement and its parameters."""

_SPACES = frozenset(("space", "spaces"))


def _with(asked: Asked, own: Mapping[str, Any]) -> Asked:
    """Return a query with other values for some of its parameters."""
    return asked[0], tuple((name, own.get(name, value)) for name, value in asked[1])


class PostgresSnapshot(_Worded, DatabaseSnapshot):
    """A store at one moment, in one transaction of one thread."""

    _asked: dict[Asked, None] | None = None
    _ahead: Mapping[Asked, list[Row]] = {}
    _is_kept = False
    _first: Mapping[Asked, list[Row]] = {}
    _first_holds_at = 0

    def ask_ahead(self, scope: Scope, asked: dict[Asked, None], others: Sequence[Asked]) -> None:
        """Run in one round trip what the caller's earlier snapshots cached until the next write, if there was a write.

        Args:
            asked: the queries they cached; those that this snapshot caches are added.
            others: what another caller of the same kind cached, for a caller without earlier snapshots.
        """
        self._asked = asked
        if asked or not others:
            self._ahead = self.once(("ahead", scope), lambda: self._rows_of(asked))
        else:
            self._ahead = self.once(("ahead", scope), lambda: self._rows_like(scope, others))
            asked.update(dict.fromkeys(self._ahead))

    def _rows_like(self, scope: Scope, others: Sequence[Asked]) -> dict[Asked, list[Row]]:
        """Run what another caller asked for this one, in two round trips: the second one knows the caller's spaces."""
        own: dict[str, Any] = {"owner": scope.owner, "member": scope.who}
        self._ahead = found = self._rows_of([_with(each, own) for each in others if not _SPACES & dict(each[1]).keys()])
        own = {"spaces": json.dumps(self.visible(scope))}
        return found | self._rows_of(
            [_with(each, own) for each in others if _SPACES & dict(each[1]).keys() == {"spaces"}]
        )

    def _rows_of(self, asked: Collection[Asked]) -> dict[Asked, list[Row]]:
        connection: Any = self.connection
        found = connection.rows_of_each([(name, dict(values)) for name, values in asked]) if asked else []
        return dict(zip(asked, found, strict=True))

    def ask_first(self, scope: Scope) -> None:
        """Show what a caller may see and ask, in one round trip, what nearly every change of the caller asks first.

        The answers hold until something is written.
        """
        of_scope = ("owner", scope.who), ("chat", scope.chat or "")
        own = ("owner", scope.owner), ("chat", "")
        self._ask_together(
            [("off_record_of", of_scope), ("space_by_owner", own), ("commit_last", ()), ("node_last_key", ())], scope
        )

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int) -> Shortlist:
        """Read the details of the best candidates: of all in one round trip, because most of them are shown."""
        values = tuple(self.scoped(scope, keys=json.dumps(keys)).items())
        if keys:
            self._ask_together([("weights_of", values), ("nodes_by_key", values)])
        return super().shortlist(scope, keys, archived=archived, now=now)

    def _ask_together(self, asked: list[Asked], scope: Scope | None = None) -> None:
        connection: Any = self.connection
        found = connection.rows_of_each([(name, dict(values)) for name, values in asked], scope=scope)
        self._first, self._first_holds_at = dict(zip(asked, found, strict=True)), connection.writes

    def once(self, asked: tuple[Hashable, ...], work: Callable[[], T]) -> T:
        before, self._is_kept = self._is_kept, True
        try:
            return super().once(asked, work)
        finally:
            self._is_kept = before

    def value(self, name: str, values: Mapping[str, Any] | None = None) -> Any:
        rows = self.rows(name, values) if self._first else None
        return super().value(name, values) if rows is None else rows[0][0] if rows else None

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        connection: Any = self.connection
        if self._first and self._first_holds_at == connection.writes:
            known = self._first.get((name, tuple((values or {}).items())))
            if known is not None:
                return known
        if not self._is_kept or self._asked is None:
            return super().rows(name, values)
        key = name, tuple((values or {}).items())
        if key in self._ahead:
            return self._ahead[key]
        if len(self._asked) < _AHEAD_MOST:
            self._asked[key] = None
        return super().rows(name, values)

    receipts = cached_property(Receipts)
    erasure = cached_property(lambda self: _Elevated(Erasure(self)))  # type: ignore[assignment]

    nodes = cached_property(Nodes)
    evidence = cached_property(Evidence)
    upkeep = cached_property(Upkeep)


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
