"""The pages as an ASGI application: signing in, security headers, and routing."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ricordo.errors import RicordoError
from ricordo.interfaces.call import Caller, Dispatcher
from ricordo.interfaces.http.guard import Metrics, error_response, json_response
from ricordo.interfaces.http.tokens import Tokens, digest
from ricordo.interfaces.page import changes, conversations, graph, health, inbox, memories, people, runs, search
from ricordo.interfaces.page.rendering import Texts, assets, environment, language_of
from ricordo.interfaces.page.session import Sessions, is_same
from ricordo.interfaces.page.visit import Visit

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]

_PAGES: tuple[tuple[str, str, str, Handler], ...] = (
    *search.PAGES,
    *memories.PAGES,
    *inbox.PAGES,
    *conversations.PAGES,
    *changes.PAGES,
    *people.PAGES,
    *graph.PAGES,
    *runs.PAGES,
    *health.PAGES,
)
"""The HTTP method, path, navigation entry and handler of each page."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_MOST_BYTES = 1024 * 1024
_LOOK_S = 1.0
_STREAM_S = 3_600


class Site:
    """The pages of one server."""

    def __init__(self, dispatcher: Dispatcher, tokens: Tokens, metrics: Metrics) -> None:
        self.dispatcher = dispatcher
        self.tokens = tokens
        self.metrics = metrics
        self.sessions = Sessions(tokens=tokens)
        routes = [
            Route("/page/static/{name:path}", _static),
            Route("/page/enter", self._enter, methods=["GET", "POST"]),
            Route("/page/link", self._link, methods=["POST"]),
            Route("/page/leave", self._handler(self._leave, ""), methods=["POST"]),
            Route("/page/live", self._handler(self._live, "")),
            *(Route(path, self._handler(work, section), methods=[method]) for method, path, section, work in _PAGES),
        ]
        handlers = {HTTPException: self._http_error, Exception: self._defect}
        self._app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]

    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the pages."""
        return path == "/" or path == "/page" or path.startswith("/page/")

    def visitor(self, headers: Headers) -> str:
        """Return the name of the visitor's caller, by which its requests are limited; "" without a session."""
        session = self.sessions.of(_cookie(headers))
        return "" if session is None else session.caller.name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the security headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                safe = ((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
                message["headers"] = [*message["headers"], *(each for each in safe if each[0] not in given)]
            await send(message)

        refusal = _foreign(Headers(scope=scope), scope["method"], scope["path"])
        answer: ASGIApp = self._app if refusal is None else refusal
        await answer(scope, receive, send_with_headers)

    def key(self, caller: Caller) -> str:
        """Return the path of a one-time link for the person who started the server."""
        return f"/page/enter?key={self.sessions.link(caller, is_ours=True)}"

    # signing in

    async def _link(self, request: Request) -> Response:
        """Create a one-time link for the holder of an access token."""
        secret = _bearer(request.headers)
        caller = self.tokens.caller(secret)
        if caller is None:
            return error_response(401, "unauthorized", "the token is missing or wrong")
        key = self.sessions.link(caller, digest=digest(secret))
        return json_response({"path": f"/page/enter?key={key}", "owner": caller.owner, "chat": caller.chat})

    async def _enter(self, request: Request) -> Response:
        """Exchange a link, or a token typed by the visitor, for a cookie."""
        texts = self._texts(request)
        if request.method == "GET":
            key = request.query_params.get("key", "")
            found = self.sessions.whose(key) if key else None
            present = self.sessions.of(_cookie(request.headers))
            if found is not None and found[1] and (present is None or present.caller == found[0]):
                return self._begun(request, self.sessions.exchange(key))
            problem = "enter.used" if key and found is None else None
            return _entrance(texts, key=key if found else None, caller=found[0] if found else None, problem=problem)
        form = {} if _bearer(request.headers) else await _form(request)
        if key := form.get("key", ""):
            return self._begun(request, self.sessions.exchange(key)) or _entrance(texts, problem="enter.used")
        secret = form.get("token", "").strip() or _bearer(request.headers)
        caller = self.tokens.caller(secret)
        if caller is None:
            return _entrance(texts, problem="enter.wrong", status=401)
        return self._begun(request, self.sessions.begin(caller, digest=digest(secret)))

    def _begun(self, request: Request, cookie: str | None) -> Response:
        if cookie is None:
            return _entrance(self._texts(request), problem="enter.used", status=401)
        self.sessions.end(_cookie(request.headers))
        answer = RedirectResponse("/", status_code=303)
        is_secure = request.headers.get("x-forwarded-proto", "").lower() == "https"
        answer.set_cookie(
            _cookie_name(request.headers), cookie, httponly=True, samesite="strict", path="/", secure=is_secure
        )
        return answer

    async def _leave(self, visit: Visit) -> Response:
        self.sessions.end(_cookie(visit.request.headers))
        answer = _entrance(visit.texts, problem="enter.left")
        answer.delete_cookie(_cookie_name(visit.request.headers), path="/", httponly=True, samesite="strict")
        return answer

    # pages

    def _handler(self, work: Handler, section: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            session = self.sessions.of(_cookie(request.headers))
            texts = self._texts(request)
            if session is None:  # "/" itself is not an error: it explains how to sign in
                return _entrance(texts, status=200 if request.url.path == "/" and not request.url.query else 401)
            visit = Visit(
                request=request,
                session=session,
                dispatcher=self.dispatcher,
                memory=await self.dispatcher.memory(session.caller),
                tokens=self.tokens,
                metrics=self.metrics,
                texts=texts,
                section=section,
            )
            try:
                if request.method == "POST":
                    visit.form = await _form(request)
                    given = visit.form.get("csrf") or request.headers.get("x-csrf", "")
                    if not is_same(given, session.csrf):
                        return visit.page("problem.html", status=403, message=texts("problem.stale"), hint="")
                else:
                    visit.seq = await visit.latest()
                return await work(visit)
            except RicordoError as error:
                return visit.page("problem.html", status=error.http_status, message=error.message, hint=error.hint)

        return endpoint

    async def _live(self, visit: Visit) -> Response:
        """Stream an event for each change of the store, including changes by other processes."""
        return StreamingResponse(self._news(visit), media_type="text/event-stream")

    async def _news(self, visit: Visit) -> AsyncIterator[str]:
        after, cookie = visit.asked("after") or "", _cookie(visit.request.headers)
        known = int(after) if after.isdecimal() and len(after) < 19 else await visit.latest()
        yield "retry: 2000\n\n"
        for passed in range(_STREAM_S):
            await asyncio.sleep(_LOOK_S)
            if self.dispatcher.is_closing() or self.sessions.of(cookie) is None:
                return
            with suppress(RicordoError):
                latest = await visit.latest()
                if latest != known:
                    known = latest
                    yield f"event: changed\ndata: {json.dumps(latest)}\n\n"
                elif passed % 15 == 0:
                    yield ": still here\n\n"

    def _texts(self, request: Request) -> Texts:
        session = self.sessions.of(_cookie(request.headers))
        chosen = session.language if session is not None else None
        return Texts(chosen or language_of(request.headers.get("accept-language", "")))

    async def _http_error(self, request: Request, error: HTTPException) -> Response:
        texts = self._texts(request)
        key = "problem.missing" if error.status_code in (404, 405) else "problem.defect"
        return _entrance(texts, problem=key, status=error.status_code)

    async def _defect(self, request: Request, error: Exception) -> Response:
        _log.error("%s failed", request.url.path, exc_info=error)
        return _entrance(self._texts(request), problem="problem.defect", status=500)


def _foreign(headers: Headers, method: str, path: str) -> Response | None:
    """Return a refusal for a cross-site request, or a form that was not sent by one of our pages; None otherwise."""
    if path == "/page/link":  # called by programs, with a token
        return None
    texts = Texts(language_of(headers.get("accept-language", "")))
    is_from_elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if is_from_elsewhere and not path.startswith("/page/static/"):
        return _entrance(texts, problem="enter.foreign", status=403)
    origin = headers.get("origin")
    if origin is None and method in ("GET", "HEAD"):
        return None
    if origin is None and "sec-fetch-site" not in headers:
        # Old browsers send neither header with another site's form, so a token in the form proves nothing: it could be
        # the other site's own. The header Authorization can be set by programs alone, and by pages that we allow.
        is_program = path == "/page/enter" and bool(_bearer(headers))
        return None if is_program else _entrance(texts, problem="enter.unsaid", status=403)
    parts = urlsplit(origin or "")
    if parts.scheme in ("http", "https") and parts.netloc.lower() == headers.get("host", "").lower():
        return None
    return _entrance(texts, problem="enter.foreign", status=403)


def _entrance(
    texts: Texts, *, key: str | None = None, caller: Caller | None = None, problem: str | None = None, status: int = 200
) -> Response:
    """Return the page for visitors without a session."""
    made = environment().get_template("enter.html").render(t=texts, key=key, caller=caller, problem=problem)
    return HTMLResponse(made, status_code=status)


def _bearer(headers: Headers) -> str:
    """Return the token in the header Authorization, or ""."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _cookie_name(headers: Headers) -> str:
    """Return the name of the cookie. It contains the port, because all ports of a machine share cookies."""
    _, _, port = headers.get("host", "").rpartition(":")
    return f"ricordo-{port}" if port.isdigit() else "ricordo"


def _cookie(headers: Headers) -> str:
    wanted = _cookie_name(headers) + "="
    found = [part.strip() for part in headers.get("cookie", "").split(";")]
    return next((part[len(wanted) :] for part in found if part.startswith(wanted)), "")


async def _form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises HTTPException if the body is too large or not a form."""
    if not request.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise HTTPException(413)
    text = body.decode("utf-8", "replace")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=200))
    except ValueError as error:
        raise HTTPException(413) from error


async def _static(request: Request) -> Response:
    """Return a static file. Its URL changes with its content, so browsers may cache it."""
    name = str(request.path_params["name"])
    if name not in assets():
        raise HTTPException(404)
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    body = assets()[name][0]
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = _packed(name), "gzip"
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(body, media_type=f"{kind}; charset=utf-8", headers=headers)


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(assets()[name][0], 9, mtime=0)
