"""Backups: copy a store with a manifest of its content, verify a backup, and restore it.

Making a backup never overwrites anything. To verify a backup, it is copied, opened and compared with its manifest; a
restore then moves that copy into place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from dataclasses import replace as replace_fields
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from ricordo.errors import DeniedError, InvalidError, NotFoundError, RicordoError, StoreError
from ricordo.model import Backup, BackupFile, Finding, Report, Restored, Scope
from ricordo.storage import faults
from ricordo.storage.conversion import create_folder, replace_folder
from ricordo.storage.database.connection import add_functions, connect, exclusive
from ricordo.storage.database.history import truth_of
from ricordo.storage.database.integrity import FINGERPRINT_KEY, id_fingerprint
from ricordo.storage.database.maintenance import examine
from ricordo.storage.database.schema import migrations, prepare
from ricordo.storage.database.snapshot import DatabaseSnapshot, database_of
from ricordo.storage.database.statements import as_set, sql
from ricordo.storage.database.store import Options
from ricordo.storage.database.word_index import space_postings
from ricordo.storage.folder.index import FolderIndex
from ricordo.storage.jsonl.layout import FILES, NOTES, PEOPLE
from ricordo.storage.key import KEY_FILE, AnyKey, Key, fitting, is_sealed, missing_key, unlock, wrong_key
from ricordo.storage.protocol import Snapshot, Store
from ricordo.storage.registry import is_folder, open_store
from ricordo.storage.sql import read_snapshot, translated
from ricordo.storage.staging import (
    checksum_of,
    copy_file,
    free_path,
    make_folders,
    staging_folder,
    sync,
    temporary_folder,
)
from ricordo.text.analyzer import index_terms
from ricordo.text.sentences import plural

VERSION = 1
_MANIFEST_ENDING = ".manifest.json"
_MANIFEST = "manifest.json"
_OPTIONS = Options(patience_s=5.0)
_SIDE_FILES = ("-wal", "-shm", "-journal")
_PASSING_NOTES = (".ricordo.lock", ".new-", ".aside-")
"""The beginnings of the names of files that exist in `notes/` only while it is written."""
_OTHER_BACKUP = "use another backup"
_MOST_POSTINGS = 10_000_000


def back_up(store: Store, target: str | Path, *, now: datetime, key: Key | None = None) -> Backup:
    """Copy a store to a file or, if the target ends in a slash, its plain files to a folder. Others may write
    meanwhile; the copy appears complete or not at all.

    Args:
        key: the key of the store; the copy is encrypted with it as well.

    Raises:
        InvalidError: the target exists, or it is a folder and the store is a single file.
        StoreError: the copy cannot be written; nothing of it remains.
    """
    is_to_folder, path = is_folder(target), Path(target).expanduser()
    if path.exists():
        raise InvalidError(f"path: {path} exists already", hint="choose a new name; nothing is overwritten")
    if is_to_folder and not store.has_plain_files:
        hint = "remove the final slash, or convert the store to a folder with `ricordo migrate`"
        raise InvalidError(f"path: {path} names a folder, but the store is a single file", hint=hint)
    try:
        make_folders(path.parent)
        with staging_folder(path) as beside:
            if is_to_folder:
                return _back_up_folder(store, path, beside, now=now)
            return _back_up_file(store, path, beside, now=now, key=key)
    except OSError as error:
        hint = "check the path and its permissions"
        raise StoreError(f"cannot back up to {path}: {error.strerror or error}", hint=hint) from error


def _back_up_file(store: Store, path: Path, beside: Path, *, now: datetime, key: Key | None) -> Backup:
    copy = beside / path.name
    store.copy_to(copy)
    with opened_copy(copy, key) as snapshot:
        files = {path.name: checksum_of(copy)}
        manifest = Backup(made_at=now, kind="file", files=files, **figures_of(snapshot))
    listed = manifest_path(copy, is_folder=False)
    _write_manifest(listed, manifest)
    faults.reached("backup: before naming")
    # The manifest first: a manifest without its copy does no harm.
    listed.replace(manifest_path(path, is_folder=False))
    copy.rename(path)
    sync(path.parent)
    return manifest


def _back_up_folder(store: Store, path: Path, beside: Path, *, now: datetime) -> Backup:
    copy = beside / "folder"
    copy.mkdir(mode=0o700)
    figures, files = store.copy_files(copy, figures_of)
    files = {**files, **_copy_notes(Path(store.path).parent, copy)}
    manifest = Backup(made_at=now, kind="folder", files=files, **figures)
    _write_manifest(manifest_path(copy, is_folder=True), manifest)
    sync(copy)
    faults.reached("backup: before naming")
    copy.rename(path)
    sync(path.parent)
    return manifest


def _copy_notes(folder: Path, target: Path) -> dict[str, BackupFile]:
    """Copy the notes of a folder store with all that people wrote in them; return the copies by name. Links are left
    out.
    """
    files = {}
    for path in sorted((folder / NOTES).rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith(_PASSING_NOTES):
            name = path.relative_to(folder)
            make_folders((target / name).parent)
            with contextlib.suppress(FileNotFoundError):  # it was renamed or deleted meanwhile
                files[name.as_posix()] = copy_file(path, target / name)
    return files


# manifests


def manifest_path(backup: Path, *, is_folder: bool) -> Path:
    """Return the path of a backup's manifest: inside a folder, beside a file."""
    return backup / _MANIFEST if is_folder else backup.with_name(f"{backup.name}{_MANIFEST_ENDING}")


