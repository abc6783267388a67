"""A durable event bus, and the schedule that publishes an event when a job is due.

A published event reaches every handler, even after a crash and in another process. Delivery is at least once: a handler
that is killed after its effect, but before the effect is recorded, runs again. An event's `key` is the same each time,
so a handler that is idempotent, or writes under this key, takes effect once.

A job's plan is a cron expression in the owner's time zone. Clock changes are handled as in Debian's cron: a job in the
skipped hour runs right after it, a job in the repeated hour runs once. A missed job runs once, however often it was
missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ricordo.clock import from_ms, to_ms
from ricordo.errors import InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.host.journal import Delivery, Journal, Rows, put_event, remove_old, take_delivery
from ricordo.ports import Clock
from ricordo.storage.leases import is_gone, new_holder

_log = logging.getLogger(__name__)

_TIDY_EVERY_S = 3_600.0
_MOST_NAME_CHARS = 200
_MOST_REASON_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event as a handler receives it.

    Attributes:
        key: idempotency key of this event and this handler; the same at every attempt.
        tries: the number of attempts, including this one.
    """

    id: str
    topic: str
    payload: Mapping[str, Any]
    at: datetime
    key: str
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """An event to publish. With `once`, it is published at most once under that name, while the journal keeps the name
    (a week, or 10,000 events).
    """

    topic: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    once: str | None = None


