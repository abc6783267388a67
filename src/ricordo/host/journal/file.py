"""The journal's file: one connection in a thread of its own, one transaction a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ricordo.errors import StoreError, UnavailableError
from ricordo.model import Durability
from ricordo.storage.database.connection import patient, transaction, translated
from ricordo.storage.database.queries import statements
from ricordo.storage.database.schema import use_wal

T = TypeVar("T")

_APPLICATION_ID = 0x52434A31
"""`RCJ1`: tells a journal from a store and from other programs' files."""
_VERSION = 1
_PACKAGE = "ricordo.host.journal"
_HINT = "move it away: what waits in it is lost, no memory is, and the nightly sweep sees to conversations"


def journal_path(location: str | Path) -> Path | None:
    """Where the journal of a store lies: beside it, `me.db.host`. None for a store that goes when it is closed.

    >>> journal_path("notes/me.db").name, journal_path("memories/").name
    ('me.db.host', 'memories.host')
    """
    if str(location) == ":memory:":
        return None
    path = Path(location).expanduser()
    return path.with_name(f"{path.name}.host")


class Rows:
    """The journal inside a transaction. Blocking; for the journal's thread alone."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def ask(self, name: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """What a named statement gives."""
        return self._connection.execute(statements(_PACKAGE)[name], dict(values)).fetchall()


class Journal:
    """Open it with `await Journal.open(path)`; close it when nothing uses it any more."""

    def __init__(self, connection: apsw.Connection, thread: ThreadPoolExecutor, path: Path | None) -> None:
        self.path = path
        self._connection = connection
        self._thread = thread
        self._is_open = True

    @classmethod
    async def open(cls, path: Path | None, *, durability: Durability = "disk", patience_s: float = 30.0) -> Journal:
        """The journal at a path, made if there is none; None for one in memory.

        Args:
            patience_s: how long a change waits for other processes, in seconds.

        Raises:
            StoreError: it cannot be opened, or is another program's file, or a newer Ricordo's.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="ricordo-journal")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(
                thread, lambda: _opened(path, durability=durability, patience_s=patience_s)
            )
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(connection, thread, path)

    async def change(self, work: Callable[[Rows], T]) -> T:
        """Run the change in one transaction, all or nothing. A cancelled caller stops waiting; the change still
        completes.

        Raises:
            UnavailableError: the journal is closed, or another process holds it for too long.
            StoreError: it is damaged, or the disk is full.
        """

        def changed() -> T:
            with translated("the journal"), transaction(self._connection):
                return work(Rows(self._connection))

        if not self._is_open:
            raise UnavailableError("the host is closed")
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, changed))

    async def close(self) -> None:
        """End what was begun and let go of the file. Closing twice is fine."""
        if self._is_open:
            self._is_open = False
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown(wait=False)


def _opened(path: Path | None, *, durability: Durability, patience_s: float) -> apsw.Connection:
    name = ":memory:" if path is None else str(path)
    try:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot open {name}: {error.strerror}", hint="check the path and its permissions") from error
    with translated(f"cannot open {name}"):
        connection = apsw.Connection(name)
        try:
            connection.set_busy_handler(patient(patience_s))
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'disk' else 'NORMAL'}")
            for setting in ("foreign_keys = ON", "secure_delete = ON", "recursive_triggers = ON"):
                connection.execute(f"PRAGMA {setting}")
            _prepare(connection, name)
            if path is not None:
                use_wal(connection)  # only now: what is not ours stays as it is
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: apsw.Connection, name: str) -> None:
    with transaction(connection):
        version, application = connection.pragma("user_version"), connection.pragma("application_id")
        is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if not is_empty and application != _APPLICATION_ID:
            raise StoreError(f"{name} is no journal of Ricordo's", hint=_HINT)
        if version > _VERSION:
            raise StoreError(f"{name} is of a newer Ricordo", hint="upgrade with pip install -U ricordo")
        if is_empty:
            connection.execute((files(_PACKAGE) / "schema.sql").read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
