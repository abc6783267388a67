"""Instants: the system's clock, and the one conversion between datetimes and the store's milliseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ricordo.errors import InvalidError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


def to_ms(at: datetime, *, name: str = "at") -> int:
    """Unix milliseconds, UTC, of an aware datetime; what is finer is cut.

    Raises:
        InvalidError: `at` has no time zone.
    """
    if at.tzinfo is None:
        raise InvalidError(f"{name} has no time zone", hint="pass an aware datetime, or ISO text with an offset")
    return (at - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=4_096)
def from_ms(ms: int) -> datetime:
    """The aware UTC datetime of Unix milliseconds. Cached: a memory tells the same moment several times."""
    return _EPOCH + ms * _MILLISECOND
