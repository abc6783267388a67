"""MCP over streamable HTTP: sessions of the MCP SDK, each bound to the token that started it, and limited per token."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.http.guard import CALLER, Limits, error_response
from ricordo.interfaces.http.shares import overfull
from ricordo.interfaces.mcp import build

_SESSION = "mcp-session-id"
_IDLE_S = 1_800.0
_MOST = 2_000
"""The most sessions of all callers. The SDK refuses further ones beyond `_MOST` and some that are just being opened."""


@dataclass(slots=True)
class _Session:
    """An open session; `requests` counts those that are being answered, an open stream included."""

    user: AuthenticatedUser
    used_at: float
    requests: int = 0

    @property
    def name(self) -> str:
        return self.user.access_token.client_id


class HttpEndpoint:
    """The ASGI endpoint. If a caller has too many sessions, its oldest idle one is closed."""

    def __init__(
        self, dispatcher: Dispatcher, *, profile: str, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        server = build(dispatcher, profile=profile, caller_of=lambda ctx: ctx.request.scope[CALLER])  # type: ignore[union-attr]
        self.sessions = StreamableHTTPSessionManager(
            server,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=_IDLE_S,
            max_sessions=_MOST + limits.concurrent,
        )
        self._each = limits.sessions
        self._clock = clock
        self._known: dict[str, _Session] = {}
        self._opening: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope[CALLER]
        # The session is bound to the name of the token: requests with another token do not find it.
        who = AccessToken(token="", client_id=caller.name, scopes=sorted(caller.access), subject=caller.owner)
        scope = {**scope, "user": AuthenticatedUser(who)}
        id = Headers(scope=scope).get(_SESSION, "")
        session = self._known.get(id)
        if session is None or session.user.access_token != who:
            await self._open(scope, receive, send)
            return
        session.requests += 1
        try:
            await self.sessions.handle_request(scope, receive, send)
        finally:
            session.requests -= 1
            session.used_at = self._clock()
            if scope["method"] == "DELETE":
                self._known.pop(id, None)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request outside the known sessions, which may open one."""
        user: AuthenticatedUser = scope["user"]
        name = user.access_token.client_id
        if self._in_use(name) >= self._each:
            problem = f"this caller has {self._each} MCP sessions in use"
            hint = "close one of them; give each program its own token"
            await error_response(429, "unavailable", problem, hint=hint, retry_after=1)(scope, receive, send)
            return

        async def send_and_note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                id = Headers(raw=message["headers"]).get(_SESSION, "")
                if id and scope["method"] == "POST":
                    self._known.setdefault(id, _Session(user, self._clock()))
            await send(message)

        self._opening[name] += 1
        try:
            await self.sessions.handle_request(scope, receive, send_and_note_session)
        finally:
            self._opening[name] -= 1
        await self._trim()

    def _in_use(self, name: str) -> int:
        return self._opening[name] + sum(each.requests > 0 for each in self._known.values() if each.name == name)

    async def _trim(self) -> None:
        """Close the oldest idle sessions of callers who have too many."""
        self._known = {
            id: each
            for id, each in self._known.items()
            if each.requests or self._clock() - each.used_at < _IDLE_S  # the SDK has closed the others
        }
        while (name := overfull((each.name for each in self._known.values()), each=self._each, most=_MOST)) is not None:
            idle = [id for id, each in self._known.items() if each.name == name and not each.requests]
            if not idle:
                return
            await self._close(min(idle, key=lambda id: self._known[id].used_at))

    async def _close(self, id: str) -> None:
        """Close a session as its client would."""
        session = self._known.pop(id)

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(message: Message) -> None:
            return None

        request = {"type": "http", "http_version": "1.1", "method": "DELETE", "scheme": "http", "path": "/mcp"}
        headers = [(_SESSION.encode(), id.encode())]
        scope = {**request, "raw_path": b"/mcp", "query_string": b"", "headers": headers, "user": session.user}
        await self.sessions.handle_request(scope, receive, ignore)
