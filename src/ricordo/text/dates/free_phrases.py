"""Time phrases beyond our own grammar, read by the library dateparser and believed only with care.

dateparser finds a date in almost anything ("a" is the first of this year, "sun" is last Sunday), so a phrase
must look like one before, and say enough of a date after.
"""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from ricordo.text.dates.calendar import Days, around

# A closed list: trying all two hundred takes seconds on a text that is no date.
_LANGUAGES = ("en", "ru", "uk", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "zh", "ja", "ko")
_WORD = re.compile(r"[^\W\d_]{3}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_CLOCK = re.compile(r"\d:\d\d|\d\s*[ap]m\b", re.IGNORECASE)
_TOO_SHORT = re.compile("sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|march")
_WHOLE_DATE = ({"month", "day"}, {"year", "month"})


def read_phrase(text: str, *, today: datetime) -> Days | datetime | None:
    """The day, week, month or moment a short phrase names; None when it names none for certain.

    Args:
        text: at most a few hundred characters.
        today: the user's present, with their zone.

    Raises:
        ValueError, OverflowError: outside the calendar.
    """
    if not _WORD.search(text) or _TOO_SHORT.fullmatch(text.strip(" .").lower()):
        return None
    # Imported here: it takes a tenth of a second, and only unusual phrases come this far.
    from dateparser.date import DateDataParser  # type: ignore[import-untyped]

    settings = {
        "RELATIVE_BASE": today.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past",
        "PREFER_DAY_OF_MONTH": "first",
        "RETURN_TIME_AS_PERIOD": True,
        # The timestamp and "no spaces" parsers read plain numbers as dates.
        "PARSERS": ["relative-time", "absolute-time"],
    }
    found = DateDataParser(languages=list(_LANGUAGES), settings=settings).get_date_data(text)
    moment: datetime | None = found.date_obj
    if moment is None or not any(parts <= set(found.parts) for parts in _WHOLE_DATE):
        return None
    if found.period == "time":
        return _with_zone(moment, today.tzinfo) if _CLOCK.search(text) else None
    return around(moment.date(), found.period)


def _with_zone(moment: datetime, zone: object) -> datetime:
    return moment.replace(tzinfo=zone) if moment.tzinfo is None and isinstance(zone, ZoneInfo) else moment
