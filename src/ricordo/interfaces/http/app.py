"""The ASGI application: REST routes from the catalog, upload, JSON-RPC, MCP, health and metrics behind one guard.

JSON-RPC 2.0 has `memory.search`, `memory.add`, `memory.list` and `memory.delete` for sandboxes, and `memory.NAME` for
every other route. If a call has a user or chat parameter, it must match the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from difflib import get_close_matches
from html import escape
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ricordo.encoding.facts import check_is_told
from ricordo.errors import DeniedError, InvalidError, RicordoError, UnavailableError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.catalog import CATALOG, Capability, routes
from ricordo.interfaces.http.guard import CALLER, TAKE, Guard, Limits, Metrics, error_response, failure, json_response
from ricordo.interfaces.http.tokens import Tokens
from ricordo.interfaces.schema import document, first_problem, path_of
from ricordo.interfaces.serialize import error_value, plain_value
from ricordo.model import Commit, Origin
from ricordo.ports import Progress
from ricordo.storage.staging import temporary_folder

_log = logging.getLogger(__name__)

Work = Callable[[Progress], Awaitable[Any]]

_IMPORT = next(each for each in CATALOG if each.method == "import_")
_HEARTBEAT_S = 5.0
_IN_MEMORY_BYTES = 1_000_000  # a larger upload is buffered on disk
_LOOK_S = 0.5  # how often a stream asks whether the server is about to stop
_STREAM_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_DEFECT = "an internal error occurred"


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
        hosts, origins: Allowed besides the names of this machine.
        socket_caller: The caller of requests over the Unix socket, which need no token.
        profile: The tools of the MCP endpoint.
    """
    limits = limits or Limits()
    dispatcher.most_calls = limits.each
    metrics = Metrics()
    handlers = Handlers(dispatcher, limits, metrics)
    try:
        from ricordo.interfaces.http.mcp_endpoint import HttpEndpoint

        mcp = [HttpEndpoint(dispatcher, profile=profile, limits=limits)]
    except ImportError:  # the extra `mcp` is not installed
        mcp = []
    try:
        from ricordo.interfaces.page.site import Site

        page = Site(dispatcher, tokens, metrics)
    except ImportError:  # jinja2 is not installed
        page = None
    endpoints = [Route(path_of(each), handlers.for_capability(each), methods=["POST"]) for each in routes()]
    endpoints += [
        Route("/v1/import", handlers.upload, methods=["POST"]),
        Route("/v1/changes", handlers.changes, methods=["GET"]),
        Route("/rpc", handlers.answer_rpc, methods=["POST"]),
        Route("/", _welcome, methods=["GET"]),
        Route("/docs", _reference, methods=["GET"]),
        Route("/openapi.json", _describe, methods=["GET"]),
        Route("/health", handlers.health, methods=["GET"]),
        Route("/metrics", handlers.show_metrics, methods=["GET"]),
        *([Route("/mcp", each) for each in mcp] or [Route("/mcp", _without_mcp, methods=["GET", "POST", "DELETE"])]),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(dispatcher.close)  # runs last, to finish pending writes
            for each in mcp:
                await stack.enter_async_context(each.sessions.run())
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
        page=page,
    )


