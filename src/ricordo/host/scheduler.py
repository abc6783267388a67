"""What is done at its hour: each job once for each time of its plan, by whichever process is there.

A plan is a cron expression in the owner's time zone. Clock changes are dealt with as Debian's cron does: what would
fall into the hour that is left out comes right after it, what would come twice comes once. A job that was missed is
made up for once, however often it was missed.
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

# A last time that lies further ahead than that was written by a clock that was wrong.
_FAR_AHEAD_MS = 2 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done when. `topic` is what the bus is told when it is time."""

    name: str
    cron: str
    topic: str


def latest(cron: str, zone: ZoneInfo, *, now: int) -> int | None:
    """The last time of a plan that is not after `now`, in Unix milliseconds; None where there was none in 50 years.

    Raises:
        InvalidError: the plan cannot be read.
    """
    after = from_ms(now + 1_000 - now % 1_000).astimezone(zone)
    for _ in range(3):  # while a clock goes back, the latest that is told may lie just ahead
        found = next(_plan(cron, after, backwards=True), None)
        if found is None or to_ms(found) <= now:
            return None if found is None else to_ms(found)
        after = found
    return None


def upcoming(cron: str, zone: ZoneInfo, *, now: int) -> datetime | None:
    """The next time of a plan after `now` (Unix milliseconds), in its zone.

    Raises:
        InvalidError: the plan cannot be read.
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
    """Whether a job is to be begun: the time it is for, or None, and the last time to keep. Pure.

    Args:
        last: the time it was last begun for; None where it has never been, or its plan has changed since: it then
            begins with its next time.
        found: the latest time of its plan.
    """
    if last is None or last > now + _FAR_AHEAD_MS:
        return None, now
    if found is None or found <= last:
        return None, last
    return found, found


class Schedule:
    """Jobs, and the times they were last begun for, which the journal keeps."""

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
        InvalidError: its plan cannot be read.
        """
        _plan(job.cron, from_ms(self._clock.now()).astimezone(self._zone), backwards=False)
        self._jobs[job.name] = job

    async def tick(self) -> list[str]:
        """Publish what is due, each job at most once for a time of its plan; returns the names of those jobs."""
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
            """The time and the event are written together: neither a crash nor another process doubles it."""
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
