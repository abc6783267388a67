"""The cellar: the only package that speaks SQL. Above it, everything goes through `Store` and `Snapshot`."""

from ricordo.store.sqlite.past import Mentions, PastSnapshot, When
from ricordo.store.sqlite.snapshot import Snapshot
from ricordo.store.sqlite.store import Store

__all__ = ["Mentions", "PastSnapshot", "Snapshot", "Store", "When"]
