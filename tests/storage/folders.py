"""Helpers for folder stores: everything that must be equal after a rebuild of the index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.storage.canonical import canonical
from tests.storage.making import raw

EXACT = (
    "commits",
    "spaces",
    "models",
    "off_record",
    "associates",
    "erased",
    "erased_ids",
    "erasing",
    "to_erase",
    "withheld",
    "withheld_prints",
    "withheld_spans",
    "model_use",
    "failures",
)


def everything(folder: Path) -> dict[str, Any]:
    """Return everything in the index of a folder that is not a cache."""
    return everything_of(folder / "index.db")


def everything_of(path: Path) -> dict[str, Any]:
    """Return everything in a database that is not a cache: durable data, history, commits, vectors, settings. Rows are
    exact, seals included; canonical ones beside.
    """
    connection = raw(path)
    try:
        found: dict[str, Any] = dict(canonical(path))
        for table in EXACT:
            found[table] = sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        found["history"] = [
            (seq, tbl, row, json.loads(before))
            for seq, tbl, row, before in connection.execute(
                "SELECT seq, tbl, row, before FROM history ORDER BY 2, 3, 1"
            )
        ]
        found["seals"] = [
            connection.execute(f"SELECT seal FROM {table} ORDER BY seal").fetchall()
            for table in ("nodes", "edges", "entities", "aliases", "relations", "subjects", "reviews", "sessions")
        ]
        found["vectors"] = connection.execute(
            "SELECT node, model, space, shelf, vector, pieces, vectors FROM embeddings e"
            " LEFT JOIN word_vectors ON embedding = e.id ORDER BY 1, 2"
        ).fetchall()
        return found
    finally:
        connection.close()


def without_index(folder: Path) -> None:
    """Delete the index and SQLite's files beside it."""
    for path in folder.glob("index.db*"):
        path.unlink()


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the parsed lines of a file."""
    return [json.loads(line) for line in (folder / name).read_bytes().split(b"\n")[:-1]]
