"""Who holds a lease, told so that other processes can see whether it still runs."""

from __future__ import annotations

import os
import platform
import sys
import uuid

_HOST = platform.node().replace("/", " ")


def new_holder() -> str:
    """A name for this process and one use of it."""
    return f"{_HOST}/{os.getpid()}/{uuid.uuid4().hex}"


def is_gone(holder: str) -> bool:
    """Whether the process of a holder is known to be over: it ran on this machine, and has ended.

    Its number may be another process's by now; then the lease runs out.
    """
    host, _, rest = holder.partition("/")
    number = rest.partition("/")[0]
    if host != _HOST or not number.isdecimal() or sys.platform == "win32":  # there, asking would end it
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
