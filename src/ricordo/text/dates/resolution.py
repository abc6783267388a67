"""Resolve the dates in a statement relative to the day it is said: "in two weeks" is 16 November 2026. Pure.

The text itself is not changed. A fact stores the resolved dates in its attribute `dates`, by phrase and in ISO 8601,
and answers show them in parentheses after the phrase.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from ricordo.text.dates.calendar import Precision
from ricordo.text.dates.grammar import (
    RELATIVE_KINDS,
    Found,
    asks_what_is_to_come,
    comes_back,
    find_all_days,
    mentions_time,
    vocabulary,
    weekdays_in,
)
from ricordo.text.languages import LanguageSet, all_languages, cached, languages_of

_MOST_CHARS = 2_000
_WEEK = 7
_SOON = 90  # days that a question about what is to come means
_BETWEEN = re.compile(r"\s*[,(]?\s*(?:(?:the|den|dem|der|el|le|il|de)\s+)?", re.IGNORECASE)
_ANY_DAY = date(2026, 11, 2)
_BEFORE = 24  # characters before a date in which a preposition is looked for


class DatedPhrase(NamedTuple):
    """A phrase of a text and the days it names, from `first` to `last`.

    `is_relative`: the date depends on the day the statement was made. `is_open`: the statement holds from then on
    ("since May"). `is_deadline`: it holds until then ("by May"). `is_arranged`: something was arranged for it ("tickets
    for 14 January"). `is_clear`: the statement says which day is meant; a weekday of a habit is any, and one after
    Italian "da" may be past or to come.
    """

    start: int
    end: int
    text: str
    first: date
    last: date
    precision: Precision
    is_relative: bool
    is_open: bool
    is_deadline: bool
    is_arranged: bool
    is_clear: bool


@cached(maxsize=4_096)
def dated_phrases(
    text: str, *, today: date, ahead: bool = False, languages: LanguageSet | None = None
) -> tuple[DatedPhrase, ...]:
    """Return the phrases of a statement that name days, in order.

    A weekday or a date without a year is the next one, unless the statement is about the past and nothing was arranged
    for that date.

    Args:
        ahead: it is the next one even then.
        languages: the languages of the statement; detected with `languages_of` by default.
    """
    text = text[:_MOST_CHARS]
    if not mentions_time(text, languages=languages):
        return ()
    is_past = not ahead and speaks_of_past(text)
    all_found = find_all_days(text, today=today, ahead=not is_past, languages=languages)
    arranged = {each.start for each in all_found if _is_arranged(text, each.start)}
    if is_past and arranged:
        coming = [each for each in find_all_days(text, today=today, ahead=True) if each.start in arranged]
        all_found = sorted(
            [*coming, *(each for each in all_found if each.start not in arranged)], key=attrgetter("start")
        )
    found = []
    for each in _without_weekdays_of_dates(all_found, text, today=today):
        named = each.named or each.days
        if named.start is None or named.end is None:
            continue
        found.append(
            DatedPhrase(
                start=each.start,
                end=each.end,
                text=text[each.start : each.end],
                first=named.start,
                last=named.end - timedelta(days=1),
                precision=named.precision,
                is_relative=not RELATIVE_KINDS.isdisjoint(each.kinds),
                is_open=each.days.end is None,
                is_deadline=each.days.start is None,
                is_arranged=each.start in arranged,
                is_clear=each.is_clear and not _is_of_habit(each, text),
            )
        )
    return tuple(found)


def _without_weekdays_of_dates(found: Sequence[Found], text: str, *, today: date) -> list[Found]:
    """Leave out a weekday right beside a date, whose day it only repeats: "Friday, 4 December", "4 December (Friday)".
    A date without a year is the coming one if the other one is another weekday.
    """
    kept = list(found)
    for first, second in pairwise(found):
        for day, whole in ((first, second), (second, first)):
            if day.kinds.strip("ijx") != "W" or "W" in whole.kinds or not RELATIVE_KINDS.isdisjoint(whole.kinds):
                continue
            if _BETWEEN.fullmatch(text[first.end : second.start]) is None or day not in kept or whole not in kept:
                continue
            kept.remove(day)
            if not _is_same_weekday(day, whole):
                coming = find_all_days(text, today=today, ahead=True)
                other = next((each for each in coming if each.start == whole.start), whole)
                kept[kept.index(whole)] = other if _is_same_weekday(day, other) else whole
    return kept


def _is_same_weekday(one: Found, other: Found) -> bool:
    starts = one.days.start, other.days.start
    return starts[0] is not None and starts[1] is not None and starts[0].weekday() == starts[1].weekday()


def speaks_of_past(text: str) -> bool:
    """Return whether a statement is about the past."""
    return _past(languages_of(text)).search(text) is not None


def _is_arranged(text: str, start: int) -> bool:
    """Return whether a date stands after, or begins with, a word that tells for when something was arranged."""
    after, beginning = _arranged(languages_of(text))
    return after.search(text[max(0, start - _BEFORE) : start]) is not None or beginning.match(text, start) is not None


@cached()
def _arranged(languages: LanguageSet) -> tuple[re.Pattern[str], re.Pattern[str]]:
    after, beginning = (
        languages.pattern(lambda each: each.lifetimes.arranged, form, flags=re.IGNORECASE)
        for form in (r"\b(?:{})\s*$", r"(?:{})\s")
    )
    return after, beginning


def _is_of_habit(found: Found, text: str) -> bool:
    """Return whether a weekday stands in words for what lasts: "choir practice wednesday 19:00"."""
    if found.kinds.strip("ijhx.") != "W":
        return False
    habits = _lasting(languages_of(text)).finditer(text)
    return any(each.start() <= found.start and found.end <= each.end() for each in habits)


@cached()
def _lasting(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.lifetimes.lasting, flags=re.IGNORECASE)


@cached()
def _past(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.lifetimes.past, flags=re.IGNORECASE)


def resolved_dates(text: str, *, today: date) -> dict[str, str]:
    """Map the relative phrases of a statement that are clear to dates: a day, month or year in ISO 8601, or the first
    and last day separated by a slash.
    """
    found: dict[str, str] = {}
    for each in dated_phrases(text, today=today):
        if each.is_relative and each.is_clear:
            found.setdefault(each.text, iso_of(each))
    return found


Span = tuple[date, date]
"""The first and the last day."""


def coming_days(question: str, *, today: date) -> list[Span]:
    """Return the days from today on that a question asks about.

    >>> coming_days("What is on 3 December?", today=date(2026, 11, 28))
    [(datetime.date(2026, 12, 3), datetime.date(2026, 12, 3))]
    >>> coming_days("What did I do on 3 December?", today=date(2026, 11, 28))
    []
    >>> coming_days("What is coming up?", today=date(2026, 11, 28))
    [(datetime.date(2026, 11, 28), datetime.date(2027, 2, 26))]
    """
    first = today + timedelta(days=speaks_of_past(question))  # "What did I do today?" asks about no coming day
    dated = [each for each in dated_phrases(question, today=today) if not each.is_open]
    if not dated and asks_what_is_to_come(question):
        return [(today, today + timedelta(days=_SOON))]
    named = (each for each in dated if each.last >= first)
    return [(first, each.last) if each.is_deadline or each.first < first else (each.first, each.last) for each in named]


def day_named_in(text: str, spans: Sequence[Span], *, said: date, returns: date | None = None) -> date | None:
    """Return the first day in one of some spans that a statement names; None if it names none.

    Args:
        said: when the statement was made.
        returns: from when on to look for what comes back every year, such as a birthday.
    """
    phrases = list(dated_phrases(text, today=said))
    if returns is not None:
        phrases += [each for each in dated_phrases(text, today=returns, ahead=True) if not each.is_relative]
        if comes_back(text):
            phrases += [_next_year(each, after=returns) for each in phrases if each.first == each.last < returns]
    named = [each for each in phrases if not each.is_open]
    days = [
        max(each.first, first) for each in named for first, last in spans if each.first <= last and first <= each.last
    ]
    return min(days, default=None)


def weekly_day_in(text: str, spans: Sequence[Span]) -> date | None:
    """Return the first of some single days on whose weekday something takes place every week; None if there is none.

    >>> weekly_day_in("Choir is on Tuesdays", [(date(2026, 12, 1), date(2026, 12, 1))])
    datetime.date(2026, 12, 1)
    """
    single = (first for first, last in spans if first == last)
    return next((day for day in single if day.weekday() in weekly_days(text)), None)


@cached(maxsize=4_096)
def weekly_days(text: str) -> frozenset[int]:
    """Return the weekdays that a statement names, 0 for Monday, where it does not mean one day of the calendar. None if
    it is about the past.

    >>> weekly_days("Choir is on Tuesdays, the concert on Saturday, 5 December"), weekly_days("dentist on Thursday")
    (frozenset({1}), frozenset())
    """
    text = text[:_MOST_CHARS]
    named = list(weekdays_in(text))
    if not named or speaks_of_past(text):
        return frozenset()
    dated = [(each.start, each.end) for each in dated_phrases(text, today=_ANY_DAY)]
    return frozenset(
        day
        for begin, end, day in named
        if not any(start <= begin < stop or _BETWEEN.fullmatch(text[end:start]) for start, stop in dated)
    )


def _next_year(phrase: DatedPhrase, *, after: date) -> DatedPhrase:
    """Return a phrase for one day as the next day of that name."""
    is_past = (phrase.first.month, phrase.first.day) < (after.month, after.day)
    year, leap = after.year + is_past, (phrase.first.month, phrase.first.day) == (2, 29)
    day = date(year, 3, 1) - timedelta(days=1) if leap else phrase.first.replace(year=year)
    return phrase._replace(first=day, last=day)


def day_words(spans: Sequence[Span]) -> tuple[set[str], set[str], set[str]]:
    """Return the words of all languages with which texts name the days of some spans: months, days of the month and
    weekdays, with "tomorrow" and "yesterday". Of spans longer than a week, any weekday and no days of the month.
    """
    days = {first + timedelta(days=each) for first, last in spans for each in range(min((last - first).days, 366) + 1)}
    is_short = all((last - first).days < _WEEK for first, last in spans)
    languages = all_languages()
    suffixes = {each for written in languages.in_order(lambda each: each.dates.ordinals) for each in written.split("|")}
    numbers = {f"{day.day}{suffix}" for day in days for suffix in {"", *filter(str.isalpha, suffixes)}}
    named = vocabulary(languages).words.items()
    months = {word for word, (kind, value) in named if kind == "M" and any(day.month == value for day in days)}
    weekdays = {word for word, (kind, value) in named if kind == "W" and any(day.weekday() == value for day in days)}
    weekdays |= {word for word, (kind, _) in named if kind == "R"}
    return (months, numbers, weekdays) if is_short else (months, set(), weekdays)


def iso_of(phrase: DatedPhrase) -> str:
    """Return the days of a phrase: a day, month or year in ISO 8601, or the first and last day separated by a slash."""
    first, last = phrase.first.isoformat(), phrase.last.isoformat()
    match phrase.precision:
        case "year":
            return first[:4]
        case "month":
            return first[:7]
    return first if first == last else f"{first}/{last}"
