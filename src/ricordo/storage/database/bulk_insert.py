"""Many new rows of one table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

import apsw

from ricordo.storage.database.rows import Row

# So many rows of one statement take two thirds of the time that they take one by one.
_AT_ONCE = 25


def insert_all(connection: apsw.Connection, statement: str, rows: Sequence[Row]) -> None:
    """Put rows in by an `INSERT ... VALUES (...)`, many at a time. Not for full text: FTS5 writes what it holds to disk
    before each statement of several rows.

    Raises:
        apsw.Error: one of them cannot be; then some of the others may be there.
    """
    whole = len(rows) - len(rows) % _AT_ONCE
    if whole:
        lots = (tuple(chain.from_iterable(rows[at : at + _AT_ONCE])) for at in range(0, whole, _AT_ONCE))
        connection.executemany(_widened(statement), lots)
    connection.executemany(statement, rows[whole:])


@cache
def _widened(statement: str) -> str:
    """The same for as many rows as are put in at once."""
    head, values, row = statement.rpartition("VALUES")
    return f"{head}{values}{','.join([row] * _AT_ONCE)}"