Handler = Callable[[Event], Awaitable[Sequence[Outgoing] | None]]
"""Handles an event. The events it returns are published in the transaction that marks this one as done. An exception
counts as a failed attempt.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event that a handler failed on, with the reason. `retry` delivers it again."""

    event: str
    handler: str
    topic: str
    payload: Mapping[str, Any]
    at: datetime
    tries: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When failed deliveries are repeated: after 5 seconds, then after four times as long each time, up to 6 hours.

    `lease_ms`: how long a process that may have died holds a delivery.
    """

    first_wait_ms: int = 5_000
    most_wait_ms: int = 6 * 3_600_000
    most_tries: int = 10
    lease_ms: int = 30_000
    poll_s: float = 1.0


def wait_ms(tries: int, patience: Patience) -> int:
    """Return the wait after a number of failed attempts. Pure.

    >>> [wait_ms(tries, Patience()) for tries in (1, 2, 3, 20)]
    [5000, 20000, 80000, 21600000]
    """
    return int(min(patience.first_wait_ms * 4.0 ** min(tries - 1, 50), patience.most_wait_ms))


class Bus:
    """Publishes events, and delivers them between `start` and `stop`. A handler gets one event at a time."""

    def __init__(self, journal: Journal, clock: Clock, patience: Patience | None = None) -> None:
        self._journal = journal
        self._clock = clock
        self._patience = patience or Patience()
        self._holder = new_holder()
        self._handlers: dict[str, Handler] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tidying: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._is_running = False

    async def publish(self, topic: str, payload: Mapping[str, Any] | None = None, *, once: str | None = None) -> str:
        """Publish an event to all subscribers of its topic; return its id once it is durable.

        Args:
            payload: a JSON object of at most 64 kB. Send ids rather than texts: the journal is not a store.
            once: a name under which it is published at most once.

        Raises:
            InvalidError: the topic or the payload is invalid.
            UnavailableError: too many events are waiting.
        """
        event = Outgoing(topic=topic, payload=payload or {}, once=once)
        id_ = await self._journal.change(self.publishing(event))
        self.wake()
        return id_

    def publishing(self, event: Outgoing) -> Callable[[Rows], str]:
        """Return a function that publishes an event in the caller's transaction; call `wake` afterwards."""
        _check_name(event.topic, "topic")
        now = self._clock.now()
        return lambda rows: put_event(rows, event.topic, event.payload, once=event.once, now=now)

    async def subscribe(self, handler: str, topic: str, handle: Handler) -> None:
        """Subscribe a handler to a topic under a durable name: events published while no process runs are delivered to
        the next subscriber of that name.

        Raises:
            InvalidError: a name is invalid, or the handler's name is taken in this process.
        """
        _check_name(topic, "topic")
        _check_name(handler, "handler")
        if handler in self._handlers:
            raise InvalidError(f"handler: {handler!r} is already subscribed", hint="choose another name")
        values = {"handler": handler, "topic": topic, "now": self._clock.now()}
        await self._journal.change(lambda rows: rows.ask("subscription_put", values))
        self._handlers[handler] = handle
        if self._is_running:
            self._begin(handler)

    async def start(self) -> None:
        """Start delivering."""
        self._is_running = True
        self._tidying = asyncio.create_task(self._tidy(), name="ricordo-bus-tidy")
        for handler in self._handlers:
            self._begin(handler)

    async def stop(self) -> None:
        """Stop delivering. Running handlers are cancelled; their events are delivered again at the next start."""
        self._is_running = False
        tasks = [*self._tasks.values(), *([self._tidying] if self._tidying else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until every event due for this process's handlers is handled, at most `timeout` seconds.

        Raises:
            UnavailableError: the timeout has passed; delivery continues.
        """
        try:
            async with asyncio.timeout(timeout):
                while True:
                    news = self._news
                    if not (await self.waiting())[1]:
                        return
                    await _either(news, 0.05)
        except TimeoutError as error:
            raise UnavailableError(
                "some events are not handled yet", hint="they are handled while the host runs"
            ) from error

    async def waiting(self) -> tuple[int, int]:
        """Return how many deliveries wait for this process's handlers, and how many of them are due."""
        values = {"handlers": json.dumps(list(self._handlers)), "now": self._clock.now()}
        waiting, due_now = (await self._journal.change(lambda rows: rows.ask("deliveries_open", values)))[0]
        return int(waiting), int(due_now)

    async def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the dead letters, latest first."""
        letters = await self._journal.change(lambda rows: rows.ask("dead_letters", {"most": limit}))
        return tuple(
            DeadLetter(
                event=id_,
                handler=handler,
                topic=topic,
                payload=json.loads(payload),
                at=from_ms(at),
                tries=tries,
                reason=reason,
            )
            for id_, handler, topic, payload, at, tries, reason in letters
        )

    async def retry(self, event: str, handler: str) -> None:
        """Deliver a dead letter again.

        Raises:
            NotFoundError: there is no such dead letter.
        """
        values = {"id": event, "handler": handler, "now": self._clock.now()}
        if not await self._journal.change(lambda rows: rows.ask("dead_letter_again", values)):
            raise NotFoundError(f"there is no dead letter {event!r} of {handler!r}")
        self.wake()

    def wake(self) -> None:
        """Check for due events now instead of within a second: the clock was moved, or an event was published."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _begin(self, handler: str) -> None:
        self._tasks[handler] = asyncio.create_task(self._serve(handler), name=f"ricordo-bus {handler}")

    async def _serve(self, handler: str) -> None:
        while self._is_running:
            news = self._news
            try:
                row = await self._taken(handler)
                if row is not None:
                    await self._deliver(row, handler)
                    continue
            except RicordoError as error:  # the disk is full or another process locks the file: try later
                _log.warning("the event bus waits: %s", error)
            await _either(news, self._patience.poll_s)

    async def _taken(self, handler: str) -> Delivery | None:
        wall, patience = _wall(), self._patience
        taking = asyncio.create_task(
            self._journal.change(
                lambda rows: take_delivery(
                    rows,
                    handler,
                    holder=self._holder,
                    now=self._clock.now(),
                    wall=wall,
                    until=wall + patience.lease_ms,
                    most_tries=patience.most_tries,
                    is_gone=is_gone,
                )
            )
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            with contextlib.suppress(RicordoError):
                if row := await taking:
                    await self._let_go(row, handler)
            raise

    async def _let_go(self, row: Delivery, handler: str) -> None:
        """Leave a delivery to others at once; else they would wait for the end of its lease."""
        await self._journal.change(lambda rows: rows.ask("delivery_let_go", self._place(row, handler)))

    async def _deliver(self, row: Delivery, handler: str) -> None:
        event = Event(
            id=row.id,
            topic=row.topic,
            payload=row.payload,
            at=from_ms(row.at),
            key=f"{row.id}/{handler}",
            tries=row.tries,
        )
        holding = asyncio.create_task(self._hold(row, handler))
        try:
            following = await self._handlers[handler](event) or ()
            await self._journal.change(self._finished(row, handler, following))
        except asyncio.CancelledError:
            with contextlib.suppress(RicordoError):
                await self._let_go(row, handler)
            raise
        except Exception as error:  # noqa: BLE001  # handlers may be foreign code
            await self._failed(row, handler, error)
        finally:
            holding.cancel()
        self.wake()

    def _finished(self, row: Delivery, handler: str, following: Sequence[Outgoing]) -> Callable[[Rows], None]:
        publishing = [self.publishing(each) for each in following]

        def finish(rows: Rows) -> None:
            if rows.ask("delivery_done", self._place(row, handler)):  # else another process has taken over the delivery
                rows.ask("event_blank", {"event": row.event})
                for publish in publishing:
                    publish(rows)

        return finish

    async def _failed(self, row: Delivery, handler: str, error: Exception) -> None:
        _log.warning("%s failed on %s (attempt %d)", handler, row.topic, row.tries, exc_info=error)
        values = {**self._place(row, handler), "reason": _reason(error)}
        statement = "delivery_bury"
        if row.tries < self._patience.most_tries:
            statement, values["due_at"] = "delivery_again", self._clock.now() + wait_ms(row.tries, self._patience)
        await self._journal.change(lambda rows: rows.ask(statement, values))

    def _place(self, row: Delivery, handler: str) -> dict[str, Any]:
        return {"event": row.event, "handler": handler, "holder": self._holder}

    async def _hold(self, row: Delivery, handler: str) -> None:
        """Renew the lease of a delivery while its handler runs, which may take minutes."""
        lease_ms, place = self._patience.lease_ms, self._place(row, handler)
        while True:
            await asyncio.sleep(lease_ms / 3_000)
            with contextlib.suppress(RicordoError):
                await self._journal.change(
                    lambda rows: rows.ask("delivery_hold", place | {"until": _wall() + lease_ms})
                )

    async def _tidy(self) -> None:
        while True:
            with contextlib.suppress(RicordoError):
                await self._journal.change(lambda rows: remove_old(rows, now=self._clock.now()))
            await asyncio.sleep(_TIDY_EVERY_S)


async def _either(news: asyncio.Event, seconds: float) -> None:
    """Wait for news or a timeout. `wait_for` may swallow a cancellation before Python 3.12."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()


def _reason(error: Exception) -> str:
    """Return the text to record for an error. Our messages contain no user data; messages of other libraries may."""
    said = f": {error.message.partition(': ')[0]}" if isinstance(error, RicordoError) else ""
    return f"{type(error).__name__}{said}"[:_MOST_REASON_CHARS]


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidError(f"{what} must be 1 to {_MOST_NAME_CHARS} printable characters")


def _wall() -> int:
    """Return Unix milliseconds of the machine's clock. Leases between processes ignore an injected clock."""
    return time.time_ns() // 1_000_000


# ---- jobs

# A last run further ahead than this was recorded with a wrong clock.
_FAR_AHEAD_MS = 2 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and its plan. When it is due, an event is published under `topic`."""

    name: str
    cron: str
    topic: str


def latest(cron: str, zone: ZoneInfo, *, now: int) -> int | None:
    """Return the latest time scheduled by a plan up to `now`, in Unix milliseconds; None if there is none in 50 years.

    Raises:
        InvalidError: the plan is invalid.
    """
    after = from_ms(now + 1_000 - now % 1_000).astimezone(zone)
    for _ in range(3):  # when a clock goes back, the latest time may be just ahead
        found = next(_plan(cron, after), None)
        if found is None or to_ms(found) <= now:
            return None if found is None else to_ms(found)
        after = found
    return None


def _plan(cron: str, start: datetime) -> CronSim:
    """Return the times that a plan schedules before a given time, latest first."""
    try:
        return CronSim(cron, start, reverse=True)
    except CronSimError as error:
        raise InvalidError(
            f"{cron!r} is not a cron expression: {str(error)[:1].lower()}{str(error)[1:]}",
            hint='minute, hour, day of the month, month, day of the week: "0 3 * * *"',
        ) from error


def due(last: int | None, found: int | None, *, now: int) -> tuple[int | None, int]:
    """Return the time for which a job must run now, or None, and the last time to record. Pure.

    Args:
        last: the time it last ran for; None if it never ran or its plan has changed: it waits for its next time.
        found: the latest time of its plan.
    """
    if last is None or last > now + _FAR_AHEAD_MS:
        return None, now
    if found is None or found <= last:
        return None, last
    return found, found


class Schedule:
    """Jobs, and the times of their last runs, which are kept in the journal."""

    def __init__(self, journal: Journal, bus: Bus, clock: Clock, zone: ZoneInfo) -> None:
        self._journal = journal
        self._bus = bus
        self._clock = clock
        self._zone = zone
        self._jobs: dict[str, Job] = {}

    def add(self, job: Job) -> None:
        """Raises:
        InvalidError: its plan is invalid.
        """
        _plan(job.cron, from_ms(self._clock.now()).astimezone(self._zone))
        self._jobs[job.name] = job

    async def tick(self) -> list[str]:
        """Publish the jobs that are due, each at most once per scheduled time; return their names."""
        begun = []
        for job in tuple(self._jobs.values()):
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
            """Record the time and the event together, so that no crash or second process repeats the job."""
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
