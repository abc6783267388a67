"""The middleware for all requests: checks of Host, Origin, token and rate limit, and metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Caller
from ricordo.interfaces.http.shares import InProgress
from ricordo.interfaces.http.tokens import Tokens
from ricordo.interfaces.serialize import plain_value

CALLER = "ricordo.caller"
"""The key of the caller in the ASGI scope."""
NAME = "ricordo.name"
"""The key of the name by which a request is limited; missing without a valid token or cookie."""
TAKE = "ricordo.take"
"""The scope key of a function that counts a batch's further calls; it returns False if the rate limit is exceeded."""
_log = logging.getLogger(__name__)
_LOOK_S = 0.5  # how often an open stream asks whether its token is still valid
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server.

    Attributes:
        body_bytes: The maximum size of a request body; for an upload, it is `upload_bytes`.
        seconds: The maximum time for one answer; work that streams progress events may take longer.
        rate: Requests per second and caller, on average; up to `burst` at once.
        concurrent: The maximum number of simultaneous requests, without streams.
        each: The maximum number of simultaneous requests of one caller, and of its calls that are still running.
        streams: The maximum number of open streams of one caller.
        sessions: The maximum number of MCP sessions of one caller. Beyond it, the oldest idle one is closed.
        connections: The maximum number of connections. Beyond it, the oldest idle one is closed.
        header_seconds: The maximum time for receiving the headers of a request.
    """

    body_bytes: int = 4 * 1024 * 1024
    upload_bytes: int = 64 * 1024 * 1024
    seconds: float = 30.0
    rate: float = 100.0
    burst: int = 200
    concurrent: int = 200
    each: int = 50
    streams: int = 200
    sessions: int = 100
    connections: int = 2_000
    header_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The statistics of a route since the server started. `errors` counts the statuses from 500."""

    route: str
    requests: int
    mean_ms: float
    errors: int


