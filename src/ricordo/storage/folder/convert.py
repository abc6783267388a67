"""A folder made of a single file."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw

from ricordo.errors import InvalidError, StoreError
from ricordo.model import Durability
from ricordo.storage import faults
from ricordo.storage.database.connection import connect, translated
from ricordo.storage.database.exclusive import alone_with
from ricordo.storage.database.queries import sql
from ricordo.storage.database.schema import migrations, prepare
from ricordo.storage.folder.folder import Folder
from ricordo.storage.folder.layout import FILES, INDEX, PEOPLE
from ricordo.storage.staging import place_beside, sync

_log = logging.getLogger("ricordo.storage")

_NAME = "folder"
_WHOLE = ".whole"
_KEPT = ".single-file"


def fill_folder(target: Path, source: apsw.Connection, *, durability: Durability, patience_s: float) -> None:
    """A folder at a path, whole or not at all, that holds what a single file holds. The file stays as it is.

    Raises:
        OSError, StoreError: the disk is full or failing; nothing is left of it.
    """
    with _filled(target, source, durability=durability, patience_s=patience_s) as place:
        faults.reached("folder: before naming")
        place.rename(target)
        sync(target.parent)


def turn_into_folder(path: Path, *, durability: Durability, patience_s: float) -> None:
    """Where a folder is asked for and a single file stands: the file becomes a folder, and is kept beside.

    Raises:
        InvalidError: the file is no store.
        UnavailableError: another program has it open.
        OSError, StoreError: the disk is full or failing; the file stands as it did.
    """
    whole = path.with_name(f".{path.name}{_WHOLE}")
    if path.is_file():
        with _source(path, patience_s=patience_s) as source:
            with _filled(path, source, durability=durability, patience_s=patience_s) as place:
                _remove_folder(whole)
                place.rename(whole)  # from here on it needs but its name
                sync(path.parent)
            kept = _free(path.with_name(f"{path.name}{_KEPT}"))
            path.rename(kept)
        _announce(path, kept)
    if whole.exists() and not path.exists():
        faults.reached("folder: before naming")
        with contextlib.suppress(FileNotFoundError):  # another process was first
            whole.rename(path)
        sync(path.parent)


def take_in_single_file(folder: Path, *, durability: Durability, patience_s: float) -> None:
    """Where a folder has no plain files but a store in a single file, they are made of that; it is kept.

    Raises:
        UnavailableError: another program has the file open.
        OSError, StoreError: the disk is full or failing.
    """
    found = _only_store_in(folder)
    if found is None:
        return
    kept = _free(found.with_name(f"{INDEX}{_KEPT}")) if found.name == INDEX else found
    with _source(found, patience_s=patience_s) as source:
        if kept != found:
            kept.hardlink_to(found)
        with _filled(folder, source, durability=durability, patience_s=patience_s) as place:
            there = Folder(folder, durability=durability, patience_s=patience_s, steps=migrations())
            try:
                there.take_over(place)
            finally:
                there.close()
    _announce(folder, kept)


def _announce(path: Path, kept: Path) -> None:
    _log.warning("%s was a single file and is a folder of plain text files now; the file was kept as %s", path, kept)


@contextlib.contextmanager
def _filled(target: Path, source: apsw.Connection, *, durability: Durability, patience_s: float) -> Iterator[Path]:
    """A folder beside a path, whole and on the disk. It goes again unless it is renamed."""
    with place_beside(target) as beside:
        place = beside / _NAME
        place.mkdir(mode=0o700)
        folder = Folder(place, durability=durability, patience_s=patience_s, steps=migrations())
        try:
            folder.fill(source)
        finally:
            folder.close()
        sync(place)
        yield place


@contextlib.contextmanager
def _source(path: Path, *, patience_s: float) -> Iterator[apsw.Connection]:
    """A store in a single file, up to date, and nobody else in it."""
    connection = connect(path, patience_s=patience_s)
    try:
        prepare(connection, path, migrations())
    finally:
        connection.close()
    with alone_with(path) as source:
        yield source


def _only_store_in(folder: Path) -> Path | None:
    """The one file of a folder that is a store with something in it, where there are no plain files."""
    names = {path.name for path in folder.iterdir()}
    if names & {*FILES, PEOPLE} or any(name.endswith(".new") for name in names):
        return None
    found = [path for path in sorted(folder.iterdir()) if path.suffix == ".db" and _holds_commits(path)]
    if len(found) > 1:
        raise InvalidError(
            f"location: {folder} holds {len(found)} stores in single files and no plain files",
            hint=f"name one of them, such as {found[0]}, or `ricordo --store FILE migrate FOLDER/`",
        )
    return found[0] if found else None


def _holds_commits(path: Path) -> bool:
    """Whether a file is a store of ours that nobody has written beside plain files yet."""
    try:
        with translated("cannot look"):
            connection = connect(path, read_only=True, patience_s=1)
            try:
                is_index = connection.execute(sql("meta_get"), {"name": "folder"}).get is not None
                return not is_index and connection.execute(sql("commit_last_seq")).get is not None
            finally:
                connection.close()
    except StoreError:
        return False


def _free(path: Path) -> Path:
    """A name nothing has yet."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def _remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
