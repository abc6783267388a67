"""Named points in the code at which a test can cause a crash.

Without a hook, `reached` is one comparison. A test installs a hook, which may kill the process, raise an error as
SQLite would, or count. A new step of the write path calls `reached` with its own name; `tests/crash` finds the calls
and kills a process at each.
"""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def reached(point: str) -> None:
    """Report that a point is reached. Without a hook this does nothing."""
    if _hook is not None:
        _hook(point)


def install(hook: Callable[[str], None] | None) -> None:
    """Call `hook` at each point from now on, in the thread that reaches it; None removes it. For tests."""
    global _hook
    _hook = hook
