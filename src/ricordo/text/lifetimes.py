"""Compute when a statement expires: some time after the date it names, or after a month if it is temporary. Pure.

Habits, duties, medicines, conditions, rules and open-ended states never expire by themselves, nor do unclear cases.
Whether a statement is temporary is estimated (`ricordo.text.passing`). The words for what lasts and for what begins on
a date are in the language files (`lifetimes`). In a language without them, a date alone gives no lifetime.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms, to_ms
from ricordo.model import EndsBy, Json, Node
from ricordo.text import passing
from ricordo.text.analyzer import speaks_of_themselves
from ricordo.text.canonical import canonical
from ricordo.text.change import Cue, cues, says_change, things_said, topics
from ricordo.text.dates import DATES, local_time, midnight
from ricordo.text.dates.resolution import DatedPhrase, dated_phrases, resolved_dates, speaks_of_past
from ricordo.text.languages import (
    LanguageSet,
    Lexicon,
    all_languages,
    any_of,
    cached,
    languages_of,
    pattern_of,
    words_of,
)
from ricordo.text.names import split_title
from ricordo.text.relatives import stated_relations
from ricordo.text.sentences import is_redacted

PASSING_DAYS = 30
"""How long a temporary statement is kept, and how long a dated statement is kept at least after its date."""

_LONGEST_AFTER_DAYS = 90
_BRIEF_CHARS = 70  # maximum for a statement about others that names today; in a longer one, "today" means nowadays
_LATIN, _LETTERS = re.compile("[a-zA-Z]"), re.compile("[a-zA-Zа-яё]", re.IGNORECASE)
_MAYBE_DATE = re.compile(r"\b\d{1,2}(?:[.º]|er)? ?(?:d[ei] )?[^\W\d_]{3}|\d ?[月日]|\d[./-]\d")
_ELIDED = re.compile(r"^\w+['’]")
_LONG_UNITS = frozenset(("month", "quarter", "season", "year"))


class _Cues(Lexicon):
    """Patterns for dated and for lasting statements; see `Lifetimes` in the language schema."""

    own = pattern_of(lambda each: each.lifetimes.own)
    lasting = pattern_of(lambda each: each.lifetimes.lasting, flags=re.IGNORECASE)
    begins = pattern_of(lambda each: each.lifetimes.begins, flags=re.IGNORECASE)
    happened = pattern_of(lambda each: each.lifetimes.happened, flags=re.IGNORECASE)
    copulas = words_of(lambda each: each.statements.copulas)
    articles = words_of(lambda each: each.statements.articles)
    jobs = words_of(lambda each: (*each.change.of_self.get("job", ()), *each.people.roles, *each.entities.roles))

    def knows(self, text: str) -> bool:
        """Return whether a text is in one of the languages, and not in another with the same letters."""
        return any(not each.lifetimes.own for each in self.languages) or self.own.search(text) is not None


_cues = cached()(_Cues)


_LASTING_THINGS = frozenset(("=home", "=work", "=marriage"))
"""Groups of words in `change.same`: a change of these is for good."""

_LASTING_STATES = frozenset(("=home", "=marriage"))
"""Groups of words in `change.same`: a clause about these that names no day tells what lasts."""

_ANY_NAME = "Xx"  # in place of a name behind a title
_NO_STATE: frozenset[Cue] = frozenset(("unsure", "reported", "future", "asks"))


@cached()
def _others(languages: LanguageSet) -> LanguageSet:
    """Return the languages that are not written in Latin letters."""
    return any_of(tuple(each.code for each in languages if each.script != "LATIN"))


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
    if len(text) > passing.MOST_CHARS:
        return None
    if (days := _days_of_state(text)) and not dated_phrases(text, today=today):
        return _Term(None, days)
    if passing.passes(text, is_guarded=is_guarded(text)) and may_pass(text) and not gives_a_value(text):
        found = _passing_term(text, today)
    else:
        found = _dated_term(text, today)
    is_kept = found is not None and (_has_happened(text, today) or _has_lasting_clause(text, today))
    return None if is_kept else found


def _days_of_state(text: str) -> int | None:
    """Return how many days a state lasts at most that ends by itself, such as a pregnancy; None for anything else, or
    if the statement also tells what lasts.
    """
    for days, pattern in _states():
        if found := pattern.match(text):
            return None if _cues_of(text).lasting.search(text, found.end()) else days
    return None


@cached()
def _states() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return the states of all languages, since two words may not show their language."""
    rows = ((days, pattern) for each in all_languages() for days, pattern in each.lifetimes.states.items())
    return tuple((int(days), re.compile(pattern, re.IGNORECASE)) for days, pattern in rows)


