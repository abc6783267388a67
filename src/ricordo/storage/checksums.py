"""Size and hash of files, to recognise them later."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from ricordo.model import BackupFile

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
    """Copy a file that is no open database to a new private one. Return its size and hash. Raises OSError."""
    total = Checksum()
    target.touch(mode=0o600, exist_ok=False)
    with source.open("rb") as file, target.open("wb") as out:
        while part := file.read(PART_BYTES):
            total.add(part)
            out.write(part)
    return total.file
