"""A backup is tried before it is trusted: copied aside, opened, compared with its manifest. Restoring is that, and then
giving the copy its place.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from pathlib import Path

import apsw

from ricordo.errors import InvalidError, NotFoundError, StoreError
from ricordo.model import Backup, BackupFile, Finding, Report, Restored
from ricordo.storage import faults
from ricordo.storage.backup.manifest import counted, manifest_path, read, still
from ricordo.storage.checksums import copied
from ricordo.storage.database.connection import connect, moment, translated
from ricordo.storage.database.doctor import examine
from ricordo.storage.database.exclusive import alone_with
from ricordo.storage.database.fulltext import space_postings
from ricordo.storage.database.queries import sql
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.database.schema import migrations, prepare
from ricordo.storage.database.store import is_folder, make_folders
from ricordo.storage.folder.convert import fill_folder
from ricordo.storage.folder.folder import Folder
from ricordo.storage.folder.layout import FILES, PEOPLE
from ricordo.storage.staging import place_beside, sync
from ricordo.text import index_terms

_PATIENCE_S = 5.0
_BESIDE = ("-wal", "-shm", "-journal")
_ANOTHER = "use another backup"
_POSTINGS_MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A backup that was copied and opened: where the copy lies, and how it was found to be."""

    place: Path
    is_folder: bool
    report: Report


def verify(backup: Path) -> Report:
    """A drill: the backup is copied to a place of its own, compared with its manifest, opened, looked through and asked
    a question. The backup itself is only read.

    Raises:
        NotFoundError: there is none.
        StoreError: it cannot be read at all, or is of a newer version.
    """
    with _failing_clearly(f"cannot try {backup}"), tempfile.TemporaryDirectory(prefix="ricordo-drill-") as beside:
        return _tried(backup, Path(beside)).report


def restore(backup: Path, location: str | Path, *, replace: bool, now: datetime) -> Restored:
    """Make a store at a location of a backup that proves sound.

    Args:
        location: a file's path for a backup that is one; a folder's, which exists or ends in a slash, for either kind.
        replace: what is there gives way, and is kept beside under another name.

    Raises:
        NotFoundError: there is no such backup.
        InvalidError: there is something at the location, and `replace` was not said; or the kinds do not fit.
        UnavailableError: another program has the store open that is to be replaced.
        StoreError: the backup is damaged, or it cannot be written; what was there stands.
    """
    to_folder, path = is_folder(location), Path(location).expanduser()
    if backup.is_dir() and not to_folder:
        hint = "end the location in a slash; `ricordo migrate` makes a single file of it then"
        raise InvalidError("location: a backup of a folder makes a folder", hint=hint)
    is_there = _is_taken(path)
    if is_there and not replace:
        raise InvalidError(f"location: there is something at {path}", hint="choose another, or say --replace")
    with _failing_clearly(f"cannot restore {path}"):
        make_folders(path.parent)
        with place_beside(path) as beside:
            tried = _tried(backup, beside)
            if not tried.report.ok:
                off = next(each for each in tried.report.findings if not each.ok)
                raise StoreError(f"{backup} is damaged: {off.check}: {off.detail}", hint=_ANOTHER)
            kept = _kept_name(path, now) if is_there else None
            place = _as_folder(tried, beside) if to_folder else tried.place
            faults.reached("restore: before naming")
            (_put_folder if to_folder else _put_file)(place, path, kept)
    return Restored(location=str(path), report=tried.report, kept=None if kept is None else str(kept))


def _tried(backup: Path, beside: Path) -> Tried:
    """Copy it, and look at the copy in every way there is."""
    if not backup.exists():
        raise NotFoundError(f"there is no backup at {backup}")
    is_of_folder = backup.is_dir()
    manifest = read(manifest_path(backup, is_folder=is_of_folder))
    place = beside / ("folder" if is_of_folder else "store.db")
    files = _copied_folder(backup, place) if is_of_folder else {backup.name: _copied_file(backup, place)}
    findings = [_compared_files(manifest, files)]
    figures = _opened_folder(place, findings) if is_of_folder else _opened_file(place, findings)
    if manifest is not None:
        findings.append(_compared_figures(manifest, figures))
    return Tried(place=place, is_folder=is_of_folder, report=Report(findings=tuple(findings)))


def _copied_file(backup: Path, place: Path) -> BackupFile:
    if any(Path(f"{backup}{ending}").exists() for ending in ("-wal", "-journal")):
        hint = "close the program that has it open; a backup itself is not worked with"
        raise StoreError(f"{backup} is a store in use, not a backup", hint=hint)
    return copied(backup, place)


def _copied_folder(backup: Path, place: Path) -> dict[str, BackupFile]:
    place.mkdir(mode=0o700)
    return {name: copied(backup / name, place / name) for name in (*FILES, PEOPLE) if (backup / name).exists()}


