"""The ASGI application: REST routes from the catalog, an upload, JSON-RPC, MCP, health, figures; behind one guard."""

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
from ricordo.interfaces.call import Caller, Calls
from ricordo.interfaces.catalog import CATALOG, Capability, routes
from ricordo.interfaces.cli.json_text import plain_value
from ricordo.interfaces.http.guard import CALLER, Guard, Limits, failed, json_response, refused
from ricordo.interfaces.http.metrics import Figures
from ricordo.interfaces.http.openapi import document, path_of
from ricordo.interfaces.http.rpc import Rpc
from ricordo.interfaces.http.tokens import Tokens
from ricordo.ports import Progress

_log = logging.getLogger(__name__)

Work = Callable[[Progress], Awaitable[Any]]

_IMPORT = next(each for each in CATALOG if each.method == "import_")
_HEARTBEAT_S = 5.0


class House:
    """What the routes share: the store, the limits, the figures."""

    def __init__(self, calls: Calls, limits: Limits, figures: Figures) -> None:
        self.calls = calls
        self.limits = limits
        self.figures = figures
        self.rpc = Rpc(calls)

    def routed(self, capability: Capability) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of a capability."""

        async def endpoint(request: Request) -> Response:
            caller: Caller = request.scope[CALLER]
            if (wrong := _not_json(request.headers)) is not None:
                return wrong
            body = await self._body(request, self.limits.body_bytes)

            async def work(progress: Progress) -> Any:
                return await self.calls.call(capability, body, caller=caller, as_tool=False, progress=progress)

            return await self._answered(request, work)

        return endpoint

    async def upload(self, request: Request) -> Response:
        """`import_`: the file is the body, so that no caller names files of this machine."""
        caller: Caller = request.scope[CALLER]
        caller.must_have(_IMPORT.access)
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
                return await self.calls.call(_IMPORT, given, caller=caller, as_tool=False, progress=progress)

        return await self._answered(request, work)

    async def _answered(self, request: Request, work: Work) -> Response:
        """The answer when it is there, within the time; or as events, for as long as it takes."""
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(
                self._events(work),
                media_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
            )
        try:
            answer = await asyncio.wait_for(work(lambda done, total: None), self.limits.seconds)
        except TimeoutError:
            hint = "a write may still be done; ask for events (Accept: text/event-stream) where work is long"
            return failed(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint=hint))
        return json_response(answer)

    async def _events(self, work: Work) -> AsyncIterator[str]:
        """`progress` events, a comment now and then to keep the line open, then `result` or `error`."""
        told: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        doing = asyncio.ensure_future(work(lambda done, total: _tell(loop, told, done, total)))
        while not doing.done() or not told.empty():
            ask = asyncio.ensure_future(told.get())
            await asyncio.wait({doing, ask}, timeout=_HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
            if ask.done():
                done, total = ask.result()
                yield _event("progress", {"done": done, "total": total})
            else:
                ask.cancel()
                yield "" if doing.done() else ": still at it\n\n"
        yield _outcome(doing)

    async def _body(self, request: Request, most: int) -> bytes:
        """All of it, if it comes within the time and the size.

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

    async def answer_rpc(self, request: Request) -> Response:
        """JSON-RPC."""
        if (wrong := _not_json(request.headers)) is not None:
            return wrong
        body = await self._body(request, self.limits.body_bytes)
        try:
            status, answer = await asyncio.wait_for(self.rpc.answer(body, request.scope[CALLER]), self.limits.seconds)
        except TimeoutError:
            return failed(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint="try again"))
        return Response(status_code=204) if answer is None else json_response(answer, status=status)

    async def health(self, request: Request) -> Response:
        """Whether the store answers."""
        caller: Caller = request.scope[CALLER]
        memory = await self.calls.memory(caller)
        await memory.log(limit=1)
        return json_response({"status": "ok"})

    async def tell_figures(self, request: Request) -> Response:
        """For Prometheus."""
        caller: Caller = request.scope[CALLER]
        caller.must_have("admin")
        return Response(self.figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _tell(loop: asyncio.AbstractEventLoop, told: asyncio.Queue[tuple[int, int]], done: int, total: int) -> None:
    """Progress may be told from any thread."""
    loop.call_soon_threadsafe(told.put_nowait, (done, total))


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(plain_value(data), ensure_ascii=False)}\n\n"