class Metrics:
    """The metrics of a server since its start. Only known routes are labels, so that there are few of them."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS_S) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def record(self, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._requests[route, status] += 1
        self._buckets[route][bisect_left(_BOUNDS_S, seconds)] += 1
        self._seconds[route] += seconds

    def summary(self) -> list[Speed]:
        """Return the speed of each route, the busiest first."""
        found = []
        for route, seconds in self._seconds.items():
            counts = {status: count for (each, status), count in self._requests.items() if each == route}
            requests = sum(counts.values())
            errors = sum(count for status, count in counts.items() if status >= 500)
            found.append(Speed(route=route, requests=requests, mean_ms=1_000 * seconds / requests, errors=errors))
        return sorted(found, key=lambda each: -each.requests)

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        lines = [
            "# HELP ricordo_requests_total Requests answered.",
            "# TYPE ricordo_requests_total counter",
            *(
                f'ricordo_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self._requests.items())
            ),
            "# HELP ricordo_requests_in_flight Requests being answered.",
            "# TYPE ricordo_requests_in_flight gauge",
            f"ricordo_requests_in_flight {self.in_flight}",
            "# HELP ricordo_request_seconds Time to answer, in seconds.",
            "# TYPE ricordo_request_seconds histogram",
            *(line for route in sorted(self._buckets) for line in self._histogram(route)),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str) -> list[str]:
        lines, total = [], 0
        for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), self._buckets[route], strict=True):
            total += count
            lines.append(f'ricordo_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
        lines.append(f'ricordo_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
        lines.append(f'ricordo_request_seconds_count{{route="{route}"}} {total}')
        return lines


@dataclass(slots=True)
class _Bucket:
    """A token bucket of a rate limit: it fills by `rate` per second and holds at most `burst`."""

    left: float
    at: float


PUBLIC = frozenset(("/", "/docs"))
"""Paths that need no token: they describe the server and contain no memories."""


class Page(Protocol):
    """The pages for people. Requests to them have no token but a cookie, which the pages check themselves."""

    def key(self, caller: Caller) -> str:
        """Return the path of a one-time link for the person who started the server."""

    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the pages."""

    def visitor(self, headers: Headers) -> str:
        """Return the name of the visitor's caller, by which its requests are limited; "" without a session."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


@dataclass(slots=True, kw_only=True)
class Guard:
    """An ASGI middleware that checks and counts requests.

    Attributes:
        hosts, origins: Allowed in addition to this machine's, as "name" or "name:port" and as "https://name".
        socket_caller: The caller of requests over the Unix socket, which only its owner can open.
        known: The paths that have metrics of their own.
    """

    app: ASGIApp
    tokens: Tokens
    metrics: Metrics
    limits: Limits
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    socket_caller: Caller | None = None
    known: frozenset[str] = frozenset()
    page: Page | None = None
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _open: InProgress = field(init=False)

    def __post_init__(self) -> None:
        self._open = InProgress(requests=self.limits.each, streams=self.limits.streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started, status = self.clock(), 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            try:
                await send(message)
            except Exception as error:
                # The rest of the request was malformed and uvicorn has already answered: log no traceback.
                if not type(error).__module__.startswith("h11."):
                    raise
                _log.debug("not answered: %s", error)

        self.metrics.in_flight += 1
        try:
            is_page = self.page is not None and self.page.owns(scope["path"])
            refusal = self._page_refusal(scope) if is_page else self._refusal(scope)
            name = scope.get(NAME, "")
            answer = refusal or self._crowded(name) or (self.page if is_page else self.app)
            assert answer is not None
            with self._open.request(name) as becomes_stream:
                answer = answer if CALLER not in scope else self._until_revoked(answer)
                await answer(scope, self._punctual(receive), _noting_stream(send_and_note_status, becomes_stream))
        finally:
            self.metrics.in_flight -= 1
            route = "page" if is_page else scope["path"] if scope["path"] in self.known else "other"
            self.metrics.record(route, status, self.clock() - started)

    def _until_revoked(self, answer: ASGIApp) -> ASGIApp:
        """Return an app that ends the streams of `answer` as soon as the caller's token is revoked or changed."""

        async def answer_until_revoked(scope: Scope, receive: Receive, send: Send) -> None:
            streams, revoked = asyncio.Event(), asyncio.Event()

            def end_if_revoked() -> None:
                if streams.is_set() and self._is_revoked(scope):
                    revoked.set()
                    running.cancel()

            async def send_unless_revoked(message: Message) -> None:
                end_if_revoked()
                if not revoked.is_set():
                    await send(message)

            running = asyncio.ensure_future(answer(scope, receive, _noting_stream(send_unless_revoked, streams.set)))
            try:
                while not running.done():
                    await asyncio.wait({running}, timeout=_LOOK_S)
                    end_if_revoked()
            finally:
                running.cancel()
                await asyncio.wait({running})
            if revoked.is_set():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                running.result()

        return answer_until_revoked

    def _is_revoked(self, scope: Scope) -> bool:
        caller: Caller = scope[CALLER]
        try:
            return self._caller(scope) != caller
        except RicordoError:
            return True  # no token is accepted while the file of tokens cannot be read

    def _host_refusal(self, headers: Headers) -> Response | None:
        if self._is_our_host(headers.get("host", ""), self.hosts):
            return None
        return error_response(403, "denied", "requests for this Host are refused", hint="allow it with --allow-host")

    def _page_refusal(self, scope: Scope) -> Response | None:
        """Return the refusal of a request to the pages, or None. The pages check Origin and cookie themselves."""
        headers = Headers(scope=scope)
        scope[NAME] = name = "" if self.page is None else self.page.visitor(headers)
        if (refusal := self._host_refusal(headers)) is not None:
            return refusal
        return None if self._has_room(name) else _too_many()

    def _crowded(self, name: str) -> Response | None:
        if (problem := self._open.problem(name)) is not None:
            hint = "wait for an answer or close a stream; give each program its own token"
            return error_response(429, "unavailable", problem, hint=hint, retry_after=1)
        if self._open.total < self.limits.concurrent:
            return None
        return error_response(503, "unavailable", "too many requests at a time", hint="try again", retry_after=1)

    def _punctual(self, receive: Receive) -> Receive:
        """Return a `receive` that disconnects if the body does not arrive in time."""
        until, is_whole = self.clock() + self.limits.seconds, False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, until - self.clock())):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            is_whole = not message.get("more_body", False)
            return message

        return receive_in_time

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the refusal of a request, or put the caller into the scope and return None."""
        headers = Headers(scope=scope)
        if not _is_local(scope) and (refusal := self._host_refusal(headers)) is not None:
            return refusal
        origin = headers.get("origin")
        if origin is not None and not self._is_our_origin(origin):
            return error_response(
                403, "denied", "requests from this Origin are refused", hint="allow it with --allow-origin"
            )
        try:
            caller = self._caller(scope)
        except RicordoError as error:
            return failure(error)
        name = "" if caller is None else caller.name
        if scope["path"] in PUBLIC and scope["method"] in ("GET", "HEAD") and caller is None and self._has_room(name):
            return None
        if not self._has_room(name):
            return _too_many()
        if caller is None:
            hint = "send the header Authorization: Bearer TOKEN"
            return error_response(401, "unauthorized", "the token is missing or wrong", hint=hint)
        scope[CALLER], scope[NAME] = caller, name
        scope[TAKE] = partial(self._has_room, name)
        return None

    def _caller(self, scope: Scope) -> Caller | None:
        given = Headers(scope=scope).get("authorization")
        if given is None:
            return self.socket_caller if _is_local(scope) else None
        kind, _, secret = given.partition(" ")
        return self.tokens.caller(secret.strip()) if kind.lower() == "bearer" else None

    def _is_our_host(self, host: str, others: Iterable[str]) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        bare = name if port.isdigit() else host
        return bare.lower() in _LOOPBACK or host.lower() in others or bare.lower() in others

    def _is_our_origin(self, origin: str) -> bool:
        if origin.lower() in self.origins:
            return True
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._is_our_host(host, ())

    def _has_room(self, name: str, count: int = 1) -> bool:
        """Take `count` requests from a caller's bucket. Callers without a valid token or cookie share one bucket."""
        now, limits = self.clock(), self.limits
        bucket = self._buckets.setdefault(name, _Bucket(limits.burst, now))
        bucket.left = min(limits.burst, bucket.left + (now - bucket.at) * limits.rate)
        bucket.at = now
        if bucket.left < count:
            return False
        bucket.left -= count
        return True


