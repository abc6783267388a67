"""Named statements on one connection, in one transaction. All reader groups use them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import apsw

from ricordo.clock import from_ms, to_ms
from ricordo.model import Commit, Edge, Entity, MemberRole, Node, Relation, Review, Run, RunItem, Scope, Session
from ricordo.storage.database.hashes import seal, sealed
from ricordo.storage.sql import named_statements
from ricordo.text.analyzer import name_key
from ricordo.text.names import same_name_key

T = TypeVar("T")

# The deadline is checked every few milliseconds.
_STEPS_BETWEEN_CHECKS = 50_000

Asked = tuple[str, Mapping[str, Any]]
"""The name of a statement, and its parameters."""

Unchanged = dict[tuple[Hashable, ...], Any]
"""Results that depend on the whole store, or on all memories of a caller, and stay valid until the next write."""
_UNCHANGED_LIMIT = 1_000

# Imports write most of their rows with these. Several rows per statement take two thirds of the time.
_WIDE = frozenset(("node_insert", "node_traits"))
_AT_ONCE = 25


class Statements:
    """One snapshot of the database, queried by named statements, in one transaction of one thread."""

    def __init__(self, connection: apsw.Connection, *, unchanged: Unchanged | None = None) -> None:
        """Start with a cache of results that are still valid; None if the store may change during this transaction."""
        self.connection = connection
        self._unchanged = unchanged
        self._spaces: dict[Scope, tuple[int, ...]] = {}
        self._keys: dict[tuple[str, str], int] = {}

    generation = 0
    is_past = False
    has_packs = True
    """Whether the backend keeps segments of vectors."""
    reads_around = False
    """Whether the statement `traits_around` reads turns, the order around them and the turns in it at once."""
    among = "IN (SELECT value FROM json_each(?))"
    """The condition that a column is one of the keys in a JSON list."""
    holds_evidence = (
        "evidence != '[]'"
        " AND EXISTS (SELECT 1 FROM json_each(evidence) WHERE value IN (SELECT value FROM json_each(?)))"
    )
    """The condition that a row's evidence contains one of the ids in a JSON list."""
    former_key = "json_extract(before, '$.{}')"
    """The value of a key column in a former version."""

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """Return the result of `work`; raise TimeoutError at `moment` on the clock of `time.monotonic`, in seconds."""
        if time.monotonic() >= moment:
            raise TimeoutError
        self.connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_BETWEEN_CHECKS)
        try:
            return work()
        except apsw.InterruptError as error:
            raise TimeoutError from error
        finally:
            self.connection.set_progress_handler(None)

    def text(self, name: str) -> str:
        """Return the named statement in this backend's SQL."""
        return sql(name)

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """Return all rows of a named statement."""
        return self.connection.execute(self.text(name), values).fetchall()

    def many(self, name: str, rows: Sequence[Row]) -> None:
        """Run a named statement once for each row of parameters."""
        if name in _WIDE:
            insert_all(self.connection, self.text(name), rows)
        else:
            self.connection.executemany(self.text(name), rows)

    def ahead(self, *asked: Asked) -> None:
        """Note which named statements are asked next, with their parameters, so that a server answers them together."""

    def together(self, *reads: Callable[[], Any]) -> list[Any]:
        """Return the results of independent reads, in as few round trips as possible. They may run more than once."""
        return [read() for read in reads]

    def in_one_trip(self) -> AbstractContextManager[None]:
        """Send the statements of a block together to a server. None of them may return rows."""
        return nullcontext()

    def reindex(self, nodes: Sequence[int]) -> None:
        """Index the words of altered nodes again, in backends whose triggers cannot. Only inside a write."""

    def index_restored(self, nodes: Sequence[int]) -> None:
        """Index the words of restored, closed nodes. Only inside a write."""
        keys = {"nodes": json.dumps(nodes)}
        self.rows("nodes_archive_again", keys)
        self.rows("nodes_traits_again", keys)

    @contextmanager
    def deferred_references(self) -> Iterator[None]:
        """Check references between rows at the end of the block instead of at each statement."""
        self.connection.execute("PRAGMA defer_foreign_keys = ON")
        yield
        self.connection.execute("PRAGMA defer_foreign_keys = OFF")

    def rows_of_store(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """Return `rows` that depend on the whole store or on all memories of a caller, cached until the next write."""
        asked = (name, *values.values()) if values else (name,)
        return self.once(asked, lambda: self.rows(name, values))

    def once(self, asked: tuple[Hashable, ...], work: Callable[[], T]) -> T:
        """Return the result of `work`, cached until the next write. It must not be None, and must not be changed."""
        if self._unchanged is None:
            return work()
        found: T | None = self._unchanged.get(asked)
        if found is None:
            found = work()
            if len(self._unchanged) < _UNCHANGED_LIMIT:
                self._unchanged[asked] = found
        return found

    def each(self, name: str, values: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the rows of a named statement one by one, if there may be too many for memory."""
        return self.connection.execute(self.text(name), values)

    def value(self, name: str, values: Mapping[str, Any] | None = None) -> Any:
        """Return the first column of the first row of a named statement; None if there is no row."""
        return self.connection.execute(self.text(name), values).get

    def rows_of_each(self, name: str, given: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        """Return the rows of a named statement for each of several sets of parameters."""
        return [self.rows(name, each) for each in given]

    def values(self, name: str, given: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return `value` for each of several sets of parameters."""
        return [rows[0][0] if rows else None for rows in self.rows_of_each(name, given)]

    def current(self, now: int) -> int:
        """Return the instant that counts as now in this snapshot, in Unix milliseconds."""
        return now

    def space(self, owner: str, chat: str) -> int | None:
        """Return the key of a space; None if nothing was ever written to it. A space keeps its key."""
        if (owner, chat) not in self._keys:
            rows = self.rows_of_store("space_by_owner", {"owner": owner, "chat": chat})
            if not rows:
                return None
            self._keys[owner, chat] = rows[0][0]
        return self._keys[owner, chat]

    def visible(self, scope: Scope) -> tuple[int, ...]:
        """Return the spaces a caller sees: the caller's own, the present chat's, and shared ones as a member."""
        if scope not in self._spaces:
            self._spaces[scope] = self.once(("visible", scope), lambda: self._visible(scope))
        return self._spaces[scope]

    def _visible(self, scope: Scope) -> tuple[int, ...]:
        own = self.space(scope.owner, "") if scope.owner else None
        joined = self.joined(scope.who)
        chat = self.space("", scope.chat) if scope.chat else None
        if chat is not None and not scope.is_chat_itself and chat not in joined and self._is_shared(chat):
            chat = None
        others = (key for key, (name, _) in joined.items() if scope.spaces is None or name in scope.spaces)
        return tuple(key for key in dict.fromkeys((own, chat, *others)) if key is not None)

    def joined(self, owner: str) -> dict[int, tuple[str, MemberRole]]:
        """Return the shared spaces of an owner, as key to (name, role)."""
        rows = self.rows_of_store("spaces_joined", {"member": owner}) if owner else []
        return {key: (name, role) for key, name, role in rows}

    def _is_shared(self, space: int) -> bool:
        return bool(self.rows_of_store("space_is_shared", {"space": space})[0][0])

    def members_changed(self) -> None:
        """Forget which spaces callers see, because this transaction has changed members."""
        self._spaces.clear()

    def scoped(self, scope: Scope, **values: Any) -> dict[str, Any]:
        return {"spaces": json.dumps(self.visible(scope)), **values}

    def raise_sequence(self, table: str, key: int) -> None:
        """Record that a row has a key, so that no later row gets it. SQLite does this for new rows of tables with
        AUTOINCREMENT, which `sessions` is not.
        """
        values = {"table": table, "key": key}
        self.rows("sequence_begin", values)
        self.rows("sequence_raise", values)

    def meta(self, name: str) -> str | None:
        """Return a property of the store; None if it is not set."""
        rows = self.rows_of_store("meta_get", {"name": name})
        return str(rows[0][0]) if rows else None

    def bound(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a statement. A scope becomes the `spaces` it sees, an owner and a chat become their
        `space`, a node or an entity its key, and a collection a JSON list.
        """
        values = {key: _parameter(value) for key, value in given.items() if not isinstance(value, Scope)}
        for value in given.values():
            if isinstance(value, Scope):
                values["spaces"] = json.dumps(self.visible(value))
        if _takes_space(name) and "space" not in values:
            values["space"] = self.space(given["owner"], given["chat"])
        return values


def statements() -> dict[str, str]:
    """Return every statement of the `.sql` files in `queries` by name."""
    return named_statements("ricordo.storage.database", "queries")


@cache
def sql(name: str) -> str:
    """Return the named statement."""
    return statements()[name]


@cache
def _takes_space(name: str) -> bool:
    return re.search(r":space\b", sql(name)) is not None


def insert_all(connection: apsw.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Insert many rows by `INSERT ... VALUES (...)`. Not for full text: FTS5 writes to disk before each statement."""
    whole = len(rows) - len(rows) % _AT_ONCE
    if whole:
        lots = (tuple(chain.from_iterable(rows[at : at + _AT_ONCE])) for at in range(0, whole, _AT_ONCE))
        connection.executemany(_for_many_rows(statement), lots)
    connection.executemany(statement, rows[whole:])


@cache
def _for_many_rows(statement: str) -> str:
    head, values, row = statement.rpartition("VALUES")
    return f"{head}{values}{','.join([row] * _AT_ONCE)}"


def _parameter(value: Any) -> Any:
    if isinstance(value, Node | Entity):
        return value.key
    return value if value is None or isinstance(value, str | int | float | bytes) else json.dumps(list(value))


# methods of the port that consist of one statement


class Group:
    """A group of the port (see `ricordo.storage.groups`), based on the statements of one snapshot."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql


def asks(statement: str, names: str, shape: Callable[[list[Row]], T]) -> Callable[..., T]:
    """Return a method of a group that runs one statement.

    Args:
        names: names of the arguments in order, which are also the parameters of the statement; `Statements.bound`
            converts them. A missing argument is NULL.
        shape: turns the rows into the result.
    """
    wanted = names.split()

    def answer(group: Group, *args: Any, **given: Any) -> T:
        values = {**dict.fromkeys(wanted), **dict(zip(wanted, args, strict=False)), **given}
        return shape(group._sql.rows(statement, group._sql.bound(statement, values)))

    return answer


def first(rows: list[Row]) -> Any:
    """Return the first column of the first row; None if there is no row."""
    return rows[0][0] if rows else None


def flag(rows: list[Row]) -> bool:
    """Return whether there is a row whose first column is true."""
    return bool(rows and rows[0][0])


def column(rows: list[Row]) -> list[Any]:
    """Return the first column."""
    return [row[0] for row in rows]


def as_set(rows: list[Row]) -> set[Any]:
    """Return the first column as a set."""
    return {row[0] for row in rows}


def nothing(_: list[Row]) -> None:
    """Return None, for a statement that writes."""


def rows_as(make: Callable[[Row], T]) -> Callable[[list[Row]], list[T]]:
    """Return a shape that builds a value from each row."""
    return lambda rows: [make(row) for row in rows]


def row_as(make: Callable[[Row], T]) -> Callable[[list[Row]], T | None]:
    """Return a shape that builds a value from the first row; None if there is no row."""
    return lambda rows: make(rows[0]) if rows else None


# rows and dataclasses

Row = tuple[Any, ...]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_INSTANTS = [
    "at",
    "event_time",
    "created_at",
    "valid_from",
    "valid_until",
    "expires_at",
    "closed_at",
    "reinforced_at",
    "first_seen",
    "last_updated",
    "first_seen_at",
    "started_at",
    "ended_at",
    "consolidated_at",
    "decided_at",
    "last_said_at",
    "last_added_at",
    "begun_at",
    "last_at",
]
_LISTS = ["about", "tags", "evidence", "aliases", "sessions", "reasons"]
_DECODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, lambda ms: None if ms is None else from_ms(ms)),
    # Most lists are empty, and a search reads hundreds.
    **dict.fromkeys(_LISTS, lambda text: () if text == "[]" else tuple(json.loads(text))),
    "attributes": lambda text: {} if text == "{}" else dict(json.loads(text)),
    "protected": bool,
    "hash": bytes.hex,
}
_ENCODE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_INSTANTS, lambda at: None if at is None else to_ms(at)),
    **dict.fromkeys(_LISTS, lambda values: _encode(values) if values else "[]"),
    "attributes": lambda values: _encode(values) if values else "{}",
    **dict.fromkeys(("confidence", "decay_rate", "score", "weight"), float),
    "protected": int,
}


def reading(cls: type[T], columns: str = "") -> Callable[[Row], T]:
    """Return a function that builds a dataclass from a row with these columns; by default all its fields, in order."""
    names = columns.split() or list(cls.__annotations__)
    decoders = [(name, _DECODE[name]) for name in names if name in _DECODE]

    def read(row: Row) -> T:
        values = dict(zip(names, row, strict=True))
        for name, decode in decoders:
            values[name] = decode(values[name])
        return cls(**values)

    return read


def _writing(columns: str) -> Callable[..., Row]:
    """Return a function that makes a sealed row from a dataclass; columns that it lacks are passed by name."""
    names = columns.split()

    @cache
    def plan(given: tuple[str, ...]) -> tuple[Callable[[object], Row], list[tuple[int, Callable[[Any], Any]]], Any]:
        """Return a reader of the dataclass's columns, the encoders by place, and a function that orders all columns."""
        read = [name for name in names if name not in given]
        encoders = [(place, _ENCODE[name]) for place, name in enumerate(read) if name in _ENCODE]
        return attrgetter(*read), encoders, itemgetter(*map([*read, *given].index, names))

    def write(item: object, **given: Any) -> Row:
        read, encoders, in_order = plan(tuple(given))
        values = [*read(item), *given.values()]
        for place, encode in encoders:
            values[place] = encode(values[place])
        return sealed(in_order(values))

    return write


_NODE = (
    "id type category content origin role speaker tags attributes event_time created_at valid_from valid_until"
    " expires_at closed_at closed_reason confidence decay_rate score reinforced_at"
)
_NODE_ROW = f"key {_NODE} owner chat session about"
node_of: Callable[[Row], Node] = reading(Node, _NODE_ROW)
"""Build a node from the columns of the statements that begin with `node_` (see nodes.sql)."""


def columns_of_node(names: str) -> Callable[[Row], tuple[Any, ...]]:
    """Return a function that takes some columns out of such a row as they are stored."""
    return itemgetter(*map(_NODE_ROW.split().index, names.split()))


node_row = _writing(
    "key id space shelf type category content origin role speaker session tags attributes event_time created_at"
    " valid_from valid_until expires_at closed_at closed_reason confidence decay_rate score reinforced_at commit"
)
"""Return the sealed columns of `nodes`, in the order of the table. The other functions `..._row` do the same."""

_IN_IMAGE = {"origin": "source_type", "role": "source_role"}


def shelf_of(node: Node) -> str:
    """Return the shelf of a new node: "e" for an episode that is not consolidated, "k" for knowledge."""
    return "e" if node.type == "episodic" else "k"


def former_node(node: Node, before: Mapping[str, Any]) -> Node:
    """Return the node in a former version. Its owner, session and subjects are taken from the present row."""
    values = (before[_IN_IMAGE.get(name, name)] for name in _NODE.split())
    return node_of((node.key, *values, node.owner, node.chat, node.session, _encode(node.about)))


commit_of: Callable[[Row], Commit] = reading(Commit, "seq at actor origin reason run_id hash")
"""Build a commit from these columns."""

session_of: Callable[[Row], Session] = reading(
    Session, "key id first_seen_at ended_at consolidated_at summary owner chat"
)
"""Build a session from these columns."""

session_row = _writing("key space id first_seen_at ended_at consolidated_at summary commit")

asserted_edge: Callable[[Row], Edge] = reading(Edge, "type source target predicate weight confidence evidence")
"""Build an edge from the columns of `edges_of_node`."""

_edge_row = _writing(
    "source type target predicate weight confidence valid_from valid_until evidence created_at closed_at commit"
)


def edge_row(edge: Edge, *, source: int, target: int, at: int, commit: int) -> Row:
    """Return the sealed columns of `edges`, in the order of the table."""
    times = {"valid_from": at, "valid_until": None, "created_at": at, "closed_at": None}
    return _edge_row(edge, source=source, target=target, commit=commit, **times)


def closed_edge_row(row: Row, *, at: int, commit: int) -> Row:
    """Return the parameters of `edge_close` for an edge, given as the columns of `edge_of`."""
    return (*row[:3], at, commit, seal((*row, at, commit)))


_review = reading(Review, "key id kind newer older created_at decided_at decision reasons about owner chat")
review_row = _writing("key id space kind newer older created_at decided_at decision reasons about commit")


def review_of(row: Row, nodes: Mapping[int, Node]) -> Review:
    """Build a review from the columns of `review_by_id` and its two nodes by key."""
    return _review((*row[:3], nodes[row[3]], nodes.get(row[4]), *row[5:]))


_run = reading(
    Run, "key id kind model prompt sessions started_at ended_at tokens_in tokens_out cost items owner chat state"
)
_run_row = _writing(
    "key id space kind model prompt sessions started_at ended_at tokens_in tokens_out cost items commit"
)


def run_row(run: Run, *, key: int, space: int, commit: int, keys: Mapping[str, int], sessions: Sequence[int]) -> Row:
    """Return the sealed columns of `runs`. Its items are stored as keys and reasons, without texts and ids."""
    items = [
        [item.what, item.reason, keys.get(item.id or ""), keys.get(item.other or ""), [keys[e] for e in item.evidence]]
        for item in run.items
    ]
    return _run_row(run, key=key, space=space, sessions=_encode(sessions), items=_encode(items), commit=commit)


def keys_in_run(row: Row) -> set[int]:
    """Return the keys of the nodes in the items of a run."""
    items = json.loads(row[11])
    return {key for _, _, node, other, evidence in items for key in (node, other, *evidence) if key is not None}


def run_of(row: Row, ids: Mapping[int, str]) -> Run:
    """Build a run from the columns of statements in runs.sql. Its items have ids of existing nodes, but no texts."""
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


entity_of: Callable[[Row], Entity] = reading(
    Entity,
    "key id type name relation summary protected attributes first_seen last_updated closed_at merged_into owner chat"
    " aliases mention_count",
)
"""Build an entity from the columns of the statements that begin with `entity_` (see entities.sql)."""

entity_row = _writing(
    "key id space type name summary protected attributes first_seen last_updated closed_at merged_into commit"
)


def alias_row(alias: str, *, entity: int, space: int, commit: int) -> Row:
    """Return the sealed columns of `aliases`, in the order of the table."""
    return sealed((space, name_key(alias), entity, alias, same_name_key(alias), commit))


relation_of: Callable[[Row], Relation] = reading(
    Relation,
    "key id predicate source source_name target target_name valid_from valid_until evidence created_at owner chat",
)
"""Build a relation from the columns of the statements that begin with `relation_` (see entities.sql)."""

relation_row = _writing(
    "key id space source predicate target valid_from valid_until evidence created_at closed_at commit"
)
