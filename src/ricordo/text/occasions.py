"""Tell apart facts that say the same of two days: "Dentist on 3 May", "Dentist on 17 May". Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

from ricordo.model import Node
from ricordo.text.canonical import canonical
from ricordo.text.change import says_change
from ricordo.text.dates import DATES
from ricordo.text.dates.resolution import dated_phrases, iso_of
from ricordo.text.languages import cached
from ricordo.text.statement import compare, statement_line

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MOST_DAYS = 7  # a longer span that does not depend on the day of the statement is no occasion


class _Occasion(NamedTuple):
    """A statement without its dates and numbers, its text up to the last date ("The meeting is on Monday"), and its
    dates in ISO 8601, by phrase.
    """

    rest: str
    up_to_date: str
    dates: Mapping[str, str]


def are_of_two_days(old: Node, new: Node) -> bool:
    """Return whether two facts differ only in their days and in numbers (the time of day), so that both are true.

    This excludes a newer fact that says that the day has changed ("moved to 17 May"), and facts about something that
    has one value at a time: a birthday, a deadline, a place to live.
    """
    one, other = (_occasion(each.content, each.event_time.date()) for each in (old, new))
    if not one.dates or not other.dates or one.rest != other.rest:
        return False
    if not _days(old, one).isdisjoint(_days(new, other)):
        return False
    if says_change(other.rest) and old.content != new.content:
        return False
    if canonical(new.content).slot:
        return False
    pairs = ((old.content, new.content), (one.up_to_date, other.up_to_date))
    return not any(compare(*pair) in ("replaced", "conflict") for pair in pairs)


def _days(node: Node, occasion: _Occasion) -> frozenset[str]:
    """Return the dates of a fact. Relative ones are read from its attribute, which knows the user's time zone."""
    known = node.attributes.get(DATES)
    resolved = known if isinstance(known, Mapping) else {}
    return frozenset(str(resolved.get(phrase, day)) for phrase, day in occasion.dates.items())


@cached(maxsize=4_096)
def _occasion(text: str, said: date) -> _Occasion:
    phrases = dated_phrases(text, today=said)
    dates = {
        each.text: iso_of(each)
        for each in phrases
        if not each.is_open
        and (each.is_relative or not (each.is_deadline or (each.last - each.first).days >= _MOST_DAYS))
    }
    up_to_date = text[: max((each.end for each in phrases), default=0)]
    for each in reversed(phrases):
        text = f"{text[: each.start]} {text[each.end :]}"
    return _Occasion(statement_line(_NUMBER.sub(" ", text)), up_to_date, dates)
