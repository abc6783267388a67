"""Assigns messages to sessions: a session ends after half an hour of silence, or when a message names another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ricordo.clock import new_id
from ricordo.errors import InvalidError
from ricordo.host.bus import Bus, Outgoing
from ricordo.host.journal import Journal, Rows
from ricordo.ports import Clock

SESSION_COMPLETED = "session.completed"
"""The topic under which the end of a session is published: owner, chat, session, reason."""

_MOST_NAME_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Identifies a conversation: its owner, chat and channel (a terminal, a messenger)."""

    owner: str
    chat: str = ""
    channel: str = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """The state of a conversation. `last_at`: time of the last message, in Unix milliseconds."""

    session: str | None
    last_at: int
    is_off_record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The session of a message, and the session that it ended, if any."""

    session: str
    is_new: bool
    is_off_record: bool
    completed: str | None = None


def turn(
    before: ConversationState | None, *, named: str | None, fresh: str, now: int, timeout_ms: int
) -> tuple[ConversationState, str]:
    """Return the state after a message, and why the previous session ended ("" if it did not). Pure.

    Args:
        named: the session that the message names, if any.
        fresh: the name of a new session.
        timeout_ms: the silence after which a session ends. A clock that was set back causes no silence.
    """
    if before is None or before.session is None:
        is_off_record = before is not None and before.is_off_record
        return ConversationState(session=named or fresh, last_at=now, is_off_record=is_off_record), ""
    if named is not None and named != before.session:
        return replace(before, session=named, last_at=now), "another session began"
    if named is None and now - before.last_at > timeout_ms:
        return replace(before, session=fresh, last_at=now), "inactivity"
    return replace(before, last_at=max(now, before.last_at)), ""


class Router:
    """Keeps the state of conversations in the journal. The end of a session is published in the same transaction."""

    def __init__(self, journal: Journal, bus: Bus, clock: Clock, *, timeout_s: float) -> None:
        self._journal = journal
        self._bus = bus
        self._clock = clock
        self._timeout_ms = int(timeout_s * 1_000)

    async def route(self, place: ConversationKey, *, session: str | None = None) -> Route:
        """Return the session of a message that arrives now. The previous session ends after too long a silence, or if
        the message names another one.

        Raises:
            InvalidError: the session's name is blank or too long.
        """
        if session is not None and (not session.strip() or len(session) > _MOST_NAME_CHARS):
            raise InvalidError("session: the name is blank or too long", hint="leave it out to get a new one")
        now = self._clock.now()
        fresh = f"{place.channel}-{new_id(now)}"

        def work(rows: Rows) -> Route:
            before = _read(rows, place)
            after, why = turn(before, named=session, fresh=fresh, now=now, timeout_ms=self._timeout_ms)
            over = before.session if before is not None and why else None
            if before is not None and over is not None:
                self._completing(place, before, why)(rows)
            _write(rows, place, after)
            is_new = before is None or before.session != after.session
            return Route(
                session=after.session or fresh, is_new=is_new, is_off_record=after.is_off_record, completed=over
            )

        routed = await self._journal.change(work)
        if routed.completed is not None:
            self._bus.wake()
        return routed

    async def standing(self, place: ConversationKey) -> ConversationState | None:
        """Return the current state of a conversation; after too long a silence it has no session."""
        await self.sweep()
        return await self._journal.change(lambda rows: _read(rows, place))

    async def complete(self, place: ConversationKey, *, reason: str = "it was ended") -> str | None:
        """End a conversation's session now; return its name, or None if there is none."""

        def work(rows: Rows) -> str | None:
            before = _read(rows, place)
            if before is None or before.session is None:
                return None
            self._completing(place, before, reason)(rows)
            _write(rows, place, replace(before, session=None))
            return before.session

        over = await self._journal.change(work)
        self._bus.wake()
        return over

    async def sweep(self) -> list[str]:
        """End all sessions that have been silent for too long; return their names."""
        before = self._clock.now() - self._timeout_ms

        def work(rows: Rows) -> list[str]:
            over = []
            for owner, chat, channel, session, last_at, off in rows.ask("conversations_silent", {"before": before}):
                place = ConversationKey(owner=owner, chat=chat, channel=channel)
                standing = ConversationState(session=session, last_at=last_at, is_off_record=bool(off))
                self._completing(place, standing, "inactivity")(rows)
                _write(rows, place, replace(standing, session=None))
                over.append(session)
            return over

        over = await self._journal.change(work)
        if over:
            self._bus.wake()
        return over

    async def off_record(self, place: ConversationKey, is_off: bool) -> None:
        """Set whether a conversation is off the record; this also holds for its next sessions."""

        def work(rows: Rows) -> None:
            before = _read(rows, place) or ConversationState(session=None, last_at=self._clock.now())
            _write(rows, place, replace(before, is_off_record=is_off))

        await self._journal.change(work)

    def _completing(self, place: ConversationKey, standing: ConversationState, why: str) -> Callable[[Rows], Any]:
        """Return a function that publishes the end in the caller's transaction, so that it is never repeated."""
        payload = {"owner": place.owner, "chat": place.chat, "session": standing.session, "reason": why}
        return self._bus.publishing(Outgoing(topic=SESSION_COMPLETED, payload=payload))


def _read(rows: Rows, place: ConversationKey) -> ConversationState | None:
    found = rows.ask("conversation_get", _named(place))
    if not found:
        return None
    session, last_at, is_off_record = found[0]
    return ConversationState(session=session, last_at=last_at, is_off_record=bool(is_off_record))


def _write(rows: Rows, place: ConversationKey, standing: ConversationState) -> None:
    values = {"session": standing.session, "last_at": standing.last_at, "is_off_record": int(standing.is_off_record)}
    rows.ask("conversation_put", {**_named(place), **values})


def _named(place: ConversationKey) -> dict[str, str]:
    return {"owner": place.owner, "chat": place.chat, "channel": place.channel}
