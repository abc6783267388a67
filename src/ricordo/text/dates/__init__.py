"""Read dates and times as people write them, in filters, questions and expiries, and format instants.

Pure: "now" and the zone are passed in. Instants are Unix milliseconds UTC, and spans are half-open. The calendar is the
user's: weeks begin on Monday, seasons are the northern ones. A date without a year is the most recent one, or the next
one if the sentence is about the future.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.text.dates.calendar import UNITS, Days, Precision, around, one_day, shift, whole_month, whole_year
from ricordo.text.dates.grammar import Found, find_days, holds_year, mentions_time, tokenize, vocabulary
from ricordo.text.languages import NEVER, LanguageSet, all_languages, any_of, cached, default_languages, languages_of

DATES = "dates"
"""The attribute of a fact that maps its relative phrases to dates."""

# A question names its time early, and a pasted page must not cost more than a question.
_SCANNED_CHARS = 2_000
_FILTER_CHARS = 200
_SHORT = 4
_LAST_THIRD = 3
_SHOWN_CHARS = 80
_EARLIEST_MS = -62_135_596_800_000  # 0001-01-01
_LATEST_MS = 253_402_300_799_999  # 9999-12-31
_ACCEPTED = (
    "a date (2026-03-01, 2026-03, 2026, 1.3.2026, 20-11-2026, March 1, 1 March 2026), an ISO 8601 time, or words such "
    "as yesterday, last_week, last Sunday, 3 days ago"
)

# Words and names that are too common to be a date alone. "March" with a capital is the month.
_MONTH_VERBS = frozenset(("may", "May", "march", "mar", "Mar"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The span that a text names, half-open: `start <= instant < end`, Unix milliseconds UTC."""

    start: int
    end: int
    text: str
    precision: Precision


class Times(NamedTuple):
    """One instant in four formats."""

    iso: str
    local: str
    zone: str
    relative: str


def parse_instant(
    value: str | date | datetime, *, now: int, zone: str | ZoneInfo, field: str, end: bool = False
) -> int:
    """Return the instant that a filter such as `after` or `before` names, as Unix milliseconds UTC.

    Args:
        value: an aware datetime, a date, ISO 8601 text (without an offset, in the user's zone), or a phrase in English,
            Russian and other common languages: "last_month", "3 days ago", "в марте".
        now: Unix milliseconds; relative phrases count from it.
        zone: the user's time zone, by name or as an object.
        field: the name of the argument, for error messages.
        end: whether to return the first instant after a span of time (a day, a month) instead of its first instant.

    Raises:
        InvalidError: a naive datetime, an unknown zone, or a value that names no time in the years 1 to 9999.
    """
    try:
        return _instant(value, now=now, zone=_zone(zone), field=field, end=end)
    except _AmbiguousDateError as error:
        hint = f"write one of these, or use {_ACCEPTED}"
        raise InvalidError(f"{field}: {_shown(value)} may be {error}", hint=hint) from error
    except (ValueError, OverflowError, OSError) as error:
        raise _unreadable(value, field) from error


def find_interval(text: str, *, now: int, zone: str | ZoneInfo) -> Interval | None:
    """Return the span that a question asks about ("what did I do last week"), or None if none is clear.

    Reads every supported language, and ISO dates in any text. An open span begins in the year 1 ("before 2022") or ends
    with `now` ("since Monday"), or in the year 9999 if it starts after `now`. Only the first 2,000 characters are read.

    Raises:
        InvalidError: an unknown zone.
    """
    tz = _zone(zone)
    scanned = text[:_SCANNED_CHARS]
    if not mentions_time(scanned):
        return None
    try:
        found = _asked_days(scanned, local_time(now, tz).date())
        if found is None:
            return None
        start, end = _bounds(found.days, now=now, zone=tz)
    except (ValueError, OverflowError):  # 31 February, or outside the calendar: there is no such time
        return None
    if start >= end:
        return None
    return Interval(start=start, end=end, text=scanned[found.start : found.end], precision=found.days.precision)


