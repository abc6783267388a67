"""The files written anew from the index: without lines that newer ones replaced, and without what was erased.

All or none: the new files stand complete beside the old ones before a marker says that they count. Whoever finds the
marker puts them in place; whoever finds new files without it throws them away.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw

from ricordo.storage import faults
from ricordo.storage.database.reader import DatabaseSnapshot
from ricordo.storage.folder.change_lines import (
    commit_line,
    commits_after,
    history_line,
    kept_row_line,
    row_line,
    sequence_lines,
    vector_lines,
)
from ricordo.storage.folder.files import PARTIAL, Disk, added, line_sum, lines_of, set_aside, stamp_of
from ricordo.storage.folder.layout import (
    ARCHIVE,
    BUILDING,
    COMMITS,
    EPISODES,
    FILES,
    HISTORY,
    INDEX,
    MEMORIES,
    PEOPLE,
    SETTINGS,
    STORE,
    VECTORS,
)
from ricordo.storage.folder.lines import Shapes
from ricordo.storage.folder.state import State, Unused, read_unused

_log = logging.getLogger("ricordo.storage")

_MARKER = ".rewriting"
_NEW = ".new"
_LOT_BYTES = 1 << 20

_SHELVES = {
    MEMORIES: "t.closed_at IS NULL AND t.type != 'episodic'",
    EPISODES: "t.closed_at IS NULL AND t.type = 'episodic'",
    ARCHIVE: "t.closed_at IS NOT NULL",
}


def rewrite(connection: apsw.Connection, shapes: Shapes, folder: Path, disk: Disk, state: State) -> dict[str, int]:
    """Write files made from the index beside those there are, whose place they take from now on: `finish` does it.
    Returns the sums over their lines.

    Args:
        connection: inside the transaction whose outcome the files shall show.
        state: the files as they were looked at last.

    Raises:
        OSError: the disk is full or failing; the old files stand.
        apsw.BusyError: somebody changed the files meanwhile.
    """
    sweep(folder, used=connection.filename)
    _keep_what_was_not_used(read_unused(connection), folder, disk)
    sums = {}
    try:
        for name in FILES:
            sums[name] = _write(folder / f"{name}{_NEW}", _lines(connection, shapes, name), disk)
        # Each of its lines was taken over, or stands among those that were not used.
        sums[PEOPLE] = _write(folder / f"{PEOPLE}{_NEW}", iter(()), disk)
        faults.reached("folder: before the marker")
        if any(stamp_of(folder / name) != seen.stamp for name, seen in state.items()):
            raise apsw.BusyError("the files were changed by hand while they were written anew")
        disk.replace(folder / _MARKER, iter([json.dumps(list(sums)).encode()]))
    except BaseException:
        if not (folder / _MARKER).exists():
            _throw_away(folder)
        raise
    return sums


def finish(folder: Path, disk: Disk) -> None:
    """Go on where a process ended in between: put new files in place if they count, else throw them away."""
    marker = folder / _MARKER
    if not marker.exists():
        _throw_away(folder)
        return
    try:
        names = json.loads(marker.read_bytes())
    except ValueError:  # nobody saw it to the disk, and the power went: the new files do not count
        _log.warning("%s: a rewriting that was not finished is given up", folder)
        _throw_away(folder)
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


def put_in_place(folder: Path, fresh: Path, disk: Disk) -> None:
    """Give a folder the files of another, all or none; those the other does not have go."""
    names = [*FILES, PEOPLE]
    for name in names:
        new = folder / f"{name}{_NEW}"
        if (fresh / name).exists():
            (fresh / name).replace(new)
        else:
            disk.replace(new, iter(()))
    faults.reached("folder: before the marker")
    disk.replace(folder / _MARKER, iter([json.dumps(names).encode()]))
    finish(folder, disk)


def keep_aside(folder: Path, aside: Path) -> None:
    """The files of a folder under a second name: what takes their place does not touch them."""
    aside.mkdir(mode=0o700)
    for path in sorted(folder.iterdir()):
        if path.name in {*FILES, PEOPLE} or path.name.startswith((INDEX, "set-aside-")):
            os.link(path, aside / path.name)


def sweep(folder: Path, *, used: str = "") -> None:
    """Take away what processes left that ended in the middle: it may hold what is erased now. Under the lock nobody
    else is at work in it.

    Args:
        used: the index at hand, which may be one that is being made.
    """
    for pattern in (f".*{PARTIAL}", f"{BUILDING}*"):
        for path in folder.glob(pattern):
            if path.is_file() and not (used and path.name.startswith(Path(used).name)):
                path.unlink(missing_ok=True)


def is_unfinished(folder: Path) -> bool:
    """Whether somebody ended in the middle of it."""
    return (folder / _MARKER).exists() or any(folder.glob(f"*{_NEW}"))


def _throw_away(folder: Path) -> None:
    for path in folder.glob(f"*.jsonl{_NEW}"):
        path.unlink(missing_ok=True)


def _write(path: Path, lines: Iterator[bytes], disk: Disk) -> int:
    """A new file beside an old one; returns the sum over its lines."""
    total, lot, size = 0, [], 0
    path.unlink(missing_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for line in lines:
        lot.append(line)
        size += len(line)
        if size > _LOT_BYTES:
            total, lot, size = added(total, _flush(path, lot)), [], 0
    total = added(total, _flush(path, lot))
    disk.sync(path)
    return total


def _flush(path: Path, lot: list[bytes]) -> int:
    joined = b"".join(lot)
    with path.open("ab") as out:
        out.write(joined)
    return line_sum(joined)


def _lines(connection: apsw.Connection, shapes: Shapes, name: str) -> Iterator[bytes]:
    """What a file shall hold, in the order in which it happened."""
    sources: dict[str, Callable[[], Iterator[bytes]]] = {
        HISTORY: lambda: (history_line(*row) for row in DatabaseSnapshot(connection).each("history_whole", {})),
        COMMITS: lambda: (commit_line(connection, seq, {}) for seq in commits_after(connection, 0)),
        VECTORS: lambda: (line for pair in _pairs(connection) for _, line in vector_lines(connection, *pair)),
        STORE: lambda: _kept(connection, shapes),
    }
    return sources.get(name, lambda: _rows(connection, shapes, name))()


def _pairs(connection: apsw.Connection) -> list[tuple[int, int]]:
    return [(node, model) for node, model in DatabaseSnapshot(connection).each("embedding_pairs", {})]


def _rows(connection: apsw.Connection, shapes: Shapes, name: str) -> Iterator[bytes]:
    """Names come from the schema, so the statements are put together."""
    for shape in shapes.rows.values():
        is_memory = shape.table.name == "nodes" and name in _SHELVES
        if is_memory or (shape.table.name != "nodes" and shape.form.file == name):
            where = f"WHERE {_SHELVES[name]}" if is_memory else ""
            order = ", ".join(f't."{each}"' for each in ("commit_seq", *shape.table.key))
            for row in connection.execute(f"{shape.select} {where} ORDER BY {order}"):
                yield row_line(shape, row)[1]


def _kept(connection: apsw.Connection, shapes: Shapes) -> Iterator[bytes]:
    yield from (line for _, line in sequence_lines(connection, shapes))
    for shape in shapes.kept.values():
        names = ", ".join(map(repr, SETTINGS))
        where = f"WHERE t.name IN ({names})" if shape.table.name == "meta" else ""
        for row in connection.execute(f"{shape.select} {where}"):
            yield kept_row_line(shape, row)[1]


def _keep_what_was_not_used(unused: Unused, folder: Path, disk: Disk) -> None:
    """Lines that the index could not use are not lost with the old files."""
    for name in (*FILES, PEOPLE):
        offsets = {offset for file, offset in unused.lines if file == name}
        bad = b"".join(raw + b"\n" for offset, raw in lines_of(folder / name) if offset in offsets) if offsets else b""
        if bad:
            kept = set_aside(folder, name, bad, disk, day=datetime.now(UTC).strftime("%Y%m%d"))
            _log.warning(
                "%s: %d lines that say nothing usable were set aside in %s", folder / name, len(offsets), kept.name
            )
