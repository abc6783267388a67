"""The system clock, and the conversion between datetimes and Unix milliseconds."""

from __future__ import annotations

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


def to_ms(at: datetime, *, name: str = "at") -> int:
    """Return an aware datetime as Unix milliseconds, UTC, rounded down.

    Raises:
        InvalidError: `at` has no time zone.
    """
    if at.tzinfo is None:
        raise InvalidError(f"{name} has no time zone", hint="pass an aware datetime, or ISO text with an offset")
    return (at - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=4_096)
def from_ms(ms: int) -> datetime:
    """Return Unix milliseconds as an aware UTC datetime. Cached: the same instants come up again and again."""
    return _EPOCH + ms * _MILLISECOND
