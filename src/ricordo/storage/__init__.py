"""Storage: the only package that knows how memories are kept. Everything above it uses `Store` and `Snapshot`."""

from ricordo.storage.protocol import (
    Links,
    PastSnapshot,
    Snapshot,
    Store,
    changes,
    entity_meant,
    names_of_owner_alone,
    owner_names,
    session_meant,
    told_apart,
    with_openings,
)
from ricordo.storage.values import When

__all__ = [
    "Links",
    "PastSnapshot",
    "Snapshot",
    "Store",
    "When",
    "changes",
    "entity_meant",
    "names_of_owner_alone",
    "owner_names",
    "session_meant",
    "told_apart",
    "with_openings",
]
