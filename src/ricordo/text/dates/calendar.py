"""Calendar arithmetic on whole local days. Pure: knows no zone, no clock and no language."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Unit = Literal["day", "week", "month", "year", "quarter", "weekend", "half_year"]
Precision = Literal["instant", "day", "week", "month", "quarter", "season", "year", "range"]

# A step of a unit is that many days or months.
_DAYS: dict[Unit, int] = {"day": 1, "week": 7, "weekend": 7}
_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "half_year": 6, "year": 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """A run of days: `start` is in it, `end` is the first day after it. None is an open side."""

    start: date | None
    end: date | None
    precision: Precision


def one_day(day: date) -> Days:
    """That day. Raises OverflowError on the last day of the calendar."""
    return Days(start=day, end=day + timedelta(days=1), precision="day")


def whole_month(year: int, month: int) -> Days:
    """That month. Raises ValueError outside the years 1 to 9999."""
    start = date(year, month, 1)
    return Days(start=start, end=shift(start, 1, "month"), precision="month")


def whole_year(year: int) -> Days:
    """That year. Raises ValueError outside the years 1 to 9998."""
    return Days(start=date(year, 1, 1), end=date(year + 1, 1, 1), precision="year")


def season(year: int, first_month: int) -> Days:
    """The three months from `first_month`; the winter of a year begins in the December before it."""
    start = date(year - 1 if first_month == 12 else year, first_month, 1)
    return Days(start=start, end=shift(start, 3, "month"), precision="season")


def third_of_month(month: Days, third: int) -> Days:
    """Early (1, days 1-10), middle (2, days 11-20) or late (3, the rest) of a month."""
    if month.start is None or third not in (1, 2, 3):
        raise ValueError("a third of a month needs a month and 1, 2 or 3")
    start = month.start + timedelta(days=10 * (third - 1))
    end = month.end if third == 3 else start + timedelta(days=10)
    return Days(start=start, end=end, precision="range")


def shift(day: date, steps: int, unit: Unit) -> date:
    """`day` moved by `steps` units; a day the target month lacks becomes its last day.

    Raises:
        ValueError, OverflowError: outside the years 1 to 9999.
    """
    if unit in _DAYS:
        return day + timedelta(days=steps * _DAYS[unit])
    index = day.year * 12 + day.month - 1 + steps * _MONTHS[unit]
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, _month_length(year, month)))


def around(day: date, unit: Unit) -> Days:
    """The calendar unit that `day` lies in: its ISO week (Monday first), month, year..."""
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


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
