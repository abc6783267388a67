"""Signing in to the page: one-time links, and the sessions they are exchanged for."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ricordo.interfaces.call import Caller
from ricordo.interfaces.http.shares import overfull
from ricordo.interfaces.http.tokens import Tokens

LINK_S = 600
"""A link that nobody opens expires after 10 minutes."""
IDLE_S = 12 * 3_600
LONGEST_S = 7 * 24 * 3_600
_MOST = 1_000
_EACH = 50
"""The most links, and the most sessions, of one caller. Beyond it, the caller's oldest is removed.

Beyond `_MOST` of all callers together, the caller who has most loses its oldest: no caller can end others' sessions."""


@dataclass(slots=True, kw_only=True)
class Session:
    """The session of a browser.

    Attributes:
        caller: The owner, trust level and permissions of the session. They never change.
        digest: The digest of the access token that was used; None for the person who started the server.
        csrf: The secret that every form must contain.
        as_of: The time that the pages are set to; None for the present.
        language: The language chosen on the page; None for the browser's language.
        notice: A message for the next page, with the number of the change that can be undone.
    """

    caller: Caller
    digest: str | None
    csrf: str
    made_at: float
    used_at: float
    as_of: str | None = None
    language: str | None = None
    notice: tuple[str, int | None] | None = None


@dataclass(frozen=True, slots=True)
class _Link:
    caller: Caller
    digest: str | None
    is_ours: bool
    made_at: float


_Held = TypeVar("_Held", _Link, Session)


@dataclass(slots=True, kw_only=True)
class Sessions:
    """The links and sessions of one server. They are kept in memory and end with the process.

    Attributes:
        tokens: The access tokens; a session ends when its token is revoked.
    """

    tokens: Tokens
    clock: Callable[[], float] = time.monotonic
    _links: dict[str, _Link] = field(default_factory=dict)
    _sessions: dict[str, Session] = field(default_factory=dict)

    def link(self, caller: Caller, *, digest: str | None = None, is_ours: bool = False) -> str:
        """Return the key of a new one-time link.

        Args:
            is_ours: The link is for the person at this machine's terminal, so opening it needs no confirmation.
        """
        key = secrets.token_urlsafe(32)
        self._links[_hash(key)] = _Link(caller, digest, is_ours, self.clock())
        _trim(self._links, lambda each: each.made_at)
        return key

    def whose(self, key: str) -> tuple[Caller, bool] | None:
        """Return a link's caller, and whether the link is for the person at the terminal; None if it is invalid."""
        link = self._links.get(_hash(key))
        if link is None or self.clock() - link.made_at > LINK_S:
            return None
        return link.caller, link.is_ours

    def exchange(self, key: str) -> str | None:
        """Exchange a link for a cookie; None if it has expired or was used before."""
        known = self.whose(key)
        link = self._links.pop(_hash(key), None)
        return None if known is None or link is None else self.begin(link.caller, digest=link.digest)

    def begin(self, caller: Caller, *, digest: str | None) -> str:
        """Start a session; return its cookie."""
        cookie, now = secrets.token_urlsafe(32), self.clock()
        self._sessions[_hash(cookie)] = Session(
            caller=caller, digest=digest, csrf=secrets.token_urlsafe(32), made_at=now, used_at=now
        )
        _trim(self._sessions, lambda each: each.used_at)
        return cookie

    def of(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if the session has ended, or its token was revoked or changed."""
        session, now = self._sessions.get(_hash(cookie)), self.clock()
        if session is None:
            return None
        is_over = now - session.used_at > IDLE_S or now - session.made_at > LONGEST_S
        if is_over or (session.digest is not None and self.tokens.of_digest(session.digest) != session.caller):
            self.end(cookie)
            return None
        session.used_at = now
        return session

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(cookie), None)


def is_same(one: str, other: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _trim(known: dict[str, _Held], at: Callable[[_Held], float]) -> None:
    while (name := overfull((each.caller.name for each in known.values()), each=_EACH, most=_MOST)) is not None:
        del known[min((key for key, each in known.items() if each.caller.name == name), key=lambda key: at(known[key]))]
