"""Writing what somebody takes along: private files that appear whole or not at all, and take no other's place."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ricordo.errors import InvalidError, StoreError

_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_MOST_NAME = 80


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """A text file to write to, which gets its name when all is written.

    Raises:
        InvalidError: there is something of that name.
        StoreError: it cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    with _placed(path, partial):
        partial.unlink(missing_ok=True)  # of an attempt that was killed
        partial.touch(mode=0o600)
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which gets its name when all is written. Raises as `new_file` does."""
    partial = path.with_name(f"{path.name}.partial")
    with _placed(path, partial):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        yield partial


@contextmanager
def _placed(path: Path, partial: Path) -> Iterator[None]:
    if path.exists() or path.is_symlink():
        raise InvalidError(f"path: {path} exists already", hint="choose a new name; nothing is overwritten")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            yield
            partial.rename(path)
        finally:
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(
            f"cannot write {path}: {reason}", hint="check the path, its permissions and the disk"
        ) from error


def file_name(name: str, taken: set[str], *, suffix: str) -> str:
    """A name that any system can give to a file, and that no other file has."""
    plain = _UNFIT.sub(" ", name).strip(" .")[:_MOST_NAME].strip(" .") or "unnamed"
    found, count = f"{plain}{suffix}", 1
    while found.casefold() in taken:
        count += 1
        found = f"{plain} {count}{suffix}"
    taken.add(found.casefold())
    return found
