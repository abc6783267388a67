"""What may be asked of a store at one moment. The narrow interface that rooms see; the owner comes first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from ricordo.clock import from_ms
from ricordo.errors import NotFoundError, UnavailableError
from ricordo.model import Commit, Edge, Entity, Node, Review, ReviewKind, Scope, Session
from ricordo.storage.database.filters import conditions
from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import (
    Row,
    asserted_edge,
    commit_of,
    entity_of,
    former_node,
    node_of,
    review_of,
    session_of,
)
from ricordo.storage.values import Filter
from ricordo.trust import trust_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.storage.database.turns import TurnTable

    Keys = NDArray[np.int64]
from ricordo.storage.values import Weights

T = TypeVar("T")

# More ids than this in one statement are fetched in slices.
_SLICE = 5_000
# On either side of a statement. What shares a frame with it stands next to it.
_NEIGHBOURS = 3
# A deadline is looked at every few milliseconds.
_STEPS_BETWEEN_LOOKS = 50_000


FINGERPRINT_KEY = "fingerprint_key"

Unchanged = dict[tuple[Hashable, ...], Any]
"""What is known of the store as a whole, or of all a caller's, by what was asked."""
_UNCHANGED_MOST = 1_000


class Kept:
    """What a store's readers keep from one snapshot to the next. Made when first asked for: it needs numpy."""

    @cached_property
    def turns(self) -> TurnTable:
        """The turns that were read."""
        from ricordo.storage.database.turns import TurnTable

        return TurnTable()