def _asked_days(text: str, today: date) -> Found | None:
    """Return the time that a question names. Of a question too short to show its language, only a year with more words
    is read, in any language: "Juli 2019", "Weihnachten 2020".
    """
    found = find_days(text, today=today)
    if found is None and holds_year(text) and len(text.split()) <= _SHORT:
        others = (find_days(text, today=today, languages=each) for each in _one_by_one())
        found = next((each for each in others if each and holds_year(text[each.start : each.end])), None)
    return found


def format_times(at_ms: int, *, now: int, zone: str | ZoneInfo) -> Times:
    """Return an instant as RFC 3339 UTC, as local time to the minute, the zone's name, and as "3 days ago".

    Raises:
        InvalidError: an unknown zone, or an instant outside the years 1 to 9999.
    """
    tz = _zone(zone)
    try:
        iso, local = _written(at_ms, tz)
        there, here = local_time(at_ms, tz), _present(now, tz)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidError(
            f"{at_ms} is not a valid time in Unix milliseconds", hint="the year must be from 1 to 9999"
        ) from error
    return Times(iso=iso, local=local, zone=tz.key, relative=_relative(there, here, elapsed_ms=now - at_ms))


# Messages of one import often have the same time.
@lru_cache(maxsize=1_024)
def _written(at_ms: int, zone: ZoneInfo) -> tuple[str, str]:
    """Return an instant as RFC 3339 UTC, and as local time to the minute."""
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


def with_dates(content: str, attributes: Mapping[str, Any]) -> str:
    """Return a text with each relative phrase followed by its date from the attribute `dates`, in parentheses."""
    known = attributes.get(DATES)
    if not isinstance(known, Mapping) or not known:
        return content
    languages = languages_of(content)
    folded = content.lower()
    places = [
        (place + len(phrase), written)
        for phrase, value in known.items()
        if (place := folded.find(str(phrase).lower())) >= 0 and (written := _in_words(str(value), languages))
    ]
    for place, written in sorted(places, reverse=True):
        content = f"{content[:place]} ({written}){content[place:]}"
    return content


def _in_words(value: str, languages: LanguageSet) -> str:
    """Return an ISO 8601 date as the language of the text writes it; unchanged if the language defines no format."""
    form = next((each.dates for each in reversed(languages) if each.dates.written and each.dates.months), None)
    if form is None or value.isdigit():
        return value
    try:
        if len(value) == len("2026-12"):
            year, month = map(int, value.split("-"))
            return f"{(form.months_alone or form.months)[month - 1]} {year}"
        days = [date.fromisoformat(part) for part in value.split("/")]
        named = [(day.day, form.months[day.month - 1], day.year) for day in days]
        return " – ".join(form.written.format(day=day, month=month, year=year) for day, month, year in named)
    except (ValueError, IndexError, KeyError):  # the attribute was set by the caller
        return ""


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
    written = value.strip()
    named = (
        read_iso(written, zone)
        or _read_numbers(written, zone)
        or _read_words(text, here=here)
        or _read_phrase(text, today=here)
    )
    if named is None:
        raise ValueError("not a time")
    return named


def read_iso(text: str, zone: ZoneInfo) -> Days | datetime | None:
    """Return an ISO 8601 year, month, day or time; None for other text. Raises ValueError for an impossible date."""
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


_NUMBERS = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?:,?[Tt ]\s*(\d{1,2}):(\d{2}))?", re.ASCII)


def _read_numbers(text: str, zone: ZoneInfo) -> Days | datetime | None:
    """Return a date in numbers whose order is certain, with a time of day if one is given; None for other text.

    Certain is a year first, full stops (the day first), and a number above 12, which must be the day.

    Raises:
        ValueError: an impossible date, or one that may be read in two ways.
    """
    found = _NUMBERS.fullmatch(text)
    if found is None or {len(found[1]) > 2, len(found[4]) > 2} != {True, False}:
        return None
    first, middle, last = int(found[1]), int(found[3]), int(found[4])
    if len(found[1]) > 2:
        year, month, day = first, middle, last
    elif found[2] == "." or first > 12 or first == middle:
        year, month, day = last, middle, first
    elif middle > 12:
        year, month, day = last, first, middle
    else:
        ways = " or ".join(date(last, *each).isoformat() for each in ((middle, first), (first, middle)))
        raise _AmbiguousDateError(ways)
    if found[5] is None:
        return one_day(date(year, month, day))
    return datetime(year, month, day, int(found[5]), int(found[6]), tzinfo=zone)


