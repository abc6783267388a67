"""Time as people write it: filters, questions, and how an instant is shown. Pure; reads no clock.

Instants are Unix milliseconds UTC; spans are half-open. The calendar is the user's: weeks begin on Monday,
seasons are the northern ones, and a date without a year is the last one that has come, or the next one when
the sentence speaks of the future.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.text.dates.calendar import Days, Precision, one_day, shift, whole_month, whole_year
from ricordo.text.dates.grammar import find_days
from ricordo.text.dates.vocabulary import UNITS, mentions_time, tokenize

# A question says when within its first words; a pasted page must not cost more than a question.
_SCANNED_CHARS = 2_000
_FILTER_CHARS = 200
_SHOWN_CHARS = 80
_EARLIEST_MS = -62_135_596_800_000  # 0001-01-01
_LATEST_MS = 253_402_300_799_999  # 9999-12-31
_ACCEPTED = "a date (2026-03-01, 2026-03, 2026), an ISO 8601 time, or words such as yesterday, last_week, 3 days ago"

_CLOCK_AGO = re.compile(r"(\d{1,6}|an?)?\s*(minute|min|hour|hr|минут|час)\w{0,2} (?:ago|назад)")
# Too short or too common to be a date by themselves, whatever a parser makes of them.
_MONTH_VERBS = frozenset(("may", "march", "mar"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The span a text names, half-open: `start <= instant < end`, Unix milliseconds UTC."""

    start: int
    end: int
    text: str
    precision: Precision


class Times(NamedTuple):
    """One instant in the four forms a reader may want."""

    iso: str
    local: str
    zone: str
    relative: str


def parse_instant(
    value: str | date | datetime, *, now: int, zone: str | ZoneInfo, field: str, end: bool = False
) -> int:
    """The instant a filter such as `after` or `before` means, as Unix milliseconds UTC.

    Args:
        value: an aware datetime, a date, ISO 8601 text (without an offset, in the user's zone), or a phrase
            in English, Russian and other common languages: "last_month", "3 days ago", "в марте".
        now: Unix milliseconds; what relative phrases count from.
        zone: the user's time zone, by name or as such.
        field: the name of the argument, for the message of an error.
        end: for a value that spans time (a day, a month), give the first instant after it, not its first.

    Raises:
        InvalidError: a naive datetime, an unknown zone, or a value that names no time in the years 1 to 9999.
    """
    tz = _zone(zone)
    try:
        return _instant(value, now=now, zone=tz, field=field, end=end)
    except (ValueError, OverflowError, OSError) as error:
        raise _unreadable(value, field) from error


def find_interval(text: str, *, now: int, zone: str | ZoneInfo) -> Interval | None:
    """The span a question asks about ("what did I do last week"), or None: when in doubt, None.

    English and Russian, and ISO dates in any language. What is open ("since Monday", "before 2022") ends with
    `now` (or in the year 9999, if it starts after that) and begins in the year 1. Only the first 2,000
    characters are read.

    Raises:
        InvalidError: an unknown zone.
    """
    tz = _zone(zone)
    scanned = text[:_SCANNED_CHARS]
    if not mentions_time(scanned):
        return None
    try:
        found = find_days(scanned, today=local_time(now, tz).date())
        if found is None:
            return None
        start, end = _bounds(found.days, now=now, zone=tz)
    except (ValueError, OverflowError):  # 31 February, or past the calendar's end: no such time
        return None
    if start >= end:
        return None
    return Interval(start=start, end=end, text=scanned[found.start : found.end], precision=found.days.precision)


def format_times(at_ms: int, *, now: int, zone: str | ZoneInfo) -> Times:
    """An instant as RFC 3339 UTC, in the user's zone to the minute, that zone's name, and as "3 days ago".

    Raises:
        InvalidError: an unknown zone, or an instant outside the years 1 to 9999.
    """
    tz = _zone(zone)
    try:
        iso, local = _written(at_ms, tz)
        there, here = local_time(at_ms, tz), _present(now, tz)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidError(f"{at_ms} is no instant in Unix milliseconds", hint="years 1 to 9999") from error
    return Times(iso=iso, local=local, zone=tz.key, relative=_relative(there, here, elapsed_ms=now - at_ms))


