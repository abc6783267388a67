"""The cellar: the only package that speaks SQL. Above it, everything goes through `Store` and `Snapshot`."""

from ricordo.storage.database.as_of import Links, PastSnapshot
from ricordo.storage.database.reader import Snapshot
from ricordo.storage.database.store import Store
from ricordo.storage.values import When

__all__ = ["Links", "PastSnapshot", "Snapshot", "Store", "When"]