class _AmbiguousDateError(ValueError):
    """A date in numbers that may be read in two ways, which are the message."""


def _read_words(text: str, *, here: datetime) -> Days | datetime | None:
    """Read a filter, trying each language until one recognises it."""
    return next((found for each in _one_by_one() if (found := _read_words_in(each, text, here=here))), None)


@cached()
def _one_by_one() -> tuple[LanguageSet, ...]:
    """Return the default languages together, then each other language: a phrase is too short to detect its language."""
    defaults = default_languages()
    return (defaults, *(any_of((each.code,)) for each in all_languages() if each not in defaults))


def _read_words_in(languages: LanguageSet, text: str, *, here: datetime) -> Days | datetime | None:
    lowered = text.lower()
    if lowered in languages.words(lambda each: each.dates.now):
        return here
    for pattern in _clock_patterns(languages):
        if match := pattern.fullmatch(lowered):
            count = int(match["count"]) if match["count"] and match["count"].isdecimal() else 1
            return here.astimezone(UTC) - (timedelta(minutes=count) if match["minutes"] else timedelta(hours=count))
    if text in _MONTH_VERBS or lowered.isdecimal():
        return None
    if (day := _days_ago(text, here.date(), languages)) is not None:
        return day
    if (day := _part_of_day(text, here.date(), languages)) is not None:
        return day
    return _named(text, here.date(), languages)


@cached()
def _clock_patterns(languages: LanguageSet) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, languages.in_order(lambda each: each.dates.clock_ago)))


def _named(text: str, today: date, languages: LanguageSet, *, ahead: bool = False) -> Days | None:
    # "March 2025", "Monday": with the preposition it would have in a question.
    for prefix in ("", *vocabulary(languages).prefixes):
        if found := find_days(prefix + text, today=today, whole=True, ahead=ahead, languages=languages):
            return found.days
    return None


def _days_ago(text: str, today: date, languages: LanguageSet) -> Days | None:
    """Read "2 weeks ago". In a filter it means that day two weeks ago; in a question, the week around that day."""
    tokens = [token for token in tokenize(text, languages) if token.kind not in "ho"]
    kinds = "".join(token.kind for token in tokens)
    if kinds.startswith("A"):
        kinds, tokens = f"{kinds[1:]}a", [*tokens[1:], tokens[0]]
    match kinds:
        case "Ua" | "Ga":
            return one_day(shift(today, -1, UNITS[tokens[0].value]))
        case "DUa" | "DZa" | "DGa" | "NUa" | "NZa" | "NGa" | "KUa" | "KZa" | "KGa":
            return one_day(shift(today, -tokens[0].value, UNITS[tokens[1].value]))
    return None


def _part_of_day(text: str, today: date, languages: LanguageSet) -> Days | None:
    """Return the day of "yesterday evening", "heute morgen" or "this morning"; None for other texts."""
    tokens = tokenize(text, languages)
    telling = [token for token in tokens if token.kind not in "jhox"]
    match "".join(token.kind for token in telling):
        case "tk":
            return one_day(today)
        case "Rk" | "RR" | "Wk":
            return _named(telling[0].text, today, languages)
    return None


def _bounds(days: Days, *, now: int, zone: ZoneInfo) -> tuple[int, int]:
    start = _EARLIEST_MS if days.start is None else midnight(days.start, zone)
    if days.end is not None:
        return start, midnight(days.end, zone)
    return start, now + 1 if start <= now else _LATEST_MS


def midnight(day: date, zone: ZoneInfo) -> int:
    """Return the first instant of a day, Unix milliseconds."""
    # If a clock change skips midnight, this is the first instant of the day.
    return instant_of(datetime(day.year, day.month, day.day, tzinfo=zone))


_OFFSET = len("+00:00")
_TO_THE_MINUTE = len("2026-01-01 12:00")


