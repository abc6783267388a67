"""Until when something is to be kept, as people say it: for 2 weeks, until Friday, на две недели, до пятницы. Pure.

Where words leave it open, the later end is meant: what is kept a day too long harms nobody. Until a day is until it
is over; until something longer (March, next year) is until it begins. A date by itself is when it ends: its beginning.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from ricordo.errors import InvalidError
from ricordo.text.dates.calendar import Days, around, shift
from ricordo.text.dates.grammar import find_days
from ricordo.text.dates.vocabulary import UNITS, tokenize
from ricordo.text.dates.when import instant_of, local_time, midnight, parse_instant, read_iso

_ACCEPTED = "say for 2 weeks, until Friday, in 3 days, or give a date (2026-07-01) or an ISO 8601 time"
_CHARS, _WORDS = 200, 6
# A text says so where it begins; a pasted page must not cost more than a sentence.
_SCANNED_CHARS = 2_000
_ISO = re.compile(r"\s*[0-9]{4}(?:-?[0-9]{2}|\s*\Z)")

_SIDES = (
    ("before", r"before"),
    ("after", r"after|после"),
    ("through", r"through|thru|up to and including|по|вплоть до"),
    ("until", r"until|till|til|up to|by|to|до"),
    ("for", r"for|на"),
    ("in", r"in|within|через"),
    ("on", r"on|at|в|во"),
)
_SIDE = re.compile(
    "(?:" + "|".join(f"(?P<{name}>(?:{words})\\b)" for name, words in _SIDES) + r")?\s*(?P<rest>.*)", re.DOTALL
)
_IDIOMS = (
    (re.compile(r"\b(?:a )?fortnight\b"), "2 weeks"),
    (re.compile(r"\bhalf an hour\b|\bполчаса\b"), "30 minutes"),
    (re.compile(r"\bhalf a year\b"), "6 months"),
)
_CLOCK = re.compile(r"(?P<count>\S.*? )?(?P<unit>minutes?|mins?|min|hours?|hrs?|минут[аыу]?|час(?:а|ов)?)")
_SHORT = re.compile(r"(\d{1,4})\s*(d|w|mo|y|д|дн|нед|мес)\.?")
_SHORT_UNITS = {"d": 0, "w": 1, "mo": 2, "y": 3, "д": 0, "дн": 0, "нед": 1, "мес": 2}
_LONG = re.compile(r"h?n?(?P<count>[DNK])o?(?P<unit>[UZG])|h?(?P<one>[UG])|hn(?P<next>[UG])")
_END_OF = re.compile(
    r"(?:the )?end of (?P<en>the|this|next)? ?(?P<unit>day|week|month|quarter|year)"
    r"|конца (?P<ru>этого|этой|следующего|следующей)? ?(?P<единица>дня|недели|месяца|квартала|года)"
)
_END_UNITS = {
    "day": 0,
    "week": 1,
    "month": 2,
    "year": 3,
    "quarter": 4,
    "дня": 0,
    "недели": 1,
    "месяца": 2,
    "года": 3,
    "квартала": 4,
}
_NEXT = frozenset(("next", "следующего", "следующей"))
_WEEKEND = 5

_SAID = re.compile(
    r"(?:^|[.!?:;,(\[\n—–-]\s*|\byou to\s+)(?:please,?\s+|пожалуйста,?\s+)?(?:"
    r"(?:remember|memori[sz]e|keep (?:this |it )?in mind|note)(?: this| it| the following)?,?\s+"
    r"(?=for\b|until\b|till\b|through\b)"
    r"|forget (?:this|it|that) (?=in\b|after\b|on\b|tomorrow\b)"
    r"|(?:запомни|помни|держи в (?:уме|памяти)|имей в виду)(?:те)?(?: это| следующее)?,?\s+(?=на\b|до\b|по\b)"
    r"|забудь(?:те)? (?:это|об этом) (?=через\b|после\b|завтра\b)"
    r")(?P<until>[^.,:;!?()\[\]\n—–]{1,80})",
    re.IGNORECASE,
)


def parse_expiry(value: str | date | datetime, *, now: int, zone: ZoneInfo, field: str) -> int:
    """The instant until which something is to be kept, as Unix milliseconds UTC.

    Args:
        value: what `parse_instant` takes, or how long ("for 2 weeks", "3 hours"), or until when ("until Friday").
        now: Unix milliseconds; what relative phrases count from.
        zone: the user's.
        field: the name of the argument, for the message of an error.

    Raises:
        InvalidError: it names no time, or in words one that is over.
    """
    if not isinstance(value, str) or len(value) > _CHARS or _ISO.match(value):
        return parse_instant(value, now=now, zone=zone, field=field)
    try:
        found = _read(value, now=now, zone=zone)
        found = parse_instant(value, now=now, zone=zone, field=field) if found is None else found
    except InvalidError as error:
        raise InvalidError(error.message, hint=_ACCEPTED) from error
    except (ValueError, OverflowError) as error:
        raise InvalidError(f"{field}: {value[:80]!r} is not a time I can read", hint=_ACCEPTED) from error
    if found <= now:
        raise InvalidError(f"{field}: {value[:80]!r} is over already", hint=_ACCEPTED)
    return found


def stated_expiry(text: str, *, now: int, zone: ZoneInfo) -> int | None:
    """Until when a text itself asks to be kept ("Remember for 2 weeks: ..."), or None: when in doubt, None.

    Only where somebody speaks of remembering or forgetting: a visa that is valid until March is still one that was.
    """
    match = _SAID.search(text[:_SCANNED_CHARS])
    words = match["until"].split()[:_WORDS] if match else []
    for count in range(len(words), 0, -1):
        try:
            found = _read(" ".join(words[:count]), now=now, zone=zone)
        except (ValueError, OverflowError):
            continue
        if found is not None and found > now:
            return found
    return None


def _read(text: str, *, now: int, zone: ZoneInfo) -> int | None:
    """None: this grammar does not know the phrase. Raises ValueError or OverflowError outside the calendar."""
    phrase = " ".join(text.replace("_", " ").lower().split()).strip(" .!")
    for idiom, plain in _IDIOMS:
        phrase = idiom.sub(plain, phrase)
    match = _SIDE.fullmatch(phrase)
    if match is None:
        return None
    side, rest = match.lastgroup and next((name for name, _ in _SIDES if match[name]), ""), match["rest"]
    if side in ("", "for", "in") and (end := _after_a_while(rest, side, now=now, zone=zone)) is not None:
        return end
    return None if side == "for" else _at_a_time(rest, side or "", now=now, zone=zone)


def _after_a_while(rest: str, side: str | None, *, now: int, zone: ZoneInfo) -> int | None:
    """So long from now: by the clock for hours, by the calendar for days and more."""
    if clock := _CLOCK.fullmatch(rest):
        count = _number(clock["count"] or "a")
        of_unit = timedelta(minutes=count) if clock["unit"].startswith(("m", "мин")) else timedelta(hours=count)
        return now + of_unit // timedelta(milliseconds=1)
    here = local_time(now, zone)
    if short := _SHORT.fullmatch(rest):
        return _later(here, int(short[1]), _SHORT_UNITS[short[2]])
    tokens = tokenize(rest)
    match = _LONG.fullmatch("".join(token.kind for token in tokens))
    if match is None or (match["next"] and side != "for"):  # "next week" is a time, "for the next week" is how long
        return None
    name = next(name for name in ("unit", "one", "next") if match[name])
    unit = tokens[match.start(name)].value
    if unit == _WEEKEND:
        return None
    return _later(here, tokens[match.start("count")].value if match["count"] else 1, unit)


def _number(text: str) -> int:
    """Of units: 3, a, two, a couple of. Raises ValueError for what is no number."""
    kinds = {token.kind: token.value for token in tokenize(text) if token.kind not in "ho"}
    if len(kinds) > 1 or not kinds.keys() <= set("DNK"):
        raise ValueError(f"{text!r} is no number")
    return next(iter(kinds.values()), 1)


def _later(here: datetime, count: int, unit: int) -> int:
    return instant_of(datetime.combine(shift(here.date(), count, UNITS[unit]), here.timetz()))


def _at_a_time(rest: str, side: str, *, now: int, zone: ZoneInfo) -> int | None:
    today = local_time(now, zone).date()
    named = _end_of(rest, today) or read_iso(rest, zone) or _named(rest, today)
    if named is None:
        return None
    if isinstance(named, datetime):
        return instant_of(named)
    start = None if named.start is None else midnight(named.start, zone)
    end = None if named.end is None else midnight(named.end, zone)
    is_short = named.precision in ("day", "range")
    lasts = side in ("through", "after") or (side == "until" and is_short)
    first, other = (end, start) if lasts else (start, end)
    return first if first is not None and first > now else other


def _end_of(rest: str, today: date) -> Days | None:
    match = _END_OF.fullmatch(rest)
    if match is None:
        return None
    unit = UNITS[_END_UNITS[match["unit"] or match["единица"]]]
    steps = 1 if (match["en"] or match["ru"]) in _NEXT else 0
    span = around(shift(today, steps, unit), unit)
    return Days(start=span.end, end=span.end, precision="range")


def _named(rest: str, today: date) -> Days | None:
    for prefix in ("", "in ", "on "):
        if found := find_days(prefix + rest, today=today, whole=True, ahead=True):
            return found.days
    return None
