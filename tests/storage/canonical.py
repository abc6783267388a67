"""All durable data of a store in a canonical form, so that equal stores compare equal: no internal keys, no seals, no
commit numbers, rows in order. The tables come from the schema, so a new durable table is included automatically.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.storage.making import raw

from ricordo.storage.database.history import truth_of

_LEFT_OUT = {"key", "commit_seq", "seal"}

_NAMES = {
    "spaces": "SELECT key, json_array(owner, chat) FROM spaces",
    "nodes": "SELECT key, id FROM nodes",
    "entities": "SELECT key, id FROM entities",
    "sessions": "SELECT ss.key, json_array(owner, chat, session_id) FROM sessions ss JOIN spaces s ON s.key = ss.space",
    "commits": "SELECT seq, seq FROM commits",
}
"""Return the canonical form of a reference to a row."""

Dump = dict[str, list[tuple[Any, ...]]]


def canonical(path: Path) -> Dump:
    """Return the rows of each durable table, sorted."""
    connection = raw(path)
    try:
        truth = truth_of(connection)
        found: Dump = {}
        for table in truth.tables.values():
            targets = {each.column: each.target for each in truth.references if each.table == table.name}
            columns = [name for name in table.columns if name not in _LEFT_OUT]
            names = {name: dict(connection.execute(_NAMES[targets[name]])) for name in columns if name in targets}
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table.name}").fetchall()
            found[table.name] = sorted(
                (
                    tuple(
                        names[name].get(value) if name in names else value
                        for name, value in zip(columns, row, strict=True)
                    )
                    for row in rows
                ),
                key=repr,
            )
        return found
    finally:
        connection.close()
