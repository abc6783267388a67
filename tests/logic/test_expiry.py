"""Expiry phrases as people write them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidError
from ricordo.text.dates import parse_expiry, stated_expiry

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 6, 30, 12, tzinfo=BERLIN)  # a Tuesday
NOW = round(NOON.timestamp() * 1000)


def read(text: str, *, now: int = NOW) -> str:
    """Return the end of a phrase in Berlin time."""
    return shown(parse_expiry(text, now=now, zone=BERLIN, field="expires"))


def shown(ms: int | None) -> str:
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, BERLIN).strftime("%Y-%m-%d %H:%M")


PHRASES = """
for 2 weeks | 2026-07-14 12:00
for two weeks | 2026-07-14 12:00
For 2 Weeks. | 2026-07-14 12:00
2 weeks | 2026-07-14 12:00
2w | 2026-07-14 12:00
for a fortnight | 2026-07-14 12:00
in 3 days | 2026-07-03 12:00
for the next 3 days | 2026-07-03 12:00
for the next week | 2026-07-07 12:00
for a couple of days | 2026-07-02 12:00
a week | 2026-07-07 12:00
for a year | 2027-06-30 12:00
half a year | 2026-12-30 12:00
for an hour | 2026-06-30 13:00
two hours | 2026-06-30 14:00
half an hour | 2026-06-30 12:30
30 minutes | 2026-06-30 12:30
на две недели | 2026-07-14 12:00
на неделю | 2026-07-07 12:00
через неделю | 2026-07-07 12:00
5 дней | 2026-07-05 12:00
на пару дней | 2026-07-02 12:00
на месяц | 2026-07-30 12:00
на полгода | 2026-12-30 12:00
на 3 года | 2029-06-30 12:00
на час | 2026-06-30 13:00
until Friday | 2026-07-04 00:00
until_friday | 2026-07-04 00:00
by Friday | 2026-07-04 00:00
through Friday | 2026-07-04 00:00
before Friday | 2026-07-03 00:00
Friday | 2026-07-03 00:00
until Tuesday | 2026-07-08 00:00
until next Monday | 2026-07-07 00:00
до пятницы | 2026-07-04 00:00
по пятницу | 2026-07-04 00:00
до понедельника | 2026-07-07 00:00
until tomorrow | 2026-07-02 00:00
до завтра | 2026-07-02 00:00
tomorrow | 2026-07-01 00:00
until tonight | 2026-07-01 00:00
until 5 March | 2027-03-06 00:00
до 5 марта | 2027-03-06 00:00
until July 1st | 2026-07-02 00:00
until March | 2027-03-01 00:00
until June | 2026-07-01 00:00
через 2 месяца | 2026-08-30 12:00
next week | 2026-07-06 00:00
до следующей недели | 2026-07-06 00:00
until the end of the month | 2026-07-01 00:00
end of January | 2027-02-01 00:00
until the end of March | 2027-04-01 00:00
mid February | 2027-02-11 00:00
fin janvier | 2027-02-01 00:00
Ende Januar | 2027-02-01 00:00
до конца следующего месяца | 2026-08-01 00:00
до конца недели | 2026-07-06 00:00
до 2027 | 2027-01-01 00:00
2026-07-05 | 2026-07-05 00:00
until 2026-07-05 | 2026-07-06 00:00
until 2026-07-05T10:00 | 2026-07-05 10:00
2026-07-05T10:00+00:00 | 2026-07-05 12:00
"""


@pytest.mark.parametrize("line", PHRASES.strip().splitlines())
def test_durations_and_end_times_are_parsed(line: str) -> None:
    phrase, _, end = line.partition(" | ")
    assert read(phrase) == end


def test_a_day_is_a_calendar_day_across_clock_changes() -> None:
    before = round(datetime(2026, 10, 24, 12, tzinfo=BERLIN).timestamp() * 1000)
    assert read("for 2 days", now=before) == "2026-10-26 12:00"
    assert read("48 hours", now=before) == "2026-10-26 11:00"


def test_instants_are_accepted_and_past_ones_refused() -> None:
    late = datetime(2030, 5, 1, tzinfo=UTC)
    assert parse_expiry(late, now=NOW, zone=BERLIN, field="expires") == round(late.timestamp() * 1000)
    for early in (datetime(2020, 5, 1, tzinfo=UTC), date(2020, 5, 1), "2020-05-01", "2020-05-01T10:00Z", "last week"):
        with pytest.raises(InvalidError, match="is in the past"):
            parse_expiry(early, now=NOW, zone=BERLIN, field="expires")
    for never in ("never", "никогда", "Nie"):
        assert parse_expiry(never, now=NOW, zone=BERLIN, field="expires") is None
    assert shown(parse_expiry(date(2026, 8, 1), now=NOW, zone=BERLIN, field="expires")) == "2026-08-01 00:00"


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "for ever",
        "for good",
        "nonsense",
        "for 0 days",
        "a few",
        "until",
        "for",
        "yesterday",
        "last week",
        "until yesterday",
        "2 weeks ago",
        "for 9999 years",
        "next",
        "x" * 300,
    ],
)
def test_an_expiry_without_a_future_time_is_refused(phrase: str) -> None:
    with pytest.raises(InvalidError, match="expires") as refused:
        read(phrase)
    assert refused.value.hint


TEXTS = """
Remember for 2 weeks: the locker is number 12 | 2026-07-14 12:00
Please remember this until Friday: the bins go out | 2026-07-04 00:00
Locker 12 (remember for 2 weeks) | 2026-07-14 12:00
I want you to remember for two weeks that the lift is broken | 2026-07-14 12:00
Keep in mind until tomorrow, the lift is broken | 2026-07-02 00:00
Forget this in 3 days: locker 12 | 2026-07-03 12:00
The lift is broken. Forget it after Friday. | 2026-07-04 00:00
Запомни на две недели: шкафчик номер 12 | 2026-07-14 12:00
Запомни до пятницы, что ключ у Ани | 2026-07-04 00:00
Пожалуйста, запомните это на неделю: ключ у Ани | 2026-07-07 12:00
Ключ у Ани. Забудь об этом через неделю | 2026-07-07 12:00
The passport is valid until 2030 |
My visa expires on Friday |
I will be in Rome until Friday |
I can't remember for two weeks where it is |
She asked me to remember for a week |
The cookies keep for 2 weeks |
Remember to call mum until Friday |
Remember that for ten years he lived in Rome |
Remember until 2019 he was here |
Remember me for ever |
I remember until Friday nothing happened |
Помни о маме до пятницы |
Запиши на две недели вперёд приём |
"""


@pytest.mark.parametrize("line", TEXTS.strip().splitlines())
def test_a_text_sets_an_expiry_only_on_explicit_request(line: str) -> None:
    text, _, end = line.partition(" |")
    assert shown(stated_expiry(text, now=NOW, zone=BERLIN)) == end.strip()


@given(st.text(max_size=60) | st.text("0123456789 -:", max_size=20))
def test_any_text_is_an_expiry_or_refused(text: str) -> None:
    stated = stated_expiry(f"Remember for {text}", now=NOW, zone=BERLIN)
    assert stated is None or stated > NOW
    with suppress(InvalidError):
        parse_expiry(text, now=NOW, zone=BERLIN, field="expires")


def test_blank_lines_cost_no_time() -> None:
    assert stated_expiry("\n" * 10_000_000, now=NOW, zone=BERLIN) is None