def read_manifest(path: Path) -> Backup | None:
    """Return the manifest in a file; None if there is no file. Raises StoreError."""
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
        if plain.pop("manifest") != VERSION:
            raise StoreError(
                f"{path} was written by a later version of Ricordo", hint="upgrade with pip install -U ricordo"
            )
        files = {name: BackupFile(**each) for name, each in plain.pop("files").items()}
        return Backup(**{**plain, "files": files, "made_at": datetime.fromisoformat(plain["made_at"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} cannot be read: {error}", hint="use another backup") from error


def figures_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the schema version of a store, the rows of each truth table, the last commit and the head of the chain."""
    database = database_of(snapshot)
    tables = sorted(truth_of(database.connection).tables)
    rows = {name: int(database.connection.execute(f'SELECT count(*) FROM "{name}"').get or 0) for name in tables}
    seq, head = (database.rows("commit_last") or [(0, b"")])[0]
    schema = int(database.connection.pragma("user_version"))
    return {"schema": schema, "commits": int(seq), "head": head.hex(), "rows": rows}


@contextlib.contextmanager
def opened_copy(path: Path, key: AnyKey | None) -> Iterator[DatabaseSnapshot]:
    """Open a store that nobody writes to for reading, without leaving files beside it."""
    with translated(f"cannot read {path}"):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        with contextlib.closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)) as connection:
            unlock(connection, path, key)
            add_functions(connection)
            with read_snapshot(connection):
                yield DatabaseSnapshot(connection)


def _write_manifest(path: Path, manifest: Backup) -> None:
    """Write and sync a manifest. It contains no text of any memory."""
    plain = {"manifest": VERSION, **asdict(manifest), "made_at": manifest.made_at.isoformat()}
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())


# the trial and the restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A copy of a backup that was opened, and what was found in it."""

    copy: Path
    is_folder: bool
    report: Report
    key: Key | None
    """None if the backup is not encrypted."""


def verify_backup(backup: str | Path, key: Key | None = None) -> Report:
    """Verify a backup: copy it, compare the copy with its manifest, then open, examine and search the copy. The backup
    itself is only read.

    Args:
        key: opens the backup if it is encrypted.

    Raises:
        DeniedError: the backup is encrypted, and the key is missing or wrong.
        NotFoundError: there is no backup at the path.
        StoreError: the backup cannot be read at all, or is of a newer version.
    """
    path = Path(backup).expanduser()
    with _os_errors(f"cannot verify {path}"), temporary_folder() as beside:
        return _try(path, beside, key).report


def restore_backup(
    backup: str | Path, location: str | Path, *, replace: bool, now: datetime, key: Key | None = None
) -> Restored:
    """Restore an undamaged backup at a location.

    Args:
        location: the path of a file, for the backup of a single file; or the path of a folder that exists or ends in a
            slash, for any backup.
        replace: replace an existing store, and keep it under another name.
        key: opens the backup if it is encrypted; the restored store is encrypted with it as well.

    Raises:
        NotFoundError: there is no backup at the path.
        InvalidError: the location is taken and `replace` is not set; or a folder store would become a single file.
        UnavailableError: another program has the store open that would be replaced.
        StoreError: the backup is damaged, or the store cannot be written; the existing store stays as it was.
    """
    if "://" in str(location):
        hint = "restore to a file, and `migrate` it to an empty store there (docs/how-to/use-postgresql.md)"
        raise InvalidError(f"location: {location} is not a path, so no backup can be restored to it", hint=hint)
    backup = Path(backup).expanduser()
    to_folder, path = is_folder(location), Path(location).expanduser()
    if backup.is_dir() and not to_folder:
        hint = "end the location in a slash; `ricordo migrate` can convert the folder to a single file afterwards"
        raise InvalidError("location: the backup of a folder store must be restored to a folder", hint=hint)
    is_taken = any(path.iterdir()) if path.is_dir() else path.exists()
    if is_taken and not replace:
        raise InvalidError(
            f"location: {path} already exists",
            hint="choose another location, or replace it (`replace=True`, `--replace`)",
        )
    with _os_errors(f"cannot restore {path}"):
        make_folders(path.parent)
        with staging_folder(path) as beside:
            trial = _try(backup, beside, key)
            if not trial.report.ok:
                failed = next(each for each in trial.report.findings if not each.ok)
                raise StoreError(f"{backup} is damaged: {failed.check}: {failed.detail}", hint=_OTHER_BACKUP)
            kept = free_path(path.with_name(f"{path.name}.replaced-{now:%Y%m%d-%H%M%S}")) if is_taken else None
            _become_another_device(trial)
            scopes = _scopes_in(trial.copy, trial.is_folder, trial.key)
            copy = _as_folder(trial, beside) if to_folder else trial.copy
            options = replace_fields(_OPTIONS, key=trial.key)
            faults.reached("restore: before naming")
            if to_folder:
                _place_folder(copy, path, kept, options)
            else:
                _place_file(copy, path, kept, key)
    if kept is None:
        return Restored(location=str(path), report=trial.report)
    returned = _erased_in(kept, scopes, to_folder, key)
    again = {each: scopes[each] for each in returned or ()}
    return Restored(location=str(path), report=trial.report, kept=str(kept), returned=returned, scopes=again)


@contextlib.contextmanager
def _opened(path: Path, is_of_folder: bool, key: Key | None) -> Iterator[DatabaseSnapshot]:
    if not is_of_folder:
        with opened_copy(path, key) as snapshot:
            yield snapshot
        return
    index = FolderIndex(path, replace_fields(_OPTIONS, key=key))
    with contextlib.closing(index), contextlib.closing(index.open()) as connection:
        yield DatabaseSnapshot(connection)


def _scopes_in(path: Path, is_of_folder: bool, key: Key | None) -> dict[str, Scope]:
    """Return, by the id of each memory, whose it is; of a shared space, one of its keepers."""
    with _opened(path, is_of_folder, key) as snapshot:
        return {id: Scope(owner=owner, chat=chat or None) for id, owner, chat in snapshot.rows("backup_ids")}


def _erased_in(kept: Path, ids: Iterable[str], is_of_folder: bool, key: Key | None) -> tuple[str, ...] | None:
    """Return which ids a replaced store had erased, by the fingerprints that it keeps; None if it cannot be read."""
    try:
        sealed = (kept / KEY_FILE).exists() if is_of_folder else is_sealed(kept)
        with _opened(kept, is_of_folder, key if sealed else None) as snapshot:
            erased = as_set(snapshot.rows("backup_erased"))
            known = snapshot.meta(FINGERPRINT_KEY)
    except (RicordoError, apsw.Error, OSError):
        return None
    if not erased or known is None:
        return ()
    return tuple(each for each in ids if id_fingerprint(bytes.fromhex(known), each) in erased)


def _try(backup: Path, beside: Path, key: Key | None) -> Trial:
    if not backup.exists():
        raise NotFoundError(f"there is no backup at {backup}")
    is_of_folder = backup.is_dir()
    manifest = read_manifest(manifest_path(backup, is_folder=is_of_folder))
    copy = beside / ("folder" if is_of_folder else "store.db")
    files = (_copy_folder if is_of_folder else _copy_file)(backup, copy)
    findings = [_compare_files(manifest, files)]
    sealed = (copy / KEY_FILE).exists() if is_of_folder else is_sealed(copy)
    if sealed and key is None:
        raise missing_key(str(backup))
    key = key if sealed else None
    try:
        figures = (_examine_folder if is_of_folder else _examine_file)(copy, findings, key)
    except DeniedError as error:
        raise wrong_key(str(backup)) from error
    if manifest is not None:
        findings.append(_compare_figures(manifest, figures))
    return Trial(copy=copy, is_folder=is_of_folder, report=Report(findings=tuple(findings)), key=key)


def _copy_file(backup: Path, target: Path) -> dict[str, BackupFile]:
    if any(Path(f"{backup}{ending}").exists() for ending in ("-wal", "-journal")):
        hint = "close the program that has it open, or make a backup with `ricordo backup`"
        raise StoreError(f"{backup} is a store in use, not a backup", hint=hint)
    return {backup.name: copy_file(backup, target)}


def _copy_folder(backup: Path, target: Path) -> dict[str, BackupFile]:
    target.mkdir(mode=0o700)
    names = [name for name in (*FILES, PEOPLE, KEY_FILE) if (backup / name).exists()]
    return {name: copy_file(backup / name, target / name) for name in names} | _copy_notes(backup, target)


def _compare_files(manifest: Backup | None, files: Mapping[str, BackupFile]) -> Finding:
    if manifest is None:
        return _finding("manifest", "there is none, so the content cannot be compared with it", "")
    stated, found = list(manifest.files.values()), list(files.values())
    off = sorted(name for name in manifest.files.keys() | files.keys() if manifest.files.get(name) != files.get(name))
    if manifest.kind == "file" and stated == found:  # the file may have been renamed
        off = []
    good = f"{plural(len(files), 'file')} as on {manifest.made_at:%Y-%m-%d %H:%M} UTC"
    return _finding("manifest", good, f"different from the manifest: {', '.join(off)}" if off else "")


def _finding(check: str, good: str, bad: str) -> Finding:
    return Finding(check=check, ok=not bad, detail=bad or good, remedy=_OTHER_BACKUP if bad else "")


def _compare_figures(manifest: Backup, found: Mapping[str, object]) -> Finding:
    """Compare the figures with those in the manifest. An upgrade may have added tables."""
    rows = found["rows"]
    assert isinstance(rows, dict)
    same = (found["commits"], found["head"]) == (manifest.commits, manifest.head)
    off = [name for name, count in manifest.rows.items() if rows.get(name) != count]
    good = f"{plural(manifest.commits, 'commit')}, {plural(sum(manifest.rows.values()), 'row')}"
    return _finding(
        "counts", good, f"different row counts: {', '.join(off)}" if off else "" if same else "a different last commit"
    )


def _examine_file(copy: Path, findings: list[Finding], key: Key | None) -> Mapping[str, object]:
    with translated("cannot open the backup"), opened_copy(copy, key) as snapshot:
        figures = figures_of(snapshot)
    with contextlib.closing(connect(copy, patience_s=_OPTIONS.patience_s, key=key)) as connection:
        prepare(connection, copy, migrations(), key=key)
        findings += _examine(DatabaseSnapshot(connection), copy)
    return figures


def _examine_folder(copy: Path, findings: list[Finding], key: Key | None) -> Mapping[str, object]:
    options = replace_fields(_OPTIONS, key=key)
    with contextlib.closing(FolderIndex(copy, options)) as index, contextlib.closing(index.open()) as connection:
        snapshot = DatabaseSnapshot(connection)
        findings += [*_examine(snapshot, index.path), *index.findings()]
        return figures_of(snapshot)


def _examine(snapshot: DatabaseSnapshot, path: Path) -> tuple[Finding, ...]:
    with read_snapshot(snapshot.connection):
        return (*examine(snapshot, path, unawaited_failures=0).findings, _search(snapshot))


def _search(snapshot: DatabaseSnapshot) -> Finding:
    """Check that a search by its words finds the newest memory."""
    row = snapshot.connection.execute(sql("backup_question")).fetchone()
    if row is None:
        return _finding("search", "nothing to search for", "")
    key, content, space = row
    found = (space_postings(snapshot, space, term, most=_MOST_POSTINGS) for term in index_terms(content)[:3])
    bad = "" if all(key in each for each in found) else "the newest memory is not found by its words"
    return _finding("search", "the newest memory is found by its words", bad)


def _become_another_device(trial: Trial) -> None:
    """Make a copy choose a new device name at its next sync. It does not know which commits were sent since the backup,
    and would use their numbers again.
    """
    place = f"{trial.copy}/" if trial.is_folder else str(trial.copy)
    store = open_store(place, durability="process", patience_s=_OPTIONS.patience_s, key=trial.key)
    try:
        asyncio.run(store.derive(lambda tx: database_of(tx).rows("exchanged_forget_names")))
    finally:
        store.close()


def _as_folder(trial: Trial, beside: Path) -> Path:
    """Return the copy as a folder of plain files; a single file is converted."""
    if not trial.is_folder:
        create_folder(beside / "folder", trial.copy, replace_fields(_OPTIONS, key=trial.key))
    return beside / "folder"


def _place_file(copy: Path, path: Path, kept: Path | None, key: Key | None) -> None:
    """Move a file into place. An existing file is first hard-linked to `kept`, so that `path` never disappears."""
    sync(copy)
    if kept is not None:
        with _alone(path, key) as merged:
            kept.hardlink_to(path)
            for ending in () if merged else _SIDE_FILES:  # the log of a damaged store would be merged into the new one
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{kept}{ending}")
            copy.replace(path)
    else:
        path.hardlink_to(copy)  # fails if a file was created there meanwhile
    sync(path.parent)


def _place_folder(copy: Path, path: Path, kept: Path | None, options: Options) -> None:
    for file in copy.rglob("*"):
        sync(file)
    sync(copy)
    if kept is not None:
        replace_folder(path, copy, options, aside=kept)
        _replace_notes(path, copy, kept)
        return
    copy.rename(path)  # fails if a file was created in it meanwhile
    sync(path.parent)


def _replace_notes(path: Path, copy: Path, kept: Path) -> None:
    """Move the restored notes into place, and the old ones to the store that is kept. Without notes in the backup, the
    old ones stay.
    """
    if not (copy / NOTES).is_dir():
        return
    with contextlib.suppress(FileNotFoundError):
        (path / NOTES).rename(kept / NOTES)
    (copy / NOTES).rename(path / NOTES)
    sync(kept)
    sync(path)


@contextlib.contextmanager
def _alone(path: Path, key: Key | None) -> Iterator[bool]:
    """Make sure that no program has a store open, and yield whether its log is merged into it. Neither is possible if
    the store is damaged or has a different key.
    """
    with contextlib.ExitStack() as held:
        merged = True
        try:
            held.enter_context(exclusive(path, fitting(path, key)))
        except DeniedError:
            merged = False
        except StoreError as error:
            if not isinstance(error.__cause__, apsw.NotADBError | apsw.CorruptError):
                raise
            merged = False
        yield merged


@contextlib.contextmanager
def _os_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "check the path, its permissions and the free disk space"
        raise StoreError(f"{doing}: {error.strerror or error}", hint=hint) from error