def _compared_files(manifest: Backup | None, files: Mapping[str, BackupFile]) -> Finding:
    if manifest is None:
        return Finding(check="manifest", ok=True, detail="none: nothing says what it should hold")
    stated, found = list(manifest.files.values()), list(files.values())
    off = sorted(name for name in manifest.files.keys() | files.keys() if manifest.files.get(name) != files.get(name))
    if manifest.kind == "file" and stated == found:  # it may have been given another name
        off = []
    if off:
        detail = f"{', '.join(off)} not as the manifest says"
        return Finding(check="manifest", ok=False, detail=detail, remedy=_ANOTHER)
    return Finding(check="manifest", ok=True, detail=f"{len(files)} files as on {manifest.made_at:%Y-%m-%d %H:%M} UTC")


def _compared_figures(manifest: Backup, found: Mapping[str, object]) -> Finding:
    """What an upgrade adds is not held against it."""
    rows = found["rows"]
    assert isinstance(rows, dict)
    same = (found["commits"], found["head"]) == (manifest.commits, manifest.head)
    off = [name for name, count in manifest.rows.items() if rows.get(name) != count]
    if same and not off:
        detail = f"{manifest.commits} commits, {sum(manifest.rows.values())} rows"
        return Finding(check="counts", ok=True, detail=detail)
    detail = f"other numbers of {', '.join(off)}" if off else "another last commit"
    return Finding(check="counts", ok=False, detail=detail, remedy=_ANOTHER)


def _opened_file(place: Path, findings: list[Finding]) -> Mapping[str, object]:
    with translated("cannot open the backup"), still(place) as snapshot:
        figures = counted(snapshot)
    connection = connect(place, durability="disk", patience_s=_PATIENCE_S)
    try:
        prepare(connection, place, migrations())
        findings += _looked(DatabaseSnapshot(connection), place)
    finally:
        connection.close()
    return figures


def _opened_folder(place: Path, findings: list[Finding]) -> Mapping[str, object]:
    folder = Folder(place, durability="disk", patience_s=_PATIENCE_S, steps=migrations())
    try:
        connection = folder.open()
        try:
            snapshot = DatabaseSnapshot(connection)
            findings += _looked(snapshot, folder.index)
            findings += [
                Finding(check=name, ok=not remedy, detail=said, remedy=remedy)
                for name, (said, remedy) in folder.checks().items()
            ]
            return counted(snapshot)
        finally:
            connection.close()
    finally:
        folder.close()


def _looked(snapshot: DatabaseSnapshot, path: Path) -> tuple[Finding, ...]:
    with moment(snapshot.connection):
        return (*examine(snapshot, path, failures_unseen=0).findings, _asked(snapshot))


def _asked(snapshot: DatabaseSnapshot) -> Finding:
    """Whether the newest memory is found by its words."""
    row = snapshot.connection.execute(sql("backup_question")).fetchone()
    if row is None:
        return Finding(check="search", ok=True, detail="nothing to search for")
    key, content, space = row
    terms = index_terms(content)[:3]
    if all(key in space_postings(snapshot, space, term, most=_POSTINGS_MOST) for term in terms):
        return Finding(check="search", ok=True, detail="the newest memory is found by its words")
    return Finding(check="search", ok=False, detail="the newest memory is not found by its words", remedy=_ANOTHER)


def _is_taken(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _kept_name(path: Path, now: datetime) -> Path:
    """Under which name what is replaced is kept."""
    first = path.with_name(f"{path.name}.replaced-{now:%Y%m%d-%H%M%S}")
    names = chain([first], (first.with_name(f"{first.name}-{number}") for number in count(2)))
    return next(name for name in names if not name.exists())


def _as_folder(tried: Tried, beside: Path) -> Path:
    """A folder of plain files, also of a backup that is a single file."""
    if tried.is_folder:
        return tried.place
    connection = connect(tried.place, read_only=True, patience_s=_PATIENCE_S)
    try:
        fill_folder(beside / "folder", connection, durability="disk", patience_s=_PATIENCE_S)
    finally:
        connection.close()
    return beside / "folder"


def _put_file(place: Path, path: Path, kept: Path | None) -> None:
    """Kept under a second name first, so that at no moment there is nothing at the path."""
    sync(place)
    if kept is not None:
        with _nobody_in(path):
            kept.hardlink_to(path)
            for ending in _BESIDE:  # of a damaged store: a log that is left would be worked into the new one
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{kept}{ending}")
            place.replace(path)
    else:
        path.hardlink_to(place)  # fails where somebody made one meanwhile
    sync(path.parent)


def _put_folder(place: Path, path: Path, kept: Path | None) -> None:
    for file in place.iterdir():
        sync(file)
    sync(place)
    if kept is None:
        place.rename(path)  # fails where somebody put something into it meanwhile
        sync(path.parent)
        return
    there = Folder(path, durability="disk", patience_s=_PATIENCE_S, steps=migrations())
    try:
        there.take_over(place, aside=kept)
    finally:
        there.close()


@contextlib.contextmanager
def _nobody_in(path: Path) -> Iterator[None]:
    """Nobody has the store open that is to give way. Of a damaged one that cannot be told."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(alone_with(path))
        except StoreError as error:
            if not isinstance(error.__cause__, apsw.NotADBError | apsw.CorruptError):
                raise
        yield


@contextlib.contextmanager
def _failing_clearly(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "check the path, its permissions and the room on the disk"
        raise StoreError(f"{doing}: {error.strerror or error}", hint=hint) from error
