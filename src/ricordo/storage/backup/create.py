"""A backup is made while others write, appears whole or not at all, and never takes the place of anything."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ricordo.errors import InvalidError, StoreError
from ricordo.model import Backup, BackupFile
from ricordo.storage import faults
from ricordo.storage.backup.manifest import counted, manifest_path, still, written
from ricordo.storage.checksums import sum_of
from ricordo.storage.database.store import Store, is_folder, make_folders
from ricordo.storage.staging import place_beside, sync

if TYPE_CHECKING:
    from ricordo.storage.folder.folder import Folder


def back_up(store: Store, target: str | Path, *, now: datetime) -> Backup:
    """Copy a whole store to a file or, where the target ends in a slash, the files of a folder to a folder.

    Raises:
        InvalidError: there is something at the target, or a single file is to become a folder.
        StoreError: it cannot be written; nothing is left of it.
    """
    is_to_folder, path = is_folder(target), Path(target).expanduser()
    if path.exists():
        raise InvalidError(f"path: {path} exists already", hint="choose a new name; nothing is overwritten")
    if is_to_folder and store.folder is None:
        hint = "leave the slash out, or `ricordo migrate` makes a folder of the store"
        raise InvalidError(f"path: {path} is to be a folder, and the store is a single file", hint=hint)
    try:
        make_folders(path.parent)
        with place_beside(path) as beside:
            if is_to_folder and store.folder is not None:
                return _folder(store.folder, path, beside, now=now)
            return _file(store, path, beside, now=now)
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot back up to {path}: {error.strerror or error}", hint=hint) from error


def _file(store: Store, path: Path, beside: Path, *, now: datetime) -> Backup:
    copy = beside / path.name
    store.backup(copy)
    with still(copy) as snapshot:
        manifest = _manifest("file", counted(snapshot), {path.name: sum_of(copy)}, now=now)
    listed = manifest_path(copy, is_folder=False)
    _put(listed, written(manifest))
    faults.reached("backup: before naming")
    # The manifest first: one without its copy harms nobody.
    listed.replace(manifest_path(path, is_folder=False))
    copy.rename(path)
    sync(path.parent)
    return manifest


def _folder(folder: Folder, path: Path, beside: Path, *, now: datetime) -> Backup:
    copy = beside / "folder"
    copy.mkdir(mode=0o700)
    figures, files = folder.copy_to(copy, counted)
    manifest = _manifest("folder", figures, files, now=now)
    _put(manifest_path(copy, is_folder=True), written(manifest))
    sync(copy)
    faults.reached("backup: before naming")
    copy.rename(path)
    sync(path.parent)
    return manifest


def _manifest(
    kind: Literal["file", "folder"], figures: dict[str, object], files: dict[str, BackupFile], *, now: datetime
) -> Backup:
    return Backup(made_at=now, kind=kind, files=files, **figures)  # type: ignore[arg-type]


def _put(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
