"""What every request passes before anything else looks at it: Host, Origin, token, rate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Caller
from ricordo.interfaces.cli.json_text import plain_value
from ricordo.interfaces.http.metrics import Figures
from ricordo.interfaces.http.tokens import Tokens

CALLER = "ricordo.caller"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one server takes.

    Attributes:
        body_bytes: of a request; an upload may have `upload_bytes`.
        seconds: for one answer; long work that tells its progress may take longer.
        rate: requests a second of one caller, in the long run; `burst` at once.
    """

    body_bytes: int = 4 * 1024 * 1024
    upload_bytes: int = 64 * 1024 * 1024
    seconds: float = 30.0
    rate: float = 100.0
    burst: int = 200
    concurrent: int = 200


@dataclass(slots=True)
class _Bucket:
    """Fills by `rate` a second, holds at most `burst`."""

    left: float
    at: float


@dataclass(slots=True, kw_only=True)
class Guard:
    """An ASGI application around another one.

    Attributes:
        hosts, origins: names besides those of this machine; "name" or "name:port", "https://name".
        socket_caller: who comes in through the Unix socket, which only its owner can open.
        known: the paths that figures tell apart.
    """

    app: ASGIApp
    tokens: Tokens
    figures: Figures
    limits: Limits
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    socket_caller: Caller | None = None
    known: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun, status = self.clock(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.figures.in_flight += 1
        try:
            answer = self._refusal(scope) or self.app
            await answer(scope, receive, counted)
        finally:
            self.figures.in_flight -= 1
            route = scope["path"] if scope["path"] in self.known else "other"
            self.figures.note(route, status, self.clock() - begun)

    def _refusal(self, scope: Scope) -> Response | None:
        """What to answer instead, or None: then the scope says who calls."""
        headers = Headers(scope=scope)
        name, port = scope.get("server") or ("", 0)
        is_local = port is None and str(name).startswith("/")  # a Unix socket has a path and no port
        if not is_local and not self._is_ours(headers.get("host", ""), self.hosts):
            return refused(403, "denied", "this Host is not served", hint="name it with --allow-host")
        origin = headers.get("origin")
        if origin is not None and not self._is_our_origin(origin):
            return refused(403, "denied", "this Origin may not call", hint="name it with --allow-origin")
        try:
            caller = self._caller(headers, is_local=is_local)
        except RicordoError as error:
            return failed(error)
        if not self._has_room(caller):
            return refused(429, "unavailable", "too many requests", hint="wait a second", retry_after=1)
        if caller is None:
            return refused(401, "unauthorized", "a token is missing or wrong", hint="Authorization: Bearer TOKEN")
        scope[CALLER] = caller
        return None

    def _caller(self, headers: Headers, *, is_local: bool) -> Caller | None:
        given = headers.get("authorization")
        if given is None:
            return self.socket_caller if is_local else None
        kind, _, secret = given.partition(" ")
        return self.tokens.caller(secret.strip()) if kind.lower() == "bearer" else None

    def _is_ours(self, host: str, others: Iterable[str]) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        bare = name if port.isdigit() else host
        return bare.lower() in _LOOPBACK or host.lower() in others or bare.lower() in others

    def _is_our_origin(self, origin: str) -> bool:
        if origin.lower() in self.origins:
            return True
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._is_ours(host, ())

    def _has_room(self, caller: Caller | None) -> bool:
        """Whoever has no valid token shares one bucket with all who have none."""
        name = "" if caller is None else caller.name
        now, limits = self.clock(), self.limits
        bucket = self._buckets.setdefault(name, _Bucket(limits.burst, now))
        bucket.left = min(limits.burst, bucket.left + (now - bucket.at) * limits.rate)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True


def refused(status: int, code: str, message: str, *, hint: str = "", retry_after: int | None = None) -> Response:
    """An error as every door of ours tells it."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return json_response({"error": {"code": code, "message": message, "hint": hint}}, status=status, headers=headers)


def failed(error: RicordoError) -> Response:
    """An error of the library, with its status."""
    return refused(
        error.http_status,
        error.code,
        error.message,
        hint=error.hint,
        retry_after=1 if error.http_status == 503 else None,
    )


def _compact(value: Any) -> bytes:
    return json.dumps(plain_value(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def json_response(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A document no browser takes for anything else, and no cache keeps."""
    safe = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} | (headers or {})
    return Response(_compact(value), status_code=status, media_type="application/json", headers=safe)
