"""The cellar: the only package that speaks SQL. Above it, everything goes through `Store` and `Snapshot`."""

from ricordo.storage.sqlite.as_of import Links, PastSnapshot, When
from ricordo.storage.sqlite.reader import Snapshot
from ricordo.storage.sqlite.store import Store

__all__ = ["Links", "PastSnapshot", "Snapshot", "Store", "When"]
