"""A durable event bus: what was published reaches every handler, also after a crash and in another process.

Delivery is at least once: a handler killed between its effect and the record of it runs again. An event's `key` is
the same each time, so a handler that writes under this key, or is idempotent, takes effect once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from ricordo.clock import from_ms
from ricordo.errors import InvalidError, NotFoundError, RicordoError, UnavailableError
from ricordo.host.journal import (
    Delivery,
    Journal,
    Rows,
    fail_delivery,
    finish_delivery,
    open_deliveries,
    put_event,
    read_payload,
    remove_old,
    take_delivery,
)
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
    """An event that a handler failed on, and why. `retry` delivers it again."""

    event: str
    handler: str
    topic: str
    payload: Mapping[str, Any]
    at: datetime
    tries: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When failed deliveries are repeated: after 5 seconds, then after four times as long, up to 6 hours.

    `lease_ms`: how long a delivery stays with a process that may have died.
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
    """Publishes at any time; delivers between `start` and `stop`. A handler receives one event at a time."""

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
        """Publish an event to all subscribers of its topic; return its id when it is durable.

        Args:
            payload: a JSON object of at most 64 kB. Send ids rather than texts: the journal is not a store.
            once: a name under which it is published at most once.

        Raises:
            InvalidError: the topic or the payload is invalid.
            UnavailableError: too many events wait.
        """
        event = Outgoing(topic=topic, payload=payload or {}, once=once)
        id_ = await self._journal.change(self.publishing(event))
        self.wake()
        return id_

    def publishing(self, event: Outgoing) -> Callable[[Rows], str]:
        """Return the publishing as part of another transaction; call `wake` after it."""
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
            raise InvalidError(f"handler: {handler!r} is subscribed already", hint="choose another name")
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
            UnavailableError: the time is over; delivery continues.
        """
        try:
            async with asyncio.timeout(timeout):
                while True:
                    news = self._news
                    if not (await self.waiting())[1]:
                        return
                    await _either(news, 0.05)
        except TimeoutError as error:
            raise UnavailableError("events still wait", hint="they are handled while the host runs") from error

    async def waiting(self) -> tuple[int, int]:
        """Return how many deliveries wait for this process's handlers, and how many of them are due."""
        handlers, now = list(self._handlers), self._clock.now()
        return await self._journal.change(lambda rows: open_deliveries(rows, handlers, now=now))

    async def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the dead letters, latest first."""
        return await self._journal.change(lambda rows: dead_letters(rows, limit))

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
            except RicordoError as error:  # the disk is full or another process holds the file: try later
                _log.warning("the event bus waits: %s", error)
            await _either(news, self._patience.poll_s)

    async def _taken(self, handler: str) -> Delivery | None:
        wall, patience = _wall(), self._patience
        return await self._journal.change(
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
            values = {"event": row.event, "handler": handler, "holder": self._holder}
            with contextlib.suppress(RicordoError):
                await self._journal.change(lambda rows: rows.ask("delivery_let_go", values))
            raise
        except Exception as error:  # noqa: BLE001  # a handler may be anybody's code
            await self._failed(row, handler, error)
        finally:
            holding.cancel()
        self.wake()

    def _finished(self, row: Delivery, handler: str, following: Sequence[Outgoing]) -> Callable[[Rows], None]:
        publishing = [self.publishing(each) for each in following]

        def finish(rows: Rows) -> None:
            if finish_delivery(rows, row, handler, holder=self._holder):
                for publish in publishing:
                    publish(rows)

        return finish

    async def _failed(self, row: Delivery, handler: str, error: Exception) -> None:
        _log.warning("%s failed on %s (attempt %d)", handler, row.topic, row.tries, exc_info=error)
        is_last = row.tries >= self._patience.most_tries
        due_at = None if is_last else self._clock.now() + wait_ms(row.tries, self._patience)
        await self._journal.change(
            lambda rows: fail_delivery(rows, row, handler, holder=self._holder, due_at=due_at, reason=_reason(error))
        )

    async def _hold(self, row: Delivery, handler: str) -> None:
        """Renew the lease of a delivery while its handler runs, which may take minutes."""
        lease_ms = self._patience.lease_ms
        place = {"event": row.event, "handler": handler, "holder": self._holder}
        while True:
            await asyncio.sleep(lease_ms / 3_000)
            with contextlib.suppress(RicordoError):
                await self._journal.change(partial(_prolong, place, until=_wall() + lease_ms))

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


def dead_letters(rows: Rows, limit: int) -> tuple[DeadLetter, ...]:
    """Return the dead letters of a journal, latest first."""
    return tuple(
        DeadLetter(
            event=id_,
            handler=handler,
            topic=topic,
            payload=read_payload(payload),
            at=from_ms(at),
            tries=tries,
            reason=reason,
        )
        for id_, handler, topic, payload, at, tries, reason in rows.ask("dead_letters", {"most": limit})
    )


def _prolong(place: Mapping[str, Any], rows: Rows, *, until: int) -> None:
    rows.ask("delivery_hold", {**place, "until": until})


def _reason(error: Exception) -> str:
    """Return what is recorded of an error: our messages hold no content, those of other libraries may."""
    said = f": {error.message.partition(': ')[0]}" if isinstance(error, RicordoError) else ""
    return f"{type(error).__name__}{said}"[:_MOST_REASON_CHARS]


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidError(f"{what} must be 1 to {_MOST_NAME_CHARS} printable characters")


def _wall() -> int:
    """Return Unix milliseconds by the machine's clock: leases between processes ignore an injected clock."""
    return time.time_ns() // 1_000_000
