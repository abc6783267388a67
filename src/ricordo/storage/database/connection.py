"""SQLite connections: opening them, the functions that the schema calls, transactions and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import apsw

from ricordo.errors import StoreError, UnavailableError
from ricordo.model import Durability
from ricordo.storage.database.hashes import former_hash, row_sum
from ricordo.storage.key import AnyKey, unlock
from ricordo.storage.sql import IS_FOLDER, MENDING, opening, patient, translated
from ricordo.storage.values import holds
from ricordo.text.analyzer import index_terms
from ricordo.text.passages import traits_of
from ricordo.text.statement import statement_line

APPLICATION_ID = 0x52434F52
"""`RCOR`: marks a SQLite file as a Ricordo store."""

# SQLite's default of 2 MB is far too small for an index of a million nodes; this is a limit, not an allocation.
_CACHE_KIB = 16_384
# Checkpoints are the costliest part of small commits: 65,000 writes a second with rare checkpoints, 36,500 otherwise.
_CHECKPOINT_PAGES = 10_000


def connect(
    path: Path,
    *,
    durability: Durability = "disk",
    read_only: bool = False,
    patience_s: float,
    key: AnyKey | None = None,
) -> apsw.Connection:
    """Open a connection with the functions of the schema and the settings of Ricordo.

    Args:
        patience_s: how long to wait for the lock of another process, in seconds.
        key: opens an encrypted file, and encrypts a new one.

    Raises:
        DeniedError: the file is encrypted, and the key is missing or wrong.
        InvalidError: there is a key, and the file is not encrypted.
        StoreError: the file cannot be opened.
    """
    if path.is_dir():
        raise StoreError(f"{path} {IS_FOLDER}", hint=MENDING)
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with opening(path):
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=256)
        connection.set_busy_handler(patient(patience_s))
        unlock(connection, path, key)
        add_functions(connection)
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA secure_delete = OFF")  # `clean` removes what was erased
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA recursive_triggers = ON")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'disk' else 'NORMAL'}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    return connection


@lru_cache(maxsize=64)
def _parsed(where: str) -> Any:
    return json.loads(where)


def add_functions(connection: apsw.Connection) -> None:
    """Add the functions that triggers and checks of the schema call."""
    for name, (function, arguments) in _FUNCTIONS.items():
        connection.create_scalar_function(name, function, arguments, deterministic=True)


def all_terms(content: str, tags: str, speaker: str | None) -> list[str]:
    """Return the index terms of a node: the terms of its text, its tags (a JSON list) and its speaker."""
    return index_terms(content) + besides_terms(tags, speaker)


def besides_terms(tags: str, speaker: str | None) -> list[str]:
    """Return the index terms of a node's tags (a JSON list) and speaker."""
    terms = [] if tags == "[]" else [term for tag in json.loads(tags) for term in index_terms(tag)]
    return [*terms, *_terms_of_speaker(speaker)] if speaker else terms


_terms_of_speaker = lru_cache(maxsize=4_096)(index_terms)


def stored_terms(terms: Sequence[str], shelf: str) -> str:
    """Return the text of a node in the full-text index: its terms, each with its space and shelf as an ending."""
    ending = f"·{shelf} "
    return ending.join(terms) + ending if terms else ""


def _traits_of(content: str, tags: str, speaker: str | None, role: str | None) -> bytes:
    besides = besides_terms(tags, speaker)
    return traits_of(content, index_terms(content), besides, role=role)


_FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "index_terms": (lambda text, tags, speaker, shelf: stored_terms(all_terms(text, tags, speaker), str(shelf)), 4),
    "traits_of": (_traits_of, 4),
    "char_count": (len, 1),  # SQLite's own `length` stops at the first NUL, and its `replace` cannot replace one
    "statement_line": (statement_line, 1),
    "attributes_meet": (lambda attributes, where: holds(json.loads(attributes), _parsed(where)), 2),
    "case_folded": (lambda text: str(text).casefold(), 1),  # SQLite's own `lower` knows only ASCII
    "former_hash": (former_hash, 3),
    "row_sum": (row_sum, -1),
}
"""The functions that the schema calls, and their number of arguments."""


@contextmanager
def exclusive(path: Path, key: AnyKey | None = None) -> Iterator[apsw.Connection]:
    """Open a store exclusively, with its write-ahead log merged into the file and removed.

    Raises:
        UnavailableError: another program has the store open.
        StoreError: the file is damaged, or not a database.
    """
    with translated(f"cannot open {path}"):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        try:
            unlock(connection, path, key)
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
                # SQLite lets only the one connection of a file leave write-ahead-log mode.
                connection.execute("PRAGMA journal_mode = DELETE").fetchall()
                connection.execute("BEGIN EXCLUSIVE; COMMIT")
            except (apsw.BusyError, apsw.LockedError) as error:
                raise UnavailableError(f"another program has {path} open", hint="close it, then try again") from error
            yield connection
        finally:
            connection.close()
