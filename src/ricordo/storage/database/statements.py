"""Named statements on one connection, inside one transaction: what every reader group asks its questions with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

import apsw

from ricordo.model import Scope
from ricordo.storage.database.queries import sql
from ricordo.storage.database.rows import Row

T = TypeVar("T")

# The deadline is checked every few milliseconds.
_STEPS_BETWEEN_CHECKS = 50_000

Unchanged = dict[tuple[Hashable, ...], Any]
"""Answers about the whole store, or about all of a caller's memories, that hold until the next write."""
_UNCHANGED_LIMIT = 1_000


class Statements:
    """One snapshot of the database, asked by named statements. Lives inside one transaction of one thread."""

    def __init__(self, connection: apsw.Connection, *, unchanged: Unchanged | None = None) -> None:
        """
        Args:
            unchanged: a cache of answers that still hold; None where the store may change during this transaction.
        """
        self.connection = connection
        self._unchanged = unchanged
        self._spaces: dict[Scope, tuple[int, ...]] = {}

    is_past = False

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """The result of some work that ends at a moment on the clock of `time.monotonic`, in seconds.

        Raises:
            TimeoutError: it was not done by then.
        """
        if time.monotonic() >= moment:
            raise TimeoutError
        self.connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_BETWEEN_CHECKS)
        try:
            return work()
        except apsw.InterruptError as error:
            raise TimeoutError from error
        finally:
            self.connection.set_progress_handler(None)

    def rows(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a named statement."""
        return self.connection.execute(sql(name), values).fetchall()

    def rows_of_store(self, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a named statement that many questions repeat, about the store as a whole or all of a caller's:
        asked once for as long as nobody writes.
        """
        asked = (name, *values.values()) if values else (name,)
        return self.once(asked, lambda: self.rows(name, values))

    def once(self, asked: tuple[Hashable, ...], work: Callable[[], T]) -> T:
        """What some work finds out about the store as a whole or all of a caller's: done once for as long as nobody
        writes. Never None, and nothing that its users alter.
        """
        if self._unchanged is None:
            return work()
        found: T | None = self._unchanged.get(asked)
        if found is None:
            found = work()
            if len(self._unchanged) < _UNCHANGED_LIMIT:
                self._unchanged[asked] = found
        return found

    def each(self, name: str, values: Mapping[str, Any]) -> Iterator[Row]:
        """The rows of a named statement, one by one: there may be more of them than memory should hold."""
        return self.connection.execute(sql(name), values)

    def value(self, name: str, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row of a named statement, or None."""
        return self.connection.execute(sql(name), values).get if values else self.connection.execute(sql(name)).get

    def current(self, now: int) -> int:
        """The instant that counts as now to this snapshot, in Unix milliseconds."""
        return now

    def space(self, owner: str, chat: str) -> int | None:
        """The key of a space, if anything was ever written to it."""
        rows = self.rows_of_store("space_by_owner", {"owner": owner, "chat": chat})
        return rows[0][0] if rows else None

    def visible(self, scope: Scope) -> tuple[int, ...]:
        """The spaces a caller sees: their own, and the present chat's."""
        if scope not in self._spaces:
            wanted = [(scope.owner, "")] if scope.owner else []
            wanted += [("", scope.chat)] if scope.chat else []
            found = (self.space(owner, chat) for owner, chat in wanted)
            self._spaces[scope] = tuple(key for key in found if key is not None)
        return self._spaces[scope]

    def scoped(self, scope: Scope, **values: Any) -> dict[str, Any]:
        return {"spaces": json.dumps(self.visible(scope)), **values}

    def raise_sequence(self, table: str, key: int) -> None:
        """Note that a key was given to a row of a table, so that no later row gets it. SQLite does so by itself for new
        rows of tables with AUTOINCREMENT, which `sessions` is not.
        """
        values = {"table": table, "key": key}
        self.rows("sequence_begin", values)
        self.rows("sequence_raise", values)

    def meta(self, name: str) -> str | None:
        """A property of the store."""
        found: str | None = self.value("meta_get", {"name": name})
        return found

    def put_meta(self, name: str, value: str) -> None:
        """Set a property of the store."""
        self.rows("meta_put", {"name": name, "value": value})
