"""What every SQLite file of Ricordo needs: named statements, transactions, waiting for locks, and error translation.

It does not depend on the store: the journal of the host uses it, too.
"""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

import apsw

from ricordo.errors import StoreError, UnavailableError

MENDING = "`ricordo doctor --fix` moves the damaged file aside and keeps what can be read of it"
"""The remedy for a file that cannot be opened."""
IS_FOLDER = "is a folder, but a file of the memory belongs there"

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def named_statements(package: str, folder: str = ".") -> dict[str, str]:
    """Return every statement of the `.sql` files in a folder of a package, by name. Fails if a name is used twice.

    Source: the idea of procrastinate's `sql` package.
    """
    found: dict[str, str] = {}
    for path in sorted((files(package) / folder).iterdir(), key=lambda path: path.name):
        if path.name.endswith(".sql"):
            parts = _NAME.split(path.read_text(encoding="utf-8"))[1:]
            for name, sql in zip(parts[::2], parts[1::2], strict=True):
                if name in found:
                    raise ValueError(f"two statements are named {name}")
                found[name] = sql.strip()
    return found


def patient(patience_s: float) -> Callable[[int], bool]:
    """Return a busy handler that waits with jitter. Without it, processes retry at the same moments and one starves."""
    started = 0.0

    def wait(tries: int) -> bool:
        nonlocal started
        if tries == 0:
            started = time.monotonic()
        if time.monotonic() - started > patience_s:
            return False
        time.sleep(random.uniform(0.0005, min(0.002 * (tries + 1), 0.02)))
        return True

    return wait


_LEAST_FREE = 128 * 1024
"""What SQLite needs to open a file: 32 kB for the index of its log, and some pages.

Source: sqlite.org/walformat.html
"""


def disk_is_full(path: Path) -> bool:
    """Return whether too little is free beside a file to open it for writing."""
    try:
        disk = shutil.disk_usage(path if path.is_dir() else path.parent)
    except OSError:
        return False
    return disk.total > 0 and disk.free < _LEAST_FREE


def disk_full(doing: str) -> StoreError:
    return StoreError(f"{doing}: the disk is full; nothing of it was kept", hint="free some space and repeat")


_NEEDED_HANDLES = 16


def out_of_handles() -> bool:
    """Return whether this process can open hardly any more files."""
    with ExitStack() as opened:
        try:
            for _ in range(_NEEDED_HANDLES):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def no_handles(doing: str) -> StoreError:
    return StoreError(
        f"{doing}: this process has too many open files",
        hint="raise the limit (`ulimit -n 8192`), close stores, or open one store and use `scoped` for each owner",
    )


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate errors of SQLite into errors of Ricordo, with a remedy.

    Args:
        doing: what failed, such as "cannot write".
    """
    try:
        yield
    except apsw.FullError as error:
        raise disk_full(doing) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise UnavailableError(f"{doing}: another process holds the store", hint="try again") from error
    except apsw.NotADBError as error:
        raise StoreError(
            f"{doing}: this is not a Ricordo store", hint=f"choose another path; if it was one: {MENDING}"
        ) from error
    except apsw.CorruptError as error:
        raise StoreError(f"{doing}: the store is damaged", hint=f"restore a backup, or: {MENDING}") from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        if isinstance(error, apsw.CantOpenError) and out_of_handles():
            raise no_handles(doing) from error
        raise StoreError(f"{doing}: {error}", hint="check the path and its permissions") from error
    except apsw.IOError as error:
        raise StoreError(f"{doing}: input/output error: {error}", hint="check the disk") from error
    except apsw.Error as error:
        raise StoreError(f"{doing}: {error}", hint="please report this") from error


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Translate errors of SQLite as it opens a file: on a full disk it reports a broken one."""
    doing = f"cannot open {path}"
    try:
        with translated(doing):
            yield
    except StoreError as error:
        if isinstance(error.__cause__, apsw.IOError) and disk_is_full(path):
            raise disk_full(doing) from error
        raise


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run a block in one write transaction. IMMEDIATE locks at once: a deferred one cannot wait for the lock."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def read_snapshot(connection: apsw.Connection) -> Iterator[None]:
    """Run a block in one read snapshot. It ends with a rollback: in a damaged store even an empty COMMIT fails."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def use_wal(connection: apsw.Connection) -> None:
    """Turn on the write-ahead log, with retries: SQLite calls no busy handler when the journal mode changes."""
    for attempt in range(200):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            time.sleep(0.005 * min(attempt + 1, 10))
    raise apsw.BusyError("the write-ahead log could not be switched on")
