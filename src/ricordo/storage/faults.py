"""Named points where a crash would be interesting, so that a test can cause one exactly there.

In normal use `reached` is one comparison. A test installs a hook, which may kill the process, raise what SQLite would
raise, or count. A new step of the write path calls `reached` with a name of its own; `tests/crash` finds the calls and
kills a process there as well.
"""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def reached(point: str) -> None:
    """Report that a point is passed. Without a hook this does nothing."""
    if _hook is not None:
        _hook(point)


def install(hook: Callable[[str], None] | None) -> None:
    """Call `hook` at each point from now on, in the thread that passes it; None removes it. For tests."""
    global _hook
    _hook = hook
