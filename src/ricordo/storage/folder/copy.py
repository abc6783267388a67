"""Copies of files that go on growing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from ricordo.errors import UnavailableError
from ricordo.model import BackupFile
from ricordo.storage.checksums import PART_BYTES, Sum
from ricordo.storage.folder.files import added, line_sum
from ricordo.storage.folder.state import Followed


def copied_start(file: BinaryIO, seen: Followed, target: Path) -> BackupFile:
    """Copy as much of a file as was seen of it, and see it to the disk.

    Raises:
        OSError: it cannot be written.
        UnavailableError: it is not what was seen: somebody edits it.
    """
    total, lines, rest, left = Sum(), 0, b"", seen.stamp.size
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
