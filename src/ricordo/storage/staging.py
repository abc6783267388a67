"""Paths and folders used while files are written: names, private folders, and places for what must appear completely
or not at all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from ricordo.errors import InvalidError
from ricordo.model import BackupFile

try:
    import fcntl
except ImportError:  # pragma: no cover - other systems than POSIX
    fcntl = None  # type: ignore[assignment]

_ENDING = ".partial"


def check_file_name(text: str, *, name: str) -> None:
    """Check that a text can be the name of a file.

    Args:
        name: the parameter that the error names.

    Raises:
        InvalidError: the text contains NUL or half of a surrogate pair.
    """
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidError(f"{name}: {text!r} cannot be the name of a file", hint="choose another path")


def make_folders(folder: Path) -> None:
    """Create a folder and its parents, all private. `mkdir(parents=True)` would leave the parents open to others."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


def free_path(path: Path) -> Path:
    """Return the path or, if it exists, one with a number appended that does not exist."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


@contextlib.contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Provide a private folder beside a path, and remove it afterwards. Folders of killed processes are removed, too.
    Raises OSError.
    """
    _sweep(target)
    with contextlib.ExitStack() as held:
        folder = _locked_folder(target, held)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _locked_folder(target: Path, held: contextlib.ExitStack) -> Path:
    """Create a folder and lock it. If another process removes it before it is locked, create another one."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
        with contextlib.suppress(FileNotFoundError):
            file = held.enter_context(_locked(folder, waits=True))
            if folder.stat().st_ino == os.fstat(file).st_ino:
                return folder


def _sweep(target: Path) -> list[Path]:
    """Remove the staging folders of killed processes; return those that are in use."""
    left = [path for path in target.parent.glob(f".{target.name}.*{_ENDING}") if _is_own(path)]
    for path in left:
        with contextlib.suppress(OSError), _locked(path, waits=False):  # no process uses it any more
            shutil.rmtree(path, ignore_errors=True)
    return [path for path in left if path.exists()]


def _is_own(path: Path) -> bool:
    with contextlib.suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return False


def temporary_folder(of: Path | None = None) -> contextlib.AbstractContextManager[Path]:
    """Provide a private folder among the system's temporary files. Folders of killed processes there are removed.

    Args:
        of: the store that is copied there.
    """
    _sweep(_temporary())
    return staging_folder(_temporary(of))


def copies_in_use(store: Path) -> list[Path]:
    """Remove temporary folders of killed processes; return those in use for copies of a store."""
    begins = f".{_temporary(store).name}."
    return [path for path in _sweep(_temporary()) if path.name.startswith(begins)]


def _temporary(of: Path | None = None) -> Path:
    name = "ricordo" if of is None else f"ricordo.{blake2b(os.fsencode(of.resolve()), digest_size=8).hexdigest()}"
    return Path(tempfile.gettempdir()) / name


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def _locked(folder: Path, *, waits: bool) -> Iterator[int]:
    """Lock a folder, so that other processes see that it is in use. Yield its descriptor. Raises OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file
    finally:
        os.close(file)


PART_BYTES = 1 << 20
_HASH_BYTES = 32


class Checksum:
    """Size and hash of data that is added in parts."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=_HASH_BYTES)
        self._size = 0

    def add(self, part: bytes) -> None:
        """Add the next part."""
        self._size += len(part)
        self._hash.update(part)

    @property
    def file(self) -> BackupFile:
        """Size and hash of all parts so far."""
        return BackupFile(bytes=self._size, blake2b=self._hash.hexdigest())


def checksum_of(path: Path) -> BackupFile:
    """Return size and hash of a file. It must not be an open database: reading one would drop SQLite's locks."""
    total = Checksum()
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            total.add(part)
    return total.file


def copy_file(source: Path, target: Path) -> BackupFile:
    """Copy a file to a new private one; return its size and hash. It must not be an open database. Raises OSError."""
    total = Checksum()
    with source.open("rb") as file:
        target.touch(mode=0o600, exist_ok=False)
        with target.open("wb") as out:
            while part := file.read(PART_BYTES):
                total.add(part)
                out.write(part)
    return total.file


def keep_owner(fresh: Path, *places: Path) -> None:
    """Give a new file to the user and group of the first of some files that exists.

    An administrator who changes a store as root must not take it away from the server that runs as another user.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0 and (old := next((each for each in places if each.exists()), None)):
        whose = old.stat()
        os.chown(fresh, whose.st_uid, whose.st_gid)


def named(location: str | Path) -> Path:
    """Return a location as a path that has a name, which `.` and `..` have not: files beside the store are called
    after it.

    Raises:
        InvalidError: it is the root of the file system.
    """
    path = Path(location).expanduser()
    if path.name in ("", ".."):
        path = path.resolve()
    if not path.name:
        raise InvalidError(f"location: {path} cannot be a store", hint="give the path of a file or a folder")
    return path
