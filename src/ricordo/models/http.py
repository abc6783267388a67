"""JSON over HTTP to model providers: retries with backoff, a deadline for the whole answer, and our own errors.

Shared by embedders and language models. An answer is untrusted: it may be late, huge, or not JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from ricordo.errors import DeniedError, InvalidError, RicordoError, UnavailableError

try:
    import httpx
    import stamina
    from httpx_sse import EventSource, SSEError
except ImportError as error:
    raise UnavailableError(
        "models over HTTP need packages that are not installed", hint="pip install 'ricordo[openai]'"
    ) from error

_LONGEST_WAIT_S = 30.0
_MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server and its limits. `what` names it in errors; `timeout_s` holds for one whole answer."""

    base_url: str
    what: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 30.0
    attempts: int = 4
    first_wait_s: float = 0.2

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}"

    def retries(self, attempts: int | None) -> Any:
        """Return the attempts, for a plain or an async loop."""
        return stamina.retry_context(
            on=_backoff,
            attempts=attempts or self.attempts,
            timeout=None,
            wait_initial=self.first_wait_s,
            wait_jitter=self.first_wait_s,
            wait_max=_LONGEST_WAIT_S,
        )


def bearer(api_key: str | None) -> Mapping[str, str]:
    """Return the header that carries an API key; none without a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def client_of(endpoint: Endpoint) -> httpx.Client:
    """Return a client that reuses its connections; the caller closes it."""
    return httpx.Client(headers=endpoint.headers, timeout=endpoint.timeout_s)


def post(client: httpx.Client, endpoint: Endpoint, path: str, body: Any, *, attempts: int | None = None) -> Any:
    """Post JSON, with retries, and return the JSON of the answer.

    Raises:
        UnavailableError: no answer, or an unreadable one.
        DeniedError: the server refuses the key.
        InvalidError: the server refuses the request.
    """
    url = endpoint.url(path)
    try:
        for attempt in endpoint.retries(attempts):
            with attempt, client.stream("POST", url, json=body) as response:
                answer = _read_all(response, response.iter_bytes(), until=time.monotonic() + endpoint.timeout_s)
                _check_status(response, answer)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, url, endpoint.what) from error
    return _parse(answer, endpoint.what)


async def post_async(endpoint: Endpoint, path: str, body: Any, *, attempts: int | None = None) -> Any:
    """Do the same as `post` over a new connection: an answer takes seconds, and cancelling must not wait for it."""
    url = endpoint.url(path)
    try:
        async with httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s) as client:
            async for attempt in endpoint.retries(attempts):
                with attempt:
                    answer = await _answer_async(client, endpoint, url, body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, url, endpoint.what) from error
    return _parse(answer, endpoint.what)


async def stream_events(endpoint: Endpoint, path: str, body: Any) -> AsyncIterator[Any]:
    """Post JSON, with retries, and yield the JSON of each server-sent event as it arrives; `[DONE]` ends the stream.

    `timeout_s` holds for each event, not for the whole answer.

    Raises:
        UnavailableError: no answer, an unreadable one, or one that breaks off.
        DeniedError: the server refuses the key.
        InvalidError: the server refuses the request.
    """
    url = endpoint.url(path)
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                httpx.AsyncClient(headers=endpoint.headers, timeout=endpoint.timeout_s)
            )
            async for attempt in endpoint.retries(None):
                with attempt:
                    response = await stack.enter_async_context(client.stream("POST", url, json=body))
                    if response.is_error:
                        _check_status(response, await _read_all_async(response.aiter_bytes()))
            async for event in _events(response, endpoint):
                yield event
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _as_our_error(error, url, endpoint.what) from error


async def _events(response: httpx.Response, endpoint: Endpoint) -> AsyncIterator[Any]:
    total, events = 0, EventSource(response).aiter_sse()
    while True:
        try:
            async with asyncio.timeout(endpoint.timeout_s):  # empty lines satisfy httpx's own timeout
                event = await anext(events)
        except StopAsyncIteration:
            return
        except SSEError as error:
            raise UnavailableError(f"the {endpoint.what} does not stream its answers") from error
        except TimeoutError as error:
            raise httpx.ReadTimeout("the answer stopped coming") from error
        total += len(event.data)
        if event.data.strip() == "[DONE]" or total > _MOST_BYTES:
            return
        if event.data:
            yield _parse(event.data.encode(), endpoint.what)


async def _answer_async(client: httpx.AsyncClient, endpoint: Endpoint, url: str, body: Any) -> bytes:
    try:
        async with asyncio.timeout(endpoint.timeout_s), client.stream("POST", url, json=body) as response:
            answer = await _read_all_async(response.aiter_bytes())
            _check_status(response, answer)
            return answer
    except TimeoutError as error:  # single bytes satisfy httpx's own timeout
        raise httpx.ReadTimeout("no whole answer in time") from error


def _read_all(response: httpx.Response, parts: Iterator[bytes], *, until: float) -> bytes:
    answer = bytearray()
    for part in parts:
        answer += part
        if time.monotonic() > until:
            raise httpx.ReadTimeout("no whole answer in time", request=response.request)
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


async def _read_all_async(parts: AsyncIterator[bytes]) -> bytes:
    answer = bytearray()
    async for part in parts:
        answer += part
        if len(answer) > _MOST_BYTES:
            break
    return bytes(answer)


class _StatusError(httpx.HTTPStatusError):
    """An error status with the beginning of the server's answer as text."""

    def __init__(self, response: httpx.Response, answer: bytes) -> None:
        super().__init__(str(response.status_code), request=response.request, response=response)
        self.text = answer[:300].decode("utf-8", "replace")


def _check_status(response: httpx.Response, answer: bytes) -> None:
    if response.is_error:
        raise _StatusError(response, answer)


def _backoff(error: Exception) -> bool | float:
    """Return whether to retry (connection errors, 429, 5xx), or the seconds the server asks for, with jitter."""
    if not isinstance(error, httpx.HTTPStatusError):
        return isinstance(error, httpx.TransportError)
    if error.response.status_code != 429 and error.response.status_code < 500:
        return False
    try:
        wait_s = float(error.response.headers["Retry-After"])
    except (KeyError, ValueError):  # absent, or a date: use the normal backoff
        return True
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S) * random.uniform(1.0, 1.1)


def _as_our_error(error: Exception, url: str, what: str) -> RicordoError:
    if not isinstance(error, _StatusError):
        return UnavailableError(f"{url} does not answer: {type(error).__name__}")
    status = error.response.status_code
    if status in (401, 403):
        return DeniedError(f"the {what} refused the key ({status})", hint="set the provider's API key")
    if status == 429 or status >= 500:
        return UnavailableError(f"the {what} answered {status}: {error.text}")
    return InvalidError(f"the {what} answered {status}: {error.text}")


def _parse(answer: bytes, what: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError as error:
        raise UnavailableError(f"the {what}'s answer cannot be read") from error