@lru_cache(maxsize=1_024)
def local_time(at_ms: int, zone: ZoneInfo) -> datetime:
    """Return an instant as local time in a zone."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).astimezone(zone)


_present = lru_cache(maxsize=16)(local_time)  # all times in one answer are relative to the same present


def instant_of(moment: datetime) -> int:
    """Return the Unix milliseconds of an aware datetime. Raises OverflowError outside the years 1 to 9999."""
    at_ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not _EARLIEST_MS <= at_ms <= _LATEST_MS:
        raise OverflowError("the year must be from 1 to 9999")
    return at_ms


def _zone(zone: str | ZoneInfo) -> ZoneInfo:
    if isinstance(zone, ZoneInfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        hint = "use a name such as Europe/Berlin"
        raise InvalidError(f"unknown time zone {_shown(zone)}", hint=hint) from error


def _unreadable(value: object, field: str, *, hint: str = f"use {_ACCEPTED}") -> InvalidError:
    return InvalidError(f"{field}: {_shown(value)} cannot be read as a time", hint=hint)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else type(value).__name__
    short = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return ascii(short) if any(not char.isprintable() for char in short) else repr(short)


# ---- expiry

# If the words are unclear, the later end is used: a day too long does no harm. "Until" a day means until it is over;
# until a longer unit (March, next year), until it begins. A date alone means the beginning of that day.

_ACCEPTED_EXPIRY = "say for 2 weeks, until Friday, in 3 days, never, or give a date (2026-07-01) or an ISO 8601 time"
_EXPIRY_CHARS, _EXPIRY_WORDS = 200, 6
_ISO = re.compile(r"\s*[0-9]{4}(?:-?[0-9]{2}|\s*\Z)")

_SIDES = ("before", "after", "through", "until", "for", "in", "on")
_LONG = re.compile(r"h?n?(?P<count>[DNK])o?(?P<unit>[UZG])|h?(?P<one>[UG])|hn(?P<next>[UG])")
_WEEKEND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expiries:
    """Patterns for expressions of duration and expiry; see `Dates` in the language schema."""

    languages: LanguageSet
    side: re.Pattern[str]
    idioms: tuple[tuple[re.Pattern[str], str], ...]
    clock: tuple[re.Pattern[str], ...]
    short: re.Pattern[str]
    short_units: dict[str, str]
    end_of: tuple[re.Pattern[str], ...]


@cached()
def _expiries(languages: LanguageSet) -> _Expiries:
    sides = [[words for each in languages if (words := each.dates.sides.get(name))] for name in _SIDES]
    alternatives = [f"(?P<{name}>(?:{'|'.join(words)})\\b)" for name, words in zip(_SIDES, sides, strict=True) if words]
    short_units = languages.mapping(lambda each: each.dates.short_units)
    units = "|".join(map(re.escape, short_units)) or NEVER
    idioms = languages.mapping(lambda each: each.dates.idioms)
    return _Expiries(
        languages=languages,
        side=re.compile(rf"(?:{'|'.join(alternatives) or NEVER})?\s*(?P<rest>.*)", re.DOTALL),
        idioms=tuple((re.compile(pattern), plain) for pattern, plain in idioms.items()),
        clock=tuple(map(re.compile, languages.in_order(lambda each: each.dates.clock))),
        short=re.compile(rf"(\d{{1,4}})\s*({units})\.?"),
        short_units=short_units,
        end_of=tuple(map(re.compile, languages.in_order(lambda each: each.dates.end_of))),
    )


@cached()
def _reminder(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of a request to keep a text. Its group `until` is the text after the request."""
    leads = "|".join([r"^|[.!?:;,(\[\n—–-][^\S\n]*", *languages.in_order(lambda each: each.dates.reminder_leads)])
    openings = "|".join(languages.in_order(lambda each: each.dates.reminder_openings)) or NEVER
    template = f"(?:{leads})(?:{openings})?(?:{{}})" + r"(?P<until>[^.,:;!?()\[\]\n—–]{1,80})"
    return languages.pattern(lambda each: each.dates.reminders, template, flags=re.IGNORECASE)


