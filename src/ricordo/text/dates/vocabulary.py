"""The words of time in English and Russian, and how a text becomes a line of their kinds.

A kind is one letter, so that the grammar (`time_grammar.py`) can be written as ordinary regular expressions
over kinds. Both languages share the grammar: a further language is a further table here.

    M month    V month that is also another word (may, march)    W weekday    S season (value: first month)
    U unit, singular  Z unit, plural only  G unit "year" in Russian     R day by distance from today
    D number 1-31     N other number       K number word  Y year        I ISO day    J ISO month
    l last  t this  n next  p past (rolling)  a ago  T through ("in a week's time")  E third of a month
    i in   j on, over, for   s since   c Russian "s" (since, from, with)   f from   b before   u by, until
    e after   w between   & and   - to   o of   h article   k part of a day   P possessive   H habit
    B of a story   , comma   . end of a clause   " quotation mark   m word that can follow the verb "may"
    y word that can follow a year   x any other word
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from ricordo.text.dates.calendar import Unit

UNITS: tuple[Unit, ...] = ("day", "week", "month", "year", "quarter", "weekend", "half_year")

_TABLE = """
M 1 january jan январь января январе январю январём январем
M 2 february feb февраль февраля феврале февралю февралём февралем
V 3 march mar
M 3 март марта марте марту мартом
M 4 april apr апрель апреля апреле апрелю апрелем
V 5 may
M 5 май мая мае маю маем
M 6 june jun июнь июня июне июню июнем
M 7 july jul июль июля июле июлю июлем
M 8 august aug август августа августе августу августом
M 9 september sept sep сентябрь сентября сентябре сентябрю сентябрём сентябрем
M 10 october oct октябрь октября октябре октябрю октябрём октябрем
M 11 november nov ноябрь ноября ноябре ноябрю ноябрём ноябрем
M 12 december dec декабрь декабря декабре декабрю декабрём декабрем
W 0 monday понедельник понедельника
W 1 tuesday tue tues вторник вторника
W 2 wednesday среду среды
W 3 thursday thu thurs четверг четверга
W 4 friday fri пятницу пятницы
W 5 saturday субботу субботы
W 6 sunday воскресенье воскресенья
S 12 winter зимой зима зиму зимы
S 3 spring весной весна весну весны
S 6 summer летом лето лета
S 9 autumn fall осенью осень осени
U 0 day день дня
U 1 week week's неделю неделя недели неделе
U 2 month month's месяц месяца месяце
U 3 year year's
U 4 quarter quarter's квартал квартала квартале
U 5 weekend weekend's выходные выходных
U 6 полгода
Z 0 days дней
Z 1 weeks недель
Z 2 months месяцев
Z 3 years лет
G 3 год года году
R -2 позавчера
R -1 yesterday yesterday's вчера
R 0 today tonight сегодня
R 1 tomorrow завтра
R 2 послезавтра
K 1 one один одну
K 2 two couple два две пару
K 3 three few три several несколько
K 4 four четыре
K 5 five пять
K 6 six шесть
K 7 seven семь
K 8 eight восемь
K 9 nine девять
K 10 ten десять
K 11 eleven одиннадцать
K 12 twelve двенадцать
l 1 last previous прошлый прошлая прошлую прошлой прошлое прошлом прошлого прошлым прошлые прошлых
l 2 позапрошлый позапрошлую позапрошлой позапрошлом позапрошлого позапрошлым позапрошлые позапрошлых
t 0 this current этот эта эту этой это этом этого этим эти этих текущем текущий
n 1 next следующий следующая следующую следующей следующее следующем следующего следующим следующие следующих
p 1 past последний последнюю последнее последние последних
a 0 ago назад
T 0 через
E 1 early beginning start начале начала
E 2 mid middle середине середины
E 3 late end конце конца
i 0 in during throughout в во
j 0 on over for at на за
s 0 since
c 0 с со
f 0 from
b 0 before до
u 0 by until till
e 0 after после
w 0 between между
& 0 and и
- 0 to through по
o 0 of
h 0 the a an течение
k 0 morning afternoon evening утром утра днём днем вечером вечера
k 1 night ночью ночи
P 0 my our your his her their its мой моя мою моё наш наша нашу его её ее их
H 0 mondays tuesdays wednesdays thursdays fridays saturdays sundays every each usually always often каждый
H 0 каждую каждое каждые обычно всегда часто mornings afternoons evenings nights
H 0 понедельникам вторникам средам четвергам пятницам субботам воскресеньям выходным
B 0 character author plot chapter protagonist narrator герой автор глава главе
m 0 be have not need help get take seem only just also still well
y 0 or with when while where what who how that i we you he she it they did was were is are had
y 0 я ты мы вы он она они или но у к что кто где когда как
"""

# Digits that are part of something longer (a version, a price, an address, a file name) are one plain word.
_TOKEN = re.compile(
    r"""(?P<skip>(?:https?://|www\.)\S+|\S+@\S+)
      | (?P<iso>(?<![\w/.-])\d{4}[-/]\d{2}[-/]\d{2}(?![\w/-]|\.\w))
      | (?P<dotted>(?<![\w/.-])\d{1,2}\.\d{1,2}\.\d{4}(?![\w/-]|\.\w))
      | (?P<month>(?<![\w/.-])\d{4}-\d{2}(?![\w/-]|\.\w))
      | (?P<compound>[\w$€£₽#]*\d+(?:[.,:/_]\w+)+|[$€£₽#]\d+|\d+[%$€£₽])
      | (?P<number>\d+)(?P<ordinal>st|nd|rd|th|-?го|-?е|-?ого)?\b
      | (?P<word>[^\W_]+(?:['’][^\W_]+)?)
      | (?P<mark>[.,!?;:"'«»“”()\[\]\-–—\n])""",
    re.VERBOSE,
)
_MARKS = {",": ",", "-": "-", "–": "-", "—": "-"} | dict.fromkeys(".!?;:\n()[]", ".") | dict.fromkeys("\"'«»“”", '"')

_FUTURE = {"will", "shall", "upcoming", "буду", "будем", "будет", "будут", "будешь", "предстоит", "планируем"}
_PAST = {"did", "had", "was", "were", "был", "была", "было", "были"}
_PRESENT = {
    "do",
    "does",
    "don't",
    "doesn't",
    "don’t",
    "doesn’t",
    "делаю",
    "делаешь",
    "делает",
    "делаем",
    "делаете",
    "делают",
    "провожу",
    "проводишь",
    "проводит",
    "проводим",
    "проводите",
    "проводят",
    "занимаюсь",
    "занимаешься",
    "занимается",
    "занимаемся",
    "занимаетесь",
    "занимаются",
    "отдыхаю",
    "отдыхаешь",
    "отдыхает",
    "отдыхаем",
    "отдыхают",
    "бывает",
}


class Token(NamedTuple):  # not a dataclass: a sentence makes dozens, and these are made four times as fast
    """One word or mark: its kind, its number (see the table), where it stands, and how it was written."""

    kind: str
    value: int
    start: int
    end: int
    text: str
    is_ordinal: bool = False


def _read_table() -> Iterator[tuple[str, tuple[str, int]]]:
    for line in reversed(_TABLE.strip().splitlines()):  # a word listed twice keeps its first meaning
        kind, value, *words = line.split()
        yield from ((word, (kind, int(value))) for word in words)


_WORDS = dict(_read_table())
# No question asks about a time without one of these words or figures; all others only qualify them.
_ANCHORS = frozenset(word for word, (kind, _) in _WORDS.items() if kind in "MVWSUZGRk")
# A year, a date from its year on, one up to its year; begins with a figure, so that the search can leap to it.
_FIGURES = re.compile(r"\d(?:(?<=1)9\d\d|(?<=2)0\d\d|\d{3}[-/]\d\d|\.\d\d?\.\d{4})")
_WORD = re.compile(r"[^\W\d_]+")


def mentions_time(text: str, words: Iterable[str] | None = None, *, has_digits: bool = True) -> bool:
    """Whether a time may be in the text: the cheap question asked before the grammar is.

    Args:
        words: the runs of letters of the text in lower case, where they are known already.
        has_digits: False where it is known that it has none.
    """
    if not _ANCHORS.isdisjoint(_WORD.findall(text.lower()) if words is None else words):
        return True
    return has_digits and _FIGURES.search(text) is not None


def looks_ahead(tokens: list[Token]) -> bool:
    """Whether the sentence speaks of the future, so that "on Friday" is the coming one."""
    words = {token.text.lower() for token in tokens}
    ahead = not _FUTURE.isdisjoint(words) or any(word.endswith(("'ll", "’ll")) for word in words)
    return ahead and _PAST.isdisjoint(words)


def speaks_of_habits(tokens: list[Token]) -> bool:
    """Whether the sentence asks what is done again and again: "what does she do at the weekend?"."""
    words = {token.text.lower() for token in tokens}
    return not _PRESENT.isdisjoint(words) and _PAST.isdisjoint(words) and _FUTURE.isdisjoint(words)


def tokenize(text: str) -> list[Token]:
    """The words and marks of a text, in order. Never raises, whatever the text."""
    return [_token(match) for match in _TOKEN.finditer(text)]


def _token(match: re.Match[str]) -> Token:
    text, (start, end) = match[0], match.span()
    if match.lastgroup == "word":  # most of them
        return Token(*_WORDS.get(text.lower().replace("’", "'"), ("x", 0)), start, end, text)
    match match.lastgroup:
        case "iso" | "dotted" | "month":
            kind, value = _written_date(text, match.lastgroup)
        case "number" | "ordinal":
            kind, value = _number(match["number"], is_ordinal=match["ordinal"] is not None)
        case "mark":
            kind, value = _MARKS[text], 0
        case _:
            kind, value = "x", 0
    return Token(kind, value, start, end, text, is_ordinal=match["ordinal"] is not None)


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
