"""The files of a folder on disk: appending, cutting, replacing and copying. A crash leaves the old or the new content.

A writer holds the folder's lock: `flock` on a separate file, since on a database file it would drop SQLite's locks.
Files are split at the newline byte; other line separators are text.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ricordo.errors import StoreError, UnavailableError
from ricordo.model import BackupFile
from ricordo.storage.staging import PART_BYTES, Checksum, keep_owner, sync

try:
    import fcntl
except ImportError:  # pragma: no cover - other systems than POSIX
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"
ASIDE = "set-aside-"
_LOCK = ".lock"
_PART_BYTES = 1 << 22
_SUM_BYTES = 8
_SUM_MODULUS = 1 << (8 * _SUM_BYTES)


class Disk:
    """The file operations. A test replaces it by a disk that loses what was not synced."""

    def __init__(self, *, syncs: bool) -> None:
        """`syncs`: whether written data must survive a power loss."""
        self.syncs = syncs

    def append(self, path: Path, data: bytes) -> None:
        """Append data to a file, creating it if needed, and sync it."""
        is_new = not path.exists()
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            if self.syncs:
                os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            self.sync(path.parent)

    def cut(self, path: Path, size: int) -> None:
        """Truncate a file to a size in bytes."""
        if path.exists():
            os.truncate(path, size)
            self.sync(path)

    def replace(self, path: Path, parts: Iterator[bytes]) -> None:
        """Replace the content of a file, completely or not at all."""
        partial = path.with_name(f".{path.name}{PARTIAL}")
        partial.unlink(missing_ok=True)
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as out:
                for part in parts:
                    out.write(part)
                out.flush()
                if self.syncs:
                    os.fsync(out.fileno())
            keep_owner(partial, path)
            partial.replace(path)
            self.sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)

    def sync(self, path: Path) -> None:
        """Flush a file, or the entries of a folder, to the disk."""
        if self.syncs:
            sync(path)

    def set_aside(self, folder: Path, name: str, data: bytes) -> Path:
        """Store unusable lines of a file in another file beside it. Return the path of that file."""
        day = datetime.now(UTC).strftime("%Y%m%d")
        path = folder / f"{ASIDE}{name.removesuffix('.jsonl')}-{day}.txt"
        self.append(path, data if data.endswith(b"\n") else data + b"\n")
        return path


class Stamp(NamedTuple):
    """Size in bytes, time of change in nanoseconds, and inode: equal for an unchanged file; all 0 without a file."""

    size: int = 0
    changed: int = 0
    inode: int = 0


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of a file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return Stamp()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class Followed:
    """A file as the index last read it, and the sum over its lines."""

    stamp: Stamp = Stamp()
    total: int = 0

    def grown(self, path: Path, data: bytes) -> Followed:
        """Return the new state of the file after lines were appended."""
        return Followed(stamp_of(path), added(self.total, line_sum(data)))


def followed(path: Path) -> Followed:
    """Read a file and return its present state."""
    stamp = stamp_of(path)
    return Followed(stamp, prefix_sum(path, stamp.size) or 0)


def line_sum(data: bytes) -> int:
    """Return the sum of the hashes of complete lines. Sums of consecutive parts can be added."""
    hashes = (blake2b(line, digest_size=_SUM_BYTES).digest() for line in data.split(b"\n")[:-1])
    return sum(int.from_bytes(each, "little") for each in hashes) % _SUM_MODULUS


def added(one: int, other: int) -> int:
    """Return the sum over two parts."""
    return (one + other) % _SUM_MODULUS


def prefix_sum(path: Path, size: int) -> int | None:
    """Return the sum over the lines in the first `size` bytes; None if they end within a line or are missing."""
    if size == 0:
        return 0
    if not path.exists() or path.stat().st_size < size:
        return None
    total = 0
    with path.open("rb") as file:
        left, rest = size, b""
        while left:
            part = file.read(min(_PART_BYTES, left))
            left -= len(part)
            head, newline, tail = (rest + part).rpartition(b"\n")
            total = added(total, line_sum(head + newline))
            rest = tail
    return None if rest else total


def copy_start(file: BinaryIO, seen: Followed, target: Path) -> BackupFile:
    """Copy the part of a file that the index has read, and sync the copy. Raises UnavailableError if it was edited."""
    total, lines, rest, left = Checksum(), 0, b"", seen.stamp.size
    target.touch(mode=0o600, exist_ok=False)
    with target.open("wb") as out:
        while part := file.read(min(PART_BYTES, left)):
            left -= len(part)
            total.add(part)
            out.write(part)
            head, newline, rest = (rest + part).rpartition(b"\n")
            lines = added(lines, line_sum(head + newline))
        out.flush()
        os.fsync(out.fileno())
    if left or rest or lines != seen.total:
        raise UnavailableError(f"{target.name} was edited while it was copied", hint="try again")
    return total.file


class FolderHeldError(UnavailableError):
    """Another process, or another thread, holds the lock of a folder. Processes that end release their locks."""


class FolderLock:
    """Admits one writer at a time to a folder, across processes. Held for the duration of a batch."""

    def __init__(self, folder: Path, *, patience_s: float) -> None:
        if fcntl is None:
            raise StoreError("folder stores need file locks, which this system does not have", hint="use a single file")
        self._path = folder / _LOCK
        self._patience_s = patience_s
        self._in_process = threading.Lock()  # `flock` separates processes, but not threads of one process
        self._file = self._opened()
        self._folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)  # while open, no other folder gets its inode
        _locks.add(self)

    @contextlib.contextmanager
    def held(self, *, patience_s: float | None = None) -> Iterator[None]:
        """Wait for the lock, then hold it. Raises FolderHeldError, and StoreError if the folder no longer exists.

        Args:
            patience_s: how long to wait, in seconds; by default as long as a write does.
        """
        patience_s = self._patience_s if patience_s is None else patience_s
        if not self._in_process.acquire(timeout=patience_s):
            raise FolderHeldError(f"another thread holds {self._path.parent}", hint="try again")
        try:
            self._take(patience_s)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._in_process.release()

    def check_free(self) -> None:
        """Raise FolderHeldError if the lock cannot be taken at this moment."""
        with self.held(patience_s=0):
            pass

    def _take(self, patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while not self._is_taken():
            if time.monotonic() >= until:
                hint = "try again; if that process hangs or is stopped, end it"
                raise FolderHeldError(f"another process holds {self._path.parent}", hint=hint)
            time.sleep(random.uniform(0.0005, 0.005))

    def _is_taken(self) -> bool:
        """Try to lock the file. If `git clean` has removed it, open the new file for the next try."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._check_folder()
        if stamp_of(self._path).inode == os.fstat(self._file).st_ino:
            return True
        fresh = self._opened()
        os.close(self._file)
        self._file = fresh
        return False

    def _opened(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:
            raise StoreError(
                f"cannot lock {self._path.parent}: it does not exist", hint="check whether it was moved"
            ) from error

    def _check_folder(self) -> None:
        """Raise StoreError if another folder is now at the path of the one that was opened."""
        inode = stamp_of(self._path.parent).inode
        if inode and inode != os.fstat(self._folder).st_ino:
            raise StoreError(
                f"{self._path.parent} was replaced by another folder while it was open", hint="open the memory again"
            )

    def close(self) -> None:
        """Close the file of the lock."""
        _locks.discard(self)
        for file in (self._file, self._folder):
            os.close(file)


_locks: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Close the locks that a forked child has inherited: otherwise they would outlive the parent."""
    for each in list(_locks):
        each.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