def parse_expiry(value: str | date | datetime, *, now: int, zone: ZoneInfo, field: str) -> int | None:
    """Return the instant at which something expires, as Unix milliseconds UTC; None for never.

    Args:
        value: a value as for `parse_instant`, a duration ("for 2 weeks"), an end ("until Friday"), or "never".
        now: Unix milliseconds; relative phrases count from it.
        zone: the user's time zone.
        field: the name of the argument, for error messages.

    Raises:
        InvalidError: the value names no time, or one in the past.
    """
    if isinstance(value, str) and value.strip().lower() in all_languages().words(lambda each: each.dates.never):
        return None
    is_plain = not isinstance(value, str) or len(value) > _EXPIRY_CHARS or _ISO.match(value)
    try:
        found = None if is_plain else next(_expiry_in_any_language(str(value), now=now, zone=zone), None)
        found = parse_instant(value, now=now, zone=zone, field=field) if found is None else found
    except InvalidError as error:
        raise InvalidError(error.message, hint=_ACCEPTED_EXPIRY) from error
    except (ValueError, OverflowError) as error:
        raise _unreadable(value, field, hint=_ACCEPTED_EXPIRY) from error
    if found <= now:
        shown = value.isoformat() if isinstance(value, date) else _shown(value)
        raise InvalidError(f"{field}: {shown} is in the past", hint=_ACCEPTED_EXPIRY)
    return found


def stated_expiry(text: str, *, now: int, zone: ZoneInfo) -> int | None:
    """Return the expiry that a text requests ("Remember for 2 weeks: ..."), or None if none is clear.

    The text must speak of remembering or forgetting: a visa that is valid until March is worth keeping after March.
    """
    languages = languages_of(text)
    match = _reminder(languages).search(text[:_SCANNED_CHARS])
    words = match["until"].split()[:_EXPIRY_WORDS] if match else []
    for count in range(len(words), 0, -1):
        try:
            found = _read_expiry(" ".join(words[:count]), now=now, zone=zone, known=_expiries(languages))
        except (ValueError, OverflowError):
            continue
        if found is not None and found > now:
            return found
    return None


def _expiry_in_any_language(text: str, *, now: int, zone: ZoneInfo) -> Iterator[int]:
    for languages in _one_by_one():
        if (found := _read_expiry(text, now=now, zone=zone, known=_expiries(languages))) is not None:
            yield found


def _read_expiry(text: str, *, now: int, zone: ZoneInfo, known: _Expiries) -> int | None:
    """Return the expiry that a phrase names; None if the phrase is not recognised."""
    phrase = " ".join(text.replace("_", " ").lower().split()).strip(" .!")
    for idiom, plain in known.idioms:
        phrase = idiom.sub(plain, phrase)
    match = known.side.fullmatch(phrase)
    if match is None:
        return None
    groups = match.groupdict()
    side, rest = next((name for name in _SIDES if groups.get(name)), ""), match["rest"]
    if side in ("", "for", "in") and (end := _after_a_while(rest, side, now=now, zone=zone, known=known)) is not None:
        return end
    return None if side == "for" else _at_a_time(rest, side, now=now, zone=zone, known=known)


def _after_a_while(rest: str, side: str, *, now: int, zone: ZoneInfo, known: _Expiries) -> int | None:
    """Return the end of a duration from now: by the clock for hours, by the calendar for days and longer."""
    for pattern in known.clock:
        if clock := pattern.fullmatch(rest):
            count = _number(clock["count"] or "1", known.languages)
            of_unit = timedelta(minutes=count) if clock["minutes"] else timedelta(hours=count)
            return now + of_unit // timedelta(milliseconds=1)
    here = local_time(now, zone)
    if short := known.short.fullmatch(rest):
        return _later(here, int(short[1]), int(known.short_units[short[2]]))
    tokens = tokenize(rest, known.languages)
    match = _LONG.fullmatch("".join(token.kind for token in tokens))
    if match is None or (match["next"] and side != "for"):  # "next week" is a date, "for the next week" is a duration
        return None
    name = next(name for name in ("unit", "one", "next") if match[name])
    unit = tokens[match.start(name)].value
    if unit == _WEEKEND:
        return None
    return _later(here, tokens[match.start("count")].value if match["count"] else 1, unit)


