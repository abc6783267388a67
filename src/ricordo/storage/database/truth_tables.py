"""The truth tables, read from the schema: those whose rows have a commit and a hash.

Undo and the past work on this list, not on single tables: a new truth table needs its two history triggers in the
schema, and no other code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import apsw

from ricordo.model import RowId
from ricordo.storage.database.queries import sql
from ricordo.storage.values import _WRITTEN, Image

_OWN_KEY = "key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A column that holds the key of another table's row."""

    table: str
    column: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A truth table: its columns in order, its key, and its unique constraints."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]

    @property
    def sealed(self) -> tuple[str, ...]:
        """The columns covered by the row hash: all but the hash."""
        return tuple(name for name in self.columns if name != "seal")

    def row_id(self, image: Image) -> RowId:
        """Return which row an image shows."""
        return RowId(table=self.name, key=tuple(image[name] for name in self.key))

    def image(self, before: str, row: str) -> Image:
        """Return a row as `history` keeps it."""
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
        """Return what refers to rows of a table: truth or, if `derived`, derived rows."""
        return [each for each in self.references if each.target == target and (each.table in self.tables) != derived]


def truth_of(connection: apsw.Connection) -> Truth:
    """Return what the schema says. A few lookups in memory."""
    columns: dict[str, list[tuple[str, int]]] = {}
    for table, column, place in connection.execute(sql("schema_columns")):
        columns.setdefault(table, []).append((column, place))
    unique: dict[tuple[str, str], list[str]] = {}
    for table, index, column in connection.execute(sql("schema_unique")):
        unique.setdefault((table, index), []).append(column)
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
    rows = connection.execute(sql("schema_references"))
    references = tuple(Reference(table=table, column=column, target=target) for table, column, target in rows)
    return Truth(tables=_parents_first(tables, references), references=references)


def _parents_first(tables: Mapping[str, Table], references: tuple[Reference, ...]) -> dict[str, Table]:
    """Return the order in which rows can be written: triggers of a table look into those it refers to."""
    needs = {name: {each.target for each in references if each.table == name} & tables.keys() for name in tables}
    order = TopologicalSorter({name: parents - {name} for name, parents in needs.items()})
    return {name: tables[name] for name in order.static_order()}


def row_text(row: RowId) -> str:
    """Return the name of a row in `history`."""
    return ">".join(str(part) for part in row.key)
