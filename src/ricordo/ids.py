"""Ids: UUIDv7 text, so that ids sort by the time they were given and can be made before anything is written."""

from __future__ import annotations

import os
import threading

from ricordo.errors import InvalidError

MAX_ID_CHARS = 200

# The two bits `10` of the variant, then two of chance.
_VARIANTS = "89ab"
_lock = threading.Lock()
_last = 0


def new_id(now_ms: int) -> str:
    """A fresh id. Ids of one process ascend even when the clock stands still or goes back.

    Source: RFC 9562, section 5.7, with 12 bits of counter after the milliseconds (section 6.2, method 1).
    """
    global _last
    with _lock:
        _last = max(now_ms << 12, _last + 1)
        stamp = _last
    instant, tail = f"{stamp >> 12 & 0xFFFFFFFFFFFF:012x}", os.urandom(8).hex()
    variant = _VARIANTS[int(tail[0], 16) & 3]
    return f"{instant[:8]}-{instant[8:]}-7{stamp & 0xFFF:03x}-{variant}{tail[1:4]}-{tail[4:]}"


def checked_id(given: str, *, name: str = "id") -> str:
    """An id a caller brought.

    Raises:
        InvalidError: it is empty, too long, or holds what cannot be stored or shown on one line.
    """
    if not isinstance(given, str) or not given.strip() or len(given) > MAX_ID_CHARS or not given.isprintable():
        raise InvalidError(f"{name} must be 1 to {MAX_ID_CHARS} printable characters", hint="leave it out to get one")
    return given


def handle_of(node_id: str) -> str:
    """A short form of an id for `[id:...]`: the random end, which differs where the beginning does not."""
    return node_id[-8:]