def _number(text: str, languages: LanguageSet) -> int:
    """Return a number of units: 3, a, two, a couple of. Raises ValueError for anything else."""
    kinds = {token.kind: token.value for token in tokenize(text, languages) if token.kind not in "ho"}
    if len(kinds) > 1 or not kinds.keys() <= set("DNK"):
        raise ValueError(f"{text!r} is not a number")
    return next(iter(kinds.values()), 1)


def _later(here: datetime, count: int, unit: int) -> int:
    return instant_of(datetime.combine(shift(here.date(), count, UNITS[unit]), here.timetz()))


def _at_a_time(rest: str, side: str, *, now: int, zone: ZoneInfo, known: _Expiries) -> int | None:
    today = local_time(now, zone).date()
    named = _end_of(rest, today, known) or read_iso(rest, zone) or _named(rest, today, known.languages, ahead=True)
    if named is None:
        return None
    if isinstance(named, datetime):
        return instant_of(named)
    start = None if named.start is None else midnight(named.start, zone)
    end = None if named.end is None else midnight(named.end, zone)
    is_short = named.precision in ("day", "range")
    lasts = side in ("through", "after") or (side == "until" and is_short) or _names_an_end(rest, known.languages)
    first, other = (end, start) if lasts else (start, end)
    return first if first is not None and first > now else other


def _names_an_end(rest: str, languages: LanguageSet) -> bool:
    """Return whether a phrase names the last third of a month or a year: "end of January"."""
    return any(token.kind == "E" and token.value == _LAST_THIRD for token in tokenize(rest, languages))


def _end_of(rest: str, today: date, known: _Expiries) -> Days | None:
    match = next((found for pattern in known.end_of if (found := pattern.fullmatch(rest))), None)
    if match is None:
        return None
    (unit,) = (token.value for token in tokenize(match["unit"], known.languages))
    which = tokenize(match["which"] or "", known.languages)
    name = UNITS[unit]
    span = around(shift(today, 1 if which and which[0].kind == "n" else 0, name), name)
    return Days(start=span.end, end=span.end, precision="range")


# ---- other phrases, read by the library dateparser

# dateparser finds a date in almost anything ("a" is the first of this year, "sun" is last Sunday). So a phrase must
# look like a date before, and the result must be specific enough after. The languages are a closed list: trying all two
# hundred takes seconds on a text that is not a date.
_PHRASE_LANGUAGES = ("en", "ru", "uk", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "zh", "ja", "ko")
_PHRASE_WORD = re.compile(r"[^\W\d_]{3}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_PHRASE_CLOCK = re.compile(r"\d:\d\d|\d\s*[ap]m\b", re.IGNORECASE)
_TOO_SHORT = re.compile("sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|march")
_WHOLE_DATE = ({"month", "day"}, {"year", "month"})


def _read_phrase(text: str, *, today: datetime) -> Days | datetime | None:
    """Return the day, week, month or moment that a short phrase names; None if that is not certain."""
    if not _PHRASE_WORD.search(text) or _TOO_SHORT.fullmatch(text.strip(" .").lower()):
        return None
    # Imported late: it takes a tenth of a second, and only unusual phrases need it.
    from dateparser.date import DateDataParser  # type: ignore[import-untyped]

    settings = {
        "RELATIVE_BASE": today.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past",
        "PREFER_DAY_OF_MONTH": "first",
        "RETURN_TIME_AS_PERIOD": True,
        # The timestamp and "no spaces" parsers read plain numbers as dates.
        "PARSERS": ["relative-time", "absolute-time"],
    }
    found = DateDataParser(languages=list(_PHRASE_LANGUAGES), settings=settings).get_date_data(text)
    moment: datetime | None = found.date_obj
    if moment is None or not any(parts <= set(found.parts) for parts in _WHOLE_DATE):
        return None
    if found.period == "time":
        return moment.replace(tzinfo=moment.tzinfo or today.tzinfo) if _PHRASE_CLOCK.search(text) else None
    return around(moment.date(), found.period)
