"""Compute when a statement expires: some time after the date it names, or after a month if it is temporary. Pure.

Habits, duties, medicines, conditions, rules and open-ended states never expire by themselves, nor do unclear cases. The
words are in the language files (`lifetimes`). In a language without them, no statement expires.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms, to_ms
from ricordo.model import EndsBy, Json, Node
from ricordo.text.analyzer import speaks_of_themselves
from ricordo.text.dates import DATES, local_time, midnight
from ricordo.text.dates.resolution import DatedPhrase, dated_phrases, resolved_dates, speaks_of_past
from ricordo.text.languages import LanguageSet, Lexicon, all_languages, any_of, cached, languages_of, pattern_of

PASSING_DAYS = 30
"""How long a temporary statement is kept, and how long a dated statement is kept at least after its date."""

_LONGEST_AFTER_DAYS = 90
_MOST_CHARS, _SHORT_CHARS = 400, 100
_BRIEF_CHARS = 70  # maximum for a statement about others that names today; in a longer one, "today" means nowadays
_BEGINNINGS = (3, 4, 5)
_LATIN = re.compile("[a-zA-Z]")
_WORD = re.compile(r"[^\W\d_]+")
_NO_WORDS = re.compile(r"\\[bwsWd]|\(\?(?:[:=!]|<[=!])")
_JOINT = re.compile(r"-\??")
_LONG_UNITS = frozenset(("month", "quarter", "season", "year"))


class _Cues(Lexicon):
    """Patterns of temporary and lasting statements; see `Lifetimes` in the language schema."""

    own = pattern_of(lambda each: each.lifetimes.own)
    lasting = pattern_of(lambda each: each.lifetimes.lasting, flags=re.IGNORECASE)
    begins = pattern_of(lambda each: each.lifetimes.begins, flags=re.IGNORECASE)
    passing = pattern_of(lambda each: each.lifetimes.passing, flags=re.IGNORECASE)
    ongoing = pattern_of(lambda each: each.lifetimes.ongoing, flags=re.IGNORECASE)
    enduring = pattern_of(lambda each: each.lifetimes.enduring, flags=re.IGNORECASE)
    now = pattern_of(lambda each: each.lifetimes.now, flags=re.IGNORECASE)

    @cached_property
    def telling(self) -> frozenset[str]:
        """The beginnings of the words in the patterns for temporary statements, without function words."""
        patterns = self.languages.in_order(lambda each: each.lifetimes.passing)
        found = {word for each in patterns for word in _WORD.findall(_NO_WORDS.sub(" ", _JOINT.sub("", each)))}
        words = found - self.languages.words(lambda each: each.function_words)
        return frozenset(word[: _BEGINNINGS[-1]] for word in words if len(word) >= _BEGINNINGS[0])

    def passes(self, text: str) -> bool:
        """Return whether a statement is clearly temporary."""
        return (self._is_ongoing(text) or self._names_passing(text)) and not self.lasting.search(text)

    def knows(self, text: str) -> bool:
        """Return whether a text is in one of the languages, and not in another with the same letters."""
        return any(not each.lifetimes.own for each in self.languages) or self.own.search(text) is not None

    def _is_ongoing(self, text: str) -> bool:
        """Return whether a short statement describes the moment by its form, and not a lasting occupation."""
        return len(text) <= _SHORT_CHARS and bool(self.ongoing.search(text)) and not self.enduring.search(text)

    def is_of_now(self, text: str) -> bool:
        """Return whether a statement is about today, and tells no change, duty or trait that outlasts it."""
        lasts = self.lasting.search(text) or self.begins.search(text) or self.enduring.search(text)
        return bool(self.now.search(text)) and not lasts

    def _names_passing(self, text: str) -> bool:
        words = _WORD.findall(_JOINT.sub("", text.lower()))
        if self.telling.isdisjoint(word[:chars] for word in words for chars in _BEGINNINGS):
            return False  # rejects most texts before the long patterns run
        return self.passing.search(text) is not None


_cues = cached()(_Cues)


@cached()
def _others(languages: LanguageSet) -> LanguageSet:
    """Return the languages that are not written in Latin letters."""
    return any_of(tuple(each.code for each in languages if each.script != "LATIN"))


@cached()
def _elsewhere(languages: LanguageSet) -> LanguageSet:
    """Return the other languages with the same scripts, for texts too short to show their language."""
    scripts = {language.script for language in languages}
    others = (each.code for each in all_languages() if each not in languages and each.script in scripts)
    return any_of(tuple(others))


def lifetime(text: str, *, said_at: int, zone: ZoneInfo) -> int | None:
    """Return when a statement expires, in Unix milliseconds UTC; None if it does not.

    Args:
        said_at: Unix milliseconds; relative dates count from it.
        zone: the user's time zone.
    """
    today = local_time(said_at, zone).date()
    found = _term(text, today)
    return None if found is None else _midnight_after(found.last or today, found.days, zone)


class _Term(NamedTuple):
    """How many days a statement is kept after the last day that it names; None: after it was said."""

    last: date | None
    days: int


@cached(maxsize=1_024)
def _term(text: str, today: date) -> _Term | None:
    """Return how long a statement said on a day is kept; None if it does not expire."""
    languages = languages_of(text)
    if len(text) > _MOST_CHARS or not any(each.lifetimes.lasting for each in languages):
        return None
    cues = _cues(languages if _LATIN.search(text) else _others(languages))
    passes = cues.passes(text) or (len(text) <= _SHORT_CHARS and _cues(_elsewhere(languages)).passes(text))
    is_past = not passes and speaks_of_past(text)
    is_of_today = len(text) <= _BRIEF_CHARS or speaks_of_themselves(text)
    is_known = passes or cues.knows(text)
    phrases = [] if is_past else [each for each in dated_phrases(text, today=today) if is_known or each.is_relative]
    coming = [each for each in phrases if _is_ahead(each, today) and (is_of_today or passes or each.last > today)]
    last = max((each.last for each in coming if passes or _is_occasion(each)), default=None)
    if last is not None:
        lasts = cues.lasting.search(text) or (not passes and cues.begins.search(_without_spans(text, coming)))
        after = min(max((last - today).days, PASSING_DAYS), _LONGEST_AFTER_DAYS)
        return None if lasts else _Term(last, after)
    if passes or (is_of_today and not is_past and cues.is_of_now(text)):
        return _Term(None, PASSING_DAYS)
    return None


def _is_ahead(phrase: DatedPhrase, today: date) -> bool:
    return not phrase.is_open and phrase.last >= today


def _is_occasion(phrase: DatedPhrase) -> bool:
    """Return whether a phrase names days or a deadline. A month or a year more often tells when something changes.

    A span of months is a season.
    """
    is_long = phrase.precision in _LONG_UNITS or (phrase.last - phrase.first).days > _LONGEST_AFTER_DAYS
    return phrase.is_deadline or not is_long


def _without_spans(text: str, phrases: Sequence[DatedPhrase]) -> str:
    """Return a text without spans that end: what lasts "from 3 to 9 December" does not begin then for good."""
    for each in phrases:
        if each.precision == "range" and _is_occasion(each):
            text = text.replace(each.text, " ")
    return text


def _midnight_after(day: date, days: int, zone: ZoneInfo) -> int | None:
    try:
        return midnight(day + timedelta(days=days + 1), zone)
    except OverflowError:
        return None


# for facts


def timed(node: Node, *, zone: ZoneInfo) -> Node:
    """Return a new fact with the dates in its text, and with its lifetime if no expiry is set.

    A fact about something that had already ended when it was learnt gets no lifetime.
    """
    until = node.expires_at or _until(node, zone)
    return replace(node, attributes=_dated(node, node.event_time, zone), expires_at=until)


def retimed(new: Node, old: Node, *, at: datetime, zone: ZoneInfo) -> Node:
    """Return a changed fact with the dates and the lifetime of its new text, or of its new date. An explicit expiry is
    kept.

    Args:
        at: when the new text was stated.
    """
    known = old.attributes.get(DATES)
    if (new.content, new.event_time) == (old.content, old.event_time):
        is_lost = known is not None and DATES not in new.attributes
        return replace(new, attributes={DATES: known, **new.attributes}) if is_lost else new
    if known is not None and new.attributes.get(DATES) == known:
        new = replace(new, attributes={name: value for name, value in new.attributes.items() if name != DATES})
    if old.expires_at is None or has_lifetime(old, zone=zone):
        new = replace(new, expires_at=_until(new, zone, said_at=at))
    return replace(new, attributes=_dated(new, at, zone))


def has_lifetime(node: Node, *, zone: ZoneInfo) -> bool:
    """Return whether the expiry of a fact follows from its text rather than from an explicit expiry."""
    return _timed_at(node, zone) is not None


def _timed_at(node: Node, zone: ZoneInfo) -> datetime | None:
    """Return when a fact was stated from which its lifetime counts; None if its expiry is explicit, or it has none."""
    said = (at for at in (node.event_time, node.reinforced_at) if at is not None and node.expires_at is not None)
    return next((at for at in said if _until(node, zone, said_at=at) == node.expires_at), None)


def ends_by(node: Node, *, zone: ZoneInfo) -> EndsBy | None:
    """Return whether a fact expires by an explicit expiry or by its lifetime; None if it does not expire."""
    if node.expires_at is None:
        return None
    return "lifetime" if has_lifetime(node, zone=zone) else "expiry"


def ends_why(node: Node, *, zone: ZoneInfo) -> str:
    """Return why a fact has its lifetime: the date that was read in its text; "" if it has none."""
    at = _timed_at(node, zone)
    found = None if at is None else _term(node.content, local_time(to_ms(at), zone).date())
    if found is None:
        return ""
    kept = f"kept for {found.days} days"
    return (
        f"temporary by its text, {kept}" if found.last is None else f"{kept} after {found.last}, which its text names"
    )


def prolonged(node: Node, *, at: datetime, zone: ZoneInfo) -> Node:
    """Extend the lifetime of a temporary fact that was stated or used again. Other facts are returned unchanged."""
    today = local_time(to_ms(at), zone).date()
    is_dated = any(_is_ahead(each, today) for each in dated_phrases(node.content, today=today))
    if is_dated or not has_lifetime(node, zone=zone):
        return node
    until = _until(node, zone, said_at=at)
    return node if until is None or node.expires_at is None else replace(node, expires_at=max(until, node.expires_at))


def _until(node: Node, zone: ZoneInfo, *, said_at: datetime | None = None) -> datetime | None:
    said = said_at or node.event_time
    until = lifetime(node.content, said_at=to_ms(said), zone=zone)
    if until is None:
        return None
    ends = from_ms(until) + max(timedelta(), node.valid_from - said)
    return ends if ends > node.created_at else None


def _dated(node: Node, said_at: datetime, zone: ZoneInfo) -> Json:
    found = resolved_dates(node.content, today=local_time(to_ms(said_at), zone).date())
    return {DATES: found, **node.attributes} if found and DATES not in node.attributes else node.attributes
