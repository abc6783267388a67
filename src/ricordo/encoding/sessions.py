"""Sessions end, and may be kept off the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ricordo.encoding.validation import short_name
from ricordo.errors import NotFoundError
from ricordo.model import Change, Scope
from ricordo.storage import Snapshot


def end(snapshot: Snapshot, scope: Scope, session: str, *, at: datetime) -> Change:
    """Mark a session as over. One that is over already stays as it is.

    Raises:
        NotFoundError: nothing was said in it.
    """
    known = snapshot.sessions.get(scope, short_name(session, name="session") or "")
    if known is None:
        raise NotFoundError(f"session: nothing was said in {session!r}")
    return Change() if known.ended_at else Change(sessions=(replace(known, ended_at=at),))


def go_off_record(snapshot: Snapshot, scope: Scope, session: str | None) -> None:
    """From here on nothing of the session (None: nothing at all) is stored."""
    _mark(snapshot, "off_record_begin", scope, session)


def go_on_record(snapshot: Snapshot, scope: Scope, session: str | None) -> None:
    """Take it back."""
    _mark(snapshot, "off_record_end", scope, session)


def _mark(snapshot: Snapshot, statement: str, scope: Scope, session: str | None) -> None:
    """Both for what the caller's messages and what their facts would be stored under."""
    named = short_name(session, name="session") or ""
    places = {(scope.owner, ""), ("", scope.chat)} if scope.chat else {(scope.owner, "")}
    for owner, chat in places:
        if owner or chat:
            snapshot.rows(statement, {"owner": owner, "chat": chat, "session": named})
