"""Named statements on one connection, inside one transaction: what every reader group asks its questions with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import apsw

from ricordo.clock import from_ms, to_ms
from ricordo.model import Commit, Edge, Entity, Node, Relation, Review, Run, RunItem, Scope, Session
from ricordo.storage.database.hashes import seal, sealed
from ricordo.storage.sql import named_statements
from ricordo.text import name_key, same_name_key

T = TypeVar("T")

# The deadline is checked every few milliseconds.
_STEPS_BETWEEN_CHECKS = 50_000

Unchanged = dict[tuple[Hashable, ...], Any]
"""Answers about the whole store, or about all of a caller's memories, that hold until the next write."""
_UNCHANGED_LIMIT = 1_000


class Statements:
    """One snapshot of the database, asked by named statements. Lives inside one transaction of one thread."""

    def __init__(self, connection: apsw.Connection, *, unchanged: Unchanged | None = None) -> None:
        """
        Args:
            unchanged: a cache of answers that still hold; None where the store may change during this transaction.
        """
        self.connection = connection
        self._unchanged = unchanged
        self._spaces: dict[Scope, tuple[int, ...]] = {}

    is_past = False

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """The result of some work that ends at a moment on the clock of `time.monotonic`, in seconds.

        Raises:
            TimeoutError: it was not done by then.
        """
        if time.monotonic() >= moment:
            raise TimeoutError
        self.connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_BETWEEN_CHECKS)
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
            if len(self._unchanged) < _UNCHANGED_LIMIT:
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

    def scoped(self, scope: Scope, **values: Any) -> dict[str, Any]:
        return {"spaces": json.dumps(self.visible(scope)), **values}

    def raise_sequence(self, table: str, key: int) -> None:
        """Note that a key was given to a row of a table, so that no later row gets it. SQLite does so by itself for new
        rows of tables with AUTOINCREMENT, which `sessions` is not.
        """
        values = {"table": table, "key": key}
        self.rows("sequence_begin", values)
        self.rows("sequence_raise", values)

    def meta(self, name: str) -> str | None:
        """A property of the store."""
        found: str | None = self.value("meta_get", {"name": name})
        return found

    def put_meta(self, name: str, value: str) -> None:
        """Set a property of the store."""
        self.rows("meta_put", {"name": name, "value": value})