def _is_local(scope: Scope) -> bool:
    name, port = scope.get("server") or ("", 0)
    return port is None and str(name).startswith("/")  # a Unix socket has a path and no port


def _noting_stream(send: Send, note: Callable[[], None]) -> Send:
    """Return a `send` that calls `note` when the answer begins, if it is a stream of events."""

    async def send_and_note(message: Message) -> None:
        headers = Headers(raw=message["headers"]) if message["type"] == "http.response.start" else Headers()
        if headers.get("content-type", "").startswith("text/event-stream"):
            note()
        await send(message)

    return send_and_note


def _too_many() -> Response:
    return error_response(429, "unavailable", "too many requests", hint="wait a second", retry_after=1)


def json_response(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response that browsers do not interpret as another type and caches do not store."""
    body = json.dumps(plain_value(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    safe = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} | (headers or {})
    return Response(body, status_code=status, media_type="application/json", headers=safe)


def error_response(status: int, code: str, message: str, *, hint: str = "", retry_after: int | None = None) -> Response:
    """Return an error in the JSON form of all interfaces."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return json_response({"error": {"code": code, "message": message, "hint": hint}}, status=status, headers=headers)


def failure(error: RicordoError) -> Response:
    """Return a response for an error of the library."""
    retry_after = 1 if error.http_status == 503 else None
    return error_response(error.http_status, error.code, error.message, hint=error.hint, retry_after=retry_after)
