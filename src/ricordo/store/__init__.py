"""The cellar: the only package that speaks SQL. Above it, everything goes through `Store` and `Snapshot`."""

from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.store.sqlite.store import Store

__all__ = ["Snapshot", "Store"]
