"""Cleaning of the SQLite file: no byte of erased rows stays behind.

Deleted words remain in four places: in segments of a full-text index until they are merged, in free pages, in the
unused part of other pages, and in the write-ahead log. SQLite's statistics also hold samples of names. Merging,
rewriting the file and truncating the log clear all of them.
"""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from ricordo.errors import StoreError
from ricordo.storage import faults
from ricordo.storage.database.connection import connect
from ricordo.storage.sql import transaction, translated
from ricordo.storage.values import Cleaned

_INDEXES = ("nodes_fts", "archive_fts")
_SAMPLES = ("sqlite_stat1", "sqlite_stat4")
# A file up to this size is rewritten in memory; a larger one with SQLite's temporary files.
_IN_MEMORY_BYTES = 128 << 20
_RETRY_S = 0.05


def clean(path: Path, *, patience_s: float) -> Cleaned:
    """Rewrite the file so that no byte of deleted rows is left. Uses a connection of its own, outside transactions.

    Args:
        patience_s: how long to wait for other processes, in seconds.

    Raises:
        StoreError: the disk is full: the file is rewritten beside itself.
        UnavailableError: another process kept writing.
    """
    with translated("cannot clean the store"):
        connection = connect(path, patience_s=patience_s)
        try:
            connection.execute("PRAGMA secure_delete = ON")
            before = _size(connection)
            _merge_indexes(connection)
            faults.reached("erase: before rewriting")
            if before > _IN_MEMORY_BYTES:
                connection.execute("PRAGMA temp_store = FILE")
            connection.execute("VACUUM")
            faults.reached("erase: before cutting the log")
            is_done = _truncate_log(connection, patience_s=patience_s)
            return Cleaned(is_done=is_done, bytes_before=before, bytes_after=_size(connection))
        except apsw.FullError as error:
            raise StoreError(
                "erased, but traces remain in the file: the disk is too full to rewrite it",
                hint="free some space and open the store again",
            ) from error
        finally:
            connection.close()


def _size(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def _merge_indexes(connection: apsw.Connection) -> None:
    with transaction(connection):
        for name in _INDEXES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'")}
        for name in known.intersection(_SAMPLES):
            connection.execute(f"DELETE FROM {name}")


def _truncate_log(connection: apsw.Connection, *, patience_s: float) -> bool:
    """Return whether the log was emptied. That is not possible while a reader holds an older state of the store."""
    until = time.monotonic() + patience_s
    while True:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        if not busy:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_RETRY_S)
