"""Rewrite a folder's files from its index, without outdated lines and without erased data.

All files are replaced or none. The new files are completed beside the old ones; then a marker makes them valid. A
process that finds the marker moves them into place; a process that finds new files without a marker deletes them.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import apsw

from ricordo.storage import faults
from ricordo.storage.folder.files import ASIDE, PARTIAL, Disk, Followed, added, line_sum, stamp_of
from ricordo.storage.jsonl.layout import FILES, INDEX, PEOPLE
from ricordo.storage.jsonl.lines import UnusedLines, lines_of, sealed
from ricordo.storage.jsonl.shapes import Shapes
from ricordo.storage.jsonl.writer import lines_of_file
from ricordo.storage.key import KEY_FILE, LineCipher
from ricordo.text.sentences import plural

_log = logging.getLogger("ricordo.storage")

BUILDING = ".index.building"
_MARKER = ".rewriting"
_NEW = ".new"
_LOT_BYTES = 1 << 20


def rewrite(
    connection: apsw.Connection,
    shapes: Shapes,
    folder: Path,
    disk: Disk,
    *,
    state: Mapping[str, Followed],
    unused: UnusedLines,
    cipher: LineCipher | None,
    key_file: bytes | None = None,
) -> dict[str, int]:
    """Write new files from the index beside the old ones, and then the marker; `finish` moves them into place. Return
    the sums over their lines. If this raises, the old files stay.

    Args:
        connection: in the transaction whose result the files must contain.
        state: the files as they were last read; if they have changed since, apsw.BusyError is raised.
        unused: lines that the index could not use; they are set aside.
        cipher: encrypts the lines.
        key_file: the new content of the key file; b"" deletes the file, None leaves it unchanged.
    """
    sweep(folder, used=connection.filename)
    _keep_unused(unused, folder, disk)
    sums = {}
    names = [*FILES, PEOPLE] if key_file is None else [*FILES, PEOPLE, KEY_FILE]
    try:
        for name in (*FILES, PEOPLE):  # lines of people were adopted, or are among the unused ones
            lines = iter(()) if name == PEOPLE else lines_of_file(connection, shapes, name)
            sums[name] = _write(folder / f"{name}{_NEW}", sealed(cipher, name, lines), disk)
        if key_file is not None:
            disk.replace(folder / f"{KEY_FILE}{_NEW}", iter([key_file]))
        faults.reached("folder: before the marker")
        if any(stamp_of(folder / name) != seen.stamp for name, seen in state.items()):
            raise apsw.BusyError("the files were edited while they were rewritten")
        disk.replace(folder / _MARKER, iter([json.dumps(names).encode()]))
    except BaseException:
        if not (folder / _MARKER).exists():
            _delete_new_files(folder)
        raise
    return sums


def finish(folder: Path, disk: Disk) -> None:
    """Complete an interrupted rewrite: move the new files into place if they are valid, or else delete them."""
    marker = folder / _MARKER
    if not marker.exists():
        _delete_new_files(folder)
        return
    try:
        names = json.loads(marker.read_bytes())
    except ValueError:  # the marker was not synced before a power loss, so the new files are not valid
        _log.warning("%s: an incomplete rewrite is discarded", folder)
        _delete_new_files(folder)
        marker.unlink()
        return
    for name in names:
        fresh = folder / f"{name}{_NEW}"
        if not fresh.exists():
            continue
        if fresh.stat().st_size:
            fresh.replace(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
            fresh.unlink()
        faults.reached("folder: between renames")
    disk.sync(folder)
    marker.unlink()
    disk.sync(folder)


def is_unfinished(folder: Path) -> bool:
    """Return whether a rewrite was interrupted."""
    return (folder / _MARKER).exists() or any(folder.glob(f"*{_NEW}"))


def replace_files(folder: Path, fresh: Path, disk: Disk) -> None:
    """Replace the files here by those of another folder, all or none. Files that the other folder lacks are deleted."""
    names = [*FILES, PEOPLE, KEY_FILE]
    for name in names:
        new = folder / f"{name}{_NEW}"
        if (fresh / name).exists():
            (fresh / name).replace(new)
        else:
            disk.replace(new, iter(()))
    faults.reached("folder: before the marker")
    disk.replace(folder / _MARKER, iter([json.dumps(names).encode()]))
    finish(folder, disk)


def link_files(folder: Path, aside: Path) -> None:
    """Keep the present files in a new folder as well, as hard links: replacing the files here does not change those."""
    aside.mkdir(mode=0o700)
    for path in sorted(folder.iterdir()):
        if path.name in {*FILES, PEOPLE, KEY_FILE} or path.name.startswith((INDEX, ASIDE)):
            os.link(path, aside / path.name)


def sweep(folder: Path, *, used: str = "") -> None:
    """Delete what interrupted processes left, except the index `used`: it may lack data that was erased since."""
    for pattern in (f".*{PARTIAL}", f"{BUILDING}*"):
        for path in folder.glob(pattern):
            if path.is_file() and not (used and path.name.startswith(Path(used).name)):
                path.unlink(missing_ok=True)


def _delete_new_files(folder: Path) -> None:
    for pattern in (f"*.jsonl{_NEW}", f"{KEY_FILE}{_NEW}"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def _write(path: Path, lines: Iterable[bytes], disk: Disk) -> int:
    """Write a new file and return the sum over its lines."""
    total = 0
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb", buffering=_LOT_BYTES) as out:
        for line in lines:
            out.write(line)
            total = added(total, line_sum(line))
    disk.sync(path)
    return total


def _keep_unused(unused: UnusedLines, folder: Path, disk: Disk) -> None:
    """Set lines aside that the index could not use: they must not be lost with the old files."""
    for name in (*FILES, PEOPLE):
        offsets = {offset for file, offset in unused if file == name}
        bad = b"".join(raw + b"\n" for offset, raw in lines_of(folder / name) if offset in offsets) if offsets else b""
        if bad:
            kept = disk.set_aside(folder, name, bad)
            _log.warning("%s: %s set aside in %s", folder / name, plural(len(offsets), "unusable line"), kept.name)