class Group:
    """A group of the port (see `ricordo.storage.groups`), answered by the statements of one snapshot."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql


def statements() -> dict[str, str]:
    """Return every statement of the `.sql` files in `queries` by name."""
    return named_statements("ricordo.storage.database", "queries")


@cache
def sql(name: str) -> str:
    """Return the statement of a name."""
    return statements()[name]


Row = tuple[Any, ...]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _names(text: str) -> list[str]:
    return text.split()


def _list(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))  # most are empty, and a search reads hundreds


def _object(text: str) -> dict[str, Any]:
    return {} if text == "{}" else dict(json.loads(text))


def _optional_at(ms: int | None) -> Any:
    return None if ms is None else from_ms(ms)


def _optional_ms(at: Any) -> int | None:
    return None if at is None else to_ms(at)


_INSTANTS = _names(
    "event_time created_at valid_from valid_until expires_at closed_at reinforced_at first_seen last_updated"
    " first_seen_at started_at ended_at consolidated_at decided_at"
)
_LISTS = _names("about tags evidence aliases sessions reasons")
_DECODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, _optional_at),
    **dict.fromkeys(_LISTS, _list),
    "attributes": _object,
    "protected": bool,
}
_ENCODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, _optional_ms),
    **dict.fromkeys((*_LISTS, "attributes"), _encode),
    **dict.fromkeys(("confidence", "decay_rate", "score", "weight"), float),
    "protected": int,
}


def _reading(cls: type[T], columns: str) -> Callable[[Row], T]:
    """Return a function that makes a dataclass of a row with these columns."""
    names = _names(columns)
    decoders = [(name, _DECODE[name]) for name in names if name in _DECODE]

    def read(row: Row) -> T:
        values = dict(zip(names, row, strict=True))
        for name, decode in decoders:
            values[name] = decode(values[name])
        return cls(**values)

    return read


def _writing(columns: str) -> Callable[..., Row]:
    """Return a function that makes a sealed row of a dataclass; what a row has besides is given by name."""
    encoders = [(name, _ENCODE.get(name)) for name in _names(columns)]

    def write(item: object, **given: Any) -> Row:
        return sealed(
            tuple(
                given[name] if name in given else encode(getattr(item, name)) if encode else getattr(item, name)
                for name, encode in encoders
            )
        )

    return write


node_of: Callable[[Row], Node] = _reading(
    Node,
    "key id type category content origin role speaker tags attributes event_time created_at valid_from valid_until"
    " expires_at closed_at closed_reason confidence decay_rate score reinforced_at owner chat session about",
)
"""Make a node of the columns of the statements that begin `node_` (see nodes.sql)."""

_node_row = _writing(
    "key id space shelf type category content origin role speaker session tags attributes event_time created_at"
    " valid_from valid_until expires_at closed_at closed_reason confidence decay_rate score reinforced_at commit"
)

_IN_IMAGE = {"origin": "source_type", "role": "source_role"}
_IMAGE_COLUMNS = [
    _IN_IMAGE.get(name, name)
    for name in _names(
        "id type category content origin role speaker tags attributes event_time created_at valid_from valid_until"
        " expires_at closed_at closed_reason confidence decay_rate score reinforced_at"
    )
]


def shelf_of(node: Node) -> str:
    """Return the shelf of a new node: "e" for an episode that is not consolidated, "k" for knowledge."""
    return "e" if node.type == "episodic" else "k"


def node_row(node: Node, *, key: int, space: int, shelf: str, session: int | None, commit: int) -> Row:
    """Return the sealed columns of `nodes`, in the order of the table."""
    return _node_row(node, key=key, space=space, shelf=shelf, session=session, commit=commit)


def former_node(node: Node, before: Mapping[str, Any]) -> Node:
    """Return the node a before-image shows. Its owner, session and subjects are those of its present row."""
    values = (before[name] for name in _IMAGE_COLUMNS)
    return node_of((node.key, *values, node.owner, node.chat, node.session, _encode(node.about)))


_commit = _reading(Commit, "seq at actor origin reason run_id hash")


def commit_of(row: Row) -> Commit:
    """Make a commit of (seq, at, actor, origin, reason, run id, hash)."""
    return _commit((row[0], from_ms(row[1]), *row[2:6], row[6].hex()))


session_of: Callable[[Row], Session] = _reading(
    Session, "key id first_seen_at ended_at consolidated_at summary owner chat"
)
"""Make a session of the columns of `session_row`."""

_session_row = _writing("key space id first_seen_at ended_at consolidated_at summary commit")


def session_row(session: Session, *, key: int, space: int, commit: int) -> Row:
    """Return the sealed columns of `sessions`, in the order of the table."""
    return _session_row(session, key=key, space=space, commit=commit)


asserted_edge: Callable[[Row], Edge] = _reading(Edge, "type source target predicate weight confidence evidence")
"""Make an edge of the columns of `edges_of_node`."""

_edge_row = _writing(
    "source type target predicate weight confidence valid_from valid_until evidence created_at closed_at commit"
)


def edge_row(edge: Edge, *, source: int, target: int, at: int, commit: int) -> Row:
    """Return the sealed columns of `edges`, in the order of the table."""
    times = {"valid_from": at, "valid_until": None, "created_at": at, "closed_at": None}
    return _edge_row(edge, source=source, target=target, commit=commit, **times)


def closed_edge_row(row: Row, *, at: int, commit: int) -> Row:
    """Return what `edge_close` takes for an edge from the columns of `edge_of`."""
    return (*row[:3], at, commit, seal((*row, at, commit)))


_review = _reading(Review, "key id kind newer older created_at decided_at decision reasons about owner chat")
_review_row = _writing("key id space kind newer older created_at decided_at decision reasons about commit")


def review_of(row: Row, nodes: Mapping[int, Node]) -> Review:
    """Make a review of the columns of `review_by_id` and its two nodes by key."""
    return _review((*row[:3], nodes[row[3]], nodes.get(row[4]), *row[5:]))


def review_row(review: Review, *, key: int, space: int, newer: int, older: int | None, commit: int) -> Row:
    """Return the sealed columns of `reviews`, in the order of the table."""
    return _review_row(review, key=key, space=space, newer=newer, older=older, commit=commit)


_run = _reading(
    Run, "key id kind model prompt sessions started_at ended_at tokens_in tokens_out cost items owner chat state"
)
_run_row = _writing(
    "key id space kind model prompt sessions started_at ended_at tokens_in tokens_out cost items commit"
)


def run_row(run: Run, *, key: int, space: int, commit: int, keys: Mapping[str, int], sessions: Sequence[int]) -> Row:
    """Return the sealed columns of `runs`. Its items are stored as keys and reasons, without content and ids."""
    items = [
        [item.what, item.reason, keys.get(item.id or ""), keys.get(item.other or ""), [keys[e] for e in item.evidence]]
        for item in run.items
    ]
    return _run_row(run, key=key, space=space, sessions=_encode(sessions), items=_encode(items), commit=commit)


def keys_in_run(row: Row) -> set[int]:
    """Return the keys of the nodes that the items of a run name."""
    items = json.loads(row[11])
    return {key for _, _, node, other, evidence in items for key in (node, other, *evidence) if key is not None}


def run_of(row: Row, ids: Mapping[int, str]) -> Run:
    """Make a run of the columns of the statements of runs.sql, without the texts of its items.

    Args:
        ids: by key, of the nodes that still exist.
    """
    items = tuple(
        RunItem(
            what=what,
            id=ids.get(node),
            other=ids.get(other),
            reason=reason,
            evidence=tuple(ids[each] for each in evidence if each in ids),
        )
        for what, reason, node, other, evidence in json.loads(row[11])
    )
    return _run((*row[:11], items, *row[12:], "done"))


_entity = _reading(
    Entity,
    "key id type name relation summary protected attributes first_seen last_updated closed_at merged_into owner chat"
    " aliases mention_count",
)
_entity_row = _writing(
    "key id space type name summary protected attributes first_seen last_updated closed_at merged_into commit"
)


def entity_of(row: Row) -> Entity:
    """Make an entity of the columns of the statements that begin `entity_` (see entities.sql)."""
    return _entity(row)


def entity_row(entity: Entity, *, key: int, space: int, merged_into: int | None, commit: int) -> Row:
    """Return the sealed columns of `entities`, in the order of the table."""
    return _entity_row(entity, key=key, space=space, merged_into=merged_into, commit=commit)


def alias_row(alias: str, *, entity: int, space: int, commit: int) -> Row:
    """Return the sealed columns of `aliases`, in the order of the table."""
    return sealed((space, name_key(alias), entity, alias, same_name_key(alias), commit))


relation_of: Callable[[Row], Relation] = _reading(
    Relation,
    "key id predicate source source_name target target_name valid_from valid_until evidence created_at owner chat",
)
"""Make a relation of the columns of the statements that begin `relation_` (see entities.sql)."""

_relation_row = _writing(
    "key id space source predicate target valid_from valid_until evidence created_at closed_at commit"
)


def relation_row(relation: Relation, *, key: int, space: int, source: int | None, target: int, commit: int) -> Row:
    """Return the sealed columns of `relations`, in the order of the table."""
    return _relation_row(relation, key=key, space=space, source=source, target=target, closed_at=None, commit=commit)
