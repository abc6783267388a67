"""The data of the host that survives restarts: events and their deliveries, jobs, and the state of conversations.

The only module of the host that uses SQL. Its file is next to the store and contains no memories.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ricordo.clock import new_id
from ricordo.errors import InvalidError, StoreError, UnavailableError
from ricordo.model import Durability
from ricordo.storage.key import Key, unlock
from ricordo.storage.sql import named_statements, patient, transaction, translated, use_wal

T = TypeVar("T")

_APPLICATION_ID = 0x52434A31
"""`RCJ1`: distinguishes a journal from a store and from files of other programs."""
_VERSION = 1
_PACKAGE = "ricordo.host.journal"
_HINT = "move the file away: waiting events are lost but no memories; nightly upkeep consolidates the conversations"


def journal_path(location: str | Path) -> Path | None:
    """Return the path of a store's journal, which is next to it; None for a store in memory.

    >>> journal_path("notes/me.db").name, journal_path("memories/").name
    ('me.db.host', 'memories.host')
    """
    if str(location) == ":memory:":
        return None
    path = Path(location).expanduser()
    return path.with_name(f"{path.name}.host")


class Rows:
    """The journal inside a transaction. Blocking; only for the journal's thread."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def ask(self, name: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a named statement."""
        return self._connection.execute(named_statements(_PACKAGE)[name], dict(values)).fetchall()


class Journal:
    """The journal file. Open it with `await Journal.open(path)`, and close it when it is no longer used."""

    def __init__(self, connection: apsw.Connection, thread: ThreadPoolExecutor, path: Path | None) -> None:
        self.path = path
        self._connection = connection
        self._thread = thread
        self._is_open = True

    @classmethod
    async def open(
        cls, path: Path | None, *, durability: Durability = "disk", patience_s: float = 30.0, key: Key | None = None
    ) -> Journal:
        """Open the journal at a path; create it if it does not exist. With the path None, it is kept in memory.

        Args:
            patience_s: how long a change waits for other processes, in seconds.
            key: the encryption key, as for the store.

        Raises:
            DeniedError: the journal is encrypted, and the key is missing or wrong.
            InvalidError: a key is given, but the journal is not encrypted.
            StoreError: the journal cannot be opened, belongs to another program, or is newer than this code.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="ricordo-journal")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(
                thread, lambda: _opened(path, durability=durability, patience_s=patience_s, key=key)
            )
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(connection, thread, path)

    async def change(self, work: Callable[[Rows], T]) -> T:
        """Run a change in one transaction. A cancelled caller stops waiting; the change still completes.

        Raises:
            UnavailableError: the journal is closed, or another process locks it for too long.
            StoreError: the journal is damaged, or the disk is full.
        """

        def changed() -> T:
            with translated("the journal"), transaction(self._connection):
                return work(Rows(self._connection))

        if not self._is_open:
            raise UnavailableError("the host is closed")
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, changed))

    async def close(self) -> None:
        """Finish pending changes and close the file. Closing twice is allowed."""
        if self._is_open:
            self._is_open = False
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown(wait=False)


def _opened(path: Path | None, *, durability: Durability, patience_s: float, key: Key | None) -> apsw.Connection:
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
            if path is not None:
                unlock(connection, path, key)
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'disk' else 'NORMAL'}")
            for setting in ("foreign_keys = ON", "secure_delete = ON", "recursive_triggers = ON"):
                connection.execute(f"PRAGMA {setting}")
            _prepare(connection, name)
            if path is not None:
                use_wal(connection)  # late, so that foreign files are not changed
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: apsw.Connection, name: str) -> None:
    with transaction(connection):
        version, application = connection.pragma("user_version"), connection.pragma("application_id")
        is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
        if not is_empty and application != _APPLICATION_ID:
            raise StoreError(f"{name} is not a Ricordo journal", hint=_HINT)
        if version > _VERSION:
            raise StoreError(f"{name} was written by a newer Ricordo", hint="upgrade with pip install -U ricordo")
        if is_empty:
            connection.execute((files(_PACKAGE) / "schema.sql").read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")


MOST_WAITING = 100_000
KEPT_MS = 7 * 86_400_000
KEPT_EVENTS = 10_000
DEAD_MS = 90 * 86_400_000
DEAD_LETTERS = 1_000
_MOST_CHARS = 65_536
_DEADLY = "the process ended during every attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery that a handler has taken. `at` in Unix milliseconds; `tries` includes this attempt."""

    event: int
    id: str
    topic: str
    payload: Mapping[str, Any]
    at: int
    tries: int


def put_event(rows: Rows, topic: str, payload: Mapping[str, Any], *, once: str | None, now: int) -> str:
    """Write an event for all subscribers and return its id. If `once` is already known, return the id of that event.

    Raises:
        InvalidError: the payload is not a JSON object, or is longer than 64 kB.
        UnavailableError: too many deliveries wait.
    """
    text = _as_json(payload)
    if rows.ask("deliveries_many", {"most": MOST_WAITING - 1}):
        raise UnavailableError(f"{MOST_WAITING:,} events are already waiting", hint="start the host that handles them")
    seen = None if once is None else hashlib.sha256(once.encode()).hexdigest()
    values = {"id": new_id(now), "topic": topic, "payload": text, "once": seen, "at": now}
    made = rows.ask("event_put", values)
    if not made:
        return str(rows.ask("event_by_once", {"once": seen})[0][0])
    rows.ask("deliveries_put", {"event": made[0][0], "topic": topic, "at": now})
    return str(values["id"])


def _as_json(payload: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise InvalidError("payload is not a JSON object", hint="use text, numbers, lists and objects") from error
    if len(text) > _MOST_CHARS:
        raise InvalidError("payload is longer than 64 kB", hint="send an id, and keep the rest in a store")
    return text


def take_delivery(
    rows: Rows,
    handler: str,
    *,
    holder: str,
    now: int,
    wall: int,
    until: int,
    most_tries: int,
    is_gone: Callable[[str], bool],
) -> Delivery | None:
    """Take the oldest due delivery that is free. Deliveries with too many attempts become dead letters.

    Args:
        holder: the name under which the delivery is held.
        now: Unix milliseconds of the caller's clock, which decides what is due.
        wall, until: Unix milliseconds of the machine's clock, which decides how long the delivery is held.
    """
    holders = [name for (name,) in rows.ask("delivery_holders", {"handler": handler})]
    gone = json.dumps([name for name in holders if is_gone(name)])
    while found := rows.ask("delivery_next", {"handler": handler, "now": now, "wall": wall, "gone": gone}):
        event, id_, topic, payload, at, tries = found[0]
        place = {"event": event, "handler": handler}
        if tries >= most_tries:
            rows.ask("delivery_bury", {**place, "holder": None, "reason": _DEADLY})
            continue
        rows.ask("delivery_take", {**place, "holder": holder, "until": until})
        return Delivery(event=event, id=id_, topic=topic, payload=json.loads(payload), at=at, tries=tries + 1)
    return None


def remove_old(rows: Rows, *, now: int) -> None:
    """Delete what is no longer needed, so that the file stays small."""
    rows.ask("deliveries_orphaned", {"before": now - DEAD_MS})
    rows.ask("subscriptions_old", {"before": now - DEAD_MS})
    rows.ask("dead_letters_old", {"before": now - DEAD_MS, "most": DEAD_LETTERS})
    rows.ask("events_old", {"before": now - KEPT_MS, "most": KEPT_EVENTS})
    rows.ask("conversations_old", {"before": now - DEAD_MS})
