"""Restore rows to earlier versions: the writing half of an undo, for any truth table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ricordo.model import RowState
from ricordo.storage import faults
from ricordo.storage.database.hashes import seal
from ricordo.storage.database.ledger import current_image
from ricordo.storage.database.queries import sql
from ricordo.storage.database.statements import Statements
from ricordo.storage.database.truth_tables import Table, Truth, truth_of
from ricordo.storage.values import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A row being restored: as it is, and as it will be. `seal` is None for a row that goes."""

    table: Table
    now: Image | None
    then: Image | None
    seal: bytes | None

    @property
    def space(self) -> int | None:
        """The space of the row, if the row itself has one."""
        found: int | None = (self.now or self.then or {}).get("space")
        return found


def restored_rows(snapshot: Statements, states: Sequence[RowState], *, commit: int) -> list[Restored]:
    """Return the rows of an undo with their new commit and hash, without those that do not change."""
    if not states:
        return []
    truth = truth_of(snapshot.connection)
    found = []
    for state in states:
        table = truth.tables[state.row.table]
        now = current_image(snapshot.connection, table, state.row)
        if now is None and state.values is None:
            continue
        found.append(_restored(table, now, state.values, commit))
    return found


def _restored(table: Table, now: Image | None, values: Image | None, commit: int) -> Restored:
    if values is None:
        return Restored(table=table, now=now, then=None, seal=None)
    then = {**values, "commit_seq": commit}
    sealed = seal([then[name] for name in table.sealed])
    return Restored(table=table, now=now, then={**then, "seal": sealed}, seal=sealed)


def put_back(snapshot: Statements, restored: Sequence[Restored]) -> None:
    """Write restored rows, and update what follows from them: indexes, counts, mentions."""
    if not restored:
        return
    # Rows refer to each other in both directions of time: what goes may be referred to by what is altered after it.
    snapshot.connection.execute("PRAGMA defer_foreign_keys = ON")
    truth = truth_of(snapshot.connection)
    order = {name: place for place, name in enumerate(truth.tables)}
    parents_first = sorted(restored, key=lambda each: order[each.table.name])
    for each in reversed(parents_first):
        if each.then is None:
            _remove(snapshot, truth, each)
    faults.reached("undo: after removing")
    for each in parents_first:
        if each.then is not None:
            _write(snapshot, each)
    snapshot.connection.execute("PRAGMA defer_foreign_keys = OFF")
    _open_again(snapshot, restored)


def _remove(snapshot: Statements, truth: Truth, each: Restored) -> None:
    """Delete a row and what was derived from it. Names come from the schema, so the statement is put together."""
    assert each.now is not None
    for reference in truth.children(each.table.name, derived=True):
        statement = f'DELETE FROM "{reference.table}" WHERE "{reference.column}" = ?'
        snapshot.connection.execute(statement, (each.now[each.table.key[0]],))
    where = " AND ".join(f'"{name}" = ?' for name in each.table.key)
    snapshot.connection.execute(f'DELETE FROM "{each.table.name}" WHERE {where}', _key(each))


def _write(snapshot: Statements, each: Restored) -> None:
    """Write a row. Names come from the schema, so the statement is put together."""
    assert each.then is not None
    columns = each.table.columns if each.now is None else [c for c in each.table.columns if c not in each.table.key]
    values = tuple(each.then[name] for name in columns)
    named = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" * len(columns))
    if each.now is None:
        statement = f'INSERT INTO "{each.table.name}" ({named}) VALUES ({marks})'
        snapshot.connection.execute(statement, tuple({**each.then, **_shut(each)}[name] for name in columns))
        return
    where = " AND ".join(f'"{name}" = ?' for name in each.table.key)
    statement = f'UPDATE "{each.table.name}" SET ({named}) = ({marks}) WHERE {where}'
    snapshot.connection.execute(statement, (*values, *_key(each)))


def _shut(each: Restored) -> dict[str, Any]:
    return {"closed_at": 0, "closed_reason": "forgotten"} if _opens(each) else {}


def _key(each: Restored) -> tuple[Any, ...]:
    image = each.now or each.then
    assert image is not None
    return tuple(image[name] for name in each.table.key)


def _opens(each: Restored) -> bool:
    return each.table.name == "nodes" and each.now is None and each.then is not None and each.then["closed_at"] is None


def _open_again(snapshot: Statements, restored: Sequence[Restored]) -> None:
    """Reopen nodes that come back. Triggers maintain what is derived from a live node when it is opened, but for speed
    not on INSERT; so it was written as a closed node.
    """
    back = [each.then for each in restored if each.table.name == "nodes" and each.now is None and each.then]
    if not back:
        return
    keys = {"nodes": json.dumps([image["key"] for image in back])}
    living = {"nodes": json.dumps([each.then["key"] for each in restored if _opens(each) and each.then])}
    snapshot.connection.execute(sql("nodes_archive_again"), keys)
    snapshot.connection.execute(sql("nodes_traits_again"), keys)
    snapshot.connection.execute(sql("nodes_reopen"), living)
    snapshot.connection.execute(sql("history_forget"), {**living, "commit": back[0]["commit_seq"]})
    snapshot.connection.execute(sql("to_link_put"), keys)
