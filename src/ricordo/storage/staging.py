"""A place beside a path, for what shall appear there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - other systems than POSIX
    fcntl = None  # type: ignore[assignment]

_ENDING = ".partial"


@contextlib.contextmanager
def place_beside(target: Path) -> Iterator[Path]:
    """A private folder on the same disk, which goes again with what is still in it. One that a killed process left
    goes, too. Raises OSError.
    """
    for left in target.parent.glob(f".{target.name}.*{_ENDING}"):
        if _is_let_go(left):
            shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_ENDING, dir=target.parent))
    try:
        with _held(place):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def sync(path: Path) -> None:
    """See a file, or the names in a folder, to the disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """So that others see that somebody is at work in it."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _is_let_go(folder: Path) -> bool:
    """Whether nobody is at work in a folder any more."""
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        finally:
            os.close(file)
    return False
