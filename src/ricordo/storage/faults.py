"""Named points where a crash would be interesting, so that a test can cause one exactly there.

In normal use `reached` is one comparison. A test installs a hook, which may kill the process, raise what SQLite would
raise, or count. A new step of the write path gets a name in `Point` and a call of `reached`; `tests/crash` then kills a
process there as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

Point = Literal[
    "schema: before backup",
    "schema: between steps",
    "schema: before commit",
    "writer: before begin",
    "writer: after begin",
    "apply: after commit row",
    "apply: after nodes",
    "apply: before counts",
    "undo: after removing",
    "erase: begun",
    "erase: between steps",
    "erase: before its commit",
    "erase: rows gone",
    "erase: before rewriting",
    "erase: before cutting the log",
    "writer: between works",
    "folder: between files",
    "folder: before commit line",
    "folder: after commit line",
    "folder: before the marker",
    "folder: after the marker",
    "folder: between renames",
    "folder: before replacing the index",
    "folder: before naming",
    "writer: before commit",
    "writer: after commit",
    "writer: between answers",
    "writer: replay",
    "linking: before storing",
    "vectors: before storing",
    "vectors: before packing",
    "vectors: after packing",
    "model: adopted",
    "model: before switch",
    "model: in switch",
    "model: in dropping",
    "backup: before copy",
    "backup: in copy",
    "backup: before naming",
    "restore: before naming",
    "close: after drain",
    "close: before letting go",
]

POINTS: tuple[Point, ...] = get_args(Point)

_hook: Callable[[Point], None] | None = None


def reached(point: Point) -> None:
    """Report that a point is passed. Without a hook this does nothing."""
    if _hook is not None:
        _hook(point)


def install(hook: Callable[[Point], None] | None) -> None:
    """Call `hook` at each point from now on, in the thread that passes it; None removes it. For tests."""
    global _hook
    _hook = hook