def _has_happened(text: str, today: date) -> bool:
    """Return whether a statement tells what arrived, was received or was signed today, and names no later day."""
    coming = [each for each in dated_phrases(text, today=today) if each.last >= today]
    is_today = bool(coming) and all(each.last == today and not each.is_deadline for each in coming)
    return is_today and _cues_of(text).happened.search(text) is not None


def _has_lasting_clause(text: str, today: date) -> bool:
    """Return whether a clause that names no day tells what lasts: "Mum lives in Otley and visits on 3 May"."""
    known = _cues_of(text)
    return any(_tells_what_lasts(each, known) for each in things_said(text) if not dated_phrases(each, today=today))


def _tells_what_lasts(clause: str, known: _Cues) -> bool:
    """Return whether a clause tells a home, a marriage, a relation, the value of a slot, what car somebody has, who
    with a title somebody is, or who has a job: "The plumber is Tom".
    """
    if not _NO_STATE.isdisjoint(cues(clause, languages_of(clause))):
        return False
    stems = topics(clause).all_stems
    is_state = not _LASTING_STATES.isdisjoint(stems) or bool(canonical(clause).slot) or _tells_a_relation(clause)
    return is_state or _names_car_or_person(clause, known, is_of_car="=car" in stems)


def _names_car_or_person(clause: str, known: _Cues, *, is_of_car: bool) -> bool:
    """Return whether a clause says by a name what car something is, or who somebody with a job or a title is."""
    words = clause.split()
    place = next((place for place, word in enumerate(words) if place and word.lower() in known.copulas), len(words))
    value = words[place + 1 :]
    if not any(word[0].isupper() for word in value):
        return False
    is_name = value[0].lower() in known.articles or value[0][0].isupper()
    has_job = (
        place > 0
        and _ELIDED.sub("", words[place - 1].lower()) in known.jobs
        and all(word[0].isupper() for word in value)
    )
    return (is_of_car and is_name) or has_job or bool(split_title(f"{value[0]} {_ANY_NAME}")[0])


def _tells_a_relation(text: str) -> bool:
    return any(each.is_told for each in stated_relations(text))


def gives_a_value(text: str) -> bool:
    """Return whether a statement says where somebody lives or works, who somebody's boss is, or something else that
    holds until it changes.
    """
    is_moved = "replaced" in cues(text, languages_of(text)) and not _LASTING_THINGS.isdisjoint(topics(text).all_stems)
    return is_moved or bool(canonical(text).slot) or _tells_a_relation(text)


def may_pass(text: str) -> bool:
    """Return whether nothing in a statement shows that it lasts, or names a date that cannot be read. What remains of a
    statement around a redacted secret says nothing about how long it holds.

    If its language is uncertain, as of a short text, signs in any language count.
    """
    if is_redacted(text):
        return False
    cues = _cues_of(text)
    is_known = cues.knows(text)
    lasting = (cues if is_known else _cues(all_languages())).lasting
    reads_dates = is_known and any(each.dates.table for each in cues.languages)
    return (reads_dates or not _MAYBE_DATE.search(text)) and not lasting.search(text)


def is_guarded(text: str) -> bool:
    """Return whether the words for what lasts and for what begins on a date are known in the language of a text."""
    cues = _cues_of(text)
    return (
        _LETTERS.search(text) is not None and any(each.lifetimes.begins for each in cues.languages) and cues.knows(text)
    )


def _passing_term(text: str, today: date) -> _Term | None:
    """Return how long a temporary statement is kept: until well after the last coming day that it may name."""
    coming = [each for each in dated_phrases(text, today=today, ahead=True) if each.last >= today]
    if any(each.is_open and (each.first - today).days > PASSING_DAYS for each in coming):
        return None
    if speaks_of_past(text) and not all(each.is_relative or each.is_arranged for each in coming):
        return None  # the day may be a past one
    last = max((each.last for each in coming if not each.is_open), default=None)
    return _Term(None, PASSING_DAYS) if last is None else _Term(last, _days_after(last, today))