class Handlers:
    """The endpoints of one server."""

    def __init__(self, dispatcher: Dispatcher, limits: Limits, metrics: Metrics) -> None:
        self.dispatcher = dispatcher
        self.limits = limits
        self.metrics = metrics
        self.rpc = Rpc(dispatcher)
        self.importing = asyncio.Semaphore(1)  # for large files: parsed JSON takes ten times the size of the file
        self.uploading: set[str] = set()  # callers
        self.running: set[asyncio.Future[Any]] = set()

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
        """Import the file in the request body. Callers cannot name files on this machine."""
        caller: Caller = request.scope[CALLER]
        caller.require(_IMPORT.method)
        name, given = _upload_of(request.query_params)
        if caller.name in self.uploading:
            raise UnavailableError("another import of this caller is still running", hint="wait until it is done")
        self.uploading.add(caller.name)
        with contextlib.ExitStack() as stack:
            stack.callback(self.uploading.discard, caller.name)
            spooled = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES))
            await self._receive(request, self.limits.upload_bytes, spooled.write)
            until_done = stack.pop_all()

        async def work(progress: Progress) -> Any:
            is_large = spooled.tell() > _IN_MEMORY_BYTES
            with temporary_folder() as folder:
                async with self.importing if is_large else contextlib.nullcontext():
                    file = folder / name
                    await asyncio.to_thread(_write, spooled, file)
                    with _without(folder):
                        return await self.dispatcher.call(
                            _IMPORT, {"path": str(file), **given}, caller=caller, as_tool=False, progress=progress
                        )

        return await self._respond(request, work, at_end=until_done.close)

    async def changes(self, request: Request) -> Response:
        """Stream the changes after the number in `after` or, when a client reconnects, in the header Last-Event-ID."""
        caller: Caller = request.scope[CALLER]
        caller.require("changes")
        given = request.headers.get("last-event-id") or request.query_params.get("after")
        if set(request.query_params) - {"after"} or (given is not None and not _POSITION.fullmatch(given)):
            raise InvalidError("query: after must be the number of a change", hint="use after=0 for all changes")
        memory = await self.dispatcher.memory(caller)
        following = memory.changes(after=None if given is None else int(given))
        return StreamingResponse(
            _changes(following, self.dispatcher.is_closing), media_type="text/event-stream", headers=_STREAM_HEADERS
        )

    async def answer_rpc(self, request: Request) -> Response:
        """Answer a JSON-RPC message."""
        if (refusal := _refuse_other_types(request.headers)) is not None:
            return refusal
        body = await self._body(request, self.limits.body_bytes)
        try:
            work = self.rpc.answer(body, request.scope[CALLER], take=request.scope[TAKE])
            status, answer = await asyncio.wait_for(work, self.limits.seconds)
        except TimeoutError:
            return failure(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint="try again"))
        return Response(status_code=204) if answer is None else json_response(answer, status=status)

    async def health(self, request: Request) -> Response:
        """Report whether the store can be read."""
        caller: Caller = request.scope[CALLER]
        caller.require("health")
        await (await self.dispatcher.memory(caller)).log(limit=1)
        return json_response({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        caller: Caller = request.scope[CALLER]
        caller.require("metrics")
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _respond(self, request: Request, work: Work, *, at_end: Callable[[], None] | None = None) -> Response:
        """Return the answer within the time limit, or as a stream of events without one. The work goes on if the client
        of a stream leaves.

        Args:
            at_end: Called when the work is done or cancelled.
        """
        reported: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def report(done: int, total: int) -> None:  # from any thread
            loop.call_soon_threadsafe(reported.put_nowait, (done, total))

        running = asyncio.ensure_future(work(report))
        self.running.add(running)
        running.add_done_callback(self.running.discard)
        if at_end is not None:
            running.add_done_callback(lambda _: at_end())
        if "text/event-stream" in request.headers.get("accept", ""):
            events = _events(running, reported)
            return StreamingResponse(events, media_type="text/event-stream", headers=_STREAM_HEADERS)
        try:
            answer = await asyncio.wait_for(running, self.limits.seconds)
        except TimeoutError:
            hint = "a write may still complete; for long work, ask for events (Accept: text/event-stream)"
            return failure(UnavailableError(f"no answer within {self.limits.seconds:g} seconds", hint=hint))
        return json_response(answer)

    async def _body(self, request: Request, most: int) -> bytes:
        parts: list[bytes] = []
        await self._receive(request, most, parts.append)
        return b"".join(parts)

    async def _receive(self, request: Request, most: int, keep: Callable[[bytes], object]) -> None:
        """Read the whole body within the limits of time and size. Raises HTTPException: 413 or 408."""
        with contextlib.suppress(ValueError):
            if int(request.headers.get("content-length", "0")) > most:
                raise HTTPException(413)
        size = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise HTTPException(413)
                    keep(part)
        except TimeoutError as error:
            raise HTTPException(408) from error


@contextlib.contextmanager
def _without(folder: Path) -> Iterator[None]:
    """Leave a folder of this machine out of the messages of errors."""
    try:
        yield
    except InvalidError as error:
        raise InvalidError(error.message.replace(f"{folder}{os.sep}", ""), hint=error.hint) from error


_FLAGS = {"": False, "false": False, "true": True}


def _upload_of(query: QueryParams) -> tuple[str, dict[str, Any]]:
    """Return the name of an uploaded file, and the arguments of its import. Raises InvalidError."""
    name = PurePosixPath(query.get("name", "upload").replace("\\", "/")).name
    flags = {each: _FLAGS.get(query.get(each, "")) for each in ("dry_run", "shared")}
    wrong = sorted(set(query) - {"format", "me", "name", *flags})
    wrong += [each for each, value in flags.items() if value is None]
    is_name = name.isprintable() and name.strip(".") and len(name.encode()) <= 200
    wrong += [] if is_name else ["name"]
    if wrong:
        hint = "use format=NAME, me=NAME, name=FILE, shared=true or false, dry_run=true or false"
        raise InvalidError(f"query: {', '.join(wrong)} is invalid", hint=hint)
    if query.get("format") == "document" and "name" not in query:
        raise InvalidError(
            "query: a document needs a name", hint="add name=FILE, by which a later version is recognised"
        )
    return name, {"format": query.get("format"), "me": query.getlist("me"), **flags}


def _write(content: IO[bytes], path: Path) -> None:
    content.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file)


def _refuse_other_types(headers: Headers) -> Response | None:
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    wrong = f"content-type: {kind[:100]!r} is not application/json"
    return error_response(415, "invalid", wrong, hint="send the header Content-Type: application/json")


# JSON-RPC

_MAX_BATCH = 50

_CODES = {
    "invalid": -32602,
    "not_found": -32004,
    "conflict": -32009,
    "denied": -32003,
    "unavailable": -32050,
    "store": -32051,
}


class _Params(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    user_id: str | None = None
    chat_id: str | None = None


class _Search(_Params):
    query: str
    limit: int = Field(10, ge=1, le=1_000)


class _Add(_Params):
    content: str
    source: Origin | None = None
    expires_days: int | None = Field(None, ge=1, le=36_500)
    subjects: list[str] = Field(default_factory=list)
    id: str | None = None
    at: str | None = None
    shared: bool = False


class _List(_Params):
    limit: int = Field(50, ge=1, le=1_000)
    include_expired: bool = False


class _Delete(_Params):
    memory_id: str


class Rpc:
    """Answers a caller's JSON-RPC messages."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._routes = {f"memory.{each.method.rstrip('_')}": each for each in routes()}
        self._own: Mapping[str, tuple[type[_Params], Callable[[Any, Caller], Awaitable[Any]]]] = {
            "memory.search": (_Search, self._search),
            "memory.add": (_Add, self._add),
            "memory.list": (_List, self._list),
            "memory.delete": (_Delete, self._delete),
        }

    @property
    def methods(self) -> list[str]:
        """The names of all methods."""
        return sorted({*self._routes, *self._own})

    async def answer(
        self, body: bytes, caller: Caller, *, take: Callable[[int], bool] = lambda count: True
    ) -> tuple[int, Any]:
        """Answer a message or a batch: return the HTTP status and the JSON value, None if no answer is expected.

        A single call that fails has the status of its error, so that proxies can see refusals. A batch has 200.

        Args:
            take: Counts further calls toward the caller's rate limit; returns False if the limit is exceeded.
        """
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return 400, _error(None, -32700, "the body is not JSON, or too deeply nested")
        if not isinstance(message, list):
            return await self._one(message, caller)
        if not 1 <= len(message) <= _MAX_BATCH:
            return 400, _error(None, -32600, f"a batch has 1 to {_MAX_BATCH} calls")
        if not take(len(message) - 1):
            return 429, _error(None, _CODES["unavailable"], "too many requests: each call of a batch counts")
        answers = [(await self._one(each, caller))[1] for each in message]
        expected = [each for each in answers if each is not None]
        return (200, expected) if expected else (204, None)

    async def _one(self, message: Any, caller: Caller) -> tuple[int, Any]:
        call = message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else {}
        if not isinstance(call.get("method"), str):
            return 400, _error(None, -32600, "this is not a JSON-RPC 2.0 call")
        number, params = message.get("id"), message.get("params", {})
        if not isinstance(number, str | int | float | None) or isinstance(number, bool):
            return 400, _error(None, -32600, "the id must be text or a number")
        if not isinstance(params, dict):
            return 422, _error(number, -32602, "params must be an object")
        try:
            result = await self._result(message["method"], params, caller)
        except RicordoError as error:
            code = -32601 if isinstance(error, _NoMethodError) else _CODES.get(error.code, -32603)
            answer = _error(number, code, error.message, data={"code": error.code, "hint": error.hint})
            return error.http_status, answer
        except Exception:  # noqa: BLE001  # even after a bug, the caller gets an answer
            _log.exception("%s failed", message["method"])
            return 500, _error(number, -32603, _DEFECT)
        if "id" not in message:
            return 204, None
        return 200, {"jsonrpc": "2.0", "id": number, "result": plain_value(result)}

    async def _result(self, method: str, params: dict[str, Any], caller: Caller) -> Any:
        if method in self._own:
            kind, work = self._own[method]
            return await work(_check_params(kind, params, caller), caller)
        if method not in self._routes:
            name = method[:100]
            alike = get_close_matches(f"memory.{name.removeprefix('memory.')}", self.methods, n=1)
            asked = f"did you mean {alike[0]}? " if alike else ""
            raise _NoMethodError(f"there is no method {name!r}", hint=f"{asked}methods are called memory.NAME")
        own = {name: value for name, value in params.items() if name not in ("user_id", "chat_id")}
        _check_scope(params.get("user_id"), params.get("chat_id"), caller)
        return await self._call(method, own, caller)

    async def _call(self, method: str, arguments: dict[str, Any], caller: Caller) -> Any:
        # As bytes, so that types are checked as strictly as for REST.
        given = json.dumps(arguments).encode()
        return await self._dispatcher.call(self._routes[method], given, caller=caller, as_tool=False)

    async def _search(self, params: _Search, caller: Caller) -> Any:
        return await self._call("memory.search", {"text": params.query, "limit": params.limit}, caller)

    async def _add(self, params: _Add, caller: Caller) -> Any:
        caller.require("remember")
        memory = await self._dispatcher.memory(caller)
        check_is_told(params.content)
        expires = None if params.expires_days is None else f"in {params.expires_days} days"
        # Only a caller with the trust level "user" may give another origin.
        origin = (params.source or "rpc") if caller.trust == "user" else caller.origin
        return await memory.remember(
            params.content,
            about=params.subjects,
            expires=expires,
            origin=origin,
            id=params.id,
            at=params.at,
            shared=params.shared,
        )

    async def _list(self, params: _List, caller: Caller) -> Any:
        page = await self._call("memory.list", {"limit": params.limit}, caller)
        if not params.include_expired:
            return {"nodes": page.nodes}
        closed = await self._call("memory.list", {"limit": params.limit, "archived": True}, caller)
        expired = [node for node in closed.nodes if node.closed_reason == "expired"]
        latest = sorted((*page.nodes, *expired), key=lambda node: node.created_at, reverse=True)
        return {"nodes": latest[: params.limit]}

    async def _delete(self, params: _Delete, caller: Caller) -> Any:
        node = await self._call("memory.forget", {"id": params.memory_id}, caller)
        waits = {"proposal": node.id, "notice": node.notice} if node.notice else {}
        return {"memory_id": params.memory_id, "deleted": not waits, **waits}


class _NoMethodError(RicordoError):
    """There is no such method."""

    code = "not_found"
    http_status = 404


def _check_params(kind: type[_Params], params: dict[str, Any], caller: Caller) -> _Params:
    try:
        given = kind.model_validate_json(json.dumps(params))
    except ValidationError as error:
        raise InvalidError(first_problem(error)) from error
    except ValueError as error:
        raise InvalidError("params are not valid JSON") from error
    _check_scope(given.user_id, given.chat_id, caller)
    return given


def _check_scope(user: Any, chat: Any, caller: Caller) -> None:
    """Raise DeniedError unless the given user and chat are the caller's."""
    if user is not None and user != caller.owner:
        raise DeniedError("user_id does not belong to this token", hint="omit it, or use that user's token")
    if chat is not None and chat != caller.chat:
        raise DeniedError("chat_id does not belong to this token", hint="omit it, or use that chat's token")


def _error(number: Any, code: int, message: str, *, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": number, "error": error}


# events


async def _events(running: asyncio.Future[Any], reported: asyncio.Queue[tuple[int, int]]) -> AsyncIterator[str]:
    """Yield `progress` events, then `result` or `error`, with comments in between to keep the connection open."""
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


_POSITION = re.compile(r"\d{1,15}")
_STREAM_S = 600  # the client then reconnects with the last number it has seen, and its token is checked again


async def _changes(following: AsyncIterator[Commit], is_closing: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield a `change` event for each commit, its number as event id, and comments to keep the connection open."""
    now = asyncio.get_running_loop().time
    until, told = now() + _STREAM_S, now()
    step = asyncio.ensure_future(anext(following))
    try:
        while now() < until and not is_closing():
            await asyncio.wait({step}, timeout=_LOOK_S)
            if step.done():
                commit = step.result()
                yield f"id: {commit.seq}\n{_event('change', commit)}"
                told, step = now(), asyncio.ensure_future(anext(following))
            elif now() - told >= _HEARTBEAT_S:
                yield ": nothing new\n\n"
                told = now()
    except UnavailableError:
        return  # the store was closed
    finally:
        step.cancel()


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


# the description, and errors


_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;
margin:2rem auto;padding:0 1rem;color:#222;background:#fff}}code,pre{{background:#f3f3f3;padding:.1em .3em}}
pre{{padding:.6em;overflow:auto}}table{{border-collapse:collapse}}td,th{{text-align:left;vertical-align:top;
padding:.2rem .8rem .2rem 0;border-bottom:1px solid #ddd}}</style></head><body>{body}</body></html>"""
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


def _page(title: str, body: str) -> Response:
    return Response(_PAGE.format(title=title, body=body), media_type="text/html", headers=_PAGE_HEADERS)


async def _welcome(_: Request) -> Response:
    """Return a page with links to the documentation."""
    return _page(
        "Ricordo",
        "<h1>Ricordo</h1><p>This server keeps a long-term memory for AI agents.</p><ul>"
        '<li><a href="/docs">/docs</a>: the reference of all routes</li>'
        "<li><code>/openapi.json</code>: the same for programs (with a token)</li>"
        "<li>The client for TypeScript and JavaScript is the folder <code>clients/typescript</code> "
        "of the Python package <code>ricordo</code></li>"
        "<li><code>/mcp</code>: the endpoint for MCP clients; <code>/rpc</code>: JSON-RPC</li></ul>"
        "<p>Each request needs the header <code>Authorization: Bearer TOKEN</code>. The terminal in which the server "
        "was started names the file of the token; <code>ricordo token add NAME</code> creates another.</p>",
    )


async def _reference(_: Request) -> Response:
    """Return the reference of all routes as HTML without scripts, made from the OpenAPI document."""
    described = document()
    info = described["info"]
    parts = [f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"]
    parts.append(
        "<p>Clients: <code>ricordo-sb</code>, and for TypeScript and JavaScript the folder "
        "<code>clients/typescript</code> of the Python package <code>ricordo</code>.</p>"
        "<p>A parameter is also known under its names at other interfaces, such as <code>query</code>.</p><ul>"
    )
    paths = [(path, operation["post"]) for path, operation in described["paths"].items()]
    parts += [f'<li><a href="#{escape(path)}">{escape(path)}</a></li>' for path, _ in paths]
    parts.append("</ul>")
    for path, operation in paths:
        parts.append(f'<h2 id="{escape(path)}"><code>POST {escape(path)}</code></h2><p>{escape(operation["summary"])}')
        parts.append(f"<br>{escape(operation['description'])}</p>")
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        parts.append(_parameters_table(body))
    return _page("Ricordo: reference", "".join(parts))


def _parameters_table(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        f"<tr><td><code>{escape(name)}</code>{' (required)' if name in needed else ''}</td>"
        f"<td>{escape(_kind(each))}</td><td>{escape(each.get('description', ''))}</td></tr>"
        for name, each in schema.get("properties", {}).items()
    ]
    return f"<table><tr><th>field</th><th>type</th><th>meaning</th></tr>{''.join(rows)}</table>" if rows else ""


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(kind for each in schema["anyOf"] if (kind := _kind(each)) != "null")
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})) or 'values'}"
    return str(schema.get("type", ""))


async def _describe(request: Request) -> Response:
    caller: Caller = request.scope[CALLER]
    caller.require("openapi")
    return json_response(document())


_HTTP_ERRORS = {
    404: ("not_found", "there is nothing at this path", "GET /docs lists the paths"),
    405: ("invalid", "this path takes another method", "POST to /v1/...; GET /docs lists the methods"),
    408: ("invalid", "the body did not arrive in time", "try again"),
    413: ("invalid", "the body is too large", "send less at once"),
}


async def _without_mcp(request: Request) -> Response:
    return error_response(404, "not_found", "this server has no MCP endpoint", hint='pip install "ricordo[mcp]"')


async def _http_error(request: Request, error: HTTPException) -> Response:
    code, message, hint = _HTTP_ERRORS.get(error.status_code, ("error", error.detail, ""))
    body = {"error": {"code": code, "message": message, "hint": hint}}
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
