"""Find the words of a sentence that name a time, and the days they refer to. Pure.

A sentence is converted to a string of kinds, one letter per word, by the tables of its languages. The rules are regular
expressions over that string, tried in order. The first match that its surroundings do not contradict wins. All
languages share the rules. A false date is worse than none, so words with another meaning ("may", "march", "fall",
"1984") count only in company. The kinds:
 M month    V month that is also another word (may, march)    W weekday    S season (value: first month)
 U unit, singular  Z unit, plural only  G unit "year" in Russian     R day by distance from today
 D number 1-31     N other number       K number word  Y year        I ISO day    J ISO month
 l last  t this  n next  L last, this or next after its unit (-1, 0, 1)  p past (rolling)
 a ago  A ago before its unit  T through ("in a week's time")  E third of a month
 i in   j on, over, for   s since   z since, with verbs at the end of a clause   c Russian "s" (since, from, with)
 f from   O English "from", also where no end follows   b before   u by, until
 q until, also between the ends of a range   e after   w between   & and   - to
 o of   h article   k part of a day   P possessive   H habit (1 weekly, 2 each)   B of a story
 , comma   . end of a clause   " quotation mark   m word that can follow the verb "may"
 y word that can follow a year   x any other word
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from ricordo.text.dates.calendar import (
    UNITS,
    Days,
    Point,
    Today,
    around,
    one_day,
    resolve,
    resolve_numbered,
    resolve_offset,
    resolve_range,
    resolve_rolling,
    resolve_through,
    shift,
)
from ricordo.text.languages import NEVER, LanguageSet, Lexicon, cached, languages_of, list_of, pattern_of, words_of


class Token(NamedTuple):  # not a dataclass: a sentence has dozens of tokens, and these are created four times as fast
    """A word or punctuation mark: its kind, its number (see the table), its span, and its text."""

    kind: str
    value: int
    start: int
    end: int
    text: str
    is_ordinal: bool = False


_ANCHORS = "MVWSUZGRk"
_STEM_OF_A_WEEKDAY = 4
"""What "montags" has in common with "montag", in characters; "monatlich" has less."""

# Digits inside something longer (a version, a price, an address, a file name) are one ordinary word.
_TOKEN = r"""(?P<skip>(?:https?://|www\.)\S+|(?<!\S)\S+@\S+)
      | (?P<iso>(?<![\w/.-])\d{4}[-/]\d{2}[-/]\d{2}(?![\w/-]|\.\w))
      | (?P<dotted>(?<![\w/.-])\d{1,2}\.\d{1,2}\.\d{4}(?![\w/-]|\.\w))
      | (?P<month>(?<![\w/.-])\d{4}-\d{2}(?![\w/-]|\.\w))
      <NUMERIC>
      | (?P<compound>(?<![\w$€£₽#])[\w$€£₽#]*\d(?:[.,:/_]\w+)+|[$€£₽#]\d+|\d+[%$€£₽])
      | (?P<number>\d+)(?P<ordinal><ORDINALS>)?(?!\w)
      <PHRASES>
      | (?P<word>[^\W_]+(?:['’][^\W_]+)?)
      | (?P<mark>[.,!?;:"'«»“”()\[\]\-–—\n])"""
_WEEKDAY = re.compile(r"[^\W\d_]+(?:-feira)?")
_FIGURES_OF = {"<D>": r"(?:0?[1-9]|[12]\d|3[01])", "<M>": r"(?:0?[1-9]|1[0-2])", "<Y>": r"(?:(?:19|20)?\d\d)"}
"""The figures of a day, a month and a year in `Dates.numeric`."""
_MARKS = {",": ",", "-": "-", "–": "-", "—": "-"} | dict.fromkeys(".!?;:\n()[]", ".") | dict.fromkeys("\"'«»“”", '"')


class Vocabulary(Lexicon):
    """The time words of some languages."""

    future = words_of(lambda each: each.dates.future)
    future_endings = list_of(lambda each: each.dates.future_endings)
    past = words_of(lambda each: each.dates.past)
    present = words_of(lambda each: each.dates.present)
    now = words_of(lambda each: each.dates.now)
    indefinite = words_of(lambda each: each.statements.indefinite)
    planned = words_of(lambda each: each.dates.planned)
    mornings = words_of(lambda each: each.dates.mornings)
    hours = words_of(lambda each: each.dates.hours)
    each_week = words_of(lambda each: each.dates.each_week)
    loose = words_of(lambda each: each.dates.loose)
    year_neighbours = words_of(lambda each: each.dates.year_neighbours)
    states = words_of(lambda each: (word for words in each.change.same.values() for word in words))

    @cached_property
    def has_bare_years(self) -> bool:
        """Whether a year in a question about the past needs no preposition."""
        return any(each.dates.bare_years for each in self.languages)

    @cached_property
    def _single(self) -> dict[str, tuple[str, int]]:
        """The kind and number of each word. A word listed twice keeps its first meaning."""
        found: dict[str, tuple[str, int]] = {}
        for language in self.languages:
            for line in language.dates.table.strip().splitlines():
                kind, value, *forms = line.split()
                for form in forms:
                    found.setdefault(form, (kind, int(value)))
        return found

    @cached_property
    def _phrases(self) -> dict[str, tuple[str, int]]:
        phrases = self.languages.mapping(lambda each: each.dates.phrases)
        return {phrase: (meaning.split()[0], int(meaning.split()[1])) for phrase, meaning in phrases.items()}

    @cached_property
    def words(self) -> dict[str, tuple[str, int]]:
        """The kind and number of each word and phrase."""
        return self._single | self._phrases

    @cached_property
    def weekdays(self) -> dict[str, int]:
        """The weekday that each word names, 0 for Monday, also for every week: "monday", "mondays", "dienstags"."""
        days = {word: value for word, (kind, value) in self.words.items() if kind == "W"}
        stems = {word[:_STEM_OF_A_WEEKDAY]: value for word, value in days.items() if len(word) >= _STEM_OF_A_WEEKDAY}
        habits = (word for word, (kind, _) in self.words.items() if kind == "H")
        return days | {word: stems[stem] for word in habits if (stem := word[:_STEM_OF_A_WEEKDAY]) in stems}

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """A preposition before a month and one before a day, each with a blank after it."""
        firsts = (next((word for word, (kind, _) in self._single.items() if kind == wanted), "") for wanted in "ij")
        return tuple(f"{word} " for word in firsts if word)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """Every phrase of time has one of these words or digits; all other words only qualify them."""
        anchors = [word for word, (kind, _) in self.words.items() if kind in _ANCHORS]
        return frozenset(anchors).union(max(_WORD.findall(each), key=len) for each in anchors)  # "aujourd", "hui"

    @cached_property
    def times(self) -> frozenset[str]:
        """The anchors, and the words for a weekday of every week."""
        return self.anchors.union(word for word, meaning in self._single.items() if meaning == ("H", _ALONE))

    @cached_property
    def token(self) -> re.Pattern[str]:
        ordinals = "|".join(self.languages.in_order(lambda each: each.dates.ordinals))
        alternatives = "|".join(re.escape(each) for each in sorted(self._phrases, key=len, reverse=True))
        phrases = rf"| (?P<phrase>\b(?i:{alternatives})\b)" if alternatives else ""
        numeric = f"| (?P<numeric>{self._numeric.replace(' ', '[ ]')})" if self._numeric else ""
        parts = {"<ORDINALS>": ordinals, "<PHRASES>": phrases, "<NUMERIC>": numeric}
        pattern = _TOKEN
        for mark, part in parts.items():
            pattern = pattern.replace(mark, part)
        return re.compile(pattern, re.VERBOSE)

    @cached_property
    def _numeric(self) -> str:
        """The pattern of a date in figures, as these languages write it; "" if none has a form."""
        form = "|".join(self.languages.in_order(lambda each: each.dates.numeric))
        for mark, part in _FIGURES_OF.items():
            form = form.replace(mark, part)
        return rf"(?<![\w/.])(?:{form})(?![\w/]|[.,:]\w|-\d{{3}})" if form else ""

    weekday_lists = pattern_of(lambda each: each.dates.weekday_lists, r"\b(?:{})\b", flags=re.IGNORECASE)

    since = pattern_of(lambda each: each.dates.since, r"(?:{})\b", flags=re.IGNORECASE)
    since_or_from = pattern_of(lambda each: each.dates.since_or_from, r"(?:{})\b", flags=re.IGNORECASE)

    @cached_property
    def numeric(self) -> re.Pattern[str]:
        return re.compile(self._numeric or NEVER)


vocabulary = cached()(Vocabulary)


# A year, a date from its year on, or one up to its year. Begins with a digit, so that the search skips to digits.
_FIGURES = re.compile(r"\d(?:(?<=1)9\d\d|(?<=2)0\d\d|\d{3}[-/]\d\d|\.\d\d?\.\d{4})")
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_CENTURY = 2_000
"""Of a year in two figures."""


def mentions_time(text: str, *, languages: LanguageSet | None = None) -> bool:
    """Return whether a text may contain a time. A cheap check before the grammar."""
    words = vocabulary(languages_of(text) if languages is None else languages)
    is_named = not words.anchors.isdisjoint(_WORD.findall(text.lower())) or holds_year(text)
    return is_named or words.numeric.search(text) is not None


def holds_year(text: str) -> bool:
    """Return whether digits in a text may be a year or a date."""
    return _FIGURES.search(text) is not None


def names_time(words: Iterable[str], languages: LanguageSet) -> bool:
    """Return whether one of some lower-case words may name a time."""
    return not vocabulary(languages).anchors.isdisjoint(words)


def weekdays_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the beginning and end of each name of a weekday, and which it is, 0 for Monday."""
    weekdays = vocabulary(languages_of(text)).weekdays
    for found in _WEEKDAY.finditer(text):
        if (day := weekdays.get(found[0].lower())) is not None:
            yield *found.span(), day


def looks_ahead(tokens: list[Token], words: Vocabulary) -> bool:
    """Return whether the sentence is about the future, so that "on Friday" is the coming Friday."""
    said = {token.text.lower() for token in tokens}
    ahead = not words.future.isdisjoint(said) or any(word.endswith(words.future_endings) for word in said)
    return ahead and words.past.isdisjoint(said)


def speaks_of_habits(tokens: list[Token], words: Vocabulary) -> bool:
    """Return whether the sentence asks about a habit: "what does she do at the weekend?"."""
    said = {token.text.lower() for token in tokens}
    return not words.present.isdisjoint(said) and words.past.isdisjoint(said) and words.future.isdisjoint(said)


def tokenize(text: str, languages: LanguageSet) -> list[Token]:
    """Return the words and punctuation marks of a text, in order. Never raises."""
    words = vocabulary(languages)
    return [
        token
        for match in words.token.finditer(text)
        for token in (_numeric_date(match) if match.lastgroup == "numeric" else (_token(match, words),))
    ]


def _numeric_date(match: re.Match[str]) -> Iterator[Token]:
    """Yield the day, the month and, if given, the year of a date in figures, which end where the next begins."""
    found = list(_DIGITS.finditer(match[0]))
    ends = [*(each.start() for each in found[1:]), len(match[0])]
    for kind, each, end in zip("DMY", found, ends, strict=False):
        value = int(each[0]) + (_CENTURY if kind == "Y" and len(each[0]) == 2 else 0)
        yield Token(kind, value, match.start() + each.start(), match.start() + end, match[0][each.start() : end])


def _token(match: re.Match[str], words: Vocabulary) -> Token:
    text, (start, end) = match[0], match.span()
    if match.lastgroup in ("word", "phrase"):  # the most frequent case
        return Token(*words.words.get(text.lower().replace("’", "'"), ("x", 0)), start, end, text)
    match match.lastgroup:
        case "iso" | "dotted" | "month":
            kind, value = _written_date(text, match.lastgroup)
        case "number" | "ordinal":
            kind, value = _number(match["number"], is_ordinal=bool(match["ordinal"]))
        case "mark":
            kind, value = _MARKS[text], 0
        case _:
            kind, value = "x", 0
    return Token(kind, value, start, end, text, is_ordinal=bool(match["ordinal"]))


def _number(digits: str, *, is_ordinal: bool) -> tuple[str, int]:
    if len(digits) > 4 or not digits.isascii():
        return "x", 0
    value = int(digits)
    if 1 <= value <= 31:
        return "D", value
    if len(digits) == 4 and 1900 <= value < 2100 and not is_ordinal:
        return "Y", value
    return ("N", value) if 0 < value < 1000 and not is_ordinal else ("x", 0)


def _written_date(text: str, form: str) -> tuple[str, int]:
    try:
        numbers = [int(part) for part in re.split(r"[-/.]", text)]
        if form == "month":
            return "J", date(numbers[0], numbers[1], 1).toordinal()
        year, month, day = numbers if form == "iso" else reversed(numbers)
        return "I", date(year, month, day).toordinal()
    except ValueError:
        return "x", 0


# ---- rules

_MONTH, _YEAR, _WHICH = "[MV]", "YG?", "[ltnL]"
_DAY = rf"h?Do?h?{_MONTH}(?:[.,]?o?{_YEAR}|{_WHICH}G)?|{_MONTH}\.?h?D(?:,?{_YEAR})?"
_PART = "E-?o?h?"
_NAMED = "|".join(
    (
        rf"(?:{_PART})?{_MONTH}[.,]?o?(?:{_YEAR}|h?{_WHICH}[UG])",  # May 2023, early March of last year
        rf"So?h?(?:{_YEAR}|{_WHICH}[UG])",  # summer of 2022
        rf"{_WHICH}(?:[UGWS]|{_MONTH})",  # last week, next Friday, this summer
        rf"h?(?:[UGWS]|{_MONTH})L",  # the week last, as French and Spanish say it
        r"R|lk",  # today, last night
        r"h?[DNK]o?[UGZ]a|h?[UG]a",  # 3 days ago, a couple of weeks ago, a year ago
        r"A(?:[DNK]o?[UGZ]|h?[UG])",  # vor 3 Tagen, il y a un mois
        rf"{_PART}(?:{_MONTH}|{_YEAR})",  # early March, the end of 2022
    )
)
_POINT = rf"(?P<point>{_DAY}|{_NAMED}|I)"
_BARE = rf"(?P<point>{_DAY}|{_NAMED}|I|J|{_YEAR}|{_MONTH}|W)"
_SIDE = rf"{_DAY}|h?{_MONTH}(?:[.,]?{_YEAR})?|{_YEAR}|h?D|I|J|R|S{_YEAR}"

_Rules = tuple[tuple[str, re.Pattern[str]], ...]

_RULES: _Rules = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "point",
            r"[ij]?h?(?P<point>W[oij]?h?(?:[ltnL]U|UL))",
        ),  # Wednesday next week, mercredi de la semaine prochaine
        ("point", r"[ij]?h?(?P<point>(?:[ltnL]U|UL),?[ij]?h?W)"),  # nächste Woche am Mittwoch
        ("numbered", rf"[ij]?h?(?P<point>W(?:,?h)?,?D)(?!\.?o?h?{_MONTH}|[-q&]h?D)"),  # Friday 18, Freitag, den 18.
        ("numbered", r"h(?P<point>D,h?W)"),  # the 16th, a Wednesday
        ("point", r"(?P<point>hU[be][ln]|h?U[be]R)"),  # the week before last, the day before yesterday
        ("offset", rf"h?(?P<count>[DNK]?)(?P<unit>[UZW])(?P<side>[be]){_BARE}"),  # two weeks before 5 May
        ("range", rf"w(?P<first>{_SIDE})&(?P<last>{_SIDE})"),
        ("range", rf"[fcO](?P<first>{_SIDE})[-q](?P<last>{_SIDE})"),
        ("range", rf"(?P<first>h?D|{_MONTH})-(?P<last>h?D{_MONTH}(?:,?{_YEAR})?|{_MONTH},?{_YEAR})"),
        ("range", rf"(?P<first>{_MONTH}D)-(?P<last>D(?:,?{_YEAR})?)"),
        ("range", rf"i(?P<first>Y|{_MONTH})[-&](?P<last>{_YEAR}|{_MONTH}(?:[.,]?{_YEAR})?)"),
        ("rolling", r"[ij]?h?[lp](?P<count>[DNK])o?(?P<unit>[UZG])|(?:[ij]h?p|[ij]hl|tp)(?P<one>[UG])"),
        ("through", r"T(?P<count>[DNK]?)(?P<unit>[UZG])(?!e)"),
        ("since", rf"[sczO]h?{_BARE}"),
        ("before", rf"[bA]{_BARE}"),
        ("by", rf"(?:u|qh?){_BARE}"),
        ("after", rf"e{_BARE}"),
        ("in", rf"ih?{_BARE}"),
        ("on", r"jh?(?P<point>W|U)"),
        ("point", _POINT),
    )
)
# In a question, a year without a preposition may be a time: "our 2018 trip to Italy", "Wo waren wir 2021 im Urlaub?".
_ASKED_RULES: _Rules = (*_RULES, ("year", re.compile("(?P<point>Y)")))
# Every rule needs one of these: a bare number is not a time, and a bare "may" is a verb.
_ANCHOR = re.compile("[MWSUZGRYIJ]|lk|[iltnsbuecfOEDohAqz&-]V|V[.,]?o?h?[DYltn&-]")
_ALONE, _WITH_A_PERIOD = 1, 2  # values of habits
_ENDS_OF_SENTENCES = frozenset(".!?\n")
# "From Monday to Friday", "mardi jeudi" is a habit more often than a date.
_HABIT = re.compile("W[-&]?h?W")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The days that a text names, the span of the words (character offsets), and their kinds.

    `named` is the time in the words: in "before Friday", that Friday. `is_clear`: the words say whether the time has
    come or is to come; "da lunedì" alone does not.
    """

    days: Days
    start: int
    end: int
    kinds: str = ""
    named: Days | None = None
    is_clear: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    """A match of a rule within its sentence."""

    rule: str
    words: Vocabulary
    tokens: list[Token]
    kinds: str
    first: int
    last: int  # exclusive

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
    def sentence(self) -> list[Token]:
        ends = [each for each, token in enumerate(self.tokens) if token.text in _ENDS_OF_SENTENCES]
        first = max((each for each in ends if each < self.first), default=-1)
        last = min((each for each in ends if each >= self.last), default=len(self.tokens))
        return self.tokens[first + 1 : last]

    @property
    def ends_clause(self) -> bool:
        return self.after is None or self.after.kind in '.,"&'


def find_days(
    text: str, *, today: date, whole: bool = False, ahead: bool = False, languages: LanguageSet | None = None
) -> Found | None:
    """Return the first date or time mentioned in a text, or None.

    Args:
        whole: require the text to be nothing but that time.
        ahead: the time is in the future.
        languages: the languages of the text; detected with `languages_of` by default.

    Raises:
        ValueError, OverflowError: the time lies outside the years 1 to 9999.
    """
    languages = languages_of(text) if languages is None else languages
    tokens, words = _tokens_of_time(text, languages), vocabulary(languages)
    now = Today(date=today, is_ahead=ahead or looks_ahead(tokens, words))
    for match, found in _matches(_RULES if whole else _ASKED_RULES, tokens, words):
        if whole and match.matched != match.kinds.rstrip("."):
            continue
        if days := _days(match.rule, found, tokens, now):
            return Found(days=days, start=tokens[match.first].start, end=tokens[match.last - 1].end)
    return None


def _tokens_of_time(text: str, languages: LanguageSet) -> list[Token]:
    """Return the words and punctuation marks of a text; none if it cannot name a time."""
    if not mentions_time(text, languages=languages):
        return []
    text = vocabulary(languages).weekday_lists.sub(lambda found: " " * len(found.group()), text)
    tokens = tokenize(text, languages)
    kinds = "".join(token.kind for token in tokens)
    return tokens if _ANCHOR.search(kinds) and not _HABIT.search(kinds) else []


def _matches(rules: _Rules, tokens: list[Token], words: Vocabulary) -> Iterator[tuple[_Match, re.Match[str]]]:
    """Yield the matches that their surroundings do not contradict, rule by rule."""
    kinds = "".join(token.kind for token in tokens)
    for rule, pattern in rules if kinds else ():
        for found in pattern.finditer(kinds):
            match = _Match(rule=rule, words=words, tokens=tokens, kinds=kinds, first=found.start(), last=found.end())
            if _is_safe(match):
                yield match, found


# Further rules for statements: "in two weeks" counts forward, and a bare weekday may be the day of an appointment.
_STATED_RULES: _Rules = (
    ("forward", re.compile(r"[iw](?:(?P<count>[DNK])|(?P<one>h))o?(?P<unit>[UZG])(?![ae&])")),
    ("forward", re.compile(r"(?:(?P<count>[DNK])|(?P<one>h))(?P<unit>[UZ])f(?:R|x)")),
    *_RULES,
    ("weekday", re.compile(r"(?P<point>W)(?=$|[.,&jkDix])")),
    ("year", re.compile("(?P<point>Y)")),
)
RELATIVE_KINDS = frozenset("RltnLpaATWF")
"""The kinds of words whose date depends on the day of the statement. F is a date that counts forward."""


def find_all_days(text: str, *, today: date, ahead: bool, languages: LanguageSet | None = None) -> list[Found]:
    """Return all dates and times mentioned in a statement, in order. Impossible dates are skipped. Never raises.

    Args:
        ahead: a weekday, or a date without a year, is the coming one.
        languages: the languages of the statement; detected with `languages_of` by default.
    """
    languages = languages_of(text) if languages is None else languages
    tokens, words = _tokens_of_time(text, languages), vocabulary(languages)
    taken: set[int] = set()
    all_found = []
    for match, found in _matches(_STATED_RULES, tokens, words):
        places, rule = range(match.first, match.last), match.rule
        begun = _has_begun(text, match) if ahead and rule == "since" else False
        now = Today(date=today, is_ahead=ahead and begun is not True)
        if not taken.isdisjoint(places) or not _is_safely_stated(match, found, ahead=ahead):
            continue
        try:
            days = _forward(found, tokens, today) if rule == "forward" else _days(rule, found, tokens, now)
            named = _days("point", found, tokens, now) if rule in _ONE_SIDED else days
        except (ValueError, OverflowError):  # 31 February, or past the calendar's end
            continue
        if rule == "numbered" and days is None and not _is_bare_number(found, tokens):
            taken.update(places)
        if days is not None:
            taken.update(places)
            start, end = tokens[match.first].start, tokens[match.last - 1].end
            known = match.matched + ("F" if rule == "forward" else "")
            is_clear = begun is not None or "W" not in known
            all_found.append(Found(days=days, start=start, end=end, kinds=known, named=named, is_clear=is_clear))
    return sorted(all_found, key=lambda each: each.start)


def _has_begun(text: str, match: _Match) -> bool | None:
    """Return whether what holds "since" a time holds already, and not "from" then on; None if the words may mean both:
    "da lunedì", "с понедельника".
    """
    start, words = match.tokens[match.first].start, match.words
    may_be_to_come = words.since_or_from.match(text, start) is not None
    if may_be_to_come and looks_ahead(match.sentence, words):
        return False
    if words.since.match(text, start):
        return True
    return None if may_be_to_come else False


# "Friday 9" is the ninth if a Friday soon is; otherwise 9 is an hour, or a count of something. "Friday the 9th" is no
# other Friday: people name a day like that for a few weeks, and sometimes the wrong one.
_HOURS = 24
_WEEKS_OF_A_BARE_NUMBER = 5
_WEEKS_OF_AN_ORDINAL = 9
_WORDS_TO_AN_HOUR, _SHORT_WORD = 3, 4  # "a las 10"
_ONE_SIDED = frozenset(("by", "since", "before", "after"))


def _is_safely_stated(match: _Match, found: re.Match[str], *, ahead: bool) -> bool:
    """Accept "in a week", but neither "in the week" nor "a week from the shop"; accept "Dentist Friday 10am"."""
    tokens = match.tokens
    if match.rule == "weekday":
        return match.after is None or match.after.kind != "x" or _goes_on_with_an_hour(match)
    if match.rule != "forward":
        return True
    if found["one"] and tokens[found.start("one")].text.lower() not in match.words.indefinite:
        return False
    is_now = match.matched[-1] != "x" or tokens[match.last - 1].text.lower() in match.words.now
    return ahead and is_now


def _goes_on_with_an_hour(match: _Match) -> bool:
    """Return whether a weekday is followed by "10am", by "at 9" or "a las 10", or by a verb in the future."""
    following = match.tokens[match.last : match.last + _WORDS_TO_AN_HOUR]
    words = list(takewhile(lambda token: token.text.isalpha() and len(token.text) <= _SHORT_WORD, following))
    is_hour = len(words) < len(following) and following[len(words)].text[0].isdigit()
    return is_hour or following[0].text.lower() in match.words.future


def _forward(found: re.Match[str], tokens: list[Token], today: date) -> Days:
    """Return the day, month or year the given number of units from today."""
    count = tokens[found.start("count")].value if found["count"] else 1
    unit = UNITS[tokens[found.start("unit")].value]
    day = shift(today, count, unit)
    return around(day, unit) if unit in ("month", "year", "weekend") else one_day(day)


def _days(rule: str, match: re.Match[str], tokens: list[Token], today: Today) -> Days | None:
    def part(name: str) -> Point:
        start, end = match.span(name)
        return Point.of([(token.kind, token.value) for token in tokens[start:end]])

    count = (part("count").count or 1) if match.groupdict().get("count") else 1
    match rule:
        case "range":
            return resolve_range(part("first"), part("last"), today)
        case "rolling":
            unit = part("one" if match["one"] else "unit")
            return resolve_rolling(count if match["count"] else None, unit, today)
        case "through":
            return resolve_through(count, part("unit"), today)
    if rule == "numbered":
        is_bare = _is_bare_number(match, tokens)
        return resolve_numbered(
            part("point"), today, weeks=_WEEKS_OF_A_BARE_NUMBER if is_bare else _WEEKS_OF_AN_ORDINAL
        )
    days = resolve(part("point"), today)
    if days is not None and rule == "offset":
        return resolve_offset(days, part("unit"), -count if match["side"] == "b" else count)
    if days is None or rule not in _ONE_SIDED:
        return days
    sides = {
        "by": (None, days.end),
        "since": (days.start, None),
        "before": (None, days.start),
        "after": (days.end, None),
    }
    start, end = sides[rule]
    return Days(start=start, end=end, precision="range")


def _is_bare_number(match: re.Match[str], tokens: list[Token]) -> bool:
    """Return whether a weekday is followed by a number that may also be an hour: "Friday 9"."""
    last = tokens[match.end("point") - 1]
    return match["point"] == "WD" and not last.is_ordinal and last.value <= _HOURS


def _is_safe(match: _Match) -> bool:
    if match.rule == "year":
        return _is_a_year(match)
    if match.rule == "numbered":  # not "Friday 18 Uhr"
        return match.after is None or match.after.text.lower() not in match.words.hours
    doubts = (
        _is_a_morning,
        _is_each_week,
        _is_owned_or_habitual,
        _is_a_title,
        _is_loose,
        _is_a_verb_or_name,
        _is_an_origin,
        _is_a_count,
    )
    return not any(doubt(match) for doubt in doubts)


def _is_a_year(match: _Match) -> bool:
    """Accept a number next to an occasion, or in a question about the past if the language has years without a
    preposition, unless a noun or a unit follows: "2000 Euro".
    """
    beside = [each for each in (match.before, match.after) if each is not None]
    if any(each.kind in '-"' or each.text == ":" for each in beside):
        return False
    if any(each.text.lower() in match.words.year_neighbours for each in beside):
        return True
    after, said = match.after, {each.text.lower() for each in match.tokens}
    if after is not None and (after.kind in "UZMNK" or (after.kind == "x" and after.text[0].isupper())):
        return False
    return match.words.has_bare_years and not match.words.past.isdisjoint(said)


def _is_a_morning(match: _Match) -> bool:
    """Reject the part of a day where "tomorrow" is also the word for morning: "por la mañana", "salgo de mañana", but
    not "la reunión de mañana".
    """
    if match.tokens[match.last - 1].text.lower() not in match.words.mornings:
        return False
    before, after = match.kinds[: match.last - 1], match.kinds[match.last :]
    return re.search(r"[htHK]$|(?<!h)(?<![hP].)o$", before) is not None or re.match("&?k", after) is not None


def _is_each_week(match: _Match) -> bool:
    """Reject a weekday that comes every week: "los lunes", "weekly by Friday noon", "by Monday, every week"."""
    if re.fullmatch("[ijuqbe]?h?W", match.matched) is None:
        return False
    if match.tokens[match.last - 2 if match.last > 1 else 0].text.lower() in match.words.each_week:
        return True
    said = match.sentence
    habits = [each for each, token in enumerate(said) if token.kind == "H"]
    return any(match.matched[0] in "ij" or _is_of_weeks(said[each : each + 3]) for each in habits)


def _is_of_weeks(said: list[Token]) -> bool:
    """Return whether words begin with "weekly", "every week" or "every other Friday", but not "every day"."""
    if said[0].value == _ALONE:
        return True
    return said[0].value == _WITH_A_PERIOD and any(
        token.kind == "W" or (token.kind in "UZG" and token.value > 0) for token in said[1:]
    )


def _is_owned_or_habitual(match: _Match) -> bool:
    """Reject "my last fall", "usually on Friday", "on Friday nights", "the last week of something"."""
    before, after = match.before, match.after
    if before and (before.kind == "H" or (before.kind == "P" and match.matched[0] in "ltnLSV")):
        return True
    return after is not None and (after.kind == "H" or (after.kind == "o" and match.matched[-1] in "UGZ"))


def _is_a_title(match: _Match) -> bool:
    """Reject titles: a song called "Yesterday", USA Today, a character in 1984."""
    before, after, tokens = match.before, match.after, match.tokens
    if before and after and before.kind == after.kind == '"':
        return True
    word = tokens[match.first].text
    if match.matched == "R" and word[0].isupper() and before and before.kind != ".":
        return not (word.isupper() and before.text.isupper())
    return match.matched in ("iY", "bY", "uY", "eY", "sY") and "B" in match.kinds


def _is_loose(match: _Match) -> bool:
    """Reject "more than a year ago", "last day" and "this day", and bare units other than a weekend."""
    tokens = match.tokens[match.first : match.last]
    is_ago = match.matched.endswith("a") or match.matched.startswith("A")
    if is_ago and match.before and match.before.text.lower() in match.words.loose:
        return True
    if match.rule == "on" and tokens[-1].kind == "U":
        # Plans for the weekend are not what happened at the weekend.
        is_ahead = not match.words.planned.isdisjoint((tokens[0].text.lower(), tokens[-1].text.lower()))
        return tokens[-1].value != 5 or is_ahead or speaks_of_habits(match.tokens, match.words)
    has_count = any(token.kind in "DNKTaA" for token in tokens)
    return not has_count and any(t.kind == "U" and t.value == 0 for t in tokens) and "R" not in match.matched


def _is_a_verb_or_name(match: _Match) -> bool:
    """Reject "you may", "they march", "since June moved in": a month without a sign that it is one."""
    matched, after = match.matched, match.after
    if "Y" in matched or "G" in matched or not re.search(_MONTH, matched) or match.rule == "range":
        return False
    if matched[-1] in "MV" and matched[0] in "sbeu" and "D" not in matched:
        return not match.ends_clause
    if "V" not in matched or re.match(rf"ih?(?:{_PART})?V", matched):
        return False
    if after is not None and after.kind == "m":
        return True
    return not _is_written_as_month(match)


def _is_an_origin(match: _Match) -> bool:
    """Reject "the notes from Monday"; "From Monday the notes are short" tells when something begins."""
    is_first = match.before is None or match.before.kind in ".,"
    return match.rule == "since" and match.matched[0] == "O" and not is_first


def _is_written_as_month(match: _Match) -> bool:
    before, tokens = match.before, match.tokens[match.first : match.last]
    if "D" in match.matched and (match.rule != "point" or (before is not None and before.kind in "jsfOi")):
        return True
    if match.matched.endswith("D"):  # "May 3 people come" begins like the date "May 3"
        return tokens[-1].is_ordinal or (match.ends_clause and before is not None and before.kind != ".")
    month = next(token for token in tokens if token.kind == "V")
    return match.ends_clause or month.text[0].isupper()


def _is_a_count(match: _Match) -> bool:
    """Reject counts: "in 2000 steps", "in June 12 people came". No verb follows a count: "Seit 2021 wohne ich hier"."""
    matched, after = match.matched, match.after
    if after is None or (after.text.islower() and after.text in match.words.states | match.words.past):
        return False
    if matched[-1] == "Y" and not re.search("[MVSE]", matched):
        return after.kind in "xuhBDNKMVWUZm"
    if match.rule == "point" and re.fullmatch("h?DV", matched):  # 5 May Street
        return after.kind in "xm" and not (match.before and match.before.kind == "j")
    if re.search(r"[MV]\.?D$", matched) and not match.tokens[match.last - 1].is_ordinal:
        return after.kind in "xKNDUZ" and not (match.before and match.before.kind == "j")
    return False


def asks_what_is_to_come(question: str) -> bool:
    """Return whether a question asks what is planned, without a day: "What is coming up?"."""
    return _upcoming(languages_of(question)).search(question) is not None


def comes_back(statement: str) -> bool:
    """Return whether a statement is about what comes back every year: "Emil was born on 3 May 2015"."""
    return _yearly(languages_of(statement)).search(statement) is not None


@cached()
def _yearly(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.dates.yearly, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


@cached()
def _upcoming(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.dates.upcoming, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)
