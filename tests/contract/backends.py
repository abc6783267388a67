"""The backends that the suite runs on, each named by the location its stores are opened at."""

from __future__ import annotations

from pathlib import Path

from ricordo.storage import Store
from ricordo.storage.registry import open_store, register
from tests.contract import server
from tests.contract.reference import ReferenceStore

BACKENDS = ("sqlite", "folder", "reference", *(("postgres",) if server.is_wanted() else ()))
SHARED = tuple(name for name in BACKENDS if name != "reference")
"""Backends whose stores several processes may open at a time."""

register("reference", lambda location, options: ReferenceStore(location))


def location(backend: str, place: Path) -> str:
    """Return where a backend keeps the store of a place; the same place gives the same store."""
    if backend == "reference":
        return f"reference://{place}"
    if backend == "postgres":
        return server.location(place)
    return f"{place}/" if backend == "folder" else f"{place}.db"


def open_backend(where: str) -> Store:
    """Open the store of a location."""
    return open_store(where, durability="process")
