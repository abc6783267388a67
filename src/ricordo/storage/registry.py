"""Locations and backends: find the backend of a location, and open a store or copy it to another backend."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ricordo.errors import InvalidError, RicordoError, StoreError
from ricordo.model import Durability
from ricordo.ports import Progress
from ricordo.storage.database.schema import Migration, migrations
from ricordo.storage.database.store import Options
from ricordo.storage.key import KEY_FILE, AnyKey, Key, folder_cipher
from ricordo.storage.protocol import Gate, Store
from ricordo.storage.sql import disk_full, disk_is_full
from ricordo.storage.sqlite import SQLiteStore
from ricordo.storage.staging import check_file_name, free_path, make_folders, named, staging_folder, temporary_folder

_TEMPORARY = ":memory:"

Opener = Callable[[str, Options], Store]


def _open_postgres(location: str, options: Options) -> Store:
    try:
        from ricordo.storage.postgres.store import open_postgres  # an extra
    except ImportError as error:
        raise InvalidError(
            f"location: PostgreSQL stores need a package that is not installed ({error.name})",
            hint='pip install "ricordo[postgres]"',
        ) from error
    return open_postgres(location, options)


_openers: dict[str, Opener] = {"postgresql": _open_postgres, "postgres": _open_postgres}


def register(scheme: str, opener: Opener) -> None:
    """Let `opener` open locations "scheme://...". It gets the location and the options of `open_store`."""
    _openers[scheme] = opener


def open_store(
    location: str | Path,
    *,
    durability: Durability = "disk",
    patience_s: float = 30.0,
    queue_limit: int = 10_000,
    reader_threads: int = 2,
    steps: tuple[Migration, ...] | None = None,
    gate: Gate | None = None,
    progress: Progress | None = None,
    key: Key | None = None,
) -> Store:
    """Open the store at a location, creating it if it does not exist.

    Args:
        location: the path of a file; the path of a folder that exists or ends in a slash; or ":memory:" for a store
            that is deleted when it is closed.
        patience_s: how long a write waits for other processes, in seconds.
        queue_limit: how many writes may wait in this process.
        gate: screens every change before it is applied.
        progress: called with (lines so far, lines in all) while the index of a folder is rebuilt.
        key: opens an encrypted store, and encrypts a new one.

    Raises:
        DeniedError: the store is encrypted, and the key is missing or wrong.
        InvalidError: no backend fits the location, or there is a key and the store is not encrypted.
        StoreError: the file belongs to another program, is of a newer version, damaged, or cannot be read or written.
    """
    options = Options(
        durability=durability,
        patience_s=patience_s,
        queue_limit=queue_limit,
        reader_threads=reader_threads,
        steps=steps or migrations(),
        gate=gate,
        key=key,
    )
    try:
        text = os.fspath(location)
    except TypeError as error:
        kind = type(location).__name__
        hint = "give the path of a file or a folder, or :memory:"
        raise InvalidError(f"location: a {kind} is not a path", hint=hint) from error
    if text == _TEMPORARY:
        return SQLiteStore.open_temporary(options)
    if "://" in text:
        scheme = text.partition("://")[0]
        if scheme not in _openers:
            raise InvalidError(f"location: {scheme} stores are not supported", hint="give a file's path")
        if key is not None:
            raise InvalidError(
                f"key: {scheme} stores take no key", hint="open it without a key, and encrypt the disk of its server"
            )
        return _openers[scheme](text, options)
    if not text.strip():
        raise InvalidError("location: the path is empty", hint="give the path of a file or a folder, or :memory:")
    path = named(location)
    if path.exists() and (_is_read_only(path) or disk_is_full(path)):
        return _open_read_only(path, options, progress, is_full=disk_is_full(path))
    return _open_folder(path, options, progress) if is_folder(location) else SQLiteStore.open(path, options)


def _is_read_only(path: Path) -> bool:
    """Return whether a store, or its folder, cannot be written."""
    return not os.access(path, os.W_OK) or not os.access(path if path.is_dir() else path.parent, os.W_OK)


def _open_read_only(path: Path, options: Options, progress: Progress | None, *, is_full: bool) -> Store:
    """Open a private copy that refuses permanent changes; embeddings and counts are written to the copy only.

    A copy is needed: SQLite writes to read (its log and the log's index), and a store updates its schema and vectors.
    """
    from ricordo.storage.folder.store import FolderStore  # imported late: most stores are single files

    stack = ExitStack()
    try:
        copy = stack.enter_context(temporary_folder(path)) / path.name
        if path.is_dir():
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("notes", ".git", ".lock"), copy_function=_copy)
            for folder in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
                folder.chmod(0o700)  # copytree also copies the modes of folders
            store: SQLiteStore | FolderStore = FolderStore.open(copy, options, progress=progress)
        else:
            for ending in ("", "-wal"):
                if (source := Path(f"{path}{ending}")).exists():
                    _copy(str(source), f"{copy}{ending}")
            store = SQLiteStore.open(copy, options)
    except OSError as error:
        stack.close()
        if error.errno == errno.ENOSPC:
            raise disk_full(f"cannot open {path}") from error
        raise StoreError(f"cannot open {path}: {error.strerror}", hint="check the path and its permissions") from error
    except BaseException:
        stack.close()
        raise
    store.keep_read_only(path, stack.close, is_full=is_full)
    return store


def _copy(source: str, target: str) -> None:
    """Copy a file's content, not its mode: the copy must be writable."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o600)


def is_folder(location: str | Path) -> bool:
    """Return whether a location is a folder, or names one by ending in a slash. Raises InvalidError."""
    text = str(location)
    if text == _TEMPORARY or "://" in text:
        return False
    check_file_name(text, name="location")
    return text.endswith(("/", os.sep)) or Path(text).expanduser().is_dir()


def _open_folder(folder: Path, options: Options, progress: Progress | None) -> Store:
    from ricordo.storage.conversion import adopt_single_file, turn_into_folder
    from ricordo.storage.folder.store import FolderStore  # imported late: most stores are single files

    try:
        turn_into_folder(folder, options)
        make_folders(folder)
        adopt_single_file(folder, options)
        return FolderStore.open(folder, options, progress=progress)
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot open {folder}: {error.strerror}", hint=hint) from error


def migrate(store: Store, target: str | Path, *, key: Key | None = None) -> None:
    """Copy a store to a PostgreSQL database, to a folder if the target ends in a slash, else to a single file.

    Args:
        key: the key of the store; the copy is encrypted with it as well, unless it is a PostgreSQL database.

    Raises:
        InvalidError: the target exists and is not empty.
        StoreError: it cannot be written.
    """
    if "://" in str(target):
        _migrate_to_server(store, str(target), key)
        return
    path = Path(target).expanduser()
    if not is_folder(target):
        store.copy_to(path)
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidError(f"path: {path} is not empty", hint="choose a new name; nothing is overwritten")
    from ricordo.storage.conversion import create_folder  # seldom needed

    try:
        make_folders(path.parent)
        with staging_folder(path) as beside:
            store.copy_to(beside / "store.db")
            create_folder(path, beside / "store.db", Options(key=key))
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot write {path}: {error.strerror}", hint=hint) from error


def _migrate_to_server(store: Store, target: str, key: Key | None) -> None:
    server = open_store(target)
    try:
        if not hasattr(server, "fill_from"):
            raise InvalidError(
                f"path: a store cannot be copied to {target.partition('://')[0]}", hint="give a file's path"
            )
        with tempfile.TemporaryDirectory(prefix="ricordo-") as folder:
            store.copy_to(Path(folder) / "store.db")
            if key is not None:
                from ricordo.storage.rekey import rekey  # seldom needed

                rekey(Path(folder) / "store.db", key=key, new=None)
            server.fill_from(Path(folder) / "store.db")
    finally:
        server.close()


Remains = Mapping[str, Any]
"""What could be read of a memory in a damaged file, by parameter of `Memory.remember` and `Memory.add`."""


def move_damaged_aside(location: str | Path, key: Key | None = None) -> tuple[list[Path], Sequence[Remains]]:
    """Move the files of a damaged store to new names beside them; return these and the memories that can be read.

    Nothing is deleted. In a folder store, folders that occupy the places of files are moved; if there are none, all
    files of the store except its notes are moved.
    """
    path = Path(location).expanduser()
    ending = f".damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if is_folder(location) and path.is_dir():
        wrong = [each for each in path.iterdir() if each.is_dir() and _is_place_of_file(each)]
        if (path / "notes").is_dir():
            wrong += [each for each in (path / "notes").glob(".ricordo.*") if each.is_dir()]
        if wrong:
            return [each.rename(free_path(each.with_name(f"{each.name}{ending}"))) for each in wrong], []
        aside = free_path(path / ending.removeprefix("."))
        aside.mkdir(mode=0o700)
        for each in [each for each in path.iterdir() if _is_place_of_file(each) or each.name.startswith("index.db")]:
            if each.name != ".gitignore":
                each.rename(aside / each.name)
        return [aside], _read_remains(aside / "index.db", _index_key(aside, key))
    aside = free_path(path.with_name(f"{path.name}{ending}"))
    tails = [tail for tail in ("", "-wal", "-shm") if Path(f"{path}{tail}").exists()]
    moved = [Path(f"{path}{tail}").rename(f"{aside}{tail}") for tail in tails]
    return moved[:1], _read_remains(aside, key) if aside.is_file() else []


def _is_place_of_file(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".db", ".lock", ".gitignore", KEY_FILE))


def _index_key(folder: Path, key: Key | None) -> AnyKey | None:
    """Return the index key of a damaged folder store, if it can still be derived."""
    with suppress(RicordoError):
        cipher = folder_cipher(folder, key, files=(), write=lambda path, parts: None)
        return None if cipher is None else cipher.index_key
    return None


def _read_remains(path: Path, key: AnyKey | None) -> Sequence[Remains]:
    """Read the live memories of a damaged database one by one; each undamaged page yields its own."""
    from ricordo.storage.database.maintenance import read_rows

    with temporary_folder(path) as folder:
        copy = folder / path.name
        for tail in ("", "-wal"):
            if Path(f"{path}{tail}").exists():
                _copy(f"{path}{tail}", f"{copy}{tail}")
        return read_rows(copy, key)
