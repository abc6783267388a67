"""Conversion of a single-file store to a folder store."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw

from ricordo.errors import InvalidError, StoreError
from ricordo.storage import faults
from ricordo.storage.database.connection import connect, exclusive
from ricordo.storage.database.schema import prepare
from ricordo.storage.database.statements import sql
from ricordo.storage.database.store import Options
from ricordo.storage.folder.index import FolderIndex
from ricordo.storage.jsonl.layout import FILES, INDEX, PEOPLE
from ricordo.storage.key import KEY_FILE, fitting
from ricordo.storage.sql import translated
from ricordo.storage.staging import free_path, staging_folder, sync

_log = logging.getLogger("ricordo.storage")

_CONVERTED = "%s was a single file and is now a folder of plain text files; the file was kept as %s"
_NAME = "folder"
_WHOLE = ".whole"
_KEPT = ".single-file"


def create_folder(target: Path, file: Path, options: Options) -> None:
    """Create a folder store with the content of a file that nobody writes to, completely or not at all."""
    with (
        contextlib.closing(connect(file, read_only=True, patience_s=options.patience_s, key=options.key)) as source,
        _filled(target, source, options) as folder,
    ):
        faults.reached("folder: before naming")
        folder.rename(target)
        sync(target.parent)


def turn_into_folder(path: Path, options: Options) -> None:
    """Replace a single file by a folder with its content, and keep the file beside it. If there is no file, do
    nothing.

    Raises:
        InvalidError: the file is not a store.
        UnavailableError: another program has it open.
        OSError, StoreError: the disk is full or failing; the file stays as it was.
    """
    whole = path.with_name(f".{path.name}{_WHOLE}")
    if path.is_file():
        with _source(path, options) as source:
            with _filled(path, source, options) as folder:
                shutil.rmtree(whole, ignore_errors=True)
                folder.rename(whole)  # complete except for its name
                sync(path.parent)
            kept = free_path(path.with_name(f"{path.name}{_KEPT}"))
            path.rename(kept)
        _log.warning(_CONVERTED, path, kept)
    if whole.exists() and not path.exists():
        faults.reached("folder: before naming")
        with contextlib.suppress(FileNotFoundError):  # another process was first
            whole.rename(path)
        sync(path.parent)


def adopt_single_file(folder: Path, options: Options) -> None:
    """Write the plain files of a folder that has none but holds a single-file store; keep that file.

    Raises:
        InvalidError: the folder holds several single-file stores.
        UnavailableError: another program has the file open.
        OSError, StoreError: the disk is full or failing.
    """
    found = _only_store_in(folder, options)
    if found is None:
        return
    kept = free_path(found.with_name(f"{INDEX}{_KEPT}")) if found.name == INDEX else found
    with _source(found, options) as source:
        if kept != found:
            kept.hardlink_to(found)
        with _filled(folder, source, options) as fresh:
            replace_folder(folder, fresh, options)
    _log.warning(_CONVERTED, folder, kept)


def replace_folder(folder: Path, fresh: Path, options: Options, *, aside: Path | None = None) -> None:
    """Replace the files of a folder store, all or none. The old files are moved to the new folder `aside`."""
    with contextlib.closing(FolderIndex(folder, options, fresh=fresh)) as index:
        index.take_over(fresh, aside=aside)


@contextlib.contextmanager
def _filled(target: Path, source: apsw.Connection, options: Options) -> Iterator[Path]:
    """Provide a complete, synced folder store beside a path. It is deleted unless the caller renames it."""
    with staging_folder(target) as beside:
        folder = beside / _NAME
        folder.mkdir(mode=0o700)
        with contextlib.closing(FolderIndex(folder, options)) as index:
            index.fill(source)
        sync(folder)
        yield folder


@contextlib.contextmanager
def _source(path: Path, options: Options) -> Iterator[apsw.Connection]:
    """Open a single-file store exclusively, with the newest schema."""
    with contextlib.closing(connect(path, patience_s=options.patience_s, key=options.key)) as connection:
        prepare(connection, path, options.steps, key=options.key)
    with exclusive(path, options.key) as source:
        yield source


def _only_store_in(folder: Path, options: Options) -> Path | None:
    """Return the only single-file store in a folder without plain files; None if there is none."""
    names = {path.name for path in folder.iterdir()}
    if names & {*FILES, PEOPLE, KEY_FILE} or any(name.endswith(".new") for name in names):
        return None
    found = [path for path in sorted(folder.iterdir()) if path.suffix == ".db" and _holds_commits(path, options)]
    if len(found) > 1:
        raise InvalidError(
            f"location: {folder} holds {len(found)} stores in single files and no plain files",
            hint=f"name one of them, such as {found[0]}, or `ricordo --store FILE migrate FOLDER/`",
        )
    return found[0] if found else None


def _holds_commits(path: Path, options: Options) -> bool:
    """Return whether a file is a Ricordo store with commits, and not the index of a folder store."""
    try:
        key = fitting(path, options.key)
        opened = contextlib.closing(connect(path, read_only=True, patience_s=1, key=key))
        with translated("cannot look"), opened as connection:
            is_index = connection.execute(sql("meta_get"), {"name": "folder"}).get is not None
            return not is_index and connection.execute(sql("commit_last_seq")).get is not None
    except StoreError:
        return False
