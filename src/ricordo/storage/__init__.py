"""Storage: the only package that knows how memories are kept. Everything above it uses `Store` and `Snapshot`;
`registry` opens stores.
"""

from ricordo.storage.database.as_of import Links, PastSnapshot
from ricordo.storage.database.reader import DatabaseSnapshot as Snapshot
from ricordo.storage.protocol import Store
from ricordo.storage.values import When

__all__ = ["Links", "PastSnapshot", "Snapshot", "Store", "When"]
