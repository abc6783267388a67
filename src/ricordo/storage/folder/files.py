"""The files of a folder: appended to, cut, replaced; each so that a crash leaves the old or the new.

Whoever writes holds the folder's lock, `flock` on a file of its own: on a database file it would drop SQLite's locks.
Files are split on the byte newline; other separators of lines are text.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ricordo.errors import StoreError, UnavailableError
from ricordo.storage.folder.layout import LOCK
from ricordo.storage.staging import sync

try:
    import fcntl
except ImportError:  # pragma: no cover - other systems than POSIX
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"
_PART = 1 << 22
_SUM_BYTES = 8
_SUM_MODULUS = 1 << (8 * _SUM_BYTES)


@dataclass(frozen=True, slots=True)
class Stamp:
    """By which a file is known not to have changed: bytes, nanoseconds, inode. All 0: there is none."""

    size: int = 0
    changed: int = 0
    inode: int = 0


class Disk:
    """What is done to files. Apart, so that a test can put a disk in its place that loses what was not synced."""

    def __init__(self, *, syncs: bool) -> None:
        """Args:
        syncs: whether what is written shall outlive a power loss.
        """
        self.syncs = syncs

    def append(self, path: Path, data: bytes) -> None:
        """Write at the end of a file, making it if need be, and see it to the disk."""
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
        """Take away what lies behind a size."""
        if path.exists():
            os.truncate(path, size)
            self.sync(path)

    def replace(self, path: Path, parts: Iterator[bytes]) -> None:
        """Give a file another content, whole or not at all."""
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
            partial.replace(path)
            self.sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)

    def sync(self, path: Path) -> None:
        """See a file, or the names in a folder, to the disk."""
        if self.syncs:
            sync(path)


def stamp_of(path: Path) -> Stamp:
    """What tells a file from what it was."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return Stamp()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def line_sum(data: bytes) -> int:
    """The sum of the hashes of whole lines: it can be carried on when lines are added, whatever went before."""
    return sum(_hashed(line) for line in data.split(b"\n")[:-1]) % _SUM_MODULUS


def added(one: int, other: int) -> int:
    """The sum over both."""
    return (one + other) % _SUM_MODULUS


def _hashed(line: bytes) -> int:
    return int.from_bytes(blake2b(line, digest_size=_SUM_BYTES).digest(), "little")


def lines_of(path: Path, *, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset, line without its newline) of a stretch of a file. A last one without a newline is among them."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(start)
        offset = start
        for raw in file:
            if end is not None and offset >= end:
                return
            yield offset, raw.removesuffix(b"\n")
            offset += len(raw)


def prefix_sum(path: Path, size: int) -> int | None:
    """The sum over the lines of the first bytes of a file; None where they end inside a line, or there are fewer."""
    if size == 0:
        return 0
    if not path.exists() or path.stat().st_size < size:
        return None
    total = 0
    with path.open("rb") as file:
        left, rest = size, b""
        while left:
            part = file.read(min(_PART, left))
            left -= len(part)
            head, newline, tail = (rest + part).rpartition(b"\n")
            total = added(total, line_sum(head + newline))
            rest = tail
    return None if rest else total


def count_lines(path: Path) -> int:
    """How many newlines a file has."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(_PART), b""))


class FolderLock:
    """One writer at a time, over all processes. Held for as long as a batch takes."""

    def __init__(self, folder: Path, *, patience_s: float) -> None:
        if fcntl is None:
            raise StoreError("folder stores need file locks, which this system does not have", hint="use a single file")
        self._path = folder / LOCK
        self._patience_s = patience_s
        self._in_process = threading.Lock()  # `flock` keeps processes apart, not the threads of one
        self._file = self._opened()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Wait for it, hold it, let it go.

        Raises:
            UnavailableError: another process holds it for longer than our patience.
            StoreError: the folder is not there any more.
        """
        if not self._in_process.acquire(timeout=self._patience_s):
            raise UnavailableError("another thread holds the folder", hint="try again")
        try:
            self._take()
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._in_process.release()

    def _take(self) -> None:
        until = time.monotonic() + self._patience_s
        while not self._is_taken():
            if time.monotonic() >= until:
                raise UnavailableError("another process holds the folder", hint="try again")
            time.sleep(random.uniform(0.0005, 0.005))

    def _is_taken(self) -> bool:
        """Whether we hold it now, on the file that others will lock: `git clean` and `git stash -u` take it away, and
        who holds one without a name keeps nobody out.
        """
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
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
            raise StoreError(f"cannot lock {self._path.parent}: it is not there", hint="was it moved?") from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def set_aside(folder: Path, name: str, data: bytes, disk: Disk, *, day: str) -> Path:
    """Keep what cannot be used in a file beside, before it is cut from its own. Returns where."""
    path = folder / f"set-aside-{name.removesuffix('.jsonl')}-{day}.txt"
    disk.append(path, data if data.endswith(b"\n") else data + b"\n")
    return path