# Whatever was said in one go bears one time.
@lru_cache(maxsize=1_024)
def _written(at_ms: int, zone: ZoneInfo) -> tuple[str, str]:
    """An instant as RFC 3339 UTC, and in a zone to the minute."""
    moment, there = datetime.fromtimestamp(at_ms // 1000, UTC), local_time(at_ms, zone)
    iso = moment.isoformat(timespec="seconds")[:-_OFFSET] + "Z"
    return iso, there.isoformat(sep=" ", timespec="minutes")[:_TO_THE_MINUTE]


def _relative(there: datetime, here: datetime, *, elapsed_ms: int) -> str:
    minutes = abs(elapsed_ms) // 60_000
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return _phrase(minutes, "minute", is_past=elapsed_ms > 0)
    if minutes < 24 * 60:
        return _phrase(minutes // 60, "hour", is_past=elapsed_ms > 0)
    earlier, later = sorted((there.date(), here.date()))
    days = max(1, (later - earlier).days)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month - (later.day < earlier.day)
    for count, unit in ((months // 12, "year"), (months, "month"), (days // 7, "week")):
        if count:
            return _phrase(count, unit, is_past=elapsed_ms > 0)
    return _phrase(days, "day", is_past=elapsed_ms > 0)


def _phrase(count: int, unit: str, *, is_past: bool) -> str:
    span = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{span} ago" if is_past else f"in {span}"


def _instant(value: str | date | datetime, *, now: int, zone: ZoneInfo, field: str, end: bool) -> int:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            hint = "give the datetime a zone, e.g. datetime(2026, 3, 1, tzinfo=UTC)"
            raise InvalidError(f"{field}: a datetime without a time zone is ambiguous", hint=hint)
        return instant_of(value)
    named = one_day(value) if isinstance(value, date) else _read(value, now=now, zone=zone)
    if isinstance(named, datetime):
        return instant_of(named)
    bounds = _bounds(named, now=now, zone=zone)
    return bounds[1] if end else bounds[0]


def _read(value: object, *, now: int, zone: ZoneInfo) -> Days | datetime:
    if not isinstance(value, str) or len(value) > _FILTER_CHARS:
        raise ValueError("not a time")
    text = value.strip().replace("_", " ")
    here = local_time(now, zone)
    named = read_iso(value.strip(), zone) or _read_words(text, here=here)
    if named is None:
        from ricordo.text.dates.free_phrases import read_phrase

        named = read_phrase(text, today=here)
    if named is None:
        raise ValueError("not a time")
    return named


def read_iso(text: str, zone: ZoneInfo) -> Days | datetime | None:
    """An ISO 8601 year, month, day or time; None where it is none. Raises ValueError for one there is not."""
    if re.fullmatch(r"[12]\d{3}", text, re.ASCII):
        return whole_year(int(text))
    if re.fullmatch(r"\d{4}-\d{2}", text, re.ASCII):
        return whole_month(int(text[:4]), int(text[5:]))
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        return one_day(date.fromisoformat(text))
    if re.match(r"\d{4}-?\d{2}-?\d{2}[Tt ]\d{2}", text, re.ASCII) is None:
        return None
    moment = datetime.fromisoformat(text.upper())
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def _read_words(text: str, *, here: datetime) -> Days | datetime | None:
    lowered = text.lower()
    if lowered in ("now", "сейчас"):
        return here
    if match := _CLOCK_AGO.fullmatch(lowered):
        count = int(match[1]) if match[1] and match[1].isdecimal() else 1
        is_minutes = match[2].startswith(("min", "мин"))
        return here.astimezone(UTC) - (timedelta(minutes=count) if is_minutes else timedelta(hours=count))
    if lowered in _MONTH_VERBS or lowered.isdecimal():
        return None
    if (day := _days_ago(text, here.date())) is not None:
        return day
    for prefix in ("", "in ", "on "):  # "March 2025", "Monday": the preposition a question would have
        if found := find_days(prefix + text, today=here.date(), whole=True):
            return found.days
    return None


def _days_ago(text: str, today: date) -> Days | None:
    """ "2 weeks ago" in a filter is that day a fortnight back; in a question, the week around it."""
    kinds = [token for token in tokenize(text) if token.kind not in "ho"]
    match "".join(token.kind for token in kinds):
        case "Ua" | "Ga":
            return one_day(shift(today, -1, UNITS[kinds[0].value]))
        case "DUa" | "DZa" | "DGa" | "NUa" | "NZa" | "NGa" | "KUa" | "KZa" | "KGa":
            return one_day(shift(today, -kinds[0].value, UNITS[kinds[1].value]))
    return None


def _bounds(days: Days, *, now: int, zone: ZoneInfo) -> tuple[int, int]:
    start = _EARLIEST_MS if days.start is None else midnight(days.start, zone)
    if days.end is not None:
        return start, midnight(days.end, zone)
    return start, now + 1 if start <= now else _LATEST_MS


def midnight(day: date, zone: ZoneInfo) -> int:
    """The first instant of a day, Unix milliseconds."""
    # Where a clock change skips midnight, this is the first instant of the day.
    return instant_of(datetime(day.year, day.month, day.day, tzinfo=zone))


_OFFSET = len("+00:00")
_TO_THE_MINUTE = len("2026-01-01 12:00")


@lru_cache(maxsize=1_024)
def local_time(at_ms: int, zone: ZoneInfo) -> datetime:
    """An instant on the clock of a zone."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).astimezone(zone)


_present = lru_cache(maxsize=16)(local_time)  # all that is told together is told at one time


def instant_of(moment: datetime) -> int:
    """Unix milliseconds of an aware datetime. Raises OverflowError outside the years 1 to 9999."""
    at_ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not _EARLIEST_MS <= at_ms <= _LATEST_MS:
        raise OverflowError("outside the years 1 to 9999")
    return at_ms


def _zone(zone: str | ZoneInfo) -> ZoneInfo:
    if isinstance(zone, ZoneInfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        hint = "use a name such as Europe/Berlin"
        raise InvalidError(f"unknown time zone {_shown(zone)}", hint=hint) from error


def _unreadable(value: object, field: str) -> InvalidError:
    return InvalidError(f"{field}: {_shown(value)} is not a time I can read", hint=f"use {_ACCEPTED}")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else type(value).__name__
    short = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return ascii(short) if any(not char.isprintable() for char in short) else repr(short)
