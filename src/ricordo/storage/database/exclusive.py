"""Being the only one who has a store open."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from ricordo.errors import UnavailableError
from ricordo.storage.database.connection import translated


@contextlib.contextmanager
def alone_with(path: Path) -> Iterator[apsw.Connection]:
    """A connection to a store that nobody else can open meanwhile, with all of it in the one file: its log is worked in
    and gone.

    Raises:
        UnavailableError: another program has it open.
        StoreError: the file is damaged, or no database.
    """
    with translated(f"cannot open {path}"):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
                # Only who is alone may leave the mode of the write-ahead log.
                connection.execute("PRAGMA journal_mode = DELETE").fetchall()
                connection.execute("BEGIN EXCLUSIVE; COMMIT")
            except (apsw.BusyError, apsw.LockedError) as error:
                raise UnavailableError(f"another program has {path} open", hint="close it, then try again") from error
            yield connection
        finally:
            connection.close()
