"""Restore rows to earlier versions: the writing half of an undo, for any truth table."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import Any, Final

import apsw

from ricordo.errors import UnavailableError
from ricordo.model import Commit, Node, RowId, RowState, Scope
from ricordo.storage import faults
from ricordo.storage.database.hashes import seal
from ricordo.storage.database.statements import (
    Group,
    Row,
    Statements,
    as_set,
    asks,
    column,
    commit_of,
    former_node,
    reading,
    row_as,
    sql,
)
from ricordo.storage.database.word_index import look_again_for
from ricordo.storage.values import _WRITTEN, ChangeEvent, Image


@dataclass(frozen=True, slots=True)
class Restored:
    """A row to restore: its present and its future values; `then` is None for a row to remove."""

    table: Table
    now: Image | None
    then: Image | None

    @property
    def space(self) -> int | None:
        """The space of the row, if the row itself has one."""
        found: int | None = (self.now or self.then or {}).get("space")
        return found


def restored_rows(snapshot: Statements, states: Sequence[RowState], *, commit: int) -> list[Restored]:
    """Return the rows that an undo changes, with their new commit and hash."""
    if not states:
        return []
    truth = truth_of(snapshot.connection)
    found = []
    for state in states:
        table = truth.tables[state.row.table]
        now = table.current(snapshot.connection, state.row.key)
        if state.values is not None:
            then = {**state.values, "commit_seq": commit}
            found.append(Restored(table, now, {**then, "seal": seal([then[name] for name in table.sealed])}))
        elif now is not None:
            found.append(Restored(table, now, None))
    return found


def put_back(snapshot: Statements, restored: Sequence[Restored]) -> None:
    """Write restored rows, and update what depends on them: indexes, counts, mentions."""
    if not restored:
        return
    # Removed rows may be referred to by rows that are altered afterwards, so references are checked at the end.
    truth = truth_of(snapshot.connection)
    order = {name: place for place, name in enumerate(truth.tables)}
    parents_first = sorted(restored, key=lambda each: order[each.table.name])
    redated = [each.then["key"] for each in restored if each.now and each.then and _is_redated(each.now, each.then)]
    with renewed_spans(snapshot, redated), snapshot.deferred_references():
        for each in reversed(parents_first):
            if each.then is None:
                _remove(snapshot, truth, each)
        faults.reached("undo: after removing")
        for each in parents_first:
            if each.then is not None:
                _write(snapshot, each)
    _open_again(snapshot, restored)
    snapshot.reindex([each.then["key"] for each in restored if each.table.name == "nodes" and each.then])
    gone = [each.now for each in restored if each.table.name == "aliases" and each.now and each.then is None]
    look_again_for(snapshot, [(image["space"], image["alias"]) for image in gone])


def _is_redated(now: Image, then: Image) -> bool:
    return "event_time" in now and now["event_time"] != then["event_time"]


@contextmanager
def renewed_spans(snapshot: Statements, nodes: Sequence[int]) -> Iterator[None]:
    """Renew the time spans of the people and things named in nodes whose times change in the block."""
    if not nodes:
        yield
        return
    keys = {"nodes": json.dumps(nodes)}
    entities = as_set(snapshot.rows("spans_at_nodes", keys))
    yield
    entities |= as_set(snapshot.rows("spans_at_nodes", keys))
    snapshot.rows("spans_renew", {"entities": json.dumps(sorted(entities))})


def _remove(snapshot: Statements, truth: Truth, each: Restored) -> None:
    """Delete a row and what was derived from it."""
    assert each.now is not None
    for reference in truth.children(each.table.name, derived=True):
        statement = f'DELETE FROM "{reference.table}" WHERE "{reference.column}" = ?'
        snapshot.connection.execute(statement, (each.now[each.table.key[0]],))
    snapshot.connection.execute(f'DELETE FROM "{each.table.name}" WHERE {each.table.where_key}', _key(each))


def _write(snapshot: Statements, each: Restored) -> None:
    assert each.then is not None
    table = each.table
    if each.now is not None:
        columns = [name for name in table.columns if name not in table.key]
        statement = f'UPDATE "{table.name}" SET ({named(columns)}) = ({marks(columns)}) WHERE {table.where_key}'
        snapshot.connection.execute(statement, (*(each.then[name] for name in columns), *_key(each)))
        return
    shut = {"closed_at": 0, "closed_reason": "forgotten"} if _opens(each) else {}
    snapshot.connection.execute(table.insert, tuple({**each.then, **shut}[name] for name in table.columns))
    if table.name == "sessions":
        snapshot.raise_sequence("sessions", each.then["key"])


def _key(each: Restored) -> tuple[Any, ...]:
    image = each.now or each.then or {}
    return tuple(image[name] for name in each.table.key)


def _opens(each: Restored) -> bool:
    return each.table.name == "nodes" and each.now is None and each.then is not None and each.then["closed_at"] is None


def _open_again(snapshot: Statements, restored: Sequence[Restored]) -> None:
    """Reopen restored nodes. They were written as closed ones, since triggers derive rows when a node is opened."""
    back = [each.then for each in restored if each.table.name == "nodes" and each.now is None and each.then]
    if not back:
        return
    keys = [image["key"] for image in back]
    living = {"nodes": json.dumps([each.then["key"] for each in restored if _opens(each) and each.then])}
    snapshot.index_restored(keys)
    snapshot.rows("nodes_reopen", living)
    snapshot.rows("history_forget", {**living, "commit": back[0]["commit_seq"]})
    snapshot.rows("to_link_put", {"nodes": json.dumps(keys)})


class Ledger:
    """The versions of rows. Each row is read once; valid inside one transaction."""

    def __init__(self, snapshot: Statements) -> None:
        self._snapshot = snapshot
        self._connection = snapshot.connection
        self._truth = truth_of(snapshot.connection)
        self._current: dict[RowId, Image | None] = {}
        self._former: dict[RowId, list[tuple[int, Image]]] = {}

    def commits_of_run(self, scope: Scope, run_id: str) -> list[int]:
        return column(self._snapshot.rows("commits_of_run", self._snapshot.scoped(scope, run=run_id)))

    def visible(self, scope: Scope, commits: Iterable[int]) -> set[int]:
        return as_set(self._snapshot.rows("commits_visible", self._snapshot.scoped(scope, seqs=json.dumps([*commits]))))

    def touched(self, commit: int) -> list[RowId]:
        found: dict[RowId, None] = {}
        for name, row, before in self._snapshot.rows("history_touched", {"seq": commit}):
            table = self._truth.tables[name]
            found[table.row_id(table.image(before, row))] = None
        for table in self._truth.tables.values():
            found.update(dict.fromkeys(self._rows(table, "commit_seq = ?", (commit,))))
        return list(found)

    def current(self, row: RowId) -> Image | None:
        if row not in self._current:
            self._current[row] = self._truth.tables[row.table].current(self._connection, row.key)
        return self._current[row]

    def state(self, row: RowId, commit: int) -> Image | None:
        for replaced, image in self._versions(row):
            if replaced > commit:
                return image if image["commit_seq"] <= commit else None
        now = self.current(row)
        return now if now is not None and now["commit_seq"] <= commit else None

    def touches(self, row: RowId) -> list[int]:
        found = {seq for replaced, image in self._versions(row) for seq in (replaced, image["commit_seq"])}
        now = self.current(row)
        return sorted(found | ({now["commit_seq"]} if now else set()))

    def children(self, row: RowId) -> list[RowId]:
        found = []
        for reference in self._truth.children(row.table):
            found += self._rows(self._truth.tables[reference.table], f'"{reference.column}" = ?', (row.key[0],))
        return found

    def parents(self, row: RowId, image: Image) -> list[RowId]:
        return [
            RowId(table=reference.target, key=(image[reference.column],))
            for reference in self._truth.parents(row.table)
            if image[reference.column] is not None
        ]

    def rivals(self, row: RowId, image: Image) -> list[RowId]:
        table = self._truth.tables[row.table]
        found: list[RowId] = []
        for columns in table.unique:
            where = " AND ".join(f'"{name}" = ?' for name in columns)
            found += self._rows(table, where, tuple(image[name] for name in columns))
        return [other for other in found if other != row]

    def _versions(self, row: RowId) -> list[tuple[int, Image]]:
        if row not in self._former:
            table, text = self._truth.tables[row.table], text_of_key(row.key)
            found = self._snapshot.rows("history_of_row", {"table": row.table, "row": text})
            self._former[row] = [(seq, table.image(before, text)) for seq, before in found]
        return self._former[row]

    def _rows(self, table: Table, where: str, values: tuple[Any, ...]) -> list[RowId]:
        found = {table.row_id(image): image for image in table.images(self._connection, where, values)}
        self._current.update(found)
        return [*found]


TABLES: Final[Mapping[str, Any]] = tomllib.loads((files("ricordo.storage.database") / "tables.toml").read_text("utf-8"))
"""How each table is treated; the comments in the file explain the lists."""

_OWN_KEY = "key"


def names_of(table: str) -> tuple[str, ...]:
    """Return the columns that identify a row outside this store."""
    return tuple(TABLES["named"].get(table, ("id",)))


def named(columns: Iterable[str]) -> str:
    """Return column names as SQL, separated by commas. The names come from the schema."""
    return ", ".join(f'"{name}"' for name in columns)


def marks(columns: Collection[str]) -> str:
    """Return a question mark per column, separated by commas."""
    return ", ".join("?" * len(columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A column that holds the key of a row of another table."""

    table: str
    column: str
    target: str
    outlasts: bool
    """Whether the referring row stays when the other is deleted: SQLite then sets the column to NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A truth table: its columns in order, its key and its unique constraints. SQL is built from these names."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()

    @property
    def sealed(self) -> tuple[str, ...]:
        """The columns covered by the row's seal: all but the seal itself."""
        return tuple(name for name in self.columns if name != "seal")

    @property
    def where_key(self) -> str:
        """The condition that finds a row by its key."""
        return " AND ".join(f'"{name}" = ?' for name in self.key)

    @property
    def insert(self) -> str:
        """The statement that inserts a complete row."""
        return f'INSERT INTO "{self.name}" ({named(self.columns)}) VALUES ({marks(self.columns)})'

    def images(
        self, connection: apsw.Connection, where: str = "TRUE", values: tuple[Any, ...] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows that meet a condition, as column to value."""
        rows = connection.execute(f'SELECT {named(self.columns)} FROM "{self.name}" WHERE {where}', values).fetchall()
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def current(self, connection: apsw.Connection, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return the present values of a row; None if it does not exist."""
        return next(iter(self.images(connection, self.where_key, key)), None)

    def row_id(self, image: Image) -> RowId:
        """Return the id of the row that an image belongs to."""
        return RowId(table=self.name, key=tuple(image[name] for name in self.key))

    def image(self, before: str, row: str) -> Image:
        """Decode a former version of a row from its form in `history`."""
        found: dict[str, Any] = json.loads(before)
        if self.key == (_OWN_KEY,):
            found[_OWN_KEY] = int(row)
        return {**found, "seal": bytes.fromhex(found["seal"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """All truth tables, parents first, and the columns of any table that refer to them."""

    tables: Mapping[str, Table]
    references: tuple[Reference, ...]

    def parents(self, table: str) -> list[Reference]:
        """Return the truth tables that rows of a table refer to."""
        return [each for each in self.references if each.table == table and each.target in self.tables]

    def children(self, target: str, *, derived: bool = False) -> list[Reference]:
        """Return references to a table from rows deleted with its rows: of truth tables or, if `derived`, others."""
        found = [each for each in self.references if each.target == target and not each.outlasts]
        return [each for each in found if (each.table in self.tables) != derived]


def truth_of(connection: apsw.Connection) -> Truth:
    """Return the truth tables as the schema describes them, which is read once for each schema."""
    known: Truth | None = getattr(connection, "truth", None)
    if known is not None:
        return known
    ((schema,),) = connection.execute(sql("schema_text"))
    if schema not in _truths:
        _truths[schema] = read_truth(lambda name: connection.execute(sql(name)))
    return _truths[schema]


_truths: dict[str, Truth] = {}
"""The truth tables of each schema that this process has seen, by its text."""


def read_truth(ask: Callable[[str], Iterable[Row]]) -> Truth:
    """Read the truth tables from the schema; `ask` returns the rows of a named statement."""
    columns: dict[str, list[tuple[str, int]]] = {}
    for table, name, place in ask("schema_columns"):
        columns.setdefault(table, []).append((name, place))
    unique: dict[tuple[str, str], list[str]] = {}
    for table, index, name in ask("schema_unique"):
        unique.setdefault((table, index), []).append(name)
    tables = {
        table: Table(
            name=table,
            columns=tuple(name for name, _ in found),
            key=tuple(name for name, place in sorted(found, key=lambda each: each[1]) if place),
            unique=tuple(tuple(names) for (owner, _), names in unique.items() if owner == table),
        )
        for table, found in columns.items()
        if {name for name, _ in found} >= _WRITTEN
    }
    references = tuple(
        Reference(table=table, column=column, target=target, outlasts=bool(outlasts))
        for table, column, target, outlasts in ask("schema_references")
    )
    return Truth(tables=_parents_first(tables, references), references=references)


def _parents_first(tables: Mapping[str, Table], references: tuple[Reference, ...]) -> dict[str, Table]:
    """Return tables in the order in which rows can be written: triggers of a table read the tables it refers to."""
    needs = {name: {each.target for each in references if each.table == name} & tables.keys() for name in tables}
    order = TopologicalSorter({name: parents - {name} for name, parents in needs.items()})
    return {name: tables[name] for name in order.static_order()}


def text_of_key(key: Iterable[Any]) -> str:
    """Return the text by which `history` and the lines of a folder name a row."""
    return ">".join(map(str, key))


class History(Group):
    """Commits, and the versions of what they changed."""

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        values = self._sql.scoped(scope, before=before or 1 << 62, most=most)
        return list(map(commit_of, self._sql.rows("commits_listed", values)))

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        images = [json.loads(row[0]) for row in self._sql.rows("history_of_node", {"key": str(node.key)})]
        former = [(former_node(node, image), self.get(image["commit_seq"])) for image in images]
        return [*former, (node, self.commit_of(node.key))]

    def recorded(self, nodes: Sequence[int]) -> dict[int, Commit]:
        rows = self._sql.rows("recorded_by", {"nodes": json.dumps(list(nodes))}) if nodes else ()
        return {row[0]: commit_of(row[1:]) for row in rows}

    get = asks("commit_by_seq", "seq", row_as(commit_of))

    def made(self, seq: int) -> Commit:
        found = self.get(seq)
        if found is None:
            raise UnavailableError(
                f"change {seq} is saved, but the index could not be updated", hint="free some disk space"
            )
        return found

    def events(self, *, after: int, most: int) -> list[ChangeEvent]:
        commits = self._sql.rows("commits_following", {"after": after, "most": most})
        if not commits:
            return []
        span = {"first": commits[0][0], "last": commits[-1][0]}
        kinds: dict[int, set[str]] = {}
        for seq, table in self._sql.rows("history_kinds", span):
            kinds.setdefault(seq, set()).add(table)
        for table in truth_of(self._sql.connection).tables:  # from the schema, so that a new truth table is included
            statement = f'SELECT DISTINCT commit_seq FROM "{table}" WHERE commit_seq BETWEEN :first AND :last'
            for (seq,) in self._sql.connection.execute(statement, span):
                kinds.setdefault(seq, set()).add(table)
        event = reading(ChangeEvent)
        return [event((*row, frozenset(kinds.get(row[0], ())))) for row in commits]

    first = asks("commit_first", "scope", row_as(commit_of))

    def seen(self, scope: Scope) -> int:
        return int(self._sql.rows_of_store("commit_seen", self._sql.scoped(scope))[0][0] or 0)

    def next_commit(self) -> int:
        return int((self._sql.rows("commit_last") or [(0, b"")])[0][0]) + 1

    commit_of = asks("commit_of_node", "key", lambda rows: commit_of(rows[0]))
    erasures = asks("commits_erasing", "seqs", column)

    def ledger(self) -> Ledger:
        return Ledger(self._sql)
