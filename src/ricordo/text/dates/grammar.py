"""Which words of a sentence name a time, and which days they mean. Pure; English and Russian.

The sentence becomes a line of kinds (see `time_words.py`) and the rules are regular expressions over that
line, tried in order; the first that matches and that nothing around it contradicts wins. A false date is
worse than none, so words that are also something else ("may", "march", "fall", "1984") need company to count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from ricordo.text.dates.calendar import Days
from ricordo.text.dates.points import (
    Point,
    Today,
    resolve,
    resolve_offset,
    resolve_range,
    resolve_rolling,
    resolve_through,
)
from ricordo.text.dates.vocabulary import Token, looks_ahead, mentions_time, speaks_of_habits, tokenize

_MONTH, _YEAR, _WHICH = "[MV]", "YG?", "[ltn]"
_DAY = rf"h?Do?h?{_MONTH}(?:[.,]?{_YEAR}|{_WHICH}G)?|{_MONTH}\.?h?D(?:,?{_YEAR})?"
_PART = "E-?o?h?"
_NAMED = "|".join(
    (
        rf"(?:{_PART})?{_MONTH}[.,]?o?(?:{_YEAR}|h?{_WHICH}[UG])",  # May 2023, early March of last year
        rf"So?h?(?:{_YEAR}|{_WHICH}[UG])",  # summer of 2022
        rf"{_WHICH}(?:[UGWS]|{_MONTH})",  # last week, next Friday, this summer
        r"R|lk",  # today, last night
        r"h?[DNK]o?[UGZ]a|h?[UG]a",  # 3 days ago, a couple of weeks ago, a year ago
        rf"{_PART}(?:{_MONTH}|{_YEAR})",  # early March, the end of 2022
    )
)
_POINT = rf"(?P<point>{_DAY}|{_NAMED}|I)"
_BARE = rf"(?P<point>{_DAY}|{_NAMED}|I|J|{_YEAR}|{_MONTH}|W)"
_SIDE = rf"{_DAY}|h?{_MONTH}(?:[.,]?{_YEAR})?|{_YEAR}|h?D|I|J|R|S{_YEAR}"

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("point", r"(?P<point>hU[be][ln]|h?U[be]R)"),  # the week before last, the day before yesterday
        ("offset", rf"h?(?P<count>[DNK]?)(?P<unit>[UZW])(?P<side>[be]){_BARE}"),  # two weeks before 5 May
        ("range", rf"w(?P<first>{_SIDE})&(?P<last>{_SIDE})"),
        ("range", rf"[fc](?P<first>{_SIDE})-(?P<last>{_SIDE})"),
        ("range", rf"(?P<first>h?D|{_MONTH})-(?P<last>h?D{_MONTH}(?:,?{_YEAR})?|{_MONTH},?{_YEAR})"),
        ("range", rf"(?P<first>{_MONTH}D)-(?P<last>D(?:,?{_YEAR})?)"),
        ("range", rf"i(?P<first>Y|{_MONTH})[-&](?P<last>{_YEAR}|{_MONTH}(?:[.,]?{_YEAR})?)"),
        ("rolling", r"[ij]?h?[lp](?P<count>[DNK])o?(?P<unit>[UZG])|(?:[ij]h?p|[ij]hl|tp)(?P<one>[UG])"),
        ("through", r"T(?P<count>[DNK]?)(?P<unit>[UZG])(?!e)"),
        ("since", rf"[sc]h?{_BARE}"),
        ("before", rf"b{_BARE}"),
        ("by", rf"u{_BARE}"),
        ("after", rf"e{_BARE}"),
        ("in", rf"ih?{_BARE}"),
        ("on", r"jh?(?P<point>W|U)"),
        ("point", _POINT),
    )
)
# Every rule needs one of these: a bare number is no time, and a bare "may" is a verb.
_ANCHOR = re.compile("[MWSUZGRYIJ]|lk|[iltnsbuecfEDoh&-]V|V[.,]?o?h?[DYltn&-]")
# "From Monday to Friday" is a habit more often than a date.
_HABIT = re.compile("W[-&]h?W")
# An "ago" after one of these is not as long ago as it says.
_LOOSE = frozenset(("half", "than", "over", "under", "полтора", "больше", "более", "меньше", "менее"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The days a text names, and where in it (character offsets)."""

    days: Days
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A match of a rule within its sentence."""

    rule: str
    tokens: list[Token]
    kinds: str
    first: int
    last: int  # the index after the match

    @property
    def before(self) -> Token | None:
        return self.tokens[self.first - 1] if self.first else None

    @property
    def after(self) -> Token | None:
        return self.tokens[self.last] if self.last < len(self.tokens) else None

    @property
    def matched(self) -> str:
        return self.kinds[self.first : self.last]

    @property
    def ends_clause(self) -> bool:
        return self.after is None or self.after.kind in '.,"&'


def find_days(text: str, *, today: date, whole: bool = False, ahead: bool = False) -> Found | None:
    """The first time a text names, or None. With `whole`, the text must be nothing but that time; with `ahead`, it is
    one to come.

    Raises:
        ValueError, OverflowError: the time lies outside the years 1 to 9999.
    """
    if not mentions_time(text):
        return None
    tokens = tokenize(text)
    kinds = "".join(token.kind for token in tokens)
    if _ANCHOR.search(kinds) is None or _HABIT.search(kinds):
        return None
    now = Today(date=today, is_ahead=ahead or looks_ahead(tokens))
    for rule, pattern in _RULES:
        for match in pattern.finditer(kinds):
            place = _Place(rule=rule, tokens=tokens, kinds=kinds, first=match.start(), last=match.end())
            if (whole and place.matched != kinds.rstrip(".")) or not _is_safe(place):
                continue
            if days := _days(rule, match, tokens, now):
                return Found(days=days, start=tokens[place.first].start, end=tokens[place.last - 1].end)
    return None


def _days(rule: str, match: re.Match[str], tokens: list[Token], today: Today) -> Days | None:
    def part(name: str) -> Point:
        start, end = match.span(name)
        return Point.of(tokens[start:end])

    match rule:
        case "range":
            return resolve_range(part("first"), part("last"), today)
        case "rolling":
            return resolve_rolling(
                part("count") if match["count"] else None, part("one" if match["one"] else "unit"), today
            )
        case "through":
            return resolve_through(part("count") if match["count"] else None, part("unit"), today)
    days = resolve(part("point"), today)
    if days is None:
        return None
    match rule:
        case "offset":
            count = part("count").count or 1
            return resolve_offset(days, part("unit"), -count if match["side"] == "b" else count)
        case "by":
            return Days(start=None, end=days.end, precision="range")
        case "since":
            return Days(start=days.start, end=None, precision="range")
        case "before":
            return Days(start=None, end=days.start, precision="range")
        case "after":
            return Days(start=days.end, end=None, precision="range")
    return days


def _is_safe(place: _Place) -> bool:
    return not (
        _is_owned_or_habitual(place)
        or _is_a_title(place)
        or _is_loose(place)
        or _is_a_verb_or_name(place)
        or _is_a_count(place)
    )


def _is_owned_or_habitual(place: _Place) -> bool:
    """My last fall; usually on Friday; on Friday nights; the last week of something."""
    before, after = place.before, place.after
    if "H" in place.kinds and place.matched[-1] == "W" and place.matched[0] in "ij":
        return True
    if before and (before.kind == "H" or (before.kind == "P" and place.matched[0] in "ltnSV")):
        return True
    return after is not None and (after.kind == "H" or (after.kind == "o" and place.matched[-1] in "UGZ"))


def _is_a_title(place: _Place) -> bool:
    """A song called "Yesterday", USA Today; a character in 1984."""
    before, after, tokens = place.before, place.after, place.tokens
    if before and after and before.kind == after.kind == '"':
        return True
    word = tokens[place.first].text
    if place.matched == "R" and word[0].isupper() and before and before.kind != ".":
        return not (word.isupper() and before.text.isupper())
    return place.matched in ("iY", "bY", "uY", "eY", "sY") and "B" in place.kinds


def _is_loose(place: _Place) -> bool:
    """More than a year ago; a day last, this or next (no calendar unit); a bare unit that is no weekend of its own."""
    tokens = place.tokens[place.first : place.last]
    if place.matched.endswith("a") and place.before and place.before.text.lower() in _LOOSE:
        return True
    if place.rule == "on" and tokens[-1].kind == "U":
        # Plans for the weekend are not what was done at it.
        is_ahead = tokens[0].text.lower() == "for" or tokens[-1].text.lower() == "выходные"
        return tokens[-1].value != 5 or is_ahead or speaks_of_habits(place.tokens)
    has_count = any(token.kind in "DNKTa" for token in tokens)
    return not has_count and any(t.kind == "U" and t.value == 0 for t in tokens) and "R" not in place.matched


def _is_a_verb_or_name(place: _Place) -> bool:
    """You may, they march, since June moved in: a month that nothing around it makes a month."""
    matched, after = place.matched, place.after
    if "Y" in matched or "G" in matched or not re.search(_MONTH, matched) or place.rule == "range":
        return False
    if matched[-1] in "MV" and matched[0] in "sbeu" and "D" not in matched:
        return not place.ends_clause
    if "V" not in matched or re.match(rf"ih?(?:{_PART})?V", matched):
        return False
    if after is not None and after.kind == "m":
        return True
    return not _is_written_as_month(place)


def _is_written_as_month(place: _Place) -> bool:
    before, tokens = place.before, place.tokens[place.first : place.last]
    if "D" in place.matched and (place.rule != "point" or (before is not None and before.kind in "jsfi")):
        return True
    if place.matched.endswith("D"):  # "May 3 people come" begins a sentence as "May 3" would
        return tokens[-1].is_ordinal or (place.ends_clause and before is not None and before.kind != ".")
    month = next(token for token in tokens if token.kind == "V")
    return place.ends_clause or month.text[0].isupper()


def _is_a_count(place: _Place) -> bool:
    """In 2000 steps; in June 12 people came."""
    matched, after = place.matched, place.after
    if after is None:
        return False
    if matched[-1] == "Y" and not re.search("[MVSE]", matched):
        return after.kind in "xuhBDNKMVWUZm"
    if place.rule == "point" and re.fullmatch("h?DV", matched):  # 5 May Street
        return after.kind in "xm" and not (place.before and place.before.kind == "j")
    if re.search(r"[MV]\.?D$", matched) and not place.tokens[place.last - 1].is_ordinal:
        return after.kind in "xKNDUZ" and not (place.before and place.before.kind == "j")
    return False
