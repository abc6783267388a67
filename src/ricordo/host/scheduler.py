"""Scheduled jobs: each runs once for each time of its plan, in any running process.

A plan is a cron expression in the owner's time zone. Clock changes are handled as in Debian's cron: a job in the
skipped hour runs right after it, a job in the repeated hour runs once. A missed job runs once, however often it was
missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ricordo.clock import from_ms, to_ms
from ricordo.errors import InvalidError
from ricordo.host.bus import Bus, Outgoing
from ricordo.host.journal import Journal, Rows
from ricordo.ports import Clock

# A last time further ahead than this was written with a wrong clock.
_FAR_AHEAD_MS = 2 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and its plan. When it is due, an event is published under `topic`."""

    name: str
    cron: str
    topic: str


def latest(cron: str, zone: ZoneInfo, *, now: int) -> int | None:
    """Return the last time of a plan up to `now`, in Unix milliseconds; None if there is none in 50 years.

    Raises:
        InvalidError: the plan is invalid.
    """
    after = from_ms(now + 1_000 - now % 1_000).astimezone(zone)
    for _ in range(3):  # while a clock goes back, the latest time may lie just ahead
        found = next(_plan(cron, after, backwards=True), None)
        if found is None or to_ms(found) <= now:
            return None if found is None else to_ms(found)
        after = found
    return None


def upcoming(cron: str, zone: ZoneInfo, *, now: int) -> datetime | None:
    """Return the next time of a plan after `now` (Unix milliseconds), in its zone.

    Raises:
        InvalidError: the plan is invalid.
    """
    return next(_plan(cron, from_ms(now).astimezone(zone), backwards=False), None)


def _plan(cron: str, start: datetime, *, backwards: bool) -> CronSim:
    try:
        return CronSim(cron, start, reverse=backwards)
    except CronSimError as error:
        raise InvalidError(
            f"{cron!r} is no plan: {str(error)[:1].lower()}{str(error)[1:]}",
            hint='minute, hour, day of the month, month, day of the week: "0 3 * * *"',
        ) from error


def due(last: int | None, found: int | None, *, now: int) -> tuple[int | None, int]:
    """Return the time for which a job must run now, or None, and the last time to record. Pure.

    Args:
        last: the time it last ran for; None if it never ran or its plan has changed: it then starts with its next time.
        found: the latest time of its plan.
    """
    if last is None or last > now + _FAR_AHEAD_MS:
        return None, now
    if found is None or found <= last:
        return None, last
    return found, found


class Schedule:
    """Jobs, and the times they last ran for, which the journal keeps."""

    def __init__(self, journal: Journal, bus: Bus, clock: Clock, zone: ZoneInfo) -> None:
        self._journal = journal
        self._bus = bus
        self._clock = clock
        self._zone = zone
        self._jobs: dict[str, Job] = {}

    @property
    def jobs(self) -> Sequence[Job]:
        return tuple(self._jobs.values())

    def add(self, job: Job) -> None:
        """Raises:
        InvalidError: its plan is invalid.
        """
        _plan(job.cron, from_ms(self._clock.now()).astimezone(self._zone), backwards=False)
        self._jobs[job.name] = job

    async def tick(self) -> list[str]:
        """Publish the due jobs, each at most once for a time of its plan; return their names."""
        begun = []
        for job in self.jobs:
            now = self._clock.now()
            found = latest(job.cron, self._zone, now=now)
            if await self._journal.change(self._beginning(job, found, now)):
                begun.append(job.name)
        if begun:
            self._bus.wake()
        return begun

    def _beginning(self, job: Job, found: int | None, now: int) -> Callable[[Rows], bool]:
        plan = f"{job.cron} {self._zone.key}"
        publishing = None
        if found is not None:
            publishing = self._bus.publishing(Outgoing(topic=job.topic, payload={"job": job.name, "due_at": found}))

        def begin(rows: Rows) -> bool:
            """Write the time and the event together: no crash and no second process repeats the job."""
            known = rows.ask("job_get", {"name": job.name})
            last = known[0][1] if known and known[0][0] == plan else None
            when, keep = due(last, found, now=now)
            if last != keep:
                rows.ask("job_put", {"name": job.name, "plan": plan, "last_due_at": keep})
            if when is None or publishing is None:
                return False
            publishing(rows)
            return True

        return begin
