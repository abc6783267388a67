"""Time: the system clock, conversion of datetimes to Unix milliseconds, and ids that sort by time (UUIDv7)."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ricordo.errors import InvalidError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


def to_ms(at: datetime) -> int:
    """Return an aware datetime as Unix milliseconds, UTC, rounded down.

    Raises:
        InvalidError: `at` has no time zone.
    """
    if at.tzinfo is None:
        raise InvalidError("at has no time zone", hint="pass an aware datetime, or ISO text with an offset")
    return (at - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=4_096)
def from_ms(ms: int) -> datetime:
    """Return Unix milliseconds as an aware UTC datetime. Cached, because the same instants recur."""
    return _EPOCH + ms * _MILLISECOND


MAX_ID_CHARS = 200

_INSTANT = (1 << 48) - 1
_VERSION = 7 << 76
_VARIANT = 0b10 << 62
_CHANCE = (1 << 62) - 1
_lock = threading.Lock()
_last = 0


def new_id(now_ms: int) -> str:
    """Return a new id. The ids of a process ascend even if the clock stops or goes back.

    Source: RFC 9562, section 5.7, with 12 bits of counter after the milliseconds (section 6.2, method 1).
    """
    global _last
    with _lock:
        _last = max(now_ms << 12, _last + 1)
        stamp = _last
    chance = int.from_bytes(os.urandom(8)) & _CHANCE
    plain = f"{(stamp >> 12 & _INSTANT) << 80 | _VERSION | (stamp & 0xFFF) << 64 | _VARIANT | chance:032x}"
    return f"{plain[:8]}-{plain[8:12]}-{plain[12:16]}-{plain[16:20]}-{plain[20:]}"


def checked_id(given: str, *, name: str = "id") -> str:
    """Validate an id given by a caller, and return it.

    Raises:
        InvalidError: it is empty, too long, or has characters that cannot be printed on one line.
    """
    if not isinstance(given, str) or not given.strip() or len(given) > MAX_ID_CHARS or not given.isprintable():
        raise InvalidError(f"{name} must be 1 to {MAX_ID_CHARS} printable characters", hint="leave it out to get one")
    return given


def handle_of(node_id: str) -> str:
    """Return the short form of an id for `[id:...]`, its random end."""
    return node_id[-8:]


_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def with_handles(text: str) -> str:
    """Return a message with ids in their short form."""
    return _UUID.sub(lambda found: handle_of(found[0]), text)


MIN_PART_CHARS = 4
"""The minimum length of a shortened id."""


def part_of_id(given: str) -> str:
    """Return a shortened id in the form in which it is compared, without dashes; "" if it is too short."""
    plain = given.replace("-", "").lower()
    return plain if len(plain) >= MIN_PART_CHARS and plain.isprintable() else ""


def shortens(given: str, id: str) -> bool:
    """Return whether a text is an id, or a beginning or an end of it of at least 4 characters, dashes apart, or a
    beginning of its short form.

    >>> shortens("3343-9512", "01a0c3f0-9c3a-7000-8123-456733439512"), shortens("01a0c3f09", "01a0c3f0-9c3a-7000")
    (True, True)
    >>> shortens("3343", "01a0c3f0-9c3a-7000-8123-456733439512")
    True
    """
    part, plain = part_of_id(given), id.replace("-", "").lower()
    forms = plain, handle_of(plain)
    return given == id or (part != "" and (plain.endswith(part) or any(each.startswith(part) for each in forms)))
