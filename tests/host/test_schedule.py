"""Jobs run once for each planned time: across clock changes, after a pause, with several processes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo.clock import from_ms, to_ms
from ricordo.errors import InvalidError
from ricordo.host.bus import Bus, Job, Patience, Schedule, due, latest
from ricordo.host.journal import Journal
from tests.host.conftest import HandClock

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = Job(name="upkeep", cron="0 3 * * *", topic="upkeep.due")


def at(text: str) -> int:
    return to_ms(
        datetime.fromisoformat(text).replace(tzinfo=BERLIN) if "+" not in text else datetime.fromisoformat(text)
    )


@pytest.mark.parametrize(
    ("cron", "now", "expected"),
    [
        ("0 3 * * *", "2026-06-01T03:00:00", "2026-06-01T03:00:00"),
        ("0 3 * * *", "2026-06-01T02:59:59", "2026-05-31T03:00:00"),
        ("30 2 * * *", "2026-03-29T03:00:00+02:00", "2026-03-29T03:00:00+02:00"),  # 02:30 does not exist that night
        ("30 2 * * *", "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+02:00"),  # and occurs twice in this one
        ("30 2 * * *", "2026-10-25T02:45:00+02:00", "2026-10-25T02:30:00+02:00"),
    ],
)
def test_the_latest_planned_time(cron: str, now: str, expected: str) -> None:
    assert latest(cron, BERLIN, now=at(now)) == at(expected)


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(at("2026-01-01T00:00:00"), at("2026-12-31T00:00:00")),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    steps=st.lists(st.integers(1, 40_000), min_size=5, max_size=60),
)
def test_a_daily_job_runs_at_most_once_a_day_and_never_early(start, hour, minute, steps) -> None:
    """Polled in steps of seconds to half a day, also across clock changes."""
    last, begun, now = None, [], start
    for step in steps:
        found = latest(f"{minute} {hour} * * *", BERLIN, now=now)
        assert found is not None and found <= now
        when, last = due(last, found, now=now)
        if when is not None:
            begun.append(from_ms(when).astimezone(BERLIN).date())
        now += step * 1_000
    assert len(begun) == len(set(begun))


def test_a_year_of_minutes_has_one_nightly_run_per_day() -> None:
    last, begun = at("2026-01-01T00:00:00"), []
    moment = datetime(2025, 12, 31, 23, 0, tzinfo=UTC)
    while moment.year < 2027:
        now = to_ms(moment)
        when, last = due(last, latest("30 2 * * *", BERLIN, now=now), now=now)
        if when is not None:
            begun.append(moment.astimezone(BERLIN).date())
        moment += timedelta(minutes=15)
    assert len(begun) == len(set(begun)) == 365


async def _scheduled(journal: Journal, clock: HandClock, job: Job = NIGHTLY) -> tuple[Schedule, Bus, list]:
    heard: list = []

    async def handle(event) -> None:
        heard.append(event.payload)

    bus = Bus(journal, clock, Patience(poll_s=0.02))
    await bus.subscribe("upkeep", "upkeep.due", handle)
    schedule = Schedule(journal, bus, clock, BERLIN)
    schedule.add(job)
    return schedule, bus, heard


async def test_a_new_job_starts_at_its_next_time_and_missed_ones_run_once(journal, clock) -> None:
    schedule, bus, heard = await _scheduled(journal, clock)
    await bus.start()
    assert await schedule.tick() == []
    clock.ms = at("2026-01-02T02:59:59")
    assert await schedule.tick() == []
    clock.ms = at("2026-01-02T03:00:00")
    assert await schedule.tick() == ["upkeep"]
    assert await schedule.tick() == []
    clock.ms = at("2026-02-20T11:00:00")  # seven weeks later
    assert await schedule.tick() == ["upkeep"]
    assert await schedule.tick() == []
    await bus.drain(5)
    assert [each["due_at"] for each in heard] == [at("2026-01-02T03:00:00"), at("2026-02-20T03:00:00")]
    await bus.stop()


async def test_several_processes_begin_a_job_once(tmp_path: Path, clock) -> None:
    journals = [await Journal.open(tmp_path / "j", durability="process") for _ in range(3)]
    schedules = [(await _scheduled(journal, clock))[0] for journal in journals]
    await asyncio.gather(*(each.tick() for each in schedules))
    for day in range(2, 9):
        clock.ms = at(f"2026-01-0{day}T03:00:01")
        begun = await asyncio.gather(*(each.tick() for each in schedules))
        assert sum(map(len, begun)) == 1
    for journal in journals:
        await journal.close()


async def test_a_changed_schedule_restarts_and_wrong_clocks_stop_nothing(journal, clock) -> None:
    schedule, _, _ = await _scheduled(journal, clock)
    await schedule.tick()
    clock.ms = at("2026-01-02T12:00:00")
    changed, _, _ = await _scheduled(journal, clock, Job(name="upkeep", cron="0 4 * * *", topic="upkeep.due"))
    assert await changed.tick() == []
    clock.ms = at("2099-01-01T12:00:00")
    assert await changed.tick() == ["upkeep"]
    clock.ms = at("2026-01-03T12:00:00")
    assert await changed.tick() == []
    clock.ms = at("2026-01-04T04:00:00")
    assert await changed.tick() == ["upkeep"]


def test_an_invalid_schedule_is_refused_with_an_example() -> None:
    for wrong in ("at night", "61 3 * * *", "", "0 3 * *"):
        with pytest.raises(InvalidError, match="not a cron expression") as caught:
            latest(wrong, BERLIN, now=0)
        assert "0 3 * * *" in caught.value.hint
