"""The ASGI application: REST routes from the catalog, upload, JSON-RPC, MCP, health and metrics behind one guard."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ricordo.errors import InvalidError, RicordoError, UnavailableError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import CATALOG, Capability, routes
from ricordo.interfaces.http.guard import CALLER, Guard, Limits, Metrics, error_response, failure, json_response
from ricordo.interfaces.http.openapi import document, path_of
from ricordo.interfaces.http.rpc import Rpc
from ricordo.interfaces.http.tokens import Tokens
from ricordo.interfaces.serialize import error_value, plain_value
from ricordo.ports import Progress

_log = logging.getLogger(__name__)

Work = Callable[[Progress], Awaitable[Any]]

_IMPORT = next(each for each in CATALOG if each.method == "import_")
_HEARTBEAT_S = 5.0
_DEFECT = "something went wrong inside the memory"


def build(
    dispatcher: Dispatcher,
    tokens: Tokens,
    *,
    limits: Limits | None = None,
    hosts: frozenset[str] = frozenset(),
    origins: frozenset[str] = frozenset(),
    socket_caller: Caller | None = None,
    profile: str = "core",
) -> Guard:
    """Build the application.

    Args:
        hosts, origins: Those that are allowed besides this machine's own.
        socket_caller: The caller behind the Unix socket, which needs no token.
        profile: The tools of the MCP endpoint.
    """
    limits = limits or Limits()
    metrics = Metrics()
    handlers = Handlers(dispatcher, limits, metrics)
    mcp = _mcp(dispatcher, profile, limits)
    endpoints = [Route(path_of(each), handlers.for_capability(each), methods=["POST"]) for each in routes()]
    endpoints += [
        Route("/v1/import", handlers.upload, methods=["POST"]),
        Route("/rpc", handlers.answer_rpc, methods=["POST"]),
        Route("/openapi.json", _describe, methods=["GET"]),
        Route("/health", handlers.health, methods=["GET"]),
        Route("/metrics", handlers.show_metrics, methods=["GET"]),
        *([] if mcp is None else [Route("/mcp", mcp)]),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(dispatcher.close)  # last of all: pending writes are finished
            if mcp is not None:
                await stack.enter_async_context(mcp.sessions.run())
            yield

    app = Starlette(routes=endpoints, lifespan=lifespan, exception_handlers=_ERROR_HANDLERS)  # type: ignore[arg-type]
    return Guard(
        app=app,
        tokens=tokens,
        metrics=metrics,
        limits=limits,
        hosts=hosts,
        origins=origins,
        socket_caller=socket_caller,
        known=frozenset(each.path for each in endpoints),
    )


class Handlers:
    """The endpoints, over one store with one set of limits and metrics."""

    def __init__(self, dispatcher: Dispatcher, limits: Limits, metrics: Metrics) -> None:
        self.dispatcher = dispatcher
        self.limits = limits
        self.metrics = metrics
        self.rpc = Rpc(dispatcher)

    def for_capability(self, capability: Capability) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a capability."""

        async def endpoint(request: Request) -> Response:
            caller: Caller = request.scope[CALLER]
            if (refusal := _refuse_other_types(request.headers)) is not None:
                return refusal
            body = await self._body(request, self.limits.body_bytes)

            async def work(progress: Progress) -> Any:
                return await self.dispatcher.call(capability, body, caller=caller, as_tool=False, progress=progress)

            return await self._respond(request, work)

        return endpoint

    async def upload(self, request: Request) -> Response:
        """Import the file in the body, so that no caller names files of this machine."""
        caller: Caller = request.scope[CALLER]
        caller.require(_IMPORT.access)
        unknown = set(request.query_params) - {"format", "dry_run"}
        dry_run = {"": False, "false": False, "true": True}.get(request.query_params.get("dry_run", ""))
        if unknown or dry_run is None:
            raise InvalidError(f"query: {', '.join(sorted(unknown)) or 'dry_run'}", hint="format, dry_run=true|false")
        body = await self._body(request, self.limits.upload_bytes)

        async def work(progress: Progress) -> Any:
            with tempfile.TemporaryDirectory(prefix="ricordo-") as folder:
                file = Path(folder) / "upload"
                await asyncio.to_thread(file.write_bytes, body)
                given = {"path": str(file), "format": request.query_params.get("format"), "dry_run": dry_run}
                return await self.dispatcher.call(_IMPORT, given, caller=caller, as_tool=False, progress=progress)

        return await self._respond(request, work)

    async def answer_rpc(self, request: Request) -> Response:
        """Answer a JSON-RPC message."""
        if (refusal := _refuse_other_types(request.headers)) is not None:
            return refusal
        body = await self._body(request, self.limits.body_bytes)
        try:
            status, answer = await asyncio.wait_for(self.rpc.answer(body, request.scope[CALLER]), self.limits.seconds)
        except TimeoutError:
            return failure(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint="try again"))
        return Response(status_code=204) if answer is None else json_response(answer, status=status)

    async def health(self, request: Request) -> Response:
        """Answer whether the store can be read."""
        memory = await self.dispatcher.memory(request.scope[CALLER])
        await memory.log(limit=1)
        return json_response({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        caller: Caller = request.scope[CALLER]
        caller.require("admin")
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _respond(self, request: Request, work: Work) -> Response:
        """Return the answer within the time limit, or as a stream of events for as long as it takes."""
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(
                _events(work),
                media_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
            )
        try:
            answer = await asyncio.wait_for(work(lambda done, total: None), self.limits.seconds)
        except TimeoutError:
            hint = "a write may still complete; for long work, ask for events (Accept: text/event-stream)"
            return failure(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint=hint))
        return json_response(answer)

    async def _body(self, request: Request, most: int) -> bytes:
        """Read the whole body within the limits of time and size.

        Raises:
            HTTPException: 413 or 408.
        """
        with contextlib.suppress(ValueError):
            if int(request.headers.get("content-length", "0")) > most:
                raise HTTPException(413)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise HTTPException(413)
                    parts.append(part)
        except TimeoutError as error:
            raise HTTPException(408) from error
        return b"".join(parts)


def _refuse_other_types(headers: Headers) -> Response | None:
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    return error_response(415, "invalid", f"content-type: {kind[:100]!r} is not application/json")


# events


async def _events(work: Work) -> AsyncIterator[str]:
    """Yield `progress` events, a comment now and then to keep the connection open, then `result` or `error`."""
    reported: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def report(done: int, total: int) -> None:  # from any thread
        loop.call_soon_threadsafe(reported.put_nowait, (done, total))

    running = asyncio.ensure_future(work(report))
    while not running.done() or not reported.empty():
        next_report = asyncio.ensure_future(reported.get())
        await asyncio.wait({running, next_report}, timeout=_HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
        if next_report.done():
            done, total = next_report.result()
            yield _event("progress", {"done": done, "total": total})
        else:
            next_report.cancel()
            yield "" if running.done() else ": still running\n\n"
    yield _outcome(running)


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(plain_value(data), ensure_ascii=False)}\n\n"


def _outcome(finished: asyncio.Future[Any]) -> str:
    try:
        return _event("result", finished.result())
    except RicordoError as error:
        return _event("error", error_value(error))
    except Exception:  # noqa: BLE001  # a defect of ours: the caller gets an answer all the same
        _log.exception("a long call failed")
        return _event("error", {"error": {"code": "error", "message": _DEFECT, "hint": ""}})


# MCP


class _Mcp:
    """MCP over streamable HTTP: the SDK's sessions, each bound to the token it began with."""

    def __init__(self, dispatcher: Dispatcher, profile: str, limits: Limits) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from ricordo.interfaces.mcp.server import build as build_mcp

        server = build_mcp(dispatcher, profile=profile, caller_of=lambda ctx: ctx.request.scope[CALLER])  # type: ignore[union-attr]
        self.sessions = StreamableHTTPSessionManager(server, max_request_body_size=limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        caller: Caller = scope[CALLER]
        # The name of a token binds a session to it: with another token the session is not found.
        who = AccessToken(token="", client_id=caller.name, scopes=sorted(caller.access), subject=caller.owner)
        await self.sessions.handle_request({**scope, "user": AuthenticatedUser(who)}, receive, send)


def _mcp(dispatcher: Dispatcher, profile: str, limits: Limits) -> _Mcp | None:
    try:
        return _Mcp(dispatcher, profile, limits)
    except ImportError:  # the extra `mcp` is not installed
        return None


# the description, and errors


async def _describe(request: Request) -> Response:
    return json_response(document())


_HTTP_ERRORS = {
    404: ("not_found", "there is nothing at this path"),
    405: ("invalid", "this path takes another method"),
    408: ("invalid", "the body did not arrive in time"),
    413: ("invalid", "the body is too large"),
}


async def _http_error(request: Request, error: HTTPException) -> Response:
    code, message = _HTTP_ERRORS.get(error.status_code, ("error", error.detail))
    body = {"error": {"code": code, "message": message, "hint": ""}}
    return json_response(body, status=error.status_code, headers=dict(error.headers or {}))


async def _library_error(request: Request, error: RicordoError) -> Response:
    return failure(error)


async def _disconnected(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)


async def _defect(request: Request, error: Exception) -> Response:
    _log.error("%s failed", request.url.path, exc_info=error)
    return error_response(500, "error", _DEFECT, hint="see the server's log")


_ERROR_HANDLERS = {
    HTTPException: _http_error,
    RicordoError: _library_error,
    ClientDisconnect: _disconnected,
    Exception: _defect,
}