def _dated_term(text: str, today: date) -> _Term | None:
    """Return how long a statement is kept after the coming day that it names."""
    if not any(each.lifetimes.begins for each in languages_of(text)):
        return None
    cues, is_past = _cues_of(text), speaks_of_past(text)
    is_of_today = len(text) <= _BRIEF_CHARS or speaks_of_themselves(text)
    is_known = cues.knows(text)
    phrases = [each for each in dated_phrases(text, today=today) if each.is_arranged or not is_past]
    phrases = [each for each in phrases if is_known or each.is_relative]
    coming = [each for each in phrases if _is_ahead(each, today) and (is_of_today or each.last > today)]
    last = max((each.last for each in coming if _is_occasion(each)), default=None)
    if last is None or cues.lasting.search(text) or cues.begins.search(_without_spans(text, coming)):
        return None
    return _Term(last, _days_after(last, today))


def _days_after(last: date, today: date) -> int:
    return min(max((last - today).days, PASSING_DAYS), _LONGEST_AFTER_DAYS)


def _cues_of(text: str) -> _Cues:
    languages = languages_of(text)
    return _cues(languages if _LATIN.search(text) else _others(languages))


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


KEPT = "expires"
"""The attribute of a fact that a person wants to keep for good: "never"."""


def expiring(node: Node, at: datetime | None) -> Node:
    """Return a fact with an explicit expiry; None keeps it for good, so that no estimate ends it later."""
    others = {name: value for name, value in node.attributes.items() if name != KEPT}
    return replace(node, expires_at=at, attributes={**others, KEPT: "never"} if at is None else others)


def lasting(node: Node) -> Node:
    """Return a fact without the lifetime that its words alone gave it, without a date: it changes what lasts, such as
    "I quit the gym", and would leave the older fact alone and true.
    """
    if node.expires_at is None or _passing_term(node.content, node.event_time.date()) != _Term(None, PASSING_DAYS):
        return node
    return expiring(node, None)


def is_kept(node: Node) -> bool:
    """Return whether a person wants to keep a fact for good."""
    return node.attributes.get(KEPT) == "never"


def passes_by_meaning(node: Node, likely: float, *, zone: ZoneInfo) -> bool:
    """Return whether a fact is temporary by its words and its meaning together, and nothing speaks against it: no date,
    no sign of what lasts, no wish to keep it.

    Args:
        likely: see `passing.likely_by_meaning`.
    """
    text = node.content
    if node.type != "semantic" or is_kept(node):
        return False
    if not passing.passes_by_meaning(text, likely, is_guarded=is_guarded(text)) or not may_pass(text):
        return False
    return _passing_term(text, local_time(to_ms(node.event_time), zone).date()) == _Term(None, PASSING_DAYS)


def retimed(new: Node, old: Node, *, at: datetime, zone: ZoneInfo) -> Node:
    """Return a changed fact with the dates and the lifetime of its new text, or of its new date. An explicit expiry is
    kept.

    Args:
        at: when the new text was stated.
    """
    known = old.attributes.get(DATES)
    if (new.content, new.event_time) == (old.content, old.event_time):
        lost = {name: old.attributes[name] for name in (DATES, KEPT) if name in old.attributes}
        return replace(new, attributes={**lost, **new.attributes}) if lost.keys() - new.attributes.keys() else new
    if known is not None and new.attributes.get(DATES) == known:
        new = replace(new, attributes={name: value for name, value in new.attributes.items() if name != DATES})
    if is_kept(old):
        new = replace(new, attributes={**new.attributes, KEPT: "never"})
    elif old.expires_at is None or has_lifetime(old, zone=zone):
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


def is_over(node: Node, *, zone: ZoneInfo) -> bool:
    """Return whether a new fact is about something that had already ended when it was learnt: "My sister is in Tokyo
    this week", said in 2019. What tells a change is not over: "I quit the gym yesterday"; a pregnancy is.
    """
    ends = _ends(node, zone, said=node.event_time)
    tells_change = says_change(node.content) and not _days_of_state(node.content)
    return node.expires_at is None and ends is not None and ends <= node.created_at and not tells_change


def _until(node: Node, zone: ZoneInfo, *, said_at: datetime | None = None) -> datetime | None:
    ends = _ends(node, zone, said=said_at or node.event_time)
    return ends if ends is not None and ends > node.created_at else None


def _ends(node: Node, zone: ZoneInfo, *, said: datetime) -> datetime | None:
    until = lifetime(node.content, said_at=to_ms(said), zone=zone)
    return None if until is None else from_ms(until) + max(timedelta(), node.valid_from - said)


def _dated(node: Node, said_at: datetime, zone: ZoneInfo) -> Json:
    found = resolved_dates(node.content, today=local_time(to_ms(said_at), zone).date())
    return {DATES: found, **node.attributes} if found and DATES not in node.attributes else node.attributes
