"""The state of a store: tables of rows, the commits that wrote them, and the truth as it was after each commit.

A row is a dictionary that is never altered in place: a change puts another row in its stead. So a copy of a table is a
copy of its dictionary, and the truth after each commit can be kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]
Table = dict[Key, Row]
Tables = dict[str, Table]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is keyed, what refers to what, and what else no two of its rows share."""

    key: tuple[str, ...] = ("key",)
    references: tuple[tuple[str, str], ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()


TRUTH = {
    "sessions": Shape(unique=(("space", "session_id"),)),
    "nodes": Shape(references=(("session", "sessions"),), unique=(("id",),)),
    "entities": Shape(references=(("merged_into", "entities"),), unique=(("id",),)),
    "edges": Shape(key=("source", "relation_type", "target"), references=(("source", "nodes"), ("target", "nodes"))),
    "aliases": Shape(key=("space", "folded", "entity", "alias"), references=(("entity", "entities"),)),
    "relations": Shape(references=(("source", "entities"), ("target", "entities")), unique=(("id",),)),
    "subjects": Shape(key=("node", "entity"), references=(("node", "nodes"), ("entity", "entities"))),
    "reviews": Shape(references=(("newer", "nodes"), ("older", "nodes")), unique=(("id",),)),
    "runs": Shape(unique=(("id",),)),
    "erasures": Shape(),
    "members": Shape(key=("space", "member")),
}
"""Tables whose rows carry the commit that wrote them and have a history. A table stands after those it refers to."""

DERIVED = {
    "spaces": Shape(),
    "found_mentions": Shape(key=("node", "entity"), references=(("node", "nodes"), ("entity", "entities"))),
    "associates": Shape(key=("node", "other"), references=(("node", "nodes"), ("other", "nodes"))),
    "usage": Shape(key=("node",), references=(("node", "nodes"),)),
    "vectors": Shape(key=("node", "model"), references=(("node", "nodes"),)),
    "to_link": Shape(),
    "relations_to_link": Shape(),
    "linked": Shape(key=("space",)),
    "models": Shape(),
    "model_calls": Shape(references=(("session", "sessions"),)),
    "failures": Shape(key=("space", "session"), references=(("session", "sessions"),)),
    "leases": Shape(key=("name",)),
    "proposals": Shape(key=("id",)),
    "receipts": Shape(key=("id",)),
    "floors": Shape(key=("spaces", "model")),
    "off_record": Shape(key=("owner", "chat", "session", "begun_at")),
    "withheld": Shape(),
    "withheld_spans": Shape(
        key=("node", "start", "withheld"), references=(("node", "nodes"), ("withheld", "withheld"))
    ),
    "erasing": Shape(),
    "to_erase": Shape(key=("erasing", "table", "row")),
    "erased_ids": Shape(key=("space", "id")),
    "meta": Shape(key=("name",)),
}
"""Tables without a history: what can be computed again, and what is nobody's memory."""

SHAPES = TRUTH | DERIVED


@dataclass(slots=True)
class State:
    """All that a store holds. A writer works on a copy, which takes the place of the state when it is done."""

    tables: Tables = field(default_factory=lambda: {name: {} for name in SHAPES})
    commits: dict[int, Row] = field(default_factory=dict)
    past: list[Tables] = field(default_factory=lambda: [{name: {} for name in TRUTH}])
    last_keys: dict[str, int] = field(default_factory=dict)

    def copy(self) -> State:
        tables = {name: dict(table) for name, table in self.tables.items()}
        commits = {seq: dict(commit) for seq, commit in self.commits.items()}
        return State(tables=tables, commits=commits, past=list(self.past), last_keys=dict(self.last_keys))

    def all(self, table: str, where: Callable[[Row], object] = lambda row: True) -> list[Row]:
        """Return the rows of a table that satisfy a condition, by ascending key."""
        found = [row for row in self.tables[table].values() if where(row)]
        return sorted(found, key=lambda row: [(part is not None, part) for part in key_of(table, row)])

    def get(self, table: str, *key: Any) -> Row | None:
        """Return the row of a key."""
        return self.tables[table].get(key)

    def put(self, table: str, row: Row) -> None:
        """Put a row in place of the one of the same key."""
        self.tables[table][key_of(table, row)] = row

    def drop(self, table: str, where: Callable[[Row], object]) -> list[Row]:
        """Delete the rows that satisfy a condition; return them."""
        gone = self.all(table, where)
        for row in gone:
            del self.tables[table][key_of(table, row)]
        return gone

    def next_key(self, table: str) -> int:
        """Return a key that was never given out before."""
        self.last_keys[table] = self.last_keys.get(table, 0) + 1
        return self.last_keys[table]

    def space(self, owner: str, chat: str) -> int | None:
        """Return the key of a space, if anything was ever written to it."""
        found = self.all("spaces", lambda row: (row["owner"], row["chat"]) == (owner, chat))
        return found[0]["key"] if found else None

    def make_space(self, owner: str, chat: str) -> int:
        """Return the key of a space, creating the space at its first use."""
        key = self.space(owner, chat)
        if key is None:
            key = self.next_key("spaces")
            self.put("spaces", {"key": key, "owner": owner, "chat": chat})
        return key

    def truth(self) -> Tables:
        """Return the truth tables as they are now."""
        return {name: dict(self.tables[name]) for name in TRUTH}

    def at(self, commit: int) -> State:
        """Return the store as it was right after a commit. Names found in texts are left out: they are found again."""
        tables = {name: dict(table) for name, table in self.tables.items()} | self.past[commit]
        tables["members"] = dict(self.tables["members"])  # who reads it is decided today
        tables["found_mentions"] = {}
        for name in TRUTH:  # of a version that was erased, what referred to it is no longer shown, except memories
            rows = tables[name].items()
            tables[name] = {
                key: row
                for key, row in rows
                if all(parent in tables[target] for target, parent in parents(name, row) if target != "sessions")
            }
        commits = {seq: row for seq, row in self.commits.items() if seq <= commit}
        return State(tables=tables, commits=commits, past=self.past[: commit + 1])

    def versions(self, table: str, key: Key) -> Iterator[tuple[int, Row | None]]:
        """Yield (commit, row) for each commit that wrote, altered or removed a row, oldest first."""
        before: Row | None = None
        for seq, tables in enumerate(self.past):
            row = tables[table].get(key)
            if row != before:
                yield seq, row
            before = row


def key_of(table: str, row: Row) -> Key:
    """Return the key of a row."""
    return tuple(row[name] for name in SHAPES[table].key)


def parents(table: str, row: Row) -> list[tuple[str, Key]]:
    """Return (table, key) of the truth that a row refers to."""
    found = [(target, row[column]) for column, target in SHAPES[table].references if target in TRUTH]
    return [(target, (key,)) for target, key in found if key is not None]


def drop_derived(state: State, table: str, key: Key) -> None:
    """Delete the derived rows that refer to a row. Calls of models stay: what was spent was spent."""
    for name, child in children(state, table, key, among=DERIVED):
        if name == "model_calls":
            state.put(name, {**state.tables[name][child], "session": None})
        else:
            del state.tables[name][child]


def children(state: State, table: str, key: Key, *, among: dict[str, Shape]) -> list[tuple[str, Key]]:
    """Return (table, key) of the rows that refer to a row now."""
    return [
        (name, key_of(name, row))
        for name, shape in among.items()
        for row in state.all(name)
        if len(key) == 1 and any(target == table and row[column] == key[0] for column, target in shape.references)
    ]
