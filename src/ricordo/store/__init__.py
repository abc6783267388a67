"""The cellar: the only package that speaks SQL. Above it, everything goes through `Store` and `Snapshot`."""

from ricordo.store.sqlite.past import Links, PastSnapshot, When
from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.store.sqlite.store import Store

__all__ = ["Links", "PastSnapshot", "Snapshot", "Store", "When"]
