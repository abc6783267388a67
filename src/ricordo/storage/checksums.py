"""The size and hash of files, by which they are known again."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from ricordo.model import BackupFile

PART_BYTES = 1 << 20
_HASH_BYTES = 32


class Sum:
    """The size and hash of what passes by."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=_HASH_BYTES)
        self._size = 0

    def add(self, part: bytes) -> None:
        """Count the next part."""
        self._size += len(part)
        self._hash.update(part)

    @property
    def file(self) -> BackupFile:
        """What it has come to."""
        return BackupFile(bytes=self._size, blake2b=self._hash.hexdigest())


def sum_of(path: Path) -> BackupFile:
    """Of a file that is no open database: reading one would drop SQLite's locks."""
    total = Sum()
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            total.add(part)
    return total.file


def copied(source: Path, target: Path) -> BackupFile:
    """Copy a file that is no open database to a new private one. Returns its size and hash. Raises OSError."""
    total = Sum()
    target.touch(mode=0o600, exist_ok=False)
    with source.open("rb") as file, target.open("wb") as out:
        while part := file.read(PART_BYTES):
            total.add(part)
            out.write(part)
    return total.file
