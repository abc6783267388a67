"""After rows have gone: no byte of them may be left in the file, its log or its free pages.

Deleting leaves words in four places: in the segments of a full-text index until they are merged, in pages that are
free, in the unused part of pages that are not, and in the log until it is cut off. SQLite's statistics hold samples of
names, too. Merging, rewriting the file and cutting the log off see to all of them.
"""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from ricordo.errors import StoreError
from ricordo.storage import faults
from ricordo.storage.database.connection import connect, transaction, translated
from ricordo.storage.values import Cleaned

_INDEXES = ("nodes_fts", "archive_fts")
_SAMPLES = ("sqlite_stat1", "sqlite_stat4")
# A file up to this size is rewritten in memory; a larger one by way of SQLite's temporary files.
_IN_MEMORY_BYTES = 128 << 20
_LOOK_AGAIN_S = 0.05


def clean(path: Path, *, patience_s: float) -> Cleaned:
    """Leave no byte of what was deleted. By a connection of its own: nothing of it can be part of a transaction.

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
            _merge(connection)
            faults.reached("erase: before rewriting")
            if before > _IN_MEMORY_BYTES:
                connection.execute("PRAGMA temp_store = FILE")
            connection.execute("VACUUM")
            faults.reached("erase: before cutting the log")
            is_done = _cut_log(connection, patience_s=patience_s)
            return Cleaned(is_done=is_done, bytes_before=before, bytes_after=_size(connection))
        except apsw.FullError as error:
            raise StoreError(
                "it is erased, but bytes of it are left in the file: the disk is too full to write that anew",
                hint="free some space and open the store again",
            ) from error
        finally:
            connection.close()


def _size(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def _merge(connection: apsw.Connection) -> None:
    with transaction(connection):
        for name in _INDEXES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%'")}
        for name in known.intersection(_SAMPLES):
            connection.execute(f"DELETE FROM {name}")


def _cut_log(connection: apsw.Connection, *, patience_s: float) -> bool:
    """Whether the log could be emptied: not while somebody reads an older state of the store."""
    until = time.monotonic() + patience_s
    while True:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
        if not busy:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_AGAIN_S)
