"""Who does a job that only one process is to do at a time. A lease runs out by itself; no truth rests on it."""

from __future__ import annotations

from collections.abc import Callable

from ricordo.storage.database.statements import Statements


class Leases:
    """Who does a job that only one process is to do at a time. A lease runs out by itself; no truth rests on it."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def take(self, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
        values = {"name": name, "holder": holder, "now": now, "until": until}
        if self._sql.rows("lease_take", values):
            return True
        for (other,) in self._sql.rows("lease_holder", {"name": name}):
            if is_gone(other):
                self.drop(name, other)
                return bool(self._sql.rows("lease_take", values))
        return False

    def drop(self, name: str, holder: str) -> None:
        self._sql.rows("lease_drop", {"name": name, "holder": holder})
