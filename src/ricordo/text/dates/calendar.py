"""Calendar arithmetic on complete local days, and what a named time refers to: the last March, the coming Friday.

Pure: independent of time zone, clock and language.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, Self

Unit = Literal["day", "week", "month", "year", "quarter", "weekend", "half_year"]
Precision = Literal["instant", "day", "week", "month", "quarter", "season", "year", "range"]

UNITS: tuple[Unit, ...] = ("day", "week", "month", "year", "quarter", "weekend", "half_year")
"""Units, indexed by their number in the tables of the language files."""

# One step of a unit, in days or in months.
_DAYS: dict[Unit, int] = {"day": 1, "week": 7, "weekend": 7}
_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "half_year": 6, "year": 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """A range of days: `start` is included, `end` is the first day after it. None means no limit."""

    start: date | None
    end: date | None
    precision: Precision


def one_day(day: date) -> Days:
    """Return the day as a range. Raises OverflowError on the last day of the calendar."""
    return Days(start=day, end=day + timedelta(days=1), precision="day")


def whole_month(year: int, month: int) -> Days:
    """Return the month as a range. Raises ValueError outside the years 1 to 9999."""
    start = date(year, month, 1)
    return Days(start=start, end=shift(start, 1, "month"), precision="month")


def whole_year(year: int) -> Days:
    """Return the year as a range. Raises ValueError outside the years 1 to 9998."""
    return Days(start=date(year, 1, 1), end=date(year + 1, 1, 1), precision="year")


def season(year: int, first_month: int) -> Days:
    """Return the three months from `first_month`. The winter of a year begins in December of the previous year."""
    start = date(year - 1 if first_month == 12 else year, first_month, 1)
    return Days(start=start, end=shift(start, 3, "month"), precision="season")


def third_of_month(month: Days, third: int) -> Days:
    """Return the early (1, days 1-10), middle (2, days 11-20) or late (3, the rest) part of a month."""
    assert month.start is not None
    start = month.start + timedelta(days=10 * (third - 1))
    return Days(start=start, end=month.end if third == 3 else start + timedelta(days=10), precision="range")


def shift(day: date, steps: int, unit: Unit) -> date:
    """Return `day` moved by `steps` units. A day that the target month lacks becomes its last day.

    Raises:
        ValueError, OverflowError: outside the years 1 to 9999.
    """
    if unit in _DAYS:
        return day + timedelta(days=steps * _DAYS[unit])
    index = day.year * 12 + day.month - 1 + steps * _MONTHS[unit]
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def around(day: date, unit: Unit) -> Days:
    """Return the calendar unit that contains `day`: its ISO week (Monday first), month, year..."""
    match unit:
        case "day":
            return one_day(day)
        case "week":
            monday = day - timedelta(days=day.weekday())
            return Days(start=monday, end=monday + timedelta(days=7), precision="week")
        case "weekend":
            saturday = day + timedelta(days=5 - day.weekday())
            return Days(start=saturday, end=saturday + timedelta(days=2), precision="range")
        case "quarter":
            start = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
            return Days(start=start, end=shift(start, 1, "quarter"), precision="quarter")
        case "month" | "half_year":
            return whole_month(day.year, day.month)
        case "year":
            return whole_year(day.year)


# ---- named times

# February 29 is at most eight years away.
_LEAP_GAP = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The day a sentence is said, and whether the sentence is about the future."""

    date: date
    is_ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The parts of a named time; None for parts that are not mentioned. Numbers are as in the language files."""

    day: int | None = None
    month: int | None = None
    year: int | None = None
    weekday: int | None = None
    season: int | None = None
    unit: int | None = None
    count: int | None = None
    third: int | None = None
    which: int | None = None  # -1 last, 0 this, 1 next
    relative_day: int | None = None
    iso_day: int | None = None
    iso_month: int | None = None
    is_ago: bool = False

    @classmethod
    def of(cls, tokens: Sequence[tuple[str, int]]) -> Self:
        """Return the point named by tokens, which are pairs of kind and number."""
        said: dict[str, int] = {}
        for kind, value in tokens:
            said.setdefault(kind, value)
        if "R" in said and ("b" in said or "e" in said):  # the day before yesterday
            said = {"R": said["R"] * 2}
        elif "b" in said or "e" in said:  # the week before last, the week after next
            said = {"U": said["U"], "l" if "l" in said else "n": 2}
        if "k" in said and "R" not in said:  # last night began yesterday
            said = {"R": -1}
        if "Y" in said:
            said.pop("G", None)
        return cls(
            day=said.get("D"),
            month=said.get("M", said.get("V")),
            year=said.get("Y"),
            weekday=said.get("W"),
            season=said.get("S"),
            unit=said.get("U", said.get("Z", said.get("G"))),
            count=said.get("D", said.get("N", said.get("K"))),
            third=said.get("E"),
            which=_which(said),
            relative_day=said.get("R"),
            iso_day=said.get("I"),
            iso_month=said.get("J"),
            is_ago="a" in said or "A" in said,
        )


def _which(said: Mapping[str, int]) -> int | None:
    return -said["l"] if "l" in said else said.get("t", said.get("n", said.get("L")))


def resolve(point: Point, today: Today) -> Days | None:
    """Return the days that a point refers to, or None if it names no particular time.

    Raises:
        ValueError, OverflowError: outside the calendar, or a day that the month does not have.
    """
    if point.iso_day is not None:
        return one_day(date.fromordinal(point.iso_day))
    if point.iso_month is not None:
        return around(date.fromordinal(point.iso_month), "month")
    if point.relative_day is not None:
        return one_day(today.date + timedelta(days=point.relative_day))
    if point.is_ago and point.unit is not None:
        unit = UNITS[point.unit]
        return around(shift(today.date, -(point.count or 1), unit), unit)
    if point.month is not None:
        return _month(point, point.month, today)
    if point.season is not None:
        return _season(point, point.season, today)
    if point.year is not None:
        return _year(point.year, point.third)
    if point.weekday is not None and point.unit is not None:  # Wednesday of last week
        monday = today.date - timedelta(days=today.date.weekday())
        is_of_week = UNITS[point.unit] == "week"
        return one_day(monday + timedelta(days=point.weekday + 7 * (point.which or 0))) if is_of_week else None
    if point.weekday is not None:
        return _weekday(point.weekday, point.which, today)
    return _unit(point, today)


def resolve_range(first: Point, last: Point, today: Today) -> Days | None:
    """Return the days from one point to the other. Each supplies the month or year that the other omits."""
    month = first.month or (last.month if first.day else None)
    last_month = last.month or (first.month if last.day else None)
    end = resolve(_with(last, last_month, last.year or first.year), today)
    if end is None or end.start is None:
        return None
    is_dated = first.iso_day or first.iso_month or first.relative_day is not None
    start = resolve(first if is_dated else _with(first, month, first.year or end.start.year), today)
    if start is not None and start.start and start.start > end.start and not first.year and month:
        start = resolve(_with(first, month, end.start.year - 1), today)
    if start is None or start.start is None or start.start > end.start:
        return None
    return Days(start=start.start, end=end.end, precision="range")


def resolve_rolling(count: int | None, unit: Point, today: Today) -> Days | None:
    """Return the days of the given number of past units, including today."""
    if unit.unit is None:
        return None
    if UNITS[unit.unit] == "weekend":
        return around(shift(today.date, -1, "weekend"), "weekend") if count is None else None
    start = shift(today.date, -(count or 1), UNITS[unit.unit])
    return Days(start=start, end=today.date + timedelta(days=1), precision="range")


def resolve_through(count: int, unit: Point, today: Today) -> Days | None:
    """Return the day the given number of units from today."""
    return None if unit.unit is None else one_day(shift(today.date, count, UNITS[unit.unit]))


def resolve_offset(days: Days, unit: Point, steps: int) -> Days | None:
    """Return the unit or weekday the given number of steps before (negative) or after some days."""
    if days.start is None or days.end is None:
        return None
    if unit.weekday is not None:
        return _weekday(unit.weekday, None, Today(date=days.start, is_ahead=steps > 0))
    if unit.unit is None:
        return None
    name = UNITS[unit.unit]
    if abs(steps) > 1 or name in ("day", "weekend"):
        return around(shift(days.start, steps, name), name)
    edge = days.start if steps < 0 else days.end
    start, end = sorted((edge, shift(edge, steps, name)))
    return Days(start=start, end=end, precision="range")


def resolve_numbered(point: Point, today: Today, *, weeks: int) -> Days | None:
    """Return the weekday with a day of the month, such as Friday the 18th: today, or at most some weeks away."""
    step = timedelta(days=1 if today.is_ahead else -1)
    days = (today.date + step * each for each in range(7 * weeks + 1))
    named = (day for day in days if (day.weekday(), day.day) == (point.weekday, point.day))
    return next(map(one_day, named), None)


def _with(point: Point, month: int | None, year: int | None) -> Point:
    return replace(point, month=month, year=year, unit=None, which=None)


def _month(point: Point, month: int, today: Today) -> Days | None:
    def in_year(year: int) -> Days:
        if point.day is not None:
            return one_day(date(year, month, point.day))
        whole = whole_month(year, month)
        return third_of_month(whole, point.third) if point.third else whole

    if point.year is not None:
        return in_year(point.year)
    if point.which is not None and point.unit is not None:  # in March of last year
        return in_year(today.date.year + point.which) if UNITS[point.unit] == "year" else None
    return _nearest(in_year, point.which, today)


def _season(point: Point, first_month: int, today: Today) -> Days | None:
    if point.year is not None:
        return season(point.year, first_month)
    if point.unit is not None:  # the summer of last year
        return season(today.date.year + (point.which or 0), first_month) if UNITS[point.unit] == "year" else None
    return _nearest(lambda year: season(year, first_month), point.which, today)


def _year(year: int, third: int | None) -> Days:
    if not third:
        return whole_year(year)
    start = date(year, 4 * third - 3, 1)
    return Days(start=start, end=shift(start, 4, "month"), precision="range")


def _nearest(in_year: Callable[[int], Days], which: int | None, today: Today) -> Days | None:
    """Return the time in this year (0), or the one `which` steps before or after; None for the last that has begun."""
    year = today.date.year
    if which == 0:
        return in_year(year)
    wants_future = today.is_ahead if which is None else which > 0
    skipped = abs(which) - 1 if which else 0
    steps = range(_LEAP_GAP + 1) if wants_future else range(1, -_LEAP_GAP - 1, -1)
    for step in steps:
        days = _try_year(in_year, year + step)
        if days is None or not _is_on_side(days, which, today, wants_future=wants_future):
            continue
        if not skipped:
            return days
        skipped -= 1
    return None


def _is_on_side(days: Days, which: int | None, today: Today, *, wants_future: bool) -> bool:
    if days.start is None or days.end is None:
        return False
    if wants_future:
        return days.start > today.date if which else days.end > today.date
    return days.end <= today.date if which else days.start <= today.date


def _try_year(in_year: Callable[[int], Days], year: int) -> Days | None:
    try:
        return in_year(year)
    except (ValueError, OverflowError):  # 29 February of a common year
        return None


def _weekday(weekday: int, which: int | None, today: Today) -> Days:
    """Return the last such weekday before today, or the next one. 0 means in this week, 1 in the next week."""
    monday = today.date - timedelta(days=today.date.weekday())
    if which is not None and which >= 0:
        return one_day(monday + timedelta(days=weekday + 7 * which))
    if which is None and today.is_ahead:
        return one_day(today.date + timedelta(days=(weekday - today.date.weekday() - 1) % 7 + 1))
    back = (today.date.weekday() - weekday - 1) % 7 + 1
    return one_day(today.date - timedelta(days=back + 7 * (abs(which or 1) - 1)))


def _unit(point: Point, today: Today) -> Days | None:
    if point.unit is None:
        return None
    unit = UNITS[point.unit]
    if point.which is not None:
        return around(shift(today.date, point.which, unit), unit)
    is_past = today.date.weekday() < 5 and not today.is_ahead  # "at the weekend", unqualified
    return around(shift(today.date, -1, "weekend") if is_past else today.date, "weekend")