def _outcome(doing: asyncio.Future[Any]) -> str:
    try:
        return _event("result", doing.result())
    except RicordoError as error:
        return _event("error", {"error": {"code": error.code, "message": error.message, "hint": error.hint}})
    except Exception:  # noqa: BLE001  # a defect of ours: the caller gets an answer all the same
        _log.exception("long work failed")
        return _event("error", {"error": {"code": "error", "message": _DEFECT, "hint": ""}})


def _not_json(headers: Headers) -> Response | None:
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    return refused(415, "invalid", f"content-type: {kind[:100]!r} is not application/json")


def build(
    calls: Calls,
    tokens: Tokens,
    *,
    limits: Limits | None = None,
    hosts: frozenset[str] = frozenset(),
    origins: frozenset[str] = frozenset(),
    socket_caller: Caller | None = None,
    profile: str = "core",
) -> Guard:
    """The application.

    Args:
        hosts, origins: those that may be named besides this machine's own.
        socket_caller: who comes in through the Unix socket without a token.
        profile: the tools of its MCP endpoint.
    """
    limits = limits or Limits()
    figures = Figures()
    house = House(calls, limits, figures)
    mcp = _mcp(calls, profile, limits)
    endpoints = [Route(path_of(each), house.routed(each), methods=["POST"]) for each in routes()]
    endpoints += [
        Route("/v1/import", house.upload, methods=["POST"]),
        Route("/rpc", house.answer_rpc, methods=["POST"]),
        Route("/openapi.json", _described, methods=["GET"]),
        Route("/health", house.health, methods=["GET"]),
        Route("/metrics", house.tell_figures, methods=["GET"]),
        *([] if mcp is None else [Route("/mcp", mcp.endpoint)]),
    ]

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(calls.close)  # after all else: what is being written is finished
            if mcp is not None:
                await stack.enter_async_context(mcp.running())
            yield

    app = Starlette(routes=endpoints, lifespan=life, exception_handlers=_COMPLAINTS)  # type: ignore[arg-type]
    known = frozenset(each.path for each in endpoints)
    return Guard(
        app=app,
        tokens=tokens,
        figures=figures,
        limits=limits,
        hosts=hosts,
        origins=origins,
        socket_caller=socket_caller,
        known=known,
    )


class Mcp:
    """MCP over streamable HTTP: the SDK's sessions, each bound to the token it began with."""

    def __init__(self, calls: Calls, profile: str, limits: Limits) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from ricordo.interfaces.mcp.server import build as build_mcp

        server = build_mcp(calls, profile=profile, caller_of=lambda ctx: ctx.request.scope[CALLER])  # type: ignore[union-attr]
        self._sessions = StreamableHTTPSessionManager(server, max_request_body_size=limits.body_bytes)
        self.running = self._sessions.run

    @property
    def endpoint(self) -> _Asgi:
        return _Asgi(self._sessions.handle_request)


class _Asgi:
    """An ASGI application where Starlette would take a function for an endpoint of its own kind."""

    def __init__(self, handle: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
        from mcp.server.auth.provider import AccessToken

        caller: Caller = scope[CALLER]
        # The name of a token binds a session to it: with another token the session is not found.
        who = AccessToken(token="", client_id=caller.name, scopes=sorted(caller.access), subject=caller.owner)
        await self._handle({**scope, "user": AuthenticatedUser(who)}, receive, send)


def _mcp(calls: Calls, profile: str, limits: Limits) -> Mcp | None:
    try:
        return Mcp(calls, profile, limits)
    except ImportError:  # the extra `mcp` is not installed
        return None


async def _described(request: Request) -> Response:
    return json_response(document())


_DEFECT = "something went wrong inside the memory"
_MEANINGS = {
    404: ("not_found", "there is nothing at this path"),
    405: ("invalid", "this path takes another method"),
    408: ("invalid", "the body did not come in time"),
    413: ("invalid", "the body is too large"),
}


async def _complain(request: Request, error: HTTPException) -> Response:
    code, message = _MEANINGS.get(error.status_code, ("error", error.detail))
    headers = dict(error.headers or {})
    told = {"error": {"code": code, "message": message, "hint": ""}}
    return json_response(told, status=error.status_code, headers=headers)


async def _tell_error(request: Request, error: RicordoError) -> Response:
    return failed(error)


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)


async def _defect(request: Request, error: Exception) -> Response:
    _log.error("%s failed", request.url.path, exc_info=error)
    return refused(500, "error", _DEFECT, hint="see the server's log")


_COMPLAINTS = {HTTPException: _complain, RicordoError: _tell_error, ClientDisconnect: _gone, Exception: _defect}
