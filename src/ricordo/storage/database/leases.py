"""Who does a job that only one process is to do at a time. A lease runs out by itself; no truth rests on it."""

from __future__ import annotations

from collections.abc import Callable

from ricordo.storage.database.reader import Snapshot


def take(snapshot: Snapshot, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
    """Whether the lease is the holder's, until then: it was free, had run out, was its own, or its holder is no more.

    Args:
        now, until: Unix milliseconds of the machine's clock.
        is_gone: whether a holder is known not to run any more.
    """
    values = {"name": name, "holder": holder, "now": now, "until": until}
    if snapshot.rows("lease_take", values):
        return True
    for (other,) in snapshot.rows("lease_holder", {"name": name}):
        if is_gone(other):
            drop(snapshot, name, other)
            return bool(snapshot.rows("lease_take", values))
    return False


def drop(snapshot: Snapshot, name: str, holder: str) -> None:
    """Give it back; one that is another's by now stays."""
    snapshot.rows("lease_drop", {"name": name, "holder": holder})