class Snapshot:
    """Questions to the store, all answered from one moment. Lives inside one transaction of one thread."""

    def __init__(
        self, connection: apsw.Connection, kept: Kept | None = None, *, unchanged: Unchanged | None = None
    ) -> None:
        """Args:
        unchanged: answers from before that still hold, and where further ones are kept; None where the store may
            change within this moment.
        """
        self.connection = connection
        self._kept = Kept() if kept is None else kept
        self._unchanged = unchanged
        self._spaces: dict[Scope, tuple[int, ...]] = {}

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """The result of some work that ends at a moment on the clock of `time.monotonic`, in seconds.

        Raises:
            TimeoutError: it was not done by then.
        """
        if time.monotonic() >= moment:
            raise TimeoutError
        self.connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_BETWEEN_LOOKS)
        try:
            return work()
        except apsw.InterruptError as error:
            raise TimeoutError from error
        finally:
            self.connection.set_progress_handler(None)

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a named statement."""
        return self.connection.execute(sql(name), values).fetchall()

    def rows_of_store(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a named statement that many questions repeat, about the store as a whole or all of a caller's:
        asked once for as long as nobody writes.
        """
        asked = (name, *values.values()) if values else (name,)
        return self.once(asked, lambda: self.rows(name, values))

    def once(self, asked: tuple[Hashable, ...], work: Callable[[], T]) -> T:
        """What some work finds out about the store as a whole or all of a caller's: done once for as long as nobody
        writes. Never None, and nothing that its users alter.
        """
        if self._unchanged is None:
            return work()
        found: T | None = self._unchanged.get(asked)
        if found is None:
            found = work()
            if len(self._unchanged) < _UNCHANGED_MOST:
                self._unchanged[asked] = found
        return found

    def each(self, name: str, values: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of a named statement, one by one: there may be more of them than memory should hold."""
        return self.connection.execute(sql(name), values)

    def value(self, name: str, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row of a named statement, or None."""
        return self.connection.execute(sql(name), values).get if values else self.connection.execute(sql(name)).get

    def current(self, now: int) -> int:
        """The instant that counts as now to this snapshot, in Unix milliseconds."""
        return now

    # whose

    def space(self, owner: str, chat: str) -> int | None:
        """The key of a space, if anything was ever written to it."""
        rows = self.rows_of_store("space_by_owner", {"owner": owner, "chat": chat})
        return rows[0][0] if rows else None

    def visible(self, scope: Scope) -> tuple[int, ...]:
        """The spaces a caller sees: their own, and the present chat's."""
        if scope not in self._spaces:
            wanted = [(scope.owner, "")] if scope.owner else []
            wanted += [("", scope.chat)] if scope.chat else []
            found = (self.space(owner, chat) for owner, chat in wanted)
            self._spaces[scope] = tuple(key for key in found if key is not None)
        return self._spaces[scope]

    def _for(self, scope: Scope, **values: Any) -> dict[str, Any]:
        return {"spaces": json.dumps(self.visible(scope)), **values}

    # nodes

    def node(self, scope: Scope, node_id: str) -> Node | None:
        """A node by id, closed or not; None when there is none this caller may see."""
        if not isinstance(node_id, str) or not node_id.isprintable():  # SQLite cannot even be asked for some
            return None
        rows = self.rows("node_by_id", self._for(scope, id=node_id))
        return node_of(rows[0]) if rows else None

    def known_node(self, scope: Scope, node_id: str) -> Node:
        """A node by id, closed or not.

        Raises:
            NotFoundError: there is none this caller may see.
        """
        node = self.node(scope, node_id)
        if node is None:
            erased = self.erased_at(scope, node_id) if isinstance(node_id, str) else None
            if erased is not None:
                raise NotFoundError(f"memory {node_id} was erased on {erased:%Y-%m-%d}", hint="it is gone for good")
            raise NotFoundError(f"there is no memory {node_id}", hint="`list` or `search` show ids")
        return node

    def nodes(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        """Nodes by key; what the caller may not see is left out."""
        wanted = [int(key) for key in keys]
        found: dict[int, Node] = {}
        for start in range(0, len(wanted), _SLICE):
            values = self._for(scope, keys=json.dumps(wanted[start : start + _SLICE]))
            found.update((row[0], node_of(row)) for row in self.rows("nodes_by_key", values))
        return found

    def known_ids(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Which ids are taken: id to (space, content)."""
        return {row[0]: (row[1], row[2]) for row in self.rows("node_ids_known", {"ids": json.dumps(ids)})}

    def listed(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        """Nodes that match, newest record first, from below a key."""
        clause, values = conditions(filter_)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.key < :before_key"
            " AND (n.expires_at IS NULL OR n.expires_at > :now) ORDER BY n.key DESC LIMIT :limit"
        )
        values |= self._for(scope, before_key=before_key or 1 << 62, limit=limit, now=now)
        keys = [key for (key,) in self.connection.execute(query, values)]
        found = self.nodes(scope, keys)
        return [found[key] for key in keys]

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        """Nodes that match, the latest event first."""
        clause, values = conditions(filter_)
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND (n.expires_at IS NULL OR n.expires_at > :now)"
            " ORDER BY n.event_time DESC, n.key DESC LIMIT :limit"
        )
        keys = [key for (key,) in self.connection.execute(query, values | self._for(scope, limit=limit, now=now))]
        found = self.nodes(scope, keys)
        return [found[key] for key in keys]

    def edges(self, scope: Scope, node: Node) -> list[Edge]:
        """What links a node to others the caller may see, its own edges first."""
        return [asserted_edge(row) for row in self.rows("edges_of_node", self._for(scope, key=node.key))]

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        """The keys of all nodes that match, ascending."""
        import numpy as np

        clause, values = conditions(filter_)
        query = f"SELECT group_concat(key) FROM (SELECT n.key FROM nodes AS n WHERE {clause})"
        text = self.connection.execute(query, values | self._for(scope)).get
        return np.sort(np.fromstring(text, dtype=np.int64, sep=",")) if text else np.empty(0, np.int64)

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        """The keys of the latest nodes that match and happened in a span, in no order."""
        import numpy as np

        clause, values = conditions(replace(filter_, after=None, before=None))
        query = (
            f"SELECT n.key FROM nodes AS n WHERE {clause} AND n.event_time >= :start AND n.event_time < :end"
            " ORDER BY n.event_time DESC LIMIT :most"
        )
        values |= self._for(scope, start=after, end=before, most=most)
        return np.array([key for (key,) in self.connection.execute(query, values)], np.int64)

    def successor(self, key: int) -> int | None:
        """The live newest version of a node: itself if it lives, None when the chain ended."""
        found: int | None = self.value("superseded_by", {"key": key})
        return found

    def lineage(self, scope: Scope, node: Node) -> list[Node]:
        """A node with all that it replaced and all that replaced it, step by step, in no order."""
        keys = {key for (key,) in self.rows("lineage", {"key": node.key})} - {node.key}
        return [node, *self.nodes(scope, keys).values()] if keys else [node]

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        """Pairs (newer, older) in which nodes stand: one replaced the other, or is to stand before it."""
        rows = self.rows("succession", {"keys": json.dumps([int(key) for key in keys])})
        return [(newer, older) for newer, older in rows]

    # statements and reviews

    def statements_near(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        """(key, content) of the live facts of exactly these subjects whose statements are most like a line.

        Args:
            subjects: ids of entities; one that is not stored yet has no facts.
            line: what `statement_line` makes of the statement.
        """
        space = self.space(owner, chat)
        keys = [self.value("entity_place", {"id": each}) for each in subjects]
        if space is None or None in keys:
            return []
        first = line.partition(" ")[0]
        values = {
            "space": space,
            "subjects": ",".join(map(str, sorted(keys))),
            "line": line,
            "most": _NEIGHBOURS,
            "first": first,
            "after": f"{first}!",  # "!" comes right after a blank
        }
        return [(key, content) for key, content in self.rows("slots_near", values)]

    def subjects(self, key: int) -> list[str]:
        """The ids of the entities a node is about."""
        return [entity_id for (entity_id,) in self.rows("subjects_of", {"node": key})]

    def reviews(self, scope: Scope, *, most: int, kind: ReviewKind | None = None) -> list[Review]:
        """Open questions (of one kind), those about live conflicts first, then the latest first."""
        rows = self.rows("reviews_open", self._for(scope, most=most, kind=kind))
        nodes = self.nodes(scope, {key for row in rows for key in row[3:5] if key is not None})
        return [review_of(row, nodes) for row in rows]

    def review(self, scope: Scope, review_id: str) -> Review | None:
        """A question by its id, decided or not; None when there is none this caller may see."""
        if not isinstance(review_id, str) or not review_id.isprintable():
            return None
        rows = self.rows("review_by_id", self._for(scope, id=review_id))
        return review_of(rows[0], self.nodes(scope, filter(None, rows[0][3:5]))) if rows else None

    def session(self, scope: Scope, session_id: str) -> Session | None:
        """A session by its id."""
        rows = self.rows("session_row", self._for(scope, session=session_id))
        return session_of(rows[0]) if rows else None

    @contextmanager
    def turns(self, *, shared: bool = True) -> Iterator[TurnTable]:
        """The turns that were read so far, come to where this snapshot is; one of its own where others are ahead.

        Args:
            shared: False where closed turns are looked at, which stand in no session's order.
        """
        from ricordo.storage.database.turns import TurnTable

        table = self._kept.turns
        if shared:
            with table.lock:
                if table.follow(self):
                    try:
                        yield table
                    except BaseException:  # it may have been left half done
                        table.drop(changes=-1, last=0)
                        raise
                    return
        own = TurnTable()
        own.follow(self)
        yield own

    def weights(self, scope: Scope, keys: Sequence[int]) -> dict[int, Weights]:
        """What is known of nodes beside their words, by key; what the caller may not see is left out."""
        rows = self.rows("weights_of", self._for(scope, keys=json.dumps(keys)))
        return {
            key: Weights(confidence, score, since, expires_at, is_live, trust_of(origin, role))
            for key, confidence, score, since, expires_at, is_live, origin, role in rows
        }

    def off_record(self, owner: str, chat: str) -> set[str]:
        """The sessions that are not to be stored; "" stands for everything."""
        return {row[0] for row in self.rows("off_record_of", {"owner": owner, "chat": chat})}

    # words

    def postings(
        self, scope: Scope, shelves: Sequence[str], terms: Sequence[str], *, archived: bool, most: int
    ) -> list[Keys]:
        """For each index term the nodes that hold it, ascending; at most `most` of them."""
        import numpy as np

        endings = self.once(
            ("endings", scope, *shelves, archived), lambda: self._endings(scope, shelves, archived=archived)
        )
        if not endings:
            return [np.empty(0, np.int64) for _ in terms]
        if not archived and self._all_lie_on(scope, shelves):
            with self.turns() as table:
                held = table.holding(self, terms, self.visible(scope))
            if held is not None:
                return [keys[:most] for keys in held]
        name = "archive_postings" if archived else "live_postings"
        found = []
        for term in terms:
            match = " OR ".join([f'"{term}{ending}"' for ending in endings])
            text = self.value(name, {"match": match, "most": most})
            found.append(np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, np.int64))
        return found

    def _all_lie_on(self, scope: Scope, shelves: Sequence[str]) -> bool:
        """Whether there is nothing a caller may see on any other shelf."""
        counts = self.rows_of_store("shelf_counts", self._for(scope))
        return all(shelf in shelves for _, shelf, nodes, _ in counts if nodes)

    def space_postings(self, space: int, term: str, *, most: int) -> list[int]:
        """The nodes of one space that hold a term, closed ones too; at most `most` of either."""
        match = " OR ".join(f'"{term}·{space}{shelf}"' for shelf in "kec")
        lists = (self.value(name, {"match": match, "most": most}) for name in ("live_postings", "archive_postings"))
        return [key for text in lists for key in _numbers(text)]

    def shelf_counts(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        """How many live nodes the shelves hold, and how many characters in them."""
        return self.once(("shelf_counts", scope, *shelves), lambda: self._counted(scope, shelves))

    def _counted(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        rows = [row for row in self.rows_of_store("shelf_counts", self._for(scope)) if row[1] in shelves]
        return sum(row[2] for row in rows), sum(row[3] for row in rows)

    def _endings(self, scope: Scope, shelves: Sequence[str], *, archived: bool) -> list[str]:
        """How the terms of those shelves end that a caller may look into and that may hold something: looking into one
        costs as much where nothing is on it.
        """
        if archived:
            return [f"·{space}{shelf}" for space in self.visible(scope) for shelf in shelves]
        counts = self.rows_of_store("shelf_counts", self._for(scope))
        return [f"·{space}{shelf}" for space, shelf, nodes, _ in counts if nodes and shelf in shelves]

    # names

    def entities(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        """Live entities that go by one of the folded names, oldest first. Whom a name as written means, with its
        cases and spellings, is `people.named`.
        """
        rows = self.rows("names_like", self._for(scope, keys=json.dumps(names), sounds="[]"))
        values = self._for(scope, keys=json.dumps([key for _, key in rows]))
        return [entity_of(row) for row in self.rows("entities_by_key", values)]

    # time

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        """Newest first, from below a sequence number."""
        values = self._for(scope, before=before or 1 << 62, most=most)
        return [commit_of(row) for row in self.rows("commits_listed", values)]

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        """What a node was and is, oldest first, each with the commit that made it so."""
        images = [json.loads(row[0]) for row in self.rows("history_of_node", {"key": str(node.key)})]
        former = [(former_node(node, image), self.commit(image["commit_seq"])) for image in images]
        return [*former, (node, self.commit_of_node(node.key))]

    def commit(self, seq: int) -> Commit | None:
        """A commit by its number."""
        rows = self.rows("commit_by_seq", {"seq": seq})
        return commit_of(rows[0]) if rows else None

    def made_commit(self, seq: int) -> Commit:
        """A commit that was just made.

        Raises:
            UnavailableError: the index of the folder could not follow yet.
        """
        found = self.commit(seq)
        if found is None:
            raise UnavailableError(f"change {seq} is written, but the index cannot follow yet", hint="free some space")
        return found

    def erased_at(self, scope: Scope, node_id: str) -> datetime | None:
        """When a memory of that id was erased, if this caller could see it."""
        key = self.meta(FINGERPRINT_KEY)
        if key is None:
            return None
        told = blake2b(node_id.encode("utf-8", "surrogatepass"), key=bytes.fromhex(key), digest_size=16).digest()
        at: int | None = self.value("erased_id_at", self._for(scope, id=told))
        return None if at is None else from_ms(at)

    def next_commit(self) -> int:
        """The number the next commit gets. Certain only while writing: nobody else then can."""
        return int((self.rows("commit_last") or [(0, b"")])[0][0]) + 1

    def commit_of_node(self, key: int) -> Commit:
        """The commit that wrote a node's present row."""
        return commit_of(self.rows("commit_of_node", {"key": key})[0])

    # figures

    def counts(self, scope: Scope, name: str, **values: Any) -> list[Row]:
        """Rows of one of the counting statements of upkeep.sql."""
        return self.rows(name, self._for(scope, **values))

    def meta(self, name: str) -> str | None:
        """A property of the store."""
        found: str | None = self.value("meta_get", {"name": name})
        return found


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []
