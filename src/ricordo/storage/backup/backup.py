"""Backups: a copy of a store, and a manifest of what the copy holds. A backup never replaces anything."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from ricordo.errors import InvalidError, StoreError
from ricordo.model import Backup, BackupFile
from ricordo.storage import faults
from ricordo.storage.database.connection import add_functions
from ricordo.storage.database.history import truth_of
from ricordo.storage.database.snapshot import DatabaseSnapshot, database_of
from ricordo.storage.protocol import Snapshot, Store
from ricordo.storage.registry import is_folder
from ricordo.storage.sql import read_snapshot, translated
from ricordo.storage.staging import checksum_of, make_folders, staging_folder, sync

VERSION = 1
_ENDING = ".manifest.json"
_INSIDE = "manifest.json"


def back_up(store: Store, target: str | Path, *, now: datetime) -> Backup:
    """Copy a whole store to a file or, if the target ends in a slash, its plain files to a folder. Others may write
    meanwhile; the copy appears whole or not at all.

    Raises:
        InvalidError: the target exists, or it is a folder and the store is a single file.
        StoreError: it cannot be written; nothing is left of it.
    """
    is_to_folder, path = is_folder(target), Path(target).expanduser()
    if path.exists():
        raise InvalidError(f"path: {path} exists already", hint="choose a new name; nothing is overwritten")
    if is_to_folder and not store.has_plain_files:
        hint = "leave the slash out, or `ricordo migrate` makes a folder of the store"
        raise InvalidError(f"path: {path} is to be a folder, and the store is a single file", hint=hint)
    try:
        make_folders(path.parent)
        with staging_folder(path) as beside:
            return (_folder if is_to_folder else _file)(store, path, beside, now=now)
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot back up to {path}: {error.strerror or error}", hint=hint) from error


def _file(store: Store, path: Path, beside: Path, *, now: datetime) -> Backup:
    copy = beside / path.name
    store.copy_to(copy)
    with opened_copy(copy) as snapshot:
        files = {path.name: checksum_of(copy)}
        manifest = Backup(made_at=now, kind="file", files=files, **figures_of(snapshot))
    listed = manifest_path(copy, is_folder=False)
    _write(listed, manifest)
    faults.reached("backup: before naming")
    # The manifest first: one without its copy does no harm.
    listed.replace(manifest_path(path, is_folder=False))
    copy.rename(path)
    sync(path.parent)
    return manifest


def _folder(store: Store, path: Path, beside: Path, *, now: datetime) -> Backup:
    copy = beside / "folder"
    copy.mkdir(mode=0o700)
    figures, files = store.copy_files(copy, figures_of)
    manifest = Backup(made_at=now, kind="folder", files=files, **figures)
    _write(manifest_path(copy, is_folder=True), manifest)
    sync(copy)
    faults.reached("backup: before naming")
    copy.rename(path)
    sync(path.parent)
    return manifest


# manifests


def manifest_path(backup: Path, *, is_folder: bool) -> Path:
    """Return where the manifest of a backup lies: inside a folder, beside a file."""
    return backup / _INSIDE if is_folder else backup.with_name(f"{backup.name}{_ENDING}")


def read_manifest(path: Path) -> Backup | None:
    """Return the manifest in a file; None if there is none. Raises StoreError."""
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if plain.pop("manifest") != VERSION:
            raise StoreError(f"{path} is of a later version", hint="upgrade with pip install -U ricordo")
        files = {name: BackupFile(**each) for name, each in plain.pop("files").items()}
        return Backup(**{**plain, "files": files, "made_at": datetime.fromisoformat(plain["made_at"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} cannot be read: {error}", hint="use another backup") from error


def figures_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the schema of a store, the rows of each truth table, the last commit and the head of the chain."""
    database = database_of(snapshot)
    tables = sorted(truth_of(database.connection).tables)
    rows = {name: int(database.connection.execute(f'SELECT count(*) FROM "{name}"').get or 0) for name in tables}
    seq, head = (database.rows("commit_last") or [(0, b"")])[0]
    schema = int(database.connection.pragma("user_version"))
    return {"schema": schema, "commits": int(seq), "head": head.hex(), "rows": rows}


@contextmanager
def opened_copy(path: Path) -> Iterator[DatabaseSnapshot]:
    """Read a store that no one writes to, without leaving files beside it."""
    with translated(f"cannot read {path}"):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)) as connection:
            add_functions(connection)
            with read_snapshot(connection):
                yield DatabaseSnapshot(connection)


def _write(path: Path, manifest: Backup) -> None:
    """Write and sync a manifest. It contains no text of any memory."""
    plain = {"manifest": VERSION, **asdict(manifest), "made_at": manifest.made_at.isoformat()}
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())
